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
//
// What a kernel may assume of element 0's address: input, output and constant memory is aligned to the element size
// only (a host's tensor may start anywhere), a view to that of its parts; prepared and workspace memory to 64 bytes.
// Arguments of one stage that are not the same buffer never overlap, but for a view and the buffer it is a part of,
// which no stage names together.
enum class Storage : uint8_t {
  input = 0,      // index: the program's input
  output = 1,     // index: the program's output
  constant = 2,   // index: Program::constants; given by the caller by digest, or inline
  prepared = 3,   // index: Program::prepared; written once by the prepare stages
  workspace = 4,  // index: Program::workspace slots
  view = 5,       // index: Program::views
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
  // Of a dim that the run sets: at most this, over earlier dims that the inputs bind. Until it is set the dim has this
  // value, so memory is planned for it.
  std::optional<IntExpr> upper = std::nullopt;
  bool run = false;  // the run sets it; without an upper bound it is *open*: memory follows it by `grow`
  bool is_open() const { return run && !upper; }
};

struct ConstantInfo {
  Digest digest;  // of dtype, shape and bytes, as graph::Constant
  uint64_t bytes = 0;
  Bytes inline_data;  // small constants travel inside; empty otherwise
};

// What an input is when a run leaves it out.
struct InputDefault {
  int32_t input = 0;     // index of the program's input
  int32_t constant = 0;  // index into Program::constants
  std::vector<int64_t> shape;
  bool operator==(const InputDefault&) const = default;
};

// A prepared buffer: the result of prepare stages, computed once at load.
struct PreparedInfo {
  IntExpr bytes;  // constant
};

// A slot of the workspace: its lifetime and place, both set by plan_memory. Its place is in the arena, or, if its size
// may depend on open dims, a region: memory of its own that grows and that slots with other lifetimes use too.
struct WorkspaceSlot {
  IntExpr bytes;
  int32_t first = 0, last = -1;  // the moments (memory_plan.h) in which it is in use, inclusive; none if first > last
  IntExpr offset;                // in the arena
  int32_t region = -1;           // -1: in the arena
};

// A part of another buffer that moves with a loop: in iteration i it begins at byte `first + i * stride`.
struct View {
  BufferRef base;    // may be a view of a loop around this one, with a smaller number
  int32_t loop = 0;  // the loop that moves it and in whose body it exists
  IntExpr first, stride, bytes;
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

// Two dims that the program takes for the same: a run for which they differ is refused before it begins.
struct Assumption {
  IntExpr a, b;
};

// What a run does, in order. `run` instructions name every stage once and in order; a loop's or branch's instructions
// stand between it and its end, properly nested. An instruction is complete before the next begins.
enum class InstructionKind : uint8_t {
  run = 0,     // stages [first, first + count)
  branch = 1,  // if the bool in `from` is true what follows up to `otherwise`, else what follows that
  otherwise = 2,
  branch_end = 3,
  loop = 4,  // Program::loops[first]
  loop_end = 5,
  copy = 6,   // `bytes` bytes from `from` to `to`, all of them; of dims that the run sets: at most all
  swap = 7,   // workspace slots `from` and `to`, of equal size or both in regions, exchange their memory
  check = 8,  // if the bool in `from` is false the run fails with Program::messages[first]
  // Gives `to`, which grows, room for its bytes at the dims as they are. What a slot or output holds is lost if its
  // memory moves; a view's buffer keeps what is before the view, and grows by doubling.
  grow = 9,
  set = 10,   // dim `first` becomes `bytes`, over the dims as they are
  read = 11,  // dim `first` becomes the i64 in `from`; if it may not be that, the run fails with messages[count]
};
struct Instruction {
  InstructionKind kind = InstructionKind::run;
  int32_t first = 0, count = 0;
  BufferRef from, to;
  IntExpr bytes;
  bool operator==(const Instruction&) const = default;
};

// Each loop stands at one place of the body.
struct Loop {
  std::optional<IntExpr> count;        // so many iterations at most; given if it moves views of what does not grow
  std::optional<BufferRef> trip;       // i64: so many at most (none if negative)
  std::optional<BufferRef> condition;  // bool, read before the first iteration: false ends the loop
  std::optional<BufferRef> next;       // bool, read after each iteration: false ends the loop
  int32_t iteration = -1;              // workspace slot of an i64: the iteration's number; -1: nobody reads it
  int32_t dim = -1;                    // set to the number of iterations when the loop has ended; -1: none
};

struct Program {
  std::vector<DimInfo> dims;  // symbol i is dims[i]; bound by the inputs' shapes, or set by the run
  std::vector<TensorInfo> inputs, outputs;
  std::vector<Assumption> assumptions;
  std::vector<ConstantInfo> constants;
  std::vector<PreparedInfo> prepared;
  std::vector<WorkspaceSlot> workspace;
  IntExpr workspace_bytes;  // set by plan_memory
  std::vector<View> views;
  std::vector<Loop> loops;
  std::vector<std::string> messages;  // of checks
  std::vector<KernelInfo> kernels;
  std::vector<Stage> prepare;  // run once at load
  std::vector<Stage> stages;
  std::vector<Instruction> body;

  // The body of a program without control flow: one run of all stages, or nothing.
  void run_all() {
    if (!stages.empty()) body.push_back({InstructionKind::run, 0, static_cast<int32_t>(stages.size()), {}, {}, {}});
  }
  // Outputs that are a plain copy of an input or constant, with no stage to write them.
  struct Copy {
    BufferRef from;
    int32_t output = 0;
  };
  std::vector<Copy> copies;
  std::vector<InputDefault> defaults;  // ascending by input, each once
  bool flush_denormals = false;        // run with denormals taken and given as zero; off: kept
};

// Bytes of a buffer that exists; invalid when they overflow.
IntExpr bytes_of(const Program& program, const BufferRef& ref);

// Whether an expression uses an open dim.
bool is_open(const Program& program, const IntExpr& e);
// Whether a buffer that exists gets its memory by `grow`: a slot in a region, an output of open dims, a view of either.
bool grows(const Program& program, BufferRef ref);

// What every later reader relies on: indices and expressions in range and over known symbols, every dim symbol bound by
// an input axis that is exactly it or set by one loop or by set and read, stages in ascending waves with `after`
// pointing to earlier waves, prepare stages constant and writing only prepared memory, the body well formed, every
// output written, the memory plan made and legal. Failures: stage "program".
Status verify(const Program& program);
// The text form; parse(print(p)) gives a verified p back. Parsing checks the form only; call `verify` after it.
std::string print(const Program& program);
Result<Program> parse(std::string_view text);
void write(ByteWriter& out, const Program& program);
Result<Program> read(ByteReader& in);  // verifies

// Gives every workspace slot its lifetime and offset (64-byte aligned) and sets workspace_bytes.
//
// The partial order it relies on is the executor's guarantee: an instruction is complete before the next begins, every
// stage of a wave is complete before any stage of a later wave of the same `run` starts, and nothing is promised within
// a wave. (`after` edges lead to earlier waves, so waves imply them.) Two slots share memory only if every use of one
// is over before any use of the other begins; a slot used inside and outside of a loop is in use in all of it, and one
// used only inside has no value when an iteration begins. That is legal under every placement. Static sizes are packed
// best-fit, largest first; symbolic ones follow one after another, with sharing only between equal sizes. A slot no
// stage names gets no memory of its own (offset 0). Slots with a region get another: slots of one are not in use
// together.
void plan_memory(Program& program);

// Tasks [begin, end) of a stage.
struct TaskRange {
  int32_t stage = 0;
  int64_t begin = 0, end = 0;
  bool operator==(const TaskRange&) const = default;
};

// Task ranges for n vEUs, cut into phases: all ranges of a phase are complete before any range of the next starts. A
// phase is either one wave spread over the vEUs (ranges of different vEUs are independent), or one or more waves for
// vEU 0 alone, which runs them in order.
struct Placement {
  struct Phase {
    int32_t first_wave = 0, last_wave = 0;
    bool parallel = false;
    double cost = 0;  // predicted seconds of all its tasks on one vEU
  };
  std::vector<std::vector<TaskRange>> lists;  // per vEU, in order
  std::vector<Phase> phases;
  // List v's ranges of phase p are [cuts[v][p], cuts[v][p + 1]).
  std::vector<std::vector<int32_t>> cuts;
};

// A vEU gets at least this much predicted work of a wave (seconds), or none; a wave below twice this stays on vEU 0.
inline constexpr double kPlacementGrain = 2e-6;

// Distributes `stages` (of one `run`, or Program::prepare, in order) over `vEUs` >= 1. `tasks`: the number of tasks
// of each stage for the dims at hand; each task is placed exactly once. A wave's tasks, in stage order, are cut into
// runs of equal predicted cost, so that the same share of a tensor goes to the same vEU in every wave. Pure;
// microseconds.
Placement place(std::span<const Stage> stages, std::span<const int64_t> tasks, int vEUs);

}  // namespace quartet::program
