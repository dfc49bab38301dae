// Merging axes that every access of a group walks as one.
#pragma once

#include <optional>
#include <vector>

#include "tile/fuse.h"

namespace quartet::roller {

// Everything of a group that depends on where in its domain one stands: flat offsets of reads, guards, index
// expressions.
struct Accesses {
  std::vector<IntExpr> expressions;
  IntExpr::RangeOf ranges;
};
Accesses accesses(const tile::TileGraph& graph, const tile::Fused& fused);

// Whether the axes (ascending) act as one: see Plan::merged.
bool mergeable(const tile::TensorExpr& expr, const Accesses& accesses, const std::vector<int32_t>& axes);

// The axes of [begin, end) that are not constant 1, cut into the longest mergeable runs, outermost first.
std::vector<std::vector<int32_t>> merge_axes(const tile::TensorExpr& expr, const Accesses& accesses, int32_t begin,
                                             int32_t end);

// How far `offset` moves along a merged run: the coefficient of its last axis if the offset is linear in it, else
// nothing.
std::optional<IntExpr> stride(const IntExpr& offset, const std::vector<int32_t>& run);

}  // namespace quartet::roller
