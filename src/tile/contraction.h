// The roles of a contraction's axes.
#pragma once

#include "tile/expr.h"

namespace quartet::tile {

// Sorts the axes by which of the two reads mention them: both or neither: batch, A only: m, B only: n, reduction axes:
// k. An axis of constant extent 1 is mentioned by none.
void assign_roles(TensorExpr& expr);

}  // namespace quartet::tile
