// The last step of whatever builds or rewrites a kernel.
#pragma once

#include "kernel/ir.h"

namespace quartet::kernel {

// Drops statements without effect whose results nobody uses, then numbers the values 0, 1, ... in the order of their
// definitions. The kernel means the same. Expects a well-formed kernel in which some value numbers may be unused.
void clean(Kernel& kernel);

// Puts the buffers that are arguments before task scratch, each kind in its own order.
void arguments_first(Kernel& kernel);

}  // namespace quartet::kernel
