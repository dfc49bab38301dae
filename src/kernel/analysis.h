// Facts about a kernel that more than one reader needs.
#pragma once

#include <vector>

#include "kernel/ir.h"

namespace quartet::kernel {

// By ValueId: whether a value may differ between the lanes of the vector loop or reduce around it. Not varying is
// certain: constants, dims, what is computed from such alone, and what stands outside every vector loop and reduce.
// Bounds of loops and reduces and conditions of branches are never varying. Safe on kernels that were not verified.
std::vector<bool> varying_values(const Kernel& kernel);

// Statements of the kernel, those in regions included.
size_t count_statements(const Kernel& kernel);

// The canonical form of a constant's bits: signed integers sign-extended, everything else zero-extended, bool 0 or 1.
int64_t canonical_bits(DType dtype, int64_t bits);

}  // namespace quartet::kernel
