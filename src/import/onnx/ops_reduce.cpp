// Reductions over axes.
#include <algorithm>

#include "import/onnx/expr.h"

namespace quartet::import::onnx {

namespace {

// No axes are all axes, or none at all: then what an op does before and after reducing is done to each element.
std::vector<int64_t> without_axes(NodeContext& c, size_t rank) {
  std::vector<int64_t> axes;
  if (c.attr_int("noop_with_empty_axes", 0) != 0) return axes;
  for (size_t d = 0; d < rank; ++d) axes.push_back(static_cast<int64_t>(d));
  return axes;
}

// The axes to reduce, ascending.
Result<std::vector<int64_t>> axes_of(NodeContext& c, size_t rank, bool from_input) {
  std::optional<std::vector<int64_t>> given = c.attr_ints("axes");
  if (from_input && c.has(1)) {
    QUARTET_ASSIGN(given, c.numbers(1, "axes"));
  }
  if (!given || given->empty()) return without_axes(c, rank);
  std::vector<int64_t> axes;
  for (const int64_t value : *given) {
    QUARTET_ASSIGN(const int64_t axis, c.axis(value, rank));
    axes.push_back(axis);
  }
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end())
    return Status(Code::invalid_argument, "an axis is given twice");
  return axes;
}

// What a reduction computes in where not in its operand's type: roots and logarithms of integers in f64, the extremes
// of booleans in u8.
DType computed_in(OpCode code, DType type) {
  const bool roots = code == OpCode::reduce_l2 || code == OpCode::reduce_log_sum || code == OpCode::reduce_log_sum_exp;
  if (roots && is_int(type)) return DType::f64;
  const bool extremes = code == OpCode::reduce_max || code == OpCode::reduce_min;
  return extremes && type == DType::boolean ? DType::u8 : type;
}

// Every choice of `count` of the axes whose reduction has the declared shape.
std::vector<std::vector<int64_t>> fitting_axes(NodeContext& c, const graph::Shape& shape, const graph::Shape& result,
                                               size_t count, bool keepdims) {
  std::vector<std::vector<int64_t>> choices;
  for (size_t bits = 0; bits < size_t{1} << shape.size(); ++bits) {
    std::vector<int64_t> axes;
    graph::Shape reduced;
    for (size_t d = 0; d < shape.size(); ++d) {
      const bool chosen = (bits >> d & 1) != 0;
      if (chosen) axes.push_back(static_cast<int64_t>(d));
      if (!chosen || keepdims) reduced.push_back(chosen ? IntExpr(1) : shape[d]);
    }
    if (axes.size() != count || reduced.size() != result.size()) continue;
    bool fits = true;
    for (size_t d = 0; d < reduced.size(); ++d) fits = fits && c.dims().same(reduced[d], result[d]);
    if (fits) choices.push_back(std::move(axes));
  }
  return choices;
}

// Axes that the caller gives: those that fit the declared result; of several, the one that the operand names.
Status reduce_by_caller(NodeContext& c, OpCode code, bool keepdims) {
  Emit e(c);
  const Expr given_x = e.in(0), x = given_x.cast(computed_in(code, given_x.dtype()));
  QUARTET_TRY(e.status());
  QUARTET_ASSIGN(const graph::Shape result, c.declared_shape(0, 1, "axes"));
  const Expr given = from_front(e.in(1).cast(DType::i64), e.number(DType::i64, static_cast<int64_t>(x.rank())));
  const auto count = given.rank() == 1 ? given.dim(0).constant() : std::nullopt;
  if (!count || x.rank() > 8) return Status(Code::unsupported, "axes whose number is not known");
  const auto choices = fitting_axes(c, x.shape(), result, static_cast<size_t>(*count), keepdims);
  if (choices.empty()) return Status(Code::invalid_argument, "no axes give the declared shape");
  Expr y;
  for (const std::vector<int64_t>& axes : choices) {
    if (y.ok() && keepdims) break;  // the others differ in axes of extent 1 alone
    const Expr reduced = x.reduce(code, axes, keepdims);
    if (!y.ok()) {
      y = reduced;
      continue;
    }
    y = select(is_one_of(given, {axes}), reduced, y);
  }
  return e.give(0, required(is_one_of(given, choices), y, contradiction(1)).cast(given_x.dtype()));
}

template <OpCode code, bool from_input>
Status reduce(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  const int64_t keepdims = c.attr_int("keepdims", 1) != 0;
  std::vector<int64_t> axes;
  if (from_input && c.from_caller(1)) {
    QUARTET_ASSIGN(const ValueId given, c.in(1));
    if (!c.type(given).elements().is(0)) return reduce_by_caller(c, code, keepdims != 0);
    axes = without_axes(c, c.type(x).rank());
  } else {
    QUARTET_ASSIGN(axes, axes_of(c, c.type(x).rank(), from_input));
  }
  const DType type = c.type(x).dtype;
  QUARTET_ASSIGN(const ValueId wide, c.cast(x, computed_in(code, type)));
  QUARTET_ASSIGN(const ValueId y,
                 c.op(code, {wide}, {{AttrKey::axes, std::move(axes)}, {AttrKey::keepdims, keepdims}}));
  return c.give(0, c.cast(y, type));
}

template <OpCode code>
Status arg(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  QUARTET_ASSIGN(const int64_t axis, c.axis(c.attr_int("axis", 0), c.type(x).rank()));
  return c.give(0, c.op(code, {x},
                        {{AttrKey::axis, axis},
                         {AttrKey::keepdims, int64_t{c.attr_int("keepdims", 1) != 0}},
                         {AttrKey::select_last_index, int64_t{c.attr_int("select_last_index", 0) != 0}}}));
}

constexpr OpRow kRows[] = {
    {"ArgMax", 1, INT64_MAX, arg<OpCode::argmax>},
    {"ArgMin", 1, INT64_MAX, arg<OpCode::argmin>},
    {"ReduceL1", 1, 18, reduce<OpCode::reduce_l1, false>},
    {"ReduceL1", 18, INT64_MAX, reduce<OpCode::reduce_l1, true>},
    {"ReduceL2", 1, 18, reduce<OpCode::reduce_l2, false>},
    {"ReduceL2", 18, INT64_MAX, reduce<OpCode::reduce_l2, true>},
    {"ReduceLogSum", 1, 18, reduce<OpCode::reduce_log_sum, false>},
    {"ReduceLogSum", 18, INT64_MAX, reduce<OpCode::reduce_log_sum, true>},
    {"ReduceLogSumExp", 1, 18, reduce<OpCode::reduce_log_sum_exp, false>},
    {"ReduceLogSumExp", 18, INT64_MAX, reduce<OpCode::reduce_log_sum_exp, true>},
    {"ReduceMax", 1, 18, reduce<OpCode::reduce_max, false>},
    {"ReduceMax", 18, INT64_MAX, reduce<OpCode::reduce_max, true>},
    {"ReduceMean", 1, 18, reduce<OpCode::reduce_mean, false>},
    {"ReduceMean", 18, INT64_MAX, reduce<OpCode::reduce_mean, true>},
    {"ReduceMin", 1, 18, reduce<OpCode::reduce_min, false>},
    {"ReduceMin", 18, INT64_MAX, reduce<OpCode::reduce_min, true>},
    {"ReduceProd", 1, 18, reduce<OpCode::reduce_prod, false>},
    {"ReduceProd", 18, INT64_MAX, reduce<OpCode::reduce_prod, true>},
    {"ReduceSum", 1, 13, reduce<OpCode::reduce_sum, false>},
    {"ReduceSum", 13, INT64_MAX, reduce<OpCode::reduce_sum, true>},
    {"ReduceSumSquare", 1, 18, reduce<OpCode::reduce_sum_square, false>},
    {"ReduceSumSquare", 18, INT64_MAX, reduce<OpCode::reduce_sum_square, true>},
};

}  // namespace

std::span<const OpRow> reduce_ops() { return kRows; }

}  // namespace quartet::import::onnx
