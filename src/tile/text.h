// Pieces of the text form, shared by the dumps of tiles and groups.
#pragma once

#include <string>

#include "tile/fuse.h"

namespace quartet::tile {

// Names for IntExpr::to_text: dims by their names, axes i0, i1 ..., values v0, v1 ... `symbols` must outlive the
// result.
IntExpr::NameOf symbol_names(const std::vector<graph::DimSymbol>& symbols);

// "t3 f32[n, 128] 'logits'".
std::string tensor_text(const TileGraph& graph, TensorId id);

// Axes, body and reduction, a line each, without a name; operands name the tensors that reads count into.
std::string expr_text(const TileGraph& graph, const TensorExpr& expr, const std::vector<TensorId>& operands,
                      const std::string& indent);

std::string print(const TileGraph& graph, const Fused& fused);

}  // namespace quartet::tile
