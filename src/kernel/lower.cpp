#include "kernel/lower.h"

#include <algorithm>

#include "kernel/lowering.h"

namespace quartet::kernel {
namespace {

Result<LoweredGroup> alone(Result<Lowered> lowered) {
  if (!lowered.ok()) return lowered.status();
  LoweredGroup group;
  group.main = lowered.take();
  return group;
}

// A domain that has no element whatever the dims: a kernel without tasks.
bool is_empty(const tile::TensorExpr& expr) {
  return std::any_of(expr.axes.begin(), expr.axes.begin() + expr.spatial, [](const IntExpr& e) { return e.is(0); });
}

Result<LoweredGroup> lower_empty(const tile::TileGraph& graph, const tile::Fused& fused) {
  Lowering lowering(graph, fused, "empty");
  lowering.add_outputs();
  return alone(lowering.finish(IntExpr(0)));
}

}  // namespace

Result<LoweredGroup> lower(const tile::TileGraph& graph, const tile::Fused& fused, const roller::Plan& plan,
                           const CpuModel& device) {
  const tile::Reduction reduction = fused.expr.reduction;
  const bool contraction = reduction == tile::Reduction::contraction;
  using Kind = roller::Plan::Kind;
  const bool due = reduction == tile::Reduction::none      ? plan.kind == Kind::map
                   : reduction == tile::Reduction::scatter ? plan.kind == Kind::scatter
                   : contraction                           ? plan.kind == Kind::contract || plan.kind == Kind::chain
                                                           : plan.kind == Kind::reduce;
  if (!due)
    return make_error(Code::internal, "the plan of '%s' is of another kind than its reduction",
                      fused.expr.name.c_str());
  if (is_empty(fused.expr)) return lower_empty(graph, fused);
  switch (plan.kind) {
    case roller::Plan::Kind::map:
      return alone(lower_map(graph, fused, plan));
    case roller::Plan::Kind::reduce:
      return alone(lower_reduce(graph, fused, plan, device.isa));
    case roller::Plan::Kind::contract:
      return lower_contract(graph, fused, plan, device);
    case roller::Plan::Kind::chain:
      return alone(lower_chain(graph, fused, plan));
    case roller::Plan::Kind::scatter:
      return alone(lower_scatter(graph, fused, plan));
  }
  return make_error(Code::internal, "the plan of '%s' has no kind", fused.expr.name.c_str());
}

Result<LoweredGroup> lower(const tile::TileGraph& graph, const welder::Group& group, const CpuModel& device) {
  QUARTET_ASSIGN(const tile::Fused fused, tile::fuse(graph, group.nodes, group.core, group.domain, group.outputs));
  return lower(graph, fused, group.plan, device);
}

}  // namespace quartet::kernel
