#include "rammer/waves.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "unit/tile/random_graph.h"

namespace quartet::rammer {
namespace {

using tile::TileGraph;
using namespace tile::test;

std::vector<welder::Group> groups_of(const TileGraph& g, bool fusion = true) {
  auto groups = welder::weld(g, *named_cpu("avx2"), {.fusion = fusion});
  EXPECT_TRUE(groups.ok()) << groups.status().message();
  return groups.ok() ? *groups : std::vector<welder::Group>();
}

TEST(Waves, IndependentGroupsShareAWave) {
  Write w;
  const auto x = w.in("x", DType::f32, {64, 64});
  const auto a = w.op(OpCode::matmul, {x, w.weights({64, 64}, 1)}),
             b = w.op(OpCode::matmul, {x, w.weights({64, 64}, 2)});
  w.out(w.op(OpCode::matmul, {a, b}));
  const TileGraph g = w.tiles();
  const auto groups = groups_of(g);
  const Schedule s = schedule(g, groups, *named_cpu("avx2"));
  EXPECT_EQ(s.wave, (std::vector<int32_t>{0, 0, 1}));
  EXPECT_EQ(s.after[2], (std::vector<int32_t>{0, 1}));
  EXPECT_TRUE(s.after[0].empty());
  EXPECT_EQ(s.order, (std::vector<int32_t>{0, 1, 2}));
}

TEST(Waves, ADependencyThatAnotherImpliesIsNotNamed) {
  Write w;
  const auto e = w.op(OpCode::exp, {w.in("x", DType::f32, {64, 64})});
  const auto s = w.op(OpCode::reduce_sum, {e}, {{AttrKey::axes, ints({1})}, {AttrKey::keepdims, one(1)}});
  w.out(w.op(OpCode::div, {e, s}));
  const TileGraph g = w.tiles();
  const Schedule made = schedule(g, groups_of(g, false), *named_cpu("avx2"));
  EXPECT_EQ(made.after[2], (std::vector<int32_t>{1}));  // the sum waits for exp already
}

TEST(Waves, AgainstReachabilityOnRandomGraphs) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const TileGraph g = RandomGraph(seed, seed % 2 == 0).build(30);
    const auto groups = groups_of(g, seed % 3 != 0);
    const Schedule s = schedule(g, groups, *named_cpu("avx2"));
    const size_t count = groups.size();
    // Direct needs, then everything behind them.
    std::vector<std::set<size_t>> direct(count), all(count), named(count);
    for (size_t i = 0; i < count; ++i) {
      for (const tile::TensorId t : groups[i].inputs) {
        for (size_t j = 0; j < i; ++j) {
          if (std::count(groups[j].outputs.begin(), groups[j].outputs.end(), t)) direct[i].insert(j);
        }
      }
      for (const size_t j : direct[i]) all[i].insert(j), all[i].insert(all[j].begin(), all[j].end());
      for (const int32_t j : s.after[i]) {
        named[i].insert(static_cast<size_t>(j));
        const auto& behind = named[static_cast<size_t>(j)];
        named[i].insert(behind.begin(), behind.end());
      }
      EXPECT_EQ(named[i], all[i]) << "what is named reaches what is needed";
      for (const int32_t j : s.after[i]) {  // nothing too much
        EXPECT_TRUE(direct[i].count(static_cast<size_t>(j)));
        for (const int32_t other : s.after[i])
          EXPECT_FALSE(all[static_cast<size_t>(other)].count(static_cast<size_t>(j)));
      }
      int32_t earliest = 0;
      for (const size_t j : direct[i]) earliest = std::max(earliest, s.wave[j] + 1);
      EXPECT_EQ(s.wave[i], earliest);
    }
    std::vector<int32_t> order = s.order;
    for (size_t i = 0; i + 1 < order.size(); ++i) {
      EXPECT_LE(s.wave[static_cast<size_t>(order[i])], s.wave[static_cast<size_t>(order[i + 1])]);
    }
    std::sort(order.begin(), order.end());
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(order[i], static_cast<int32_t>(i));
  }
}

TEST(Waves, NothingIsFine) {
  const Schedule s = schedule({}, {}, *named_cpu("sse2"));
  EXPECT_TRUE(s.order.empty());
}

}  // namespace
}  // namespace quartet::rammer
