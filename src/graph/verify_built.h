// The verification of what a builder made.
#pragma once

#include "graph/graph.h"

namespace quartet::graph {

// As `verify`, for a builder's graph as it was left: the types that follow from an op's operands and attributes alone
// were inferred when the op was made, and are not inferred again.
Status verify_built(const Graph& graph);

}  // namespace quartet::graph
