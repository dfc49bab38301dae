// A gather of one constant index is a slice.
#include "simplify/rules.h"

namespace quartet::simplify {

Replacement gather_slice(Rewriter& r, const Candidate& c) {
  if (c.op.code != OpCode::gather) return keep();
  const Constant* indices = r.constant(c.op.operands[1]);
  if (!indices || indices->bytes != size_of(indices->type.dtype)) return keep();
  const ValueId x = c.op.operands[0];
  const auto axis = static_cast<size_t>(graph::attr_int(c.op, AttrKey::axis));
  const Shape shape = r.type(x).shape;
  const int64_t index = graph::element_as_int(*indices, 0);
  const IntExpr start = index < 0 ? shape[axis] + IntExpr(index) : IntExpr(index);
  const IntExpr limit = start + IntExpr(1);
  // Only an index that is certainly inside: others are clamped.
  if (!start.is_valid() || !r.dims().at_least(start, 0) || !r.dims().at_least(shape[axis], limit)) return keep();
  Shape starts(shape.size(), 0), limits = shape;
  starts[axis] = start;
  limits[axis] = limit;
  QUARTET_ASSIGN(const ValueId taken,
                 r.one(OpCode::slice, {x}, {{AttrKey::starts, starts}, {AttrKey::limits, limits}}));
  return replace_by(r.one(OpCode::reshape, {taken}, {{AttrKey::shape, c.types[0].shape}}));
}

}  // namespace quartet::simplify
