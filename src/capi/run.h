// The arguments of a run, checked against a program.
#pragma once

#include <string>
#include <vector>

#include "capi/program.h"
#include "capi/tensor.h"

namespace quartet::capi {

// invalid_argument unless there are as many as the program has.
Status check_count(size_t given, size_t wanted, const char* name);
// "input 0 'x': "
std::string where(const char* role, size_t index, const program::TensorInfo& info);

// Whether an output's extents are known only after the run.
bool depends_on_run(const program::Program& program, const program::TensorInfo& info);

// Whether a checked descriptor leaves an input out that has a default; then `ref` is that.
bool takes_default(const runtime::LoadedProgram& program, size_t index, const quartet_tensor& tensor, bool with_memory,
                   TensorRef& ref);

// Checked inputs: their shapes point into the caller's descriptors.
struct InputRefs {
  std::vector<TensorRef> tensors;
  std::vector<std::span<const int64_t>> shapes;
};
Result<InputRefs> input_refs(const quartet_program& program, const quartet_tensor* inputs, uint32_t count,
                             bool with_memory);

}  // namespace quartet::capi
