#include "roller/construct.h"

#include <gtest/gtest.h>

#include "roller/contract.h"
#include "roller/merge.h"
#include "roller/spatial.h"
#include "tile/analysis.h"
#include "unit/tile/random_graph.h"

namespace quartet::roller {
namespace {

using tile::TileGraph;
using namespace tile::test;

CpuModel model(const char* name, int32_t cores = 4) {
  CpuModel m = *named_cpu(name);
  m.cores = cores;
  return m;
}

// The best plan for a graph of one group; views come before the last node.
Plan best(const TileGraph& g, const CpuModel& device) {
  std::vector<int32_t> nodes;
  int32_t core = -1;
  for (size_t n = 0; n < g.nodes.size(); ++n) {
    nodes.push_back(static_cast<int32_t>(n));
    if (g.nodes[n].expr.reduction != tile::Reduction::none) core = static_cast<int32_t>(n);
  }
  const auto plans = construct(g, nodes, core, core >= 0 ? core : nodes.back(), g.outputs, device, 1);
  EXPECT_TRUE(plans.ok()) << plans.status().message();
  return plans.ok() ? plans->front() : Plan();
}

Plan matmul(Shape a, Shape b, const CpuModel& device, bool constant_b = true, int64_t transpose_b = 0) {
  Write w;
  const auto x = w.in("a", DType::f32, std::move(a));
  const auto y = constant_b ? w.weights(std::move(b)) : w.in("b", DType::f32, std::move(b));
  w.out(w.op(OpCode::matmul, {x, y}, {{AttrKey::transpose_b, transpose_b}}));
  return best(w.tiles(), device);
}

// ---- The register rule ----

TEST(RegisterRule, NoTileSpills) {
  for (const char* name : {"sse2", "avx2", "avx512"}) {
    const CpuModel device = model(name);
    for (const int64_t m : {1, 2, 3, 7, 16, 100, 512}) {
      for (const int64_t n : {1, 5, 16, 17, 48, 100, 512}) {
        const Plan p = matmul({m, 64}, {64, n}, device);
        if (p.kind == Plan::Kind::chain) {
          EXPECT_LT(n, device.lanes(4)) << "a tile would have filled its lanes";
          continue;
        }
        const int32_t vectors = p.columns / device.lanes(4);
        EXPECT_EQ(p.columns % device.lanes(4), 0);
        EXPECT_LE(p.rows * vectors + vectors + 1, device.vector_registers) << name << " " << p.rows << "x" << p.columns;
        EXPECT_LE(p.rows, m);
        EXPECT_TRUE(p.columns < n + device.lanes(4)) << "a panel beyond the last column";
        EXPECT_EQ(p.task_m % p.rows, 0);
        EXPECT_EQ(p.task_n % p.columns, 0);
      }
    }
  }
}

TEST(RegisterRule, EveryWidthAndFileHasATile) {
  for (const int32_t bytes : {16, 32, 64}) {
    for (const int32_t registers : {8, 16, 32, 64}) {
      for (const bool fma : {false, true}) {
        CpuModel device = model("avx2");
        device.vector_bytes = bytes, device.vector_registers = registers, device.fma = fma;
        const Plan p = matmul({96, 64}, {64, 96}, device);
        const int32_t vectors = p.columns / device.lanes(4), accumulators = p.rows * vectors;
        EXPECT_LE(accumulators + vectors + 1, registers);
        if (!fma) {
          EXPECT_LE(2 * accumulators, registers);  // room for products in flight
        }
        EXPECT_GE(2 * accumulators, registers / 2) << "a tile that wastes registers: " << p.rows << "x" << p.columns;
      }
    }
  }
}

TEST(RegisterRule, KnownTiles) {
  EXPECT_EQ(most_rows(model("avx512"), 3), 9);
  EXPECT_EQ(most_rows(model("avx512"), 2), 14);
  EXPECT_EQ(most_rows(model("avx2"), 2), 6);
  EXPECT_EQ(most_rows(model("sse2"), 2), 4);
  const Plan avx2 = matmul({512, 512}, {512, 512}, model("avx2"));
  EXPECT_EQ(avx2.rows, 6);
  EXPECT_EQ(avx2.columns, 16);
  // Of the AVX-512 tiles the wide ones, which were measured best; not thirty rows of one vector.
  const Plan avx512 = matmul({512, 512}, {512, 512}, model("avx512"));
  EXPECT_GE(avx512.columns, 32);
  EXPECT_LE(avx512.columns, 80);
}

TEST(RegisterRule, RowsAreBalanced) {
  for (const int64_t m : {7, 8, 11, 13, 16, 25}) {
    for (const char* name : {"sse2", "avx2", "avx512"}) {
      const CpuModel device = model(name);
      const Plan p = matmul({m, 64}, {64, 96}, device);
      const int64_t most = most_rows(device, p.columns / device.lanes(4));
      const int64_t tiles = (m + most - 1) / most;
      EXPECT_EQ(p.rows, (m + tiles - 1) / tiles) << m;  // 4 + 4, not 6 + 2
    }
  }
}

// ---- Operands ----

TEST(Operands, AConstantIsPreparedWhenItIsReused) {
  const CpuModel device = model("avx2");
  EXPECT_EQ(matmul({64, 128}, {128, 128}, device).b, OperandForm::prepared);
  // Streamed once, in short steps: as good where it lies.
  EXPECT_EQ(matmul({1, 1536}, {1536, 128}, device).b, OperandForm::in_place);
  // Streamed once, but each step is a page away.
  EXPECT_EQ(matmul({1, 1024}, {1024, 4096}, device).b, OperandForm::prepared);
  // Not along lanes where it lies.
  EXPECT_EQ(matmul({1, 128}, {64, 128}, device, true, 1).b, OperandForm::prepared);
}

TEST(Operands, AVariableIsPackedWhenItMustBeOrWhenItPays) {
  const CpuModel device = model("avx2");
  EXPECT_EQ(matmul({64, 64}, {64, 64}, device, false).b, OperandForm::in_place);
  EXPECT_EQ(matmul({64, 64}, {64, 64}, device, false, 1).b, OperandForm::packed);
  EXPECT_EQ(matmul({1024, 1024}, {1024, 1024}, device, false).b, OperandForm::packed);
}

TEST(Operands, RowsThatEvictEachOtherArePacked) {
  CpuModel device = model("avx512");
  // 4096 bytes from row to row: one set of L1 for all rows.
  EXPECT_EQ(matmul({1024, 1024}, {1024, 1024}, device).a, OperandForm::packed);
  EXPECT_EQ(matmul({1000, 1000}, {1000, 1000}, device).a, OperandForm::in_place);
  for (MemoryLevel& level : device.levels) {
    if (level.name == "L1") level.capacity = 1 << 20;  // 256 ways
  }
  EXPECT_EQ(matmul({1024, 1024}, {1024, 1024}, device).a, OperandForm::in_place);
}

TEST(Operands, AMapThatIsNotLinearIsPackedOrRefused) {
  const auto build = [](bool symbolic) {
    Write w;
    const IntExpr heads = symbolic ? *w.b.symbol("h") : IntExpr(4);
    const auto x = w.in("x", DType::f32, {2, heads, 16, 8});
    const auto turned = w.op(OpCode::transpose, {x}, {{AttrKey::perm, ints({0, 2, 1, 3})}});
    const auto flat = w.op(OpCode::reshape, {turned}, {{AttrKey::shape, shape({2, 16, heads * IntExpr(8)})}});
    w.out(w.op(OpCode::matmul, {flat, w.in("y", DType::f32, {heads * IntExpr(8), 32})}));
    return w.tiles();
  };
  EXPECT_EQ(best(build(false), model("avx2")).a, OperandForm::packed);
  const TileGraph symbolic = build(true);  // scratch of unknown size
  const auto refused = construct(symbolic, {0, 1, 2}, 2, 2, symbolic.outputs, model("avx2"), 1);
  EXPECT_EQ(refused.status().code(), Code::failed_precondition);
  EXPECT_NE(refused.status().message().find("matmul"), std::string::npos);
}

// ---- Tasks ----

TEST(Tasks, SmallWorkIsNotSplit) {
  Write w;
  w.out(w.op(OpCode::tanh, {w.in("x", DType::f32, {64, 64})}));
  EXPECT_EQ(best(w.tiles(), model("avx2")).tasks, 1);
  EXPECT_EQ(matmul({8, 32}, {32, 32}, model("avx2")).tasks, 1);
}

TEST(Tasks, LargeWorkFillsTheCores) {
  for (const int32_t cores : {1, 2, 8, 32}) {
    const CpuModel device = model("avx2", cores);
    Write w;
    w.out(w.op(OpCode::tanh, {w.in("x", DType::f32, {1024, 1024})}));
    const Plan map = best(w.tiles(), device);
    EXPECT_GE(map.tasks, cores);
    EXPECT_LE(map.tasks, 4 * cores + 1);
    EXPECT_GE(matmul({1024, 1024}, {1024, 1024}, device).tasks, cores);
    EXPECT_GE(map.seconds / static_cast<double>(map.tasks), kMinTaskSeconds / 2);
  }
}

TEST(Tasks, MoreCoresTakeLess) {
  double before = 1;
  for (const int32_t cores : {1, 2, 4, 8}) {
    const Plan p = matmul({512, 512}, {512, 512}, model("avx2", cores));
    EXPECT_LT(p.wall, before * 0.75);
    before = p.wall;
  }
}

TEST(Tasks, PiecesAreWholeLinesOfTheOutput) {
  Write w;
  w.out(w.op(OpCode::cast, {w.in("x", DType::f32, {1 << 20})}, {{AttrKey::to, DType::i8}}));
  const Plan p = best(w.tiles(), model("avx512", 8));
  ASSERT_EQ(p.task_tile.size(), 1u);
  EXPECT_GT(p.tasks, 1);
  EXPECT_EQ(p.task_tile[0] % 64, 0);
}

TEST(Tasks, ABlockOfAAndAPanelOfBFitL2) {
  for (const int64_t k : {64, 512, 1024, 2000}) {
    const CpuModel device = model("avx512", 2);
    const Plan p = matmul({4096, k}, {k, 512}, device);
    const int64_t block = p.task_m * k * 4, panel = p.columns * k * 4, row_tile = p.rows * k * 4;
    EXPECT_LE(std::min(block, block - row_tile) + std::min(panel, device.level("L2")->capacity),
              device.level("L2")->capacity + row_tile);
    EXPECT_TRUE(block <= device.level("L2")->capacity * 3 / 4 || p.task_m == p.rows);
  }
}

TEST(Tasks, UnknownExtentsSplitByWork) {
  Write w;
  const auto n = *w.b.symbol("n");
  w.out(w.op(OpCode::tanh, {w.in("x", DType::f32, {n, 128})}));
  TileGraph g = w.tiles();
  g.symbols[0].hint = 8;
  const Plan small = best(g, model("avx2"));
  EXPECT_EQ(small.tasks, 1);
  ASSERT_EQ(small.task_tile.size(), 1u);  // merged into one run, cut into pieces of a fixed size
  EXPECT_GT(small.task_tile[0], 0);
  g.symbols[0].hint = 100000;
  EXPECT_GT(best(g, model("avx2")).tasks, 4);
}

// ---- Lanes ----

TEST(Lanes, AlongUnitStrides) {
  Write rows, columns;
  rows.out(rows.op(OpCode::reduce_sum, {rows.in("x", DType::f32, {512, 512})}, {{AttrKey::axes, ints({1})}}));
  columns.out(columns.op(OpCode::reduce_sum, {columns.in("x", DType::f32, {512, 512})}, {{AttrKey::axes, ints({0})}}));
  EXPECT_EQ(best(rows.tiles(), model("avx2")).vector_axis, -1);    // along the reduction
  EXPECT_EQ(best(columns.tiles(), model("avx2")).vector_axis, 0);  // along the columns
}

TEST(Lanes, AllPointsOfAReductionToOneValue) {
  Write w;
  w.out(w.op(OpCode::reduce_max, {w.in("x", DType::f32, {64, 512})}, {{AttrKey::axes, ints({0, 1})}}));
  const Plan p = best(w.tiles(), model("avx2"));
  EXPECT_EQ(p.vector_axis, -1);
  EXPECT_TRUE(p.merged.empty());
  EXPECT_EQ(p.reduction, (std::vector<std::vector<int32_t>>{{0, 1}}));
  EXPECT_EQ(p.tasks, 1);
}

TEST(Lanes, ANarrowInnerAxisGivesWayToEnoughWork) {
  // Three channels against a value per pixel: lanes along three elements leave thirteen idle, lanes along pixels
  // gather.
  const auto build = [](bool much) {
    Write w;
    const auto x = w.in("x", DType::f32, {4096, 3}), y = w.in("y", DType::f32, {4096, 1});
    w.out(much ? w.op(OpCode::div, {w.op(OpCode::tanh, {x}), y}) : w.op(OpCode::add, {x, y}));
    return w.tiles();
  };
  EXPECT_EQ(best(build(true), model("avx512")).vector_axis, 0);
  EXPECT_EQ(best(build(false), model("avx512")).vector_axis, 1);
}

// ---- Merging ----

std::vector<std::vector<int32_t>> runs(Write& w) {
  const TileGraph g = w.tiles();
  std::vector<int32_t> nodes;
  for (size_t n = 0; n < g.nodes.size(); ++n) nodes.push_back(static_cast<int32_t>(n));
  const auto fused = tile::fuse(g, nodes, -1, nodes.back(), g.outputs);
  EXPECT_TRUE(fused.ok());
  return merge_axes(fused->expr, accesses(g, *fused), 0, fused->expr.spatial);
}

using Runs = std::vector<std::vector<int32_t>>;

TEST(Merge, WhatEveryAccessWalksAsOne) {
  Write all;
  all.out(all.op(OpCode::exp, {all.in("x", DType::f32, {3, 4, 5})}));
  EXPECT_EQ(runs(all), (Runs{{0, 1, 2}}));
  Write bias;
  bias.out(bias.op(OpCode::add, {bias.in("x", DType::f32, {3, 4, 5}), bias.in("b", DType::f32, {5})}));
  EXPECT_EQ(runs(bias), (Runs{{0, 1}, {2}}));
  Write row;
  row.out(row.op(OpCode::add, {row.in("x", DType::f32, {3, 4, 5}), row.in("b", DType::f32, {3, 1, 1})}));
  EXPECT_EQ(runs(row), (Runs{{0}, {1, 2}}));
  Write turned;
  turned.out(turned.op(OpCode::exp, {turned.op(OpCode::transpose, {turned.in("x", DType::f32, {3, 4, 5})},
                                               {{AttrKey::perm, ints({2, 0, 1})}})}));
  EXPECT_EQ(runs(turned), (Runs{{0}, {1, 2}}));
  Write ones;
  ones.out(ones.op(OpCode::exp, {ones.in("x", DType::f32, {1, 4, 1, 5, 1})}));
  EXPECT_EQ(runs(ones), (Runs{{1, 3}}));
  Write counted;  // the index along one axis keeps it apart
  const auto i = counted.op(OpCode::iota, {},
                            {{AttrKey::shape, Shape{3, 4}}, {AttrKey::axis, one(1)}, {AttrKey::dtype, DType::f32}});
  counted.out(counted.op(OpCode::add, {counted.in("x", DType::f32, {3, 4}), i}));
  EXPECT_EQ(runs(counted), (Runs{{0}, {1}}));
  Write joined;  // a guard, too
  const auto a = joined.in("a", DType::f32, {3, 4}), b = joined.in("b", DType::f32, {3, 4});
  joined.out(joined.op(OpCode::concat, {a, b}, {{AttrKey::axis, one(1)}}));
  EXPECT_EQ(runs(joined), (Runs{{0}, {1}}));
  Write stacked;  // on the outermost axis nothing keeps the inner ones apart
  const auto c = stacked.in("a", DType::f32, {3, 4, 2}), d = stacked.in("b", DType::f32, {3, 4, 2});
  stacked.out(stacked.op(OpCode::concat, {c, d}, {{AttrKey::axis, one(0)}}));
  EXPECT_EQ(runs(stacked), (Runs{{0}, {1, 2}}));
}

TEST(Merge, SymbolicExtentsMergeLikeNumbers) {
  Write w;
  const auto n = *w.b.symbol("n"), m = *w.b.symbol("m");
  w.in("m", DType::f32, {m});
  w.out(w.op(OpCode::exp, {w.in("x", DType::f32, {n, m, 5})}));
  EXPECT_EQ(runs(w), (Runs{{0, 1, 2}}));
}

// The promise of Plan::merged, checked by numbers on random graphs.
TEST(Merge, ReplacedAxesGiveTheSameAddresses) {
  int merged = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const TileGraph g = RandomGraph(seed, false).build(10);
    for (size_t n = 0; n < g.nodes.size(); ++n) {
      const auto node = static_cast<int32_t>(n);
      const bool reduces = g.nodes[n].expr.reduction != tile::Reduction::none;
      const auto fused = tile::fuse(g, {node}, reduces ? node : -1, node, g.nodes[n].results);
      ASSERT_TRUE(fused.ok());
      const tile::TensorExpr& expr = fused->expr;
      const Accesses all = accesses(g, *fused);
      std::vector<int64_t> extent;
      for (const IntExpr& e : expr.axes) extent.push_back(*e.constant());
      for (const auto& run : merge_axes(expr, all, 0, static_cast<int32_t>(expr.axes.size()))) {
        if (run.size() < 2) continue;
        ++merged;
        std::mt19937 random(seed);
        for (int round = 0; round < 20; ++round) {
          std::vector<int64_t> at;
          bool none = false;
          for (const int64_t e : extent) {
            none = none || e == 0;
            at.push_back(e == 0 ? 0 : static_cast<int64_t>(random() % static_cast<uint64_t>(e)));
          }
          if (none) break;
          std::vector<int64_t> replaced = at;
          int64_t number = 0;
          for (const int32_t axis : run) {
            number = number * extent[static_cast<size_t>(axis)] + at[static_cast<size_t>(axis)];
            replaced[static_cast<size_t>(axis)] = 0;
          }
          replaced[static_cast<size_t>(run.back())] = number;
          for (const IntExpr& e : all.expressions) {
            const auto value = [&](const std::vector<int64_t>& axes) {
              return e.evaluate(
                  [&](Symbol s) -> std::optional<int64_t> { return axes[static_cast<size_t>(s - kAxisSymbols)]; });
            };
            EXPECT_EQ(value(at), value(replaced));
          }
        }
      }
    }
  }
  EXPECT_GT(merged, 100);
}

TEST(Merge, RowsOfABatchAreOneRun) {
  const Plan p = matmul({4, 16, 32}, {32, 48}, model("avx2"));
  ASSERT_EQ(p.merged.size(), 2u);
  EXPECT_EQ(p.merged[0], (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(p.merged[1], (std::vector<int32_t>{2}));
  const Plan batched = matmul({4, 16, 32}, {4, 32, 48}, model("avx2"), false);
  ASSERT_EQ(batched.merged.size(), 3u);
  EXPECT_EQ(batched.merged[0], (std::vector<int32_t>{0}));
  const Plan vector = matmul({32}, {32, 48}, model("avx2"));
  ASSERT_EQ(vector.merged.size(), 2u);
  EXPECT_TRUE(vector.merged[0].empty());
}

// ---- The list ----

TEST(Construct, KBestAreOrdered) {
  Write w;
  w.out(w.op(OpCode::matmul, {w.in("a", DType::f32, {256, 256}), w.weights({256, 256})}));
  const TileGraph g = w.tiles();
  const auto plans = construct(g, {0}, 0, 0, g.outputs, model("avx512"), 5);
  ASSERT_TRUE(plans.ok());
  EXPECT_EQ(plans->size(), 5u);
  for (size_t i = 0; i + 1 < plans->size(); ++i) EXPECT_LE((*plans)[i].wall, (*plans)[i + 1].wall);
  for (const Plan& p : *plans) EXPECT_FALSE(p.reason.empty());
  EXPECT_EQ(construct(g, {0}, 0, 0, g.outputs, model("avx512"), 1)->size(), 1u);
}

TEST(Construct, FasterDevicesPredictLess) {
  double before = 1;
  for (const char* name : {"sse2", "avx2"}) {
    const Plan p = matmul({256, 256}, {256, 256}, model(name));
    EXPECT_LT(p.seconds, before);
    before = p.seconds;
  }
}

TEST(Construct, SameInputSamePlan) {
  EXPECT_EQ(print(matmul({100, 64}, {64, 100}, model("avx512"))), print(matmul({100, 64}, {64, 100}, model("avx512"))));
}

TEST(Construct, HugeAndEmptyShapesPlan) {
  const int64_t huge = int64_t{1} << 31;
  Write w;
  w.out(w.op(OpCode::exp, {w.in("x", DType::f32, {huge, 64})}));
  w.out(w.op(OpCode::reduce_sum, {w.in("y", DType::f32, {huge, 64})}, {{AttrKey::axes, ints({1})}}));
  w.out(w.op(OpCode::matmul, {w.in("a", DType::f32, {huge, 64}), w.in("b", DType::f32, {64, 64})}));
  w.out(w.op(OpCode::exp, {w.in("z", DType::f32, {0, 64})}));
  w.out(w.op(OpCode::reduce_sum, {w.in("e", DType::f32, {4, 0})}, {{AttrKey::axes, ints({1})}}));
  w.out(w.op(OpCode::matmul, {w.in("k", DType::f32, {4, 0}), w.in("l", DType::f32, {0, 64})}));
  const TileGraph g = w.tiles();
  for (size_t n = 0; n < g.nodes.size(); ++n) {
    const auto node = static_cast<int32_t>(n);
    const bool reduces = g.nodes[n].expr.reduction != tile::Reduction::none;
    const auto plans = construct(g, {node}, reduces ? node : -1, node, g.nodes[n].results, model("avx2"), 1);
    ASSERT_TRUE(plans.ok()) << plans.status().message();
    EXPECT_TRUE(std::isfinite(plans->front().wall));
    EXPECT_GE(plans->front().tasks, 1);
  }
}

}  // namespace
}  // namespace quartet::roller
