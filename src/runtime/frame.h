// A program's body made ready to run for certain dims and a number of vEUs: every argument a pointer, every count a
// number, every task range in its phase. Running it evaluates nothing and allocates nothing.
//
// The calling thread goes through the instructions. It runs phases for vEU 0 alone itself; a row of phases with a
// parallel one is handed to the team. Control costs it some nanoseconds an instruction: a loop's swaps and views
// rewrite the few pointers of the arguments that name them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/kernel_abi.h"
#include "base/status.h"
#include "program/program.h"
#include "runtime/executor.h"
#include "runtime/program.h"
#include "runtime/shapes.h"
#include "runtime/worker_pool.h"

// Compiled code carries no type record in front of its functions, which UBSan's check of calls would read.
#if defined(__clang__)
#define QUARTET_CALLS_COMPILED_CODE __attribute__((no_sanitize("function")))
#else
#define QUARTET_CALLS_COMPILED_CODE
#endif

namespace quartet::runtime {

class Frame final : public TeamWork {
 public:
  enum class List : uint8_t { stages, prepare };
  // `program` must outlive the frame. Input and output pointers and the workspace are still missing.
  static Result<std::unique_ptr<Frame>> make(const LoadedProgram& program, List list, std::span<const int64_t> dims,
                                             int vEUs);
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  const std::vector<int64_t>& dims() const { return dims_; }
  int vEUs() const { return requested_vEUs_; }
  uint64_t input_bytes(size_t index) const { return input_bytes_[index]; }
  // For the upper bounds of dims that loops set; and as the last run left it.
  const Extents& output(size_t index) const { return outputs_[index]; }
  const Extents& actual_output(size_t index) const { return actual_outputs_[index]; }
  uint64_t workspace_bytes() const { return layout_.total; }
  const std::vector<int64_t>& tasks() const { return tasks_; }

  // Where the arguments are. The workspace is 64-byte aligned.
  void set_input(size_t index, const void* data);
  void set_output(size_t index, void* data);
  void set_workspace(void* data);

  // Runs once and waits; `pool` null: alone. With `times`, replaces it by the ranges in their lists' order, each with
  // its last time in this run; zero if it did not run. Failures: failed_precondition from a check of the
  // program; resource_exhausted where a loop sets a dim and what depends on it needs more memory than was planned.
  Status run(WorkerPool* pool, std::vector<RangeTime>* times);

  void run_segment(int32_t phase, int32_t vEU) override;

 private:
  struct Step {
    KernelFunction function;
    void* const* buffers;
    const int64_t* dims;
  };
  struct Range {
    const Step* step;
    int64_t begin, end;
    int32_t stage, vEU;
  };
  // Ranges of one phase on one vEU.
  struct Segment {
    uint32_t begin = 0, end = 0;
  };
  // A `run` instruction.
  struct Run {
    size_t first = 0, count = 0;  // stages
    std::vector<Phase> phases;
    std::vector<Segment> segments;  // phase-major, one for each vEU
    std::vector<Range> ranges;
    bool parallel = false;  // some phase is
    bool stale = false;     // tasks have changed since it was placed
    size_t times = 0;       // where those of its ranges begin
  };
  struct Copy {
    const void* from;
    int32_t input;  // whose pointer is the source, or -1
    void* to;
    int32_t output;
    uint64_t bytes;
  };
  // Where a buffer is at the moment, and the pointers in arguments that must say the same.
  struct Place {
    void* address = nullptr;
    std::vector<uint32_t> pointers;
  };
  // The body, ready to run: a jump is a number of an action.
  struct Action {
    enum class Kind : uint8_t { run, jump, jump_unless, loop, next, copy, swap, check };
    Kind kind = Kind::run;
    int32_t first = 0, last = 0;  // run: phases [first, last); loop, next: number of the loop; swap: the two slots;
                                  // check: the message
    int32_t target = 0;
    const Place *from = nullptr, *to = nullptr;
    uint64_t bytes = 0;
  };
  struct LoopState {
    int64_t count = INT64_MAX;  // as far as it is known before the run
    const Place *trip = nullptr, *condition = nullptr, *next = nullptr, *iteration = nullptr;
    std::vector<int32_t> views;
    int32_t dim = -1;  // set at the end
    int64_t at = 0, trips = 0;
  };
  // Numbers of what depends on dims that loops set.
  struct Varying {
    std::vector<size_t> stages, outputs, slots, loops, views;
    std::vector<std::pair<size_t, size_t>> copies;  // action and instruction
    bool any = false;                               // there are such dims
  };
  struct ViewState {
    const Place* base;
    int64_t first, stride;
  };

  Frame(const LoadedProgram& program, std::span<const program::Stage> stages, std::span<const int64_t> dims, int vEUs);
  Status build(List list);
  Status build_tensors();
  void size_place_tables();
  Status build_steps();
  void add_argument(const program::BufferRef& ref);
  Status build_copies();
  Status build_body();
  Status build_views();
  Status build_loops();
  void add_run(size_t first, size_t count);
  void place_run(Run& run);
  Status fill_step(size_t stage);
  Status fill_view(size_t view);
  Status fill_loop(size_t loop);
  bool varies(const IntExpr& e) const;
  void find_varying();
  Status set_dim(int32_t dim, int64_t value);
  Status refresh();
  Place& place(const program::BufferRef& ref);
  const Place* place(const std::optional<program::BufferRef>& ref) { return ref ? &place(*ref) : nullptr; }
  void move(Place& place, void* address);
  void move_views(const LoopState& loop);
  bool enter(LoopState& loop);
  bool advance(LoopState& loop);
  Status run_actions(WorkerPool* pool);
  void run_phases(Run& run, WorkerPool* pool);
  template <bool timed>
  QUARTET_CALLS_COMPILED_CODE void run_ranges(const Run& run, Segment segment, int32_t vEU);

  const LoadedProgram& program_;
  std::span<const program::Stage> stages_;
  std::vector<int64_t> dims_;  // as bound by the inputs
  std::vector<int64_t> live_;  // as they are at the moment
  int requested_vEUs_;
  std::vector<uint64_t> input_bytes_;
  std::vector<Extents> outputs_, actual_outputs_;
  WorkspaceLayout layout_;
  std::vector<int64_t> slot_offsets_;
  std::vector<int64_t> tasks_;
  std::vector<void*> pointers_;
  std::vector<int64_t> kernel_dims_;
  std::vector<Step> steps_;
  std::vector<Copy> copies_;
  std::vector<Place> places_[6];  // by storage and index
  std::vector<ViewState> views_;
  std::vector<LoopState> loops_;
  std::vector<Action> actions_;
  Varying varying_;
  std::vector<Run> runs_;
  size_t times_count_ = 0;
  const Run* running_ = nullptr;  // by the team
  std::byte* scratch_ = nullptr;
  void* workspace_ = nullptr;
  RangeTime* times_ = nullptr;
};

}  // namespace quartet::runtime
