// Windows and the convolution as tensor expressions.
#include "tile/build.h"
#include "tile/contraction.h"
#include "tile/reduction_order.h"

namespace quartet::tile {

using graph::AttrKey;

IntExpr window_index(const graph::Op& op, size_t i, const IntExpr& o, const IntExpr& k) {
  const auto factor = [&](AttrKey key) {
    const std::vector<int64_t>* values = graph::attr_ints(op, key);
    return IntExpr(values != nullptr ? (*values)[i] : 1);
  };
  return o * factor(AttrKey::strides) + k * factor(AttrKey::dilations);
}

// x [n, s..., group, c] by w [k..., c, group, m]; the reduction runs over k..., then c.
Result<TensorExpr> convolve_expr(const OpView& view) {
  ExprBuilder b(view, view.results[0].shape);
  b.expr.reduction = Reduction::contraction;
  const graph::Shape& filters = view.type(1).shape;
  const size_t spatial = filters.size() - 3;
  const IntExpr group = b.axis(spatial + 1), m = b.axis(spatial + 2);
  std::vector<IntExpr> x = {b.axis(0)}, w;
  for (size_t i = 0; i < spatial; ++i) {
    const IntExpr k = b.add_reduction_axis(filters[i]);
    x.push_back(window_index(view.op, i, b.axis(i + 1), k));
    w.push_back(k);
  }
  const IntExpr c = b.add_reduction_axis(filters[spatial]);
  x.insert(x.end(), {group, c});
  w.insert(w.end(), {c, group, m});
  const DType type = view.results[0].dtype, accumulator = accumulator_type(type);
  const int32_t read_a = b.read(0, std::move(x)), read_b = b.read(1, std::move(w));
  b.expr.contraction.read_a = b.expr.body[static_cast<size_t>(read_a)].read;
  b.expr.contraction.read_b = b.expr.body[static_cast<size_t>(read_b)].read;
  b.expr.element = b.op(ScalarOp::mul, accumulator, {b.cast(read_a, accumulator), b.cast(read_b, accumulator)});
  assign_roles(b.expr);
  b.expr.outputs = {b.cast(b.reduced(accumulator, 0), type)};
  return std::move(b.expr);
}

}  // namespace quartet::tile
