// Emits one kernel as one LLVM function. Statements are walked in order; inside a vector loop (or a reduce along lanes)
// each is emitted once for a run of lanes.
#pragma once

#include <string>
#include <vector>

#include <llvm/IR/Module.h>

#include "codegen/cpu/body_shape.h"
#include "codegen/cpu/lane_math.h"
#include "codegen/cpu/memory.h"
#include "kernel/ir.h"

namespace quartet::codegen {

class Emitter {
 public:
  // The kernel verifies and is expanded for the target's class.
  Emitter(llvm::Module& module, const Target& target, const kernel::Kernel& kernel);

  // Adds the function `symbol` (base/kernel_abi.h) to the module.
  Status emit(const std::string& symbol);

 private:
  using Values = std::vector<Value>;
  using LlvmValues = std::vector<llvm::Value*>;

  // emitter.cpp: the function, and statements one by one
  llvm::Function* declare(const std::string& symbol);
  void enter(llvm::Function* function);
  // Emits a region and gives what it yields.
  Values region(const kernel::Region& region, std::span<const Value> arguments);
  void statement(const kernel::Statement& s);
  void scalar(const kernel::Statement& s);
  void load(const kernel::Statement& s);
  void store(const kernel::Statement& s);
  void branch(const kernel::Statement& s);
  void fail(Code code, const std::string& reason);
  const Value& value(kernel::ValueId id) const { return values_[static_cast<size_t>(id)]; }
  void define(kernel::ValueId id, const Value& value);
  // Whether a carried value must be kept as a vector here.
  bool keep_vector(kernel::ValueId id) const { return lanes_.count > 1 && varying_[static_cast<size_t>(id)]; }

  // loops.cpp
  void loop(const kernel::Statement& s);
  void serial_loop(const kernel::Statement& s);
  void unrolled_loop(const kernel::Statement& s);
  void vector_loop(const kernel::Statement& s);
  struct VectorLoop;
  void vector_body(const VectorLoop& loop, llvm::Value* first, const Lanes& lanes);
  void vector_rest(const VectorLoop& loop, llvm::Value* first);
  llvm::Value* distance(const VectorLoop& loop, llvm::Value* first);
  // The lanes below `left` (i64, at least 1).
  Lanes first_lanes(llvm::Value* left, int count);

  // reduce.cpp: a reduction's chunks and partial states; reduce_states.cpp: what is done with states
  struct Reduction;
  struct State {  // partial states, one a lane; null: no element seen
    llvm::Value* best = nullptr;
    llvm::Value* index = nullptr;  // argmax, argmin: distance of the best element from the chunk's start; -1: none seen
    bool empty() const { return !best; }
  };
  using States = std::vector<State>;
  // Partial states kept on the stack, `count` of `lanes` lanes each.
  struct StateArray {
    llvm::Value *best = nullptr, *index = nullptr;
    int lanes = 1;
  };
  void reduce(const kernel::Statement& s);
  State reduce_chunks(const Reduction& r);
  State reduce_chunk(const Reduction& r, llvm::Value* lo, llvm::Value* hi);
  State along_lanes(const Reduction& r, llvm::Value* lo, llvm::Value* hi);
  void whole_runs(const Reduction& r, llvm::Value* lo, llvm::Value* end, States& states);
  void partial_run(const Reduction& r, llvm::Value* chunk, llvm::Value* first, llvm::Value* hi, States& states);
  void masked_runs(const Reduction& r, llvm::Value* chunk, llvm::Value* first, llvm::Value* left, States& states);
  void runs_on_stack(const Reduction& r, llvm::Value* chunk, llvm::Value* first, llvm::Value* hi, States& states);
  State in_registers(const Reduction& r, llvm::Value* lo, int64_t count);
  State one_chain(const Reduction& r, llvm::Value* lo, llvm::Value* hi);
  State in_memory(const Reduction& r, llvm::Value* lo, llvm::Value* hi);
  void whole_rounds(const Reduction& r, llvm::Value* lo, llvm::Value* whole, const StateArray& array);
  // The element at `at`; with more lanes than one along the reduction, of consecutive elements.
  State element(const Reduction& r, llvm::Value* at, llvm::Value* chunk, const Lanes& lanes);

  State identity(const Reduction& r, int lanes);
  State extend(const Reduction& r, const State& state, const State& element);  // by a later element
  State merge(const Reduction& r, const State& a, const State& b);
  State choose(llvm::Value* condition, const State& a, const State& b);
  State merge_tree(const Reduction& r, States states);
  State merge_lanes(const Reduction& r, State state);
  StateArray state_array(const Reduction& r, int64_t count, int lanes);
  // States as values a loop carries, and back.
  static LlvmValues flatten(const Reduction& r, const States& states);
  static void unflatten(const Reduction& r, const LlvmValues& values, States& states);
  void free_states(const StateArray& array);
  State read_state(const Reduction& r, const StateArray& array, llvm::Value* number);
  void write_state(const Reduction& r, const StateArray& array, llvm::Value* number, const State& state);

  // contract.cpp: which tiles a contraction needs, what comes before and after k; contract_k.cpp: the loop over k
  struct Tile;
  void contract(const kernel::Statement& s);
  void contract_rest(const kernel::Statement& s, const Tile& whole, llvm::Value* limit);
  void tile(const Tile& t);
  LlvmValues initial_accumulators(const Tile& t);
  void epilogue(const Tile& t, const LlvmValues& accumulators);
  void k_loop(const Tile& t, LlvmValues& accumulators);
  struct KPointers;
  KPointers k_pointers(const Tile& t);
  void around_k(const Tile& t, const KPointers& from, size_t depth, LlvmValues& accumulators);
  void inner_k(const Tile& t, KPointers p, LlvmValues& accumulators);
  void k_step(const Tile& t, const KPointers& p, int64_t step, std::span<llvm::Value*> accumulators);

  llvm::Module& module_;
  Ir ir_;
  const kernel::Kernel& kernel_;
  LaneMath math_;
  Memory memory_;
  std::vector<bool> varying_;
  std::vector<Value> values_;  // by ValueId
  std::vector<Value> dims_;
  Lanes lanes_;
  Status status_;
};

}  // namespace quartet::codegen
