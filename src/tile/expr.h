// Tensor expressions: one op as an index expression. The quartet's shared language (design section 5).
//
// An expression has axes: first the spatial ones, whose extents are the shape of every output, then the reduction ones
// in their linearised order. Its body is a scalar DAG computed at every point of the axes; reads fetch operands through
// index maps. With a reduction, `element` is what is combined over the reduction axes, and nodes that use `reduced`
// (directly or not) are the epilogue, computed once per spatial point; there a sum's final `add +0` stands, too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/int_expr.h"
#include "base/scalar_ops.h"
#include "base/status.h"
#include "graph/graph.h"

namespace quartet::tile {

using TensorId = int32_t;

struct BodyNode {
  enum class Kind : uint8_t {
    op,        // `op` of operands
    constant,  // `bits` of dtype
    read,      // reads[read]
    index,     // the value of the integer expression `index` over axes and dims, i64
    reduced,   // result number `read` of the reduction's final state
  };
  Kind kind = Kind::op;
  ScalarOp op = ScalarOp::add;
  DType dtype = DType::invalid;
  std::vector<int32_t> operands;  // earlier body nodes
  int64_t bits = 0;               // floats: their bits; integers: sign- or zero-extended to 64
  int32_t read = -1;
  IntExpr index;
};

// A condition 0 <= value < extent on a read.
struct Guard {
  IntExpr value, extent;
};

struct Read {
  int32_t operand = 0;         // which operand of the node
  std::vector<IntExpr> index;  // one per dim of the operand, over axis symbols, dims, and value_symbol(i) for the value
                               // of body node i (an index read from a tensor, already clamped or wrapped by the body)
  std::vector<Guard> guards;   // where one fails nothing is read and the value is body node `fill`
  int32_t fill = -1;
};

enum class Reduction : uint8_t {
  none = 0,
  sum,
  product,
  max,
  min,
  all,
  any,  // one state of the element's accumulator type
  argmax,
  argmin,         // reduced 0: value; 1: i64 linear index along the reduction, first best
  contraction,    // sum of element = mul(read a, read b)
  softmax_stats,  // reduced 0: maximum; 1: sum of exp(x - maximum), by the blocked rule
  scatter,        // the state begins as Scatter::start; elements of the points whose row it is join it in order
};

// A contraction's axes by role (numbers of TensorExpr::axes). Batch axes index A, B and the output; M: A and the
// output; N: B and the output; K: A and B.
struct Contraction {
  int32_t read_a = -1, read_b = -1;
  std::vector<int32_t> batch, m, n, k;
};

// A scatter: spatial axes (row, column), one reduction axis. The element, which does not depend on the row, joins the
// state of the spatial point whose row number is `row`, a value over the reduction axis alone; a row that is none joins
// nothing. The start depends on the spatial axes alone.
struct Scatter {
  int32_t start = -1, row = -1;     // body nodes; row is i64
  std::optional<ScalarOp> combine;  // state and element; nothing: the element takes the state's place
};

struct TensorExpr {
  std::string name;           // of the op, for messages and dumps
  std::vector<IntExpr> axes;  // extents; spatial first
  int32_t spatial = 0;        // how many are spatial
  std::vector<BodyNode> body;
  std::vector<Read> reads;
  Reduction reduction = Reduction::none;
  int32_t element = -1;          // body node that is reduced; dtype is the accumulator's
  Contraction contraction;       // if reduction == contraction
  Scatter scatter;               // if reduction == scatter
  std::vector<int32_t> outputs;  // body nodes, one per result; with a reduction they belong to the epilogue
  bool is_view = false;  // no arithmetic: every output is one unguarded read (reshape, transpose, slice, expand)
};

// What a tensor of the tile-graph is.
struct Tensor {
  graph::TensorType type;
  int32_t producer = -1, result = 0;  // node and which of its outputs, or -1: from outside
  int32_t input = -1;                 // graph input number
  int32_t constant = -1;              // graph constant number
  // A constant of one element whose bytes are known: its value, as BodyNode::bits keeps it.
  std::optional<int64_t> scalar;
  std::vector<int32_t> outputs;  // graph output numbers this tensor is
  std::string name;
};

struct Node {
  TensorExpr expr;
  std::vector<TensorId> operands, results;
};

// A straight-line graph as tensor expressions, nodes in topological order. Dims are the graph's symbols.
struct TileGraph {
  std::vector<graph::DimSymbol> symbols;
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;
  std::vector<TensorId> inputs, outputs;  // by graph input/output number

  // Nodes that read the tensor, ascending, once each.
  std::vector<int32_t> consumers(TensorId tensor) const;
  // Ranges for IntExpr reasoning: axes in [0, extent-1] of `expr`, dims at least their lower bound.
  IntExpr::RangeOf ranges(const TensorExpr& expr) const;
};

// One node per op (composites already decomposed by simplify). Control flow and what no expression describes is
// Code::unsupported, naming the op.
Result<TileGraph> from_graph(const graph::Graph& graph);

Status verify(const TileGraph& graph);
std::string print(const TileGraph& graph);

}  // namespace quartet::tile
