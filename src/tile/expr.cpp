#include "tile/expr.h"

#include <algorithm>

namespace quartet::tile {
namespace {

using Kind = BodyNode::Kind;

Status fail(const TensorExpr& expr, const std::string& words) {
  return make_error(Code::internal, "tensor expression of '%s': %s", expr.name.c_str(), words.c_str());
}

// What may occur in an index: dims of the graph, axes of the expression, and, in a read, values of earlier body nodes.
bool index_ok(const IntExpr& index, size_t symbols, size_t axes, int32_t values) {
  return index.is_valid() && !index.contains_any([&](Symbol s) {
    if (is_dim_symbol(s)) return static_cast<size_t>(s) >= symbols;
    if (is_axis_symbol(s)) return static_cast<size_t>(s - kAxisSymbols) >= axes;
    return s - kValueSymbols >= values;
  });
}

class ExprVerifier {
 public:
  ExprVerifier(const TileGraph& graph, const Node& node) : graph_(graph), node_(node), expr_(node.expr) {}

  Status run() {
    if (expr_.spatial < 0 || static_cast<size_t>(expr_.spatial) > expr_.axes.size()) {
      return fail(expr_, "more spatial axes than axes");
    }
    if ((expr_.reduction != Reduction::none) != (static_cast<size_t>(expr_.spatial) < expr_.axes.size())) {
      return fail(expr_, "reduction axes and a reduction must come together");
    }
    for (const IntExpr& extent : expr_.axes) {
      if (!index_ok(extent, graph_.symbols.size(), 0, 0)) return fail(expr_, "an extent is no expression over dims");
    }
    for (size_t i = 0; i < expr_.body.size(); ++i) QUARTET_TRY(body_node(i));
    QUARTET_TRY(reduction());
    return results();
  }

 private:
  bool earlier(int32_t operand, size_t i) const { return operand >= 0 && static_cast<size_t>(operand) < i; }

  Status body_node(size_t i) {
    const BodyNode& b = expr_.body[i];
    if (!is_valid(b.dtype)) return fail(expr_, "a body node has no type");
    for (const int32_t operand : b.operands) {
      if (!earlier(operand, i)) return fail(expr_, "a body node uses a later one");
    }
    switch (b.kind) {
      case Kind::op:
        return op_node(b);
      case Kind::constant:
        return {};
      case Kind::read:
        return read_node(b, i);
      case Kind::index:
        if (b.dtype != DType::i64) return fail(expr_, "an index is not i64");
        if (!index_ok(b.index, graph_.symbols.size(), expr_.axes.size(), 0))
          return fail(expr_, "a bad index expression");
        return {};
      case Kind::reduced:
        if (expr_.reduction == Reduction::none) return fail(expr_, "a reduced value without a reduction");
        if (b.read < 0 || b.read > 1) return fail(expr_, "a reduced value that does not exist");
        return {};
    }
    return fail(expr_, "an unknown kind of body node");
  }

  Status op_node(const BodyNode& b) {
    if (static_cast<int>(b.operands.size()) != scalar_op_operands(b.op)) return fail(expr_, "wrong number of operands");
    const auto type = [&](size_t k) { return expr_.body[static_cast<size_t>(b.operands[k])].dtype; };
    if (b.op == ScalarOp::cast || b.op == ScalarOp::bitcast) return {};
    const size_t first = b.op == ScalarOp::select ? 1 : 0;
    if (first == 1 && type(0) != DType::boolean) return fail(expr_, "a select without a bool condition");
    for (size_t k = first + 1; k < b.operands.size(); ++k) {
      if (type(k) != type(first)) return fail(expr_, std::string("operand types differ in ") + scalar_op_name(b.op));
    }
    const DType expected = is_comparison(b.op) ? DType::boolean : type(first);
    if (b.dtype != expected) return fail(expr_, std::string("wrong result type of ") + scalar_op_name(b.op));
    return {};
  }

  Status read_node(const BodyNode& b, size_t i) {
    if (b.read < 0 || static_cast<size_t>(b.read) >= expr_.reads.size())
      return fail(expr_, "a read that does not exist");
    const Read& read = expr_.reads[static_cast<size_t>(b.read)];
    if (read.operand < 0 || static_cast<size_t>(read.operand) >= node_.operands.size()) {
      return fail(expr_, "a read of an operand that does not exist");
    }
    const TensorId operand = node_.operands[static_cast<size_t>(read.operand)];
    if (operand < 0 || static_cast<size_t>(operand) >= graph_.tensors.size()) return fail(expr_, "an unknown operand");
    const graph::TensorType& type = graph_.tensors[static_cast<size_t>(operand)].type;
    if (type.dtype != b.dtype) return fail(expr_, "a read of another type than its tensor");
    if (type.rank() != read.index.size()) return fail(expr_, "a read with another rank than its tensor");
    const size_t symbols = graph_.symbols.size(), axes = expr_.axes.size();
    for (const IntExpr& index : read.index) {
      if (!index_ok(index, symbols, axes, static_cast<int32_t>(i))) return fail(expr_, "a bad index of a read");
    }
    for (const Guard& guard : read.guards) {
      if (!index_ok(guard.value, symbols, axes, static_cast<int32_t>(i)) ||
          !index_ok(guard.extent, symbols, axes, static_cast<int32_t>(i))) {
        return fail(expr_, "a bad guard");
      }
    }
    if (read.guards.empty()) return {};
    if (!earlier(read.fill, i)) return fail(expr_, "a guarded read without an earlier fill");
    if (expr_.body[static_cast<size_t>(read.fill)].dtype != b.dtype) return fail(expr_, "a fill of another type");
    return {};
  }

  // Body nodes that `root` depends on, itself included.
  std::vector<bool> used_by(int32_t root) const {
    std::vector<bool> used(expr_.body.size());
    used[static_cast<size_t>(root)] = true;
    for (size_t i = expr_.body.size(); i-- > 0;) {
      if (!used[i]) continue;
      const BodyNode& b = expr_.body[i];
      for (const int32_t operand : b.operands) used[static_cast<size_t>(operand)] = true;
      if (b.kind != Kind::read) continue;
      const Read& read = expr_.reads[static_cast<size_t>(b.read)];
      if (read.fill >= 0) used[static_cast<size_t>(read.fill)] = true;
      for (const IntExpr& index : read.index) {
        for (const Symbol s : index.symbols()) {
          if (is_value_symbol(s)) used[static_cast<size_t>(s - kValueSymbols)] = true;
        }
      }
    }
    return used;
  }

  bool node_mentions_reduction_axis(const BodyNode& b) const {
    return node_mentions(b, [&](Symbol s) { return is_axis_symbol(s) && s - kAxisSymbols >= expr_.spatial; });
  }

  bool node_mentions(const BodyNode& b, const std::function<bool(Symbol)>& reduced_axis) const {
    if (b.kind == Kind::index) return b.index.contains_any(reduced_axis);
    if (b.kind != Kind::read) return false;
    const Read& read = expr_.reads[static_cast<size_t>(b.read)];
    for (const IntExpr& index : read.index) {
      if (index.contains_any(reduced_axis)) return true;
    }
    for (const Guard& guard : read.guards) {
      if (guard.value.contains_any(reduced_axis) || guard.extent.contains_any(reduced_axis)) return true;
    }
    return false;
  }

  Status reduction() {
    if (expr_.reduction == Reduction::none) {
      return expr_.element == -1 ? Status() : fail(expr_, "an element without a reduction");
    }
    if (expr_.element < 0 || static_cast<size_t>(expr_.element) >= expr_.body.size()) {
      return fail(expr_, "no element to reduce");
    }
    const std::vector<bool> used = used_by(expr_.element);
    for (size_t i = 0; i < used.size(); ++i) {
      if (used[i] && expr_.body[i].kind == Kind::reduced) return fail(expr_, "the element uses its own reduction");
    }
    if (expr_.reduction == Reduction::scatter) return scatter();
    if (expr_.reduction != Reduction::contraction) return {};
    const Contraction& c = expr_.contraction;
    const auto is_read = [&](int32_t r) { return r >= 0 && static_cast<size_t>(r) < expr_.reads.size(); };
    if (!is_read(c.read_a) || !is_read(c.read_b)) return fail(expr_, "a contraction without two reads");
    std::vector<int> seen(expr_.axes.size());
    for (const auto* axes : {&c.batch, &c.m, &c.n, &c.k}) {
      for (const int32_t axis : *axes) {
        if (axis < 0 || static_cast<size_t>(axis) >= seen.size()) return fail(expr_, "a contraction axis that is none");
        ++seen[static_cast<size_t>(axis)];
        if ((axis >= expr_.spatial) != (axes == &c.k)) return fail(expr_, "a contraction axis in the wrong role");
      }
    }
    for (const int count : seen) {
      if (count != 1) return fail(expr_, "every axis of a contraction has one role");
    }
    return {};
  }

  // Whether what a node depends on mentions one of the axes.
  bool depends_on(int32_t root, int32_t first, int32_t last) const {
    const auto asked = [&](Symbol s) {
      return is_axis_symbol(s) && s - kAxisSymbols >= first && s - kAxisSymbols < last;
    };
    const std::vector<bool> used = used_by(root);
    for (size_t i = 0; i < used.size(); ++i)
      if (used[i] && node_mentions(expr_.body[i], asked)) return true;
    return false;
  }

  Status scatter() {
    const Scatter& s = expr_.scatter;
    const auto is_node = [&](int32_t node) { return node >= 0 && static_cast<size_t>(node) < expr_.body.size(); };
    const auto type = [&](int32_t node) { return expr_.body[static_cast<size_t>(node)].dtype; };
    if (expr_.spatial != 2 || expr_.axes.size() != 3) return fail(expr_, "a scatter of other axes than row and column");
    if (!is_node(s.start) || !is_node(s.row)) return fail(expr_, "a scatter without start or row");
    if (type(s.row) != DType::i64 || type(s.start) != type(expr_.element))
      return fail(expr_, "a scatter's row, start and element do not fit");
    if (depends_on(s.start, 2, 3) || depends_on(s.row, 0, 2) || depends_on(expr_.element, 0, 1))
      return fail(expr_, "a scatter's start, row or element depends on an axis it must not");
    return {};
  }

  Status results() {
    if (expr_.outputs.size() != node_.results.size()) return fail(expr_, "another number of outputs than results");
    for (size_t r = 0; r < expr_.outputs.size(); ++r) {
      const int32_t output = expr_.outputs[r];
      if (output < 0 || static_cast<size_t>(output) >= expr_.body.size())
        return fail(expr_, "an output that is no node");
      const graph::TensorType& type = graph_.tensors[static_cast<size_t>(node_.results[r])].type;
      if (expr_.body[static_cast<size_t>(output)].dtype != type.dtype) return fail(expr_, "an output of another type");
      if (type.rank() != static_cast<size_t>(expr_.spatial) ||
          !std::equal(type.shape.begin(), type.shape.end(), expr_.axes.begin())) {
        return fail(expr_, "the spatial axes are not the shape of the result");
      }
      if (expr_.reduction == Reduction::none) continue;
      const std::vector<bool> used = used_by(output);
      for (size_t i = 0; i < used.size(); ++i) {
        if (used[i] && node_mentions_reduction_axis(expr_.body[i]))
          return fail(expr_, "an output depends on a reduction axis");
      }
    }
    if (!expr_.is_view) return {};
    const bool one_read = expr_.outputs.size() == 1 && expr_.reads.size() == 1 && expr_.reads[0].guards.empty() &&
                          expr_.body[static_cast<size_t>(expr_.outputs[0])].kind == Kind::read;
    return one_read ? Status() : fail(expr_, "a view that is not one unguarded read");
  }

  const TileGraph& graph_;
  const Node& node_;
  const TensorExpr& expr_;
};

}  // namespace

std::vector<int32_t> TileGraph::consumers(TensorId tensor) const {
  std::vector<int32_t> found;
  for (size_t n = 0; n < nodes.size(); ++n) {
    const auto& operands = nodes[n].operands;
    if (std::find(operands.begin(), operands.end(), tensor) != operands.end()) found.push_back(static_cast<int32_t>(n));
  }
  return found;
}

IntExpr::RangeOf TileGraph::ranges(const TensorExpr& expr) const {
  return [this, &expr](Symbol s) -> IntExpr::Range {
    if (is_axis_symbol(s)) {
      const auto axis = static_cast<size_t>(s - kAxisSymbols);
      if (axis >= expr.axes.size()) return {};
      return {IntExpr(0), expr.axes[axis] - IntExpr(1)};
    }
    if (!is_dim_symbol(s) || static_cast<size_t>(s) >= symbols.size()) return {};
    const graph::DimSymbol& dim = symbols[static_cast<size_t>(s)];
    return {IntExpr(dim.lower), dim.upper};
  };
}

Status verify(const TileGraph& graph) {
  const auto known = [&](TensorId t) { return t >= 0 && static_cast<size_t>(t) < graph.tensors.size(); };
  std::vector<bool> defined(graph.tensors.size());
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    const Tensor& tensor = graph.tensors[t];
    defined[t] = tensor.producer < 0;
    if (tensor.producer < 0 && (tensor.input >= 0) == (tensor.constant >= 0)) {
      return make_error(Code::internal, "tensor %zu '%s' comes from nowhere", t, tensor.name.c_str());
    }
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    for (const TensorId t : node.operands) {
      if (!known(t) || !defined[static_cast<size_t>(t)]) {
        return make_error(Code::internal, "node %zu '%s' reads a tensor before it is made", n, node.expr.name.c_str());
      }
    }
    for (size_t r = 0; r < node.results.size(); ++r) {
      const TensorId t = node.results[r];
      if (!known(t) || defined[static_cast<size_t>(t)] ||
          graph.tensors[static_cast<size_t>(t)].producer != static_cast<int32_t>(n) ||
          graph.tensors[static_cast<size_t>(t)].result != static_cast<int32_t>(r)) {
        return make_error(Code::internal, "node %zu '%s' makes a tensor that is not its own", n,
                          node.expr.name.c_str());
      }
      defined[static_cast<size_t>(t)] = true;
    }
    QUARTET_TRY(ExprVerifier(graph, node).run());
  }
  for (const TensorId t : graph.outputs) {
    if (!known(t)) return make_error(Code::internal, "a graph output is no tensor");
  }
  return {};
}

}  // namespace quartet::tile
