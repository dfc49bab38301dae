#include "codegen/cpu/ir.h"

#include <numeric>

#include <llvm/IR/Intrinsics.h>

namespace quartet::codegen {

llvm::Type* Ir::vector(llvm::Type* element, int lanes) {
  return lanes == 1 ? element : llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes));
}

llvm::Type* Ir::type(DType dtype, int lanes) {
  switch (dtype) {
    case DType::f64:
      return vector(b.getDoubleTy(), lanes);
    case DType::f32:
      return vector(b.getFloatTy(), lanes);
    case DType::boolean:
      return vector(b.getInt1Ty(), lanes);
    default:
      return vector(b.getIntNTy(static_cast<unsigned>(size_of(dtype)) * 8), lanes);
  }
}

llvm::Type* Ir::memory_type(DType dtype, int lanes) {
  return dtype == DType::boolean ? vector(b.getInt8Ty(), lanes) : type(dtype, lanes);
}

int Ir::lanes_of(const llvm::Value* value) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return vector ? static_cast<int>(vector->getNumElements()) : 1;
}

llvm::Constant* Ir::number(llvm::Type* type, int64_t value) {
  if (type->isFPOrFPVectorTy()) return llvm::ConstantFP::get(type, static_cast<double>(value));
  return llvm::ConstantInt::get(type, static_cast<uint64_t>(value), true);
}

llvm::Constant* Ir::real(llvm::Type* type, double value) { return llvm::ConstantFP::get(type, value); }

llvm::Constant* Ir::constant(DType dtype, int64_t bits, int lanes) {
  llvm::Type* const scalar = type(dtype);
  if (!scalar->isFloatingPointTy())
    return llvm::ConstantInt::get(type(dtype, lanes), static_cast<uint64_t>(bits), true);
  const unsigned width = static_cast<unsigned>(size_of(dtype)) * 8;
  const llvm::APFloat number(scalar->getFltSemantics(), llvm::APInt(width, static_cast<uint64_t>(bits)));
  return llvm::ConstantFP::get(type(dtype, lanes), number);
}

llvm::Constant* Ir::iota(int lanes, int64_t step) {
  if (lanes == 1) return i32(0);
  std::vector<uint32_t> values;
  for (int i = 0; i < lanes; ++i) values.push_back(static_cast<uint32_t>(i * step));
  return llvm::ConstantDataVector::get(b.getContext(), values);
}

llvm::Value* Ir::splat(llvm::Value* scalar, int lanes) {
  return lanes == 1 ? scalar : b.CreateVectorSplat(static_cast<unsigned>(lanes), scalar);
}

llvm::Value* Ir::lane(llvm::Value* vector, int index) {
  return lanes_of(vector) == 1 ? vector : b.CreateExtractElement(vector, static_cast<uint64_t>(index));
}

llvm::Value* Ir::slice(llvm::Value* vector, int first, int count) {
  if (count == lanes_of(vector)) return vector;
  if (count == 1) return lane(vector, first);
  llvm::SmallVector<int, 64> mask(static_cast<size_t>(count));
  std::iota(mask.begin(), mask.end(), first);
  return b.CreateShuffleVector(vector, mask);
}

llvm::Type* Ir::like(const llvm::Value* shape, llvm::Type* element) { return vector(element, lanes_of(shape)); }

llvm::Value* Ir::intrinsic(llvm::Intrinsic::ID id, llvm::Value* a) { return b.CreateUnaryIntrinsic(id, a); }
llvm::Value* Ir::intrinsic(llvm::Intrinsic::ID id, llvm::Value* a, llvm::Value* c) {
  return b.CreateBinaryIntrinsic(id, a, c);
}

llvm::BasicBlock* Ir::block(const char* name) { return llvm::BasicBlock::Create(b.getContext(), name, function()); }

llvm::Value* Ir::stack_array(llvm::Type* element, int64_t count) {
  const int64_t bytes = count * static_cast<int64_t>(element->getPrimitiveSizeInBits().getFixedValue() / 8);
  for (StackArray& array : stack_) {
    if (array.used || array.bytes < bytes) continue;
    array.used = true;
    return array.memory;
  }
  const llvm::IRBuilder<>::InsertPointGuard guard(b);
  llvm::BasicBlock& entry = function()->getEntryBlock();
  b.SetInsertPoint(&entry, entry.begin());
  llvm::AllocaInst* const memory = b.CreateAlloca(b.getInt8Ty(), i64(bytes));
  memory->setAlignment(llvm::Align(64));
  stack_.push_back({memory, bytes, true});
  return memory;
}

void Ir::free_array(llvm::Value* array) {
  for (StackArray& one : stack_)
    if (one.memory == array) one.used = false;
}

int64_t Ir::stack_bytes() const {
  int64_t sum = 0;
  for (const StackArray& array : stack_) sum += array.bytes;
  return sum;
}

}  // namespace quartet::codegen
