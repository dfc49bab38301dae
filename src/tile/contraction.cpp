#include "tile/contraction.h"

#include <algorithm>

namespace quartet::tile {

void assign_roles(TensorExpr& expr) {
  Contraction& c = expr.contraction;
  c.batch.clear(), c.m.clear(), c.n.clear(), c.k.clear();
  const auto mentions = [&](int32_t read, int32_t axis) {
    const auto& index = expr.reads[static_cast<size_t>(read)].index;
    return std::any_of(index.begin(), index.end(), [&](const IntExpr& e) { return e.contains(axis_symbol(axis)); });
  };
  for (int32_t axis = 0; axis < static_cast<int32_t>(expr.axes.size()); ++axis) {
    if (axis >= expr.spatial) {
      c.k.push_back(axis);
      continue;
    }
    const bool a = mentions(c.read_a, axis), b = mentions(c.read_b, axis);
    (a == b ? c.batch : a ? c.m : c.n).push_back(axis);
  }
}

}  // namespace quartet::tile
