// pow with a constant exponent that has a simple form. Special values stay those of pow.
#include <limits>

#include "simplify/rules.h"

namespace quartet::simplify {
namespace {

// sqrt of +0 for -0, as pow says, and infinity for -infinity.
Result<ValueId> square_root(Rewriter& r, ValueId x) {
  const DType type = r.type(x).dtype;
  QUARTET_ASSIGN(const ValueId zero, r.scalar(type, 0));
  QUARTET_ASSIGN(const ValueId infinity, r.scalar(type, std::numeric_limits<double>::infinity()));
  QUARTET_ASSIGN(const ValueId minus_infinity, r.scalar(type, -std::numeric_limits<double>::infinity()));
  QUARTET_ASSIGN(const ValueId positive, r.one(OpCode::add, {x, zero}));
  QUARTET_ASSIGN(const ValueId root, r.one(OpCode::sqrt, {positive}));
  QUARTET_ASSIGN(const ValueId lowest, r.one(OpCode::equal, {x, minus_infinity}));
  return r.one(OpCode::select, {lowest, infinity, root});
}

Result<ValueId> all_ones(Rewriter& r, ValueId x) {
  QUARTET_ASSIGN(const ValueId one, r.scalar(r.type(x).dtype, 1));
  return r.one(OpCode::expand, {one}, {{AttrKey::shape, r.type(x).shape}});
}

}  // namespace

Replacement power(Rewriter& r, const Candidate& c) {
  if (c.op.code != OpCode::pow) return keep();
  const ValueId x = c.op.operands[0], exponent = c.op.operands[1];
  if (!has_type(r, x, c.types[0])) return keep();  // the exponent's shape would be lost
  if (is_all(r, exponent, 1)) return replace_by(x);
  if (is_all(r, exponent, 2)) return replace_by(r.one(OpCode::mul, {x, x}));
  if (is_all(r, exponent, 3)) {
    QUARTET_ASSIGN(const ValueId square, r.one(OpCode::mul, {x, x}));
    return replace_by(r.one(OpCode::mul, {square, x}));
  }
  if (is_all(r, exponent, 0.5)) return replace_by(square_root(r, x));
  if (is_all(r, exponent, -1)) return replace_by(r.one(OpCode::reciprocal, {x}));
  if (is_all(r, exponent, 0)) return replace_by(all_ones(r, x));
  return keep();
}

}  // namespace quartet::simplify
