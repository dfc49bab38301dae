// A list of stages made ready to run for certain dims and a number of vEUs: every argument a pointer, every count a
// number, every task range in its phase. Running it evaluates nothing and allocates nothing.
#pragma once

#include <cstdint>
#include <memory>
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
  const Extents& output(size_t index) const { return outputs_[index]; }
  uint64_t workspace_bytes() const { return layout_.total; }
  const std::vector<int64_t>& tasks() const { return tasks_; }

  // Where the arguments are. The workspace is 64-byte aligned.
  void set_input(size_t index, const void* data);
  void set_output(size_t index, void* data);
  void set_workspace(void* data);

  // Runs once and waits; `pool` null: alone. With `times`, replaces it by this run's ranges in their lists' order.
  void run(WorkerPool* pool, std::vector<RangeTime>* times);

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
  struct Copy {
    const void* from;
    int32_t input;  // whose pointer is the source, or -1
    void* to;
    int32_t output;
    uint64_t bytes;
  };
  struct Use {  // of an input, output or slot by an argument
    int32_t index;
    uint32_t pointer;
  };
  struct SlotUse {
    uint64_t offset;
    uint32_t pointer;
  };

  Frame(const LoadedProgram& program, std::span<const program::Stage> stages, std::span<const int64_t> dims, int vEUs);
  Status build(List list);
  Status build_tensors();
  Status build_steps();
  void add_argument(const program::BufferRef& ref);
  Status build_copies();
  void build_ranges();
  template <bool timed>
  QUARTET_CALLS_COMPILED_CODE void run_ranges(Segment segment, int32_t vEU);

  const LoadedProgram& program_;
  std::span<const program::Stage> stages_;
  std::vector<int64_t> dims_;
  int requested_vEUs_;
  std::vector<uint64_t> input_bytes_;
  std::vector<Extents> outputs_;
  WorkspaceLayout layout_;
  std::vector<int64_t> slot_offsets_;
  std::vector<int64_t> tasks_;
  std::vector<void*> pointers_;
  std::vector<int64_t> kernel_dims_;
  std::vector<Step> steps_;
  std::vector<Copy> copies_;
  std::vector<Use> input_uses_, output_uses_;
  std::vector<SlotUse> slot_uses_;
  std::vector<Range> ranges_;
  std::vector<Segment> segments_;  // phase-major, one for each vEU
  std::vector<Phase> phase_list_;
  std::byte* scratch_ = nullptr;
  void* workspace_ = nullptr;
  RangeTime* times_ = nullptr;
};

}  // namespace quartet::runtime
