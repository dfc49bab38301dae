// An evaluator of tensor expressions for tests: slow, obvious, without any notion of tiles. Floats are doubles without
// rounding, so that two ways to compute the same thing must agree exactly.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <vector>

#include "tile/fuse.h"

namespace quartet::tile::test {

struct Cell {
  double f = 0;
  int64_t i = 0;
  bool operator==(const Cell& o) const { return i == o.i && (f == o.f || (std::isnan(f) && std::isnan(o.f))); }
};
using Cells = std::vector<Cell>;

class Evaluator {
 public:
  using Fetch = std::function<Cell(int32_t operand, int64_t element)>;
  using TypeOf = std::function<graph::TensorType(int32_t operand)>;

  // `sizes`: the values of the graph's symbols.
  Evaluator(const TensorExpr& what, std::vector<int64_t> sizes, Fetch how, TypeOf of)
      : expr_(what), dims_(std::move(sizes)), fetch_(std::move(how)), type_(std::move(of)) {}

  // By output, by row-major spatial point.
  std::vector<Cells> run() {
    std::vector<Cells> outputs(expr_.outputs.size());
    std::vector<int64_t> extent;
    for (const IntExpr& e : expr_.axes) extent.push_back(number(e, {}));
    axes_.assign(expr_.axes.size(), 0);
    walk(0, static_cast<size_t>(expr_.spatial), extent, [&] {
      state_ = {};
      if (expr_.reduction != Reduction::none) reduce(extent);
      for (size_t o = 0; o < outputs.size(); ++o) {
        memo_.clear();
        outputs[o].push_back(value(expr_.outputs[o]));
      }
    });
    return outputs;
  }

 private:
  struct State {
    Cell value, second;
    bool any = false;
  };
  const TensorExpr& expr_;
  std::vector<int64_t> dims_;
  Fetch fetch_;
  TypeOf type_;
  std::vector<int64_t> axes_;
  State state_;
  std::map<int32_t, Cell> memo_;

  static void walk_from(size_t at, size_t end, const std::vector<int64_t>& extent, std::vector<int64_t>& at_axes,
                        const std::function<void()>& visit) {
    if (at == end) return visit();
    for (at_axes[at] = 0; at_axes[at] < extent[at]; ++at_axes[at]) walk_from(at + 1, end, extent, at_axes, visit);
    at_axes[at] = 0;
  }
  void walk(size_t at, size_t end, const std::vector<int64_t>& extent, const std::function<void()>& visit) {
    walk_from(at, end, extent, axes_, visit);
  }

  int64_t number(const IntExpr& e, const std::map<int32_t, Cell>& values) const {
    const auto result = e.evaluate([&](Symbol s) -> std::optional<int64_t> {
      if (is_dim_symbol(s)) return dims_.at(static_cast<size_t>(s));
      if (is_axis_symbol(s)) return axes_.at(static_cast<size_t>(s - kAxisSymbols));
      return values.at(s - kValueSymbols).i;
    });
    return result.value();
  }

  void scatter(const std::vector<int64_t>& extent) {
    state_.value = value(expr_.scatter.start);
    const bool fl = is_float(expr_.body[static_cast<size_t>(expr_.element)].dtype);
    walk(static_cast<size_t>(expr_.spatial), expr_.axes.size(), extent, [&] {
      memo_.clear();
      if (value(expr_.scatter.row).i != axes_[0]) return;
      const Cell e = value(expr_.element);
      Cell& v = state_.value;
      if (!expr_.scatter.combine)
        v = e;
      else if (*expr_.scatter.combine == ScalarOp::add)
        v = {v.f + e.f, v.i + e.i};
      else if (*expr_.scatter.combine == ScalarOp::mul)
        v = {v.f * e.f, v.i * e.i};
      else if (*expr_.scatter.combine == ScalarOp::min)
        v = (fl ? e.f < v.f : e.i < v.i) ? e : v;
      else
        v = (fl ? e.f > v.f : e.i > v.i) ? e : v;
    });
  }

  void reduce(const std::vector<int64_t>& extent) {
    memo_.clear();
    if (expr_.reduction == Reduction::scatter) return scatter(extent);
    const DType type_of = expr_.body[static_cast<size_t>(expr_.element)].dtype;
    const bool fl = is_float(type_of);
    int64_t r = 0;
    state_.second.i = -1;
    walk(static_cast<size_t>(expr_.spatial), expr_.axes.size(), extent, [&] {
      memo_.clear();
      const Cell e = value(expr_.element);
      combine(e, fl, r++);
    });
    if (!state_.any && expr_.reduction == Reduction::product) state_.value = {1, 1};
    if (expr_.reduction == Reduction::softmax_stats) {
      double sum = 0;
      walk(static_cast<size_t>(expr_.spatial), expr_.axes.size(), extent, [&] {
        memo_.clear();
        sum += std::exp(value(expr_.element).f - state_.value.f);
      });
      state_.second = {sum, 0};
    }
  }

  void combine(const Cell& e, bool fl, int64_t r) {
    const bool first = !state_.any;
    state_.any = true;
    Cell& v = state_.value;
    switch (expr_.reduction) {
      case Reduction::none:
      case Reduction::scatter:
        return;
      case Reduction::sum:
      case Reduction::contraction:
        v = {v.f + e.f, v.i + e.i};
        return;
      case Reduction::product:
        v = first ? e : Cell{v.f * e.f, v.i * e.i};
        return;
      case Reduction::max:
      case Reduction::softmax_stats:
        v = first || (fl ? e.f > v.f : e.i > v.i) ? e : v;
        return;
      case Reduction::min:
        v = first || (fl ? e.f < v.f : e.i < v.i) ? e : v;
        return;
      case Reduction::all:
        v.i = first ? e.i : v.i & e.i;
        return;
      case Reduction::any:
        v.i = v.i | e.i;
        return;
      case Reduction::argmax:
      case Reduction::argmin: {
        const bool better =
            expr_.reduction == Reduction::argmax ? (fl ? e.f > v.f : e.i > v.i) : (fl ? e.f < v.f : e.i < v.i);
        if (first || better) v = e, state_.second.i = r;
        return;
      }
    }
  }

  Cell value(int32_t n) {
    if (const auto at = memo_.find(n); at != memo_.end()) return at->second;
    const BodyNode& b = expr_.body[static_cast<size_t>(n)];
    Cell result;
    switch (b.kind) {
      case BodyNode::Kind::constant:
        result = constant(b);
        break;
      case BodyNode::Kind::index:
        result.i = number(b.index, memo_);
        break;
      case BodyNode::Kind::reduced:
        result = b.read == 0 ? state_.value : state_.second;
        break;
      case BodyNode::Kind::read:
        result = read(expr_.reads[static_cast<size_t>(b.read)]);
        break;
      case BodyNode::Kind::op:
        result = operation(b);
        break;
    }
    return memo_[n] = result;
  }

  static Cell constant(const BodyNode& b) {
    if (!is_float(b.dtype)) return {0, b.bits};
    if (b.dtype == DType::f64) return {std::bit_cast<double>(b.bits), 0};
    if (b.dtype == DType::f32) return {static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(b.bits))), 0};
    return {b.bits == 0 ? 0.0 : std::numeric_limits<double>::quiet_NaN(), 0};
  }

  Cell read(const Read& r) {
    for (const IntExpr& e : r.index) {
      for (const Symbol s : e.symbols()) {
        if (is_value_symbol(s)) value(s - kValueSymbols);
      }
    }
    for (const Guard& g : r.guards) {
      const int64_t v = number(g.value, memo_);
      if (v < 0 || v >= number(g.extent, memo_)) return value(r.fill);
    }
    const graph::TensorType t = type_(r.operand);
    int64_t element = 0;
    for (size_t d = 0; d < r.index.size(); ++d) {
      const int64_t extent = number(t.shape[d], memo_), at = number(r.index[d], memo_);
      if (at < 0 || at >= extent) throw std::out_of_range("read outside its tensor");
      element = element * extent + at;
    }
    return fetch_(r.operand, element);
  }

  Cell operation(const BodyNode& b) {
    std::vector<Cell> v;
    for (const int32_t o : b.operands) v.push_back(value(o));
    const DType from = expr_.body[static_cast<size_t>(b.operands[0])].dtype;
    const bool fl = is_float(from);
    switch (b.op) {
      case ScalarOp::add:
        return {v[0].f + v[1].f, v[0].i + v[1].i};
      case ScalarOp::sub:
        return {v[0].f - v[1].f, v[0].i - v[1].i};
      case ScalarOp::mul:
        return {v[0].f * v[1].f, v[0].i * v[1].i};
      case ScalarOp::div:
        return {fl ? v[0].f / v[1].f : 0, fl || v[1].i == 0 ? 0 : v[0].i / v[1].i};
      case ScalarOp::min:
        return fl ? Cell{std::min(v[0].f, v[1].f), 0} : Cell{0, std::min(v[0].i, v[1].i)};
      case ScalarOp::max:
        return fl ? Cell{std::max(v[0].f, v[1].f), 0} : Cell{0, std::max(v[0].i, v[1].i)};
      case ScalarOp::neg:
        return {fl ? -v[0].f : 0, -v[0].i};
      case ScalarOp::abs:
        return {std::fabs(v[0].f), std::abs(v[0].i)};
      case ScalarOp::exp:
        return {std::exp(v[0].f), 0};
      case ScalarOp::tanh:
        return {std::tanh(v[0].f), 0};
      case ScalarOp::sqrt:
        return {std::sqrt(v[0].f), 0};
      case ScalarOp::eq:
        return {0, fl ? v[0].f == v[1].f : v[0].i == v[1].i};
      case ScalarOp::lt:
        return {0, fl ? v[0].f < v[1].f : v[0].i < v[1].i};
      case ScalarOp::select:
        return v[0].i != 0 ? v[1] : v[2];
      case ScalarOp::cast: {
        if (b.dtype == DType::boolean) return {0, fl ? v[0].f != 0 : v[0].i != 0};
        if (is_float(b.dtype)) return {fl ? v[0].f : static_cast<double>(v[0].i), 0};
        return {0, fl ? static_cast<int64_t>(v[0].f) : v[0].i};
      }
      default:
        throw std::logic_error(std::string("the test evaluator has no ") + scalar_op_name(b.op));
    }
  }
};

// Values of every tensor of a graph, node by node. Inputs and constants are given.
struct GraphValues {
  const TileGraph& graph;
  std::vector<int64_t> dims;
  std::vector<Cells> cells;  // by tensor

  std::vector<Cells> compute(const TensorExpr& expr, const std::vector<TensorId>& operands) const {
    Evaluator e(
        expr, dims,
        [&](int32_t o, int64_t at) {
          return cells[static_cast<size_t>(operands[static_cast<size_t>(o)])].at(static_cast<size_t>(at));
        },
        [&](int32_t o) { return graph.tensors[static_cast<size_t>(operands[static_cast<size_t>(o)])].type; });
    return e.run();
  }

  void run_nodes() {
    for (const Node& node : graph.nodes) {
      auto made = compute(node.expr, node.operands);
      for (size_t r = 0; r < made.size(); ++r) cells[static_cast<size_t>(node.results[r])] = std::move(made[r]);
    }
  }
};

}  // namespace quartet::tile::test
