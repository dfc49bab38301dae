// Checks of what a caller gives to a run.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"
#include "program/program.h"
#include "runtime/executor.h"

namespace quartet::runtime {

// An input or output of a program. Its words are only put together for an error.
struct TensorPlace {
  const program::Program& program;
  bool output;
  size_t index;
  std::string name() const;
  DType dtype() const { return (output ? program.outputs : program.inputs)[index].dtype; }
};

// Enough bytes, a pointer unless zero are needed, aligned to the element.
Status check_memory(const void* data, uint64_t given, uint64_t needed, const TensorPlace& place);
Status check_shape(std::span<const int64_t> expected, std::span<const int64_t> given, const TensorPlace& place);
Status check_workspace(const void* data, uint64_t given, uint64_t needed);

// A stretch of memory that a run reads or writes.
struct Stretch {
  uintptr_t begin = 0;
  uint64_t bytes = 0;
  bool overlaps(const Stretch& other) const {
    return bytes != 0 && other.bytes != 0 && begin < other.begin + other.bytes && other.begin < begin + bytes;
  }
};
inline Stretch stretch(const void* data, uint64_t bytes) { return {reinterpret_cast<uintptr_t>(data), bytes}; }
// No output overlaps an input, another output or the workspace (empty if it is the runtime's own).
Status check_overlaps(const program::Program& program, std::span<const Stretch> inputs,
                      std::span<const Stretch> outputs, const Stretch& workspace);

}  // namespace quartet::runtime
