// Graph to graph: less control flow, and less inside of it. README.md lists the rewrites.
#pragma once

#include <memory>

#include "graph/graph.h"

namespace quartet::grinder {

struct Ground {
  std::shared_ptr<const graph::Graph> graph;
  bool changed = false;  // the graph is worth simplifying again
};

// A verified graph without composites, with the same inputs and outputs. What remains of control flow: ifs on
// conditions known only at run time, loops, calls of recursive functions. No loop's body uses its condition argument:
// it is true while the body runs.
Result<Ground> grind(const std::shared_ptr<const graph::Graph>& graph);

}  // namespace quartet::grinder
