// A view of a view as one view, and transposes into matmul.
#include "simplify/rules.h"

namespace quartet::simplify {
namespace {

// Whether the transpose swaps the last two axes and nothing else.
bool swaps_last_two(const std::vector<int64_t>& perm) {
  const size_t rank = perm.size();
  for (size_t i = 0; i + 2 < rank; ++i)
    if (perm[i] != static_cast<int64_t>(i)) return false;
  return rank >= 2 && perm[rank - 2] == static_cast<int64_t>(rank - 1) &&
         perm[rank - 1] == static_cast<int64_t>(rank - 2);
}

Replacement merge_transposes(Rewriter& r, const Candidate& c) {
  const Op* inner = r.definition(c.op.operands[0], OpCode::transpose);
  if (!inner) return keep();
  const auto &first = *graph::attr_ints(*inner, AttrKey::perm), &second = *graph::attr_ints(c.op, AttrKey::perm);
  std::vector<int64_t> perm;
  perm.reserve(second.size());
  for (const int64_t axis : second) perm.push_back(first[static_cast<size_t>(axis)]);
  return replace_by(r.one(OpCode::transpose, {inner->operands[0]}, {{AttrKey::perm, std::move(perm)}}));
}

// matmul reads a transposed operand in place.
Replacement absorb_transposes(Rewriter& r, const Candidate& c) {
  constexpr AttrKey kKeys[] = {AttrKey::transpose_a, AttrKey::transpose_b};
  Op op = c.op;
  bool changed = false;
  for (size_t i = 0; i < 2; ++i) {
    const Op* inner = r.definition(op.operands[i], OpCode::transpose);
    if (!inner || !swaps_last_two(*graph::attr_ints(*inner, AttrKey::perm))) continue;
    op.attrs[kKeys[i]] = int64_t{1} - graph::attr_int(op, kKeys[i]);
    op.operands[i] = inner->operands[0];
    changed = true;
  }
  if (!changed) return keep();
  return replace_by(r.one(OpCode::matmul, op.operands, op.attrs));
}

}  // namespace

Replacement merge_views(Rewriter& r, const Candidate& c) {
  switch (c.op.code) {
    case OpCode::transpose:
      return merge_transposes(r, c);
    case OpCode::matmul:
      return absorb_transposes(r, c);
    case OpCode::reshape:
    case OpCode::expand: {
      const Op* inner = r.definition(c.op.operands[0], c.op.code);
      if (!inner) return keep();
      return replace_by(r.one(c.op.code, {inner->operands[0]}, c.op.attrs));
    }
    default:
      return keep();
  }
}

}  // namespace quartet::simplify
