// Windows and convolutions on concrete tensors; part of the graph interpreter.
#pragma once

#include "reference/graph_interpreter.h"

namespace quartet::reference {

Tensor window(const graph::Op& op, const Tensor& x, Tensor out);
// `conv` (channels first, groups in the channels) and `convolve` (channels last, groups on an axis of their own).
Tensor convolution(const graph::Op& op, const Tensor& x, const Tensor& w, Tensor out);

}  // namespace quartet::reference
