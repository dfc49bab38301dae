// The worst error of the f32 expansions over arguments [0, 2^32) taken every `step` bits, for the two meanings of fma.
// Each lies in a translation unit of its own, compiled for its machine.
#pragma once

#include <cstdint>

#include "base/scalar_ops.h"

namespace quartet::kernel {

struct Worst {
  double ulps = 0;  // of f32 at the exact result
  float argument = 0;
  uint64_t wrong = 0;  // NaN, infinity or sign of zero where another is due
  float wrong_argument = 0;
  uint64_t digest = 0;  // of all results
};

// Needs a processor with AVX2 and FMA.
Worst sweep_fused(ScalarOp op, uint64_t step);
Worst sweep_unfused(ScalarOp op, uint64_t step);

// One value, as the expansion computes it.
uint32_t value_fused(ScalarOp op, uint32_t bits);
uint32_t value_unfused(ScalarOp op, uint32_t bits);

}  // namespace quartet::kernel
