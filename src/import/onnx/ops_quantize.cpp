// Quantisation: scales in f32, rounding to even, saturation; products of integers in i32, exactly.
#include <algorithm>

#include "import/onnx/quantize.h"
#include "import/onnx/tensors.h"

namespace quartet::import::onnx {

Expr quantized(const Expr& x, const Expr& zero) {
  return (unary(OpCode::round, x) + zero.cast(x.dtype())).cast(zero.dtype());
}

namespace {

// A scale or zero point of rank 0, or one per element of an axis, or one per block of an axis, as it broadcasts to x.
Result<Expr> parameter(Emit& e, const Expr& p, const Expr& x) {
  NodeContext& c = e.context();
  if (!e.status().ok()) return p;
  if (p.rank() == 0 || (p.rank() == 1 && p.dim(0).is(1))) return p.reshape({});
  QUARTET_ASSIGN(const int64_t axis, c.axis(c.attr_int("axis", 1), x.rank()));
  const int64_t block = c.attr_int("block_size", 0);
  if (p.rank() == 1 && block == 0) return p.along(static_cast<size_t>(axis), x.rank());
  if (block < 1 || p.rank() != x.rank())
    return make_error(Code::invalid_argument, "a scale of rank %zu for an operand of rank %zu, block_size %lld",
                      p.rank(), x.rank(), static_cast<long long>(block));
  // Each element of the axis is repeated `block` times.
  const auto at = static_cast<size_t>(axis);
  graph::Shape apart = p.shape(), wide, together = p.shape();
  apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(at) + 1, IntExpr(1));
  wide = apart;
  wide[at + 1] = block;
  together[at] = together[at] * IntExpr(block);
  return p.reshape(apart).expand(wide).reshape(together).slice(at, IntExpr(0), x.dim(at));
}

Status quantize_linear(NodeContext& c) {
  Emit e(c);
  const Expr x = e.in(0), given = e.in(1);
  DType to = DType::u8;
  if (const int64_t wanted = c.attr_int("output_dtype", 0); wanted != 0) {
    const auto dtype = dtype_of(static_cast<int32_t>(wanted));
    if (!dtype)
      return make_error(Code::unsupported, "output_dtype %s", type_name(static_cast<int32_t>(wanted)).c_str());
    to = *dtype;
  }
  Expr zero = e.number(to, int64_t{0});
  if (c.has(2)) zero = e.in(2);
  if (e.status().ok() && !is_int(zero.dtype())) return make_error(Code::unsupported, "to %s", dtype_name(zero.dtype()));
  QUARTET_ASSIGN(const Expr scale, parameter(e, given.cast(DType::f32), x));
  QUARTET_ASSIGN(const Expr shift, parameter(e, zero, x));
  return e.give(0, quantized(x.cast(DType::f32) / scale, shift));
}

Status dequantize_linear(NodeContext& c) {
  Emit e(c);
  const Expr x = e.in(0), given = e.in(1);
  QUARTET_ASSIGN(const Expr scale, parameter(e, given.cast(DType::f32), x));
  Expr difference = x.cast(DType::i32);
  if (c.has(2)) {
    QUARTET_ASSIGN(const Expr zero, parameter(e, e.in(2).cast(DType::i32), x));
    difference = difference - zero;
  }
  return e.give(0, (difference.cast(DType::f32) * scale).cast(given.dtype()));
}

// u8 over [min(x, 0), max(x, 0)]; where that is one point the scale is 1.
Status dynamic_quantize_linear(NodeContext& c) {
  Emit e(c);
  const Expr x = e.in(0);
  std::vector<int64_t> axes;
  for (size_t d = 0; d < x.rank(); ++d) axes.push_back(static_cast<int64_t>(d));
  const Expr low = min(x.reduce(OpCode::reduce_min, axes, false), 0),
             high = max(x.reduce(OpCode::reduce_max, axes, false), 0);
  const Expr scale = select(equal(low, high), 1.0, (high - low) / 255);
  const Expr zero = unary(OpCode::round, max(min(-low / scale, 255), 0)).cast(DType::u8);
  QUARTET_TRY(e.give(0, quantized(x / scale, zero)));
  if (c.output_count() > 1) QUARTET_TRY(e.give(1, scale));
  if (c.output_count() > 2) QUARTET_TRY(e.give(2, zero));
  return e.status();
}

// An operand of a product in i32, less its zero point: a number, or one per row of a, per column of b.
Expr centred(Emit& e, size_t operand, size_t zero_point, bool rows) {
  const Expr x = e.in(operand).cast(DType::i32);
  if (!e.context().has(zero_point)) return x;
  const Expr zero = e.in(zero_point).cast(DType::i32);
  if (zero.rank() == 0 || (zero.rank() == 1 && zero.dim(0).is(1))) return x - zero.reshape({});
  if (zero.rank() == 1 && rows) return x - zero.reshape({zero.dim(0), IntExpr(1)});
  return x - zero;
}

Status matmul_integer(NodeContext& c) {
  Emit e(c);
  return e.give(0, e.op(OpCode::matmul, {centred(e, 0, 2, true), centred(e, 1, 3, false)}));
}

// Rank 0 as it is; per row: a column.
Expr row_parameter(const Expr& p) {
  if (p.rank() == 1 && !p.dim(0).is(1)) return p.reshape({p.dim(0), IntExpr(1)});
  return p.rank() == 1 ? p.reshape({}) : p;
}

Status qlinear_matmul(NodeContext& c) {
  Emit e(c);
  const Expr product = e.op(OpCode::matmul, {centred(e, 0, 2, true), centred(e, 3, 5, false)});
  const Expr b_scale = e.in(4).cast(DType::f32);
  const Expr columns = b_scale.rank() == 1 && b_scale.dim(0).is(1) ? b_scale.reshape({}) : b_scale;
  const Expr scale = row_parameter(e.in(1).cast(DType::f32)) * columns / row_parameter(e.in(6).cast(DType::f32));
  const Expr zero = row_parameter(e.in(7));
  return e.give(0, quantized(product.cast(DType::f32) * scale, zero));
}

constexpr OpRow kRows[] = {
    {"DequantizeLinear", 10, INT64_MAX, dequantize_linear},
    {"DynamicQuantizeLinear", 11, INT64_MAX, dynamic_quantize_linear},
    {"MatMulInteger", 10, INT64_MAX, matmul_integer},
    {"QLinearMatMul", 10, INT64_MAX, qlinear_matmul},
    {"QuantizeLinear", 10, INT64_MAX, quantize_linear},
};

}  // namespace

std::span<const OpRow> quantize_ops() { return kRows; }

}  // namespace quartet::import::onnx
