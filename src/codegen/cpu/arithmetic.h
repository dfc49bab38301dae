// The scalar operations of kernel IR as LLVM IR, on values of any lane count: exact, without a call to anything,
// without a trap whatever the operands are.
#pragma once

#include <span>

#include "base/scalar_ops.h"
#include "codegen/cpu/ir.h"
#include "kernel/ir.h"

namespace quartet::codegen {

// `from` is the type of the operands (of select: of the second and third), `to` the type of the result. Null if the
// operation has no form here (transcendentals and float remainders, which kernel::expand rewrites).
llvm::Value* emit_scalar(Ir& ir, ScalarOp op, DType from, DType to, std::span<llvm::Value* const> operands);

// Parts of it that other emitters use.
llvm::Value* emit_cast(Ir& ir, DType from, DType to, llvm::Value* value);
llvm::Value* emit_divide(Ir& ir, ScalarOp op, DType type, llvm::Value* a, llvm::Value* d);
llvm::Value* emit_min_max(Ir& ir, bool want_max, DType type, llvm::Value* a, llvm::Value* c);
// A float as the type it is computed in (f16, bf16: f32), and back with one rounding.
llvm::Value* widen(Ir& ir, DType type, llvm::Value* value);
llvm::Value* narrow(Ir& ir, DType type, llvm::Value* value);
constexpr bool is_half(DType type) { return type == DType::f16 || type == DType::bf16; }

// Memory form of bool, and back.
llvm::Value* to_memory(Ir& ir, DType type, llvm::Value* value);
llvm::Value* from_memory(Ir& ir, DType type, llvm::Value* value);

// One step of a reduction of values: state (op) element.
llvm::Value* emit_combine(Ir& ir, kernel::ReduceOp op, DType type, llvm::Value* state, llvm::Value* element);
// What the reduction gives over nothing.
llvm::Constant* reduce_identity(Ir& ir, kernel::ReduceOp op, DType type, int lanes);

}  // namespace quartet::codegen
