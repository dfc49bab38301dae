// Elementwise composites as primitives.
#include "simplify/rules.h"

namespace quartet::simplify {
namespace {

Result<ValueId> sign(Rewriter& r, ValueId x) {
  const DType type = r.type(x).dtype;
  QUARTET_ASSIGN(const ValueId zero, r.scalar(type, 0));
  QUARTET_ASSIGN(const ValueId one, r.scalar(type, 1));
  QUARTET_ASSIGN(const ValueId positive, r.one(OpCode::less, {zero, x}));
  if (is_unsigned_int(type)) return r.one(OpCode::select, {positive, one, zero});
  QUARTET_ASSIGN(const ValueId minus_one, r.scalar(type, -1));
  QUARTET_ASSIGN(const ValueId negative, r.one(OpCode::less, {x, zero}));
  QUARTET_ASSIGN(const ValueId rest, r.one(OpCode::select, {negative, minus_one, x}));  // zeros and NaN stay
  return r.one(OpCode::select, {positive, one, rest});
}

Result<ValueId> floor_mod(Rewriter& r, ValueId a, ValueId b) {
  const DType type = r.type(a).dtype;
  QUARTET_ASSIGN(const ValueId rest, r.one(OpCode::rem, {a, b}));
  if (is_unsigned_int(type)) return rest;
  QUARTET_ASSIGN(const ValueId zero, r.scalar(type, 0));
  QUARTET_ASSIGN(const ValueId rest_negative, r.one(OpCode::less, {rest, zero}));
  QUARTET_ASSIGN(const ValueId b_negative, r.one(OpCode::less, {b, zero}));
  QUARTET_ASSIGN(const ValueId differ, r.one(OpCode::bit_xor, {rest_negative, b_negative}));
  QUARTET_ASSIGN(const ValueId some, r.one(OpCode::not_equal, {rest, zero}));
  QUARTET_ASSIGN(const ValueId wrong, r.one(OpCode::bit_and, {differ, some}));
  QUARTET_ASSIGN(const ValueId shifted, r.one(OpCode::add, {rest, b}));
  return r.one(OpCode::select, {wrong, shifted, rest});
}

}  // namespace

Replacement decompose(Rewriter& r, const Candidate& c) {
  const auto& in = c.op.operands;
  switch (c.op.code) {
    case OpCode::relu: {
      QUARTET_ASSIGN(const ValueId zero, r.scalar(r.type(in[0]).dtype, 0));
      return replace_by(r.one(OpCode::max, {in[0], zero}));
    }
    case OpCode::reciprocal: {
      QUARTET_ASSIGN(const ValueId one, r.scalar(r.type(in[0]).dtype, 1));
      return replace_by(r.one(OpCode::div, {one, in[0]}));
    }
    case OpCode::sign:
      return replace_by(sign(r, in[0]));
    case OpCode::is_nan:
      return replace_by(r.one(OpCode::not_equal, {in[0], in[0]}));
    case OpCode::floor_mod:
      return replace_by(floor_mod(r, in[0], in[1]));
    case OpCode::greater:
      return replace_by(r.one(OpCode::less, {in[1], in[0]}));
    case OpCode::greater_equal:
      return replace_by(r.one(OpCode::less_equal, {in[1], in[0]}));
    case OpCode::logical_not:
      return replace_by(r.one(OpCode::bit_not, {in[0]}));
    default:
      return keep();
  }
}

}  // namespace quartet::simplify
