// Construction of LLVM IR that works for scalars and vectors alike: lane count 1 is a scalar. Knows no kernel IR.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "base/dtype.h"
#include "codegen/cpu/target.h"

namespace quartet::codegen {

// bool values are i1, f16 and bf16 values their bits as i16.
class Ir {
 public:
  Ir(llvm::LLVMContext& context, const Target& target_machine) : b(context), target(target_machine) {}

  llvm::IRBuilder<> b;
  const Target& target;

  // The type of a value of `lanes` lanes, and of the same in memory (bool: a byte).
  llvm::Type* type(DType dtype, int lanes = 1);
  llvm::Type* memory_type(DType dtype, int lanes = 1);
  llvm::Type* vector(llvm::Type* element, int lanes);
  static int lanes_of(const llvm::Value* value);

  llvm::ConstantInt* i64(int64_t value) { return b.getInt64(static_cast<uint64_t>(value)); }
  llvm::ConstantInt* i32(int64_t value) { return b.getInt32(static_cast<uint32_t>(value)); }
  // A constant of the scalar or vector type `type`, integer or float.
  llvm::Constant* number(llvm::Type* type, int64_t value);
  llvm::Constant* number_like(const llvm::Value* value, int64_t n) { return number(value->getType(), n); }
  llvm::Constant* real(llvm::Type* type, double value);
  // The constant whose bits the kernel IR states.
  llvm::Constant* constant(DType dtype, int64_t bits, int lanes = 1);
  // <0, step, 2*step ...> of i32.
  llvm::Constant* iota(int lanes, int64_t step = 1);

  llvm::Value* splat(llvm::Value* scalar, int lanes);
  llvm::Value* lane(llvm::Value* vector, int index);
  // Lanes [first, first + count) of a vector; a scalar if count is 1.
  llvm::Value* slice(llvm::Value* vector, int first, int count);
  // The same shape with another element type.
  llvm::Type* like(const llvm::Value* shape, llvm::Type* element);

  llvm::Value* intrinsic(llvm::Intrinsic::ID id, llvm::Value* a);
  llvm::Value* intrinsic(llvm::Intrinsic::ID id, llvm::Value* a, llvm::Value* c);

  llvm::Function* function() { return b.GetInsertBlock()->getParent(); }
  llvm::BasicBlock* block(const char* name);
  // An array on the stack, 64-byte aligned. Emitted code that comes after `free_array` may be given the same memory.
  llvm::Value* stack_array(llvm::Type* element, int64_t count);
  void free_array(llvm::Value* array);
  // Of all arrays so far.
  int64_t stack_bytes() const;

  // for (i = lo; i < hi; i += step) body(i); signed, hi may be below lo. `carried` holds the loop-carried values: their
  // initial values before, the values at the exit after; the body replaces them in place.
  template <class Body>
  void loop(llvm::Value* lo, llvm::Value* hi, llvm::Value* step, std::vector<llvm::Value*>& carried, Body&& body);
  template <class Body>
  void loop(llvm::Value* lo, llvm::Value* hi, llvm::Value* step, Body&& body) {
    std::vector<llvm::Value*> none;
    loop(lo, hi, step, none, body);
  }
  // if (condition) body(); constant conditions leave no branch.
  template <class Body>
  void when(llvm::Value* condition, Body&& body);

 private:
  struct StackArray {
    llvm::Value* memory = nullptr;
    int64_t bytes = 0;
    bool used = false;
  };
  std::vector<StackArray> stack_;
};

template <class Body>
void Ir::loop(llvm::Value* lo, llvm::Value* hi, llvm::Value* step, std::vector<llvm::Value*>& carried, Body&& body) {
  llvm::Value* const enter = b.CreateICmpSLT(lo, hi);
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(enter); known && known->isZero()) return;
  llvm::BasicBlock* const before = b.GetInsertBlock();
  llvm::BasicBlock* const head = block("loop");
  llvm::BasicBlock* const exit = block("done");
  const bool certain = llvm::isa<llvm::ConstantInt>(enter);
  if (certain) {
    b.CreateBr(head);
  } else {
    b.CreateCondBr(enter, head, exit);
  }
  b.SetInsertPoint(head);
  llvm::PHINode* const index = b.CreatePHI(lo->getType(), 2);
  index->addIncoming(lo, before);
  const std::vector<llvm::Value*> initial = carried;
  std::vector<llvm::PHINode*> phis;
  for (llvm::Value*& value : carried) {
    phis.push_back(b.CreatePHI(value->getType(), 2));
    phis.back()->addIncoming(value, before);
    value = phis.back();
  }
  body(static_cast<llvm::Value*>(index));
  llvm::BasicBlock* const latch = b.GetInsertBlock();
  llvm::Value* const next = b.CreateAdd(index, step);
  index->addIncoming(next, latch);
  for (size_t i = 0; i < phis.size(); ++i) phis[i]->addIncoming(carried[i], latch);
  b.CreateCondBr(b.CreateICmpSLT(next, hi), head, exit);
  exit->moveAfter(latch);
  b.SetInsertPoint(exit);
  if (certain) return;  // the exit is reached from the latch alone, where `carried` stands
  for (size_t i = 0; i < phis.size(); ++i) {
    llvm::PHINode* const out = b.CreatePHI(phis[i]->getType(), 2);
    out->addIncoming(initial[i], before);
    out->addIncoming(carried[i], latch);
    carried[i] = out;
  }
}

template <class Body>
void Ir::when(llvm::Value* condition, Body&& body) {
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition)) {
    if (!known->isZero()) body();
    return;
  }
  llvm::BasicBlock* const then = block("then");
  llvm::BasicBlock* const after = block("after");
  b.CreateCondBr(condition, then, after);
  b.SetInsertPoint(then);
  body();
  b.CreateBr(after);
  after->moveAfter(b.GetInsertBlock());
  b.SetInsertPoint(after);
}

}  // namespace quartet::codegen
