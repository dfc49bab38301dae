// Integer division: total, and without the instruction's traps. Vectors have no such instruction: up to 32 bits they
// divide in floating point, exactly; 64-bit lanes divide one by one unless the caller found a narrower form.
#include "codegen/cpu/arithmetic.h"

namespace quartet::codegen {
namespace {

// The divisor if it is a constant, the same in every lane.
const llvm::ConstantInt* constant_divisor(llvm::Value* d) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(d);
  if (!constant) return nullptr;
  return llvm::dyn_cast_or_null<llvm::ConstantInt>(constant->getType()->isVectorTy() ? constant->getSplatValue()
                                                                                     : constant);
}

// Quotient of operands that neither trap nor wrap, by a division in a float type that holds both: the quotient of two
// integers of n bits is further from the next integer than half an ulp of a float of more than n bits.
llvm::Value* divide_as_float(Ir& ir, bool sign, llvm::Value* a, llvm::Value* d) {
  auto& b = ir.b;
  const unsigned bits = a->getType()->getScalarSizeInBits();
  llvm::Type* const real = ir.like(a, bits <= 16 ? b.getFloatTy() : b.getDoubleTy());
  if (bits <= 16) {  // by way of i32: the conversions of narrow types are made of these anyway
    llvm::Type* const wide = ir.like(a, b.getInt32Ty());
    a = sign ? b.CreateSExt(a, wide) : b.CreateZExt(a, wide);
    d = sign ? b.CreateSExt(d, wide) : b.CreateZExt(d, wide);
    llvm::Value* const q = b.CreateFDiv(b.CreateSIToFP(a, real), b.CreateSIToFP(d, real));
    return b.CreateTrunc(b.CreateFPToSI(q, wide), ir.like(a, b.getIntNTy(bits)));
  }
  if (sign) return b.CreateFPToSI(b.CreateFDiv(b.CreateSIToFP(a, real), b.CreateSIToFP(d, real)), a->getType());
  return b.CreateFPToUI(b.CreateFDiv(b.CreateUIToFP(a, real), b.CreateUIToFP(d, real)), a->getType());
}

llvm::Value* plain_quotient(Ir& ir, bool sign, llvm::Value* a, llvm::Value* d) {
  if (Ir::lanes_of(a) > 1 && a->getType()->getScalarSizeInBits() <= 32 && !constant_divisor(d))
    return divide_as_float(ir, sign, a, d);
  return sign ? ir.b.CreateSDiv(a, d) : ir.b.CreateUDiv(a, d);
}

// Towards zero; 0 for d = 0; wraps for the lowest value by -1.
llvm::Value* quotient(Ir& ir, bool sign, llvm::Value* a, llvm::Value* d) {
  auto& b = ir.b;
  llvm::Constant* const zero = ir.number_like(a, 0);
  llvm::Constant* const one = ir.number_like(a, 1);
  if (const llvm::ConstantInt* const known = constant_divisor(d)) {
    if (known->isZero()) return zero;
    if (sign && known->isMinusOne()) return b.CreateNeg(a);
    return plain_quotient(ir, sign, a, d);
  }
  llvm::Value* const by_zero = b.CreateICmpEQ(d, zero);
  llvm::Value* const by_minus_one = sign ? b.CreateICmpEQ(d, ir.number_like(a, -1)) : nullptr;
  llvm::Value* const special = sign ? b.CreateOr(by_zero, by_minus_one) : by_zero;
  llvm::Value* q = plain_quotient(ir, sign, a, b.CreateSelect(special, one, d));
  if (sign) q = b.CreateSelect(by_minus_one, b.CreateNeg(a), q);
  return b.CreateSelect(by_zero, zero, q);
}

}  // namespace

llvm::Value* emit_divide(Ir& ir, ScalarOp op, DType type, llvm::Value* a, llvm::Value* d) {
  auto& b = ir.b;
  const bool sign = is_signed_int(type);
  const bool floors = op == ScalarOp::floor_div || op == ScalarOp::floor_mod;
  const bool wants_quotient = op == ScalarOp::div || op == ScalarOp::floor_div;
  const llvm::ConstantInt* const known = constant_divisor(d);
  if (floors && known && known->getValue().isPowerOf2() && !(sign && known->isNegative())) {
    if (!wants_quotient) return b.CreateAnd(a, ir.number_like(a, known->getSExtValue() - 1));
    llvm::Constant* const count = ir.number_like(a, known->getValue().logBase2());
    return sign ? b.CreateAShr(a, count) : b.CreateLShr(a, count);
  }
  llvm::Value* const q = quotient(ir, sign, a, d);
  if (!floors || !sign) return wants_quotient ? q : b.CreateSub(a, b.CreateMul(q, d));
  llvm::Value* const rest = b.CreateSub(a, b.CreateMul(q, d));
  llvm::Value* const negative = b.CreateICmpSLT(rest, ir.number_like(a, 0));
  if (wants_quotient) return b.CreateAdd(q, b.CreateSExt(negative, a->getType()));
  return b.CreateAdd(rest, b.CreateSelect(negative, d, ir.number_like(a, 0)));
}

}  // namespace quartet::codegen
