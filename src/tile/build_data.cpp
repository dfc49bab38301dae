// Concat, pad, gather and scatter: reads with guards and with indices from a tensor.
#include "tile/build.h"

namespace quartet::tile {
namespace {

using graph::AttrKey;
using graph::OpCode;

// Each operand is read where the point lies in its part; where it does not, the value is what the operands after it
// give.
TensorExpr concat_expr(const OpView& view) {
  ExprBuilder b(view, view.results[0].shape);
  const auto along = static_cast<size_t>(graph::attr_int(view.op, AttrKey::axis));
  std::vector<IntExpr> begin(view.operands.size() + 1);
  for (size_t i = 0; i < view.operands.size(); ++i) begin[i + 1] = begin[i] + view.type(i).shape[along];
  int32_t value = b.constant(view.results[0].dtype, 0);
  for (size_t i = view.operands.size(); i-- > 0;) {
    const graph::TensorType& type = view.type(i);
    if (type.shape[along].is(0)) continue;
    std::vector<IntExpr> index(type.rank());
    for (size_t d = 0; d < index.size(); ++d) index[d] = type.shape[d].is(1) && d != along ? IntExpr(0) : b.axis(d);
    index[along] = b.axis(along) - begin[i];
    const bool whole = type.shape[along] == b.expr.axes[along];
    std::vector<Guard> guards;
    if (!whole) guards.push_back({index[along], type.shape[along]});
    value = b.read(i, std::move(index), std::move(guards), whole ? -1 : value);
  }
  b.expr.outputs = {value};
  return std::move(b.expr);
}

TensorExpr pad_expr(const OpView& view) {
  ExprBuilder b(view, view.results[0].shape);
  const graph::Shape &low = *graph::attr_shape(view.op, AttrKey::low),
                     &high = *graph::attr_shape(view.op, AttrKey::high);
  const int32_t fill = b.read(1, {});
  const graph::TensorType& type = view.type(0);
  std::vector<IntExpr> index(type.rank());
  std::vector<Guard> guards;
  for (size_t d = 0; d < index.size(); ++d) {
    index[d] = b.axis(d) - low[d];
    if (!low[d].is(0) || !high[d].is(0)) guards.push_back({index[d], type.shape[d]});
  }
  const int32_t used_fill = guards.empty() ? -1 : fill;
  b.expr.outputs = {b.read(0, std::move(index), std::move(guards), used_fill)};
  return std::move(b.expr);
}

struct Index {
  int32_t value, zero;  // i64, and the constant 0 beside it
};

// The index counted from the end when negative.
Index index_from_front(ExprBuilder& b, int32_t raw, const IntExpr& dim) {
  const DType from = b.dtype(raw);
  int32_t value = raw;
  if (from == DType::u64) {  // beyond i64 is beyond every dim
    value = b.op(ScalarOp::min, from, {value, b.constant(from, INT64_MAX)});
  }
  value = b.cast(value, DType::i64);
  const int32_t zero = b.constant(DType::i64, 0);
  if (!is_signed_int(from)) return {value, zero};
  const int32_t negative = b.op(ScalarOp::lt, DType::boolean, {value, zero});
  const int32_t from_end = b.op(ScalarOp::add, DType::i64, {value, b.index(dim)});
  return {b.op(ScalarOp::select, DType::i64, {negative, from_end, value}), zero};
}

// The index within [0, dim-1].
int32_t gather_index(ExprBuilder& b, int32_t raw, const IntExpr& dim) {
  const Index index = index_from_front(b, raw, dim);
  const int32_t low = b.op(ScalarOp::min, DType::i64, {index.value, b.index(dim - IntExpr(1))});
  return b.op(ScalarOp::max, DType::i64, {low, index.zero});
}

TensorExpr gather_expr(const OpView& view) {
  ExprBuilder b(view, view.results[0].shape);
  const auto along = static_cast<size_t>(graph::attr_int(view.op, AttrKey::axis));
  const graph::TensorType &x = view.type(0), &indices = view.type(1);
  std::vector<IntExpr> where(indices.rank());
  for (size_t d = 0; d < where.size(); ++d) where[d] = b.axis(along + d);
  const int32_t chosen = gather_index(b, b.read(1, std::move(where)), x.shape[along]);
  std::vector<IntExpr> index(x.rank());
  for (size_t d = 0; d < index.size(); ++d) {
    if (d == along) {
      index[d] = IntExpr::symbol(value_symbol(chosen));
    } else {
      index[d] = b.axis(d < along ? d : d + indices.rank() - 1);
    }
  }
  // An axis that may be empty has nothing to read.
  std::vector<Guard> guards;
  int32_t fill = -1;
  if (!(x.shape[along] - IntExpr(1)).provably_nonnegative(b.ranges())) {
    guards.push_back({IntExpr(0), x.shape[along]});
    fill = b.constant(x.dtype, 0);
  }
  b.expr.outputs = {b.read(0, std::move(index), std::move(guards), fill)};
  return std::move(b.expr);
}

TensorExpr scatter_expr(const OpView& view) {
  constexpr ScalarOp kCombine[] = {ScalarOp::add, ScalarOp::mul, ScalarOp::min, ScalarOp::max};
  ExprBuilder b(view, view.results[0].shape);
  const IntExpr k = b.add_reduction_axis(view.type(1).shape[0]);
  b.expr.reduction = Reduction::scatter;
  b.expr.scatter.start = b.read(0, {b.axis(0), b.axis(1)});
  b.expr.scatter.row = index_from_front(b, b.read(1, {k}), view.type(0).shape[0]).value;
  if (const int64_t combine = graph::attr_int(view.op, AttrKey::combine); combine > 0)
    b.expr.scatter.combine = kCombine[combine - 1];
  b.expr.element = b.read(2, {k, b.axis(1)});
  b.expr.outputs = {b.reduced(view.results[0].dtype, 0)};
  return std::move(b.expr);
}

}  // namespace

Result<TensorExpr> data_expr(const OpView& view) {
  switch (view.op.code) {
    case OpCode::concat:
      return concat_expr(view);
    case OpCode::pad:
      return pad_expr(view);
    case OpCode::gather:
      return gather_expr(view);
    case OpCode::scatter:
      return scatter_expr(view);
    default:
      break;
  }
  return make_error(Code::unsupported, "no tensor expression describes %s", graph::op_info(view.op.code).name);
}

}  // namespace quartet::tile
