// Map kernels: every output element is the body at its point.
#include "kernel/lowering.h"

namespace quartet::kernel {

Result<Lowered> lower_map(const tile::TileGraph& graph, const tile::Fused& fused, const roller::Plan& plan) {
  Lowering lowering(graph, fused, "map");
  QUARTET_TRY(add_spatial_runs(lowering, plan));
  lowering.add_inputs(fused.expr.outputs, {});
  lowering.add_outputs();
  const IntExpr tasks = spatial_loops(lowering, plan, [&] { Point(lowering).store_outputs(); });
  return lowering.finish(tasks);
}

}  // namespace quartet::kernel
