// Rounding to a quantised type.
#pragma once

#include "import/onnx/expr.h"

namespace quartet::import::onnx {

// saturate(round to even(x) + zero), of the zero point's type; x is f32.
Expr quantized(const Expr& x, const Expr& zero);

}  // namespace quartet::import::onnx
