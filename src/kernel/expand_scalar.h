// The expansions of single operations, emitted through a builder. Internal to expand.
#pragma once

#include "device/device.h"
#include "kernel/builder.h"

namespace quartet::kernel {

// Emits kernel IR for the templates of math_f32.h and math_f64.h.
struct EmitMachine {
  using F = ValueId;
  using I = ValueId;
  using B = ValueId;
  Builder& b;
  DType real, integer;  // f32 and i32, or f64 and i64
  bool fused;           // fma rounds once

  F f(double value) { return b.real(real, value); }
  I i(int64_t value) { return b.constant(integer, value); }
  F add(F x, F y) { return b.add(x, y); }
  F sub(F x, F y) { return b.sub(x, y); }
  F mul(F x, F y) { return b.mul(x, y); }
  F div(F x, F y) { return b.binary(ScalarOp::div, x, y); }
  F fma(F x, F y, F z) { return b.fma(x, y, z); }
  F neg(F x) { return b.unary(ScalarOp::neg, x); }
  F abs(F x) { return b.unary(ScalarOp::abs, x); }
  B lt(F x, F y) { return b.less(x, y); }
  B le(F x, F y) { return b.binary(ScalarOp::le, x, y); }
  B eq(F x, F y) { return b.binary(ScalarOp::eq, x, y); }
  B ne(F x, F y) { return b.binary(ScalarOp::ne, x, y); }
  ValueId select(B c, ValueId x, ValueId y) { return b.select(c, x, y); }
  B either(B x, B y) { return b.binary(ScalarOp::bit_or, x, y); }
  B both(B x, B y) { return b.binary(ScalarOp::bit_and, x, y); }
  I bits(F x) { return b.bitcast(integer, x); }
  F from_bits(I x) { return b.bitcast(real, x); }
  I iadd(I x, I y) { return b.add(x, y); }
  I isub(I x, I y) { return b.sub(x, y); }
  I iand(I x, I y) { return b.binary(ScalarOp::bit_and, x, y); }
  I ior(I x, I y) { return b.binary(ScalarOp::bit_or, x, y); }
  I shl(I x, int by) { return b.binary(ScalarOp::shift_left, x, i(by)); }
  I shr(I x, int by) { return b.binary(ScalarOp::shift_right, x, i(by)); }
  B ilt(I x, I y) { return b.less(x, y); }
  F to_float(I x) { return b.cast(real, x); }
  bool is_fused() const { return fused; }
  I imul(I x, I y) { return b.mul(x, y); }
  I ushl(I x, I y) { return b.binary(ScalarOp::shift_left, x, y); }
  I ushr(I x, I y) { return unsigned_op(ScalarOp::shift_right, x, y); }
  B ult(I x, I y) {
    const DType type = unsigned_type();
    return b.less(b.bitcast(type, x), b.bitcast(type, y));
  }
  B ieq(I x, I y) { return b.binary(ScalarOp::eq, x, y); }
  I xor_bits(I x, I y) { return b.binary(ScalarOp::bit_xor, x, y); }

 private:
  DType unsigned_type() const { return integer == DType::i32 ? DType::u32 : DType::u64; }
  I unsigned_op(ScalarOp op, I x, I y) {
    const DType type = unsigned_type();
    return b.bitcast(integer, b.binary(op, b.bitcast(type, x), b.bitcast(type, y)));
  }
};

// The value of a scalar operation in terms of operations that need no further expansion for the class.
ValueId expand_scalar(Builder& b, Isa isa, ScalarOp op, DType dtype, std::span<const ValueId> operands);

// The parts: conversions between types; the roundings to integral values and rem of floats, f32 and f64.
ValueId expand_cast(Builder& b, Isa isa, DType to, ValueId value);
ValueId expand_rounding(Builder& b, ScalarOp op, ValueId value);
ValueId expand_float_rem(Builder& b, ValueId x, ValueId y);

}  // namespace quartet::kernel
