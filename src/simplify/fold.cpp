// Ops on constants are computed, if their value is exact and does not make the graph much larger.
#include <cmath>

#include "graph/evaluate.h"
#include "simplify/rules.h"

namespace quartet::simplify {
namespace {

constexpr size_t kAlwaysFold = 64 << 10;  // bytes; a view of a larger constant stays a view

bool has_denormal(const Constant& constant) {
  if (!is_float(constant.type.dtype)) return false;
  const double smallest = constant.type.dtype == DType::f64   ? 0x1p-1022
                          : constant.type.dtype == DType::f16 ? 0x1p-14
                                                              : 0x1p-126;
  const size_t count = constant.bytes / size_of(constant.type.dtype);
  for (size_t i = 0; i < count; ++i) {
    const double magnitude = std::fabs(graph::element_as_double(constant, i));
    if (magnitude > 0 && magnitude < smallest) return true;
  }
  return false;
}

bool is_worth_it(const Candidate& c, std::span<const Constant* const> operands) {
  const auto size = c.types[0].is_static() ? c.types[0].bytes() : std::nullopt;
  if (!size) return false;
  if (*size <= kAlwaysFold) return true;
  const graph::OpClass op_class = graph::op_info(c.op.code).op_class;
  if (op_class == graph::OpClass::view || op_class == graph::OpClass::constant) return false;
  size_t given = 0;
  for (const Constant* operand : operands) given += operand->bytes;
  return *size <= 8 * given;  // a cast from bool to f64 at most
}

}  // namespace

Replacement fold(Rewriter& r, const Candidate& c) {
  std::vector<const Constant*> operands;
  for (const ValueId id : c.op.operands) {
    operands.push_back(r.constant(id));
    if (!operands.back()) return keep();
  }
  if (c.types.size() != 1 || !is_worth_it(c, operands)) return keep();
  const bool arithmetic = graph::op_info(c.op.code).op_class == graph::OpClass::elementwise;
  const bool flush = r.options().flush_denormals && arithmetic;
  if (flush)
    for (const Constant* operand : operands)
      if (has_denormal(*operand)) return keep();
  auto results = graph::evaluate(c.op, operands, c.types, r.options().max_fold_bytes);
  if (!results || (flush && has_denormal(results->front()))) return keep();
  return replace_by(r.emit_constant(std::move(results->front())));
}

}  // namespace quartet::simplify
