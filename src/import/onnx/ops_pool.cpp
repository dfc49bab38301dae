// Pools: reductions over the windows of a padded operand.
#include <limits>
#include <numeric>

#include "import/onnx/windows.h"

namespace quartet::import::onnx {

namespace {

Result<Windows> pool_windows(NodeContext& c, ValueId x) {
  const auto sizes = c.attr_ints("kernel_shape");
  if (!sizes) return Status(Code::invalid_argument, "no kernel_shape");
  int64_t places = 1;
  for (const int64_t size : *sizes) {
    if (size < 1 || size > INT32_MAX)
      return make_error(Code::invalid_argument, "kernel_shape: %lld is out of range", static_cast<long long>(size));
    if (size > INT32_MAX / places) return Status(Code::invalid_argument, "kernel_shape: more than 2^31 - 1 places");
    places *= size;
  }
  return read_windows(c, x, graph::Shape(sizes->begin(), sizes->end()));
}

std::vector<int64_t> axes_from(size_t first, size_t count) {
  std::vector<int64_t> axes(count);
  std::iota(axes.begin(), axes.end(), static_cast<int64_t>(first));
  return axes;
}

// The windows of x, which is padded already; their places are the last axes.
Result<ValueId> windows_of(NodeContext& c, ValueId x, const Windows& w) {
  std::vector<int64_t> sizes;
  for (const IntExpr& size : w.sizes) sizes.push_back(*size.constant());
  return c.op(OpCode::window, {x},
              {{AttrKey::axes, axes_from(2, sizes.size())},
               {AttrKey::sizes, sizes},
               {AttrKey::strides, w.strides},
               {AttrKey::dilations, w.dilations}});
}

// The reduction over each window.
Result<ValueId> over_windows(NodeContext& c, OpCode code, ValueId x, const Windows& w) {
  const size_t count = w.sizes.size();
  QUARTET_ASSIGN(const ValueId windows, windows_of(c, x, w));
  return c.op(code, {windows}, {{AttrKey::axes, axes_from(2 + count, count)}});
}

// How the axes of a window and of the operand count: the number of a place, and the number of an element.
struct Counting {
  std::vector<int64_t> window;  // strides of the window's places
  graph::Shape operand;         // strides of the operand's elements along its spatial axes
};

Counting counting_of(const graph::Shape& shape, const Windows& w, bool columns_first) {
  const size_t count = w.sizes.size();
  Counting strides{std::vector<int64_t>(count, 1), graph::Shape(count, IntExpr(1))};
  for (size_t i = count; i-- > 1;) {
    strides.window[i - 1] = strides.window[i] * *w.sizes[i].constant();
    strides.operand[i - 1] = strides.operand[i] * shape[i + 2];
  }
  if (!columns_first) return strides;
  strides.operand[0] = IntExpr(1);
  for (size_t i = 1; i < count; ++i) strides.operand[i] = strides.operand[i - 1] * shape[i + 1];
  return strides;
}

// The number, in the whole operand, of the first greatest element of each window.
Result<ValueId> greatest_indices(NodeContext& c, ValueId padded, const graph::Shape& shape, const Windows& w) {
  const size_t count = w.sizes.size();
  const Counting strides = counting_of(shape, w, c.attr_int("storage_order", 0) != 0);
  QUARTET_ASSIGN(const ValueId windows, windows_of(c, padded, w));
  const graph::Shape all = c.type(windows).shape;
  const graph::Shape points(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(2 + count));
  graph::Shape flat = points;
  IntExpr places = 1;
  for (const IntExpr& size : w.sizes) places *= size;
  flat.push_back(places);
  QUARTET_ASSIGN(const ValueId rows, c.reshape(windows, std::move(flat)));
  QUARTET_ASSIGN(ValueId rest, c.op(OpCode::argmax, {rows}, {{AttrKey::axis, static_cast<int64_t>(2 + count)}}));
  // Adds value * stride.
  ValueId sum = graph::kNoValue;
  const auto add = [&](ValueId value, const IntExpr& stride) -> Status {
    QUARTET_ASSIGN(const ValueId list, c.op(OpCode::dims, {}, {{AttrKey::shape, graph::Shape{c.simple(stride)}}}));
    QUARTET_ASSIGN(const ValueId factor, c.reshape(list, {}));
    QUARTET_ASSIGN(const ValueId part, c.op(OpCode::mul, {value, factor}));
    if (sum == graph::kNoValue) {
      sum = part;
      return {};
    }
    QUARTET_ASSIGN(sum, c.op(OpCode::add, {sum, part}));
    return {};
  };
  const auto along = [&](size_t axis) {
    return c.op(OpCode::iota, {},
                {{AttrKey::shape, points}, {AttrKey::axis, static_cast<int64_t>(axis)}, {AttrKey::dtype, DType::i64}});
  };
  IntExpr size = 1;
  for (size_t i = 0; i < count; ++i) size *= shape[i + 2];
  for (const size_t axis : {size_t{0}, size_t{1}}) {
    QUARTET_ASSIGN(const ValueId number, along(axis));
    QUARTET_TRY(add(number, axis == 0 ? size * shape[1] : size));
  }
  for (size_t i = 0; i < count; ++i) {
    QUARTET_ASSIGN(const ValueId first, along(i + 2));
    QUARTET_TRY(add(first, strides.operand[i] * IntExpr(w.strides[i])));
    QUARTET_ASSIGN(const ValueId divisor, c.builder().scalar(DType::i64, strides.window[i]));
    QUARTET_ASSIGN(const ValueId place, c.op(OpCode::div, {rest, divisor}));
    QUARTET_ASSIGN(rest, c.op(OpCode::rem, {rest, divisor}));
    QUARTET_TRY(add(place, strides.operand[i] * IntExpr(w.dilations[i])));
    QUARTET_ASSIGN(const ValueId one, c.builder().scalar(DType::i64, int64_t{1}));
    QUARTET_TRY(add(one, IntExpr(0) - strides.operand[i] * w.low[i]));
  }
  return sum;
}

Status max_pool(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  QUARTET_ASSIGN(const Windows w, pool_windows(c, x));
  const graph::TensorType type = c.type(x);
  QUARTET_ASSIGN(const ValueId lowest, c.scalar(type.dtype, -std::numeric_limits<double>::infinity()));
  QUARTET_ASSIGN(const ValueId padded, w.pad(c, x, lowest));
  if (c.output_count() > 1) QUARTET_TRY(c.give(1, greatest_indices(c, padded, type.shape, w)));
  return c.give(0, over_windows(c, OpCode::reduce_max, padded, w));
}

// How many elements of each window count along one spatial axis: those of the operand or, with `padding`, of the
// padded operand; shaped to broadcast along that axis.
Result<ValueId> window_counts(NodeContext& c, ValueId x, const Windows& w, size_t i, bool padding, DType type) {
  const IntExpr dim = c.type(x).shape[i + 2];
  const IntExpr inside = padding ? dim + w.low[i] + w.high[i] - w.beyond[i] : dim;
  QUARTET_ASSIGN(const ValueId one, c.builder().scalar(DType::i64, int64_t{1}));
  QUARTET_ASSIGN(const ValueId zero, c.builder().scalar(DType::i64, int64_t{0}));
  QUARTET_ASSIGN(const ValueId ones, c.op(OpCode::expand, {one}, {{AttrKey::shape, graph::Shape{c.simple(inside)}}}));
  const graph::Shape before = {padding ? IntExpr(0) : w.low[i]}, after = {padding ? w.beyond[i] : w.high[i]};
  QUARTET_ASSIGN(const ValueId padded,
                 c.op(OpCode::pad, {ones, zero}, {{AttrKey::low, before}, {AttrKey::high, after}}));
  QUARTET_ASSIGN(const ValueId windows, c.op(OpCode::window, {padded},
                                             {{AttrKey::axes, std::vector<int64_t>{0}},
                                              {AttrKey::sizes, std::vector<int64_t>{*w.sizes[i].constant()}},
                                              {AttrKey::strides, std::vector<int64_t>{w.strides[i]}},
                                              {AttrKey::dilations, std::vector<int64_t>{w.dilations[i]}}}));
  QUARTET_ASSIGN(const ValueId counts, c.op(OpCode::reduce_sum, {windows}, {{AttrKey::axes, std::vector<int64_t>{1}}}));
  graph::Shape shape(w.sizes.size(), IntExpr(1));
  shape[i] = c.type(counts).shape[0];
  QUARTET_ASSIGN(const ValueId along, c.reshape(counts, std::move(shape)));
  return c.cast(along, type);
}

Status average_pool(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  QUARTET_ASSIGN(const Windows w, pool_windows(c, x));
  const DType type = c.type(x).dtype;
  QUARTET_ASSIGN(const ValueId zero, c.scalar(type, 0.0));
  QUARTET_ASSIGN(const ValueId padded, w.pad(c, x, zero));
  QUARTET_ASSIGN(const ValueId sums, over_windows(c, OpCode::reduce_sum, padded, w));
  const bool padding = c.attr_int("count_include_pad", 0) != 0;
  double whole = 1;
  ValueId counts = graph::kNoValue;
  for (size_t i = 0; i < w.sizes.size(); ++i) {
    const bool varies = padding ? !w.beyond[i].is(0) : !w.low[i].is(0) || !w.high[i].is(0);
    if (!varies) {
      whole *= static_cast<double>(*w.sizes[i].constant());
      continue;
    }
    QUARTET_ASSIGN(const ValueId along, window_counts(c, x, w, i, padding, type));
    if (counts == graph::kNoValue) {
      counts = along;
      continue;
    }
    QUARTET_ASSIGN(counts, c.op(OpCode::mul, {counts, along}));
  }
  if (counts == graph::kNoValue) return c.give(0, c.with_scalar(OpCode::div, sums, whole));
  if (whole != 1) {
    QUARTET_ASSIGN(counts, c.with_scalar(OpCode::mul, counts, whole));
  }
  return c.give(0, c.op(OpCode::div, {sums, counts}));
}

// (sum of |x|^p)^(1/p), reduced by `sum`.
Result<ValueId> p_norm(NodeContext& c, ValueId x, const std::function<Result<ValueId>(ValueId)>& sum) {
  const double p = static_cast<double>(c.attr_int("p", 2));
  QUARTET_ASSIGN(const ValueId magnitude, c.op(OpCode::abs, {x}));
  QUARTET_ASSIGN(const ValueId powers, c.with_scalar(OpCode::pow, magnitude, p));
  QUARTET_ASSIGN(const ValueId total, sum(powers));
  return c.with_scalar(OpCode::pow, total, 1 / p);
}

Status lp_pool(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  QUARTET_ASSIGN(const Windows w, pool_windows(c, x));
  QUARTET_ASSIGN(const ValueId zero, c.scalar(c.type(x).dtype, 0.0));
  QUARTET_ASSIGN(const ValueId padded, w.pad(c, x, zero));
  return c.give(0, p_norm(c, padded, [&](ValueId v) { return over_windows(c, OpCode::reduce_sum, v, w); }));
}

Result<ValueId> over_space(NodeContext& c, OpCode code, ValueId x) {
  const size_t rank = c.type(x).rank();
  if (rank < 2) return make_error(Code::invalid_argument, "the operand has rank %zu", rank);
  return c.op(code, {x}, {{AttrKey::axes, axes_from(2, rank - 2)}, {AttrKey::keepdims, int64_t{1}}});
}

template <OpCode code>
Status global_pool(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  return c.give(0, over_space(c, code, x));
}

Status global_lp_pool(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  return c.give(0, p_norm(c, x, [&](ValueId v) { return over_space(c, OpCode::reduce_sum, v); }));
}

constexpr OpRow kRows[] = {
    {"AveragePool", 1, INT64_MAX, average_pool},
    {"GlobalAveragePool", 1, INT64_MAX, global_pool<OpCode::reduce_mean>},
    {"GlobalLpPool", 2, INT64_MAX, global_lp_pool},
    {"GlobalMaxPool", 1, INT64_MAX, global_pool<OpCode::reduce_max>},
    {"LpPool", 2, INT64_MAX, lp_pool},
    {"MaxPool", 1, INT64_MAX, max_pool},
};

}  // namespace

std::span<const OpRow> pool_ops() { return kRows; }

}  // namespace quartet::import::onnx
