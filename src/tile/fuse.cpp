#include "tile/fuse.h"

#include <algorithm>
#include <array>

#include "tile/contraction.h"
#include "tile/remap.h"

namespace quartet::tile {
namespace {

using Kind = BodyNode::Kind;
using Point = std::vector<IntExpr>;

constexpr int kMaxDepth = 512;  // members one inside the other
constexpr size_t kMaxBody = 4096;

// What stands around a read: where a guard fails the value is body node `fill`.
struct Around {
  std::vector<Guard> guards;
  int32_t fill = -1;
  bool indirect = false;  // the point holds values read at run time
};

// A member at one point, and where its body nodes went.
struct Instance {
  int32_t node = -1;
  Point point;
  std::vector<int32_t> placed;  // by body node of the member, -1: not yet
};

bool same_guards(const std::vector<Guard>& a, const std::vector<Guard>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Guard& x, const Guard& y) { return x.value == y.value && x.extent == y.extent; });
}

class Fuser {
 public:
  Fuser(const TileGraph& graph, const std::vector<int32_t>& nodes, int32_t core, int32_t domain)
      : graph_(graph), member_(graph.nodes.size()) {
    for (const int32_t n : nodes) member_[static_cast<size_t>(n)] = true;
    out_.core = core;
    out_.domain = domain;
  }

  Result<Fused> run(const std::vector<TensorId>& outputs) {
    const TensorExpr& shape = expr_of(out_.domain);
    expr().name = shape.name;
    expr().spatial = shape.spatial;
    expr().axes.assign(shape.axes.begin(), shape.axes.begin() + shape.spatial);
    if (out_.core >= 0) QUARTET_TRY(place_core());
    for (const TensorId t : outputs) {
      QUARTET_ASSIGN(const int32_t value, output(t));
      expr().outputs.push_back(value);
      out_.outputs.push_back(t);
    }
    if (expr().reduction == Reduction::contraction) finish_contraction();
    return std::move(out_);
  }

 private:
  TensorExpr& expr() { return out_.expr; }
  const TensorExpr& expr_of(int32_t node) const { return graph_.nodes[static_cast<size_t>(node)].expr; }
  const Tensor& tensor(TensorId t) const { return graph_.tensors[static_cast<size_t>(t)]; }

  Status refuse(const std::string& words) const { return make_error(Code::failed_precondition, "%s", words.c_str()); }

  IntExpr axis(size_t i) { return expr().axes[i].is(1) ? IntExpr(0) : IntExpr::axis(static_cast<int>(i)); }

  Point domain_point() {
    Point point;
    for (size_t i = 0; i < static_cast<size_t>(expr().spatial); ++i) point.push_back(axis(i));
    return point;
  }

  Status place_core() {
    const TensorExpr& core = expr_of(out_.core);
    if (out_.domain != out_.core) return refuse("a group with a core has another domain");
    expr().axes = core.axes;
    expr().reduction = core.reduction;
    contracting_ = core.reduction == Reduction::contraction;
    QUARTET_ASSIGN(expr().element, place(out_.core, domain_point(), core.element, {}, 0));
    if (contracting_) {
      const std::array<std::pair<int32_t, int32_t*>, 2> sides = {
          {{core.contraction.read_a, &expr().contraction.read_a},
           {core.contraction.read_b, &expr().contraction.read_b}}};
      for (const auto& [local, global] : sides) {
        QUARTET_ASSIGN(const int32_t value, place(out_.core, domain_point(), read_node(core, local), {}, 0));
        const BodyNode& node = expr().body[static_cast<size_t>(value)];
        if (node.kind != Kind::read || !expr().reads[static_cast<size_t>(node.read)].guards.empty()) {
          return refuse("an operand of the contraction '" + core.name + "' is computed, not read");
        }
        *global = node.read;
      }
    }
    contracting_ = false;
    if (core.reduction != Reduction::scatter) return {};
    expr().scatter.combine = core.scatter.combine;
    QUARTET_ASSIGN(expr().scatter.start, place(out_.core, domain_point(), core.scatter.start, {}, 0));
    QUARTET_ASSIGN(expr().scatter.row, place(out_.core, domain_point(), core.scatter.row, {}, 0));
    return {};
  }

  static int32_t read_node(const TensorExpr& e, int32_t read) {
    for (size_t i = 0; i < e.body.size(); ++i) {
      if (e.body[i].kind == Kind::read && e.body[i].read == read) return static_cast<int32_t>(i);
    }
    return -1;
  }

  Result<int32_t> output(TensorId t) {
    const Tensor& written = tensor(t);
    if (written.producer < 0 || !member_[static_cast<size_t>(written.producer)]) {
      return refuse("tensor " + std::to_string(t) + " is not made in the group");
    }
    const std::vector<IntExpr> extents(expr().axes.begin(), expr().axes.begin() + expr().spatial);
    auto point = remap(domain_point(), extents, written.type.shape, graph_.ranges(expr()));
    if (!point) return refuse("the result of '" + expr_of(written.producer).name + "' has not the domain's elements");
    return value(t, std::move(*point), {}, 0);
  }

  // The body node that holds the tensor's element at a point.
  Result<int32_t> value(TensorId t, Point point, const Around& around, int depth) {
    const Tensor& source = tensor(t);
    if (source.producer < 0 || !member_[static_cast<size_t>(source.producer)])
      return memory(t, std::move(point), around);
    const TensorExpr& producer = expr_of(source.producer);
    if (depth > kMaxDepth) return refuse("too many members one inside the other");
    if (!producer.is_view) {
      if (!around.guards.empty()) return refuse("'" + producer.name + "' is computed only where a guard holds");
      if (around.indirect) return refuse("'" + producer.name + "' is read at indices from a tensor");
      if (contracting_) return refuse("an operand of a contraction is computed by '" + producer.name + "'");
    }
    if (source.producer == out_.core) {
      if (!equal_points(point, domain_point()))
        return refuse("'" + producer.name + "' is needed at another point than its own");
    } else if (producer.reduction != Reduction::none) {
      return refuse("a second reduction '" + producer.name + "'");
    }
    return place(source.producer, std::move(point), producer.outputs[static_cast<size_t>(source.result)], around,
                 depth + 1);
  }

  // Equal for every value of the axes: an axis of extent 1 is always at 0, and where an axis has none there is no
  // point.
  bool equal_points(const Point& a, const Point& b) {
    const auto& axes = expr().axes;
    if (std::any_of(axes.begin(), axes.begin() + expr().spatial, [](const IntExpr& e) { return e.is(0); })) return true;
    const auto same = [&](const IntExpr& x, const IntExpr& y) {
      if (x == y) return true;
      const auto ranges = graph_.ranges(expr());
      return (x - y).provably_nonnegative(ranges) && (y - x).provably_nonnegative(ranges);
    };
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
  }

  Result<int32_t> memory(TensorId t, Point point, const Around& around) {
    const Tensor& source = tensor(t);
    if (source.scalar && around.guards.empty() && !contracting_) {
      BodyNode node;
      node.kind = Kind::constant;
      node.dtype = source.type.dtype;
      node.bits = *source.scalar;
      return add(std::move(node));
    }
    auto at = std::find(out_.inputs.begin(), out_.inputs.end(), t);
    if (at == out_.inputs.end()) at = out_.inputs.insert(out_.inputs.end(), t);
    Read read;
    read.operand = static_cast<int32_t>(at - out_.inputs.begin());
    read.index = std::move(point);
    read.guards = around.guards;
    read.fill = around.guards.empty() ? -1 : around.fill;
    BodyNode node;
    node.kind = Kind::read;
    node.dtype = source.type.dtype;
    node.read = add_read(std::move(read));
    return add(std::move(node));
  }

  int32_t add_read(Read read) {
    for (size_t r = 0; r < expr().reads.size(); ++r) {
      const Read& other = expr().reads[r];
      if (other.operand == read.operand && other.fill == read.fill && equal_points(other.index, read.index) &&
          same_guards(other.guards, read.guards)) {
        return static_cast<int32_t>(r);
      }
    }
    expr().reads.push_back(std::move(read));
    return static_cast<int32_t>(expr().reads.size()) - 1;
  }

  // Adds a body node unless an equal one is there.
  Result<int32_t> add(BodyNode node) {
    for (size_t i = 0; i < expr().body.size(); ++i) {
      const BodyNode& b = expr().body[i];
      if (b.kind == node.kind && b.op == node.op && b.dtype == node.dtype && b.operands == node.operands &&
          b.bits == node.bits && b.read == node.read && b.index == node.index) {
        return static_cast<int32_t>(i);
      }
    }
    if (expr().body.size() >= kMaxBody) return refuse("a body of too many nodes");
    expr().body.push_back(std::move(node));
    return static_cast<int32_t>(expr().body.size()) - 1;
  }

  size_t instance(int32_t node, Point point, const Around& around) {
    // A guarded member is placed anew: its reads depend on the guard.
    if (around.guards.empty()) {
      for (size_t i = 0; i < instances_.size(); ++i) {
        if (instances_[i].node == node && equal_points(instances_[i].point, point)) return i;
      }
    }
    Instance made;
    made.node = around.guards.empty() ? node : -1;
    made.point = std::move(point);
    made.placed.assign(expr_of(node).body.size(), -1);
    instances_.push_back(std::move(made));
    return instances_.size() - 1;
  }

  // Places body node `root` of a member at a point, with what it depends on.
  Result<int32_t> place(int32_t node, Point point, int32_t root, const Around& around, int depth) {
    return place_body(instance(node, std::move(point), around), node, root, around, depth);
  }

  Result<int32_t> place_body(size_t at, int32_t node, int32_t root, const Around& around, int depth) {
    if (const int32_t placed = instances_[at].placed[static_cast<size_t>(root)]; placed >= 0) return placed;
    const BodyNode& source = expr_of(node).body[static_cast<size_t>(root)];
    BodyNode copy = source;
    for (int32_t& operand : copy.operands) {
      QUARTET_ASSIGN(operand, place_body(at, node, operand, around, depth));
    }
    int32_t result = -1;
    if (source.kind == Kind::read) {
      QUARTET_ASSIGN(result, place_read(at, node, source.read, around, depth));
    } else {
      if (source.kind == Kind::index) {
        copy.index = moved(source.index, at);
        if (const auto number = copy.index.constant()) {
          copy = BodyNode();
          copy.kind = Kind::constant;
          copy.dtype = DType::i64;
          copy.bits = *number;
        }
      }
      QUARTET_ASSIGN(result, add(std::move(copy)));
    }
    instances_[at].placed[static_cast<size_t>(root)] = result;
    return result;
  }

  Result<int32_t> place_read(size_t at, int32_t node, int32_t number, const Around& around, int depth) {
    const Node& member = graph_.nodes[static_cast<size_t>(node)];
    const Read& read = member.expr.reads[static_cast<size_t>(number)];
    Around inner;
    inner.guards = around.guards;
    inner.fill = around.fill;
    inner.indirect = around.indirect;
    for (const IntExpr& index : read.index) QUARTET_TRY(place_values(index, at, node, depth, inner.indirect));
    if (!read.guards.empty()) {
      bool ignored = false;
      for (const Guard& guard : read.guards) QUARTET_TRY(place_values(guard.value, at, node, depth, ignored));
      QUARTET_ASSIGN(inner.fill, place_body(at, node, read.fill, {}, depth));
      for (const Guard& guard : read.guards) inner.guards.push_back({moved(guard.value, at), moved(guard.extent, at)});
    }
    Point point;
    for (const IntExpr& index : read.index) point.push_back(moved(index, at));
    return value(member.operands[static_cast<size_t>(read.operand)], std::move(point), inner, depth);
  }

  // Places the body nodes whose values an index uses.
  Status place_values(const IntExpr& index, size_t at, int32_t node, int depth, bool& indirect) {
    for (const Symbol s : index.symbols()) {
      if (!is_value_symbol(s)) continue;
      indirect = true;
      QUARTET_ASSIGN([[maybe_unused]] const int32_t placed, place_body(at, node, s - kValueSymbols, {}, depth));
    }
    return {};
  }

  // An index expression of a member in terms of the group's axes and body.
  IntExpr moved(const IntExpr& index, size_t at) {
    const Instance& instance = instances_[at];
    const auto spatial = instance.point.size();
    const IntExpr replaced = index.substitute([&](Symbol s) -> std::optional<IntExpr> {
      if (is_value_symbol(s)) {
        return IntExpr::symbol(value_symbol(instance.placed[static_cast<size_t>(s - kValueSymbols)]));
      }
      if (!is_axis_symbol(s)) return std::nullopt;
      const auto i = static_cast<size_t>(s - kAxisSymbols);
      if (i < spatial) return instance.point[i];
      return axis(i);  // a reduction axis: only the core has any, and keeps its numbers
    });
    return recombined(replaced.simplify(graph_.ranges(expr())));
  }

  // Roles after views have changed the maps. With a single column and a constant A the sides change places, so that
  // lanes run along the rows of the constant: it can be packed once.
  void finish_contraction() {
    assign_roles(expr());
    Contraction& c = expr().contraction;
    const auto constant = [&](int32_t read) {
      const Read& r = expr().reads[static_cast<size_t>(read)];
      return tensor(out_.inputs[static_cast<size_t>(r.operand)]).constant >= 0;
    };
    if (c.n.empty() && !c.m.empty() && constant(c.read_a) && !constant(c.read_b)) {
      std::swap(c.read_a, c.read_b);
      std::swap(c.m, c.n);
    }
  }

  const TileGraph& graph_;
  std::vector<bool> member_;
  Fused out_;
  std::vector<Instance> instances_;
  bool contracting_ = false;
};

}  // namespace

Result<Fused> fuse(const TileGraph& graph, const std::vector<int32_t>& nodes, int32_t core, int32_t domain,
                   const std::vector<TensorId>& outputs) {
  return Fuser(graph, nodes, core, domain).run(outputs);
}

IntExpr flat_offset(const TensorExpr& /*expr*/, const Read& read, const graph::TensorType& type) {
  return linearize(read.index, type.shape);
}

IntExpr linear_point(const TensorExpr& expr) {
  const std::vector<IntExpr> extents(expr.axes.begin(), expr.axes.begin() + expr.spatial);
  std::vector<IntExpr> point;
  for (int32_t i = 0; i < expr.spatial; ++i) point.push_back(IntExpr::axis(i));
  return linearize(point, extents);
}

}  // namespace quartet::tile
