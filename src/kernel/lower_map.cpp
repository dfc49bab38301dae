// Map kernels: every output element is the body at its point.
#include "kernel/lowering.h"

namespace quartet::kernel {

Result<IntExpr> emit_map(Lowering& lowering, const roller::Plan& plan) {
  QUARTET_TRY(add_spatial_runs(lowering, plan));
  lowering.add_inputs(lowering.expr().outputs, {});
  lowering.add_outputs();
  return spatial_loops(lowering, plan, [&] { Point(lowering).store_outputs(); });
}

}  // namespace quartet::kernel
