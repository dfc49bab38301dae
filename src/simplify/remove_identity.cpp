// Ops that give back an operand as it is.
#include <algorithm>

#include "simplify/rules.h"

namespace quartet::simplify {
namespace {

bool is_identity_perm(const std::vector<int64_t>& perm) {
  for (size_t i = 0; i < perm.size(); ++i)
    if (perm[i] != static_cast<int64_t>(i)) return false;
  return true;
}

bool is_full_slice(const Op& op, const TensorType& operand) {
  const Shape &starts = *graph::attr_shape(op, AttrKey::starts), &limits = *graph::attr_shape(op, AttrKey::limits);
  if (graph::attr_ints(op, AttrKey::steps)) return false;
  for (size_t i = 0; i < operand.rank(); ++i)
    if (!starts[i].is(0) || limits[i] != operand.shape[i]) return false;
  return true;
}

bool all_zero(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const IntExpr& e) { return e.is(0); });
}

bool gives_first_operand(const Op& op, const TensorType& operand, const TensorType& result) {
  switch (op.code) {
    case OpCode::identity:
      return true;
    case OpCode::cast:
      return operand.dtype == result.dtype;
    case OpCode::reshape:
    case OpCode::expand:
    case OpCode::assume_shape:
      return operand.shape == result.shape;
    case OpCode::transpose:
      return is_identity_perm(*graph::attr_ints(op, AttrKey::perm));
    case OpCode::slice:
      return is_full_slice(op, operand);
    case OpCode::concat:
      return op.operands.size() == 1;
    case OpCode::pad:
      return all_zero(*graph::attr_shape(op, AttrKey::low)) && all_zero(*graph::attr_shape(op, AttrKey::high));
    case OpCode::reduce_sum:
    case OpCode::reduce_prod:
    case OpCode::reduce_max:
    case OpCode::reduce_min:
    case OpCode::reduce_all:
    case OpCode::reduce_any:
      return graph::attr_ints(op, AttrKey::axes)->empty();
    default:
      return false;
  }
}

}  // namespace

Replacement remove_identity(Rewriter& r, const Candidate& c) {
  if (c.op.operands.empty()) return keep();
  const ValueId first = c.op.operands[0];
  // Equal under the symbols' ranges is not enough: the value must have the very type of the result.
  if (gives_first_operand(c.op, r.type(first), c.types[0]) && has_type(r, first, c.types[0])) return replace_by(first);
  if (c.op.code != OpCode::select) return keep();
  const ValueId yes = c.op.operands[1], no = c.op.operands[2];
  if (yes == no && has_type(r, yes, c.types[0])) return replace_by(yes);
  if (is_all(r, first, 1) && has_type(r, yes, c.types[0])) return replace_by(yes);
  if (is_all(r, first, 0) && has_type(r, no, c.types[0])) return replace_by(no);
  return keep();
}

}  // namespace quartet::simplify
