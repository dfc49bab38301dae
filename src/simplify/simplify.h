// Graph to graph: composites become primitives, what is known is computed, what is equal is computed once, what nobody
// needs is gone. Every rewrite is decided by the graph and the options alone; README.md lists them.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>

#include "graph/graph.h"

namespace quartet::simplify {

struct Options {
  // Rewrites left out, by name; "decompose" cannot be.
  std::set<std::string> disabled;
  // Constants are computed up to this size.
  size_t max_fold_bytes = size_t{16} << 20;
  // The program will treat denormal numbers as zero: arithmetic on them is left to it.
  bool flush_denormals = false;
};

// A verified graph with the same inputs and outputs (names, types, order) and no composites. Symbols keep their
// numbers.
Result<std::shared_ptr<const graph::Graph>> simplify(const std::shared_ptr<const graph::Graph>& graph,
                                                     const Options& options = {});

}  // namespace quartet::simplify
