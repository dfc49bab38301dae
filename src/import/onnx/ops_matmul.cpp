// Matrix products.
#include "import/onnx/node.h"

namespace quartet::import::onnx {

namespace {

Status matmul(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId a, c.in(0));
  QUARTET_ASSIGN(const ValueId b, c.in(1));
  return c.give(0, c.op(OpCode::matmul, {a, b}));
}

// alpha * A' B' + beta * C, C broadcasting to the product
Status gemm(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId a, c.in(0));
  QUARTET_ASSIGN(const ValueId b, c.in(1));
  if (c.type(a).rank() != 2 || c.type(b).rank() != 2)
    return make_error(Code::invalid_argument, "A has rank %zu, B rank %zu, both must be matrices", c.type(a).rank(),
                      c.type(b).rank());
  const Attrs attrs = {{AttrKey::transpose_a, int64_t{c.attr_int("transA", 0) != 0}},
                       {AttrKey::transpose_b, int64_t{c.attr_int("transB", 0) != 0}}};
  QUARTET_ASSIGN(ValueId y, c.op(OpCode::matmul, {a, b}, attrs));
  if (const float alpha = c.attr_float("alpha", 1); alpha != 1) {
    QUARTET_ASSIGN(y, c.with_scalar(OpCode::mul, y, alpha));
  }
  const float beta = c.attr_float("beta", 1);
  if (!c.has(2) || beta == 0) return c.give(0, y);
  QUARTET_ASSIGN(ValueId addend, c.in(2));
  if (beta != 1) {
    QUARTET_ASSIGN(addend, c.with_scalar(OpCode::mul, addend, beta));
  }
  return c.give(0, c.op(OpCode::add, {y, addend}));
}

constexpr OpRow kRows[] = {
    {"Gemm", 1, INT64_MAX, gemm},
    {"MatMul", 1, INT64_MAX, matmul},
};

}  // namespace

std::span<const OpRow> matmul_ops() { return kRows; }

}  // namespace quartet::import::onnx
