// Between the points of two shapes with the same row-major elements.
#pragma once

#include <optional>
#include <vector>

#include "base/int_expr.h"

namespace quartet::tile {

// Whether two extents are the same for all values of the dims, as far as can be seen.
bool provably_equal(const IntExpr& a, const IntExpr& b, const IntExpr::RangeOf& range_of);

// The same value with pairs b * floor_div(a, b) + floor_mod(a, b) put together again to a.
IntExpr recombined(IntExpr e);

// Row-major strides of a shape.
std::vector<IntExpr> row_major_strides(const std::vector<IntExpr>& shape);

// The row-major number of a point, recombined. Dims of constant extent 1 do not count.
IntExpr linearize(const std::vector<IntExpr>& point, const std::vector<IntExpr>& shape);

// The point of shape `to` that has the row-major number of `point` in shape `from`, simplified under `range_of`. Equal
// runs of dims are matched first, so that what a reshape leaves alone stays a plain symbol. Nothing when the shapes do
// not provably have the same number of elements.
std::optional<std::vector<IntExpr>> remap(const std::vector<IntExpr>& point, const std::vector<IntExpr>& from,
                                          const std::vector<IntExpr>& to, const IntExpr::RangeOf& range_of);

}  // namespace quartet::tile
