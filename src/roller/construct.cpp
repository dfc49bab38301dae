#include "roller/construct.h"

#include <algorithm>

#include "roller/contract.h"
#include "roller/scatter.h"
#include "roller/spatial.h"

namespace quartet::roller {

const char* kind_name(Plan::Kind kind) {
  switch (kind) {
    case Plan::Kind::map:
      return "map";
    case Plan::Kind::reduce:
      return "reduce";
    case Plan::Kind::contract:
      return "contract";
    case Plan::Kind::chain:
      return "chain";
    case Plan::Kind::scatter:
      return "scatter";
    case Plan::Kind::rows:
      return "rows";
  }
  return "unknown";
}

const char* form_name(OperandForm form) {
  switch (form) {
    case OperandForm::in_place:
      return "in place";
    case OperandForm::prepared:
      return "prepared";
    case OperandForm::packed:
      return "packed";
  }
  return "unknown";
}

Result<std::vector<Plan>> construct(const tile::TileGraph& graph, const tile::Fused& fused, const CpuModel& device,
                                    size_t k) {
  std::vector<Plan> plans;
  const bool contraction = fused.expr.reduction == tile::Reduction::contraction;
  if (contraction) {
    // What no tile reads is better written out first than walked point by point.
    QUARTET_ASSIGN(plans, contract_plans(graph, fused, device));
  }
  if (fused.expr.reduction == tile::Reduction::scatter)
    plans.push_back(scatter_plan(graph, fused, device));
  else if (!contraction || shares_little(fused, device))
    for (Plan& plan : spatial_plans(graph, fused, device)) plans.push_back(std::move(plan));
  // Equal plans stay in the order they were constructed in.
  std::vector<size_t> order(plans.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t x, size_t y) {
    const Plan &a = plans[x], &b = plans[y];
    // What runs along lanes is chosen by the work alone: a slower choice must not win by being worth splitting.
    const auto key = [&](const Plan& p) {
      return contraction ? std::pair(p.wall, p.seconds) : std::pair(p.seconds, p.wall);
    };
    const std::pair<double, double> key_a = key(a), key_b = key(b);
    return key_a != key_b ? key_a < key_b : x < y;
  });
  std::vector<Plan> best;
  for (const size_t i : order) {
    if (best.size() < std::max<size_t>(k, 1)) best.push_back(std::move(plans[i]));
  }
  return best;
}

Result<std::vector<Plan>> construct(const tile::TileGraph& graph, const std::vector<int32_t>& nodes, int32_t core,
                                    int32_t domain, const std::vector<tile::TensorId>& outputs, const CpuModel& device,
                                    size_t k) {
  QUARTET_ASSIGN(const tile::Fused fused, tile::fuse(graph, nodes, core, domain, outputs));
  return construct(graph, fused, device, k);
}

namespace {

std::string print_rows(const Plan& plan) {
  std::string text = "rows";
  for (size_t r = 0; r < plan.row_extents.size(); ++r) {
    text += " " + plan.row_extents[r].to_text();
    text += plan.task_tile[r] == 0 ? "/all" : "/" + std::to_string(plan.task_tile[r]);
  }
  for (const Plan::Local& local : plan.locals)
    text += format(", t%d %lld a row", local.tensor, static_cast<long long>(local.inner));
  text += format(" tasks %lld\n", static_cast<long long>(plan.tasks));
  text += format("predicted %.2f us on one core, %.2f us on all; %.3g flops, %.3g bytes to memory, %.3g near\n",
                 plan.seconds * 1e6, plan.wall * 1e6, plan.flops, plan.dram_bytes, plan.l2_bytes);
  return text;
}

}  // namespace

std::string print(const Plan& plan) {
  if (plan.kind == Plan::Kind::rows) return print_rows(plan);
  std::string text = kind_name(plan.kind);
  text += " runs";
  for (size_t r = 0; r < plan.merged.size(); ++r) {
    text += " {";
    for (size_t i = 0; i < plan.merged[r].size(); ++i) text += (i > 0 ? "," : "") + std::to_string(plan.merged[r][i]);
    text += "}";
    if (plan.kind == Plan::Kind::contract || r >= plan.task_tile.size()) continue;
    text += plan.task_tile[r] == 0 ? "/all" : "/" + std::to_string(plan.task_tile[r]);
  }
  if (plan.kind == Plan::Kind::contract) {
    text += format(" tile %dx%d unroll %d task %lldx%lld a %s b %s", plan.rows, plan.columns, plan.unroll,
                   static_cast<long long>(plan.task_m), static_cast<long long>(plan.task_n), form_name(plan.a),
                   form_name(plan.b));
  } else {
    text += " lanes along " + (plan.vector_axis >= 0             ? "run " + std::to_string(plan.vector_axis)
                               : plan.kind == Plan::Kind::reduce ? std::string("the reduction")
                                                                 : std::string("nothing"));
  }
  if (plan.kind == Plan::Kind::chain && plan.row_axis >= 0)
    text += format(", %d points of run %d", plan.rows, plan.row_axis);
  text += format(" tasks %lld\n", static_cast<long long>(plan.tasks));
  text += format("predicted %.2f us on one core, %.2f us on all; %.3g flops, %.3g bytes to memory, %.3g to L2",
                 plan.seconds * 1e6, plan.wall * 1e6, plan.flops, plan.dram_bytes, plan.l2_bytes);
  return text + "\n";
}

}  // namespace quartet::roller
