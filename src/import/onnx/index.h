// Positions in flat tensors.
#pragma once

#include "import/onnx/expr.h"

namespace quartet::import::onnx {

// The row-major number of a point: one i64 value per axis of `shape`, which broadcast to each other.
Expr row_major(Emit& e, const std::vector<Expr>& at, graph::Shape shape);
// Where, in a tensor of this shape, the elements are that `indices` names along `axis` (negative: from the end): at
// their own places along the other axes. i64, of the indices' shape.
Expr element_positions(Emit& e, const Expr& indices, size_t axis, graph::Shape shape);
Expr flat(const Expr& x);  // rank 1
// What GatherElements gives.
Expr gather_elements(const Expr& x, const Expr& indices, size_t axis);

}  // namespace quartet::import::onnx
