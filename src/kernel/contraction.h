// The parts of a contraction's lowering: how its operands lie in memory, and the tiles of rows and columns. Internal to
// the folder.
#pragma once

#include <optional>

#include "kernel/lowering.h"

namespace quartet::kernel {

// A contraction whose axes are loops: outer loops, one loop over rows, one over columns, and those over k.
struct ContractionLoops {
  std::vector<Symbol> outer;
  std::vector<IntExpr> outer_extents;
  Symbol row = -1, column = -1, k = -1;  // k: the innermost of its loops
  IntExpr rows, columns, inner_depth;    // extents of these
  std::vector<AxisRun> around;           // the loops around k, outermost first
  IntExpr depth;                         // K, of all loops over k
  IntExpr k_number;                      // where the loops over k stand, row-major
};

// Adds the runs of the plan and the run over the reduction axes.
Result<ContractionLoops> contraction_loops(Lowering& lowering, const roller::Plan& plan);

// Opens the loops around k.
void around_k(Lowering& lowering, const ContractionLoops& loops, const std::function<void()>& body);

// Panels of B: per point of the outer loops its offset mentions, [ceil(N / columns)][K][columns].
struct PanelLayout {
  std::vector<size_t> outer;  // numbers into ContractionLoops::outer, ascending
  int32_t columns = 0;
  IntExpr panels;    // per outer point
  IntExpr elements;  // in all
};
PanelLayout panel_layout(Lowering& lowering, const ContractionLoops& loops, const roller::Plan& plan);

// The kernel that packs B.
Result<Packing> lower_packing(const tile::TileGraph& graph, const tile::Fused& fused, const roller::Plan& plan);

// Heights of the row tiles that cover `count` rows with tiles of at most `most` rows: as few as possible, of two
// heights at most. `tall` tiles of `height + 1` rows come first, then `tiles - tall` of `height`.
struct RowSplit {
  int64_t tiles = 0, height = 0, tall = 0;
};
RowSplit balanced_rows(int64_t count, int64_t most);

}  // namespace quartet::kernel
