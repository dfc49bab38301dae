#include "base/scalar_ops.h"

namespace quartet {
namespace {
struct Row {
  const char* name;
  int operands;
};
constexpr Row kRows[] = {
#define QUARTET_SCALAR_OP(name, operands, doc) {#name, operands},
#include "base/scalar_ops.def"
#undef QUARTET_SCALAR_OP
};
}  // namespace

const char* scalar_op_name(ScalarOp op) {
  return static_cast<int>(op) < kScalarOpCount ? kRows[static_cast<int>(op)].name : "invalid";
}
int scalar_op_operands(ScalarOp op) {
  return static_cast<int>(op) < kScalarOpCount ? kRows[static_cast<int>(op)].operands : 0;
}
std::optional<ScalarOp> scalar_op_from_name(std::string_view name) {
  for (int i = 0; i < kScalarOpCount; ++i)
    if (name == kRows[i].name) return static_cast<ScalarOp>(i);
  return std::nullopt;
}

}  // namespace quartet
