// The greatest or smallest elements of an axis, and where they are.
#include "import/onnx/expr.h"
#include "import/onnx/index.h"
#include "import/onnx/tensors.h"

namespace quartet::import::onnx {

namespace {

// Whether b comes before a in the order asked for; NaN counts as the greatest, as in argmax.
struct Order {
  Expr before, same;
};

Order order_of(const Expr& a, const Expr& b, bool largest) {
  Order order{largest ? less(a, b) : less(b, a), equal(a, b)};
  if (!is_float(a.dtype())) return order;
  const Expr a_nan = negated(equal(a, a)), b_nan = negated(equal(b, b));
  const Expr first = largest ? both(b_nan, negated(a_nan)) : both(a_nan, negated(b_nan));
  return {either(order.before, first), either(order.same, both(a_nan, b_nan))};
}

// How many elements of the last axis come before each one; of equal ones the first comes first. So every rank from 0 on
// is taken once.
Expr ranks(Emit& e, const Expr& x, bool largest) {
  const size_t last = x.rank() - 1;
  graph::Shape column = x.shape(), row = x.shape();
  column.push_back(1);
  row.insert(row.begin() + static_cast<std::ptrdiff_t>(last), IntExpr(1));
  const Order order = order_of(x.reshape(column), x.reshape(row), largest);
  const Expr here = e.iota({x.dim(last), IntExpr(1)}, 0, DType::i64), there = e.iota({x.dim(last)}, 0, DType::i64);
  const Expr before = either(order.before, both(order.same, less(there, here)));
  return before.cast(DType::i64).reduce(OpCode::reduce_sum, {static_cast<int64_t>(last) + 1}, false);
}

// The places of the first `count` elements in that order: [..., count].
Expr places(Emit& e, const Expr& rank, const IntExpr& count) {
  const size_t last = rank.rank() - 1;
  graph::Shape row = rank.shape();
  row.insert(row.begin() + static_cast<std::ptrdiff_t>(last), IntExpr(1));
  const Expr wanted = e.iota({count, IntExpr(1)}, 0, DType::i64), here = e.iota({rank.dim(last)}, 0, DType::i64);
  const Expr hit = equal(rank.reshape(row), wanted);
  return select(hit, here, 0).reduce(OpCode::reduce_sum, {static_cast<int64_t>(last) + 1}, false);
}

Result<IntExpr> count_of(NodeContext& c, size_t axis) {
  if (c.version() < 10) return IntExpr(c.attr_int("k", 0));
  if (const auto known = c.known_ints(1)) {
    if (known->values.size() != 1) return Status(Code::invalid_argument, "k has not one element");
    return known->values[0];
  }
  QUARTET_ASSIGN(const graph::Shape declared, c.declared_shape(0, 1, "k"));
  if (axis >= declared.size()) return Status(Code::invalid_argument, "the declared result has another rank");
  return declared[axis];
}

Status top_k(NodeContext& c) {
  Emit e(c);
  const Expr x = e.in(0);
  QUARTET_TRY(e.status());
  QUARTET_ASSIGN(const int64_t axis, c.axis(c.attr_int("axis", -1), x.rank()));
  const auto along = static_cast<size_t>(axis);
  QUARTET_ASSIGN(const IntExpr count, count_of(c, along));
  if (!c.dims().at_least(x.dim(along), count))
    return make_error(count.is_constant() && x.dim(along).is_constant() ? Code::invalid_argument : Code::unsupported,
                      "k = %s is not known to be at most the axis' %s", c.dims().text(count).c_str(),
                      c.dims().text(x.dim(along)).c_str());
  std::vector<int64_t> to_last, back;
  for (size_t d = 0; d < x.rank(); ++d)
    if (d != along) to_last.push_back(static_cast<int64_t>(d));
  to_last.push_back(axis);
  back = to_last;
  for (size_t d = 0; d < to_last.size(); ++d) back[static_cast<size_t>(to_last[d])] = static_cast<int64_t>(d);
  const Expr moved = x.transpose(to_last);
  Expr rank = ranks(e, moved, c.attr_int("largest", 1) != 0);
  QUARTET_TRY(e.status());
  if (c.version() >= 10 && c.from_caller(1)) rank = as_declared(rank, 1, {count});
  const Expr where = places(e, rank, count);
  QUARTET_TRY(e.give(0, gather_elements(moved, where, x.rank() - 1).transpose(back)));
  if (c.output_count() > 1) QUARTET_TRY(e.give(1, where.transpose(back)));
  return e.status();
}

constexpr OpRow kRows[] = {{"TopK", 1, INT64_MAX, top_k}};

}  // namespace

std::span<const OpRow> sort_ops() { return kRows; }

}  // namespace quartet::import::onnx
