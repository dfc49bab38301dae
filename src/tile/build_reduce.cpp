// Reductions and the matrix product as tensor expressions.
#include <algorithm>

#include "tile/build.h"
#include "tile/contraction.h"
#include "tile/reduction_order.h"

namespace quartet::tile {
namespace {

using graph::AttrKey;
using graph::OpCode;

Reduction reduction_of(OpCode code) {
  switch (code) {
    case OpCode::reduce_sum:
      return Reduction::sum;
    case OpCode::reduce_prod:
      return Reduction::product;
    case OpCode::reduce_max:
      return Reduction::max;
    case OpCode::reduce_min:
      return Reduction::min;
    case OpCode::reduce_all:
      return Reduction::all;
    case OpCode::reduce_any:
      return Reduction::any;
    case OpCode::argmax:
      return Reduction::argmax;
    case OpCode::argmin:
      return Reduction::argmin;
    case OpCode::softmax_stats:
      return Reduction::softmax_stats;
    default:
      return Reduction::none;
  }
}

std::vector<int64_t> reduced_axes(const graph::Op& op) {
  if (const std::vector<int64_t>* axes = graph::attr_ints(op, AttrKey::axes)) return *axes;
  return {graph::attr_int(op, AttrKey::axis)};
}

// The operand at the spatial point with the reduced dims running; an op that reduces nothing runs over one element.
int32_t reduced_element(ExprBuilder& b, const OpView& view, const std::vector<int64_t>& axes) {
  const graph::TensorType& type = view.type(0);
  const bool kept = b.rank() == type.rank() && !axes.empty();
  std::vector<IntExpr> index(type.rank());
  size_t next = 0;
  for (size_t d = 0; d < index.size(); ++d) {
    if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end()) {
      index[d] = b.add_reduction_axis(type.shape[d]);
      next += kept ? 1 : 0;
    } else {
      index[d] = type.shape[d].is(1) ? IntExpr(0) : b.axis(next);
      ++next;
    }
  }
  if (axes.empty()) b.add_reduction_axis(1);
  return b.read(0, std::move(index));
}

struct Operand {
  std::vector<IntExpr> batch;  // leading dims
  IntExpr rows, inner;         // for b: inner is N, rows is K
  bool vector = false, transposed = false;
};

Operand matmul_operand(const OpView& view, size_t operand, AttrKey transpose, bool vector_is_row) {
  const graph::Shape& shape = view.type(operand).shape;
  Operand o;
  o.vector = shape.size() == 1;
  if (o.vector) {
    o.rows = vector_is_row ? IntExpr(1) : shape[0];
    o.inner = vector_is_row ? shape[0] : IntExpr(1);
    return o;
  }
  o.transposed = graph::attr_int(view.op, transpose) != 0;
  o.batch.assign(shape.begin(), shape.end() - 2);
  o.rows = shape[shape.size() - (o.transposed ? 1 : 2)];
  o.inner = shape[shape.size() - (o.transposed ? 2 : 1)];
  return o;
}

// Index of an operand: its batch dims aligned with the last of the result's, then (row, inner).
std::vector<IntExpr> matmul_index(const ExprBuilder& b, const Operand& o, size_t batch_rank, const IntExpr& row,
                                  const IntExpr& inner, bool vector_is_row) {
  if (o.vector) return {vector_is_row ? inner : row};
  std::vector<IntExpr> index;
  for (size_t d = 0; d < o.batch.size(); ++d) {
    index.push_back(o.batch[d].is(1) ? IntExpr(0) : b.axis(batch_rank - o.batch.size() + d));
  }
  index.push_back(o.transposed ? inner : row);
  index.push_back(o.transposed ? row : inner);
  return index;
}

}  // namespace

Result<TensorExpr> reduction_expr(const OpView& view) {
  ExprBuilder b(view, view.results[0].shape);
  b.expr.reduction = reduction_of(view.op.code);
  const DType type = view.type(0).dtype, accumulator = accumulator_type(type);
  if (b.expr.reduction == Reduction::none || graph::attr_int(view.op, AttrKey::select_last_index) != 0) {
    return make_error(Code::unsupported, "no tensor expression describes %s of this form",
                      graph::op_info(view.op.code).name);
  }
  b.expr.element = b.cast(reduced_element(b, view, reduced_axes(view.op)), accumulator);
  if (b.expr.reduction == Reduction::argmax || b.expr.reduction == Reduction::argmin) {
    b.expr.outputs = {b.reduced(DType::i64, 1)};
    return std::move(b.expr);
  }
  for (size_t r = 0; r < view.results.size(); ++r) {
    int32_t value = b.reduced(accumulator, static_cast<int32_t>(r));
    if (b.expr.reduction == Reduction::sum && is_float(accumulator)) {
      value = b.op(ScalarOp::add, accumulator, {value, b.constant(accumulator, 0)});
    }
    b.expr.outputs.push_back(b.cast(value, type));
  }
  return std::move(b.expr);
}

Result<TensorExpr> matmul_expr(const OpView& view) {
  ExprBuilder b(view, view.results[0].shape);
  const Operand left = matmul_operand(view, 0, AttrKey::transpose_a, true);
  const Operand right = matmul_operand(view, 1, AttrKey::transpose_b, false);
  const size_t batch_rank = std::max(left.batch.size(), right.batch.size());
  const size_t m_axis = batch_rank, n_axis = batch_rank + (left.vector ? 0 : 1);
  const IntExpr m = left.vector ? IntExpr(0) : b.axis(m_axis), n = right.vector ? IntExpr(0) : b.axis(n_axis);
  b.expr.reduction = Reduction::contraction;
  const IntExpr k = b.add_reduction_axis(left.inner);
  const DType type = view.results[0].dtype, accumulator = accumulator_type(type);
  const int32_t read_a = b.read(0, matmul_index(b, left, batch_rank, m, k, true));
  const int32_t read_b = b.read(1, matmul_index(b, right, batch_rank, k, n, false));
  const auto read_number = [&](int32_t node) { return b.expr.body[static_cast<size_t>(node)].read; };
  b.expr.contraction.read_a = read_number(read_a);
  b.expr.contraction.read_b = read_number(read_b);
  b.expr.element = b.op(ScalarOp::mul, accumulator, {b.cast(read_a, accumulator), b.cast(read_b, accumulator)});
  assign_roles(b.expr);
  b.expr.outputs = {b.cast(b.reduced(accumulator, 0), type)};
  return std::move(b.expr);
}

}  // namespace quartet::tile
