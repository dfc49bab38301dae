// Arithmetic laws that hold for every operand, NaN, infinities and signed zeros included, so that no bit changes.
#include <cmath>

#include "simplify/rules.h"

namespace quartet::simplify {
namespace {

// The neutral element on the right of an op; a sum's is -0, a difference's +0.
bool is_neutral_right(const Rewriter& r, OpCode code, ValueId b) {
  const bool integer = is_int(r.type(b).dtype);
  switch (code) {
    case OpCode::add:
      return is_all(r, b, integer ? 0.0 : -0.0);
    case OpCode::sub:
      return is_all(r, b, 0.0);
    case OpCode::mul:
    case OpCode::div:
      return is_all(r, b, 1.0);
    case OpCode::bit_or:
    case OpCode::bit_xor:
      return is_all(r, b, 0.0);
    case OpCode::bit_and:
      return r.type(b).dtype == DType::boolean && is_all(r, b, 1.0);
    default:
      return false;
  }
}

bool commutes(OpCode code) {
  return code == OpCode::add || code == OpCode::mul || code == OpCode::bit_or || code == OpCode::bit_xor ||
         code == OpCode::bit_and;
}

bool is_idempotent(OpCode code) {
  return code == OpCode::min || code == OpCode::max || code == OpCode::bit_and || code == OpCode::bit_or;
}

// A division by a power of two is the multiplication by its reciprocal, if both are normal numbers.
Replacement divide_by_power_of_two(Rewriter& r, const Candidate& c) {
  const Constant* divisor = r.constant(c.op.operands[1]);
  const DType type = c.types[0].dtype;
  if (!divisor || !graph::is_splat(*divisor) || !is_float(type)) return keep();
  int exponent = 0;
  const double value = graph::element_as_double(*divisor, 0);
  if (std::fabs(std::frexp(value, &exponent)) != 0.5) return keep();
  const int limit = type == DType::f16 ? 14 : type == DType::f64 ? 1000 : 120;
  if (std::abs(exponent - 1) > limit) return keep();
  QUARTET_ASSIGN(
      Constant reciprocal,
      graph::copy_constant({type, {}}, graph::scalar_bytes(type, std::ldexp(value < 0 ? -1.0 : 1.0, 1 - exponent))));
  QUARTET_ASSIGN(ValueId factor, r.emit_constant(std::move(reciprocal)));
  if (divisor = r.constant(c.op.operands[1]); divisor->type.rank() > 0) {
    QUARTET_ASSIGN(factor, r.one(OpCode::expand, {factor}, {{AttrKey::shape, divisor->type.shape}}));
  }
  return replace_by(r.one(OpCode::mul, {c.op.operands[0], factor}));
}

Replacement binary(Rewriter& r, const Candidate& c) {
  const ValueId a = c.op.operands[0], b = c.op.operands[1];
  const TensorType& type = c.types[0];
  if (is_neutral_right(r, c.op.code, b) && has_type(r, a, type)) return replace_by(a);
  if (commutes(c.op.code) && is_neutral_right(r, c.op.code, a) && has_type(r, b, type)) return replace_by(b);
  if (a == b && is_idempotent(c.op.code)) return replace_by(a);
  // max(max(x, k), k)
  if (is_idempotent(c.op.code))
    if (const Op* inner = r.definition(a, c.op.code); inner && (inner->operands[0] == b || inner->operands[1] == b))
      if (has_type(r, a, type)) return replace_by(a);
  if (c.op.code == OpCode::add || c.op.code == OpCode::sub)
    if (const Op* negated = r.definition(b, OpCode::neg)) {
      const OpCode other = c.op.code == OpCode::add ? OpCode::sub : OpCode::add;
      return replace_by(r.one(other, {a, negated->operands[0]}));
    }
  if (c.op.code == OpCode::div) return divide_by_power_of_two(r, c);
  return keep();
}

// Whether every value of one type is a value of the other.
bool is_lossless(DType from, DType to) {
  if (from == DType::boolean || from == to) return to != DType::boolean || from == to;
  const auto bits = [](DType type) { return static_cast<int>(8 * size_of(type)); };
  if (is_int(from) && is_int(to)) {
    if (is_unsigned_int(from)) return bits(to) > bits(from) || (is_unsigned_int(to) && bits(to) == bits(from));
    return is_signed_int(to) && bits(to) >= bits(from);
  }
  if (is_int(from) && is_float(to)) {
    const int mantissa = to == DType::f64 ? 53 : to == DType::f32 ? 24 : to == DType::f16 ? 11 : 8;
    return bits(from) <= mantissa;
  }
  return is_float(from) && (to == DType::f64 || (to == DType::f32 && from != DType::f64));
}

Replacement unary(Rewriter& r, const Candidate& c) {
  const ValueId x = c.op.operands[0];
  switch (c.op.code) {
    case OpCode::neg:
    case OpCode::bit_not:
      if (const Op* inner = r.definition(x, c.op.code)) return replace_by(inner->operands[0]);
      return keep();
    case OpCode::abs:
      if (r.definition(x, OpCode::abs)) return replace_by(x);
      if (is_unsigned_int(r.type(x).dtype)) return replace_by(x);  // where -a is another magnitude
      if (const Op* inner = r.definition(x, OpCode::neg)) return replace_by(r.one(OpCode::abs, {inner->operands[0]}));
      return keep();
    case OpCode::cast: {
      const Op* inner = r.definition(x, OpCode::cast);
      if (!inner || !is_lossless(r.type(inner->operands[0]).dtype, r.type(x).dtype)) return keep();
      return replace_by(r.one(OpCode::cast, {inner->operands[0]}, c.op.attrs));
    }
    default:
      return keep();
  }
}

}  // namespace

Replacement algebra(Rewriter& r, const Candidate& c) {
  if (graph::op_info(c.op.code).op_class != graph::OpClass::elementwise) return keep();
  if (c.op.operands.size() == 1) return unary(r, c);
  if (c.op.operands.size() == 2) return binary(r, c);
  return keep();
}

}  // namespace quartet::simplify
