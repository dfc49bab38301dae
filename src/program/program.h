// A compiled program that does not know how many vEUs will run it: kernels, stages with dependencies, a memory plan.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/hash.h"
#include "base/int_expr.h"
#include "base/status.h"

namespace quartet::program {

// Where a kernel argument lives. All offsets and sizes are bytes, as expressions over the program's dim symbols.
enum class Storage : uint8_t {
  input = 0,      // index: the program's input
  output = 1,     // index: the program's output
  constant = 2,   // index: Program::constants; given by the caller by digest, or inline
  prepared = 3,   // index: Program::prepared; written once by the prepare stages
  workspace = 4,  // index: Program::workspace slots
};

struct BufferRef {
  Storage storage = Storage::workspace;
  int32_t index = 0;
  bool operator==(const BufferRef&) const = default;
};

struct TensorInfo {
  std::string name;
  DType dtype = DType::invalid;
  std::vector<IntExpr> shape;
};

struct DimInfo {
  std::string name;
  int64_t lower = 0;
};

struct ConstantInfo {
  Digest digest;  // of dtype, shape and bytes, as graph::Constant
  uint64_t bytes = 0;
  Bytes inline_data;  // small constants travel inside; empty otherwise
};

// A prepared buffer: the result of prepare stages, computed once at load.
struct PreparedInfo {
  IntExpr bytes;  // constant
};

// A slot of the workspace: lifetime in stages, and after planning its place in the arena.
struct WorkspaceSlot {
  IntExpr bytes;
  int32_t first_stage = 0, last_stage = 0;  // inclusive, in stage order
  IntExpr offset;                           // set by plan_memory
};

struct KernelInfo {
  std::string name;
  int32_t blob = 0;           // which code blob of the artifact
  uint64_t entry = 0;         // offset of the function in the blob
  std::vector<IntExpr> dims;  // values passed as dims, over the program's dim symbols
  IntExpr scratch_bytes;      // per running task, over the program's dim symbols
  int32_t arguments = 0;
};

struct Stage {
  int32_t kernel = 0;
  std::vector<BufferRef> arguments;
  IntExpr tasks;               // number of tasks
  std::vector<int32_t> after;  // earlier stages that must be complete (of the same list)
  int32_t wave = 0;            // stages of one wave are independent of each other; ascending
  double task_cost = 0;        // predicted seconds per task on one vEU
  bool library = false;        // from kernel/library
};

// Instructions in order. Straight-line programs are a run of `stage`; the others are for control flow.
enum class InstructionKind : uint8_t {
  stage = 0,
  loop_begin = 1,
  loop_end = 2,
  branch = 3,
  branch_else = 4,
  branch_end = 5,
  call = 6,
  swap = 7
};
struct Instruction {
  InstructionKind kind = InstructionKind::stage;
  int32_t stage = 0;
};

struct Program {
  std::vector<DimInfo> dims;  // symbol i is dims[i]; bound by the inputs' shapes
  std::vector<TensorInfo> inputs, outputs;
  std::vector<ConstantInfo> constants;
  std::vector<PreparedInfo> prepared;
  std::vector<WorkspaceSlot> workspace;
  IntExpr workspace_bytes;  // set by plan_memory
  std::vector<KernelInfo> kernels;
  std::vector<Stage> prepare;  // run once at load
  std::vector<Stage> stages;
  std::vector<Instruction> body;
  // Outputs that are a plain copy of an input or constant, with no stage to write them.
  struct Copy {
    BufferRef from;
    int32_t output = 0;
  };
  std::vector<Copy> copies;
};

Status verify(const Program& program);
std::string print(const Program& program);
Result<Program> parse(std::string_view text);
void write(ByteWriter& out, const Program& program);
Result<Program> read(ByteReader& in);  // verifies

// Gives every workspace slot its offset (64-byte aligned) and sets workspace_bytes. Slots whose lifetimes cannot
// overlap under any placement (by the stages' dependencies, not their order in the list) may share memory. Static sizes
// are packed best-fit; symbolic ones are laid out one after another with sharing only between equal sizes.
void plan_memory(Program& program);

// Task ranges for n vEUs with waits. Pure; microseconds.
struct TaskRange {
  int32_t stage = 0;
  int64_t begin = 0, end = 0;
};
struct Placement {
  std::vector<std::vector<TaskRange>> lists;  // per vEU, in order
};
// `tasks`: the number of tasks of each stage for the dims at hand.
Placement place(const Program& program, std::span<const int64_t> tasks, int vEUs);

}  // namespace quartet::program
