// Sources, elementwise ops and views as tensor expressions.
#include "tile/build.h"
#include "tile/remap.h"

namespace quartet::tile {
namespace {

using graph::AttrKey;
using graph::OpCode;

Status no_fit(const char* what, size_t operand, const graph::TensorType& type) {
  std::string dims;
  for (const IntExpr& dim : type.shape) dims += (dims.empty() ? "" : ", ") + dim.to_text();
  return make_error(Code::unsupported, "%s: operand %zu of shape [%s] does not provably fit the result's shape", what,
                    operand, dims.c_str());
}

Result<TensorExpr> dims_expr(const OpView& view) {
  ExprBuilder b(view, view.results[0].shape);
  const graph::Shape& values = *graph::attr_shape(view.op, AttrKey::shape);
  int32_t value = b.index(values.empty() ? IntExpr(0) : values.back());
  if (values.size() > 1) {
    const int32_t place = b.index(b.axis(0));
    for (size_t i = values.size() - 1; i-- > 0;) {
      const int32_t here = b.op(ScalarOp::eq, DType::boolean, {place, b.constant(DType::i64, static_cast<int64_t>(i))});
      value = b.op(ScalarOp::select, DType::i64, {here, b.index(values[i]), value});
    }
  }
  b.expr.outputs = {value};
  return std::move(b.expr);
}

std::vector<IntExpr> spatial_point(const ExprBuilder& b) {
  std::vector<IntExpr> point;
  for (size_t i = 0; i < b.rank(); ++i) point.push_back(b.axis(i));
  return point;
}

}  // namespace

Result<TensorExpr> source_expr(const OpView& view) {
  if (view.op.code == OpCode::dims) return dims_expr(view);
  ExprBuilder b(view, view.results[0].shape);
  const auto axis = static_cast<size_t>(graph::attr_int(view.op, AttrKey::axis));
  b.expr.outputs = {b.cast(b.index(b.axis(axis)), view.results[0].dtype)};
  return std::move(b.expr);
}

Result<TensorExpr> elementwise_expr(const OpView& view) {
  const graph::OpInfo& info = graph::op_info(view.op.code);
  ExprBuilder b(view, view.results[0].shape);
  BodyNode node;
  node.kind = BodyNode::Kind::op;
  node.op = *info.scalar;
  node.dtype = view.results[0].dtype;
  for (size_t i = 0; i < view.operands.size(); ++i) {
    const int32_t read = b.read_broadcast(i);
    if (read < 0) return no_fit(info.name, i, view.type(i));
    node.operands.push_back(read);
  }
  b.expr.body.push_back(std::move(node));
  b.expr.outputs = {static_cast<int32_t>(b.expr.body.size()) - 1};
  return std::move(b.expr);
}

Result<TensorExpr> view_expr(const OpView& view) {
  ExprBuilder b(view, view.results[0].shape);
  const graph::TensorType& type = view.type(0);
  std::vector<IntExpr> index(type.rank());
  switch (view.op.code) {
    case OpCode::identity:
    case OpCode::assume_shape:
      index = spatial_point(b);
      break;
    case OpCode::reshape: {
      auto mapped = remap(spatial_point(b), b.expr.axes, type.shape, b.ranges());
      if (!mapped) return no_fit("reshape", 0, type);
      index = std::move(*mapped);
      break;
    }
    case OpCode::transpose: {
      const std::vector<int64_t>& perm = *graph::attr_ints(view.op, AttrKey::perm);
      for (size_t i = 0; i < perm.size(); ++i) index[static_cast<size_t>(perm[i])] = b.axis(i);
      break;
    }
    case OpCode::expand: {
      const int32_t read = b.read_broadcast(0);
      if (read < 0) return no_fit("expand", 0, type);
      b.expr.outputs = {read};
      return std::move(b.expr);
    }
    case OpCode::window: {
      const std::vector<int64_t>& axes = *graph::attr_ints(view.op, AttrKey::axes);
      for (size_t i = 0; i < index.size(); ++i) index[i] = b.axis(i);
      for (size_t i = 0; i < axes.size(); ++i) {
        IntExpr& at = index[static_cast<size_t>(axes[i])];
        at = window_index(view.op, i, at, b.axis(index.size() + i));
      }
      break;
    }
    default: {  // slice
      const graph::Shape& starts = *graph::attr_shape(view.op, AttrKey::starts);
      const std::vector<int64_t>* steps = graph::attr_ints(view.op, AttrKey::steps);
      for (size_t i = 0; i < index.size(); ++i) {
        index[i] = starts[i] + b.axis(i) * IntExpr(steps != nullptr ? (*steps)[i] : 1);
      }
      break;
    }
  }
  b.expr.outputs = {b.read(0, std::move(index))};
  return std::move(b.expr);
}

}  // namespace quartet::tile
