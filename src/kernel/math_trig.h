// sin and cos in f64, for all arguments: x is reduced by multiples of pi/2 to [-pi/4, pi/4] as a sum of two, then one
// of two polynomials is taken by the quadrant.
//
// Machines as for math_f64.h, with unsigned 64-bit arithmetic on I where noted:
//   I imul(I, I);                       low 64 bits of the product
//   I ushr(I, I), ushl(I, I);           logical shifts, 0 from 64 on
//   B ult(I, I); B ieq(I, I);           unsigned and plain comparison
//   I xor_bits(I, I);
#pragma once

#include "kernel/math_f64.h"

namespace quartet::kernel::math::f64 {

template <class M>
struct Reduced {
  typename M::I quadrant;  // low 2 bits count
  Two<M> r;
};

// |x| <= 2^20 or so: multiples of pi/2 in three parts, the first two of 33 bits and so exact.
template <class M>
Reduced<M> reduce_small(M& m, typename M::F x) {
  const double magic = 0x1.8p52;
  const auto shifted = m.fma(x, m.f(0x1.45f306dc9c883p-1), m.f(magic));
  const auto n = m.sub(shifted, m.f(magic));
  const auto first = m.sub(x, m.mul(n, m.f(0x1.921fb544p+0)));
  const Two<M> second = two_sum(m, first, m.mul(n, m.f(-0x1.0b4611a6p-34)));
  const auto low = m.fma(n, m.f(-0x1.3198a2e037073p-69), second.lo);
  return {m.isub(m.bits(shifted), m.i(0x4338000000000000)), fast_two_sum(m, second.hi, low)};
}

// The 64 bits of 2/pi that begin at bit `from` of a table with 64 leading zeros; words by a tree of selects.
inline constexpr uint64_t kTwoOverPi[] = {0,
                                          0xa2f9836e4e441529,
                                          0xfc2757d1f534ddc0,
                                          0xdb6295993c439041,
                                          0xfe5163abdebbc561,
                                          0xb7246e3a424dd2e0,
                                          0x06492eea09d1921c,
                                          0xfe1deb1cb129a73e,
                                          0xe88235f52ebb4484,
                                          0xe99c7026b45f7e41,
                                          0x3991d639835339f4,
                                          0x9c845f8bbdf9283b,
                                          0x1ff897ffde05980f,
                                          0xef2f118b5a0a6d1f,
                                          0x6d367ecf27cb09b7,
                                          0x4f463f669e5fea2d,
                                          0x7527bac7ebe5f17b,
                                          0x3d0739f78a5292ea,
                                          0x6bfb5fb11f8d5d08,
                                          0x56033046fc7b6bab,
                                          0xf0cfbc209af4361d};

template <class M>
typename M::I table_word(M& m, typename M::I index, int offset, int lo, int count) {
  if (count == 1) return m.i(static_cast<int64_t>(kTwoOverPi[lo + offset]));
  const int half = count / 2;
  const auto below = m.ilt(index, m.i(lo + half));
  return m.select(below, table_word(m, index, offset, lo, half), table_word(m, index, offset, lo + half, count - half));
}

template <class M>
struct Product128 {
  typename M::I hi, lo;
};

// a * b as unsigned 128 bits.
template <class M>
Product128<M> wide_product(M& m, typename M::I a, typename M::I b) {
  const auto mask = m.i(0xffffffff), by = m.i(32);
  const auto a0 = m.iand(a, mask), a1 = m.ushr(a, by), b0 = m.iand(b, mask), b1 = m.ushr(b, by);
  const auto p00 = m.imul(a0, b0), p01 = m.imul(a0, b1), p10 = m.imul(a1, b0), p11 = m.imul(a1, b1);
  const auto middle = m.iadd(m.iadd(m.ushr(p00, by), m.iand(p01, mask)), m.iand(p10, mask));
  const auto hi = m.iadd(m.iadd(p11, m.ushr(middle, by)), m.iadd(m.ushr(p01, by), m.ushr(p10, by)));
  return {hi, m.ior(m.ushl(middle, by), m.iand(p00, mask))};
}

// Any finite x >= 2^20, up to 2^kMaxExponent: the mantissa times the 192 bits of 2/pi that matter, in integers.
template <int kMaxExponent, class M>
Reduced<M> reduce_large(M& m, typename M::F x) {
  const auto bits = m.bits(m.abs(x));
  const auto mantissa = m.ior(m.iand(bits, m.i((int64_t{1} << 52) - 1)), m.i(int64_t{1} << 52));
  // x = mantissa * 2^e; the bit of weight 4 of the product is dropped: it starts at table bit e + 62.
  const auto start = m.iadd(m.shr(bits, 52), m.i(62 - 1075));
  const auto word = m.shr(start, 6), shift = m.iand(start, m.i(63));
  constexpr int kWords = (kMaxExponent - 52 + 62) / 64 + 1;
  typename M::I w[4];
  for (int i = 0; i < 4; ++i) w[i] = table_word(m, word, i, 0, kWords);
  typename M::I window[3];
  for (int i = 0; i < 3; ++i) window[i] = m.ior(m.ushl(w[i], shift), m.ushr(w[i + 1], m.isub(m.i(64), shift)));
  // mantissa * window mod 2^192, as h0 h1 h2
  const Product128<M> low = wide_product(m, mantissa, window[2]), mid = wide_product(m, mantissa, window[1]);
  const auto h2 = low.lo;
  const auto h1 = m.iadd(mid.lo, low.hi);
  const auto carry = m.select(m.ult(h1, low.hi), m.i(1), m.i(0));
  const auto h0 = m.iadd(m.iadd(m.imul(mantissa, window[0]), mid.hi), carry);
  // Two bits of quadrant, rounded; the rest is a signed fraction of a quadrant, in units of 2^-64 and 2^-128.
  const auto quadrant = m.ushr(m.iadd(h0, m.i(int64_t{1} << 61)), m.i(62));
  const auto fraction = m.ior(m.ushl(h0, m.i(2)), m.ushr(h1, m.i(62)));
  const auto below = m.ior(m.ushl(h1, m.i(2)), m.ushr(h2, m.i(62)));
  const auto piece = [&](typename M::I value, double unit) { return m.mul(m.to_float(value), m.f(unit)); };
  const auto mask = m.i(0xffffffff);
  const Two<M> top = fast_two_sum(m, piece(m.shr(fraction, 32), 0x1p-32), piece(m.iand(fraction, mask), 0x1p-64));
  const Two<M> rest = fast_two_sum(m, piece(m.ushr(below, m.i(32)), 0x1p-96), piece(m.iand(below, mask), 0x1p-128));
  const Two<M> half_pi = {m.f(0x1.921fb54442d18p+0), m.f(0x1.1a62633145c07p-54)};
  const Two<M> r = product(m, sum(m, top, rest), half_pi);
  const auto negative = m.lt(x, m.f(0.0));
  return {m.select(negative, m.isub(m.i(0), quadrant), quadrant),
          {m.select(negative, m.neg(r.hi), r.hi), m.select(negative, m.neg(r.lo), r.lo)}};
}

template <class M>
typename M::F sin_reduced(M& m, Two<M> r) {
  const auto z = m.mul(r.hi, r.hi);
  const auto p = polynomial(m, z,
                            {-0x1.5555555555555p-3, 0x1.1111111111067p-7, -0x1.a01a019ffdba3p-13, 0x1.71de3a32a969ap-19,
                             -0x1.ae642ad639f6cp-26, 0x1.6108b3f0ab26ep-33, -0x1.9f7111c351594p-41});
  // sin(hi + lo) = sin hi + lo cos hi, cos hi about 1 - z/2
  const auto cube = m.mul(z, r.hi);
  const auto low = m.fma(m.mul(z, m.f(-0.5)), r.lo, r.lo);
  return m.add(r.hi, m.fma(cube, p, low));
}

template <class M>
typename M::F cos_reduced(M& m, Two<M> r) {
  const auto z = m.mul(r.hi, r.hi);
  const auto p = polynomial(m, z,
                            {0x1.555555555554bp-5, -0x1.6c16c16c15008p-10, 0x1.a01a019c8d0c3p-16,
                             -0x1.27e4f7efa0efbp-22, 0x1.1ee9da4671184p-29, -0x1.8fa5a2eebb8a8p-37});
  const auto half = m.mul(z, m.f(0.5));
  const auto near_one = m.sub(m.f(1.0), half);
  // What 1 - z/2 lost, less the low part's share.
  const auto lost = m.sub(m.sub(m.f(1.0), near_one), half);
  return m.add(near_one, m.add(lost, m.fma(m.mul(z, z), p, m.neg(m.mul(r.hi, r.lo)))));
}

// sin(x + shift * pi/2); kMaxExponent: 2^kMaxExponent passes every finite argument.
template <int kMaxExponent, class M>
typename M::F sine(M& m, typename M::F x, int shift) {
  const auto magnitude = m.abs(x);
  const Reduced<M> small = reduce_small(m, x), large = reduce_large<kMaxExponent>(m, x);
  const auto is_small = m.lt(magnitude, m.f(0x1p20));
  const Two<M> r = {m.select(is_small, small.r.hi, large.r.hi), m.select(is_small, small.r.lo, large.r.lo)};
  const auto quadrant = m.iadd(m.select(is_small, small.quadrant, large.quadrant), m.i(shift));
  const auto odd = m.ieq(m.iand(quadrant, m.i(1)), m.i(1));
  const auto value = m.select(odd, cos_reduced(m, r), sin_reduced(m, r));
  // Quadrants 2 and 3 are negative.
  const auto sign = m.shl(m.iand(quadrant, m.i(2)), 62);
  const auto result = m.from_bits(m.xor_bits(m.bits(value), sign));
  return m.select(m.lt(magnitude, m.f(kInfinity)), result, m.f(__builtin_nan("")));
}

template <class M>
typename M::F sin(M& m, typename M::F x) {
  // sin(x) is x to the last bit where x^2 vanishes beside 1; so denormals and -0 stay.
  return m.select(m.lt(m.abs(x), m.f(0x1p-27)), x, sine<1024>(m, x, 0));
}
template <class M>
typename M::F cos(M& m, typename M::F x) {
  return sine<1024>(m, x, 1);
}
// Of a value that is an f32.
template <class M>
typename M::F sin_short(M& m, typename M::F x) {
  return m.select(m.lt(m.abs(x), m.f(0x1p-27)), x, sine<128>(m, x, 0));
}
template <class M>
typename M::F cos_short(M& m, typename M::F x) {
  return sine<128>(m, x, 1);
}

}  // namespace quartet::kernel::math::f64
