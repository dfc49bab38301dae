// What a tile costs: which part of each operand it needs, how much is live, how much crosses a memory level, how much
// work it is. Pure functions of numbers; symbolic dims get values first (dim_values).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tile/fuse.h"

namespace quartet::tile {

// A value for every dim of the graph, by symbol: its hint within its bounds; `fallback` where there is no hint.
std::vector<int64_t> dim_values(const std::vector<graph::DimSymbol>& symbols, int64_t fallback = 64);

// The expression's value with `dims` in place of symbols; saturated at the ends of i64 when it overflows.
int64_t value_at(const IntExpr& expr, std::span<const int64_t> dims);

struct Interval {
  int64_t lo = 0, hi = -1;  // inclusive; empty when hi < lo
  int64_t size() const { return hi < lo ? 0 : hi - lo + 1; }
  bool operator==(const Interval&) const = default;
};
using Box = std::vector<Interval>;  // one interval a dim

// One tile of an expression: an interval of each axis, reduction axes too.
using Tile = std::vector<Interval>;

// The whole expression as one tile, and the tile of given extents whose corner is at 0 (clipped; 0: the whole axis).
Tile whole_tile(const TensorExpr& expr, std::span<const int64_t> dims);
Tile corner_tile(const TensorExpr& expr, std::span<const int64_t> dims, std::span<const int64_t> extents);

// The part of an operand of shape `type` that the read touches: the smallest box, exact for affine maps; a map of
// floor_div and floor_mod may give a larger one, an index read at run time the whole dim. What a guard excludes is
// clipped.
Box propagate(const Read& read, const graph::TensorType& type, const Tile& tile, std::span<const int64_t> dims);

// Bytes of a box of a dense row-major tensor when memory moves in lines of `line` bytes; each run of contiguous
// elements counts the lines it touches (runs nearer than a line share).
int64_t box_bytes(const Box& box, const graph::TensorType& type, std::span<const int64_t> dims, int32_t line);

// Bytes that cross a level when the spatial axes are cut into tiles of `extents` (0: whole) and each tile fetches every
// operand's part once and writes its own part of every output once.
struct Traffic {
  int64_t read = 0, written = 0;
  int64_t total() const { return read + written; }
};
Traffic traffic(const TileGraph& graph, const Fused& fused, std::span<const int64_t> dims,
                std::span<const int64_t> extents, int32_t line);

// A tile of an intermediate in memory from step `first` to step `last`, inclusive.
struct LiveTile {
  int64_t bytes = 0;
  int32_t first = 0, last = 0;
};
// Peak bytes when the tiles are placed by best fit at multiples of `alignment`, longest-lived conflicts respected.
int64_t footprint(std::span<const LiveTile> tiles, int64_t alignment = 64);

// Bytes live while the members of a group run one after the other on one tile of the last one's results, each
// intermediate held in memory, views free: what an edge at that level would need. The tile is in the axes of
// nodes.back().
int64_t footprint(const TileGraph& graph, std::span<const int32_t> nodes, std::span<const TensorId> outputs,
                  const Tile& tile, std::span<const int64_t> dims);

// Scalar operations of the whole expression (a multiply-add of a contraction counts two; reads, casts and index
// arithmetic count nothing; a transcendental counts one).
int64_t flops(const TensorExpr& expr, std::span<const int64_t> dims);

// Points of the spatial axes and of the reduction axes.
int64_t spatial_points(const TensorExpr& expr, std::span<const int64_t> dims);
int64_t reduction_points(const TensorExpr& expr, std::span<const int64_t> dims);

// For each body node whether it is part of what a reduction combines (so computed at every point of all axes); without
// a reduction, all are false. A node may be in the element and in the epilogue: `in_epilogue` says the latter.
std::vector<bool> in_element(const TensorExpr& expr);
std::vector<bool> in_epilogue(const TensorExpr& expr);

}  // namespace quartet::tile
