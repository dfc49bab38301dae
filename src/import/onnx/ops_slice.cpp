// Cutting tensors apart and padding them.
#include <algorithm>

#include "import/onnx/run_dims.h"

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

// A longer step than any extent takes one element, and one that stays in range for arithmetic.
constexpr int64_t kLongestStep = int64_t{1} << 40;

// A position given from the front or, negative, from the end, clamped to [low, high]; high is not below low.
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
  return c.dims().at_least(at, high) ? high : c.simple(max(low, min(at, high)));
}

// Starts, axes or steps that the caller gives: the elements along each axis by gathering.
Status slice_by_caller(NodeContext& c, const graph::Shape& result) {
  Emit e(c);
  Expr y = e.in(0);
  const Expr starts = e.in(1).cast(DType::i64);
  QUARTET_TRY(e.status());
  const size_t rank = y.rank();
  const auto count = starts.dim(0).constant();
  if (result.size() != rank || starts.rank() != 1 || !count)
    return Status(Code::invalid_argument, "the starts or the declared result do not fit the operand");
  const Expr ends = e.in(2).cast(DType::i64), axes_count = e.number(DType::i64, static_cast<int64_t>(rank));
  Expr fits = e.number(DType::boolean, 1.0);
  for (size_t d = 0; d < rank; ++d) {
    const Expr dim = e.dim(y.dim(d), DType::i64);
    Expr start = e.number(DType::i64, int64_t{0}), end = dim, step = e.number(DType::i64, int64_t{1});
    for (int64_t j = 0; j < *count; ++j) {
      const Expr axis =
          c.has(3) ? from_front(e.in(3).cast(DType::i64).element(j), axes_count) : e.number(DType::i64, j);
      const Expr mine = equal(axis, static_cast<double>(d));
      start = select(mine, from_front(starts.element(j), dim), start);
      end = select(mine, from_front(ends.element(j), dim), end);
      if (c.has(4)) step = select(mine, e.in(4).cast(DType::i64).element(j), step);
    }
    const auto longest = static_cast<double>(kLongestStep);
    step = max(min(step, longest), -longest);
    const Expr back = less(step, 0);
    const Expr low = select(back, -1, e.number(DType::i64, int64_t{0})), high = select(back, dim - 1, dim);
    const Expr first = max(min(start, high), min(high, 0)), last = max(min(end, high), low);
    const Expr way = max(select(back, first - last, last - first), 0), stride = max(unary(OpCode::abs, step), 1);
    fits = both(fits, equal((way + stride - 1) / stride, e.dim(result[d], DType::i64)));
    y = y.gather(e.iota({result[d]}, 0, DType::i64) * step + first, d);
  }
  return e.give(0, required(fits, y, "what is cut has not the shape that the model declares"));
}

// Bounds that are values of the run: the elements along each axis by gathering, as many as the run finds.
Status slice_in_run(NodeContext& c) {
  Emit e(c);
  Expr y = e.in(0);
  const Expr starts = e.in(1).cast(DType::i64), ends = e.in(2).cast(DType::i64);
  QUARTET_TRY(e.status());
  const auto count = starts.dim(0).constant();
  if (starts.rank() != 1 || ends.rank() != 1 || !count || !ends.dim(0).is(*count))
    return Status(Code::unsupported, "starts and ends that are not lists of a known length");
  std::vector<int64_t> axes, steps(static_cast<size_t>(*count), 1);
  for (int64_t i = 0; i < *count; ++i) axes.push_back(i);
  if (c.has(3)) {
    QUARTET_ASSIGN(axes, c.numbers(3, "the axes"));
  }
  if (c.has(4)) {
    QUARTET_ASSIGN(steps, c.numbers(4, "the steps"));
  }
  if (axes.size() != static_cast<size_t>(*count) || steps.size() != axes.size())
    return Status(Code::invalid_argument, "starts, ends, axes and steps differ in number");
  for (size_t i = 0; i < axes.size(); ++i) {
    QUARTET_ASSIGN(const int64_t axis, c.axis(axes[i], y.rank()));
    if (steps[i] == 0) return Status(Code::invalid_argument, "a step is 0");
    steps[i] = std::clamp(steps[i], -kLongestStep, kLongestStep);
    const auto d = static_cast<size_t>(axis), j = static_cast<size_t>(i);
    const Expr extent = e.dim(y.dim(d), DType::i64);
    const bool forward = steps[j] > 0;
    // Backwards the first element is one of the axis, if it has any.
    const auto bound = [&](const Expr& list, bool is_start) {
      const Expr at = from_front(list.element(static_cast<int64_t>(j)), extent);
      if (forward) return max(min(at, extent), 0);
      const Expr high = min(at, extent - 1);
      return is_start ? max(high, min(extent - 1, 0)) : max(high, -1);
    };
    const Expr first = bound(starts, true), last = bound(ends, false);
    const int64_t stride = forward ? steps[j] : -steps[j];
    const Expr way = max(forward ? last - first : first - last, 0);
    const Expr length = stride == 1 ? way : (way + e.number(DType::i64, stride - 1)) / e.number(DType::i64, stride);
    QUARTET_ASSIGN(const IntExpr cut, dim_of(c, length, "what is cut", y.dim(d)));
    y = y.gather(e.iota({cut}, 0, DType::i64) * e.number(DType::i64, steps[j]) + first, d);
  }
  return e.give(0, y);
}

Status slice(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  const graph::Shape shape = c.type(x).shape;
  for (const size_t i : {size_t{1}, size_t{2}, size_t{3}, size_t{4}}) {
    if (c.version() < 10 || !c.declares(0, i)) continue;
    QUARTET_ASSIGN(const graph::Shape result, c.declared_shape(0, i, "what is cut"));
    return slice_by_caller(c, result);
  }
  if (c.version() >= 10 && (!c.known_ints(1) || !c.known_ints(2))) return slice_in_run(c);
  QUARTET_ASSIGN(const Cut cut, cut_of(c, shape.size()));
  graph::Shape starts(shape.size(), IntExpr(0)), limits = shape;
  std::vector<int64_t> steps(shape.size(), 1);
  for (size_t i = 0; i < cut.axes.size(); ++i) {
    const auto axis = static_cast<size_t>(cut.axes[i]);
    const IntExpr& dim = shape[axis];
    if (cut.steps[i] == 0) return Status(Code::invalid_argument, "a step is 0");
    const bool forward = cut.steps[i] > 0;
    const IntExpr high = forward ? dim : dim - IntExpr(1);
    // Backwards the first element is one of the axis, if it has any; the end may be before all of them.
    const IntExpr first = forward ? IntExpr(0) : c.simple(min(high, IntExpr(0))), low = IntExpr(forward ? 0 : -1);
    QUARTET_ASSIGN(starts[axis], position(c, cut.starts[i], dim, first, high));
    QUARTET_ASSIGN(limits[axis], position(c, cut.ends[i], dim, low, high));
    steps[axis] = std::clamp(cut.steps[i], -kLongestStep, kLongestStep);
    limits[axis] = c.simple(forward ? max(limits[axis], starts[axis]) : min(limits[axis], starts[axis]));
  }
  return c.give(0, c.op(OpCode::slice, {x},
                        {{AttrKey::starts, starts}, {AttrKey::limits, limits}, {AttrKey::steps, std::move(steps)}}));
}

// The sizes of the parts, from an attribute, an input, or equal ones.
Result<std::vector<IntExpr>> parts_of(NodeContext& c, const IntExpr& dim, size_t along) {
  std::vector<IntExpr> parts;
  if (const auto given = c.attr_ints("split"); given && c.version() < 13) {
    parts.assign(given->begin(), given->end());
  } else if (c.version() >= 13 && c.has(1)) {
    if (const auto known = c.known_ints(1)) {
      parts = known->values;
    } else {
      for (size_t i = 0; i < c.output_count(); ++i) {
        QUARTET_ASSIGN(const graph::Shape result, c.declared_shape(i, 1, "the split"));
        if (along >= result.size()) return Status(Code::invalid_argument, "the declared result has another rank");
        parts.push_back(result[along]);
      }
    }
  } else {
    const auto count = static_cast<int64_t>(c.output_count());
    if (c.version() < 18 && dim.is_constant() && *dim.constant() % count != 0)
      return make_error(Code::invalid_argument, "an axis of %lld does not split into %lld equal parts",
                        static_cast<long long>(*dim.constant()), static_cast<long long>(count));
    // From version 18 on the last parts may be shorter, or empty.
    const IntExpr chunk = c.version() >= 18 ? ceil_div(dim, IntExpr(count)) : floor_div(dim, IntExpr(count));
    IntExpr begin = 0;
    for (int64_t i = 1; i <= count; ++i) {
      const IntExpr end = i == count ? dim : c.simple(min(chunk * IntExpr(i), dim));
      parts.push_back(c.simple(end - begin));
      begin = end;
    }
  }
  if (parts.size() != c.output_count())
    return make_error(Code::invalid_argument, "%zu parts for %zu outputs", parts.size(), c.output_count());
  return parts;
}

// Known integers stay known.
bool split_known(NodeContext& c, const KnownInts& data, const std::vector<IntExpr>& parts) {
  size_t at = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto count = parts[i].constant();
    if (!count || *count < 0 || static_cast<size_t>(*count) > data.values.size() - at) return false;
    const auto begin = data.values.begin() + static_cast<std::ptrdiff_t>(at);
    c.give_ints(i, {{begin, begin + *count}, false, data.dtype});
    at += static_cast<size_t>(*count);
  }
  return at == data.values.size();
}

Status split(NodeContext& c) {
  if (const auto known = c.known_ints(0); known && !known->is_scalar) {
    QUARTET_ASSIGN(const std::vector<IntExpr> parts,
                   parts_of(c, IntExpr(static_cast<int64_t>(known->values.size())), 0));
    if (split_known(c, *known, parts)) return {};
  }
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  const graph::Shape shape = c.type(x).shape;
  QUARTET_ASSIGN(const int64_t axis, c.axis(c.attr_int("axis", 0), shape.size()));
  const auto along = static_cast<size_t>(axis);
  QUARTET_ASSIGN(const std::vector<IntExpr> parts, parts_of(c, shape[along], along));
  IntExpr total = 0;
  for (const IntExpr& part : parts) total += part;
  graph::Shape cut_shape = shape;
  cut_shape[along] = c.simple(total);
  if (cut_shape[along].is_constant() && shape[along].is_constant() && !(cut_shape[along] == shape[along]))
    return Status(Code::invalid_argument, "the parts do not add up to the axis");
  QUARTET_ASSIGN(ValueId whole, c.assumed(x, std::move(cut_shape), "the operand"));
  if (c.version() >= 13 && c.from_caller(1)) {
    Emit e(c);
    const Expr checked = as_declared(Expr(e, whole), 1, parts);
    QUARTET_TRY(e.status());
    whole = checked.id();
  }
  graph::Shape starts(shape.size(), IntExpr(0)), limits = shape;
  IntExpr at = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    starts[along] = at;
    at = c.simple(at + parts[i]);
    limits[along] = at;
    QUARTET_ASSIGN(const ValueId part,
                   c.op(OpCode::slice, {whole}, {{AttrKey::starts, starts}, {AttrKey::limits, limits}}));
    QUARTET_TRY(c.give(i, part));
  }
  return {};
}

// How one axis is padded. The amounts before and after are dims where they are known; else values, and
// `high` is by how much the declared result is longer.
struct Padding {
  IntExpr low = 0, high = 0;
  Expr before, after;
};

// The axes the pads are for: all, or those of the axes input (from version 18).
Result<std::vector<int64_t>> padded_axes(NodeContext& c, size_t rank) {
  std::vector<int64_t> axes;
  for (size_t d = 0; d < rank; ++d) axes.push_back(static_cast<int64_t>(d));
  if (!c.has(3)) return axes;
  QUARTET_ASSIGN(axes, c.numbers(3, "the axes"));
  for (int64_t& each : axes) {
    QUARTET_ASSIGN(each, c.axis(each, rank));
  }
  return axes;
}

// By axis; from all lows, then all highs.
Result<std::vector<Padding>> paddings(NodeContext& c, Emit& e, const Expr& x) {
  std::vector<Padding> pads(x.rank());
  QUARTET_ASSIGN(const std::vector<int64_t> axes, padded_axes(c, x.rank()));
  std::optional<std::vector<IntExpr>> given;
  if (c.version() < 11) {
    given.emplace();
    for (const int64_t v : c.attr_ints("pads").value_or(std::vector<int64_t>())) given->emplace_back(v);
  } else if (!c.declares(0, 1)) {
    QUARTET_ASSIGN(const KnownInts known, dims_in_run(c, 1, "the pads"));
    given = known.values;
  } else if (const auto known = c.known_ints(1)) {
    given = known->values;
  }
  if (given) {
    if (given->size() != 2 * axes.size())
      return make_error(Code::invalid_argument, "%zu pads for %zu axes", given->size(), axes.size());
    for (size_t i = 0; i < axes.size(); ++i) {
      Padding& pad = pads[static_cast<size_t>(axes[i])];
      pad.low = (*given)[i];
      pad.high = (*given)[axes.size() + i];
    }
    return pads;
  }
  QUARTET_ASSIGN(const graph::Shape result, c.declared_shape(0, 1, "the pads"));
  if (result.size() != x.rank()) return Status(Code::invalid_argument, "the declared result has another rank");
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    pads[axis].before = e.in(1).element(static_cast<int64_t>(i)).cast(DType::i64);
    pads[axis].after = e.in(1).element(static_cast<int64_t>(axes.size() + i)).cast(DType::i64);
    pads[axis].high = result[axis] - x.dim(axis);
  }
  return pads;
}

// What negative pads cut off; the pads are not negative any more.
Result<Expr> cut(NodeContext& c, Expr x, std::vector<Padding>& pads) {
  for (size_t d = 0; d < pads.size(); ++d) {
    Padding& pad = pads[d];
    if (pad.before.ok()) continue;
    IntExpr begin = 0, end = x.dim(d);
    for (IntExpr* amount : {&pad.low, &pad.high}) {
      if (c.dims().at_least(*amount, IntExpr(0))) continue;
      if (!c.dims().at_least(IntExpr(0), *amount))
        return make_error(Code::unsupported, "a pad of %s, which may be negative or not",
                          c.dims().text(*amount).c_str());
      (amount == &pad.low ? begin : end) += amount == &pad.low ? -*amount : *amount;
      *amount = 0;
    }
    if (!begin.is(0) || !(end == x.dim(d))) x = x.slice(d, begin, end);
  }
  return x;
}

// The operand's element for each place of the padded axis, i64, and whether the place is inside.
Result<Expr> source_places(Emit& e, const std::string& mode, const Padding& pad, const IntExpr& dim) {
  const DType i64 = DType::i64;
  const Expr low = pad.before.ok() ? pad.before : e.dim(pad.low, i64), n = e.dim(dim, i64);
  const Expr at = e.iota({dim + pad.low + pad.high}, 0, i64) - low;
  if (mode == "constant") return at;
  if (mode == "edge") return max(min(at, n - 1), 0);
  if (mode == "wrap") return floor_mod(at, max(n, 1));
  if (mode != "reflect") return make_error(Code::unsupported, "mode = '%s'", mode.c_str());
  // Up and down again with a period of 2 (n - 1).
  const Expr last = n - 1;
  return last - unary(OpCode::abs, floor_mod(at, max(last * 2, 1)) - last);
}

Status pad(NodeContext& c) {
  Emit e(c);
  Expr x = e.in(0);
  QUARTET_TRY(e.status());
  const std::string mode = c.attr_text("mode", "constant");
  QUARTET_ASSIGN(std::vector<Padding> pads, paddings(c, e, x));
  QUARTET_ASSIGN(x, cut(c, x, pads));
  const bool given = c.version() >= 11 && c.has(2);
  const Expr fill = given ? e.in(2).reshape({}) : e.number(x.dtype(), static_cast<double>(c.attr_float("value", 0)));
  graph::Shape low(x.rank(), IntExpr(0)), high = low;
  for (size_t d = 0; d < pads.size(); ++d) {
    const Padding& pad = pads[d];
    if (mode == "constant" && !pad.before.ok()) {
      low[d] = pad.low;
      high[d] = pad.high;
      continue;
    }
    if (!pad.before.ok() && pad.low.is(0) && pad.high.is(0)) continue;
    const IntExpr dim = x.dim(d);
    if (pad.before.ok()) x = required(equal(pad.before + pad.after, e.dim(pad.high, DType::i64)), x, contradiction(1));
    QUARTET_ASSIGN(const Expr places, source_places(e, mode, pad, dim));
    const Expr inside = both(less_equal(0, places), less(places, e.dim(dim, DType::i64)));
    x = x.gather(max(places, 0), d);
    if (mode == "constant") x = select(inside.along(d, x.rank()), x, fill);
  }
  if (mode != "constant") return e.give(0, x);
  return e.give(0, e.op(OpCode::pad, {x, fill}, {{AttrKey::low, low}, {AttrKey::high, high}}));
}

constexpr OpRow kRows[] = {
    {"Pad", 2, INT64_MAX, pad},
    {"Slice", 1, INT64_MAX, slice},
    {"Split", 2, INT64_MAX, split},
};

}  // namespace

std::span<const OpRow> slice_ops() { return kRows; }

}  // namespace quartet::import::onnx
