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
    const auto fused = tile::fuse(graph, group.nodes, group.core, group.domain, group.outputs);
    ASSERT_TRUE(fused.ok()) << fused.status().message();
    EXPECT_EQ(fused->inputs, group.inputs);
    EXPECT_EQ(fused->outputs, group.outputs);
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
  for (const Group& group : groups) {
    const auto f = tile::fuse(graph, group.nodes, group.core, group.domain, group.outputs);
    ASSERT_TRUE(f.ok());
    auto made = fused.compute(f->expr, f->inputs);
    for (size_t o = 0; o < made.size(); ++o) fused.cells[static_cast<size_t>(f->outputs[o])] = std::move(made[o]);
  }
  for (const Group& group : groups) {
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

}  // namespace
}  // namespace quartet::welder
