// The calling convention between the runtime and compiled CPU kernels. Part of every cached artifact: a change here
// needs a new artifact version.
#pragma once

#include <cstdint>

namespace quartet {

// Runs tasks [begin, end) of a kernel. `buffers`: one pointer per argument buffer of the kernel, in order, each aligned
// as the kernel's buffer says. `dims`: the kernel's dim values. `scratch`: memory private to the call, 64-byte aligned
// and at least as large as the kernel's task-scope buffers laid out in order, each rounded up to 64 bytes; may be null
// when there are none. C calling convention; the function calls nothing, keeps nothing and leaves the FP control word
// alone.
using KernelFunction = void (*)(void* const* buffers, const int64_t* dims, int64_t begin, int64_t end, void* scratch);

}  // namespace quartet
