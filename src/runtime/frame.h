// A program's body made ready to run for certain dims and a number of vEUs: every argument a pointer, every count a
// number, every task range in its phase. Running it evaluates nothing and allocates nothing.
//
// The calling thread goes through the instructions. It runs phases for vEU 0 alone itself; a row of phases with a
// parallel one is handed to the team. Control costs it some nanoseconds an instruction: a loop's swaps and views
// rewrite the few pointers of the arguments that name them.
//
// What depends on dims that the run sets is evaluated anew when they are set. What grows is in rooms: memory of the
// frame's own, kept from run to run, or an output's. Nothing in a room is touched before its room suffices.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/kernel_abi.h"
#include "base/status.h"
#include "program/program.h"
#include "runtime/allocator.h"
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
  // For the upper bounds of dims that the run sets (planned_extents); and as the last run left it.
  const Extents& output(size_t index) const { return outputs_[index]; }
  const Extents& actual_output(size_t index) const { return actual_outputs_[index]; }
  // Whether its size is known in the run alone.
  bool output_grows(size_t index) const { return output_room(index) >= 0; }
  uint64_t workspace_bytes() const { return layout_.total; }
  const std::vector<int64_t>& tasks() const { return tasks_; }

  // Where the arguments are. The workspace is 64-byte aligned.
  void set_input(size_t index, const void* data);
  void set_output(size_t index, void* data);
  void set_workspace(void* data);
  // An output that grows: in the caller's memory, or in memory that the frame makes, which can be taken after a run.
  void lend_output(size_t index, void* data, uint64_t bytes);
  void own_output(size_t index);
  Block release_output(size_t index);
  void* output_memory(size_t index) const { return rooms_[static_cast<size_t>(output_room(index))].data; }

  // Runs once and waits; `pool` null: alone. With `times`, replaces it by the ranges in their lists' order, each with
  // its last time in this run; zero if it did not run. Failures: failed_precondition from a check of the
  // program; resource_exhausted or out_of_memory where the run sets a dim and what depends on it needs more memory than
  // was planned, lent or can be had.
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
  // Where a buffer is at the moment, and the pointers in arguments that must say the same.
  struct Place {
    void* address = nullptr;
    std::vector<uint32_t> pointers;
    int32_t room = -1;  // that it is in, if it grows
    uint64_t need = 0;  // bytes, of what grows or is of dims that the run sets
  };
  // A `run` instruction.
  struct Run {
    size_t first = 0, count = 0;  // stages
    std::vector<Phase> phases;
    std::vector<Segment> segments;  // phase-major, one for each vEU
    std::vector<Range> ranges;
    bool parallel = false;              // some phase is
    bool stale = false;                 // tasks have changed since it was placed
    std::vector<const Place*> growing;  // arguments that are in rooms
    size_t times = 0;                   // where those of its ranges begin
  };
  struct Copy {
    const void* from;
    int32_t input;  // whose pointer is the source, or -1
    void* to;
    int32_t output;
    uint64_t bytes;
  };
  // Memory that grows: a region of the program's or an output.
  struct Room {
    Block block;
    std::byte* data = nullptr;
    uint64_t bytes = 0;
    bool lent = false;                // the caller's: it cannot grow
    int32_t output = -1;              // whose it is
    std::vector<Place*> places;       // slots, or the output
    std::vector<int32_t> views = {};  // ascending
  };
  // The body, ready to run: a jump is a number of an action.
  struct Action {
    enum class Kind : uint8_t { run, jump, jump_unless, loop, next, copy, swap, check, grow, set, read };
    Kind kind = Kind::run;
    int32_t first = 0, last = 0;  // run: phases [first, last); loop, next: number of the loop; swap: the two slots;
                                  // check: the message; grow: its view, or -1; set: dim and instruction; read: dim
                                  // and message
    int32_t target = 0;
    const Place *from = nullptr, *to = nullptr;
    uint64_t bytes = 0;
    bool from_varies = false, to_varies = false;  // copy: the buffer's size is not said to be `bytes`
  };
  struct LoopState {
    int64_t count = INT64_MAX;  // as far as it is known before the run
    const Place *trip = nullptr, *condition = nullptr, *next = nullptr, *iteration = nullptr;
    std::vector<int32_t> views;
    int32_t dim = -1;  // set at the end
    int64_t at = 0, trips = 0;
  };
  // Something with numbers that depend on dims that the run sets.
  struct Item {
    enum class Kind : uint8_t { slot, output, stage, loop, view, copy };
    Kind kind;
    size_t index;               // of a copy: its action
    std::vector<int32_t> dims;  // that the run sets, ascending
    size_t instruction = 0;     // of a copy
  };
  struct ViewState {
    const Place* base;
    int32_t base_view;  // -1: the base is no view
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
  // frame_dims.cpp
  void find_items();
  void add_item(Item::Kind kind, size_t index, std::initializer_list<std::span<const IntExpr>> lists,
                size_t instruction = 0);
  bool is_known(const Item& item) const;
  Status begin_dims();
  Status set_dim(int32_t dim, int64_t value);
  Status read_dim(const Action& action);
  Status refresh(int32_t dim);
  Status evaluate(const Item& item);
  Status evaluate_slot(size_t slot);
  Status evaluate_output(size_t output);
  Status evaluate_stage(size_t stage);
  // frame_rooms.cpp
  void make_rooms();
  int32_t output_room(size_t index) const { return output_rooms_[index]; }
  bool is_there(const Place& place) const;
  Status check_there(const Place* place) const;
  Status grow(const Action& action);
  Status enlarge(Room& room, uint64_t needed, uint64_t kept);
  Status find_scratch(const Run& run);
  void settle(Room& room);
  void swap_slots(int32_t a, int32_t b);
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
  std::vector<bool> known_;    // false: open, and not set yet in this run
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
  std::vector<Item> items_;
  std::vector<std::vector<size_t>> items_of_;  // by dim: numbers of the items that depend on it
  std::vector<bool> stage_varies_;
  std::vector<uint64_t> stage_scratch_;  // of one vEU, of stages that vary
  bool any_open_ = false;
  std::vector<Room> rooms_;  // the regions', then the outputs'
  std::vector<int32_t> output_rooms_;
  Block own_scratch_;           // when what was planned has not sufficed
  uint64_t scratch_bytes_ = 0;  // of one vEU
  std::vector<Run> runs_;
  size_t times_count_ = 0;
  const Run* running_ = nullptr;  // by the team
  std::byte* scratch_ = nullptr;
  void* workspace_ = nullptr;
  RangeTime* times_ = nullptr;
};

}  // namespace quartet::runtime
