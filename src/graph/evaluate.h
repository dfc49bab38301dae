// Evaluation at compile time, of exact ops only: what every target would compute bit for bit. That is integer and bool
// arithmetic, casts, comparisons, IEEE add, sub, mul, div, sqrt, rounding, min and max, data movement, and the
// reductions whose order does not matter. Nothing transcendental, no float sum, and nothing whose result would be a NaN
// that the operands did not just hand through (which bits it has is the target's matter).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace quartet::graph {

// The results of `op` on constant operands, whose types `results` are those of infer. Nothing when the op is none of
// the above, a result is not static or all of them take more than `max_bytes`. Independent of the caller's rounding
// mode and denormal flags.
std::optional<std::vector<Constant>> evaluate(const Op& op, std::span<const Constant* const> operands,
                                              std::span<const TensorType> results, size_t max_bytes);

}  // namespace quartet::graph
