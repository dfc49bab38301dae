// Conversions and roundings as arithmetic: what instructions of a class do not do, rounding once wherever the cast
// rounds.
#include "kernel/expand_scalar.h"

namespace quartet::kernel {
namespace {

bool is_half(DType type) { return type == DType::f16 || type == DType::bf16; }

struct Bits {
  Builder& b;
  DType type;
  ValueId c(int64_t value) const { return b.constant(type, value); }
  ValueId mask(ValueId x, int64_t y) const { return b.binary(ScalarOp::bit_and, x, c(y)); }
  ValueId join(ValueId x, ValueId y) const { return b.binary(ScalarOp::bit_or, x, y); }
  ValueId shl(ValueId x, int64_t by) const { return b.binary(ScalarOp::shift_left, x, c(by)); }
  ValueId shr(ValueId x, int64_t by) const { return b.binary(ScalarOp::shift_right, x, c(by)); }
  ValueId less(ValueId x, int64_t y) const { return b.less(x, c(y)); }
};

ValueId bf16_to_f32(Builder& b, ValueId x) {
  const Bits u{b, DType::u32};
  return b.bitcast(DType::f32, u.shl(b.cast(DType::u32, b.bitcast(DType::u16, x)), 16));
}

ValueId f32_to_bf16(Builder& b, ValueId x) {
  const Bits u{b, DType::u32};
  const ValueId bits = b.bitcast(DType::u32, x);
  const ValueId odd = u.mask(u.shr(bits, 16), 1);
  const ValueId rounded = u.shr(b.add(b.add(bits, u.c(0x7fff)), odd), 16);
  const ValueId quiet = u.join(u.shr(bits, 16), u.c(0x40));
  const ValueId nan = b.binary(ScalarOp::ne, x, x);
  return b.bitcast(DType::bf16, b.cast(DType::u16, b.select(nan, quiet, rounded)));
}

ValueId f16_to_f32_bits(Builder& b, ValueId x) {
  const Bits u{b, DType::u32};
  const ValueId half = b.cast(DType::u32, b.bitcast(DType::u16, x));
  const ValueId sign = u.shl(u.mask(half, 0x8000), 16), magnitude = u.mask(half, 0x7fff);
  const ValueId shifted = u.shl(magnitude, 13);
  const ValueId normal = b.add(shifted, u.c(0x38000000));
  // Denormals: the mantissa put below 2^-14's leading one, which is then taken away exactly.
  const ValueId base = u.c(0x38800000);
  const ValueId denormal =
      b.bitcast(DType::u32, b.sub(b.bitcast(DType::f32, b.add(shifted, base)), b.bitcast(DType::f32, base)));
  const ValueId quiet = b.select(b.less(u.c(0x7c00), magnitude), u.c(0x400000), u.c(0));
  const ValueId special = u.join(u.join(shifted, u.c(0x7f800000)), quiet);
  const ValueId finite = b.select(u.less(magnitude, 0x400), denormal, normal);
  return b.bitcast(DType::f32, u.join(sign, b.select(u.less(magnitude, 0x7c00), finite, special)));
}

ValueId f32_to_f16_bits(Builder& b, ValueId x) {
  const Bits u{b, DType::u32};
  const ValueId bits = b.bitcast(DType::u32, x);
  const ValueId sign = u.mask(u.shr(bits, 16), 0x8000), magnitude = u.mask(bits, 0x7fffffff);
  const ValueId odd = u.mask(u.shr(magnitude, 13), 1);
  const ValueId normal = u.shr(b.add(b.sub(magnitude, u.c(0x38000000 - 0xfff)), odd), 13);
  // Adding 0.5 shifts a denormal result into the low bits and rounds it.
  const ValueId shifted = b.add(b.bitcast(DType::f32, magnitude), b.real(DType::f32, 0.5));
  const ValueId denormal = b.sub(b.bitcast(DType::u32, shifted), u.c(0x3f000000));
  const ValueId nan = u.join(u.mask(u.shr(magnitude, 13), 0x3ff), u.c(0x7e00));
  const ValueId finite = b.select(u.less(magnitude, 0x38800000), denormal, normal);
  const ValueId large = b.select(b.less(u.c(0x7f800000), magnitude), nan, u.c(0x7c00));
  const ValueId value = u.join(sign, b.select(u.less(magnitude, 0x47800000), finite, large));
  return b.bitcast(DType::f16, b.cast(DType::u16, value));
}

// f64 to f32 towards zero with the last bit set where it was inexact: rounding that to fewer bits rounds the f64 once.
ValueId f64_to_odd_f32(Builder& b, ValueId x) {
  const Bits u{b, DType::u32};
  const ValueId nearest = b.cast(DType::f32, x), back = b.cast(DType::f64, nearest);
  const ValueId bits = b.bitcast(DType::u32, nearest);
  const ValueId away = b.less(b.unary(ScalarOp::abs, x), b.unary(ScalarOp::abs, back));
  const ValueId odd = u.join(b.select(away, b.sub(bits, u.c(1)), bits), u.c(1));
  const ValueId inexact = b.binary(ScalarOp::bit_or, b.less(x, back), b.less(back, x));  // not with NaN
  return b.bitcast(DType::f32, b.select(inexact, odd, bits));
}

// A 64-bit integer of more than 53 bits keeps its upper bits, the last of them set where something was below; an exact
// f64 that rounds to at most 42 bits as the integer does.
ValueId integer_to_odd_f64(Builder& b, ValueId x) {
  const DType type = b.type(x);
  const Bits w{b, type};
  const ValueId magnitude = is_signed_int(type) ? b.unary(ScalarOp::abs, x) : x;
  // abs of the lowest integer is itself, and already a power of two.
  const ValueId large = b.less(w.c((int64_t{1} << 53) - 1), magnitude);
  const ValueId below = b.binary(ScalarOp::ne, w.mask(x, 0x7ff), w.c(0));
  const ValueId sticky = w.join(w.mask(x, -0x800), b.select(below, w.c(0x800), w.c(0)));
  return b.cast(DType::f64, b.select(large, sticky, x));
}

ValueId f32_to_half(Builder& b, Isa isa, DType to, ValueId x) {
  if (to == DType::bf16) return f32_to_bf16(b, x);
  return isa == Isa::sse2 ? f32_to_f16_bits(b, x) : b.cast(to, x);
}

ValueId half_to_f32(Builder& b, Isa isa, ValueId x) {
  if (b.type(x) == DType::bf16) return bf16_to_f32(b, x);
  return isa == Isa::sse2 ? f16_to_f32_bits(b, x) : b.cast(DType::f32, x);
}

ValueId cast_to_half(Builder& b, Isa isa, DType to, ValueId x) {
  const DType from = b.type(x);
  switch (from) {
    case DType::boolean:
      return b.select(x, b.real(to, 1.0), b.real(to, 0.0));
    case DType::f64:
      return f32_to_half(b, isa, to, f64_to_odd_f32(b, x));
    case DType::i64:
    case DType::u64:
      return f32_to_half(b, isa, to, f64_to_odd_f32(b, integer_to_odd_f64(b, x)));
    case DType::i32:
    case DType::u32:
      return f32_to_half(b, isa, to, f64_to_odd_f32(b, b.cast(DType::f64, x)));
    default:
      return f32_to_half(b, isa, to, b.cast(DType::f32, x));  // f32 and integers of at most 16 bits are exact
  }
}

}  // namespace

ValueId expand_cast(Builder& b, Isa isa, DType to, ValueId value) {
  const DType from = b.type(value);
  if (from == to) return value;
  if (is_half(from)) {
    if (to == DType::boolean) {
      const ValueId magnitude =
          b.binary(ScalarOp::bit_and, b.bitcast(DType::u16, value), b.constant(DType::u16, 0x7fff));
      return b.binary(ScalarOp::ne, magnitude, b.constant(DType::u16, 0));
    }
    const ValueId wide = half_to_f32(b, isa, value);
    return to == DType::f32 ? wide : expand_cast(b, isa, to, wide);
  }
  return is_half(to) ? cast_to_half(b, isa, to, value) : b.cast(to, value);
}

ValueId expand_rounding(Builder& b, ScalarOp op, ValueId x) {
  const DType type = b.type(x), integer = type == DType::f32 ? DType::i32 : DType::i64;
  EmitMachine m{b, type, integer, false};
  // From 2^23 (2^52) on every value is integral; below, adding it rounds to even.
  const ValueId limit = m.f(type == DType::f32 ? 0x1p23 : 0x1p52);
  const ValueId magnitude = m.abs(x), one = m.f(1.0);
  const ValueId sign_mask = b.constant(integer, type == DType::f32 ? INT32_MIN : INT64_MIN);
  const ValueId sign = m.iand(m.bits(x), sign_mask);
  const auto with_sign = [&](ValueId v) { return m.from_bits(m.ior(m.bits(m.abs(v)), sign)); };
  ValueId rounded = m.sub(m.add(magnitude, limit), limit);
  if (op == ScalarOp::trunc) {
    rounded = m.select(m.lt(magnitude, rounded), m.sub(rounded, one), rounded);
  } else if (op != ScalarOp::round_even) {
    rounded = with_sign(rounded);
    if (op == ScalarOp::floor) rounded = m.select(m.lt(x, rounded), m.sub(rounded, one), rounded);
    if (op == ScalarOp::ceil) rounded = m.select(m.lt(rounded, x), m.add(rounded, one), rounded);
  }
  // A zero keeps the sign of the argument; no other result changes sign.
  return m.select(m.lt(magnitude, limit), with_sign(rounded), x);
}

// fmod by long division of the mantissas: x = mx * 2^ex, y = my * 2^ey, and (mx << (ex - ey)) mod my a few bits at a
// time.
ValueId expand_float_rem(Builder& b, ValueId x, ValueId y) {
  const DType type = b.type(x);
  const bool single = type == DType::f32;
  const DType integer = single ? DType::i32 : DType::i64;
  const int mantissa = single ? 23 : 52, step = 63 - (mantissa + 1), span = single ? 253 : 2045;
  EmitMachine m{b, type, integer, false};
  const Bits w{b, DType::u64};
  struct Parts {
    ValueId exponent, mantissa;  // i64, u64
  };
  const auto split = [&](ValueId v) {
    const ValueId bits = b.cast(DType::i64, m.bits(m.abs(v)));
    const ValueId raw = b.binary(ScalarOp::shift_right, bits, b.i64(mantissa));
    const ValueId fraction = b.binary(ScalarOp::bit_and, bits, b.i64((int64_t{1} << mantissa) - 1));
    const ValueId denormal = b.binary(ScalarOp::eq, raw, b.i64(0));
    const ValueId leading = b.select(denormal, b.i64(0), b.i64(int64_t{1} << mantissa));
    return Parts{b.select(denormal, b.i64(1), raw), b.cast(DType::u64, b.binary(ScalarOp::bit_or, fraction, leading))};
  };
  const Parts px = split(x), py = split(y);
  // A divisor of 0 gives NaN below; 1 stands in for it here.
  const ValueId divisor = b.max(py.mantissa, w.c(1));
  const ValueId difference = b.max(b.sub(px.exponent, py.exponent), b.i64(0));
  const Ids divided = b.loop(LoopKind::serial, b.i64(0), b.i64((span + step - 1) / step), 1,
                             {b.binary(ScalarOp::rem, px.mantissa, divisor), difference}, Runs::maybe,
                             [&](ValueId, std::span<const ValueId> carried) {
                               const ValueId by = b.min(carried[1], b.i64(step));
                               const ValueId shifted =
                                   b.binary(ScalarOp::shift_left, carried[0], b.cast(DType::u64, by));
                               return Ids{b.binary(ScalarOp::rem, shifted, divisor), b.sub(carried[1], by)};
                             });
  // The remainder times 2^ey: the exponent of y's last bit, in two steps, each exact.
  const ValueId remainder = b.cast(type, b.cast(DType::i64, divided[0]));
  const int bias = single ? 127 : 1023;
  const ValueId exponent = b.sub(py.exponent, b.i64(bias + mantissa));
  const ValueId half = b.binary(ScalarOp::shift_right, exponent, b.i64(1));
  const auto power = [&](ValueId e) {
    const ValueId biased = b.binary(ScalarOp::shift_left, b.add(e, b.i64(bias)), b.i64(mantissa));
    return m.from_bits(b.cast(integer, biased));
  };
  const ValueId scaled = m.mul(m.mul(remainder, power(half)), power(b.sub(exponent, half)));
  const ValueId sign = m.iand(m.bits(x), b.constant(integer, single ? INT32_MIN : INT64_MIN));
  const ValueId result = m.from_bits(m.ior(m.bits(scaled), sign));
  const ValueId smaller = m.lt(m.abs(x), m.abs(y));  // y infinite included
  const ValueId defined = m.both(m.lt(m.abs(x), m.f(__builtin_inf())), m.lt(m.f(0.0), m.abs(y)));
  return m.select(smaller, x, m.select(defined, result, m.f(__builtin_nan(""))));
}

}  // namespace quartet::kernel
