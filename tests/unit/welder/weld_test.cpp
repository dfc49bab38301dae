#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "roller/construct.h"
#include "tile/fuse.h"
#include "unit/tile/evaluate.h"
#include "unit/tile/random_graph.h"
#include "welder/group.h"

namespace quartet::welder {
namespace {

using tile::TileGraph;
using namespace tile::test;

CpuModel model(const char* name, int32_t cores = 4) {
  CpuModel m = *named_cpu(name);
  m.cores = cores;
  return m;
}

std::vector<Group> welded(const TileGraph& graph, const CpuModel& device = model("avx2"), bool fusion = true) {
  auto groups = weld(graph, device, {.fusion = fusion});
  EXPECT_TRUE(groups.ok()) << groups.status().message() << "\n" << tile::print(graph);
  return groups.ok() ? *groups : std::vector<Group>();
}

// Groups of phases taken apart.
std::vector<Group> phases_of(const std::vector<Group>& groups) {
  std::vector<Group> all;
  for (const Group& group : groups) {
    if (group.phases.empty()) all.push_back(group);
    all.insert(all.end(), group.phases.begin(), group.phases.end());
  }
  return all;
}

// A phase reads what is outside or what a phase before it made; what one leaves to another is held in scratch.
void check_phases(const Group& group, const std::set<tile::TensorId>& outside) {
  std::set<tile::TensorId> made, held;
  for (const auto& local : group.plan.locals) held.insert(local.tensor);
  for (const Group& phase : group.phases) {
    for (const tile::TensorId t : phase.inputs) {
      EXPECT_TRUE(held.count(t) ? made.count(t) : outside.count(t)) << "t" << t;
      EXPECT_EQ(std::count(group.inputs.begin(), group.inputs.end(), t), held.count(t) ? 0 : 1) << "t" << t;
    }
    made.insert(phase.outputs.begin(), phase.outputs.end());
    EXPECT_TRUE(std::includes(group.nodes.begin(), group.nodes.end(), phase.nodes.begin(), phase.nodes.end()));
  }
  if (group.phases.empty()) return;
  for (const tile::TensorId t : group.outputs) EXPECT_TRUE(made.count(t)) << "t" << t;
}

// What every later stage relies on.
void check(const TileGraph& graph, const std::vector<Group>& groups) {
  std::vector<int> homes(graph.nodes.size());
  std::set<tile::TensorId> made;
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    if (graph.tensors[t].producer < 0) made.insert(static_cast<tile::TensorId>(t));
  }
  for (const Group& group : groups) {
    EXPECT_TRUE(std::is_sorted(group.nodes.begin(), group.nodes.end()));
    for (const int32_t n : group.nodes) ++homes[static_cast<size_t>(n)];
    for (const tile::TensorId t : group.inputs) EXPECT_TRUE(made.count(t)) << "t" << t << " is read before it is made";
    EXPECT_FALSE(group.outputs.empty());
    for (const tile::TensorId t : group.outputs) EXPECT_TRUE(made.insert(t).second) << "t" << t << " is made twice";
    EXPECT_TRUE(std::count(group.nodes.begin(), group.nodes.end(), group.domain));
    if (group.core >= 0) {
      EXPECT_EQ(group.core, group.domain);
    }
    EXPECT_FALSE(group.reason.empty());
    EXPECT_GT(group.plan.wall, 0);
    EXPECT_EQ(group.phases.size(), group.plan.phases.size());
    for (const Group& phase : phases_of({group})) {
      const auto fused = tile::fuse(graph, phase.nodes, phase.core, phase.domain, phase.outputs);
      ASSERT_TRUE(fused.ok()) << fused.status().message();
      EXPECT_EQ(fused->inputs, phase.inputs);
      EXPECT_EQ(fused->outputs, phase.outputs);
    }
    check_phases(group, made);
  }
  for (size_t n = 0; n < homes.size(); ++n) {
    if (!graph.nodes[n].expr.is_view) {
      EXPECT_EQ(homes[n], 1) << "node " << n;
    }
  }
  for (const tile::TensorId t : graph.outputs) EXPECT_TRUE(made.count(t)) << "output t" << t;
}

// Groups compute what the nodes compute, each alone: exactly, since fusion only decides where values live.
void check_values(const TileGraph& graph, const std::vector<Group>& groups, const std::vector<int64_t>& dims) {
  GraphValues nodes{graph, dims, std::vector<Cells>(graph.tensors.size())};
  std::mt19937 random(3);
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    const tile::Tensor& tensor = graph.tensors[t];
    if (tensor.producer >= 0) continue;
    const int64_t count = *tensor.type.elements().evaluate(
        [&](Symbol s) -> std::optional<int64_t> { return dims.at(static_cast<size_t>(s)); });
    Cells cells(static_cast<size_t>(count));
    for (Cell& c : cells) c.f = static_cast<double>(static_cast<int>(random() % 65) - 32) / 32;
    if (tensor.scalar) cells[0].f = static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(*tensor.scalar)));
    nodes.cells[t] = std::move(cells);
  }
  GraphValues fused = nodes;
  nodes.run_nodes();
  for (const Group& group : phases_of(groups)) {
    const auto f = tile::fuse(graph, group.nodes, group.core, group.domain, group.outputs);
    ASSERT_TRUE(f.ok());
    auto made = fused.compute(f->expr, f->inputs);
    for (size_t o = 0; o < made.size(); ++o) fused.cells[static_cast<size_t>(f->outputs[o])] = std::move(made[o]);
  }
  for (const Group& group : phases_of(groups)) {
    for (const tile::TensorId t : group.outputs) {
      EXPECT_EQ(nodes.cells[static_cast<size_t>(t)].size(), fused.cells[static_cast<size_t>(t)].size());
      EXPECT_TRUE(nodes.cells[static_cast<size_t>(t)] == fused.cells[static_cast<size_t>(t)]) << "t" << t;
    }
  }
}

class RandomGraphs : public ::testing::TestWithParam<bool> {};

TEST_P(RandomGraphs, GroupsAreSoundAndCompute) {
  const bool symbolic = GetParam();
  for (uint32_t seed = 0; seed < 150; ++seed) {
    const TileGraph graph = RandomGraph(seed, symbolic).build(12);
    ASSERT_TRUE(tile::verify(graph).ok()) << tile::verify(graph).message();
    for (const bool fusion : {true, false}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + (fusion ? " fused" : " apart"));
      const auto groups = welded(graph, model(seed % 3 == 0 ? "sse2" : seed % 3 == 1 ? "avx2" : "avx512"), fusion);
      check(graph, groups);
      for (const int64_t n : {int64_t{3}, int64_t{1}, int64_t{0}}) {
        if (!symbolic && n != 3) continue;
        check_values(graph, groups, std::vector<int64_t>(graph.symbols.size(), n));
      }
      if (HasFailure()) {
        ADD_FAILURE() << tile::print(graph) << print(graph, groups);
        return;
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Shapes, RandomGraphs, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Symbolic" : "Static"; });

// Larger graphs: order and homes only.
TEST(LargeRandomGraphs, GroupsAreSound) {
  for (uint32_t seed = 0; seed < 6; ++seed) {
    const TileGraph graph = RandomGraph(seed + 7, seed % 2 == 0).build(300);
    SCOPED_TRACE("seed " + std::to_string(seed));
    check(graph, welded(graph));
  }
}

// ---- Decisions ----

std::vector<std::vector<int32_t>> nodes_of(const std::vector<Group>& groups) {
  std::vector<std::vector<int32_t>> all;
  for (const Group& g : groups) all.push_back(g.nodes);
  return all;
}
using Nodes = std::vector<std::vector<int32_t>>;

TileGraph perceptron(int64_t rows = 64) {
  Write w;
  auto h = w.in("x", DType::f32, {rows, 64});
  h = w.op(OpCode::max,
           {w.op(OpCode::add, {w.op(OpCode::matmul, {h, w.weights({64, 64})}), w.weights({64})}), w.number(0)});
  h = w.op(OpCode::tanh, {w.op(OpCode::add, {w.op(OpCode::matmul, {h, w.weights({64, 32})}), w.weights({32})})});
  w.out(h);
  return w.tiles();
}

TEST(Decisions, EpiloguesJoinContractions) {
  const TileGraph g = perceptron();
  EXPECT_EQ(nodes_of(welded(g)), (Nodes{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(nodes_of(welded(g, model("avx2"), false)), (Nodes{{0}, {1}, {2}, {3}, {4}, {5}}));
}

// Kernels do the remainder of floats by a loop, which a contraction's tile has no place for.
TEST(Decisions, FloatRemaindersStayOutOfContractions) {
  for (const DType type : {DType::f32, DType::f64}) {
    for (const OpCode code : {OpCode::rem, OpCode::div}) {
      Write w;
      const auto x = w.in("x", type, {64, 32}), y = w.in("y", type, {32, 64}), z = w.in("z", type, {64});
      w.out(w.op(code, {w.op(OpCode::matmul, {x, y}), z}));
      EXPECT_EQ(welded(w.tiles()).size(), code == OpCode::rem ? 2u : 1u) << dtype_name(type);
    }
  }
}

// A sine is a few hundred instructions: a long chain of them is several kernels, which are the same code.
TEST(Decisions, LongOperationsFillAKernelSooner) {
  for (const OpCode code : {OpCode::sin, OpCode::exp}) {
    Write w;
    auto x = w.in("x", DType::f32, {64});
    for (int i = 0; i < 100; ++i) x = w.op(code, {x});
    w.out(x);
    const auto groups = welded(w.tiles());
    EXPECT_EQ(groups.size() > 4, code == OpCode::sin) << groups.size();
  }
}

TEST(Decisions, ReasonsSayWhatHappened) {
  const auto groups = welded(perceptron());
  EXPECT_NE(groups[0].reason.find("'matmul' in 'add' saves"), std::string::npos) << groups[0].reason;
  EXPECT_NE(groups[1].reason.find("'max' apart: two reductions"), std::string::npos) << groups[1].reason;
  EXPECT_NE(welded(perceptron(), model("avx2"), false)[0].reason.find("fusion is off"), std::string::npos);
}

TEST(Decisions, PrologueAndEpilogueOfAReduction) {
  Write w;
  const auto x = w.in("x", DType::f32, {64, 256});
  const auto s =
      w.op(OpCode::reduce_sum, {w.op(OpCode::mul, {x, x})}, {{AttrKey::axes, ints({1})}, {AttrKey::keepdims, one(1)}});
  w.out(w.op(OpCode::sqrt, {w.op(OpCode::reshape, {s}, {{AttrKey::shape, shape({64})}})}));
  EXPECT_EQ(nodes_of(welded(w.tiles())), (Nodes{{0, 1, 2, 3}}));
}

TileGraph softmax(const IntExpr& rows, int64_t columns) {
  Write w;
  const auto x = w.in("x", DType::f32, {rows, columns});
  const auto stats = *w.b.op(OpCode::softmax_stats, {x}, {{AttrKey::axis, one(1)}});
  w.out(w.op(OpCode::div, {w.op(OpCode::exp, {w.op(OpCode::sub, {x, stats[0]})}), stats[1]}));
  return w.tiles();
}

TEST(Decisions, SoftmaxIsOneKernelOfTwoPhases) {
  const TileGraph g = softmax(64, 256);
  const auto groups = welded(g);
  ASSERT_EQ(nodes_of(groups), (Nodes{{0, 1, 2, 3}}));
  check(g, groups);
  EXPECT_EQ(nodes_of(groups[0].phases), (Nodes{{0}, {1, 2, 3}}));
  EXPECT_EQ(groups[0].plan.kind, roller::Plan::Kind::rows);
  EXPECT_EQ(groups[0].plan.locals.size(), 2u);  // a maximum and a sum a row
  EXPECT_EQ(groups[0].outputs, g.outputs);
  EXPECT_NE(groups[0].reason.find("row by row"), std::string::npos) << groups[0].reason;
  EXPECT_EQ(nodes_of(welded(g, model("avx2"), false)), (Nodes{{0}, {1}, {2}, {3}}));
}

TEST(Decisions, RowsOfAnyNumberShareAKernel) {
  Write w;
  const auto n = *w.b.symbol("n");
  const auto x = w.in("x", DType::f32, {n, 256});
  const auto stats = *w.b.op(OpCode::softmax_stats, {x}, {{AttrKey::axis, one(1)}});
  w.out(w.op(OpCode::div, {w.op(OpCode::exp, {w.op(OpCode::sub, {x, stats[0]})}), stats[1]}));
  const TileGraph g = w.tiles();
  EXPECT_EQ(nodes_of(welded(g)), (Nodes{{0, 1, 2, 3}}));
}

// A row that is walked twice must stay in the core's own cache in between.
TEST(Decisions, RowsThatDoNotFitStayApart) {
  const auto groups = welded(softmax(16, 1 << 20));
  ASSERT_EQ(nodes_of(groups), (Nodes{{0}, {1, 2, 3}}));
  EXPECT_NE(groups[1].reason.find("does not fit the core's own cache"), std::string::npos) << groups[1].reason;
}

// Mean, variance, and what they normalise: three walks of a row in one kernel.
TEST(Decisions, ANormalisationIsOneKernel) {
  Write w;
  const auto x = w.in("x", DType::f32, {64, 768});
  const auto sum = [&](ValueId v) {
    return w.op(OpCode::reduce_sum, {v}, {{AttrKey::axes, ints({1})}, {AttrKey::keepdims, one(1)}});
  };
  const auto centred = w.op(OpCode::sub, {x, w.op(OpCode::mul, {sum(x), w.weights({1})})});
  const auto variance = sum(w.op(OpCode::mul, {centred, centred}));
  w.out(w.op(OpCode::add,
             {w.op(OpCode::mul, {w.op(OpCode::div, {centred, w.op(OpCode::sqrt, {variance})}), w.weights({768})}),
              w.weights({768})}));
  const TileGraph g = w.tiles();
  const auto groups = welded(g);
  check(g, groups);
  check_values(g, groups, {});
  ASSERT_EQ(groups.size(), 1u) << print(g, groups);
  EXPECT_GE(groups[0].phases.size(), 3u);
}

// Rows along the first axis are no rows: what a phase reads must be its own.
TEST(Decisions, RowsMustBeOnesOwn) {
  Write w;
  const auto x = w.in("x", DType::f32, {64, 64});
  const auto s = w.op(OpCode::reduce_sum, {x}, {{AttrKey::axes, ints({1})}, {AttrKey::keepdims, one(1)}});
  w.out(w.op(OpCode::div, {x, w.op(OpCode::reshape, {s}, {{AttrKey::shape, shape({1, 64})}})}));
  const TileGraph g = w.tiles();
  const auto groups = welded(g);
  check(g, groups);
  check_values(g, groups, {});
  for (const Group& group : groups) EXPECT_TRUE(group.phases.empty() || group.plan.row_extents.empty());
}

// The square joins the reduction that reads it rather than the difference it comes from, which another reads as well.
TEST(Decisions, TheMostProfitableEdgeFirst) {
  Write w;
  const auto x = w.in("x", DType::f32, {512, 768}), m = w.in("m", DType::f32, {512, 1});
  const auto c = w.op(OpCode::sub, {x, m});
  const auto v =
      w.op(OpCode::reduce_sum, {w.op(OpCode::mul, {c, c})}, {{AttrKey::axes, ints({1})}, {AttrKey::keepdims, one(1)}});
  w.out(w.op(OpCode::div, {c, v}));
  const auto groups = welded(w.tiles());
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(nodes_of(groups[0].phases), (Nodes{{0}, {1, 2}, {3}}));
}

TEST(Decisions, SeveralOutputsOfOneTree) {
  Write w;
  const auto x = w.in("x", DType::f32, {64, 64});
  const auto e = w.op(OpCode::exp, {x});
  w.out(e), w.out(w.op(OpCode::neg, {e})), w.out(w.op(OpCode::tanh, {e}));
  const auto groups = welded(w.tiles());
  EXPECT_EQ(nodes_of(groups), (Nodes{{0, 1, 2}}));
  EXPECT_EQ(groups[0].outputs.size(), 3u);
}

TEST(Decisions, NoGroupStandsInItsOwnWay) {
  // exp -> sum -> div, and exp -> div: exp and div cannot be one while the sum stands between.
  Write w;
  // A row is too long to stay near.
  const auto e = w.op(OpCode::exp, {w.in("x", DType::f32, {64, 1 << 20})});
  const auto s = w.op(OpCode::reduce_sum, {e}, {{AttrKey::axes, ints({1})}, {AttrKey::keepdims, one(1)}});
  w.out(w.op(OpCode::div, {e, s}));
  const auto groups = welded(w.tiles());
  ASSERT_EQ(nodes_of(groups), (Nodes{{0}, {1}, {2}}));
  EXPECT_NE(groups[2].reason.find("another group stands between"), std::string::npos) << groups[2].reason;
}

TEST(Decisions, ViewsStandAloneOnlyAsOutputs) {
  Write w;
  const auto x = w.in("x", DType::f32, {16, 8});
  const auto t = w.op(OpCode::transpose, {x}, {{AttrKey::perm, ints({1, 0})}});
  w.out(w.op(OpCode::exp, {t}));
  w.out(w.op(OpCode::tanh,
             {w.op(OpCode::slice, {x}, {{AttrKey::starts, shape({0, 0})}, {AttrKey::limits, shape({4, 8})}})}));
  w.out(w.op(OpCode::transpose, {x}, {{AttrKey::perm, ints({1, 0})}}));
  const TileGraph g = w.tiles();
  for (const Group& group : welded(g)) {
    const bool copies = group.nodes.size() == 1 && g.nodes[static_cast<size_t>(group.nodes[0])].expr.is_view;
    EXPECT_EQ(copies, group.outputs[0] == g.outputs[2]);
  }
}

TEST(Decisions, ASharedViewInLongStepsIsWrittenOnce) {
  const auto count_copies = [](int readers) {
    Write w;
    const auto x = w.in("x", DType::f32, {128, 128});
    const auto t = w.op(OpCode::transpose, {x}, {{AttrKey::perm, ints({1, 0})}});
    for (int i = 0; i < readers; ++i) {  // reductions along the long step, which cannot join each other
      w.out(w.op(OpCode::reduce_sum, {w.op(OpCode::mul, {t, w.in("y" + std::to_string(i), DType::f32, {128, 128})})},
                 {{AttrKey::axes, ints({1})}}));
    }
    const TileGraph g = w.tiles();
    int copies = 0;
    for (const Group& group : phases_of(welded(g))) {
      copies += static_cast<int>(std::count(group.outputs.begin(), group.outputs.end(), g.nodes[0].results[0]));
    }
    return copies;
  };
  EXPECT_EQ(count_copies(1), 0);
  EXPECT_EQ(count_copies(4), 1);
}

TEST(Decisions, AViewNoPlanReadsThroughIsWritten) {
  Write w;
  const auto heads = *w.b.symbol("h");
  const auto x = w.in("x", DType::f32, {2, heads, 16, 8});
  const auto turned = w.op(OpCode::transpose, {x}, {{AttrKey::perm, ints({0, 2, 1, 3})}});
  const auto flat = w.op(OpCode::reshape, {turned}, {{AttrKey::shape, shape({2, 16, heads * IntExpr(8)})}});
  w.out(w.op(OpCode::matmul, {flat, w.in("y", DType::f32, {heads * IntExpr(8), 32})}));
  const TileGraph g = w.tiles();
  const auto groups = welded(g);
  check(g, groups);
  check_values(g, groups, {3});
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_NE(groups[0].reason.find("no plan reads through"), std::string::npos) << groups[0].reason;
}

TEST(Decisions, TheDeviceDecides) {
  // Under a broadcast, a sum computed again for every element costs less than a kernel of its own; a power costs more.
  const auto groups_with = [](OpCode code) {
    Write w;
    const auto x = w.in("x", DType::f32, {64, 16}), y = w.in("y", DType::f32, {64, 1});
    w.out(w.op(OpCode::mul, {x, w.op(code, {y, y})}));
    return welded(w.tiles()).size();
  };
  EXPECT_EQ(groups_with(OpCode::add), 1u);
  EXPECT_EQ(groups_with(OpCode::pow), 2u);
  // The same graph on devices of other classes gets other plans.
  const TileGraph g = perceptron(512);
  EXPECT_NE(welded(g, model("avx2"))[0].plan.columns, welded(g, model("avx512"))[0].plan.columns);
  EXPECT_LT(welded(g, model("avx2", 1))[0].plan.tasks, welded(g, model("avx2", 16))[0].plan.tasks);
}

TEST(Decisions, LongChainsOfViewsAreCut) {
  Write w;
  auto v = w.in("x", DType::f32, {4, 6, 8});
  for (int i = 0; i < 500; ++i) v = w.op(OpCode::transpose, {v}, {{AttrKey::perm, ints({1, 2, 0})}});
  w.out(w.op(OpCode::exp, {v}));
  const TileGraph g = w.tiles();
  const auto groups = welded(g);
  check(g, groups);
  EXPECT_LT(groups.size(), 40u);
}

TEST(Decisions, LongChainsOfArithmeticAreCut) {
  Write w;
  auto v = w.in("x", DType::f32, {64});
  for (int i = 0; i < 1000; ++i) v = w.op(i % 2 ? OpCode::tanh : OpCode::neg, {v});
  w.out(v);
  const TileGraph g = w.tiles();
  const auto groups = welded(g);
  check(g, groups);
  EXPECT_GE(groups.size(), 4u);
  EXPECT_LT(groups.size(), 20u);
}

TEST(Decisions, PrintIsReadable) {
  const TileGraph g = perceptron();
  const std::string text = print(g, welded(g));
  EXPECT_NE(text.find("group 0: 0:matmul* 1:add 2:max\n"), std::string::npos) << text;
  EXPECT_NE(text.find("contract runs {0} {1} tile "), std::string::npos) << text;
  EXPECT_EQ(text, print(g, welded(g)));
}

}  // namespace
}  // namespace quartet::welder
