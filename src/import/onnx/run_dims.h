// Dims from values that only the run knows.
#pragma once

#include "import/onnx/expr.h"

namespace quartet::import::onnx {

// Operand `i`, integers of rank 0 or 1, as dims: known ones as they are, the others read in the run, which fails if one
// is negative. `what` names the operand. The same element is the same dim wherever both are known.
Result<KnownInts> dims_in_run(NodeContext& c, size_t i, const char* what);
// An i64 of rank 0, >= 0, as a dim. `most`: a bound, if it is known before the run.
Result<IntExpr> dim_of(NodeContext& c, const Expr& number, const std::string& what,
                       const std::optional<IntExpr>& most = std::nullopt);
// Whether an expression is of dims that only the run knows.
bool is_run_known(NodeContext& c, const IntExpr& e);
// The same elements in another shape; whether they are as many is seen in the run if it cannot be shown.
Expr reshaped_in_run(const Expr& x, const graph::Shape& shape);
// Where the elements of a bool of rank 1 are true, in order: i64 [count].
Result<Expr> places_of(NodeContext& c, const Expr& mask);
// The sums of the elements up to each, of i32 of rank 1, as i64.
Expr prefix_sums(Emit& e, const Expr& x);

}  // namespace quartet::import::onnx
