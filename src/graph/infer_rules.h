// Type rules by family, behind infer(). Operand counts, element types and attributes are already checked.
#pragma once

#include "graph/infer.h"

namespace quartet::graph {

using Types = std::vector<TensorType>;

const Shape& shape_attr(const InferInput& in, AttrKey key);
int64_t int_attr(const InferInput& in, AttrKey key);  // the row's default when absent
const std::vector<int64_t>* ints_attr(const InferInput& in, AttrKey key);

// infer_shape.cpp: iota, dims, views and data movement
Result<Types> infer_source(const InferInput& in);
Result<Types> infer_view(const InferInput& in);
Result<Types> infer_data(const InferInput& in);
// infer_reduce.cpp: reductions, softmax_stats, softmax and log_softmax; matmul
Result<Types> infer_reduction(const InferInput& in);
Result<Types> infer_matmul(const InferInput& in);
// infer_window.cpp
Result<TensorType> infer_window(const InferInput& in);
Result<Types> infer_convolve(const InferInput& in);
Result<Types> infer_conv(const InferInput& in);
// infer_control.cpp
Result<Types> infer_control(const InferInput& in);

}  // namespace quartet::graph
