// Which dims an op uses, and which it gives birth to.
#include "graph/births.h"

#include <algorithm>

#include "graph/graph.h"

namespace quartet::graph {
namespace {

void visit_shape(const Shape& shape, const std::function<void(Symbol)>& visit) {
  for (const IntExpr& dim : shape)
    for (const Symbol s : dim.symbols()) visit(s);
}

}  // namespace

void for_each_birth(std::span<const DimSymbol> symbols, const Op& op, const std::function<void(Symbol)>& visit) {
  for (const AttrKey key : {AttrKey::trip, AttrKey::births}) {
    const Shape* shape = attr_shape(op, key);
    if (!shape) continue;
    for (const IntExpr& dim : *shape)
      for (const Symbol s : dim.symbols())
        if (symbols[static_cast<size_t>(s)].kind == DimSymbol::Kind::run) visit(s);
  }
}

std::vector<BornDim> loop_dims(const Shape& births, std::span<const TensorType* const> first,
                               std::span<const TensorType> inside, std::span<const TensorType> next) {
  std::vector<BornDim> dims;
  for (const IntExpr& birth : births) {
    BornDim& dim = dims.emplace_back();
    dim.symbol = birth.as_symbol().value_or(-1);
    for (size_t i = 0; i < inside.size() && dim.first.is(0) && dim.second.is(0); ++i)
      for (size_t axis = 0; axis < inside[i].rank(); ++axis) {
        if (!(inside[i].shape[axis] == birth) || axis >= first[i]->rank() || axis >= next[i].rank()) continue;
        dim.first = first[i]->shape[axis];
        dim.second = next[i].shape[axis];
        break;
      }
  }
  return dims;
}

std::optional<std::vector<BornDim>> if_dims(const Shape& births, std::span<const int64_t> places,
                                            std::span<const TensorType> yes, std::span<const TensorType> no) {
  if (places.size() != 2 * births.size()) return std::nullopt;
  std::vector<BornDim> born;
  for (size_t b = 0; b < births.size(); ++b) {
    const int64_t result = places[2 * b], axis = places[2 * b + 1];
    const auto exists = [&](std::span<const TensorType> types) {
      return result >= 0 && static_cast<size_t>(result) < types.size() && axis >= 0 &&
             static_cast<size_t>(axis) < types[static_cast<size_t>(result)].rank();
    };
    if (!exists(yes) || !exists(no)) return std::nullopt;
    const auto r = static_cast<size_t>(result), d = static_cast<size_t>(axis);
    born.push_back({births[b].as_symbol().value_or(-1), yes[r].shape[d], no[r].shape[d]});
  }
  return born;
}

namespace {

std::vector<TensorType> types_of(const Function& function, std::span<const ValueId> ids) {
  std::vector<TensorType> types;
  for (const ValueId id : ids) types.push_back(function.values[static_cast<size_t>(id)].type);
  return types;
}

}  // namespace

std::vector<BornDim> born_dims(const Function& function, const Op& op) {
  const Shape* births = attr_shape(op, AttrKey::births);
  if (!births || op.regions.empty()) return {};
  std::vector<BornDim> born;
  if (op.code == OpCode::if_) {
    const std::vector<int64_t>* places = attr_ints(op, AttrKey::places);
    const auto all = if_dims(*births, places ? std::span<const int64_t>(*places) : std::span<const int64_t>(),
                             types_of(function, op.regions[0].results), types_of(function, op.regions[1].results));
    if (!all) return born;
    for (const BornDim& dim : *all)
      if (std::none_of(born.begin(), born.end(), [&](const BornDim& other) { return other.symbol == dim.symbol; }))
        born.push_back(dim);
    return born;
  }
  const Block& body = op.regions[0];
  const size_t carried = op.operands.size() - 2;
  std::vector<const TensorType*> first;
  for (size_t i = 0; i < carried; ++i) first.push_back(&function.values[static_cast<size_t>(op.operands[i + 2])].type);
  return loop_dims(*births, first, types_of(function, std::span(body.arguments).subspan(2)),
                   types_of(function, std::span(body.results).subspan(1, carried)));
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
