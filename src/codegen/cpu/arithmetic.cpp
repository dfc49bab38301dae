#include "codegen/cpu/arithmetic.h"

#include <limits>

#include <llvm/IR/Intrinsics.h>

namespace quartet::codegen {
namespace {

using llvm::Intrinsic::ID;
namespace in = llvm::Intrinsic;
using Operands = std::span<llvm::Value* const>;

// --- floats
// --------------------------------------------------------------------------------------------------------------

// 2^(mantissa bits): from here on every value is integral.
llvm::Constant* integral_from(Ir& ir, llvm::Value* x) {
  return ir.real(x->getType(), x->getType()->getScalarType()->isFloatTy() ? 0x1p23 : 0x1p52);
}

// Rounding without SSE4.1: the addition of 2^23 (2^52) leaves an integral magnitude, which is then corrected.
llvm::Value* round_by_addition(Ir& ir, ScalarOp op, llvm::Value* x) {
  auto& b = ir.b;
  llvm::Constant* const big = integral_from(ir, x);
  llvm::Constant* const one = ir.real(x->getType(), 1);
  llvm::Constant* const zero = ir.real(x->getType(), 0);
  llvm::Value* const magnitude = ir.intrinsic(in::fabs, x);
  llvm::Value* rounded = b.CreateFSub(b.CreateFAdd(magnitude, big), big);
  if (op == ScalarOp::trunc) {
    rounded = b.CreateFSub(rounded, b.CreateSelect(b.CreateFCmpOGT(rounded, magnitude), one, zero));
  } else if (op != ScalarOp::round_even) {
    rounded = ir.intrinsic(in::copysign, rounded, x);
    if (op == ScalarOp::floor) rounded = b.CreateFSub(rounded, b.CreateSelect(b.CreateFCmpOGT(rounded, x), one, zero));
    if (op == ScalarOp::ceil) rounded = b.CreateFAdd(rounded, b.CreateSelect(b.CreateFCmpOLT(rounded, x), one, zero));
  }
  rounded = ir.intrinsic(in::copysign, rounded, x);
  return b.CreateSelect(b.CreateFCmpOLT(magnitude, big), rounded, x);
}

llvm::Value* round_float(Ir& ir, ScalarOp op, llvm::Value* x) {
  if (!ir.target.has_avx2()) return round_by_addition(ir, op, x);
  switch (op) {
    case ScalarOp::floor:
      return ir.intrinsic(in::floor, x);
    case ScalarOp::ceil:
      return ir.intrinsic(in::ceil, x);
    case ScalarOp::trunc:
      return ir.intrinsic(in::trunc, x);
    default:
      return ir.intrinsic(in::roundeven, x);
  }
}

llvm::Type* bits_type(Ir& ir, llvm::Value* x) {
  return ir.like(x, ir.b.getIntNTy(x->getType()->getScalarSizeInBits()));
}

// x if x is a constant that is no NaN (in every lane), else null.
const llvm::ConstantFP* known_number(llvm::Value* x) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(x);
  if (!constant) return nullptr;
  const auto* number = llvm::dyn_cast_or_null<llvm::ConstantFP>(
      constant->getType()->isVectorTy() ? constant->getSplatValue() : constant);
  return number && !number->isNaN() ? number : nullptr;
}

// The instruction's own minimum and maximum: the second operand if either is NaN or both are zeros.
llvm::Value* raw_min_max(Ir& ir, bool want_max, llvm::Value* a, llvm::Value* c) {
  return ir.b.CreateSelect(want_max ? ir.b.CreateFCmpOGT(a, c) : ir.b.CreateFCmpOLT(a, c), a, c);
}

llvm::Value* float_min_max(Ir& ir, bool want_max, llvm::Value* a, llvm::Value* c) {
  auto& b = ir.b;
  if (known_number(a)) std::swap(a, c);
  if (const llvm::ConstantFP* const number = known_number(c)) {
    // NaN and equal zeros give the variable side, which is right but for one pair of zeros.
    if (!number->isZero() || number->isNegative() == want_max) return raw_min_max(ir, want_max, c, a);
    if (want_max) return b.CreateFAdd(raw_min_max(ir, true, c, a), c);  // max(x, +0): -0 + +0 is +0
  }
  // Both orders differ where an operand is NaN (then they give a and c) or both are zeros.
  llvm::Type* const bits = bits_type(ir, a);
  llvm::Value* const one = b.CreateBitCast(raw_min_max(ir, want_max, a, c), bits);
  llvm::Value* const two = b.CreateBitCast(raw_min_max(ir, want_max, c, a), bits);
  llvm::Value* const both = b.CreateBitCast(b.CreateOr(one, two), a->getType());  // NaN stays NaN; -0 wins over +0
  if (!want_max) return both;
  // Equal numbers: both - 0. Zeros of two signs: -0 - -0 = +0.
  return b.CreateFSub(both, b.CreateBitCast(b.CreateXor(one, two), a->getType()));
}

llvm::Value* fused(Ir& ir, llvm::Value* a, llvm::Value* c, llvm::Value* d) {
  if (!ir.target.has_fma()) return ir.b.CreateFAdd(ir.b.CreateFMul(a, c), d);
  return ir.b.CreateIntrinsic(in::fma, {a->getType()}, {a, c, d});
}

llvm::Value* float_op(Ir& ir, ScalarOp op, Operands x) {
  auto& b = ir.b;
  switch (op) {
    case ScalarOp::add:
      return b.CreateFAdd(x[0], x[1]);
    case ScalarOp::sub:
      return b.CreateFSub(x[0], x[1]);
    case ScalarOp::mul:
      return b.CreateFMul(x[0], x[1]);
    case ScalarOp::div:
      return b.CreateFDiv(x[0], x[1]);
    case ScalarOp::min:
      return float_min_max(ir, false, x[0], x[1]);
    case ScalarOp::max:
      return float_min_max(ir, true, x[0], x[1]);
    case ScalarOp::fma:
      return fused(ir, x[0], x[1], x[2]);
    case ScalarOp::neg:
      return b.CreateFNeg(x[0]);
    case ScalarOp::abs:
      return ir.intrinsic(in::fabs, x[0]);
    case ScalarOp::sqrt:
      return ir.intrinsic(in::sqrt, x[0]);
    case ScalarOp::floor:
    case ScalarOp::ceil:
    case ScalarOp::trunc:
    case ScalarOp::round_even:
      return round_float(ir, op, x[0]);
    case ScalarOp::eq:
      return b.CreateFCmpOEQ(x[0], x[1]);
    case ScalarOp::ne:
      return b.CreateFCmpUNE(x[0], x[1]);
    case ScalarOp::lt:
      return b.CreateFCmpOLT(x[0], x[1]);
    case ScalarOp::le:
      return b.CreateFCmpOLE(x[0], x[1]);
    default:
      return nullptr;
  }
}

// f16 and bf16: in f32, rounded to the type.
llvm::Value* half_op(Ir& ir, ScalarOp op, DType type, Operands x) {
  auto& b = ir.b;
  if (op == ScalarOp::neg) return b.CreateXor(x[0], ir.number_like(x[0], 0x8000));
  if (op == ScalarOp::abs) return b.CreateAnd(x[0], ir.number_like(x[0], 0x7fff));
  if (op == ScalarOp::fma) return nullptr;
  llvm::SmallVector<llvm::Value*, 3> wide;
  for (llvm::Value* const operand : x) wide.push_back(widen(ir, type, operand));
  llvm::Value* const result = float_op(ir, op, wide);
  return result && !is_comparison(op) ? narrow(ir, type, result) : result;
}

// --- integers and bool
// -----------------------------------------------------------------------------------------------------

// Shift counts are unsigned; at and beyond the width nothing (or the sign) is left.
llvm::Value* shift(Ir& ir, ScalarOp op, DType type, llvm::Value* a, llvm::Value* count) {
  auto& b = ir.b;
  const int64_t bits = static_cast<int64_t>(size_of(type)) * 8;
  llvm::Constant* const last = ir.number_like(a, bits - 1);
  llvm::Value* const within = ir.intrinsic(in::umin, count, last);
  if (op == ScalarOp::shift_right && is_signed_int(type)) return b.CreateAShr(a, within);
  llvm::Value* const shifted = op == ScalarOp::shift_left ? b.CreateShl(a, within) : b.CreateLShr(a, within);
  return b.CreateSelect(b.CreateICmpULE(count, last), shifted, ir.number_like(a, 0));
}

llvm::Value* int_op(Ir& ir, ScalarOp op, DType type, Operands x) {
  auto& b = ir.b;
  const bool sign = is_signed_int(type);
  switch (op) {
    case ScalarOp::add:
      return b.CreateAdd(x[0], x[1]);
    case ScalarOp::sub:
      return b.CreateSub(x[0], x[1]);
    case ScalarOp::mul:
      return b.CreateMul(x[0], x[1]);
    case ScalarOp::div:
    case ScalarOp::rem:
    case ScalarOp::floor_div:
    case ScalarOp::floor_mod:
      return emit_divide(ir, op, type, x[0], x[1]);
    case ScalarOp::min:
    case ScalarOp::max:
      return emit_min_max(ir, op == ScalarOp::max, type, x[0], x[1]);
    case ScalarOp::neg:
      return b.CreateNeg(x[0]);
    case ScalarOp::abs:
      return sign ? b.CreateIntrinsic(in::abs, {x[0]->getType()}, {x[0], b.getFalse()}) : x[0];
    case ScalarOp::floor:
    case ScalarOp::ceil:
    case ScalarOp::trunc:
    case ScalarOp::round_even:
      return x[0];
    case ScalarOp::bit_and:
      return b.CreateAnd(x[0], x[1]);
    case ScalarOp::bit_or:
      return b.CreateOr(x[0], x[1]);
    case ScalarOp::bit_xor:
      return b.CreateXor(x[0], x[1]);
    case ScalarOp::bit_not:
      return b.CreateNot(x[0]);
    case ScalarOp::shift_left:
    case ScalarOp::shift_right:
      return shift(ir, op, type, x[0], x[1]);
    case ScalarOp::eq:
      return b.CreateICmpEQ(x[0], x[1]);
    case ScalarOp::ne:
      return b.CreateICmpNE(x[0], x[1]);
    case ScalarOp::lt:
      return sign ? b.CreateICmpSLT(x[0], x[1]) : b.CreateICmpULT(x[0], x[1]);
    case ScalarOp::le:
      return sign ? b.CreateICmpSLE(x[0], x[1]) : b.CreateICmpULE(x[0], x[1]);
    default:
      return nullptr;
  }
}

llvm::Value* bool_op(Ir& ir, ScalarOp op, Operands x) {
  auto& b = ir.b;
  switch (op) {
    case ScalarOp::min:
    case ScalarOp::bit_and:
      return b.CreateAnd(x[0], x[1]);
    case ScalarOp::max:
    case ScalarOp::bit_or:
      return b.CreateOr(x[0], x[1]);
    case ScalarOp::bit_xor:
    case ScalarOp::ne:
      return b.CreateXor(x[0], x[1]);
    case ScalarOp::bit_not:
      return b.CreateNot(x[0]);
    case ScalarOp::eq:
      return b.CreateNot(b.CreateXor(x[0], x[1]));
    case ScalarOp::lt:
      return b.CreateAnd(b.CreateNot(x[0]), x[1]);
    case ScalarOp::le:
      return b.CreateOr(b.CreateNot(x[0]), x[1]);
    default:
      return nullptr;
  }
}

llvm::Value* emit_bitcast(Ir& ir, DType from, DType to, llvm::Value* value) {
  if (from == to) return value;
  if (to == DType::boolean) return ir.b.CreateICmpNE(value, ir.number_like(value, 0));
  if (from == DType::boolean) return ir.b.CreateZExt(value, ir.type(to, Ir::lanes_of(value)));
  return ir.b.CreateBitCast(value, ir.type(to, Ir::lanes_of(value)));
}

}  // namespace

llvm::Value* emit_min_max(Ir& ir, bool want_max, DType type, llvm::Value* a, llvm::Value* c) {
  if (type == DType::boolean) return want_max ? ir.b.CreateOr(a, c) : ir.b.CreateAnd(a, c);
  if (is_half(type)) return narrow(ir, type, float_min_max(ir, want_max, widen(ir, type, a), widen(ir, type, c)));
  if (is_float(type)) return float_min_max(ir, want_max, a, c);
  const bool sign = is_signed_int(type);
  return ir.intrinsic(want_max ? (sign ? in::smax : in::umax) : (sign ? in::smin : in::umin), a, c);
}

llvm::Value* emit_scalar(Ir& ir, ScalarOp op, DType from, DType to, Operands operands) {
  switch (op) {
    case ScalarOp::select:
      return ir.b.CreateSelect(operands[0], operands[1], operands[2]);
    case ScalarOp::cast:
      return emit_cast(ir, from, to, operands[0]);
    case ScalarOp::bitcast:
      return emit_bitcast(ir, from, to, operands[0]);
    default:
      break;
  }
  if (from == DType::boolean) return bool_op(ir, op, operands);
  if (is_half(from)) return half_op(ir, op, from, operands);
  if (is_float(from)) return float_op(ir, op, operands);
  return int_op(ir, op, from, operands);
}

llvm::Value* to_memory(Ir& ir, DType type, llvm::Value* value) {
  return type == DType::boolean ? ir.b.CreateZExt(value, ir.memory_type(type, Ir::lanes_of(value))) : value;
}

llvm::Value* from_memory(Ir& ir, DType type, llvm::Value* value) {
  return type == DType::boolean ? ir.b.CreateICmpNE(value, ir.number_like(value, 0)) : value;
}

llvm::Value* emit_combine(Ir& ir, kernel::ReduceOp op, DType type, llvm::Value* state, llvm::Value* element) {
  using kernel::ReduceOp;
  const auto scalar = [&](ScalarOp scalar_op) {
    llvm::Value* const operands[] = {state, element};
    return emit_scalar(ir, scalar_op, type, type, operands);
  };
  switch (op) {
    case ReduceOp::sum:
      return scalar(ScalarOp::add);
    case ReduceOp::product:
      return scalar(ScalarOp::mul);
    case ReduceOp::max:
      return emit_min_max(ir, true, type, state, element);
    case ReduceOp::min:
      return emit_min_max(ir, false, type, state, element);
    case ReduceOp::all:
      return ir.b.CreateAnd(state, element);
    default:
      return ir.b.CreateOr(state, element);
  }
}

namespace {

// The lowest or highest value of a type, as the kernel IR states constants.
int64_t extreme_bits(DType type, bool highest) {
  const bool sign = is_signed_int(type);
  const int bits = static_cast<int>(size_of(type)) * 8;
  if (type == DType::boolean) return highest ? 1 : 0;
  if (is_float(type))
    return kernel::float_bits(
        type, highest ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity());
  if (sign) return highest ? (int64_t{1} << (bits - 2)) - 1 + (int64_t{1} << (bits - 2)) : int64_t{-1} << (bits - 1);
  return highest ? -1 : 0;
}

}  // namespace

llvm::Constant* reduce_identity(Ir& ir, kernel::ReduceOp op, DType type, int lanes) {
  using kernel::ReduceOp;
  int64_t bits = 0;
  switch (op) {
    case ReduceOp::sum:
      bits = is_float(type) ? kernel::float_bits(type, -0.0) : 0;
      break;
    case ReduceOp::product:
      bits = is_float(type) ? kernel::float_bits(type, 1.0) : 1;
      break;
    case ReduceOp::max:
    case ReduceOp::argmax:
      bits = extreme_bits(type, false);
      break;
    case ReduceOp::min:
    case ReduceOp::argmin:
      bits = extreme_bits(type, true);
      break;
    case ReduceOp::all:
      bits = 1;
      break;
    case ReduceOp::any:
      bits = 0;
      break;
  }
  return ir.constant(type, bits, lanes);
}

}  // namespace quartet::codegen
