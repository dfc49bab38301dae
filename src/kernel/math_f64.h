// The f64 transcendentals, and what the f32 sin, cos and pow compute in. Written for the machines of math_f32.h with F
// f64 and I i64, which further have
//   bool is_fused();                    whether fma rounds once
//   B both(B, B); B ilt(I, I);          and of bools; signed comparison of integers
// Polynomials are minimax fits of ours; the bounds in the README are tested on samples.
#pragma once

#include "kernel/math_f32.h"

namespace quartet::kernel::math::f64 {

inline constexpr int64_t kSign = INT64_MIN;
inline constexpr double kInfinity = __builtin_inf();

template <class M>
typename M::F copy_sign(M& m, typename M::F magnitude, typename M::F sign) {
  return m.from_bits(m.ior(m.bits(magnitude), m.iand(m.bits(sign), m.i(kSign))));
}

// 2^n, n in [-1022, 1023]
template <class M>
typename M::F power_of_two(M& m, typename M::I n) {
  return m.from_bits(m.shl(m.iadd(n, m.i(1023)), 52));
}

// ---- Sums of two: a value as hi + lo, |lo| at most half a unit of hi ----

template <class M>
struct Two {
  typename M::F hi, lo;
};

template <class M>
Two<M> two_sum(M& m, typename M::F a, typename M::F b) {
  const auto s = m.add(a, b);
  const auto t = m.sub(s, a);
  return {s, m.add(m.sub(a, m.sub(s, t)), m.sub(b, t))};
}

// |a| >= |b| or a = 0
template <class M>
Two<M> fast_two_sum(M& m, typename M::F a, typename M::F b) {
  const auto s = m.add(a, b);
  return {s, m.sub(b, m.sub(s, a))};
}

template <class M>
Two<M> two_product(M& m, typename M::F a, typename M::F b) {
  const auto p = m.mul(a, b);
  if (m.is_fused()) return {p, m.fma(a, b, m.neg(p))};
  // Halves of 26 bits, whose products are exact.
  const auto split = [&m](typename M::F x) {
    const auto t = m.mul(x, m.f(134217729.0));
    const auto hi = m.sub(t, m.sub(t, x));
    return Two<M>{hi, m.sub(x, hi)};
  };
  const Two<M> x = split(a), y = split(b);
  const auto high = m.sub(m.mul(x.hi, y.hi), p);
  return {p, m.add(m.add(m.add(high, m.mul(x.hi, y.lo)), m.mul(x.lo, y.hi)), m.mul(x.lo, y.lo))};
}

template <class M>
Two<M> product(M& m, Two<M> a, Two<M> b) {
  const Two<M> p = two_product(m, a.hi, b.hi);
  return fast_two_sum(m, p.hi, m.add(p.lo, m.add(m.mul(a.hi, b.lo), m.mul(a.lo, b.hi))));
}

template <class M>
Two<M> sum(M& m, Two<M> a, Two<M> b) {
  const Two<M> s = two_sum(m, a.hi, b.hi);
  return fast_two_sum(m, s.hi, m.add(s.lo, m.add(a.lo, b.lo)));
}

// ---- exp and what is made of it ----

inline constexpr double kLog2E = 0x1.71547652b82fep+0;
// ln2 in a part of 42 bits, so that a small integer times it is exact, and the rest.
inline constexpr double kLn2High = 0x1.62e42fefa38p-1, kLn2Low = 0x1.ef35793c7673p-45;

template <class M>
struct ExpParts {
  typename M::I n;
  typename M::F tail;  // e^r - 1, x = n ln2 + r
};

// Of x + low, low far below x.
template <class M>
ExpParts<M> exp_parts(M& m, typename M::F x, typename M::F low) {
  const double magic = 0x1.8p52;
  const auto shifted = m.fma(x, m.f(kLog2E), m.f(magic));
  const auto n = m.sub(shifted, m.f(magic));
  auto r = m.fma(n, m.f(-kLn2High), x);
  r = m.add(r, m.fma(n, m.f(-kLn2Low), low));
  const auto q = polynomial(m, r,
                            {0x1.0p-1, 0x1.555555555555cp-3, 0x1.5555555555501p-5, 0x1.111111110eb92p-7,
                             0x1.6c16c16c30a26p-10, 0x1.a01a01b3cdfc1p-13, 0x1.a01a013597153p-16, 0x1.71ddef56ed60cp-19,
                             0x1.27e5b50332a67p-22, 0x1.af6d4c3688263p-26, 0x1.1e3dd3a9255abp-29});
  return {m.isub(m.bits(shifted), m.i(0x4338000000000000)), m.fma(m.mul(r, r), q, r)};
}

// e^(x + low) for x in [-746, 710]
template <class M>
typename M::F exp_within(M& m, typename M::F x, typename M::F low) {
  const ExpParts<M> e = exp_parts(m, x, low);
  const auto half = m.shr(e.n, 1);
  return m.mul(m.mul(m.add(m.f(1.0), e.tail), power_of_two(m, half)), power_of_two(m, m.isub(e.n, half)));
}

template <class M>
typename M::F clamp_exponent(M& m, typename M::F x) {
  const auto highest = m.f(710.0), lowest = m.f(-746.0);
  const auto below = m.select(m.lt(highest, x), highest, x);
  return m.select(m.lt(below, lowest), lowest, below);
}

template <class M>
typename M::F exp(M& m, typename M::F x) {
  return exp_within(m, clamp_exponent(m, x), m.f(0.0));
}

template <class M>
typename M::F tanh(M& m, typename M::F x) {
  const auto magnitude = m.abs(x), enough = m.f(22.0);
  const auto a = m.select(m.lt(enough, magnitude), enough, magnitude);
  const ExpParts<M> e = exp_parts(m, m.add(a, a), m.f(0.0));
  const auto scale = power_of_two(m, e.n);
  const auto expm1 = m.fma(scale, e.tail, m.sub(scale, m.f(1.0)));
  return copy_sign(m, m.div(expm1, m.add(expm1, m.f(2.0))), x);
}

template <class M>
typename M::F sigmoid(M& m, typename M::F x) {
  const auto e = exp(m, m.neg(m.abs(x)));
  return m.div(m.select(m.lt(x, m.f(0.0)), e, m.f(1.0)), m.add(m.f(1.0), e));
}

// |x| < 1: x + x p(x^2); beyond: 1 - exp(q), q fitting log(erfc) on [1, 2] and [2, 6].
template <class M>
typename M::F erf(M& m, typename M::F x) {
  const auto magnitude = m.abs(x), enough = m.f(6.0);
  const auto p = polynomial(
      m, m.mul(x, x),
      {0x1.06eba8214db69p-3, -0x1.812746b0379e6p-2, 0x1.ce2f21a042b20p-4, -0x1.b82ce3128499fp-6, 0x1.565bcd0db033ep-8,
       -0x1.c02db3d8ee237p-11, 0x1.f9a321a13a2e6p-14, -0x1.f4d1df3b5acfcp-17, 0x1.b9def1b75ac55p-20,
       -0x1.5f1d3790168edp-23, 0x1.f7a41a67c6c7dp-27, -0x1.386ad8d78db83p-30, 0x1.0579e8270cae4p-34});
  const auto near_zero = m.fma(magnitude, p, magnitude);
  const auto a = m.select(m.lt(enough, magnitude), enough, magnitude);
  const auto q1 =
      polynomial(m, m.sub(a, m.f(1.5)),
                 {-0x1.b137096b18e96p+1, -0x1.c1206279e92bfp+1, -0x1.c90827462a168p-1, -0x1.a71a4bddfb003p-6,
                  0x1.89a87b4901ef2p-8, -0x1.4992624547e49p-10, 0x1.c4e86a37a9acdp-13, -0x1.790b89b17648cp-16,
                  -0x1.633e6cef38eddp-19, 0x1.3e282f947f605p-19, -0x1.b7d7f84fd43dcp-21, 0x1.a0b12a5406198p-23,
                  -0x1.beed3167687ccp-26, -0x1.d66395a965f88p-29});
  const auto q2 =
      polynomial(m, m.sub(a, m.f(4.0)),
                 {-0x1.1fcdf0a1a0cf7p+4, -0x1.07906645e14c5p+3, -0x1.f2675447824cep-1, -0x1.f12d0454a498dp-9,
                  0x1.3133e6b466edep-11, -0x1.7de05615209ebp-14, 0x1.daf634cacce72p-17, -0x1.15d90d3eeb619p-19,
                  0x1.c605e095ec5abp-22, 0x1.9518913c745aap-25, 0x1.cd82b9a703a8ap-25, 0x1.0f05267097ef9p-26,
                  0x1.ce2f5385e7d7bp-29, 0x1.5ca3a7f13674cp-32});
  const ExpParts<M> e = exp_parts(m, m.select(m.lt(a, m.f(2.0)), q1, q2), m.f(0.0));
  const auto scale = power_of_two(m, e.n);
  const auto far = m.sub(m.f(1.0), m.fma(scale, e.tail, scale));
  return copy_sign(m, m.select(m.lt(magnitude, m.f(1.0)), near_zero, far), x);
}

// ---- log ----

template <class M>
struct LogParts {
  typename M::F k, f;  // x = 2^k * (1 + f), 1 + f in [sqrt(1/2), sqrt(2)); f is exact
};

// For finite x > 0.
template <class M>
LogParts<M> log_parts(M& m, typename M::F x) {
  const auto small = m.lt(x, m.f(0x1p-1022));
  const auto bits = m.bits(m.select(small, m.mul(x, m.f(0x1p54)), x));
  const auto e = m.shr(m.isub(bits, m.i(0x3fe6a09e667f3bcd)), 52);
  const auto f = m.sub(m.from_bits(m.isub(bits, m.shl(e, 52))), m.f(1.0));
  return {m.to_float(m.iadd(e, m.select(small, m.i(-54), m.i(0)))), f};
}

// (log(1 + f) - 2 s) / (s z), s = f / (2 + f), z = s^2
template <class M>
typename M::F log_tail(M& m, typename M::F z) {
  return polynomial(m, z,
                    {0x1.5555555555555p-1, 0x1.9999999999d13p-2, 0x1.2492492439400p-2, 0x1.c71c724bc4475p-3,
                     0x1.745ce1a75b405p-3, 0x1.3b202ac449888p-3, 0x1.0f66acf4d56eep-3, 0x1.0f137d23dae34p-3});
}

template <class M>
typename M::F log_positive(M& m, typename M::F x) {
  const LogParts<M> p = log_parts(m, x);
  const auto s = m.div(p.f, m.add(m.f(2.0), p.f));
  const auto z = m.mul(s, s);
  const auto half_square = m.mul(m.mul(p.f, p.f), m.f(0.5));
  const auto r = m.mul(z, log_tail(m, z));
  // 2 s = f - f^2/2 + s f^2/2, so log(1 + f) = f - (f^2/2 - s (f^2/2 + r)).
  const auto inner = m.fma(s, m.add(half_square, r), m.mul(p.k, m.f(kLn2Low)));
  return m.fma(p.k, m.f(kLn2High), m.sub(p.f, m.sub(half_square, inner)));
}

template <class M>
typename M::F log(M& m, typename M::F x) {
  const auto infinity = m.f(kInfinity), zero = m.f(0.0);
  const auto finite = m.select(m.eq(x, infinity), infinity, log_positive(m, x));
  const auto positive = m.select(m.lt(zero, x), finite, m.f(__builtin_nan("")));
  return m.select(m.eq(x, zero), m.neg(infinity), positive);
}

// ---- pow ----

// From r = |x|^|y|'s own formula for ordinary arguments to C99 pow.
template <class M>
typename M::F pow_cases(M& m, typename M::F x, typename M::F y, typename M::F r) {
  const auto ax = m.abs(x), ay = m.abs(y);
  const auto zero = m.f(0.0), one = m.f(1.0), infinity = m.f(kInfinity), nan = m.f(__builtin_nan(""));
  const auto negative_y = m.lt(y, zero);
  // Zero or infinite |x| or |y|: 0, 1 or infinity.
  const auto large_base = m.select(negative_y, zero, infinity), small_base = m.select(negative_y, infinity, zero);
  r = m.select(m.eq(ax, infinity), large_base, r);
  r = m.select(m.eq(ax, zero), small_base, r);
  const auto limit = m.select(m.lt(ax, one), small_base, m.select(m.eq(ax, one), one, large_base));
  r = m.select(m.eq(ay, infinity), limit, r);
  // Adding 2^52 rounds to an integer.
  const auto nearest = [&](typename M::F v) { return m.sub(m.add(v, m.f(0x1p52)), m.f(0x1p52)); };
  const auto half = m.mul(ay, m.f(0.5));
  const auto huge = m.le(m.f(0x1p53), ay);
  const auto integral = m.either(m.le(m.f(0x1p52), ay), m.eq(nearest(ay), ay));
  const auto even = m.either(huge, m.eq(nearest(half), half));
  const auto signed_result = m.select(even, r, copy_sign(m, r, x));
  r = m.select(integral, signed_result, m.select(m.both(m.lt(x, zero), m.lt(ax, infinity)), nan, r));
  r = m.select(m.either(m.ne(x, x), m.ne(y, y)), nan, r);
  return m.select(m.either(m.eq(y, zero), m.eq(x, one)), one, r);
}

// Relative error about 2^-45 at most: for results that are rounded to f32.
template <class M>
typename M::F pow_short(M& m, typename M::F x, typename M::F y) {
  const auto exponent = m.mul(y, log_positive(m, m.abs(x)));
  return pow_cases(m, x, y, exp(m, exponent));
}

// log(1 + f) of log_parts as a sum of two, to about 2^-65.
template <class M>
Two<M> log1p_two(M& m, typename M::F f) {
  const Two<M> d = fast_two_sum(m, m.f(2.0), f);
  const auto s = m.div(f, d.hi);
  const Two<M> back = two_product(m, s, d.hi);
  const auto rest = m.sub(m.sub(m.sub(f, back.hi), back.lo), m.mul(s, d.lo));
  const Two<M> ratio = fast_two_sum(m, s, m.div(rest, d.hi));
  const Two<M> z = product(m, ratio, ratio);
  // log(1 + f) = 2 s + s z (2/3 + z t(z)), 2/3 as a sum of two.
  const auto t = polynomial(m, z.hi,
                            {0x1.9999999999996p-2, 0x1.2492492493049p-2, 0x1.c71c71c57dff3p-3, 0x1.745d18337acd8p-3,
                             0x1.3b13626715856p-3, 0x1.1120c18198edap-3, 0x1.de318e2a6c79bp-4, 0x1.eb20d75ea9babp-4});
  const auto u = m.mul(z.hi, t);
  const Two<M> lead = fast_two_sum(m, m.f(0x1.5555555555555p-1), u);
  const Two<M> inner = {lead.hi, m.add(lead.lo, m.f(0x1.5555555555555p-55))};
  const Two<M> third = product(m, product(m, ratio, z), inner);
  return sum(m, {m.add(ratio.hi, ratio.hi), m.add(ratio.lo, ratio.lo)}, third);
}

template <class M>
typename M::F pow(M& m, typename M::F x, typename M::F y) {
  const LogParts<M> parts = log_parts(m, m.abs(x));
  const Two<M> l = sum(m, {m.mul(parts.k, m.f(kLn2High)), m.mul(parts.k, m.f(kLn2Low))}, log1p_two(m, parts.f));
  const Two<M> p = two_product(m, y, l.hi);
  // Beyond, the low part may be no number, and is not needed.
  const auto ordinary = m.both(m.lt(m.abs(p.hi), m.f(1000.0)), m.lt(m.abs(y), m.f(0x1p900)));
  const auto low = m.select(ordinary, m.add(p.lo, m.mul(y, l.lo)), m.f(0.0));
  return pow_cases(m, x, y, exp_within(m, clamp_exponent(m, p.hi), low));
}

}  // namespace quartet::kernel::math::f64
