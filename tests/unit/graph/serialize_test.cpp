#include <random>

#include "graph/builder.h"
#include "graph_testing.h"

namespace quartet::graph {
namespace {

TEST(Serialize, KeepsEverything) {
  const auto graph = parsed(kRichText);
  ASSERT_TRUE(graph);
  const Bytes bytes = serialize(*graph);
  const auto again = deserialize(bytes);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(print(**again), print(*graph));
  EXPECT_EQ(canonical_bytes(**again), canonical_bytes(*graph));
  EXPECT_EQ(serialize(**again), bytes);
}

TEST(Serialize, EveryTruncationFails) {
  const Bytes bytes = serialize(*parsed(kRichText));
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(deserialize(std::span(bytes).first(size)).ok()) << size;
  Bytes longer = bytes;
  longer.push_back(0);
  EXPECT_FALSE(deserialize(longer).ok());
}

TEST(Serialize, FlippedBitsNeverCrash) {
  const Bytes bytes = serialize(*parsed(kRichText));
  std::mt19937 random(11);
  int refused = 0;
  for (int round = 0; round < 6000; ++round) {
    Bytes broken = bytes;
    for (int flips = 1 + static_cast<int>(random() % 3); flips > 0; --flips)
      broken[random() % broken.size()] ^= static_cast<uint8_t>(1u << random() % 8);
    const auto graph = deserialize(broken);
    if (!graph) {
      ++refused;
    } else {
      EXPECT_TRUE(verify(**graph).ok());
      print(**graph);
      canonical_bytes(**graph);
    }
  }
  EXPECT_GT(refused, 2000);
}

TEST(Canonical, NamesHintsAndOrderOfDeclarationDoNotCount) {
  const auto a = parsed("dim n\ndim m hint 4\ngraph(%x: f32[n, m]) { %y = neg %x as op return %y as out }");
  const auto b = parsed("dim q\ndim p\ngraph(%z: f32[p, q]) { %r = neg %z return %r as other }");
  ASSERT_TRUE(a && b);
  EXPECT_EQ(canonical_bytes(*a), canonical_bytes(*b));
}

TEST(Canonical, MeaningCounts) {
  const char* texts[] = {
      "graph(%x: f32[n, m]) { %y = neg %x return %y }",
      "graph(%x: f32[n, n]) { %y = neg %x return %y }",
      "graph(%x: f32[n, 2]) { %y = neg %x return %y }",
      "graph(%x: f64[n, m]) { %y = neg %x return %y }",
      "graph(%x: f32[n, m]) { %y = abs %x return %y }",
      "graph(%x: f32[n, m]) { %y = neg %x return %y, %x as z }",
      "dim n in [1, _]\ngraph(%x: f32[n, m]) { %y = neg %x return %y }",
      "graph(%x: f32[n, m]) { %c = constant f32[] [1] %y = add %x, %c return %y }",
      "graph(%x: f32[n, m]) { %c = constant f32[] [2] %y = add %x, %c return %y }",
      "graph(%x: f32[n, m]) { %y = reduce_sum %x {axes = [0]} return %y }",
      "graph(%x: f32[n, m]) { %y = reduce_sum %x {axes = [1]} return %y }",
      "graph(%x: f32[n, m]) { %y = reduce_sum %x {axes = [1], keepdims = 1} return %y }",
  };
  std::vector<Digest> digests;
  for (const char* text : texts) digests.push_back(digest(*parsed(text)));
  std::sort(digests.begin(), digests.end());
  EXPECT_EQ(std::unique(digests.begin(), digests.end()), digests.end());
}

TEST(Canonical, BuiltAndParsedGraphsAreTheSame) {
  Builder b;
  const IntExpr n = *b.symbol("n");
  const ValueId x = *b.input("in", {DType::f32, {n}});
  const ValueId y = *b.one(OpCode::relu, {x});
  ASSERT_TRUE(b.output(y, "out").ok());
  EXPECT_EQ(digest(**b.finish()), digest(*parsed("graph(%x: f32[k]) { %y = relu %x return %y }")));
}

}  // namespace
}  // namespace quartet::graph
