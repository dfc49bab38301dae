// Propagation, traffic, footprint and work against counting, point by point.
#include "tile/analysis.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "unit/tile/random_graph.h"

namespace quartet::tile {
namespace {

using namespace test;

// Visits every point of a tile.
void walk(const Tile& tile, const std::function<void(const std::vector<int64_t>&)>& visit) {
  std::vector<int64_t> at;
  for (const Interval& i : tile) {
    if (i.size() == 0) return;
    at.push_back(i.lo);
  }
  while (true) {
    visit(at);
    size_t d = 0;
    while (d < at.size() && ++at[d] > tile[d].hi) at[d] = tile[d].lo, ++d;
    if (d == at.size()) return;
  }
}

int64_t number(const IntExpr& e, const std::vector<int64_t>& axes, const std::vector<int64_t>& dims) {
  return *e.evaluate([&](Symbol s) -> std::optional<int64_t> {
    return is_axis_symbol(s) ? axes.at(static_cast<size_t>(s - kAxisSymbols)) : dims.at(static_cast<size_t>(s));
  });
}

// The elements a read touches in a tile, as points of the operand.
std::set<std::vector<int64_t>> touched(const Read& read, const Tile& tile, const std::vector<int64_t>& dims) {
  std::set<std::vector<int64_t>> points;
  walk(tile, [&](const std::vector<int64_t>& axes) {
    for (const Guard& g : read.guards) {
      const int64_t v = number(g.value, axes, dims);
      if (v < 0 || v >= number(g.extent, axes, dims)) return;
    }
    std::vector<int64_t> point;
    for (const IntExpr& e : read.index) point.push_back(number(e, axes, dims));
    points.insert(point);
  });
  return points;
}

bool is_affine(const Read& read) {
  const auto has_function = [](const IntExpr& e) {
    for (const IntExpr::Term& t : e.terms()) {
      for (const IntExpr::Atom& a : t.factors) {
        if (a.func) return true;
      }
    }
    return false;
  };
  for (const IntExpr& e : read.index) {
    if (has_function(e)) return false;
  }
  return read.guards.empty();
}

Tile random_tile(const Tile& whole, std::mt19937& random) {
  Tile tile;
  for (const Interval& i : whole) {
    if (i.size() == 0) return whole;
    const auto lo = static_cast<int64_t>(random() % static_cast<uint64_t>(i.size()));
    tile.push_back({lo, lo + static_cast<int64_t>(random() % static_cast<uint64_t>(i.size() - lo))});
  }
  return tile;
}

TEST(Propagate, AgainstCounting) {
  int affine = 0, other = 0;
  std::mt19937 random(5);
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const TileGraph graph = RandomGraph(seed, seed % 2 == 1).build(12);
    const std::vector<int64_t> dims(graph.symbols.size(), 4);
    for (const Node& node : graph.nodes) {
      const Tile tile = random_tile(whole_tile(node.expr, dims), random);
      for (const Read& read : node.expr.reads) {
        const graph::TensorType& type =
            graph.tensors[static_cast<size_t>(node.operands[static_cast<size_t>(read.operand)])].type;
        const Box box = propagate(read, type, tile, dims);
        const auto points = touched(read, tile, dims);
        Box exact(read.index.size());
        for (const auto& p : points) {
          for (size_t d = 0; d < p.size(); ++d) {
            EXPECT_TRUE(box[d].lo <= p[d] && p[d] <= box[d].hi) << "seed " << seed << " " << node.expr.name;
            exact[d] = exact[d].size() == 0 ? Interval{p[d], p[d]}
                                            : Interval{std::min(exact[d].lo, p[d]), std::max(exact[d].hi, p[d])};
          }
        }
        if (is_affine(read)) {
          EXPECT_EQ(box, exact) << "seed " << seed << " " << node.expr.name;
          ++affine;
        } else {
          ++other;
        }
      }
    }
  }
  EXPECT_GT(affine, 300);  // the test has looked at something
  EXPECT_GT(other, 20);
}

TEST(Propagate, GuardsAndDivisions) {
  Write w;
  const auto a = w.in("a", DType::f32, {4, 6}), b = w.in("b", DType::f32, {3, 6});
  w.out(w.op(OpCode::concat, {a, b}, {{AttrKey::axis, one(0)}}));
  w.out(w.op(OpCode::reshape, {a}, {{AttrKey::shape, shape({3, 8})}}));
  const TileGraph g = w.tiles();
  const auto read_of = [&](size_t node, int32_t operand) {
    for (const Read& r : g.nodes[node].expr.reads) {
      if (r.operand == operand) return r;
    }
    return Read();
  };
  // Rows 0..2 of the concat need nothing of b, rows 5..6 nothing of a.
  EXPECT_EQ(propagate(read_of(0, 0), g.tensors[0].type, {{0, 2}, {1, 3}}, {}), (Box{{0, 2}, {1, 3}}));
  EXPECT_EQ(propagate(read_of(0, 1), g.tensors[1].type, {{0, 2}, {1, 3}}, {})[0].size(), 0);
  EXPECT_EQ(propagate(read_of(0, 1), g.tensors[1].type, {{3, 5}, {0, 0}}, {}), (Box{{0, 1}, {0, 0}}));
  // Row 1 of the [3, 8] view is elements 8..15: rows 1..2 of a.
  EXPECT_EQ(propagate(read_of(1, 0), g.tensors[0].type, {{1, 1}, {0, 7}}, {})[0], (Interval{1, 2}));
}

// Lines of `line` bytes that hold the elements.
int64_t lines_touched(const std::set<int64_t>& elements, int64_t element_bytes, int64_t line) {
  std::set<int64_t> lines;
  for (const int64_t e : elements) {
    for (int64_t byte = e * element_bytes; byte < (e + 1) * element_bytes; ++byte) lines.insert(byte / line);
  }
  return static_cast<int64_t>(lines.size());
}

TEST(BoxBytes, AgainstCounting) {
  std::mt19937 random(6);
  for (int round = 0; round < 400; ++round) {
    const bool aligned = round % 2 == 0;  // rows are whole lines
    const int32_t line = aligned ? 32 : static_cast<int32_t>(8 << random() % 4);
    graph::TensorType type{DType::f32, {}};
    const size_t rank = 1 + random() % 3;
    for (size_t d = 0; d < rank; ++d) type.shape.push_back(static_cast<int64_t>(1 + random() % 6));
    if (aligned) type.shape.back() = static_cast<int64_t>(8 * (1 + random() % 3));
    Box box;
    for (const IntExpr& e : type.shape) {
      const auto extent = static_cast<uint64_t>(*e.constant());
      const auto lo = static_cast<int64_t>(random() % extent);
      box.push_back({lo, lo + static_cast<int64_t>(random() % (extent - static_cast<uint64_t>(lo)))});
    }
    std::set<int64_t> elements;
    walk(box, [&](const std::vector<int64_t>& at) {
      int64_t e = 0;
      for (size_t d = 0; d < rank; ++d) e = e * *type.shape[d].constant() + at[d];
      elements.insert(e);
    });
    const int64_t exact = lines_touched(elements, 4, line) * line, predicted = box_bytes(box, type, {}, line);
    EXPECT_EQ(box_bytes(box, type, {}, 4), static_cast<int64_t>(elements.size()) * 4);  // lines of one element
    if (aligned) {
      EXPECT_EQ(predicted, exact) << "round " << round;
    } else {  // runs that begin elsewhere in their lines than the first may touch one more or one less
      int64_t runs = 1;
      for (size_t d = 0; d + 1 < rank; ++d) runs *= box[d].size();
      EXPECT_LE(std::abs(predicted - exact), runs * line) << "round " << round;
    }
  }
}

// Traffic of a tiling, counted: every tile fetches the elements it touches once.
TEST(TrafficOf, AgainstCounting) {
  std::mt19937 random(7);
  int seen = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const TileGraph graph = RandomGraph(seed, false).build(8);
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      const Node& node = graph.nodes[n];
      const auto fused =
          fuse(graph, {static_cast<int32_t>(n)}, node.expr.reduction == Reduction::none ? -1 : static_cast<int32_t>(n),
               static_cast<int32_t>(n), node.results);
      ASSERT_TRUE(fused.ok()) << fused.status().message();
      // One read a tensor, so that shared boxes cannot blur the count; affine, so that boxes are exact; dense.
      const TensorExpr& expr = fused->expr;
      if (expr.reads.size() != fused->inputs.size()) continue;
      const Tile whole = whole_tile(expr, {});
      std::vector<int64_t> extents;
      for (size_t i = 0; i < static_cast<size_t>(expr.spatial); ++i) {
        extents.push_back(
            whole[i].size() > 0 ? 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(whole[i].size())) : 1);
      }
      int64_t counted = 0;
      bool exact = true;
      Tile corners;
      for (size_t i = 0; i < extents.size(); ++i)
        corners.push_back({0, (whole[i].size() + extents[i] - 1) / extents[i] - 1});
      walk(corners, [&](const std::vector<int64_t>& at) {
        Tile tile = whole;
        for (size_t i = 0; i < at.size(); ++i) {
          tile[i] = {at[i] * extents[i], std::min(whole[i].hi, (at[i] + 1) * extents[i] - 1)};
        }
        for (const Read& read : expr.reads) {
          const graph::TensorType& type =
              graph.tensors[static_cast<size_t>(fused->inputs[static_cast<size_t>(read.operand)])].type;
          const auto points = touched(read, tile, {});
          int64_t box = 1;
          for (const Interval& i : propagate(read, type, tile, {})) box *= i.size();
          exact = exact && is_affine(read) && box == static_cast<int64_t>(points.size());
          counted += 4 * static_cast<int64_t>(points.size());
        }
      });
      const Traffic t = traffic(graph, *fused, {}, extents, 4);
      EXPECT_EQ(t.written, 4 * spatial_points(expr, {}) * static_cast<int64_t>(fused->outputs.size()));
      EXPECT_GE(t.read, counted) << "seed " << seed << " node " << n;
      if (exact) {
        EXPECT_EQ(t.read, counted) << "seed " << seed << " node " << n;
        ++seen;
      }
    }
  }
  EXPECT_GT(seen, 60);
}

TEST(TrafficOf, AMatrixProductReadsByTile) {
  Write w;
  w.out(w.op(OpCode::matmul, {w.in("a", DType::f32, {64, 32}), w.in("b", DType::f32, {32, 48})}));
  const TileGraph g = w.tiles();
  const auto fused = fuse(g, {0}, 0, 0, g.nodes[0].results);
  const std::vector<int64_t> tile = {16, 16};
  const Traffic t = traffic(g, *fused, {}, tile, 64);
  EXPECT_EQ(t.read, 4 * (64 * 32 * 3 + 32 * 48 * 4));  // A once a column of tiles, B once a row
  EXPECT_EQ(t.written, 4 * 64 * 48);
}

TEST(Footprint, BestFit) {
  EXPECT_EQ(footprint(std::vector<LiveTile>{}), 0);
  EXPECT_EQ(footprint(std::vector<LiveTile>{{100, 0, 0}}), 128);
  // A chain: each lives with its neighbour only.
  EXPECT_EQ(footprint(std::vector<LiveTile>{{64, 0, 1}, {64, 1, 2}, {64, 2, 3}, {64, 3, 4}}), 128);
  // The small one goes into the gap that the middle one leaves.
  EXPECT_EQ(footprint(std::vector<LiveTile>{{256, 0, 5}, {128, 0, 2}, {64, 3, 5}, {64, 3, 5}}), 384);
}

TEST(Footprint, BetweenTheBusiestStepAndTheSum) {
  std::mt19937 random(8);
  for (int round = 0; round < 200; ++round) {
    std::vector<LiveTile> tiles(1 + random() % 8);
    int64_t sum = 0, busiest = 0;
    for (LiveTile& t : tiles) {
      t.bytes = static_cast<int64_t>(64 * (random() % 5));
      t.first = static_cast<int32_t>(random() % 6);
      t.last = t.first + static_cast<int32_t>(random() % 4);
      sum += t.bytes;
    }
    for (int32_t step = 0; step < 10; ++step) {
      int64_t live = 0;
      for (const LiveTile& t : tiles) live += t.first <= step && step <= t.last ? t.bytes : 0;
      busiest = std::max(busiest, live);
    }
    const int64_t peak = footprint(tiles);
    EXPECT_GE(peak, busiest);
    EXPECT_LE(peak, sum);
    EXPECT_LE(peak, 2 * busiest);
  }
}

TEST(Footprint, OfMembersInMemory) {
  Write w;
  const auto x = w.in("x", DType::f32, {64, 256});
  const auto e = w.op(OpCode::exp, {x});
  const auto t = w.op(OpCode::transpose, {e}, {{AttrKey::perm, ints({1, 0})}});
  w.out(w.op(OpCode::tanh, {w.op(OpCode::neg, {t})}));
  const TileGraph g = w.tiles();
  const std::vector<int32_t> nodes = {0, 1, 2, 3};
  const std::vector<TensorId> outputs = {g.outputs[0]};
  // A tile of 32 x 16: x and exp live together, then exp and neg, then neg and tanh; the view costs nothing.
  EXPECT_EQ(footprint(g, nodes, outputs, {{0, 31}, {0, 15}}, {}), 2 * 32 * 16 * 4);
  // A reduction needs the whole row of what it reads.
  Write r;
  r.out(
      r.op(OpCode::reduce_sum, {r.op(OpCode::exp, {r.in("x", DType::f32, {64, 256})})}, {{AttrKey::axes, ints({1})}}));
  const TileGraph h = r.tiles();
  const std::vector<int32_t> both = {0, 1};
  const std::vector<TensorId> sums = {h.outputs[0]};
  EXPECT_EQ(footprint(h, both, sums, {{0, 3}, {0, 255}}, {}), 2 * 4 * 256 * 4);
}

TEST(Flops, CountsOperations) {
  Write w;
  const auto x = w.in("x", DType::f32, {4, 6}), y = w.in("y", DType::f32, {6, 5});
  w.out(w.op(OpCode::matmul, {x, y}));
  w.out(w.op(OpCode::tanh, {x}));
  w.out(w.op(OpCode::cast, {x}, {{AttrKey::to, DType::f64}}));
  w.out(w.op(OpCode::reduce_sum, {x}, {{AttrKey::axes, ints({1})}}));
  const TileGraph g = w.tiles();
  EXPECT_EQ(flops(g.nodes[0].expr, {}), 2 * 4 * 6 * 5);
  EXPECT_EQ(flops(g.nodes[1].expr, {}), 24);
  EXPECT_EQ(flops(g.nodes[2].expr, {}), 0);
  EXPECT_EQ(flops(g.nodes[3].expr, {}), 24 + 4);  // the final + 0 of each sum
}

TEST(DimValues, HintsWithinBounds) {
  graph::DimSymbol a, b, c;
  a.lower = 100;
  b.hint = 7;
  c.hint = 50;
  c.upper = IntExpr::symbol(1) * IntExpr(2);
  EXPECT_EQ(dim_values({a, b, c}), (std::vector<int64_t>{100, 7, 14}));
  EXPECT_EQ(dim_values({graph::DimSymbol()}, 9), (std::vector<int64_t>{9}));
}

TEST(Analysis, HugeShapesSaturate) {
  const int64_t huge = int64_t{1} << 40;
  graph::TensorType type{DType::f64, {huge, huge, huge}};
  const Box box = {{0, huge - 1}, {0, huge - 1}, {0, huge - 1}};
  EXPECT_EQ(box_bytes(box, type, {}, 64), INT64_MAX);
  TensorExpr expr;
  expr.axes = type.shape;
  expr.spatial = 3;
  EXPECT_EQ(spatial_points(expr, {}), INT64_MAX);
}

}  // namespace
}  // namespace quartet::tile
