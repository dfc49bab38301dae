// Scan: a loop over rows.
#include <algorithm>

#include "import/onnx/regions.h"

namespace quartet::import::onnx {
namespace {

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
  QUARTET_TRY(loop.begin(types_of(c, states)));
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
    {"Scan", 8, 9, import_batched_scan},
    {"Scan", 9, INT64_MAX, import_scan},
};

}  // namespace

std::span<const OpRow> scan_ops() { return kRows; }

}  // namespace quartet::import::onnx
