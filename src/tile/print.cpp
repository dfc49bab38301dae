// Tile-graphs as text, for dumps and messages.
#include "tile/fuse.h"
#include "tile/text.h"

namespace quartet::tile {
namespace {

using Kind = BodyNode::Kind;

const char* reduction_name(Reduction reduction) {
  switch (reduction) {
    case Reduction::none:
      return "none";
    case Reduction::sum:
      return "sum";
    case Reduction::product:
      return "product";
    case Reduction::max:
      return "max";
    case Reduction::min:
      return "min";
    case Reduction::all:
      return "all";
    case Reduction::any:
      return "any";
    case Reduction::argmax:
      return "argmax";
    case Reduction::argmin:
      return "argmin";
    case Reduction::contraction:
      return "contraction";
    case Reduction::softmax_stats:
      return "softmax_stats";
    case Reduction::scatter:
      return "scatter";
  }
  return "unknown";
}

std::string number_list(const std::vector<int32_t>& numbers) {
  std::string text;
  for (const int32_t n : numbers) text += (text.empty() ? "" : ",") + std::to_string(n);
  return "{" + text + "}";
}

class ExprPrinter {
 public:
  ExprPrinter(const std::vector<graph::DimSymbol>& symbols, const TensorExpr& expr,
              const std::vector<TensorId>& operands)
      : names_(symbol_names(symbols)), expr_(expr), operands_(operands) {}

  std::string run(const std::string& indent) const {
    std::string text = indent + "axes ";
    for (size_t i = 0; i < expr_.axes.size(); ++i) {
      if (static_cast<int32_t>(i) == expr_.spatial)
        text += i == 0 ? "| " : " | ";
      else if (i > 0)
        text += ", ";
      text += "i" + std::to_string(i) + " < " + expr_.axes[i].to_text(names_);
    }
    text += "\n";
    for (size_t i = 0; i < expr_.body.size(); ++i) text += indent + "v" + std::to_string(i) + " = " + node(i) + "\n";
    if (expr_.reduction != Reduction::none) {
      text += indent + "reduce " + reduction_name(expr_.reduction) + " of v" + std::to_string(expr_.element);
      if (expr_.reduction == Reduction::contraction) {
        const Contraction& c = expr_.contraction;
        text += " batch " + number_list(c.batch) + " m " + number_list(c.m) + " n " + number_list(c.n) + " k " +
                number_list(c.k);
        text += " a r" + std::to_string(c.read_a) + " b r" + std::to_string(c.read_b);
      }
      if (expr_.reduction == Reduction::scatter) {
        const Scatter& s = expr_.scatter;
        text += " into v" + std::to_string(s.start) + " at row v" + std::to_string(s.row);
        if (s.combine) text += std::string(" by ") + scalar_op_name(*s.combine);
      }
      text += "\n";
    }
    return text;
  }

 private:
  std::string node(size_t i) const {
    const BodyNode& b = expr_.body[i];
    std::string text = std::string(dtype_name(b.dtype)) + " ";
    switch (b.kind) {
      case Kind::op: {
        text += scalar_op_name(b.op);
        for (const int32_t operand : b.operands) text += " v" + std::to_string(operand);
        return text;
      }
      case Kind::constant:
        return text + "constant " + std::to_string(b.bits);
      case Kind::index:
        return text + "index " + b.index.to_text(names_);
      case Kind::reduced:
        return text + "reduced " + std::to_string(b.read);
      case Kind::read:
        break;
    }
    return text + "read r" + std::to_string(b.read) + " " + read(expr_.reads[static_cast<size_t>(b.read)]);
  }

  std::string read(const Read& r) const {
    std::string text = "t" + std::to_string(operands_[static_cast<size_t>(r.operand)]) + "[";
    for (size_t d = 0; d < r.index.size(); ++d) text += (d > 0 ? ", " : "") + r.index[d].to_text(names_);
    text += "]";
    for (const Guard& g : r.guards) text += " if 0 <= " + g.value.to_text(names_) + " < " + g.extent.to_text(names_);
    if (r.fill >= 0) text += " else v" + std::to_string(r.fill);
    return text;
  }

  IntExpr::NameOf names_;
  const TensorExpr& expr_;
  const std::vector<TensorId>& operands_;
};

}  // namespace

IntExpr::NameOf symbol_names(const std::vector<graph::DimSymbol>& symbols) {
  return [&symbols](Symbol s) -> std::string {
    if (is_axis_symbol(s)) return "i" + std::to_string(s - kAxisSymbols);
    if (is_value_symbol(s)) return "v" + std::to_string(s - kValueSymbols);
    if (s >= 0 && static_cast<size_t>(s) < symbols.size() && !symbols[static_cast<size_t>(s)].name.empty()) {
      return symbols[static_cast<size_t>(s)].name;
    }
    return "s" + std::to_string(s);
  };
}

std::string tensor_text(const TileGraph& graph, TensorId id) {
  const Tensor& t = graph.tensors[static_cast<size_t>(id)];
  const auto names = symbol_names(graph.symbols);
  std::string text = "t" + std::to_string(id) + " " + dtype_name(t.type.dtype) + "[";
  for (size_t d = 0; d < t.type.rank(); ++d) text += (d > 0 ? ", " : "") + t.type.shape[d].to_text(names);
  text += "]";
  if (!t.name.empty()) text += " '" + t.name + "'";
  return text;
}

std::string expr_text(const TileGraph& graph, const TensorExpr& expr, const std::vector<TensorId>& operands,
                      const std::string& indent) {
  return ExprPrinter(graph.symbols, expr, operands).run(indent);
}

std::string print(const TileGraph& graph) {
  std::string text;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    text += "input " + std::to_string(i) + ": " + tensor_text(graph, graph.inputs[i]) + "\n";
  }
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    if (graph.tensors[t].constant < 0) continue;
    text += "constant " + std::to_string(graph.tensors[t].constant) + ": " +
            tensor_text(graph, static_cast<TensorId>(t)) + "\n";
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    text += "node " + std::to_string(n) + " '" + node.expr.name + "'" + (node.expr.is_view ? " view" : "") + "\n";
    text += expr_text(graph, node.expr, node.operands, "  ");
    for (size_t r = 0; r < node.results.size(); ++r) {
      text += "  " + tensor_text(graph, node.results[r]) + " = v" + std::to_string(node.expr.outputs[r]) + "\n";
    }
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    text += "output " + std::to_string(i) + ": t" + std::to_string(graph.outputs[i]) + "\n";
  }
  return text;
}

std::string print(const TileGraph& graph, const Fused& fused) {
  std::string text = expr_text(graph, fused.expr, fused.inputs, "  ");
  for (size_t i = 0; i < fused.outputs.size(); ++i) {
    text += "  " + tensor_text(graph, fused.outputs[i]) + " = v" + std::to_string(fused.expr.outputs[i]) + "\n";
  }
  return text;
}

}  // namespace quartet::tile
