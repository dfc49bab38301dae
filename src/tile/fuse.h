// A connected part of a tile-graph as ONE tensor expression: what a group computes, over its domain, from memory to
// memory.
//
// Everything that stands between the group's inputs and outputs is inlined: views become index maps, elementwise
// members become body nodes at the point where they are needed, a reduction's or contraction's consumers become its
// epilogue. So a reader of a group (Roller's analysis, lowering) needs no rule of its own about views, broadcasting or
// the order of members.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tile/expr.h"

namespace quartet::tile {

struct Fused {
  // Axes: the spatial axes of `domain`, then the core's reduction axes. Read::operand counts into `inputs`. outputs[i]
  // is the body node stored to the tensor outputs[i]. With a core, body nodes that use `reduced` or are needed only
  // after it are the epilogue and mention no reduction axis; `element` and what it uses may mention every axis. Equal
  // body nodes are there once. Index expressions are simplified; reads and guards are at the point of the axes.
  TensorExpr expr;
  std::vector<TensorId> inputs;  // tensors read from memory, once each, in order of first use
  // Tensors written, each dense row-major with as many elements as the domain, in the domain's own linear order: the
  // point with row-major number e of the spatial axes writes element e of every output.
  std::vector<TensorId> outputs;
  int32_t core = -1, domain = -1;
};

// Nodes: ascending; core: the one node with a reduction, or -1; domain: whose spatial axes the group runs over (core if
// there is one); outputs: tensors the group writes. Fails with failed_precondition, saying why, when the nodes are no
// such group: an output is not in the domain's linear order, a member reads the core's result at another point than its
// own, a member computes (is not a view) under a guard or an indirect index, or a tensor of a member is needed twice in
// incompatible ways.
Result<Fused> fuse(const TileGraph& graph, const std::vector<int32_t>& nodes, int32_t core, int32_t domain,
                   const std::vector<TensorId>& outputs);

// The element offset of read `read` in its tensor, dense row-major, as an expression over the same symbols as its
// index.
IntExpr flat_offset(const TensorExpr& expr, const Read& read, const graph::TensorType& type);

// The row-major number of the point of the spatial axes.
IntExpr linear_point(const TensorExpr& expr);

}  // namespace quartet::tile
