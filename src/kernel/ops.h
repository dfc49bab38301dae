// What the table of kernel-IR operations says, for code that walks kernels.
#pragma once

#include <optional>
#include <string_view>

#include "base/scalar_ops.h"
#include "kernel/ir.h"

namespace quartet::kernel {

inline constexpr int kOpCount = 0
#define QUARTET_KERNEL_OP(name, operands, results, doc) +1
#include "kernel/ops.def"
#undef QUARTET_KERNEL_OP
    ;

// Numbers of operands and results; -1: any number.
int op_operands(Op op);
int op_results(Op op);
std::optional<Op> op_from_name(std::string_view name);

// The scalar operations keep the order of their list between `dim` and `load`.
constexpr Op op_of(ScalarOp op) { return static_cast<Op>(static_cast<int>(op) + static_cast<int>(Op::add)); }
constexpr bool is_scalar(Op op) { return op >= Op::add && op <= Op::bitcast; }
constexpr ScalarOp scalar_of(Op op) { return static_cast<ScalarOp>(static_cast<int>(op) - static_cast<int>(Op::add)); }
constexpr bool is_comparison(Op op) { return op >= Op::eq && op <= Op::le; }
// Computes from its operands alone, touches no memory and cannot fail: may be moved to any place its operands reach.
constexpr bool is_pure(Op op) { return op == Op::constant || op == Op::dim || is_scalar(op); }
constexpr bool has_regions(Op op) { return op >= Op::loop && op <= Op::contract; }

const char* reduce_op_name(ReduceOp op);
std::optional<ReduceOp> reduce_op_from_name(std::string_view name);
const char* loop_kind_name(LoopKind kind);
std::optional<LoopKind> loop_kind_from_name(std::string_view name);
const char* scope_name(Scope scope);
std::optional<Scope> scope_from_name(std::string_view name);

// Whether an operation is defined for the type of its result (comparisons: of its operands).
bool defined_for(ScalarOp op, DType type);

}  // namespace quartet::kernel
