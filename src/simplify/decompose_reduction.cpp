// Composite reductions, softmax and the last-index forms as primitives.
#include <limits>

#include "simplify/rules.h"

namespace quartet::simplify {
namespace {

bool is_short(DType type) { return type == DType::f16 || type == DType::bf16; }

// How many elements go into each result, as a scalar of the type.
Result<ValueId> count_of(Rewriter& r, const Candidate& c, DType type) {
  IntExpr count = 1;
  const Shape& shape = r.type(c.op.operands[0]).shape;
  for (const int64_t axis : *graph::attr_ints(c.op, AttrKey::axes)) count = count * shape[static_cast<size_t>(axis)];
  QUARTET_ASSIGN(const ValueId values, r.one(OpCode::dims, {}, {{AttrKey::shape, Shape{count}}}));
  QUARTET_ASSIGN(const ValueId scalar, r.one(OpCode::reshape, {values}, {{AttrKey::shape, Shape{}}}));
  return r.one(OpCode::cast, {scalar}, {{AttrKey::to, type}});
}

// log(sum(exp(a - m))) + m, m the maximum where that is finite.
Result<ValueId> log_sum_exp(Rewriter& r, const Candidate& c) {
  const ValueId x = c.op.operands[0];
  const DType type = r.type(x).dtype;
  Attrs kept = c.op.attrs;
  kept[AttrKey::keepdims] = int64_t{1};
  QUARTET_ASSIGN(const ValueId maximum, r.one(OpCode::reduce_max, {x}, kept));
  QUARTET_ASSIGN(const ValueId infinity, r.scalar(type, std::numeric_limits<double>::infinity()));
  QUARTET_ASSIGN(const ValueId zero, r.scalar(type, 0));
  QUARTET_ASSIGN(const ValueId magnitude, r.one(OpCode::abs, {maximum}));
  QUARTET_ASSIGN(const ValueId finite, r.one(OpCode::less, {magnitude, infinity}));
  QUARTET_ASSIGN(const ValueId shift, r.one(OpCode::select, {finite, maximum, zero}));
  QUARTET_ASSIGN(const ValueId shifted, r.one(OpCode::sub, {x, shift}));
  QUARTET_ASSIGN(const ValueId exponentials, r.one(OpCode::exp, {shifted}));
  QUARTET_ASSIGN(const ValueId sum, r.one(OpCode::reduce_sum, {exponentials}, kept));
  QUARTET_ASSIGN(const ValueId logarithm, r.one(OpCode::log, {sum}));
  QUARTET_ASSIGN(const ValueId result, r.one(OpCode::add, {logarithm, shift}));
  return r.one(OpCode::reshape, {result}, {{AttrKey::shape, c.types[0].shape}});
}

struct SoftmaxRow {
  ValueId shifted = graph::kNoValue;       // x - maximum
  ValueId exponentials = graph::kNoValue;  // of shifted, if the sum needed them
  ValueId sum = graph::kNoValue;           // of exponentials
};

// Of one block the statistics are plain reductions, and the exponentials of the sum are those of the result. (Where all
// elements are -inf the sums of the two forms differ, NaN and 0, and the results do not: they are NaN.)
Result<SoftmaxRow> softmax_row(Rewriter& r, const Candidate& c) {
  const ValueId x = c.op.operands[0];
  const int64_t axis = graph::attr_int(c.op, AttrKey::axis);
  const auto length = r.type(x).shape[static_cast<size_t>(axis)].constant();
  SoftmaxRow row;
  if (!length || *length > graph::kSoftmaxBlock) {
    QUARTET_ASSIGN(const std::vector<ValueId> stats, r.emit(OpCode::softmax_stats, {x}, c.op.attrs));
    QUARTET_ASSIGN(row.shifted, r.one(OpCode::sub, {x, stats[0]}));
    row.sum = stats[1];
    return row;
  }
  const Attrs rows = {{AttrKey::axes, std::vector<int64_t>{axis}}, {AttrKey::keepdims, int64_t{1}}};
  QUARTET_ASSIGN(const ValueId maximum, r.one(OpCode::reduce_max, {x}, rows));
  QUARTET_ASSIGN(row.shifted, r.one(OpCode::sub, {x, maximum}));
  QUARTET_ASSIGN(row.exponentials, r.one(OpCode::exp, {row.shifted}));
  QUARTET_ASSIGN(row.sum, r.one(OpCode::reduce_sum, {row.exponentials}, rows));
  return row;
}

Result<ValueId> softmax(Rewriter& r, const Candidate& c) {
  const DType type = r.type(c.op.operands[0]).dtype;
  QUARTET_ASSIGN(SoftmaxRow row, softmax_row(r, c));
  if (c.op.code == OpCode::log_softmax) {
    QUARTET_ASSIGN(const ValueId logarithm, r.one(OpCode::log, {row.sum}));
    return r.one(OpCode::sub, {row.shifted, logarithm});
  }
  if (row.exponentials == graph::kNoValue) {
    QUARTET_ASSIGN(row.exponentials, r.one(OpCode::exp, {row.shifted}));
  }
  QUARTET_ASSIGN(const ValueId one, r.scalar(type, 1));
  QUARTET_ASSIGN(const ValueId inverse, r.one(OpCode::div, {one, row.sum}));
  return r.one(OpCode::mul, {row.exponentials, inverse});
}

Result<ValueId> sum_then(Rewriter& r, const Candidate& c, ValueId of, std::optional<OpCode> then = std::nullopt) {
  QUARTET_ASSIGN(const ValueId sum, r.one(OpCode::reduce_sum, {of}, c.op.attrs));
  if (!then) return sum;
  return r.one(*then, {sum});
}

Result<ValueId> mean(Rewriter& r, const Candidate& c) {
  QUARTET_ASSIGN(const ValueId sum, sum_then(r, c, c.op.operands[0]));
  QUARTET_ASSIGN(const ValueId count, count_of(r, c, r.type(sum).dtype));
  return r.one(OpCode::div, {sum, count});
}

Result<ValueId> in_own_type(Rewriter& r, const Candidate& c) {
  const ValueId x = c.op.operands[0];
  switch (c.op.code) {
    case OpCode::reduce_mean:
      return mean(r, c);
    case OpCode::reduce_log_sum:
      return sum_then(r, c, x, OpCode::log);
    case OpCode::reduce_log_sum_exp:
      return log_sum_exp(r, c);
    case OpCode::softmax:
    case OpCode::log_softmax:
      return softmax(r, c);
    case OpCode::reduce_l1: {
      QUARTET_ASSIGN(const ValueId magnitude, r.one(OpCode::abs, {x}));
      return sum_then(r, c, magnitude);
    }
    default: {
      QUARTET_ASSIGN(const ValueId square, r.one(OpCode::mul, {x, x}));
      return sum_then(r, c, square, c.op.code == OpCode::reduce_l2 ? std::optional(OpCode::sqrt) : std::nullopt);
    }
  }
}

// The last extreme is the first one of the reversed axis.
Result<ValueId> last_index(Rewriter& r, const Candidate& c) {
  const ValueId x = c.op.operands[0];
  const int64_t axis = graph::attr_int(c.op, AttrKey::axis);
  const Shape& shape = r.type(x).shape;
  Shape starts(shape.size(), 0), limits = shape;
  std::vector<int64_t> steps(shape.size(), 1);
  const IntExpr last = shape[static_cast<size_t>(axis)] - IntExpr(1);
  starts[static_cast<size_t>(axis)] = last;
  limits[static_cast<size_t>(axis)] = -1;
  steps[static_cast<size_t>(axis)] = -1;
  QUARTET_ASSIGN(
      const ValueId reversed,
      r.one(OpCode::slice, {x}, {{AttrKey::starts, starts}, {AttrKey::limits, limits}, {AttrKey::steps, steps}}));
  Attrs attrs = c.op.attrs;
  attrs.erase(AttrKey::select_last_index);
  QUARTET_ASSIGN(const ValueId index, r.one(c.op.code, {reversed}, attrs));
  QUARTET_ASSIGN(const ValueId values, r.one(OpCode::dims, {}, {{AttrKey::shape, Shape{last}}}));
  QUARTET_ASSIGN(const ValueId from, r.one(OpCode::reshape, {values}, {{AttrKey::shape, Shape{}}}));
  // Without elements the index is -1, and so is the result: no index passes the last one.
  QUARTET_ASSIGN(const ValueId forward, r.one(OpCode::sub, {from, index}));
  return r.one(OpCode::min, {forward, from});
}

bool is_composite_reduction(OpCode code) {
  switch (code) {
    case OpCode::reduce_mean:
    case OpCode::reduce_sum_square:
    case OpCode::reduce_l1:
    case OpCode::reduce_l2:
    case OpCode::reduce_log_sum:
    case OpCode::reduce_log_sum_exp:
    case OpCode::softmax:
    case OpCode::log_softmax:
      return true;
    default:
      return false;
  }
}

}  // namespace

Replacement decompose_reduction(Rewriter& r, const Candidate& c) {
  if (graph::attr_int(c.op, AttrKey::select_last_index) != 0) return replace_by(last_index(r, c));
  if (!is_composite_reduction(c.op.code)) return keep();
  const DType type = c.types[0].dtype;
  if (!is_short(type)) return replace_by(in_own_type(r, c));
  QUARTET_ASSIGN(const ValueId wide, r.one(OpCode::cast, {c.op.operands[0]}, {{AttrKey::to, DType::f32}}));
  QUARTET_ASSIGN(const ValueId result, r.one(c.op.code, {wide}, c.op.attrs));
  return replace_by(r.one(OpCode::cast, {result}, {{AttrKey::to, type}}));
}

}  // namespace quartet::simplify
