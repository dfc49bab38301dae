// The attributes that convolutions and pools share: how windows lie on the spatial axes.
#pragma once

#include "import/onnx/node.h"

namespace quartet::import::onnx {

// One entry per spatial axis, the axes from 2 on.
struct Windows {
  graph::Shape sizes;
  std::vector<int64_t> strides, dilations;
  graph::Shape low, high;  // elements around the operand, >= 0
  // Of `high`, what ceil_mode adds so that a last window fits: it is no part of the padded operand.
  graph::Shape beyond;

  bool is_padded() const;
  // x with `fill` around its spatial axes.
  Result<ValueId> pad(NodeContext& c, ValueId x, ValueId fill) const;
};

// From strides, dilations, pads, auto_pad and ceil_mode; kernel_shape, if it is there, must be `sizes`.
Result<Windows> read_windows(NodeContext& c, ValueId x, graph::Shape sizes);

}  // namespace quartet::import::onnx
