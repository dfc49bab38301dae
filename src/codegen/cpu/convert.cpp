// Casts between element types, and the 16-bit float types in particular.
#include <llvm/IR/Intrinsics.h>

#include "codegen/cpu/arithmetic.h"

namespace quartet::codegen {
namespace {

namespace in = llvm::Intrinsic;

llvm::Type* i32_like(Ir& ir, llvm::Value* v) { return ir.like(v, ir.b.getInt32Ty()); }
llvm::Type* f32_like(Ir& ir, llvm::Value* v) { return ir.like(v, ir.b.getFloatTy()); }
llvm::Type* f64_like(Ir& ir, llvm::Value* v) { return ir.like(v, ir.b.getDoubleTy()); }

// f16 bits to f32 without F16C: the exponent is moved by a multiplication, which also serves subnormals.
llvm::Value* f16_to_f32_bits(Ir& ir, llvm::Value* half) {
  auto& b = ir.b;
  llvm::Value* const bits = b.CreateZExt(half, i32_like(ir, half));
  llvm::Value* const magnitude = b.CreateAnd(bits, ir.number_like(bits, 0x7fff));
  llvm::Value* const shifted = b.CreateBitCast(b.CreateShl(magnitude, ir.number_like(bits, 13)), f32_like(ir, half));
  llvm::Value* scaled = b.CreateBitCast(b.CreateFMul(shifted, ir.real(shifted->getType(), 0x1p112)), bits->getType());
  llvm::Value* const special = b.CreateICmpUGE(magnitude, ir.number_like(bits, 0x7c00));
  scaled = b.CreateOr(scaled, b.CreateSelect(special, ir.number_like(bits, 0x7f800000), ir.number_like(bits, 0)));
  llvm::Value* const sign = b.CreateShl(b.CreateAnd(bits, ir.number_like(bits, 0x8000)), ir.number_like(bits, 16));
  return b.CreateBitCast(b.CreateOr(scaled, sign), shifted->getType());
}

// f32 to f16 bits without F16C, rounding to even.
llvm::Value* f32_to_f16_bits(Ir& ir, llvm::Value* value) {
  auto& b = ir.b;
  llvm::Value* const bits = b.CreateBitCast(value, i32_like(ir, value));
  const auto number = [&](int64_t n) { return ir.number_like(bits, n); };
  llvm::Value* const magnitude = b.CreateAnd(bits, number(0x7fffffff));
  // Normal numbers: rebias, add half an ulp less one, plus the last kept bit.
  llvm::Value* const odd = b.CreateAnd(b.CreateLShr(magnitude, number(13)), number(1));
  llvm::Value* const normal =
      b.CreateLShr(b.CreateAdd(b.CreateAdd(magnitude, number(0xfff - 0x38000000LL)), odd), number(13));
  // Subnormal results: adding 0.5 leaves them, rounded, in the low bits.
  llvm::Value* const sum = b.CreateFAdd(b.CreateBitCast(magnitude, value->getType()), ir.real(value->getType(), 0.5));
  llvm::Value* const tiny = b.CreateSub(b.CreateBitCast(sum, bits->getType()), number(0x3f000000));
  llvm::Value* result = b.CreateSelect(b.CreateICmpULT(magnitude, number(0x38800000)), tiny, normal);
  result = b.CreateSelect(b.CreateICmpUGE(magnitude, number(0x47800000)), number(0x7c00), result);
  result = b.CreateSelect(b.CreateICmpUGT(magnitude, number(0x7f800000)), number(0x7e00), result);
  result = b.CreateOr(result, b.CreateAnd(b.CreateLShr(bits, number(16)), number(0x8000)));
  return b.CreateTrunc(result, ir.like(value, b.getInt16Ty()));
}

llvm::Value* f32_to_bf16_bits(Ir& ir, llvm::Value* value) {
  auto& b = ir.b;
  llvm::Value* const bits = b.CreateBitCast(value, i32_like(ir, value));
  const auto number = [&](int64_t n) { return ir.number_like(bits, n); };
  llvm::Value* const odd = b.CreateAnd(b.CreateLShr(bits, number(16)), number(1));
  llvm::Value* const rounded = b.CreateAdd(b.CreateAdd(bits, number(0x7fff)), odd);
  llvm::Value* const quiet = b.CreateOr(bits, number(0x400000));
  llvm::Value* const result = b.CreateSelect(b.CreateFCmpUNO(value, value), quiet, rounded);
  return b.CreateTrunc(b.CreateLShr(result, number(16)), ir.like(value, b.getInt16Ty()));
}

// f64 to f32, to the neighbour whose last bit is set where inexact: a later rounding to fewer bits is then the only
// one.
llvm::Value* f64_to_f32_odd(Ir& ir, llvm::Value* value) {
  auto& b = ir.b;
  llvm::Value* const nearest = b.CreateFPTrunc(value, f32_like(ir, value));
  llvm::Value* const back = b.CreateFPExt(nearest, value->getType());
  llvm::Value* const bits = b.CreateBitCast(nearest, i32_like(ir, value));
  llvm::Value* const above = b.CreateFCmpOGT(ir.intrinsic(in::fabs, back), ir.intrinsic(in::fabs, value));
  llvm::Value* const lower = b.CreateSub(bits, b.CreateSelect(above, ir.number_like(bits, 1), ir.number_like(bits, 0)));
  llvm::Value* const odd = b.CreateOr(lower, ir.number_like(bits, 1));
  return b.CreateBitCast(b.CreateSelect(b.CreateFCmpONE(back, value), odd, bits), nearest->getType());
}

// 64-bit integers to f64, exactly enough for a later rounding to bf16: beyond 2^53 the lost bits are summed up in one.
llvm::Value* int64_to_f64_sticky(Ir& ir, bool sign, llvm::Value* value) {
  auto& b = ir.b;
  const auto number = [&](int64_t n) { return ir.number_like(value, n); };
  llvm::Value* const magnitude = sign ? b.CreateIntrinsic(in::abs, {value->getType()}, {value, b.getFalse()}) : value;
  llvm::Value* const lost = b.CreateICmpNE(b.CreateAnd(value, number(0xfff)), number(0));
  llvm::Value* const kept = b.CreateAnd(value, number(~int64_t{0xfff}));
  llvm::Value* const summed = b.CreateOr(kept, b.CreateSelect(lost, number(0x800), number(0)));
  llvm::Value* const source = b.CreateSelect(b.CreateICmpUGE(magnitude, number(int64_t{1} << 53)), summed, value);
  return sign ? b.CreateSIToFP(source, f64_like(ir, value)) : b.CreateUIToFP(source, f64_like(ir, value));
}

llvm::Value* int_to_float(Ir& ir, DType from, DType to, llvm::Value* value) {
  const bool sign = is_signed_int(from);
  // f16 reaches 65504: what f32 cannot hold exactly overflows either way. bf16 needs one rounding from an exact source.
  if (to == DType::bf16 && size_of(from) == 8)
    return emit_cast(ir, DType::f64, to, int64_to_f64_sticky(ir, sign, value));
  if (to == DType::bf16 && size_of(from) == 4)
    return emit_cast(ir, DType::f64, to, int_to_float(ir, from, DType::f64, value));
  llvm::Type* const type = to == DType::f64 ? f64_like(ir, value) : f32_like(ir, value);
  llvm::Value* const result = sign ? ir.b.CreateSIToFP(value, type) : ir.b.CreateUIToFP(value, type);
  return is_half(to) ? narrow(ir, to, result) : result;
}

llvm::Value* float_to_float(Ir& ir, DType from, DType to, llvm::Value* value) {
  if (from == DType::f64) {
    if (is_half(to)) return narrow(ir, to, f64_to_f32_odd(ir, value));
    return ir.b.CreateFPTrunc(value, f32_like(ir, value));
  }
  llvm::Value* const single = widen(ir, from, value);
  if (to == DType::f64) return ir.b.CreateFPExt(single, f64_like(ir, value));
  return narrow(ir, to, single);
}

llvm::Value* float_to_int(Ir& ir, DType from, DType to, llvm::Value* value) {
  llvm::Value* const wide = widen(ir, from, value);
  const in::ID id = is_signed_int(to) ? in::fptosi_sat : in::fptoui_sat;
  return ir.b.CreateIntrinsic(id, {ir.type(to, Ir::lanes_of(value)), wide->getType()}, {wide});
}

llvm::Value* from_bool(Ir& ir, DType to, llvm::Value* value) {
  llvm::Type* const type = ir.type(to, Ir::lanes_of(value));
  if (!is_float(to)) return ir.b.CreateZExt(value, type);
  const int lanes = Ir::lanes_of(value);
  return ir.b.CreateSelect(value, ir.constant(to, kernel::float_bits(to, 1.0), lanes), ir.constant(to, 0, lanes));
}

}  // namespace

llvm::Value* widen(Ir& ir, DType type, llvm::Value* value) {
  auto& b = ir.b;
  if (type == DType::bf16)
    return b.CreateBitCast(b.CreateShl(b.CreateZExt(value, i32_like(ir, value)), ir.number(i32_like(ir, value), 16)),
                           f32_like(ir, value));
  if (type != DType::f16) return value;
  if (!ir.target.has_avx2()) return f16_to_f32_bits(ir, value);
  return b.CreateFPExt(b.CreateBitCast(value, ir.like(value, b.getHalfTy())), f32_like(ir, value));
}

llvm::Value* narrow(Ir& ir, DType type, llvm::Value* value) {
  auto& b = ir.b;
  if (type == DType::bf16) return f32_to_bf16_bits(ir, value);
  if (type != DType::f16) return value;
  if (!ir.target.has_avx2()) return f32_to_f16_bits(ir, value);
  return b.CreateBitCast(b.CreateFPTrunc(value, ir.like(value, b.getHalfTy())), ir.like(value, b.getInt16Ty()));
}

llvm::Value* emit_cast(Ir& ir, DType from, DType to, llvm::Value* value) {
  auto& b = ir.b;
  if (from == to) return value;
  if (from == DType::boolean) return from_bool(ir, to, value);
  if (to == DType::boolean) {
    if (!is_float(from)) return b.CreateICmpNE(value, ir.number_like(value, 0));
    llvm::Value* const wide = widen(ir, from, value);
    return b.CreateFCmpUNE(wide, ir.real(wide->getType(), 0));
  }
  if (is_float(from)) return is_float(to) ? float_to_float(ir, from, to, value) : float_to_int(ir, from, to, value);
  if (is_float(to)) return int_to_float(ir, from, to, value);
  llvm::Type* const type = ir.type(to, Ir::lanes_of(value));
  return is_signed_int(from) ? b.CreateSExtOrTrunc(value, type) : b.CreateZExtOrTrunc(value, type);
}

}  // namespace quartet::codegen
