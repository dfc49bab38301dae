#include "kernel/expand_scalar.h"

#include "kernel/math_f32.h"
#include "kernel/math_f64.h"
#include "kernel/math_trig.h"

namespace quartet::kernel {
namespace {

bool is_half(DType type) { return type == DType::f16 || type == DType::bf16; }

// The sign of a 16-bit float is a bit of an integer.
ValueId half_sign(Builder& b, ScalarOp op, DType dtype, ValueId x) {
  const ValueId bits = b.bitcast(DType::u16, x);
  const ValueId changed = op == ScalarOp::neg ? b.binary(ScalarOp::bit_xor, bits, b.constant(DType::u16, 0x8000))
                                              : b.binary(ScalarOp::bit_and, bits, b.constant(DType::u16, 0x7fff));
  return b.bitcast(dtype, changed);
}

bool is_rounding(ScalarOp op) {
  return op == ScalarOp::floor || op == ScalarOp::ceil || op == ScalarOp::trunc || op == ScalarOp::round_even;
}

ValueId transcendental_f32(EmitMachine& m, ScalarOp op, std::span<const ValueId> x) {
  switch (op) {
    case ScalarOp::exp:
      return math::exp(m, x[0]);
    case ScalarOp::log:
      return math::log(m, x[0]);
    case ScalarOp::tanh:
      return math::tanh(m, x[0]);
    case ScalarOp::erf:
      return math::erf(m, x[0]);
    case ScalarOp::sigmoid:
      return math::sigmoid(m, x[0]);
    default:
      break;
  }
  // sin, cos and pow of f32 are those of f64, rounded.
  EmitMachine wide{m.b, DType::f64, DType::i64, m.fused};
  const ValueId a = m.b.cast(DType::f64, x[0]);
  if (op == ScalarOp::sin) return m.b.cast(DType::f32, math::f64::sin_short(wide, a));
  if (op == ScalarOp::cos) return m.b.cast(DType::f32, math::f64::cos_short(wide, a));
  return m.b.cast(DType::f32, math::f64::pow_short(wide, a, m.b.cast(DType::f64, x[1])));
}

ValueId transcendental_f64(EmitMachine& m, ScalarOp op, std::span<const ValueId> x) {
  switch (op) {
    case ScalarOp::exp:
      return math::f64::exp(m, x[0]);
    case ScalarOp::log:
      return math::f64::log(m, x[0]);
    case ScalarOp::tanh:
      return math::f64::tanh(m, x[0]);
    case ScalarOp::erf:
      return math::f64::erf(m, x[0]);
    case ScalarOp::sigmoid:
      return math::f64::sigmoid(m, x[0]);
    case ScalarOp::sin:
      return math::f64::sin(m, x[0]);
    case ScalarOp::cos:
      return math::f64::cos(m, x[0]);
    default:
      return math::f64::pow(m, x[0], x[1]);
  }
}

ValueId expand_float(Builder& b, Isa isa, ScalarOp op, DType dtype, std::span<const ValueId> operands) {
  if (op == ScalarOp::rem) return expand_float_rem(b, operands[0], operands[1]);
  if (is_rounding(op) && isa == Isa::sse2) return expand_rounding(b, op, operands[0]);
  if (op < ScalarOp::exp || op > ScalarOp::pow) return b.scalar(op, dtype, operands);
  EmitMachine m{b, dtype, dtype == DType::f32 ? DType::i32 : DType::i64, isa != Isa::sse2};
  return dtype == DType::f32 ? transcendental_f32(m, op, operands) : transcendental_f64(m, op, operands);
}

}  // namespace

ValueId expand_scalar(Builder& b, Isa isa, ScalarOp op, DType dtype, std::span<const ValueId> operands) {
  if (op == ScalarOp::cast) return expand_cast(b, isa, dtype, operands[0]);
  if (op == ScalarOp::select || op == ScalarOp::bitcast) return b.scalar(op, dtype, operands);
  const DType domain = b.type(operands.back());
  if (!is_half(domain))
    return is_float(domain) ? expand_float(b, isa, op, dtype, operands) : b.scalar(op, dtype, operands);
  if (op == ScalarOp::neg || op == ScalarOp::abs) return half_sign(b, op, dtype, operands[0]);
  Ids wide;
  for (const ValueId v : operands) wide.push_back(expand_cast(b, isa, DType::f32, v));
  if (quartet::is_comparison(op)) return b.scalar(op, DType::boolean, wide);
  return expand_cast(b, isa, dtype, expand_float(b, isa, op, DType::f32, wide));
}

}  // namespace quartet::kernel
