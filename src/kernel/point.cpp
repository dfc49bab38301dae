// The body of a tensor expression at one point, as kernel IR.
#include "kernel/lowering.h"

namespace quartet::kernel {

using tile::BodyNode;
using Kind = BodyNode::Kind;

ValueId Point::value(int32_t node) {
  if (values_[static_cast<size_t>(node)] != kNone) return values_[static_cast<size_t>(node)];
  // Operands are earlier nodes, so one pass upwards meets them first.
  const std::vector<bool> needed = lowering_.needed({node});
  for (size_t i = 0; i <= static_cast<size_t>(node); ++i)
    if (needed[i] && values_[i] == kNone) values_[i] = emit(lowering_.expr().body[i]);
  return values_[static_cast<size_t>(node)];
}

ValueId Point::emit(const BodyNode& node) {
  Builder& b = lowering_.builder();
  switch (node.kind) {
    case Kind::op: {
      Ids operands;
      for (const int32_t operand : node.operands) operands.push_back(values_[static_cast<size_t>(operand)]);
      return b.scalar(node.op, node.dtype, operands);
    }
    case Kind::constant:
      return b.constant(node.dtype, node.bits);
    case Kind::read:
      return read(node);
    case Kind::index:
      return index(lowering_.at(node.index));
    case Kind::reduced:
      return reduced_[static_cast<size_t>(node.read)];
  }
  return kNone;
}

ValueId Point::index(const IntExpr& e) {
  return lowering_.index(e, [this](int32_t node) { return values_[static_cast<size_t>(node)]; });
}

// Whether every guard holds; kNone where that is certain.
ValueId Point::guard(const tile::Read& read) {
  Builder& b = lowering_.builder();
  ValueId all = kNone;
  const auto both = [&](ValueId condition) {
    all = all == kNone ? condition : b.scalar(ScalarOp::bit_and, DType::boolean, {{all, condition}});
  };
  for (const tile::Guard& guard : read.guards) {
    const IntExpr value = lowering_.at(guard.value), extent = lowering_.at(guard.extent);
    if (!lowering_.nonnegative(value)) both(b.binary(ScalarOp::le, b.i64(0), index(value)));
    if (!lowering_.nonnegative(extent - IntExpr(1) - value)) both(b.less(index(value), index(extent)));
  }
  return all;
}

ValueId Point::read(const BodyNode& node) {
  const tile::Read& read = lowering_.expr().reads[static_cast<size_t>(node.read)];
  const BufferId buffer = lowering_.tensor_buffer(lowering_.read_tensor(node.read));
  const ValueId at = index(lowering_.offset(node.read));
  const ValueId condition = guard(read);
  return lowering_.builder().load(buffer, at, condition,
                                  condition == kNone ? kNone : values_[static_cast<size_t>(read.fill)]);
}

void Point::store_outputs() {
  const tile::TensorExpr& expr = lowering_.expr();
  Ids values;
  for (const int32_t output : expr.outputs) values.push_back(value(output));
  lowering_.store(lowering_.at(tile::linear_point(expr)), values);
}

}  // namespace quartet::kernel
