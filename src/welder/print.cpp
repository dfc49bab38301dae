#include "roller/construct.h"
#include "tile/fuse.h"
#include "tile/text.h"
#include "welder/group.h"

namespace quartet::welder {
namespace {

std::string body(const tile::TileGraph& graph, const Group& group) {
  const auto fused = tile::fuse(graph, group.nodes, group.core, group.domain, group.outputs);
  return fused.ok() ? tile::print(graph, *fused) : std::string();
}

std::string indented(const std::string& lines) {
  std::string text;
  for (size_t at = 0; at < lines.size();) {
    const size_t end = lines.find('\n', at);
    text += "  " + lines.substr(at, end - at + 1);
    at = end + 1;
  }
  return text;
}

}  // namespace

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
    if (group.phases.empty()) text += body(graph, group);
    text += indented(roller::print(group.plan));
    text += "  because: " + group.plan.reason + "\n";
    for (size_t i = 0; i < group.phases.size(); ++i) {
      text += "  phase " + std::to_string(i) + "\n";
      text += body(graph, group.phases[i]) + indented(roller::print(group.phases[i].plan));
    }
  }
  return text;
}

}  // namespace quartet::welder
