// The f32 transcendentals as straight-line scalar arithmetic, written once for every machine that can carry it out: the
// expansion (expand.cpp) instantiates them with one that emits kernel IR, the tests with native vectors.
//
// A machine M has types F (f32), I (i32) and B (bool) and
//   F f(double); I i(int64_t);                          constants
//   F add, sub, mul, div (F, F); F fma(F, F, F); F neg, abs (F);
//   B lt, le, eq, ne (F, F); F select(B, F, F); I select(B, I, I); B either(B, B);
//   I bits(F); F from_bits(I);                          bit casts
//   I iadd, isub, iand, ior (I, I); I shl, shr (I, int);  shr is arithmetic
//   F to_float(I);
// fma may round its product first (class sse2); the bounds hold either way. Polynomials are minimax fits of ours; the
// bounds, over all 2^32 arguments, are tested.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace quartet::kernel::math {

// c0 + c1 x + c2 x^2 ...
template <class M, class F>
F polynomial(M& m, F x, std::initializer_list<double> coefficients) {
  const double* c = coefficients.end() - 1;
  F sum = m.f(*c);
  while (c != coefficients.begin()) sum = m.fma(sum, x, m.f(*--c));
  return sum;
}

template <class M>
typename M::F copy_sign(M& m, typename M::F magnitude, typename M::F sign) {
  return m.from_bits(m.ior(m.bits(magnitude), m.iand(m.bits(sign), m.i(INT32_MIN))));
}

// 2^n, n in [-126, 127]
template <class M>
typename M::F power_of_two(M& m, typename M::I n) {
  return m.from_bits(m.shl(m.iadd(n, m.i(127)), 23));
}

// x = n ln2 + r with |r| <= ln2/2 (a little more), and expm1(r). For |x| < 2^15; NaN stays NaN.
template <class M>
struct ExpParts {
  typename M::I n;
  typename M::F n_float, tail;  // tail: e^r - 1
};

template <class M>
ExpParts<M> exp_parts(M& m, typename M::F x) {
  using F = typename M::F;
  // Adding 1.5 * 2^23 leaves the nearest integer in the low bits.
  const double magic = 0x1.8p23;
  const F shifted = m.fma(x, m.f(0x1.715476p+0), m.f(magic));
  const F n = m.sub(shifted, m.f(magic));
  // ln2 in a part of 10 bits, so that n times it is exact, and the rest.
  F r = m.fma(n, m.f(-0x1.63p-1), x);
  r = m.fma(n, m.f(0x1.bd0106p-13), r);
  const F q = polynomial(m, r, {0x1.fffffcp-2, 0x1.55548ap-3, 0x1.555850p-5, 0x1.123ebep-7, 0x1.6ac2b0p-10});
  return {m.isub(m.bits(shifted), m.i(0x4b400000)), n, m.fma(m.mul(r, r), q, r)};
}

// e^x for x <= 89; 0 below -104.
template <class M>
typename M::F exp_below(M& m, typename M::F x) {
  using F = typename M::F;
  using I = typename M::I;
  const F lowest = m.f(-104.0);
  const F clamped = m.select(m.lt(x, lowest), lowest, x);
  const ExpParts<M> e = exp_parts(m, clamped);
  const F near_one = m.add(m.f(1.0), e.tail);
  // In two steps, so that denormal and overflowing results round once, at the end.
  const I half = m.shr(e.n, 1);
  return m.mul(m.mul(near_one, power_of_two(m, half)), power_of_two(m, m.isub(e.n, half)));
}

template <class M>
typename M::F exp(M& m, typename M::F x) {
  const typename M::F highest = m.f(89.0);
  return exp_below(m, m.select(m.lt(highest, x), highest, x));
}

template <class M>
typename M::F log(M& m, typename M::F x) {
  using F = typename M::F;
  using I = typename M::I;
  const auto small = m.lt(x, m.f(0x1p-126));
  const I bits = m.bits(m.select(small, m.mul(x, m.f(0x1p23)), x));
  // x = 2^e * (1 + f), 1 + f in [sqrt(1/2), sqrt(2))
  const I e = m.shr(m.isub(bits, m.i(0x3f3504f3)), 23);
  const F f = m.sub(m.from_bits(m.isub(bits, m.shl(e, 23))), m.f(1.0));
  const F k = m.to_float(m.iadd(e, m.select(small, m.i(-23), m.i(0))));
  const F p = polynomial(m, f,
                         {0x1.555548p-2, -0x1.000072p-2, 0x1.99a544p-3, -0x1.552e44p-3, 0x1.230254p-3, -0x1.011134p-3,
                          0x1.f01baep-4, -0x1.be9d56p-4, 0x1.b390eap-5});
  const F square = m.mul(f, f);
  // log(1 + f) = f - f^2/2 + f^3 p(f); the small parts first.
  F low = m.fma(m.mul(square, f), p, m.mul(k, m.f(-0x1.bd0106p-13)));
  low = m.fma(square, m.f(-0.5), low);
  const F result = m.fma(k, m.f(0x1.63p-1), m.add(f, low));
  const F infinity = m.f(__builtin_inf());
  const F positive = m.select(m.eq(x, infinity), infinity, result);
  const F not_zero = m.select(m.lt(m.f(0.0), x), positive, m.f(__builtin_nan("")));
  return m.select(m.eq(x, m.f(0.0)), m.neg(infinity), not_zero);
}

// (e^2a - 1) / (e^2a + 1) of the magnitude, the sign put back.
template <class M>
typename M::F tanh(M& m, typename M::F x) {
  using F = typename M::F;
  const F magnitude = m.abs(x), enough = m.f(10.0);
  const F a = m.select(m.lt(enough, magnitude), enough, magnitude);
  const ExpParts<M> e = exp_parts(m, m.add(a, a));
  const F scale = power_of_two(m, e.n);
  const F expm1 = m.fma(scale, e.tail, m.sub(scale, m.f(1.0)));
  return copy_sign(m, m.div(expm1, m.add(expm1, m.f(2.0))), x);
}

template <class M>
typename M::F sigmoid(M& m, typename M::F x) {
  using F = typename M::F;
  const F e = exp_below(m, m.neg(m.abs(x)));
  const F numerator = m.select(m.lt(x, m.f(0.0)), e, m.f(1.0));
  return m.div(numerator, m.add(m.f(1.0), e));
}

// |x| < 1: x + x p(x^2); beyond: 1 - exp(q(|x|)), where q is log(erfc).
template <class M>
typename M::F erf(M& m, typename M::F x) {
  using F = typename M::F;
  const F magnitude = m.abs(x), enough = m.f(4.0);
  const F square = m.mul(x, x);
  const F p = polynomial(
      m, square,
      {0x1.06eba8p-3, -0x1.81273ep-2, 0x1.ce2ce6p-4, -0x1.b7f71ap-6, 0x1.53f224p-8, -0x1.a3515ep-11, 0x1.4771fcp-14});
  const F near_zero = m.fma(magnitude, p, magnitude);
  const F a = m.select(m.lt(enough, magnitude), enough, magnitude);
  const F q = polynomial(
      m, a,
      {-0x1.661caep-12, -0x1.2088eap+0, -0x1.46baf0p-1, -0x1.a65320p-4, 0x1.65cb3ap-6, -0x1.825a9cp-9, 0x1.86dd36p-13});
  const ExpParts<M> e = exp_parts(m, q);
  const F scale = power_of_two(m, e.n);
  const F far = m.sub(m.f(1.0), m.fma(scale, e.tail, scale));
  return copy_sign(m, m.select(m.lt(magnitude, m.f(1.0)), near_zero, far), x);
}

}  // namespace quartet::kernel::math
