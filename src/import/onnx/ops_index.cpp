// Looking up and masking by index: gathers of single elements and slices, one-hot, triangles, running sums.
#include <algorithm>
#include <numeric>

#include "import/onnx/expr.h"
#include "import/onnx/index.h"
#include "import/onnx/tensors.h"

namespace quartet::import::onnx {

Expr row_major(Emit& e, const std::vector<Expr>& at, graph::Shape shape) {
  Expr sum;
  IntExpr stride = 1;
  for (size_t d = at.size(); d-- > 0;) {
    const Expr term = stride.is(1) ? at[d] : at[d] * e.dim(stride, DType::i64);
    sum = sum.ok() ? sum + term : term;
    stride = stride * shape[d];
  }
  return sum.ok() ? sum : e.number(DType::i64, int64_t{0});
}

Expr element_positions(Emit& e, const Expr& indices, size_t axis, graph::Shape shape) {
  std::vector<Expr> at;
  for (size_t d = 0; d < shape.size(); ++d)
    at.push_back(d == axis ? from_front(indices.cast(DType::i64), e.dim(shape[d], DType::i64))
                           : e.iota({indices.dim(d)}, 0, DType::i64).along(d, shape.size()));
  return row_major(e, at, shape).expand(indices.shape());
}

Expr flat(const Expr& x) { return x.reshape({x.type().elements()}); }

Expr gather_elements(const Expr& x, const Expr& indices, size_t axis) {
  return flat(x).gather(element_positions(x.emit(), indices, axis, x.shape()), 0);
}

namespace {

Status gather_elements_node(NodeContext& c) {
  Emit e(c);
  const Expr x = e.in(0), indices = e.in(1);
  QUARTET_TRY(e.status());
  if (x.rank() != indices.rank())
    return make_error(Code::invalid_argument, "data of rank %zu, indices of rank %zu", x.rank(), indices.rank());
  QUARTET_ASSIGN(const int64_t axis, c.axis(c.attr_int("axis", 0), x.rank()));
  return e.give(0, gather_elements(x, indices, static_cast<size_t>(axis)));
}

Status gather_nd(NodeContext& c) {
  Emit e(c);
  const Expr x = e.in(0), indices = e.in(1).cast(DType::i64);
  QUARTET_TRY(e.status());
  const int64_t batch = c.attr_int("batch_dims", 0);
  const auto depth = indices.rank() > 0 ? indices.shape().back().constant() : std::nullopt;
  if (!depth || batch < 0 || batch >= static_cast<int64_t>(indices.rank()) ||
      batch + *depth > static_cast<int64_t>(x.rank()))
    return make_error(Code::invalid_argument, "indices do not fit data of rank %zu", x.rank());
  const auto first = static_cast<size_t>(batch);
  const size_t outer = indices.rank() - 1;
  std::vector<Expr> at;
  for (size_t d = 0; d < first; ++d) at.push_back(e.iota({indices.dim(d)}, 0, DType::i64).along(d, outer));
  graph::Shape points(indices.shape().begin(), indices.shape().end() - 1);
  for (int64_t i = 0; i < *depth; ++i) {
    const Expr part = indices.slice(outer, IntExpr(i), IntExpr(i + 1)).reshape(points);
    at.push_back(from_front(part, e.dim(x.dim(first + static_cast<size_t>(i)), DType::i64)));
  }
  const Expr position =
      row_major(e, at, graph::Shape(x.shape().begin(), x.shape().begin() + batch + *depth)).expand(points);
  graph::Shape rows = {IntExpr(1)};
  for (size_t d = 0; d < x.rank(); ++d) {
    if (d < at.size())
      rows[0] *= x.dim(d);
    else
      rows.push_back(x.dim(d));
  }
  return e.give(0, x.reshape(rows).gather(position, 0));
}

// on where the position along the new axis is the index, else off; nowhere for an index out of range.
Status one_hot(NodeContext& c) {
  Emit e(c);
  const Expr given = e.in(0);
  QUARTET_TRY(e.status());
  const size_t rank = given.rank() + 1;
  QUARTET_ASSIGN(const int64_t axis, c.axis(c.attr_int("axis", -1), rank));
  const auto along = static_cast<size_t>(axis);
  IntExpr depth;
  if (const auto known = c.known_ints(1)) {
    if (known->values.size() != 1) return Status(Code::invalid_argument, "depth has not one element");
    depth = known->values[0];
  } else if (const auto number = c.floats(1)) {
    if (number->size() != 1) return Status(Code::invalid_argument, "depth has not one element");
    if (!((*number)[0] >= 0 && (*number)[0] < 0x1p52))
      return Status(Code::invalid_argument, "a depth that is no extent");
    depth = static_cast<int64_t>((*number)[0]);
  } else {
    QUARTET_ASSIGN(const graph::Shape declared, c.declared_shape(0, 1, "the depth"));
    if (declared.size() != rank) return Status(Code::invalid_argument, "the declared result has another rank");
    depth = declared[along];
  }
  graph::Shape shape = given.shape();
  shape.insert(shape.begin() + axis, IntExpr(1));
  const Expr indices = from_front(given.cast(DType::i64), e.dim(depth, DType::i64)).reshape(shape);
  const Expr values = e.in(2);
  const Expr hit = equal(e.iota({depth}, 0, DType::i64).along(along, rank), indices);
  const Expr y = select(hit, values.element(1), values.element(0));
  return e.give(0, c.from_caller(1) ? as_declared(y, 1, {depth}) : y);
}

// A diagonal further away than any extent is one that a row can be added to.
constexpr double kFurthest = 0x1p40;
Expr near_diagonal(const Expr& k) { return max(min(k, kFurthest), -kFurthest); }

// Row plus k against column of the last two axes.
Status trilu(NodeContext& c) {
  Emit e(c);
  const Expr x = e.in(0);
  QUARTET_TRY(e.status());
  if (x.rank() < 2) return make_error(Code::invalid_argument, "the operand has rank %zu", x.rank());
  const Expr k = c.has(1) ? near_diagonal(e.in(1).cast(DType::i64).reshape({})) : e.number(DType::i64, int64_t{0});
  const Expr row = e.iota({x.dim(x.rank() - 2), IntExpr(1)}, 0, DType::i64) + k;
  const Expr column = e.iota({x.dim(x.rank() - 1)}, 0, DType::i64);
  const Expr kept = c.attr_int("upper", 1) != 0 ? less_equal(row, column) : less_equal(column, row);
  return e.give(0, select(kept, x, 0));
}

Status eye_like(NodeContext& c) {
  Emit e(c);
  const Expr x = e.in(0);
  QUARTET_TRY(e.status());
  if (x.rank() != 2) return make_error(Code::invalid_argument, "the operand has rank %zu", x.rank());
  DType to = x.dtype();
  if (const int64_t wanted = c.attr_int("dtype", 0); wanted != 0) {
    const auto dtype = dtype_of(static_cast<int32_t>(wanted));
    if (!dtype) return make_error(Code::unsupported, "dtype %s", type_name(static_cast<int32_t>(wanted)).c_str());
    to = *dtype;
  }
  const Expr row = e.iota({x.dim(0), IntExpr(1)}, 0, DType::i64) +
                   std::clamp(static_cast<double>(c.attr_int("k", 0)), -kFurthest, kFurthest);
  return e.give(0, equal(row, e.iota({x.dim(1)}, 0, DType::i64)).cast(to));
}

// The running sum along an axis. In ceil(log2 n) steps, each adding what stands 1, 2, 4 ... places before, where the
// extent is known; else as a sum of masked elements per place.
Expr running_sum(Emit& e, const Expr& x, size_t axis) {
  const auto known = x.dim(axis).constant();
  if (known) {
    Expr sum = x;
    for (int64_t step = 1; step < *known; step *= 2) {
      graph::Shape low(x.rank(), IntExpr(0)), none = low;
      low[axis] = step;
      const Expr before =
          e.op(OpCode::pad, {sum.slice(axis, IntExpr(0), IntExpr(*known - step)), e.number(x.dtype(), 0.0)},
               {{AttrKey::low, low}, {AttrKey::high, none}});
      sum = sum + before;
    }
    return sum;
  }
  // [..., n of the result, n of the operand, ...]
  graph::Shape apart = x.shape();
  apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(axis), IntExpr(1));
  const Expr to = e.iota({x.dim(axis)}, 0, DType::i64).along(axis, apart.size());
  const Expr from = e.iota({x.dim(axis)}, 0, DType::i64).along(axis + 1, apart.size());
  return select(less_equal(from, to), x.reshape(apart), 0)
      .reduce(OpCode::reduce_sum, {static_cast<int64_t>(axis) + 1}, false);
}

Expr reversed(const Expr& x, size_t axis) {
  if (!x.ok()) return x;
  graph::Shape starts(x.rank(), IntExpr(0)), limits = x.shape();
  std::vector<int64_t> steps(x.rank(), 1);
  starts[axis] = x.dim(axis) - IntExpr(1);
  limits[axis] = -1;
  steps[axis] = -1;
  return x.emit().op(OpCode::slice, {x},
                     {{AttrKey::starts, starts}, {AttrKey::limits, limits}, {AttrKey::steps, steps}});
}

Expr cumulated(NodeContext& c, Emit& e, const Expr& x, size_t axis) {
  const bool backwards = c.attr_int("reverse", 0) != 0;
  Expr sum = running_sum(e, backwards ? reversed(x, axis) : x, axis);
  if (c.attr_int("exclusive", 0) != 0) {
    // The sums one place on, 0 first.
    graph::Shape low(x.rank(), IntExpr(0)), none = low;
    if (x.ok()) low[axis] = 1;
    sum = e.op(OpCode::pad, {sum, e.number(x.dtype(), 0.0)}, {{AttrKey::low, low}, {AttrKey::high, none}})
              .slice(axis, IntExpr(0), x.dim(axis));
  }
  return backwards ? reversed(sum, axis) : sum;
}

Status cum_sum(NodeContext& c) {
  Emit e(c);
  const Expr given = e.in(0);
  QUARTET_TRY(e.status());
  const Expr x = given.cast(working_type(given.dtype()));
  if (c.known_ints(1)) {
    QUARTET_ASSIGN(const auto axes, c.numbers(1, "the axis"));
    if (axes.size() != 1) return Status(Code::invalid_argument, "the axis has not one element");
    QUARTET_ASSIGN(const int64_t axis, c.axis(axes[0], x.rank()));
    return e.give(0, cumulated(c, e, x, static_cast<size_t>(axis)).cast(given.dtype()));
  }
  // An axis that only the run knows: all of them, and the one it is.
  const Expr axis = e.in(1).reshape({}).cast(DType::i64);
  const Expr chosen = from_front(axis, e.number(DType::i64, static_cast<int64_t>(x.rank())));
  Expr y = x;
  for (size_t d = 0; d < x.rank(); ++d) y = select(equal(chosen, static_cast<double>(d)), cumulated(c, e, x, d), y);
  return e.give(0, y.cast(given.dtype()));
}

// The first `lens[batch]` elements of each sequence backwards, the rest as they are.
Status reverse_sequence(NodeContext& c) {
  Emit e(c);
  const Expr x = e.in(0);
  Expr lens = e.in(1).cast(DType::i64);
  QUARTET_TRY(e.status());
  QUARTET_ASSIGN(const int64_t time, c.axis(c.attr_int("time_axis", 0), x.rank()));
  QUARTET_ASSIGN(const int64_t batch, c.axis(c.attr_int("batch_axis", 1), x.rank()));
  if (time == batch || lens.rank() != 1)
    return Status(Code::invalid_argument, "time_axis, batch_axis and lens do not fit");
  const auto t = static_cast<size_t>(time), b = static_cast<size_t>(batch);
  lens = e.value(c.assumed(lens.id(), {x.dim(b)}, "lens"));
  const Expr step = e.iota({x.dim(t)}, 0, DType::i64).along(t, x.rank()), count = lens.along(b, x.rank());
  const Expr from = select(less(step, count), count - 1 - step, step);
  return e.give(0, gather_elements(x, from.expand(x.shape()), t));
}

constexpr OpRow kRows[] = {
    {"CumSum", 11, INT64_MAX, cum_sum},
    {"EyeLike", 9, INT64_MAX, eye_like},
    {"GatherElements", 11, INT64_MAX, gather_elements_node},
    {"GatherND", 11, INT64_MAX, gather_nd},
    {"OneHot", 9, INT64_MAX, one_hot},
    {"ReverseSequence", 10, INT64_MAX, reverse_sequence},
    {"Trilu", 14, INT64_MAX, trilu},
};

}  // namespace

std::span<const OpRow> index_ops() { return kRows; }

}  // namespace quartet::import::onnx
