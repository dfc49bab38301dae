// The convolution with channels first as the one with channels last, between views.
#include <numeric>

#include "simplify/rules.h"

namespace quartet::simplify {
namespace {

Result<ValueId> reshaped(Rewriter& r, ValueId x, Shape shape) {
  return r.one(OpCode::reshape, {x}, {{AttrKey::shape, std::move(shape)}});
}

Result<ValueId> transposed(Rewriter& r, ValueId x, std::vector<int64_t> perm) {
  return r.one(OpCode::transpose, {x}, {{AttrKey::perm, std::move(perm)}});
}

// Axis `from` moved to place `to`, the others in their order.
std::vector<int64_t> moved_axis(size_t rank, size_t from, size_t to) {
  std::vector<int64_t> perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  perm.erase(perm.begin() + static_cast<std::ptrdiff_t>(from));
  perm.insert(perm.begin() + static_cast<std::ptrdiff_t>(to), static_cast<int64_t>(from));
  return perm;
}

// [n, c, s...] as [n, s..., group, c / groups].
Result<ValueId> channels_last(Rewriter& r, ValueId x, int64_t groups, const IntExpr& channels) {
  const size_t rank = r.type(x).rank();
  QUARTET_ASSIGN(const ValueId last, transposed(r, x, moved_axis(rank, 1, rank - 1)));
  Shape shape = r.type(last).shape;
  shape.back() = IntExpr(groups);
  shape.push_back(channels);
  return reshaped(r, last, std::move(shape));
}

// [m, c, k...] as [k..., c, group, m / groups].
Result<ValueId> grouped_filters(Rewriter& r, ValueId w, int64_t groups, const IntExpr& filters) {
  Shape shape = r.type(w).shape;
  shape.front() = filters;
  shape.insert(shape.begin(), IntExpr(groups));
  const size_t rank = shape.size();
  QUARTET_ASSIGN(const ValueId apart, reshaped(r, w, std::move(shape)));
  std::vector<int64_t> perm;
  for (size_t i = 3; i < rank; ++i) perm.push_back(static_cast<int64_t>(i));
  perm.insert(perm.end(), {2, 0, 1});
  return transposed(r, apart, std::move(perm));
}

}  // namespace

Replacement decompose_conv(Rewriter& r, const Candidate& c) {
  if (c.op.code != OpCode::conv) return keep();
  const int64_t groups = graph::attr_int(c.op, AttrKey::groups);
  const Shape filters = r.type(c.op.operands[1]).shape;
  QUARTET_ASSIGN(const ValueId x, channels_last(r, c.op.operands[0], groups, filters[1]));
  QUARTET_ASSIGN(const ValueId w, grouped_filters(r, c.op.operands[1], groups, floor_div(filters[0], IntExpr(groups))));
  Attrs attrs = c.op.attrs;
  attrs.erase(AttrKey::groups);
  QUARTET_ASSIGN(const ValueId y, r.one(OpCode::convolve, {x, w}, std::move(attrs)));
  Shape shape = r.type(y).shape;
  shape.pop_back();
  shape.back() = filters[0];
  const size_t rank = shape.size();
  QUARTET_ASSIGN(const ValueId together, reshaped(r, y, std::move(shape)));
  return replace_by(transposed(r, together, moved_axis(rank, rank - 1, 1)));
}

}  // namespace quartet::simplify
