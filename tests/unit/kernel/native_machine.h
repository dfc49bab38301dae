// A machine for kernel/math_*.h on native vectors: the same arithmetic as the expanded kernels, fast enough for sweeps
// over all arguments. `Fused` says whether fma rounds once; the translation unit's flags must have FMA for that to be
// fast.
#pragma once

#include <cstdint>
#include <type_traits>

namespace quartet::kernel {

template <class Real, int Lanes, bool Fused>
struct NativeMachine {
  using Int = std::conditional_t<sizeof(Real) == 4, int32_t, int64_t>;
  using Unsigned = std::make_unsigned_t<Int>;
  typedef Real F __attribute__((ext_vector_type(Lanes)));
  typedef Int I __attribute__((ext_vector_type(Lanes)));
  typedef Unsigned U __attribute__((ext_vector_type(Lanes)));
  using B = I;  // -1 or 0
  static constexpr bool kFused = Fused;

  F f(double value) { return F(static_cast<Real>(value)); }
  I i(int64_t value) { return I(static_cast<Int>(value)); }
  F add(F a, F b) { return a + b; }
  F sub(F a, F b) { return a - b; }
  F mul(F a, F b) { return a * b; }
  F div(F a, F b) { return a / b; }
  F fma(F a, F b, F c) {
    if constexpr (Fused) {
      return __builtin_elementwise_fma(a, b, c);
    } else {
      const F product = a * b;
      return product + c;
    }
  }
  F neg(F a) { return -a; }
  F abs(F a) { return from_bits(bits(a) & I(static_cast<Int>(~Unsigned{0} >> 1))); }
  B lt(F a, F b) { return a < b; }
  B le(F a, F b) { return a <= b; }
  B eq(F a, F b) { return a == b; }
  B ne(F a, F b) { return a != b; }
  F select(B c, F a, F b) { return from_bits((bits(a) & c) | (bits(b) & ~c)); }
  I select(B c, I a, I b) { return (a & c) | (b & ~c); }
  B either(B a, B b) { return a | b; }
  B both(B a, B b) { return a & b; }
  I bits(F a) { return __builtin_bit_cast(I, a); }
  F from_bits(I a) { return __builtin_bit_cast(F, a); }
  I iadd(I a, I b) {
    return unsigned_op(a, b, [](U x, U y) { return x + y; });
  }
  I isub(I a, I b) {
    return unsigned_op(a, b, [](U x, U y) { return x - y; });
  }
  I iand(I a, I b) { return a & b; }
  I ior(I a, I b) { return a | b; }
  I shl(I a, int by) { return __builtin_bit_cast(I, __builtin_bit_cast(U, a) << U(static_cast<Unsigned>(by))); }
  I shr(I a, int by) { return a >> I(static_cast<Int>(by)); }
  B ilt(I a, I b) { return a < b; }
  F to_float(I a) { return __builtin_convertvector(a, F); }
  bool is_fused() const { return Fused; }
  I imul(I a, I b) {
    return unsigned_op(a, b, [](U x, U y) { return x * y; });
  }
  I ushl(I a, I b) {
    return shifted(a, b, [](U x, U y) { return x << y; });
  }
  I ushr(I a, I b) {
    return shifted(a, b, [](U x, U y) { return x >> y; });
  }
  B ult(I a, I b) { return __builtin_bit_cast(U, a) < __builtin_bit_cast(U, b); }
  B ieq(I a, I b) { return a == b; }
  I xor_bits(I a, I b) { return a ^ b; }

 private:
  // Shifts by the width or more give 0.
  template <class Op>
  static I shifted(I a, I b, Op op) {
    const I width = I(static_cast<Int>(sizeof(Real) * 8));
    const I within = __builtin_bit_cast(U, b) < __builtin_bit_cast(U, width);
    return unsigned_op(a, b & within, op) & within;
  }
  template <class Op>
  static I unsigned_op(I a, I b, Op op) {
    return __builtin_bit_cast(I, op(__builtin_bit_cast(U, a), __builtin_bit_cast(U, b)));
  }
};

}  // namespace quartet::kernel
