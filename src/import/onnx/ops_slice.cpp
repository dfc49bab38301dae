// Cutting tensors apart and padding them.
#include <algorithm>

#include "import/onnx/node.h"

namespace quartet::import::onnx {

namespace {

struct Cut {
  std::vector<IntExpr> starts, ends;
  std::vector<int64_t> axes, steps;
};

Result<Cut> cut_of(NodeContext& c, size_t rank) {
  Cut cut;
  std::optional<std::vector<int64_t>> axes;
  if (c.version() < 10) {
    for (const int64_t v : c.attr_ints("starts").value_or(std::vector<int64_t>())) cut.starts.emplace_back(v);
    for (const int64_t v : c.attr_ints("ends").value_or(std::vector<int64_t>())) cut.ends.emplace_back(v);
    axes = c.attr_ints("axes");
  } else {
    QUARTET_ASSIGN(const KnownInts starts, c.ints(1, "the starts"));
    QUARTET_ASSIGN(const KnownInts ends, c.ints(2, "the ends"));
    cut.starts = starts.values;
    cut.ends = ends.values;
    if (c.has(3)) {
      QUARTET_ASSIGN(axes, c.numbers(3, "the axes"));
    }
    if (c.has(4)) {
      QUARTET_ASSIGN(cut.steps, c.numbers(4, "the steps"));
    }
  }
  const size_t count = cut.starts.size();
  if (!axes) {
    axes.emplace();
    for (size_t d = 0; d < count; ++d) axes->push_back(static_cast<int64_t>(d));
  }
  if (cut.steps.empty()) cut.steps.assign(count, 1);
  if (cut.ends.size() != count || axes->size() != count || cut.steps.size() != count)
    return Status(Code::invalid_argument, "starts, ends, axes and steps differ in number");
  for (const int64_t value : *axes) {
    QUARTET_ASSIGN(const int64_t axis, c.axis(value, rank));
    cut.axes.push_back(axis);
  }
  return cut;
}

// A position given from the front or, negative, from the end, clamped to [low, high].
Result<IntExpr> position(const NodeContext& c, const IntExpr& given, const IntExpr& dim, const IntExpr& low,
                         const IntExpr& high) {
  IntExpr at = given;
  if (const auto number = given.constant()) {
    if (*number >= INT32_MAX) return high;
    if (*number <= INT32_MIN) return low;
    if (*number < 0) at = dim + given;
  } else if (!c.dims().at_least(given, IntExpr(0))) {
    return Status(Code::unsupported, "a symbolic bound that may be negative");
  }
  return c.simple(max(low, min(at, high)));
}

Status slice(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  const graph::Shape shape = c.type(x).shape;
  QUARTET_ASSIGN(const Cut cut, cut_of(c, shape.size()));
  graph::Shape starts(shape.size(), IntExpr(0)), limits = shape;
  std::vector<int64_t> steps(shape.size(), 1);
  for (size_t i = 0; i < cut.axes.size(); ++i) {
    const auto axis = static_cast<size_t>(cut.axes[i]);
    const IntExpr& dim = shape[axis];
    if (cut.steps[i] == 0) return Status(Code::invalid_argument, "a step is 0");
    const bool forward = cut.steps[i] > 0;
    const IntExpr low = forward ? IntExpr(0) : IntExpr(-1), high = forward ? dim : dim - IntExpr(1);
    QUARTET_ASSIGN(starts[axis], position(c, cut.starts[i], dim, low, high));
    QUARTET_ASSIGN(limits[axis], position(c, cut.ends[i], dim, low, high));
    steps[axis] = cut.steps[i];
    limits[axis] = c.simple(forward ? max(limits[axis], starts[axis]) : min(limits[axis], starts[axis]));
  }
  return c.give(0, c.op(OpCode::slice, {x},
                        {{AttrKey::starts, starts}, {AttrKey::limits, limits}, {AttrKey::steps, std::move(steps)}}));
}

// The sizes of the parts, from an attribute, an input, or equal ones.
Result<std::vector<IntExpr>> parts_of(NodeContext& c, const IntExpr& dim) {
  std::vector<IntExpr> parts;
  if (const auto given = c.attr_ints("split"); given && c.version() < 13) {
    parts.assign(given->begin(), given->end());
  } else if (c.version() >= 13 && c.has(1)) {
    QUARTET_ASSIGN(const KnownInts known, c.ints(1, "the split"));
    parts = known.values;
  } else {
    const auto count = static_cast<int64_t>(c.output_count());
    const IntExpr chunk = c.version() >= 18 ? ceil_div(dim, IntExpr(count)) : floor_div(dim, IntExpr(count));
    parts.assign(static_cast<size_t>(count) - 1, chunk);
    parts.push_back(dim - chunk * IntExpr(count - 1));
  }
  if (parts.size() != c.output_count())
    return make_error(Code::invalid_argument, "%zu parts for %zu outputs", parts.size(), c.output_count());
  return parts;
}

Status split(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  const graph::Shape shape = c.type(x).shape;
  QUARTET_ASSIGN(const int64_t axis, c.axis(c.attr_int("axis", 0), shape.size()));
  const auto along = static_cast<size_t>(axis);
  QUARTET_ASSIGN(const std::vector<IntExpr> parts, parts_of(c, shape[along]));
  graph::Shape starts(shape.size(), IntExpr(0)), limits = shape;
  IntExpr at = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    starts[along] = at;
    at = c.simple(at + parts[i]);
    limits[along] = at;
    QUARTET_TRY(c.give(i, c.op(OpCode::slice, {x}, {{AttrKey::starts, starts}, {AttrKey::limits, limits}})));
  }
  if (!c.dims().same(at, shape[along])) return Status(Code::invalid_argument, "the parts do not add up to the axis");
  return {};
}

// All lows, then all highs; for every axis, or for those of the axes input (from version 18).
Result<std::vector<IntExpr>> pads_of(NodeContext& c, size_t rank) {
  std::vector<IntExpr> given;
  if (c.version() < 11) {
    for (const int64_t v : c.attr_ints("pads").value_or(std::vector<int64_t>())) given.emplace_back(v);
  } else {
    QUARTET_ASSIGN(const KnownInts known, c.ints(1, "the pads"));
    given = known.values;
  }
  std::vector<int64_t> axes;
  for (size_t d = 0; d < rank; ++d) axes.push_back(static_cast<int64_t>(d));
  if (c.has(3)) {
    QUARTET_ASSIGN(axes, c.numbers(3, "the axes"));
  }
  if (given.size() != 2 * axes.size())
    return make_error(Code::invalid_argument, "%zu pads for %zu axes", given.size(), axes.size());
  std::vector<IntExpr> pads(2 * rank, IntExpr(0));
  for (size_t i = 0; i < axes.size(); ++i) {
    QUARTET_ASSIGN(const int64_t axis, c.axis(axes[i], rank));
    pads[static_cast<size_t>(axis)] = given[i];
    pads[rank + static_cast<size_t>(axis)] = given[axes.size() + i];
  }
  return pads;
}

Status pad(NodeContext& c) {
  QUARTET_ASSIGN(ValueId x, c.in(0));
  const std::string mode = c.attr_text("mode", "constant");
  if (mode != "constant") return make_error(Code::unsupported, "mode = '%s'", mode.c_str());
  const graph::Shape shape = c.type(x).shape;
  QUARTET_ASSIGN(const std::vector<IntExpr> pads, pads_of(c, shape.size()));
  // Negative pads cut.
  graph::Shape starts(shape.size(), IntExpr(0)), limits = shape, low(shape.size(), IntExpr(0)), high = low;
  bool cuts = false;
  for (size_t d = 0; d < shape.size(); ++d) {
    const IntExpr &before = pads[d], &after = pads[shape.size() + d];
    if (!before.is_constant() || !after.is_constant()) return Status(Code::unsupported, "symbolic pads");
    low[d] = max(before, IntExpr(0));
    high[d] = max(after, IntExpr(0));
    starts[d] = max(-before, IntExpr(0));
    limits[d] = shape[d] + min(after, IntExpr(0));
    cuts = cuts || *before.constant() < 0 || *after.constant() < 0;
  }
  ValueId fill = graph::kNoValue;
  if (c.version() >= 11 && c.has(2)) {
    QUARTET_ASSIGN(const ValueId given, c.in(2));
    QUARTET_ASSIGN(fill, c.reshape(given, {}));
  } else {
    QUARTET_ASSIGN(fill, c.scalar(c.type(x).dtype, c.attr_float("value", 0)));
  }
  if (cuts) {
    QUARTET_ASSIGN(x, c.op(OpCode::slice, {x}, {{AttrKey::starts, starts}, {AttrKey::limits, limits}}));
  }
  return c.give(0, c.op(OpCode::pad, {x, fill}, {{AttrKey::low, low}, {AttrKey::high, high}}));
}

constexpr OpRow kRows[] = {
    {"Pad", 2, INT64_MAX, pad},
    {"Slice", 1, INT64_MAX, slice},
    {"Split", 2, INT64_MAX, split},
};

}  // namespace

std::span<const OpRow> slice_ops() { return kRows; }

}  // namespace quartet::import::onnx
