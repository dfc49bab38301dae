// If, Loop and Scan: the graphs inside become regions.
#include <algorithm>

#include "graph/constant.h"
#include "import/onnx/node.h"

namespace quartet::import::onnx {
namespace {

Result<const Graph*> graph_attr(NodeContext& c, const char* name) {
  const Attribute* attribute = c.attr(name);
  if (!attribute || attribute->graph.empty())
    return make_error(Code::invalid_argument, "the attribute %s with a graph is missing", name);
  return &attribute->graph[0];
}

bool any_failed(const std::vector<Value>& values) {
  return std::any_of(values.begin(), values.end(), [](const Value& v) { return v.failed; });
}

// Exporters give scalars as tensors of one element, too.
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

// ---- If ----

struct Side {
  int32_t region = -1;
  std::vector<graph::TensorType> types;
  bool failed = false;
};

Result<Side> import_side(NodeContext& c, const Graph& graph) {
  Side side;
  QUARTET_ASSIGN(side.region, c.builder().region_begin());
  QUARTET_ASSIGN(std::vector<Value> results, c.graphs().walk(graph, {}));
  side.failed = any_failed(results);
  std::vector<ValueId> ids;
  for (Value& result : results) {
    if (side.failed) break;
    QUARTET_ASSIGN(const ValueId id, materialise(c.builder(), result));
    ids.push_back(id);
    side.types.push_back(c.type(id));
  }
  QUARTET_TRY(c.builder().region_end(ids));
  return side;
}

// A value of one element as an expression over dims, if it is one.
std::optional<IntExpr> dim_value(const graph::Builder& builder, ValueId id, int depth = 0) {
  if (const graph::Constant* constant = builder.constant_of(id)) {
    if (!is_int(constant->type.dtype) || constant->bytes != size_of(constant->type.dtype)) return std::nullopt;
    return IntExpr(graph::element_as_int(*constant, 0));
  }
  const graph::Op* op = builder.definition(id);
  if (!op || depth == 4) return std::nullopt;
  if (op->code == OpCode::dims) {
    const graph::Shape& values = *graph::attr_shape(*op, AttrKey::shape);
    return values.size() == 1 ? std::optional(values[0]) : std::nullopt;
  }
  if (op->code != OpCode::reshape && op->code != OpCode::cast) return std::nullopt;
  return dim_value(builder, op->operands[0], depth + 1);
}

// What a condition says of a dim where it is true.
std::optional<Assumption> assumption_of(NodeContext& c, ValueId condition) {
  const graph::Op* op = c.builder().definition(condition);
  while (op && op->code == OpCode::reshape) op = c.builder().definition(op->operands[0]);
  if (!op || op->code != OpCode::equal) return std::nullopt;
  auto a = dim_value(c.builder(), op->operands[0]), b = dim_value(c.builder(), op->operands[1]);
  if (!a || !b) return std::nullopt;
  if (a->is_constant()) std::swap(a, b);
  if (a->is_constant() || !b->is_constant()) return std::nullopt;
  return Assumption{c.simple(*a), *b->constant(), condition, false};
}

bool same_types(NodeContext& c, const Side& first, const Side& second) {
  for (size_t i = 0; i < first.types.size(); ++i) {
    const graph::TensorType &a = first.types[i], &b = second.types[i];
    bool same = a.dtype == b.dtype && a.rank() == b.rank();
    for (size_t d = 0; same && d < a.rank(); ++d) same = c.dims().same(a.shape[d], b.shape[d]);
    if (!same) return false;
  }
  return true;
}

Status give_known_side(NodeContext& c, const Graph& graph) {
  QUARTET_ASSIGN(std::vector<Value> results, c.graphs().walk(graph, {}));
  for (size_t i = 0; i < results.size(); ++i) c.give_value(i, std::move(results[i]));
  return {};
}

// The one side that has types, in place of the if: a run that would take the other fails.
Status give_only_side(NodeContext& c, const Graph& graph, ValueId condition, bool when, const std::string& reason,
                      bool assumed) {
  QUARTET_ASSIGN(std::vector<Value> results, c.graphs().walk(graph, {}));
  if (any_failed(results)) {
    c.fail();
    return {};
  }
  std::vector<ValueId> operands{condition};
  if (!when) {
    QUARTET_ASSIGN(operands[0], c.op(OpCode::logical_not, {condition}));
  }
  for (Value& result : results) {
    QUARTET_ASSIGN(const ValueId id, materialise(c.builder(), result));
    operands.push_back(id);
  }
  std::vector<ValueId> given(operands.begin() + 1, operands.end());
  // What relied on the assumption has checked it.
  if (!assumed) {
    QUARTET_ASSIGN(
        given, c.builder().op(OpCode::require, std::move(operands), {{AttrKey::reason, reason}}, {{}, -1, c.label()}));
  }
  for (size_t i = 0; i < given.size(); ++i) QUARTET_TRY(c.give(i, given[i]));
  return {};
}

// Imports a side as a region; under an assumption, if there is one, and says whether that was relied on.
Result<Side> try_side(NodeContext& c, const Graph& graph, const std::optional<Assumption>& assumption, bool& relied) {
  std::vector<Assumption>& assumptions = c.graphs().assumptions();
  const size_t before = assumptions.size();
  if (assumption) assumptions.push_back(*assumption);
  auto side = import_side(c, graph);
  relied = assumption && assumptions[before].used;
  assumptions.resize(before);
  return side;
}

Status import_if(NodeContext& c) {
  QUARTET_TRY(c.want(0));
  QUARTET_ASSIGN(const Graph* const yes, graph_attr(c, "then_branch"));
  QUARTET_ASSIGN(const Graph* const no, graph_attr(c, "else_branch"));
  if (yes->outputs.size() != c.output_count() || no->outputs.size() != c.output_count())
    return make_error(Code::invalid_argument, "its branches give %zu and %zu values, it has %zu outputs",
                      yes->outputs.size(), no->outputs.size(), c.output_count());
  // A branch that is never taken may be anything.
  if (const auto known = known_flag(c, c.value(0))) return give_known_side(c, *known ? *yes : *no);
  QUARTET_ASSIGN(const ValueId given, c.in(0));
  QUARTET_ASSIGN(const ValueId condition, scalar_of(c, given, DType::boolean, "the condition"));
  const auto assumption = assumption_of(c, condition);
  const graph::Builder::Mark mark = c.builder().mark();
  const size_t notes = c.graphs().notes();
  bool relied = false, unused = false;
  const auto first = try_side(c, *yes, assumption, relied);
  if (!first.ok()) c.builder().unwind(mark);
  const graph::Builder::Mark middle = c.builder().mark();
  const auto second = try_side(c, *no, std::nullopt, unused);
  if (!second.ok()) c.builder().unwind(middle);
  const bool first_good = first.ok() && !first->failed, second_good = second.ok() && !second->failed;
  if (first_good && second_good && !relied && same_types(c, *first, *second)) {
    graph::OpExtras extras{{first->region, second->region}, -1, c.label()};
    QUARTET_ASSIGN(const std::vector<ValueId> results, c.builder().op(OpCode::if_, {condition}, {}, std::move(extras)));
    for (size_t i = 0; i < results.size(); ++i) QUARTET_TRY(c.give(i, results[i]));
    return {};
  }
  c.builder().unwind(mark);
  // A squeeze of an axis that may have another extent: the model was written for the one it squeezes.
  if (relied && first_good) {
    c.graphs().take_back(notes);
    c.graphs().assumptions().push_back(*assumption);
    const Status status = give_only_side(c, *yes, condition, true, "", true);
    c.graphs().assumptions().pop_back();
    return status;
  }
  // A side that contradicts itself cannot be run: the model never takes it.
  if (first_good && !second.ok())
    return give_only_side(c, *yes, condition, true,
                          c.label() + ": the else branch cannot run: " + second.status().message(), false);
  if (second_good && !first.ok())
    return give_only_side(c, *no, condition, false,
                          c.label() + ": the then branch cannot run: " + first.status().message(), false);
  if (!first.ok()) return first.status();
  if (!second.ok()) return second.status();
  if (first->failed || second->failed) {
    c.fail();
    return {};
  }
  for (size_t i = 0; i < first->types.size(); ++i)
    if (first->types[i] != second->types[i])
      return make_error(Code::unsupported, "its branches give different types for output %zu, %s and %s", i,
                        c.dims().text(first->types[i]).c_str(), c.dims().text(second->types[i]).c_str());
  return make_error(Code::unsupported, "its branches give different types");
}

// ---- Loops ----

// A bound beyond this says no more than that there is none, and no memory is planned for it.
constexpr int64_t kMostTrips = int64_t{1} << 16;

// A run-known dim for a loop that ends when its condition says.
Result<IntExpr> declare_trip(NodeContext& c, std::optional<IntExpr> most) {
  for (size_t number = c.builder().symbols().size();; ++number) {
    graph::DimSymbol symbol;
    symbol.name = "trip" + std::to_string(number);
    symbol.kind = graph::DimSymbol::Kind::run;
    if (!most || most->constant().value_or(0) <= kMostTrips) symbol.upper = most;
    const auto symbols = c.builder().symbols();
    if (std::any_of(symbols.begin(), symbols.end(), [&](const graph::DimSymbol& s) { return s.name == symbol.name; }))
      continue;
    return c.builder().declare_symbol(std::move(symbol));
  }
}

// A loop being written: the region is open between `begin` and `end`.
struct LoopWriter {
  explicit LoopWriter(NodeContext& context) : c(context) {}

  NodeContext& c;
  int32_t region = -1;
  ValueId iteration = graph::kNoValue;
  std::vector<ValueId> carried;

  Status begin(const std::vector<ValueId>& initial) {
    QUARTET_ASSIGN(region, c.builder().region_begin());
    QUARTET_ASSIGN(iteration, c.builder().parameter({DType::i64, {}}));
    QUARTET_TRY(c.builder().parameter({DType::boolean, {}}).status());
    for (const ValueId id : initial) {
      QUARTET_ASSIGN(const ValueId parameter, c.builder().parameter(c.type(id)));
      carried.push_back(parameter);
    }
    return {};
  }

  // `yields`: the condition, the carried values, the stacked ones.
  Result<std::vector<ValueId>> end(ValueId trip, ValueId condition, const std::vector<ValueId>& initial,
                                   const std::vector<ValueId>& yields, const std::optional<IntExpr>& count) {
    for (size_t i = 0; i < carried.size(); ++i) {
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
    return c.builder().op(OpCode::loop, std::move(operands), std::move(attrs), {{region}, -1, c.label()});
  }
};

Status import_loop(NodeContext& c) {
  QUARTET_ASSIGN(const Graph* const body, graph_attr(c, "body"));
  if (!c.has(0) && !c.has(1)) return Status(Code::unsupported, "a loop without trip count and condition has no end");
  const size_t carried = c.node().inputs.size() < 2 ? 0 : c.node().inputs.size() - 2;
  if (body->inputs.size() != carried + 2 || body->outputs.size() < carried + 1)
    return make_error(Code::invalid_argument, "its body has %zu inputs and %zu outputs for %zu carried values",
                      body->inputs.size(), body->outputs.size(), carried);
  std::optional<IntExpr> most;
  ValueId trip = graph::kNoValue, condition = graph::kNoValue;
  if (c.has(0)) {
    if (const auto known = c.known_ints(0); known && known->values.size() == 1)
      most = c.simple(max(known->values[0], IntExpr(0)));
    QUARTET_ASSIGN(const ValueId given, c.in(0));
    QUARTET_ASSIGN(trip, scalar_of(c, given, DType::i64, "the trip count"));
  }
  const std::optional<bool> first = c.has(1) ? known_flag(c, c.value(1)) : true;
  if (c.has(1)) {
    QUARTET_ASSIGN(const ValueId given, c.in(1));
    QUARTET_ASSIGN(condition, scalar_of(c, given, DType::boolean, "the condition"));
  }
  std::vector<ValueId> initial;
  for (size_t i = 0; i < carried; ++i) {
    QUARTET_ASSIGN(const ValueId id, c.in(i + 2));
    initial.push_back(id);
  }
  LoopWriter loop(c);
  QUARTET_TRY(loop.begin(initial));
  std::vector<Value> arguments(carried + 2);
  arguments[0].id = loop.iteration;
  if (body->inputs[0].shape && body->inputs[0].shape->size() == 1) {
    QUARTET_ASSIGN(arguments[0].id, c.reshape(loop.iteration, {IntExpr(1)}));
  }
  arguments[1] = constant_flag(true);  // while the body runs
  for (size_t i = 0; i < carried; ++i) arguments[i + 2].id = loop.carried[i];
  QUARTET_ASSIGN(std::vector<Value> results, c.graphs().walk(*body, std::move(arguments)));
  if (any_failed(results)) {
    QUARTET_TRY(c.builder().region_end({}));
    c.fail();
    return {};
  }
  // Without a condition given, the body's is ignored.
  if (!c.has(1)) results[0] = constant_flag(true);
  const bool counted = first == true && known_flag(c, results[0]) == true;
  std::vector<ValueId> yields;
  for (Value& result : results) {
    QUARTET_ASSIGN(const ValueId id, materialise(c.builder(), result));
    yields.push_back(id);
  }
  QUARTET_ASSIGN(yields[0], scalar_of(c, yields[0], DType::boolean, "the body's condition"));
  std::optional<IntExpr> count;
  if (counted) condition = graph::kNoValue;
  if (counted && most) {
    count = most;
  } else if (yields.size() > carried + 1) {
    QUARTET_ASSIGN(count, declare_trip(c, most));
  }
  QUARTET_ASSIGN(const std::vector<ValueId> outputs, loop.end(trip, condition, initial, yields, count));
  for (size_t i = 0; i < std::min(outputs.size(), c.output_count()); ++i) QUARTET_TRY(c.give(i, outputs[i]));
  return {};
}

// ---- Scan ----

// How one scanned input or output runs: along which axis, and from which end.
struct Way {
  size_t axis = 0;
  bool backwards = false;
};

Result<std::vector<Way>> ways(NodeContext& c, const char* axes, const char* directions,
                              const std::vector<size_t>& ranks) {
  std::vector<Way> made(ranks.size());
  if (const auto given = c.attr_ints(axes))
    for (size_t i = 0; i < made.size() && i < given->size(); ++i) {
      QUARTET_ASSIGN(const int64_t axis, c.axis((*given)[i], ranks[i]));
      made[i].axis = static_cast<size_t>(axis);
    }
  if (const auto given = c.attr_ints(directions))
    for (size_t i = 0; i < made.size() && i < given->size(); ++i) made[i].backwards = (*given)[i] == 1;
  return made;
}

// Moves an axis to the front, or the front axis there.
Result<ValueId> move_axis(NodeContext& c, ValueId x, size_t axis, bool to_front) {
  if (axis == 0) return x;
  std::vector<int64_t> perm;
  for (size_t d = 0; d < c.type(x).rank(); ++d) perm.push_back(static_cast<int64_t>(d));
  const auto a = static_cast<std::ptrdiff_t>(axis);
  if (to_front)
    std::rotate(perm.begin(), perm.begin() + a, perm.begin() + a + 1);
  else
    std::rotate(perm.begin(), perm.begin() + 1, perm.begin() + a + 1);
  return c.op(OpCode::transpose, {x}, {{AttrKey::perm, perm}});
}

Result<ValueId> reversed(NodeContext& c, ValueId x) {
  const graph::Shape shape = c.type(x).shape;
  graph::Shape starts(shape.size(), IntExpr(0)), limits = shape;
  std::vector<int64_t> steps(shape.size(), 1);
  starts[0] = shape[0] - IntExpr(1);
  limits[0] = IntExpr(-1);
  steps[0] = -1;
  return c.op(OpCode::slice, {x}, {{AttrKey::starts, starts}, {AttrKey::limits, limits}, {AttrKey::steps, steps}});
}

// The loop over rows of `inputs`, whose first axis has `count` elements. Gives the states, then the stacked outputs.
Result<std::vector<ValueId>> scan_rows(NodeContext& c, const Graph& body, const std::vector<ValueId>& states,
                                       const std::vector<ValueId>& inputs, const std::vector<Way>& in_ways,
                                       const IntExpr& count, bool& failed) {
  Value trip;
  trip.ints = KnownInts{{count}, true, DType::i64};
  QUARTET_ASSIGN(const ValueId trip_id, materialise(c.builder(), trip));
  LoopWriter loop(c);
  QUARTET_TRY(loop.begin(states));
  std::vector<Value> arguments;
  for (const ValueId id : loop.carried) arguments.emplace_back().id = id;
  for (size_t i = 0; i < inputs.size(); ++i) {
    ValueId index = loop.iteration;
    if (in_ways[i].backwards) {
      Value last;
      last.ints = KnownInts{{count - IntExpr(1)}, true, DType::i64};
      QUARTET_ASSIGN(const ValueId last_id, materialise(c.builder(), last));
      QUARTET_ASSIGN(index, c.op(OpCode::sub, {last_id, index}));
    }
    QUARTET_ASSIGN(arguments.emplace_back().id,
                   c.op(OpCode::gather, {inputs[i], index}, {{AttrKey::axis, int64_t{0}}}));
  }
  QUARTET_ASSIGN(std::vector<Value> results, c.graphs().walk(body, std::move(arguments)));
  failed = any_failed(results);
  if (failed) {
    QUARTET_TRY(c.builder().region_end({}));
    return std::vector<ValueId>{};
  }
  results.insert(results.begin(), constant_flag(true));
  std::vector<ValueId> yields;
  for (Value& result : results) {
    QUARTET_ASSIGN(const ValueId id, materialise(c.builder(), result));
    yields.push_back(id);
  }
  return loop.end(trip_id, graph::kNoValue, states, yields, count);
}

Status import_scan(NodeContext& c) {
  QUARTET_ASSIGN(const Graph* const body, graph_attr(c, "body"));
  const int64_t scanned = c.attr_int("num_scan_inputs", 0);
  QUARTET_ASSIGN(const std::vector<ValueId> all, c.all());
  if (scanned < 1 || static_cast<size_t>(scanned) > all.size())
    return make_error(Code::invalid_argument, "num_scan_inputs is %lld", static_cast<long long>(scanned));
  const size_t count = all.size() - static_cast<size_t>(scanned);
  const std::vector<ValueId> states(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
  std::vector<ValueId> inputs(all.begin() + static_cast<std::ptrdiff_t>(count), all.end());
  if (body->outputs.size() < count)
    return make_error(Code::invalid_argument, "its body has %zu outputs for %zu states", body->outputs.size(), count);
  std::vector<size_t> ranks;
  for (const ValueId id : inputs) {
    ranks.push_back(c.type(id).rank());
    if (ranks.back() == 0) return Status(Code::invalid_argument, "a scanned input is a scalar");
  }
  QUARTET_ASSIGN(const std::vector<Way> in_ways, ways(c, "scan_input_axes", "scan_input_directions", ranks));
  for (size_t i = 0; i < inputs.size(); ++i) {
    QUARTET_ASSIGN(inputs[i], move_axis(c, inputs[i], in_ways[i].axis, true));
  }
  const IntExpr trip = c.type(inputs[0]).shape[0];
  for (const ValueId id : inputs)
    if (!c.dims().same(c.type(id).shape[0], trip))
      return Status(Code::unsupported, "its scanned inputs are not known to be of equal length");
  bool failed = false;
  QUARTET_ASSIGN(std::vector<ValueId> results, scan_rows(c, *body, states, inputs, in_ways, trip, failed));
  if (failed) {
    c.fail();
    return {};
  }
  ranks.clear();
  for (size_t i = count; i < results.size(); ++i) ranks.push_back(c.type(results[i]).rank());
  QUARTET_ASSIGN(const std::vector<Way> out_ways, ways(c, "scan_output_axes", "scan_output_directions", ranks));
  for (size_t i = 0; i < std::min(results.size(), c.output_count()); ++i) {
    if (i >= count) {
      const Way& way = out_ways[i - count];
      if (way.backwards) {
        QUARTET_ASSIGN(results[i], reversed(c, results[i]));
      }
      QUARTET_ASSIGN(results[i], move_axis(c, results[i], way.axis, false));
    }
    QUARTET_TRY(c.give(i, results[i]));
  }
  return {};
}

// Version 8: a batch axis before everything, and lengths of the sequences.
Status import_batched_scan(NodeContext& c) {
  if (c.has(0)) return Status(Code::unsupported, "sequence_lens");
  QUARTET_ASSIGN(const Graph* const body, graph_attr(c, "body"));
  const int64_t scanned = c.attr_int("num_scan_inputs", 0);
  if (scanned < 1 || static_cast<size_t>(scanned) >= c.input_count())
    return make_error(Code::invalid_argument, "num_scan_inputs is %lld", static_cast<long long>(scanned));
  std::vector<ValueId> all;
  for (size_t i = 1; i < c.input_count(); ++i) {
    QUARTET_ASSIGN(const ValueId id, c.in(i));
    if (c.type(id).rank() < 1) return Status(Code::invalid_argument, "an input has no batch axis");
    all.push_back(id);
  }
  const size_t count = all.size() - static_cast<size_t>(scanned);
  const IntExpr batch = c.type(all[0]).shape[0];
  Value trip;
  trip.ints = KnownInts{{batch}, true, DType::i64};
  QUARTET_ASSIGN(const ValueId trip_id, materialise(c.builder(), trip));
  LoopWriter outer(c);
  QUARTET_TRY(outer.begin({}));
  std::vector<ValueId> rows;
  for (const ValueId id : all) {
    QUARTET_ASSIGN(const ValueId row, c.op(OpCode::gather, {id, outer.iteration}, {{AttrKey::axis, int64_t{0}}}));
    rows.push_back(row);
  }
  const std::vector<ValueId> states(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(count));
  const std::vector<ValueId> inputs(rows.begin() + static_cast<std::ptrdiff_t>(count), rows.end());
  if (c.type(inputs[0]).rank() < 1) return Status(Code::invalid_argument, "a scanned input has no sequence axis");
  std::vector<Way> in_ways(inputs.size());
  if (const auto given = c.attr_ints("directions"))
    for (size_t i = 0; i < in_ways.size() && i < given->size(); ++i) in_ways[i].backwards = (*given)[i] == 1;
  bool failed = false;
  QUARTET_ASSIGN(std::vector<ValueId> yields,
                 scan_rows(c, *body, states, inputs, in_ways, c.type(inputs[0]).shape[0], failed));
  if (failed) {
    QUARTET_TRY(c.builder().region_end({}));
    c.fail();
    return {};
  }
  Value always = constant_flag(true);
  QUARTET_ASSIGN(const ValueId always_id, materialise(c.builder(), always));
  yields.insert(yields.begin(), always_id);
  QUARTET_ASSIGN(const std::vector<ValueId> results, outer.end(trip_id, graph::kNoValue, {}, yields, batch));
  for (size_t i = 0; i < std::min(results.size(), c.output_count()); ++i) QUARTET_TRY(c.give(i, results[i]));
  return {};
}

constexpr OpRow kRows[] = {
    {"If", 1, INT64_MAX, import_if},
    {"Loop", 1, INT64_MAX, import_loop},
    {"Scan", 8, 9, import_batched_scan},
    {"Scan", 9, INT64_MAX, import_scan},
};

}  // namespace

std::span<const OpRow> control_ops() { return kRows; }

}  // namespace quartet::import::onnx
