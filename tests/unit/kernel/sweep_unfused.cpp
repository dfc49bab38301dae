#include "unit/kernel/sweep_impl.h"

namespace quartet::kernel {
using Unfused = Sweep<NativeMachine<float, 4, false>>;
Worst sweep_unfused(ScalarOp op, uint64_t step) { return Unfused::run(op, step); }
uint32_t value_unfused(ScalarOp op, uint32_t bits) { return Unfused::value(op, bits); }
}  // namespace quartet::kernel
