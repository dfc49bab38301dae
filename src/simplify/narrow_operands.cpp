// An elementwise op broadcasts by itself: expanded operands are read unexpanded, and constants that are one number all
// over become a scalar, as long as the result keeps its shape.
#include "simplify/rules.h"

namespace quartet::simplify {
namespace {

// The shape of the result with one operand replaced.
bool keeps_shape(const Rewriter& r, const Candidate& c, size_t which, const Shape& shape) {
  Shape all;
  for (size_t i = 0; i < c.op.operands.size(); ++i) {
    auto next = graph::broadcast(all, i == which ? shape : r.type(c.op.operands[i]).shape, r.dims());
    if (!next) return false;
    all = next.take();
  }
  return all == c.types[0].shape;
}

}  // namespace

Replacement narrow_operands(Rewriter& r, const Candidate& c) {
  if (graph::op_info(c.op.code).op_class != graph::OpClass::elementwise || c.op.operands.size() < 2) return keep();
  std::vector<ValueId> operands = c.op.operands;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (const Op* expanded = r.definition(operands[i], OpCode::expand)) {
      if (!keeps_shape(r, c, i, r.type(expanded->operands[0]).shape)) continue;
      operands[i] = expanded->operands[0];
      return replace_by(r.one(c.op.code, operands, c.op.attrs));
    }
    const Constant* constant = r.constant(operands[i]);
    if (!constant || constant->type.rank() == 0 || !graph::is_splat(*constant) || !keeps_shape(r, c, i, {})) continue;
    QUARTET_ASSIGN(Constant scalar,
                   graph::copy_constant({constant->type.dtype, {}}, {constant->data, size_of(constant->type.dtype)}));
    QUARTET_ASSIGN(operands[i], r.emit_constant(std::move(scalar)));
    return replace_by(r.one(c.op.code, operands, c.op.attrs));
  }
  return keep();
}

}  // namespace quartet::simplify
