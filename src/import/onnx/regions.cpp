#include "import/onnx/regions.h"

#include <algorithm>

#include "graph/constant.h"

namespace quartet::import::onnx {

Result<const Graph*> graph_attr(NodeContext& c, const char* name) {
  const Attribute* attribute = c.attr(name);
  if (!attribute || attribute->graph.empty())
    return make_error(Code::invalid_argument, "the attribute %s with a graph is missing", name);
  return &attribute->graph[0];
}

bool any_failed(const std::vector<Value>& values) {
  return std::any_of(values.begin(), values.end(), [](const Value& v) { return v.failed; });
}

Result<ValueId> scalar_of(NodeContext& c, ValueId id, DType dtype, const char* what) {
  const graph::TensorType type = c.type(id);
  if (type.dtype != dtype || !type.elements().is(1))
    return make_error(Code::unsupported, "%s is %s", what, c.dims().text(type).c_str());
  return type.rank() == 0 ? Result<ValueId>(id) : c.reshape(id, {});
}

std::optional<bool> known_flag(NodeContext& c, const Value& value) {
  const auto constant = constant_value(c.builder(), value);
  if (!constant || constant->type.dtype != DType::boolean || constant->bytes != 1) return std::nullopt;
  return constant->data[0] != 0;
}

Value constant_flag(bool value) {
  const uint8_t byte = value ? 1 : 0;
  Value made;
  made.constant = graph::copy_constant({DType::boolean, {}}, {&byte, 1}).take();
  return made;
}

std::vector<graph::TensorType> types_of(NodeContext& c, const std::vector<ValueId>& ids) {
  std::vector<graph::TensorType> types;
  for (const ValueId id : ids) types.push_back(c.type(id));
  return types;
}

namespace {

// A bound beyond this says no more than that there is none, and no memory is planned for it.
constexpr int64_t kMostPlanned = int64_t{1} << 16;

}  // namespace

Result<IntExpr> declare_run_dim(NodeContext& c, const char* kind, std::optional<IntExpr> most, int64_t least) {
  for (size_t number = c.builder().symbols().size();; ++number) {
    graph::DimSymbol symbol;
    symbol.name = kind + std::to_string(number);
    symbol.kind = graph::DimSymbol::Kind::run;
    symbol.lower = least;
    if (!most || most->constant().value_or(0) <= kMostPlanned) symbol.upper = most;
    const auto symbols = c.builder().symbols();
    if (std::any_of(symbols.begin(), symbols.end(), [&](const graph::DimSymbol& s) { return s.name == symbol.name; }))
      continue;
    return c.builder().declare_symbol(std::move(symbol));
  }
}

Status LoopWriter::begin(const std::vector<graph::TensorType>& types) {
  QUARTET_ASSIGN(region, c.builder().region_begin());
  QUARTET_ASSIGN(iteration, c.builder().parameter({DType::i64, {}}));
  QUARTET_TRY(c.builder().parameter({DType::boolean, {}}).status());
  for (const graph::TensorType& type : types) {
    QUARTET_ASSIGN(const ValueId parameter, c.builder().parameter(type));
    carried.push_back(parameter);
  }
  return {};
}

Result<std::vector<ValueId>> LoopWriter::end(ValueId trip, ValueId condition, const std::vector<ValueId>& initial,
                                             const std::vector<ValueId>& yields, const std::optional<IntExpr>& count,
                                             const graph::Shape& births) {
  for (size_t i = 0; i < carried.size() && births.empty(); ++i) {
    const graph::TensorType &before = c.type(carried[i]), &after = c.type(yields[i + 1]);
    bool same = before.dtype == after.dtype && before.rank() == after.rank();
    for (size_t d = 0; same && d < before.rank(); ++d) same = c.dims().same(before.shape[d], after.shape[d]);
    if (!same)
      return make_error(Code::unsupported, "the carried value %zu changes its type from %s to %s", i,
                        c.dims().text(before).c_str(), c.dims().text(after).c_str());
  }
  QUARTET_TRY(c.builder().region_end(yields));
  std::vector<ValueId> operands{trip, condition};
  operands.insert(operands.end(), initial.begin(), initial.end());
  Attrs attrs;
  if (yields.size() > carried.size() + 1) attrs[AttrKey::trip] = graph::Shape{*count};
  if (!births.empty()) attrs[AttrKey::births] = births;
  return c.builder().op(OpCode::loop, std::move(operands), std::move(attrs), {{region}, -1, c.label()});
}

}  // namespace quartet::import::onnx
