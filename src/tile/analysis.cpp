#include "tile/analysis.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "base/checked.h"
#include "tile/remap.h"

namespace quartet::tile {
namespace {

using Kind = BodyNode::Kind;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

int64_t times(int64_t a, int64_t b) { return checked_mul(a, b).value_or(kMost); }
int64_t plus(int64_t a, int64_t b) { return checked_add(a, b).value_or(kMost); }

int64_t floor_div_i64(int64_t a, int64_t b) { return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0); }

// Interval arithmetic on an index expression. Ends beyond what a tensor can have are cut to these.
constexpr int64_t kFar = int64_t{1} << 60;
using Wide = __int128;

Interval clipped(Wide lo, Wide hi) {
  const auto cut = [](Wide v) { return static_cast<int64_t>(std::clamp<Wide>(v, -kFar, kFar)); };
  return {cut(lo), cut(hi)};
}

class Intervals {
 public:
  Intervals(const Tile& tile, std::span<const int64_t> dims) : tile_(tile), dims_(dims) {}

  Interval of(const IntExpr& e) const {
    Wide lo = e.constant_term(), hi = lo;
    for (const IntExpr::Term& term : e.terms()) {
      Interval product{1, 1};
      for (const IntExpr::Atom& atom : term.factors) product = multiply(product, of_atom(atom));
      const Interval scaled = multiply(product, {term.coefficient, term.coefficient});
      lo += scaled.lo, hi += scaled.hi;
    }
    return clipped(lo, hi);
  }

 private:
  static Interval multiply(const Interval& a, const Interval& b) {
    const Wide ends[] = {Wide{a.lo} * b.lo, Wide{a.lo} * b.hi, Wide{a.hi} * b.lo, Wide{a.hi} * b.hi};
    return clipped(*std::min_element(ends, ends + 4), *std::max_element(ends, ends + 4));
  }

  Interval of_atom(const IntExpr::Atom& atom) const {
    if (!atom.func) return of_symbol(atom.symbol);
    const Interval a = of(atom.func->a), b = of(atom.func->b);
    switch (atom.func->func) {
      case IntExpr::Func::min:
        return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
      case IntExpr::Func::max:
        return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
      case IntExpr::Func::floor_div:
        if (b.lo != b.hi || b.lo <= 0) return {-kFar, kFar};
        return {floor_div_i64(a.lo, b.lo), floor_div_i64(a.hi, b.lo)};
      case IntExpr::Func::floor_mod:
        break;
    }
    if (b.lo != b.hi || b.lo <= 0) return {0, kFar};
    const int64_t turn = floor_div_i64(a.lo, b.lo);
    if (turn != floor_div_i64(a.hi, b.lo)) return {0, b.lo - 1};
    return {a.lo - turn * b.lo, a.hi - turn * b.lo};
  }

  Interval of_symbol(Symbol s) const {
    if (is_axis_symbol(s)) {
      const auto axis = static_cast<size_t>(s - kAxisSymbols);
      return axis < tile_.size() ? tile_[axis] : Interval{0, 0};
    }
    if (is_dim_symbol(s) && static_cast<size_t>(s) < dims_.size()) {
      return {dims_[static_cast<size_t>(s)], dims_[static_cast<size_t>(s)]};
    }
    return {-kFar, kFar};
  }

  const Tile& tile_;
  std::span<const int64_t> dims_;
};

bool empty(const Tile& tile) {
  return std::any_of(tile.begin(), tile.end(), [](const Interval& i) { return i.size() == 0; });
}

bool empty_box(const Box& box) { return empty(box); }

// Marks what `root` uses, through operands, fills and indices.
void mark(const TensorExpr& expr, int32_t root, std::vector<bool>& used) {
  std::vector<int32_t> open = {root};
  const auto visit = [&](int32_t i) {
    if (i >= 0 && !used[static_cast<size_t>(i)]) open.push_back(i);
  };
  const auto visit_values = [&](const IntExpr& e) {
    for (const Symbol s : e.symbols()) {
      if (is_value_symbol(s)) visit(s - kValueSymbols);
    }
  };
  while (!open.empty()) {
    const int32_t i = open.back();
    open.pop_back();
    used[static_cast<size_t>(i)] = true;
    const BodyNode& b = expr.body[static_cast<size_t>(i)];
    for (const int32_t operand : b.operands) visit(operand);
    if (b.kind != Kind::read) continue;
    const Read& read = expr.reads[static_cast<size_t>(b.read)];
    visit(read.fill);
    for (const IntExpr& index : read.index) visit_values(index);
    for (const Guard& guard : read.guards) visit_values(guard.value), visit_values(guard.extent);
  }
}

}  // namespace

std::vector<int64_t> dim_values(const std::vector<graph::DimSymbol>& symbols, int64_t fallback) {
  std::vector<int64_t> values;
  for (const graph::DimSymbol& symbol : symbols) {
    int64_t value = std::max({symbol.hint > 0 ? symbol.hint : fallback, symbol.lower, int64_t{1}});
    if (symbol.upper) {  // over symbols, of which earlier ones have values
      const auto most = symbol.upper->evaluate([&](Symbol s) -> std::optional<int64_t> {
        return s >= 0 && static_cast<size_t>(s) < values.size() ? std::optional(values[static_cast<size_t>(s)])
                                                                : std::nullopt;
      });
      if (most) value = std::max(std::min(value, *most), symbol.lower);
    }
    values.push_back(value);
  }
  return values;
}

int64_t value_at(const IntExpr& expr, std::span<const int64_t> dims) {
  const auto value = expr.evaluate([&](Symbol s) -> std::optional<int64_t> {
    return s >= 0 && static_cast<size_t>(s) < dims.size() ? std::optional(dims[static_cast<size_t>(s)]) : std::nullopt;
  });
  return value.value_or(kMost);
}

Tile whole_tile(const TensorExpr& expr, std::span<const int64_t> dims) { return corner_tile(expr, dims, {}); }

Tile corner_tile(const TensorExpr& expr, std::span<const int64_t> dims, std::span<const int64_t> extents) {
  Tile tile;
  for (size_t i = 0; i < expr.axes.size(); ++i) {
    int64_t extent = value_at(expr.axes[i], dims);
    if (i < extents.size() && extents[i] > 0) extent = std::min(extent, extents[i]);
    tile.push_back({0, extent - 1});
  }
  return tile;
}

Box propagate(const Read& read, const graph::TensorType& type, const Tile& tile, std::span<const int64_t> dims) {
  Box box(read.index.size());
  if (empty(tile)) return box;
  const Intervals intervals(tile, dims);
  for (const Guard& guard : read.guards) {
    const Interval value = intervals.of(guard.value);
    if (value.hi < 0 || value.lo >= intervals.of(guard.extent).hi) return box;
  }
  for (size_t d = 0; d < box.size(); ++d) {
    const Interval index = intervals.of(read.index[d]);
    box[d] = {std::max<int64_t>(index.lo, 0), std::min(index.hi, value_at(type.shape[d], dims) - 1)};
  }
  return empty_box(box) ? Box(read.index.size()) : box;
}

int64_t box_bytes(const Box& box, const graph::TensorType& type, std::span<const int64_t> dims, int32_t line) {
  if (empty_box(box)) return 0;
  const auto element = static_cast<int64_t>(size_of(type.dtype));
  std::vector<int64_t> strides(box.size(), element);  // bytes
  for (size_t d = box.size(); d-- > 1;) strides[d - 1] = times(strides[d], value_at(type.shape[d], dims));
  if (!box.empty() &&
      times(strides[0], value_at(type.shape[0], dims)) > kFar) {  // beyond any memory: lines do not matter
    int64_t bytes = element;
    for (const Interval& i : box) bytes = times(bytes, i.size());
    return bytes;
  }
  int64_t first = 0, last = element - 1;  // bytes of the run from the box's corner
  for (size_t d = 0; d < box.size(); ++d) first = plus(first, times(box[d].lo, strides[d]));
  last = plus(first, last);
  int64_t runs = 1;
  // Dims from the innermost outwards, as long as the next run begins within the line where this one ends.
  for (size_t d = box.size(); d-- > 0;) {
    const int64_t length = last - first + 1;
    if (runs == 1 && (box[d].size() == 1 || strides[d] - length < line)) {
      last = plus(last, times(box[d].size() - 1, strides[d]));
    } else {
      runs = times(runs, box[d].size());
    }
  }
  const int64_t lines = last / line - first / line + 1;
  return times(times(lines, line), runs);
}

namespace {

// Walks the tiles of the spatial axes. Of equal inner tiles only the first and the last along each axis differ, so each
// axis gives at most three kinds: first, middle (standing for all between) and last.
struct AxisTile {
  Interval interval;
  int64_t count = 1;
};

std::vector<AxisTile> axis_tiles(int64_t extent, int64_t tile) {
  std::vector<AxisTile> kinds;
  if (extent <= 0) return kinds;
  if (tile <= 0 || tile >= extent) return {{{0, extent - 1}, 1}};
  const int64_t count = (extent + tile - 1) / tile;
  kinds.push_back({{0, tile - 1}, 1});
  if (count > 2) kinds.push_back({{tile, 2 * tile - 1}, count - 2});
  kinds.push_back({{(count - 1) * tile, extent - 1}, 1});
  return kinds;
}

}  // namespace

Traffic traffic(const TileGraph& graph, const Fused& fused, std::span<const int64_t> dims,
                std::span<const int64_t> extents, int32_t line) {
  const TensorExpr& expr = fused.expr;
  Tile tile = whole_tile(expr, dims);
  std::vector<std::vector<AxisTile>> kinds;
  for (size_t i = 0; i < static_cast<size_t>(expr.spatial); ++i) {
    kinds.push_back(axis_tiles(tile[i].size(), i < extents.size() ? extents[i] : 0));
    if (kinds.back().empty()) return {};
  }
  Traffic sum;
  const std::vector<IntExpr> shape(expr.axes.begin(), expr.axes.begin() + expr.spatial);
  std::vector<size_t> at(kinds.size());
  while (true) {
    int64_t count = 1;
    for (size_t i = 0; i < kinds.size(); ++i) {
      tile[i] = kinds[i][at[i]].interval;
      count = times(count, kinds[i][at[i]].count);
    }
    // The same tensor read twice is fetched once where the boxes agree.
    std::set<std::pair<int32_t, std::vector<std::pair<int64_t, int64_t>>>> seen;
    for (const Read& read : expr.reads) {
      const graph::TensorType& type =
          graph.tensors[static_cast<size_t>(fused.inputs[static_cast<size_t>(read.operand)])].type;
      const Box box = propagate(read, type, tile, dims);
      std::vector<std::pair<int64_t, int64_t>> key;
      for (const Interval& i : box) key.emplace_back(i.lo, i.hi);
      if (!seen.emplace(read.operand, std::move(key)).second) continue;
      sum.read = plus(sum.read, times(count, box_bytes(box, type, dims, line)));
    }
    for (const TensorId t : fused.outputs) {
      graph::TensorType type = graph.tensors[static_cast<size_t>(t)].type;
      type.shape = shape;  // the same elements in the same order
      const Box box(tile.begin(), tile.begin() + expr.spatial);
      sum.written = plus(sum.written, times(count, box_bytes(box, type, dims, line)));
    }
    size_t i = 0;
    while (i < at.size() && ++at[i] == kinds[i].size()) at[i++] = 0;
    if (i == at.size()) return sum;
  }
}

int64_t footprint(std::span<const LiveTile> tiles, int64_t alignment) {
  // Big tiles first; each goes into the smallest gap that holds it among those it lives with.
  std::vector<size_t> order(tiles.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return tiles[a].bytes != tiles[b].bytes ? tiles[a].bytes > tiles[b].bytes : a < b;
  });
  struct Placed {
    int64_t begin, end;
    const LiveTile* tile;
  };
  std::vector<Placed> placed;  // by begin
  int64_t peak = 0;
  for (const size_t i : order) {
    const LiveTile& tile = tiles[i];
    if (tile.bytes <= 0) continue;
    const int64_t size = (tile.bytes + alignment - 1) / alignment * alignment;
    int64_t free_from = 0, best = -1, best_gap = kMost;
    for (const Placed& other : placed) {
      if (other.tile->last < tile.first || tile.last < other.tile->first) continue;
      const int64_t gap = other.begin - free_from;
      if (gap >= size && gap < best_gap) best = free_from, best_gap = gap;
      free_from = std::max(free_from, other.end);
    }
    if (best < 0) best = free_from;
    const Placed made{best, best + size, &tile};
    placed.insert(std::upper_bound(placed.begin(), placed.end(), made,
                                   [](const Placed& a, const Placed& b) { return a.begin < b.begin; }),
                  made);
    peak = std::max(peak, made.end);
  }
  return peak;
}

int64_t footprint(const TileGraph& graph, std::span<const int32_t> nodes, std::span<const TensorId> outputs,
                  const Tile& tile, std::span<const int64_t> dims) {
  if (nodes.empty()) return 0;
  std::map<int32_t, Tile> tile_of;  // by node, the union of what its readers need
  std::map<TensorId, Box> box_of;   // by tensor
  std::map<TensorId, std::pair<int32_t, int32_t>> life;
  tile_of[nodes.back()] = tile;
  const auto touch = [&](TensorId t, int32_t step) {
    auto [at, fresh] = life.try_emplace(t, step, step);
    at->second.first = std::min(at->second.first, step), at->second.second = std::max(at->second.second, step);
  };
  for (size_t k = nodes.size(); k-- > 0;) {
    const int32_t n = nodes[k];
    const Node& node = graph.nodes[static_cast<size_t>(n)];
    if (!tile_of.count(n)) tile_of[n] = whole_tile(node.expr, dims);
    const Tile own = tile_of[n];
    for (const TensorId t : node.results) {
      box_of[t] = Box(own.begin(), own.begin() + node.expr.spatial);
      touch(t, static_cast<int32_t>(k));
    }
    // What a view shows is live as long as the view is.
    const int32_t step = node.expr.is_view ? life[node.results[0]].second : static_cast<int32_t>(k);
    for (const Read& read : node.expr.reads) {
      const TensorId t = node.operands[static_cast<size_t>(read.operand)];
      const Tensor& source = graph.tensors[static_cast<size_t>(t)];
      const Box box = propagate(read, source.type, own, dims);
      touch(t, step);
      auto [at, fresh] = box_of.try_emplace(t, box);
      for (size_t d = 0; d < box.size() && !fresh; ++d) {
        if (box[d].size() == 0) continue;
        if (at->second[d].size() == 0) at->second[d] = box[d];
        at->second[d] = {std::min(at->second[d].lo, box[d].lo), std::max(at->second[d].hi, box[d].hi)};
      }
      if (source.producer < 0 || std::find(nodes.begin(), nodes.end(), source.producer) == nodes.end()) continue;
      const TensorExpr& producer = graph.nodes[static_cast<size_t>(source.producer)].expr;
      Tile needed = whole_tile(producer, dims);
      std::copy(at->second.begin(), at->second.end(), needed.begin());
      tile_of[source.producer] = needed;
    }
  }
  std::vector<LiveTile> tiles;
  for (const auto& [t, steps] : life) {
    const Tensor& source = graph.tensors[static_cast<size_t>(t)];
    if (source.producer >= 0 && graph.nodes[static_cast<size_t>(source.producer)].expr.is_view &&
        std::find(outputs.begin(), outputs.end(), t) == outputs.end()) {
      continue;
    }
    int64_t bytes = static_cast<int64_t>(size_of(source.type.dtype));
    for (const Interval& i : box_of[t]) bytes = times(bytes, i.size());
    LiveTile live{bytes, steps.first, steps.second};
    if (std::find(outputs.begin(), outputs.end(), t) != outputs.end()) live.last = static_cast<int32_t>(nodes.size());
    tiles.push_back(live);
  }
  return footprint(tiles);
}

std::vector<bool> in_element(const TensorExpr& expr) {
  std::vector<bool> used(expr.body.size());
  if (expr.reduction != Reduction::none) mark(expr, expr.element, used);
  if (expr.reduction == Reduction::scatter) mark(expr, expr.scatter.row, used);
  return used;
}

std::vector<bool> in_epilogue(const TensorExpr& expr) {
  std::vector<bool> used(expr.body.size());
  for (const int32_t output : expr.outputs) mark(expr, output, used);
  if (expr.reduction == Reduction::scatter) mark(expr, expr.scatter.start, used);
  return used;
}

int64_t spatial_points(const TensorExpr& expr, std::span<const int64_t> dims) {
  int64_t points = 1;
  for (int32_t i = 0; i < expr.spatial; ++i) points = times(points, value_at(expr.axes[static_cast<size_t>(i)], dims));
  return points;
}

int64_t reduction_points(const TensorExpr& expr, std::span<const int64_t> dims) {
  int64_t points = 1;
  for (size_t i = static_cast<size_t>(expr.spatial); i < expr.axes.size(); ++i) {
    points = times(points, value_at(expr.axes[i], dims));
  }
  return points;
}

int64_t flops(const TensorExpr& expr, std::span<const int64_t> dims) {
  const int64_t spatial = spatial_points(expr, dims), all = times(spatial, reduction_points(expr, dims));
  const std::vector<bool> element = in_element(expr), epilogue = in_epilogue(expr);
  int64_t sum = 0;
  for (size_t i = 0; i < expr.body.size(); ++i) {
    if (expr.body[i].kind != Kind::op || expr.body[i].op == ScalarOp::cast) continue;
    if (element[i]) sum = plus(sum, all);
    if (epilogue[i]) sum = plus(sum, spatial);
  }
  if (expr.reduction == Reduction::none) return sum;
  const int64_t combine = expr.reduction == Reduction::softmax_stats ? 4 : 1;  // maximum, difference, exponential, sum
  return plus(sum, times(all, combine));
}

}  // namespace quartet::tile
