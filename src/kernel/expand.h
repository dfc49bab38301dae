// Rewrites operations that no instruction set computes in one go into those it does: the first thing a code generator
// calls.
//
// After `expand` a kernel holds only operations that LLVM lowers inline for the class, so that its code calls nothing:
// no exp, log, tanh, erf, sigmoid, sin, cos, pow, and no rem of floats; on sse2 no floor, ceil, trunc, round_even and
// no conversion of f16; nowhere arithmetic on f16 and bf16, which becomes f32 arithmetic between casts, and casts to
// bf16 only as integer arithmetic. The expansions are the same scalar operations for every vector width of a class, so
// the results depend on the class alone, and only through fma. Their bounds stand in the folder's README.
#pragma once

#include "base/status.h"
#include "device/device.h"
#include "kernel/ir.h"

namespace quartet::kernel {

// Expects a kernel that verifies; gives one that verifies.
Result<Kernel> expand(const Kernel& kernel, Isa isa);

}  // namespace quartet::kernel
