// Fused groups made by hand, their plain evaluation point by point, and their lowered kernels run by the interpreter.
// What the two give must be equal bit for bit.
#pragma once

#include <map>
#include <random>
#include <vector>

#include "kernel/lower.h"
#include "tile/fuse.h"

namespace quartet::kernel {

using Memory = std::map<tile::TensorId, std::vector<uint8_t>>;

// A tile-graph of tensors alone and one fused expression over them.
struct FusedCase {
  tile::TileGraph graph;
  tile::Fused fused;
  std::vector<int64_t> dims;  // values of the graph's symbols

  // A dim of `value` elements: a number, or a new symbol of that value.
  IntExpr dim(int64_t value, bool symbolic);
  tile::TensorId tensor(DType dtype, std::vector<IntExpr> shape, int32_t constant = -1);
  int64_t evaluate(const IntExpr& e) const;
  int64_t elements(tile::TensorId t) const;

  // Body nodes.
  int32_t read(tile::TensorId tensor, std::vector<IntExpr> index, std::vector<tile::Guard> guards = {},
               int32_t fill = -1);
  int32_t op(ScalarOp op, DType dtype, std::vector<int32_t> operands);
  int32_t constant(DType dtype, double value);
  int32_t index(IntExpr e);
  int32_t reduced(DType dtype, int32_t number);
  int32_t cast(DType to, int32_t node);
  DType dtype(int32_t node) const { return fused.expr.body[static_cast<size_t>(node)].dtype; }
  // Stores `node` to a new output tensor with the domain's extents.
  void output(int32_t node);

 private:
  int32_t add(tile::BodyNode node);
};

// Random bytes for every input: small integers, so that sums are exact nowhere but finite everywhere.
Memory random_inputs(const FusedCase& c, uint64_t seed);

// The outputs by the definition alone: points in order, reductions in the order of tile/reduction_order.h.
Memory evaluate_plainly(const FusedCase& c, const Memory& inputs, Isa isa);

// The outputs of the lowered, expanded, interpreted kernels.
Result<Memory> evaluate_lowered(const FusedCase& c, const LoweredGroup& group, const Memory& inputs, Isa isa);

}  // namespace quartet::kernel
