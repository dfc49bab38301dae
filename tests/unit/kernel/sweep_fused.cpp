#include "unit/kernel/sweep_impl.h"

namespace quartet::kernel {
using Fused = Sweep<NativeMachine<float, 8, true>>;
Worst sweep_fused(ScalarOp op, uint64_t step) { return Fused::run(op, step); }
uint32_t value_fused(ScalarOp op, uint32_t bits) { return Fused::value(op, bits); }
}  // namespace quartet::kernel
