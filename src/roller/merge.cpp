#include "roller/merge.h"

#include <algorithm>

namespace quartet::roller {

using tile::BodyNode;
using tile::Fused;
using tile::TensorExpr;
using tile::TileGraph;

Accesses accesses(const TileGraph& graph, const Fused& fused) {
  Accesses all;
  all.ranges = graph.ranges(fused.expr);
  const auto add = [&](const IntExpr& e) {
    if (e.contains_any(is_axis_symbol)) all.expressions.push_back(e.simplify(all.ranges));
  };
  for (const tile::Read& read : fused.expr.reads) {
    const tile::TensorId t = fused.inputs[static_cast<size_t>(read.operand)];
    add(tile::flat_offset(fused.expr, read, graph.tensors[static_cast<size_t>(t)].type));
    for (const tile::Guard& guard : read.guards) add(guard.value), add(guard.extent);
  }
  for (const BodyNode& node : fused.expr.body) {
    if (node.kind == BodyNode::Kind::index) add(node.index);
  }
  return all;
}

bool mergeable(const TensorExpr& expr, const Accesses& accesses, const std::vector<int32_t>& axes) {
  if (axes.size() < 2) return true;
  IntExpr number, stride = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    number += IntExpr::axis(axes[i]) * stride;
    stride *= expr.axes[static_cast<size_t>(axes[i])];
  }
  const auto replaced = [&](Symbol s) -> std::optional<IntExpr> {
    if (!is_axis_symbol(s)) return std::nullopt;
    const int32_t axis = s - kAxisSymbols;
    if (axis == axes.back()) return number;
    if (std::find(axes.begin(), axes.end(), axis) != axes.end()) return IntExpr(0);
    return std::nullopt;
  };
  return std::all_of(accesses.expressions.begin(), accesses.expressions.end(),
                     [&](const IntExpr& e) { return e.substitute(replaced).simplify(accesses.ranges) == e; });
}

std::vector<std::vector<int32_t>> merge_axes(const TensorExpr& expr, const Accesses& accesses, int32_t begin,
                                             int32_t end) {
  std::vector<std::vector<int32_t>> runs;
  for (int32_t axis = begin; axis < end; ++axis) {
    if (expr.axes[static_cast<size_t>(axis)].is(1)) continue;
    if (!runs.empty()) {
      std::vector<int32_t> longer = runs.back();
      longer.push_back(axis);
      if (mergeable(expr, accesses, longer)) {
        runs.back() = std::move(longer);
        continue;
      }
    }
    runs.push_back({axis});
  }
  return runs;
}

std::optional<IntExpr> stride(const IntExpr& offset, const std::vector<int32_t>& run) {
  if (run.empty()) return IntExpr(0);
  const auto linear = offset.linear_in(axis_symbol(run.back()));
  if (!linear || linear->coefficient.contains_any([](Symbol s) { return !is_dim_symbol(s); })) return std::nullopt;
  return linear->coefficient;
}

}  // namespace quartet::roller
