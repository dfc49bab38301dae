#include "reference/generator.h"

#include <functional>

#include "reference/generator_class.h"

namespace quartet::reference {

Result<RandomGraph> random_graph(uint64_t seed, const GeneratorOptions& options) {
  return Generator(seed, options).run();
}

Result<std::shared_ptr<const graph::Graph>> specialise(const graph::Graph& graph,
                                                       const std::map<Symbol, int64_t>& values) {
  auto fixed = std::make_shared<graph::Graph>(graph);
  const auto replace = [&](Shape& shape) {
    for (IntExpr& e : shape)
      e = e.substitute([&](Symbol s) -> std::optional<IntExpr> {
        const auto found = values.find(s);
        return found == values.end() ? std::nullopt : std::optional<IntExpr>(found->second);
      });
  };
  const std::function<void(graph::Block&)> visit = [&](graph::Block& block) {
    for (graph::Op& op : block.ops) {
      for (auto& [key, attr] : op.attrs)
        if (auto* shape = std::get_if<Shape>(&attr)) replace(*shape);
      for (graph::Block& region : op.regions) visit(region);
    }
  };
  for (graph::Function& function : fixed->functions) {
    for (graph::Value& value : function.values) replace(value.type.shape);
    visit(function.body);
  }
  if (values.size() == fixed->symbols.size()) fixed->symbols.clear();
  QUARTET_TRY(graph::verify(*fixed).with_prefix("after specialising: "));
  return std::shared_ptr<const graph::Graph>(std::move(fixed));
}

}  // namespace quartet::reference
