// Chains of ops that random graphs contain as one.
#pragma once

#include "graph/builder.h"

namespace quartet::reference {

// Reductions along an axis, or along it and all after it, that each need the one before: the operands x - mean and
// sqrt(variance + 1) of a division.
Result<std::vector<graph::ValueId>> standardise(graph::Builder& builder, graph::ValueId x, int64_t axis,
                                                bool and_after);

}  // namespace quartet::reference
