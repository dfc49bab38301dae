// A program ready to run: code mapped, constants found, operands prepared. Immutable and shared by threads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/kernel_abi.h"
#include "base/os.h"
#include "base/status.h"
#include "device/device.h"
#include "program/program.h"
#include "runtime/allocator.h"

namespace quartet::runtime {

class WorkerPool;
class FramePool;

// A constant's bytes, kept alive by `owner` (may be null if they outlive the program). Any element-aligned address.
struct ConstantData {
  const void* data = nullptr;
  uint64_t bytes = 0;
  std::shared_ptr<const void> owner;
};
// Finds a constant of the graph by digest; nothing if it is not known.
using ConstantProvider = std::function<std::optional<ConstantData>(const Digest&)>;

struct LoadOptions {
  std::shared_ptr<Allocator> allocator;  // null: the system's
  ConstantProvider constants;            // may be empty if the artifact carries all of them
  std::shared_ptr<WorkerPool> pool;      // used for prepare; null: the calling thread alone
  int vEUs = 1;                          // for prepare
  const CpuModel* host = nullptr;        // whose features the code may use; null: host_cpu()
  Os* os = &real_os();
};

// The shape of one input or output.
using Shape = std::vector<int64_t>;

class LoadedProgram : public std::enable_shared_from_this<LoadedProgram> {
 public:
  // Loads an artifact: checks every byte, refuses features the host lacks (unsupported) before it maps code, finds the
  // constants (not_found names the digest) and runs the prepare stages. `bytes` need not outlive the call, unless
  // `owner` is given: then large inline constants are used in place and `owner` is kept.
  static Result<std::shared_ptr<const LoadedProgram>> load(std::span<const uint8_t> artifact,
                                                           const LoadOptions& options,
                                                           std::shared_ptr<const void> owner = nullptr);
  // The same for a program whose kernels are functions of this process; kernel k is functions[k].
  static Result<std::shared_ptr<const LoadedProgram>> from_functions(program::Program program,
                                                                     std::span<const KernelFunction> functions,
                                                                     const LoadOptions& options);
  ~LoadedProgram();
  LoadedProgram(const LoadedProgram&) = delete;
  LoadedProgram& operator=(const LoadedProgram&) = delete;

  const program::Program& program() const { return program_; }
  const std::vector<program::TensorInfo>& inputs() const { return program_.inputs; }
  const std::vector<program::TensorInfo>& outputs() const { return program_.outputs; }
  // Key-value texts the compiler left (compile times, predicted times, dumps); empty for from_functions.
  const std::map<std::string, std::string, std::less<>>& metadata() const { return metadata_; }

  // Every dim symbol is bound by the inputs' shapes.
  bool is_static() const { return program_.dims.empty(); }
  // Values of the dim symbols for these input shapes. Errors name the input, the axis, what was expected and what
  // given.
  Result<std::vector<int64_t>> bind_dims(std::span<const std::span<const int64_t>> input_shapes) const;
  // Shapes of the outputs for these input shapes, without running; a dim that the run sets has its upper bound, and an
  // extent of dims without one is -1.
  Result<std::vector<Shape>> output_shapes(std::span<const std::span<const int64_t>> input_shapes) const;
  // Bytes of workspace (64-byte aligned) a run on `vEUs` needs, beside what grows.
  Result<uint64_t> workspace_bytes(std::span<const std::span<const int64_t>> input_shapes, int vEUs) const;

  uint64_t prepared_bytes() const { return prepared_bytes_; }
  uint64_t code_bytes() const { return code_bytes_; }
  // Predicted share of the run time in kernels from the built-in library, 0 to 1, for the given number of tasks a
  // stage.
  double library_share(std::span<const int64_t> tasks) const;

  // What an input is when a run leaves it out; null if it may not be left out.
  const program::InputDefault* input_default(size_t input) const;

  // For executors.
  KernelFunction function(int32_t kernel) const { return functions_[static_cast<size_t>(kernel)]; }
  const void* constant(int32_t index) const { return constants_[static_cast<size_t>(index)].data; }
  void* prepared(int32_t index) const { return prepared_[static_cast<size_t>(index)]; }
  const std::shared_ptr<Allocator>& allocator() const { return allocator_; }
  FramePool& frames() const { return *frames_; }
  // Gives back memory kept for later runs.
  void trim() const;

 private:
  LoadedProgram();
  static Result<std::shared_ptr<const LoadedProgram>> finish(std::shared_ptr<LoadedProgram> loaded,
                                                             const LoadOptions& options);
  Status find_constants(const LoadOptions& options);
  Status prepare(const LoadOptions& options);

  program::Program program_;
  std::map<std::string, std::string, std::less<>> metadata_;
  std::shared_ptr<const void> code_;  // keeps the mapping
  std::vector<KernelFunction> functions_;
  std::map<Digest, ConstantData> inline_constants_;  // from the artifact's section
  std::vector<ConstantData> constants_;
  std::vector<void*> prepared_;
  Block prepared_block_;
  uint64_t prepared_bytes_ = 0, code_bytes_ = 0;
  std::shared_ptr<Allocator> allocator_;
  std::unique_ptr<FramePool> frames_;
};

}  // namespace quartet::runtime
