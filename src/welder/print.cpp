#include "roller/construct.h"
#include "tile/fuse.h"
#include "tile/text.h"
#include "welder/group.h"

namespace quartet::welder {

std::string print(const tile::TileGraph& graph, const std::vector<Group>& groups) {
  std::string text;
  for (size_t g = 0; g < groups.size(); ++g) {
    const Group& group = groups[g];
    text += "group " + std::to_string(g) + ":";
    for (const int32_t n : group.nodes) {
      const tile::TensorExpr& expr = graph.nodes[static_cast<size_t>(n)].expr;
      text += " " + std::to_string(n) + ":" + expr.name + (n == group.core ? "*" : expr.is_view ? "~" : "");
    }
    text += "\n  why: " + group.reason + "\n";
    for (const tile::TensorId t : group.inputs) text += "  in  " + tile::tensor_text(graph, t) + "\n";
    for (const tile::TensorId t : group.outputs) text += "  out " + tile::tensor_text(graph, t) + "\n";
    if (const auto fused = tile::fuse(graph, group.nodes, group.core, group.domain, group.outputs); fused.ok()) {
      text += tile::print(graph, *fused);
    }
    std::string plan = roller::print(group.plan);
    for (size_t at = 0; at < plan.size();) {
      const size_t end = plan.find('\n', at);
      text += "  " + plan.substr(at, end - at + 1);
      at = end + 1;
    }
    text += "  because: " + group.plan.reason + "\n";
  }
  return text;
}

}  // namespace quartet::welder
