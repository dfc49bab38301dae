#include "tile/build.h"

#include "tile/remap.h"

namespace quartet::tile {

using Kind = BodyNode::Kind;

ExprBuilder::ExprBuilder(const OpView& view, const graph::Shape& shape) : view_(view) {
  expr.axes = shape;
  expr.spatial = static_cast<int32_t>(shape.size());
}

IntExpr ExprBuilder::axis(size_t i) const {
  return expr.axes[i].is(1) ? IntExpr(0) : IntExpr::axis(static_cast<int>(i));
}

IntExpr ExprBuilder::add_reduction_axis(const IntExpr& extent) {
  expr.axes.push_back(extent);
  return axis(expr.axes.size() - 1);
}

int32_t ExprBuilder::add(BodyNode node) {
  expr.body.push_back(std::move(node));
  return static_cast<int32_t>(expr.body.size()) - 1;
}

int32_t ExprBuilder::op(ScalarOp op, DType dtype, std::initializer_list<int32_t> operands) {
  BodyNode node;
  node.kind = Kind::op;
  node.op = op;
  node.dtype = dtype;
  node.operands = operands;
  return add(std::move(node));
}

int32_t ExprBuilder::constant(DType dtype, int64_t bits) {
  BodyNode node;
  node.kind = Kind::constant;
  node.dtype = dtype;
  node.bits = bits;
  return add(std::move(node));
}

int32_t ExprBuilder::index(const IntExpr& value) {
  if (const auto number = value.constant()) return constant(DType::i64, *number);
  BodyNode node;
  node.kind = Kind::index;
  node.dtype = DType::i64;
  node.index = value;
  return add(std::move(node));
}

int32_t ExprBuilder::reduced(DType dtype, int32_t number) {
  BodyNode node;
  node.kind = Kind::reduced;
  node.dtype = dtype;
  node.read = number;
  return add(std::move(node));
}

int32_t ExprBuilder::read(size_t operand, std::vector<IntExpr> index, std::vector<Guard> guards, int32_t fill) {
  const TensorId id = view_.operands[operand];
  const Tensor& tensor = view_.graph.tensors[static_cast<size_t>(id)];
  for (IntExpr& each : index) each = each.simplify(ranges());
  // The same element of the same tensor is one read.
  for (size_t i = 0; i < expr.body.size(); ++i) {
    if (expr.body[i].kind != Kind::read || !guards.empty()) continue;
    const Read& other = expr.reads[static_cast<size_t>(expr.body[i].read)];
    if (other.guards.empty() && view_.operands[static_cast<size_t>(other.operand)] == id && other.index == index) {
      return static_cast<int32_t>(i);
    }
  }
  Read made;
  made.operand = static_cast<int32_t>(operand);
  made.index = std::move(index);
  made.guards = std::move(guards);
  made.fill = fill;
  expr.reads.push_back(std::move(made));
  BodyNode node;
  node.kind = Kind::read;
  node.dtype = tensor.type.dtype;
  node.read = static_cast<int32_t>(expr.reads.size()) - 1;
  return add(std::move(node));
}

int32_t ExprBuilder::read_broadcast(size_t operand) {
  const graph::TensorType& type = view_.type(operand);
  if (type.rank() > rank()) return -1;
  const size_t skip = rank() - type.rank();
  std::vector<IntExpr> index(type.rank());
  for (size_t d = 0; d < type.rank(); ++d) {
    if (type.shape[d].is(1)) continue;
    if (!provably_equal(type.shape[d], expr.axes[skip + d], ranges())) return -1;
    index[d] = axis(skip + d);
  }
  return read(operand, std::move(index));
}

int32_t ExprBuilder::cast(int32_t node, DType dtype) {
  return this->dtype(node) == dtype ? node : op(ScalarOp::cast, dtype, {node});
}

}  // namespace quartet::tile
