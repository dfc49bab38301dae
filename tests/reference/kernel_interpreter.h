// Runs kernel IR as its header defines it, one lane and one task at a time: the meaning compiled code is held to.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "device/device.h"
#include "kernel/ir.h"

namespace quartet::reference {

// Runs tasks [begin, end). `arguments`: the memory of each argument buffer, in order, with at least the buffer's
// elements. `dims`: the kernel's dim values. The class decides only whether fma is fused. Vector loops run backwards,
// so that a kernel whose lanes depend on each other shows.
//
// Every access is checked: an index outside a buffer, an element of an output written by two tasks, or an operation
// that kernel/expand.h was to replace fails with a message that names kernel, task and statement.
Status interpret(const kernel::Kernel& kernel, Isa isa, std::span<const std::span<uint8_t>> arguments,
                 std::span<const int64_t> dims, int64_t begin, int64_t end);

// All tasks. Gives their number.
Result<int64_t> interpret(const kernel::Kernel& kernel, Isa isa, std::span<const std::span<uint8_t>> arguments,
                          std::span<const int64_t> dims);

}  // namespace quartet::reference
