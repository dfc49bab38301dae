// Ops whose results are as many as the run finds: NonZero, Compress, Unique.
#include "import/onnx/index.h"
#include "import/onnx/run_dims.h"

namespace quartet::import::onnx {
namespace {

Status nonzero(NodeContext& c) {
  Emit e(c);
  const Expr x = e.in(0);
  QUARTET_TRY(e.status());
  const graph::Shape shape = x.shape();
  const Expr mask = flat(x.dtype() == DType::boolean ? x : negated(equal(x, 0)));
  QUARTET_ASSIGN(const Expr places, places_of(c, mask));
  const IntExpr count = places.dim(0);
  if (shape.empty()) return e.give(0, e.number(DType::i64, int64_t{0}).expand({IntExpr(0), count}));
  std::vector<Expr> rows;
  IntExpr below = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    Expr at = below.is(1) ? places : places / e.dim(below, DType::i64);
    if (d > 0) at = at - at / max(e.dim(shape[d], DType::i64), 1) * max(e.dim(shape[d], DType::i64), 1);
    rows.insert(rows.begin(), at.reshape({IntExpr(1), count}));
    below *= shape[d];
  }
  return e.give(0, e.concat(rows, 0));
}

Status compress(NodeContext& c) {
  Emit e(c);
  Expr x = e.in(0), condition = e.in(1);
  QUARTET_TRY(e.status());
  if (condition.rank() != 1 || condition.dtype() != DType::boolean)
    return make_error(Code::invalid_argument, "the condition is %s", c.dims().text(condition.type()).c_str());
  int64_t axis = 0;
  if (c.attr("axis")) {
    QUARTET_ASSIGN(axis, c.axis(c.attr_int("axis", 0), x.rank()));
  } else {
    x = flat(x);
  }
  const auto along = static_cast<size_t>(axis);
  // The condition may be shorter than the axis.
  if (!c.dims().at_least(x.dim(along), condition.dim(0)))
    condition = condition.slice(0, IntExpr(0), c.simple(min(condition.dim(0), x.dim(along))));
  QUARTET_ASSIGN(const Expr places, places_of(c, condition));
  return e.give(0, x.gather(places, along));
}

// All pairs of rows [n, ...]: whether they are equal, and whether the second comes before the first.
struct Pairs {
  Expr same, before;
};

Pairs pairs_of(Emit& e, const Expr& x) {
  const IntExpr n = x.dim(0);
  if (x.rank() == 1) {
    const Expr down = x.reshape({n, IntExpr(1)}), across = x.reshape({IntExpr(1), n});
    return {equal(down, across), less(across, down)};
  }
  // By their first difference.
  const IntExpr width = x.dim(1);
  const Expr down = x.reshape({n, IntExpr(1), width}), across = x.reshape({IntExpr(1), n, width});
  const Expr differ = negated(equal(down, across));
  const Expr where =
      e.op(OpCode::argmax, {differ.cast(DType::i32)}, {{AttrKey::axis, int64_t{2}}, {AttrKey::keepdims, int64_t{1}}});
  const Expr there = equal(e.iota({width}, 0, DType::i64), where);
  return {negated(differ.reduce(OpCode::reduce_any, {2}, false)),
          both(there, less(across, down)).reduce(OpCode::reduce_any, {2}, false)};
}

// A value stands for those that equal it where it comes first.
Status unique(NodeContext& c) {
  Emit e(c);
  Expr x = e.in(0);
  QUARTET_TRY(e.status());
  int64_t axis = 0;
  const bool by_axis = c.attr("axis") != nullptr;
  Expr rows = flat(x);
  if (by_axis) {
    QUARTET_ASSIGN(axis, c.axis(c.attr_int("axis", 0), x.rank()));
    std::vector<int64_t> perm{axis};
    IntExpr width = 1;
    for (int64_t d = 0; d < static_cast<int64_t>(x.rank()); ++d) {
      if (d == axis) continue;
      perm.push_back(d);
      width *= x.dim(static_cast<size_t>(d));
    }
    rows = x.transpose(perm).reshape({x.dim(static_cast<size_t>(axis)), width});
  } else {
    x = rows;
  }
  const IntExpr all = rows.dim(0);
  const DType i64 = DType::i64;
  const auto across = [&](const Expr& list) { return list.reshape({IntExpr(1), all}); };
  const auto down = [&](const Expr& list) { return list.reshape({all, IntExpr(1)}); };
  const Expr here = e.iota({all}, 0, i64), there = across(here);
  const Pairs pairs = pairs_of(e, rows);
  const Expr first = select(pairs.same, there, e.dim(all, i64)).reduce(OpCode::reduce_min, {1}, false);
  // NaN equals nothing, not even itself: each stands for itself.
  const Expr alone = equal(first, e.dim(all, i64));
  const Expr leads = either(equal(first, here), alone);
  QUARTET_ASSIGN(const Expr places, places_of(c, leads));
  const graph::Shape column{places.dim(0), IntExpr(1)};
  Expr order = e.iota({places.dim(0)}, 0, i64), rank;
  if (c.attr_int("sorted", 1) != 0) {
    // How many that lead come before: smaller ones, and what is not NaN before NaN.
    const Expr last = both(down(alone), either(negated(across(alone)), less(there, down(here))));
    rank = both(either(pairs.before, last), across(leads)).cast(i64).reduce(OpCode::reduce_sum, {1}, false);
    const Expr none = e.number(i64, int64_t{0}).expand(column);
    order =
        e.op(OpCode::scatter, {none, rank.gather(places, 0), order.reshape(column)}, {{AttrKey::combine, int64_t{0}}})
            .reshape({places.dim(0)});
  } else {
    rank = (prefix_sums(e, leads.cast(DType::i32)) - 1).gather(select(alone, here, first), 0);
  }
  const Expr chosen = places.gather(order, 0);
  QUARTET_TRY(e.give(0, x.gather(chosen, static_cast<size_t>(axis))));
  if (c.output_count() > 1) QUARTET_TRY(e.give(1, chosen));
  if (c.output_count() > 2) QUARTET_TRY(e.give(2, rank));
  if (c.output_count() > 3) {
    const Expr count = max(pairs.same.cast(i64).reduce(OpCode::reduce_sum, {1}, false), 1);
    QUARTET_TRY(e.give(3, count.gather(chosen, 0)));
  }
  return e.status();
}

constexpr OpRow kRows[] = {
    {"Compress", 9, INT64_MAX, compress},
    {"NonZero", 9, INT64_MAX, nonzero},
    {"Unique", 11, INT64_MAX, unique},
};

}  // namespace

std::span<const OpRow> nonzero_ops() { return kRows; }

}  // namespace quartet::import::onnx
