// Dims that loops and ifs give birth to, from the types at their ends.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "graph/dims.h"
#include "graph/graph.h"

namespace quartet::graph {

// A loop's: where a symbol is the whole dim of a carried value inside, what that is of the operand (`first`) and of the
// yielded value. A symbol that is nowhere gives zeros.
std::vector<BornDim> loop_dims(const Shape& births, std::span<const TensorType* const> first,
                               std::span<const TensorType> inside, std::span<const TensorType> next);

// An if's: one for each of the births, at its place. Nothing if a place is none.
std::optional<std::vector<BornDim>> if_dims(const Shape& births, std::span<const int64_t> places,
                                            std::span<const TensorType> yes, std::span<const TensorType> no);

}  // namespace quartet::graph
