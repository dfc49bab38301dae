// Running a loaded program.
//
// Tensors are dense and row-major, at any element-aligned address. A null pointer is allowed only for zero bytes.
// Outputs may overlap neither each other nor an input. The floating-point environment is set to the default (round to
// nearest, exceptions masked, denormals as the program says) while kernels run, and given back afterwards.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "runtime/program.h"
#include "runtime/worker_pool.h"

namespace quartet::runtime {

struct InputTensor {
  const void* data = nullptr;
  uint64_t bytes = 0;              // that may be read; at least what the shape needs
  std::span<const int64_t> shape;  // actual extents
};

struct OutputTensor {
  void* data = nullptr;
  uint64_t bytes = 0;                             // that may be written; at least what the shape needs
  std::optional<std::span<const int64_t>> shape;  // checked against the actual one if given; open extents are not
  // Of an output whose size only the run knows (an extent that is -1 before it) and that has no `data`: takes the
  // memory that the run makes, which may be larger than the result. With `data` the run fails if it does not suffice.
  Block* made = nullptr;
};

// When one range of tasks ran; clock of Os::monotonic_ns.
struct RangeTime {
  int32_t stage = 0, vEU = 0;
  int64_t begin_task = 0, end_task = 0;
  int64_t begin_ns = 0, end_ns = 0;
};

struct RunOptions {
  int vEUs = 1;  // at most WorkerPool::kMaxVEUs; above 1 only with a pool
  WorkerPool* pool = nullptr;
  void* workspace = nullptr;                // null: from the program's own pool of workspaces; else 64-byte aligned
  uint64_t workspace_bytes = 0;             // of `workspace`, at least LoadedProgram::workspace_bytes
  std::vector<RangeTime>* times = nullptr;  // replaced by the times of this run's ranges
  // Replaced by the outputs' shapes: where the run has set a dim, smaller than the bound that memory is given for. The
  // output is dense at the beginning of its memory.
  std::vector<Shape>* output_shapes = nullptr;
};

// Runs once and waits. Any number of threads may run one program at once.
Status run(const LoadedProgram& program, std::span<const InputTensor> inputs, std::span<const OutputTensor> outputs,
           const RunOptions& options);

class Frame;

// A program with its tensors and workspace, for repeated runs by one thread at a time.
class Binding {
 public:
  struct Options {
    int vEUs = 1;
    std::shared_ptr<WorkerPool> pool;
  };
  static Result<std::unique_ptr<Binding>> create(std::shared_ptr<const LoadedProgram> program, Options options);
  ~Binding();

  // The memory must stay until another tensor is set or the binding is destroyed; `shape` is copied. Inputs are read
  // and outputs written at each run. Failures: invalid_argument.
  Status set_input(int index, const InputTensor& tensor);
  Status set_output(int index, const OutputTensor& tensor);
  // Back to memory of the binding's own, made by `prepare`.
  Status clear_output(int index);
  // Lends workspace, 64-byte aligned, of at least `workspace_bytes()`; null: the binding's own again.
  Status set_workspace(void* data, uint64_t bytes);

  // Bytes of workspace needed with the inputs set now.
  Result<uint64_t> workspace_bytes() const;
  // Checks what is set and allocates what is missing. Failures: failed_precondition when an input is not set,
  // invalid_argument, out_of_memory, resource_exhausted.
  Status prepare();
  // Prepares if something was set since, then runs once and waits. Prepared, it allocates nothing and takes no lock,
  // unless memory has to grow.
  Status run(std::vector<RangeTime>* times = nullptr);

  // After a successful prepare: the shape and memory of an output. Where the run sets a dim, the shape is that of the
  // last run; before one an extent without a bound is -1, and there is no memory.
  const Shape& output_shape(int index) const;
  void* output_data(int index) const;
  uint64_t output_bytes(int index) const;
  const LoadedProgram& program() const { return *program_; }

 private:
  Binding(std::shared_ptr<const LoadedProgram> program, Options options);
  struct State;

  std::shared_ptr<const LoadedProgram> program_;
  std::unique_ptr<State> state_;
};

}  // namespace quartet::runtime
