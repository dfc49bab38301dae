// The kernel's buffers, and loads and stores of a run of lanes in the cheapest form their index allows.
#pragma once

#include <vector>

#include "codegen/cpu/lane_math.h"
#include "kernel/ir.h"

namespace quartet::codegen {

class Memory {
 public:
  Memory(LaneMath& math, const kernel::Kernel& kernel) : math_(math), ir_(math.ir), kernel_(kernel) {}

  // Once, in the entry block: the pointer of each argument out of `buffers`, of task scratch out of `scratch`.
  void enter(llvm::Value* buffers, llvm::Value* scratch);

  // `guard` and `fill` are null together. Lanes that are not active or whose guard is false touch nothing.
  Value load(kernel::BufferId buffer, const Value& index, const Value* guard, const Value* fill, const Lanes& lanes);
  void store(kernel::BufferId buffer, const Value& index, const Value& value, const Value* guard, const Lanes& lanes);

  // For emitters that do their own addressing: the address of an element, and marks that tell the buffer apart.
  llvm::Value* address(kernel::BufferId buffer, llvm::Value* element);
  void mark(kernel::BufferId buffer, llvm::Instruction* access) const;
  DType dtype(kernel::BufferId buffer) const { return kernel_.buffers[static_cast<size_t>(buffer)].dtype; }

 private:
  struct Base {
    llvm::Value* pointer = nullptr;
    llvm::MDNode* scope = nullptr;
    llvm::MDNode* others = nullptr;
  };

  llvm::Align alignment(kernel::BufferId buffer, const Value& index) const;
  llvm::Align element_alignment(kernel::BufferId buffer) const;
  // One pointer a lane.
  llvm::Value* addresses(kernel::BufferId buffer, const Value& index, int lanes);
  // Lanes to touch: active and guarded; null if all.
  llvm::Value* mask(const Value* guard, const Lanes& lanes);
  llvm::Value* load_scalar(kernel::BufferId buffer, const Value& index);
  llvm::Value* load_run(kernel::BufferId buffer, const Value& index, llvm::Value* mask, llvm::Value* fill, int lanes);
  llvm::Value* gather(kernel::BufferId buffer, const Value& index, llvm::Value* mask, llvm::Value* fill, int lanes);
  Value load_some(kernel::BufferId buffer, const Value& index, const Value* guard, const Value* fill,
                  const Lanes& lanes);
  void store_some(kernel::BufferId buffer, const Value& index, const Value& value, const Value* guard,
                  const Lanes& lanes);
  void set_scopes();

  LaneMath& math_;
  Ir& ir_;
  const kernel::Kernel& kernel_;
  std::vector<Base> bases_;
};

}  // namespace quartet::codegen
