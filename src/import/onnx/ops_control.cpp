// If and Loop: the graphs inside become regions.
#include <algorithm>

#include "graph/constant.h"
#include "import/onnx/regions.h"

namespace quartet::import::onnx {
namespace {

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

// Dims in which the sides differ are known in the run: equal pairs share one.
Result<Attrs> differing_dims(NodeContext& c, const Side& first, const Side& second) {
  struct Pair {
    IntExpr a, b, dim;
  };
  std::vector<Pair> pairs;
  graph::Shape births;
  std::vector<int64_t> places;
  const auto set_by_run = [&](Symbol s) {
    return c.builder().symbols()[static_cast<size_t>(s)].kind == graph::DimSymbol::Kind::run;
  };
  for (size_t i = 0; i < first.types.size(); ++i)
    for (size_t d = 0; d < first.types[i].rank(); ++d) {
      const IntExpr &a = first.types[i].shape[d], &b = second.types[i].shape[d];
      if (c.dims().same(a, b)) continue;
      auto known = std::find_if(pairs.begin(), pairs.end(),
                                [&](const Pair& pair) { return c.dims().same(pair.a, a) && c.dims().same(pair.b, b); });
      if (known == pairs.end()) {
        std::optional<IntExpr> most;
        if (!a.contains_any(set_by_run) && !b.contains_any(set_by_run)) most = c.simple(max(a, b));
        const int64_t least = std::min(a.constant().value_or(0), b.constant().value_or(0));
        QUARTET_ASSIGN(const IntExpr dim, declare_run_dim(c, "side", most, least));
        known = pairs.insert(pairs.end(), {a, b, dim});
      }
      births.push_back(known->dim);
      places.insert(places.end(), {static_cast<int64_t>(i), static_cast<int64_t>(d)});
    }
  if (births.empty()) return Attrs();
  return Attrs{{AttrKey::births, std::move(births)}, {AttrKey::places, std::move(places)}};
}

Status give_both_sides(NodeContext& c, const Side& first, const Side& second, ValueId condition) {
  for (size_t i = 0; i < first.types.size(); ++i)
    if (first.types[i].dtype != second.types[i].dtype || first.types[i].rank() != second.types[i].rank())
      return make_error(Code::unsupported, "its branches give different types for output %zu, %s and %s", i,
                        c.dims().text(first.types[i]).c_str(), c.dims().text(second.types[i]).c_str());
  QUARTET_ASSIGN(Attrs attrs, differing_dims(c, first, second));
  graph::OpExtras extras{{first.region, second.region}, -1, c.label()};
  QUARTET_ASSIGN(const std::vector<ValueId> results,
                 c.builder().op(OpCode::if_, {condition}, std::move(attrs), std::move(extras)));
  for (size_t i = 0; i < results.size(); ++i) QUARTET_TRY(c.give(i, results[i]));
  return {};
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
  if (first_good && second_good && !relied) return give_both_sides(c, *first, *second, condition);
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
  return make_error(Code::internal, "its branches cannot be written");
}

// ---- Loops ----

// What goes into a loop.
struct LoopStart {
  ValueId trip = graph::kNoValue, condition = graph::kNoValue;
  std::optional<IntExpr> most;  // of the trip count
  bool begins = false;          // certainly
  std::vector<ValueId> initial;
};

// The types of carried values inside, and the dims of them that change, with what they become.
struct Changes {
  std::vector<graph::TensorType> inside;
  graph::Shape births;
  bool alone = false;  // each changing dim has a symbol of its own
};

// The body in an open region: what it yields, the condition first; nothing if something inside is not supported.
Result<std::vector<ValueId>> write_body(NodeContext& c, const Graph& body, LoopWriter& loop, bool& counted) {
  std::vector<Value> arguments(loop.carried.size() + 2);
  arguments[0].id = loop.iteration;
  if (body.inputs[0].shape && body.inputs[0].shape->size() == 1) {
    QUARTET_ASSIGN(arguments[0].id, c.reshape(loop.iteration, {IntExpr(1)}));
  }
  arguments[1] = constant_flag(true);  // while the body runs
  for (size_t i = 0; i < loop.carried.size(); ++i) arguments[i + 2].id = loop.carried[i];
  QUARTET_ASSIGN(std::vector<Value> results, c.graphs().walk(body, std::move(arguments)));
  std::vector<ValueId> yields;
  if (any_failed(results)) return yields;
  // Without a condition given, the body's is ignored.
  if (!c.has(1)) results[0] = constant_flag(true);
  counted = known_flag(c, results[0]) == true;
  for (Value& result : results) {
    QUARTET_ASSIGN(const ValueId id, materialise(c.builder(), result));
    yields.push_back(id);
  }
  QUARTET_ASSIGN(yields[0], scalar_of(c, yields[0], DType::boolean, "the body's condition"));
  return yields;
}

// Whether the dims of what is yielded are as they were thought; if not, which ones change is learned for another try.
Result<bool> learn_changes(NodeContext& c, const LoopStart& start, const std::vector<ValueId>& yields,
                           Changes& changes) {
  struct Place {
    size_t value, axis;
    IntExpr next;
  };
  const auto is_born = [&](const IntExpr& e) {
    return std::find(changes.births.begin(), changes.births.end(), e) != changes.births.end();
  };
  std::vector<Place> fresh;
  bool clash = false;
  std::vector<std::pair<IntExpr, IntExpr>> next_of;
  for (size_t i = 0; i < start.initial.size(); ++i) {
    const graph::TensorType &inside = changes.inside[i], &after = c.type(yields[i + 1]);
    if (inside.dtype != after.dtype || inside.rank() != after.rank())
      return make_error(Code::unsupported, "the carried value %zu changes its type from %s to %s", i,
                        c.dims().text(inside).c_str(), c.dims().text(after).c_str());
    for (size_t d = 0; d < inside.rank(); ++d) {
      const IntExpr& dim = inside.shape[d];
      if (!is_born(dim)) {
        if (!c.dims().same(dim, after.shape[d])) fresh.push_back({i, d, after.shape[d]});
        continue;
      }
      for (const auto& [symbol, next] : next_of) clash |= symbol == dim && !c.dims().same(next, after.shape[d]);
      next_of.emplace_back(dim, after.shape[d]);
    }
  }
  if (fresh.empty() && !clash) return true;
  if (clash) {
    // Dims that began alike go different ways: each for itself.
    if (changes.alone) return make_error(Code::internal, "the dims of its carried values cannot be told apart");
    changes.alone = true;
    for (size_t i = 0; i < changes.inside.size(); ++i)
      for (size_t d = 0; d < changes.inside[i].rank(); ++d)
        if (is_born(changes.inside[i].shape[d])) fresh.push_back({i, d, IntExpr(0)});
    changes.births.clear();
  }
  std::vector<std::pair<Place, IntExpr>> made;
  for (const Place& place : fresh) {
    const IntExpr& first = c.type(start.initial[place.value]).shape[place.axis];
    const auto alike = std::find_if(made.begin(), made.end(), [&](const auto& other) {
      return !changes.alone && c.dims().same(other.first.next, place.next) &&
             c.dims().same(c.type(start.initial[other.first.value]).shape[other.first.axis], first);
    });
    IntExpr dim;
    if (alike != made.end()) {
      dim = alike->second;
    } else {
      QUARTET_ASSIGN(dim, declare_run_dim(c, "carried", std::nullopt));
      changes.births.push_back(dim);
    }
    changes.inside[place.value].shape[place.axis] = dim;
    made.emplace_back(place, dim);
  }
  return false;
}

// The body is written anew until it is known which dims of carried values change.
Status write_loop(NodeContext& c, const Graph& body, LoopStart start) {
  constexpr int kMostTries = 8;
  Changes changes{types_of(c, start.initial), {}, false};
  const graph::Builder::Mark mark = c.builder().mark();
  const size_t notes = c.graphs().notes();
  for (int tries = 0; tries < kMostTries; ++tries) {
    LoopWriter loop(c);
    QUARTET_TRY(loop.begin(changes.inside));
    bool counted = false;
    QUARTET_ASSIGN(const std::vector<ValueId> yields, write_body(c, body, loop, counted));
    if (yields.empty()) {
      QUARTET_TRY(c.builder().region_end({}));
      c.fail();
      return {};
    }
    QUARTET_ASSIGN(const bool settled, learn_changes(c, start, yields, changes));
    if (!settled) {
      c.builder().unwind(mark);
      c.graphs().take_back(notes);
      continue;
    }
    counted = counted && start.begins;
    if (counted) start.condition = graph::kNoValue;
    std::optional<IntExpr> count;
    if (counted && start.most) {
      count = start.most;
    } else if (yields.size() > start.initial.size() + 1) {
      QUARTET_ASSIGN(count, declare_run_dim(c, "trip", start.most));
    }
    QUARTET_ASSIGN(const std::vector<ValueId> outputs,
                   loop.end(start.trip, start.condition, start.initial, yields, count, changes.births));
    for (size_t i = 0; i < std::min(outputs.size(), c.output_count()); ++i) QUARTET_TRY(c.give(i, outputs[i]));
    return {};
  }
  return make_error(Code::unsupported, "the dims of its carried values change in too many ways");
}

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
  return write_loop(c, *body, {trip, condition, most, first == true, std::move(initial)});
}

constexpr OpRow kRows[] = {
    {"If", 1, INT64_MAX, import_if},
    {"Loop", 1, INT64_MAX, import_loop},
};

}  // namespace

std::span<const OpRow> control_ops() { return kRows; }

}  // namespace quartet::import::onnx
