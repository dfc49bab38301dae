// The ops of a graph on concrete tensors; part of the graph interpreter.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"
#include "reference/graph_interpreter.h"

namespace quartet::reference {

// Extents of dim expressions for the shapes at hand.
using ExtentOf = std::function<Result<int64_t>(const IntExpr&)>;

// The results of any op without regions or callee. `operands` holds no null: optional ones exist on control ops alone.
// `types` are the results' types in the graph.
Result<std::vector<Tensor>> run_op(const graph::Graph& graph, const graph::Op& op,
                                   std::span<const Tensor* const> operands,
                                   std::span<const graph::TensorType* const> types, const ExtentOf& extent_of);

int64_t element_count(std::span<const int64_t> dims);
// Numbers of an element, and bits of a number rounded to a type (integers: saturating).
long double number_of(DType dtype, int64_t bits);
int64_t bits_of(DType dtype, long double value);

}  // namespace quartet::reference
