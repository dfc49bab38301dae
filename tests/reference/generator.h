// Random graphs over the supported ops, shape-correct by construction, with inputs for them. The same seed gives the
// same graph: a failure is reproduced by its seed alone.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"
#include "reference/graph_interpreter.h"

namespace quartet::reference {

struct GeneratorOptions {
  int min_ops = 1, max_ops = 16;
  bool other_types = true;  // integers, bool, f64, f16 and bf16 beside f32
  bool control = false;     // ifs and loops, with inputs `count` (i64) and `flag` (bool) that decide some of them
};

struct RandomGraph {
  std::shared_ptr<const graph::Graph> symbolic;  // input dims are symbols
  std::shared_ptr<const graph::Graph> fixed;     // the same with the symbols' values
  std::vector<Tensor> inputs;                    // fitting both
  // Per output: whether every op on its way rounds exactly, so that the interpreter's bits are the only right ones.
  std::vector<bool> exact;
};

Result<RandomGraph> random_graph(uint64_t seed, const GeneratorOptions& options = {});

// The graph with symbols replaced by numbers.
Result<std::shared_ptr<const graph::Graph>> specialise(const graph::Graph& graph,
                                                       const std::map<Symbol, int64_t>& values);

}  // namespace quartet::reference
