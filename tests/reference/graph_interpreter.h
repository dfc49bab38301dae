// Runs a graph op by op as the ops table defines it: the meaning whole programs are held to. Straightforward, slow, and
// independent of every stage of the compiler: reductions add up in long double in plain order, transcendentals are the
// C library's in double, each op rounds once to its type.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"

namespace quartet::reference {

// A tensor: its elements as canonical bits (scalar.h), row-major.
struct Tensor {
  DType dtype = DType::invalid;
  std::vector<int64_t> dims;
  std::vector<int64_t> elements;

  static Tensor zeros(DType dtype, std::vector<int64_t> dims);
  // Dense row-major memory with size_of(dtype) bytes an element.
  static Tensor from_memory(DType dtype, std::vector<int64_t> dims, const void* data);
  Bytes to_memory() const;
};

// The outputs of main. Inputs must match its arguments' types; their shapes bind the symbols.
Result<std::vector<Tensor>> interpret(const graph::Graph& graph, const std::vector<Tensor>& inputs);

// The same graph with every value of main's own block an output, in order, and what each is: "op 3 'fc1' (matmul)".
// Values inside regions and functions are not among them.
struct Exposed {
  std::shared_ptr<const graph::Graph> graph;
  std::vector<std::string> values;
};
Result<Exposed> expose(const graph::Graph& graph);

}  // namespace quartet::reference
