// The scalar operations shared by tensor expressions and kernel IR.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace quartet {

enum class ScalarOp : uint8_t {
#define QUARTET_SCALAR_OP(name, operands, doc) name,
#include "base/scalar_ops.def"
#undef QUARTET_SCALAR_OP
};

inline constexpr int kScalarOpCount = 0
#define QUARTET_SCALAR_OP(name, operands, doc) +1
#include "base/scalar_ops.def"
#undef QUARTET_SCALAR_OP
    ;

const char* scalar_op_name(ScalarOp op);
int scalar_op_operands(ScalarOp op);
std::optional<ScalarOp> scalar_op_from_name(std::string_view name);
// eq, ne, lt, le give bool whatever their operands' type is.
constexpr bool is_comparison(ScalarOp op) { return op >= ScalarOp::eq && op <= ScalarOp::le; }

}  // namespace quartet
