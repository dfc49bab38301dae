#include "kernel/lower.h"

#include <algorithm>

#include "kernel/contraction.h"
#include "kernel/lowering.h"
#include "roller/construct.h"

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

// A kernel of one expression.
Result<LoweredGroup> finished(const tile::TileGraph& graph, const tile::Fused& fused, const roller::Plan& plan,
                              const CpuModel& device) {
  LoweredGroup group;
  if (plan.kind == roller::Plan::Kind::scatter) return alone(lower_scatter(graph, fused, plan));
  if (plan.kind == roller::Plan::Kind::contract && plan.b != roller::OperandForm::in_place) {
    QUARTET_ASSIGN(Packing packing, lower_packing(graph, fused, plan));
    group.packings.push_back(std::move(packing));
  }
  Lowering lowering(graph, fused, roller::kind_name(plan.kind));
  QUARTET_ASSIGN(const IntExpr tasks, emit(lowering, plan, device));
  QUARTET_ASSIGN(group.main, lowering.finish(tasks));
  return group;
}

}  // namespace

Result<IntExpr> emit(Lowering& lowering, const roller::Plan& plan, const CpuModel& device) {
  switch (plan.kind) {
    case roller::Plan::Kind::map:
      return emit_map(lowering, plan);
    case roller::Plan::Kind::reduce:
      return emit_reduce(lowering, plan, device.isa);
    case roller::Plan::Kind::contract:
      return emit_contract(lowering, plan, device);
    case roller::Plan::Kind::chain:
      return emit_chain(lowering, plan);
    case roller::Plan::Kind::scatter:
    case roller::Plan::Kind::rows:
      break;
  }
  return make_error(Code::internal, "no phase of '%s' has a plan of kind '%s'", lowering.expr().name.c_str(),
                    roller::kind_name(plan.kind));
}

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
  return finished(graph, fused, plan, device);
}

Result<LoweredGroup> lower(const tile::TileGraph& graph, const welder::Group& group, const CpuModel& device) {
  if (group.phases.empty()) {
    QUARTET_ASSIGN(const tile::Fused fused, tile::fuse(graph, group.nodes, group.core, group.domain, group.outputs));
    return lower(graph, fused, group.plan, device);
  }
  std::vector<tile::Fused> fused;
  for (const welder::Group& phase : group.phases) {
    QUARTET_ASSIGN(tile::Fused one, tile::fuse(graph, phase.nodes, phase.core, phase.domain, phase.outputs));
    fused.push_back(std::move(one));
  }
  return lower_rows(graph, group, fused, device);
}

}  // namespace quartet::kernel
