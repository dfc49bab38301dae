// From the shapes of a program's inputs to its dims, and from dims to sizes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "program/program.h"

namespace quartet::runtime {

using Shapes = std::span<const std::span<const int64_t>>;

// "input 2 'x'".
std::string input_name(const program::Program& program, size_t index);
std::string output_name(const program::Program& program, size_t index);

// Gives every dim symbol its value into `dims` (one for each of the program's): an input axis that is exactly a symbol
// binds it, every other axis must be what its expression then says; a dim that the run sets has its upper bound, or its
// lower one if it is open. Errors name input, axis, expected and given.
Status bind_dims(const program::Program& program, Shapes shapes, std::span<int64_t> dims);

// Value of an expression that counts something; resource_exhausted, naming `what`, if it overflows or is negative.
Result<int64_t> count_at(const IntExpr& e, std::span<const int64_t> dims, const char* what);

// Extents and bytes of a tensor.
struct Extents {
  std::vector<int64_t> shape;
  uint64_t bytes = 0;
};
Result<Extents> extents_at(const program::TensorInfo& tensor, std::span<const int64_t> dims, const std::string& who);
// The same before the run: an extent of open dims is kOpenExtent, and bytes are then 0.
inline constexpr int64_t kOpenExtent = -1;
Result<Extents> planned_extents(const program::Program& program, const program::TensorInfo& tensor,
                                std::span<const int64_t> dims, const std::string& who);

// What a run needs beside its arguments and what grows: the arena, then scratch for each vEU. Kernels whose scratch is
// of open dims are not counted.
struct WorkspaceLayout {
  uint64_t arena_bytes = 0;    // rounded up to 64
  uint64_t scratch_bytes = 0;  // of one vEU, rounded up to 64
  uint64_t total = 0;
};
Result<WorkspaceLayout> workspace_at(const program::Program& program, std::span<const program::Stage> stages,
                                     bool arena, std::span<const int64_t> dims, int vEUs);

}  // namespace quartet::runtime
