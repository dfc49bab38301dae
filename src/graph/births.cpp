// Which dims an op uses, and which it gives birth to.
#include "graph/graph.h"

namespace quartet::graph {
namespace {

void visit_shape(const Shape& shape, const std::function<void(Symbol)>& visit) {
  for (const IntExpr& dim : shape)
    for (const Symbol s : dim.symbols()) visit(s);
}

}  // namespace

void for_each_birth(std::span<const DimSymbol> symbols, const Op& op, const std::function<void(Symbol)>& visit) {
  const Shape* trip = attr_shape(op, AttrKey::trip);
  if (!trip) return;
  for (const Symbol s : (*trip)[0].symbols())
    if (symbols[static_cast<size_t>(s)].kind == DimSymbol::Kind::run) visit(s);
}

void for_each_symbol(const Function& function, const Op& op, const std::function<void(Symbol)>& visit) {
  for (const auto& [key, attr] : op.attrs)
    if (const auto* shape = std::get_if<Shape>(&attr)) visit_shape(*shape, visit);
  const auto visit_values = [&](const std::vector<ValueId>& ids) {
    for (const ValueId id : ids) visit_shape(function.values[static_cast<size_t>(id)].type.shape, visit);
  };
  visit_values(op.results);
  for (const Block& region : op.regions) {
    visit_values(region.arguments);
    for (const Op& inner : region.ops) for_each_symbol(function, inner, visit);
  }
}

}  // namespace quartet::graph
