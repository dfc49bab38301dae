// Writing one tensor expression, and the rules of each op; internal to from_graph.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "tile/expr.h"

namespace quartet::tile {

// The op at hand with its operands as tensors.
struct OpView {
  const graph::Op& op;
  const TileGraph& graph;
  std::vector<TensorId> operands;
  std::vector<graph::TensorType> results;

  const graph::TensorType& type(size_t operand) const {
    return graph.tensors[static_cast<size_t>(operands[operand])].type;
  }
};

// Builds an expression's body. Axis i of the result is IntExpr::axis(i), or 0 where its extent is constant 1.
class ExprBuilder {
 public:
  // Spatial axes are the dims of `shape`.
  ExprBuilder(const OpView& view, const graph::Shape& shape);

  // Adds a reduction axis; all spatial axes must be there.
  IntExpr add_reduction_axis(const IntExpr& extent);
  IntExpr axis(size_t i) const;
  size_t rank() const { return static_cast<size_t>(expr.spatial); }
  IntExpr::RangeOf ranges() const { return view_.graph.ranges(expr); }

  int32_t op(ScalarOp op, DType dtype, std::initializer_list<int32_t> operands);
  int32_t constant(DType dtype, int64_t bits);
  int32_t index(const IntExpr& value);
  int32_t reduced(DType dtype, int32_t number);
  // `operand` at `index`, simplified.
  int32_t read(size_t operand, std::vector<IntExpr> index, std::vector<Guard> guards = {}, int32_t fill = -1);
  // The operand aligned at its trailing dims with the spatial axes, dims of extent 1 repeated. -1 if a dim fits neither
  // way.
  int32_t read_broadcast(size_t operand);
  int32_t cast(int32_t node, DType dtype);
  DType dtype(int32_t node) const { return expr.body[static_cast<size_t>(node)].dtype; }

  TensorExpr expr;

 private:
  int32_t add(BodyNode node);
  const OpView& view_;
};

// One function a family: fills `builder.expr` for the op. The op is well typed.
Result<TensorExpr> source_expr(const OpView& view);  // iota, dims
Result<TensorExpr> elementwise_expr(const OpView& view);
Result<TensorExpr> view_expr(const OpView& view);  // identity, reshape, transpose, expand, slice
Result<TensorExpr> data_expr(const OpView& view);  // concat, pad, gather
Result<TensorExpr> reduction_expr(const OpView& view);
Result<TensorExpr> matmul_expr(const OpView& view);
Result<TensorExpr> convolve_expr(const OpView& view);

// Where place `k` of window `o` is on the operand's axis, for windowed axis `i` of the op.
IntExpr window_index(const graph::Op& op, size_t i, const IntExpr& o, const IntExpr& k);

}  // namespace quartet::tile
