#include <random>

#include "graph_testing.h"

namespace quartet::graph {
namespace {

TEST(Text, RichGraphRoundTrips) {
  const auto graph = parsed(kRichText);
  ASSERT_TRUE(graph);
  const std::string once = print(*graph);
  const auto again = parsed(once);
  ASSERT_TRUE(again);
  EXPECT_EQ(print(*again), once);
  EXPECT_EQ(canonical_bytes(*again), canonical_bytes(*graph));
  EXPECT_EQ(digest(*again), digest(*graph));
  ASSERT_EQ(again->main().output_names.size(), 3u);
  EXPECT_EQ(again->main().output_names[0], "{\"json\": 1}");
  EXPECT_EQ(again->main().output_names[1], "all");
  EXPECT_EQ(again->symbols[1].hint, 128);
}

TEST(Text, PrintsPleasantly) {
  const auto graph = parsed(R"(
    graph(%x: f32[batch, 2]) {
      %w = constant f32[2, 3] [1, 2, 3, 4.5, -5, 6e10]
      %y = matmul %x, %w
      return %y as logits
    })");
  ASSERT_TRUE(graph);
  EXPECT_EQ(print(*graph), R"(dim batch
graph @main(%x: f32[batch, 2]) -> (f32[batch, 3]) {
  %w = constant f32[2, 3] [1, 2, 3, 4.5, -5, 6e+10]
  %y = matmul %x, %w : f32[batch, 3]
  return %y as "logits"
}
)");
}

TEST(Text, DefaultsOfInputs) {
  const auto graph = parsed(R"(
    graph(%x: f32[n], %w: f32[n] = f32[2] [1, 2], %b: f32[4, 4] = f32[4, 4] all 0.5) {
      %y = mul %x, %w
      return %y as y
    })");
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->defaults, (std::vector<InputDefault>{{1, 0}, {2, 1}}));
  const std::string text = print(*graph);
  EXPECT_NE(text.find("%w: f32[n] = f32[2] [1, 2], %b: f32[4, 4] = f32[4, 4] all 0.5) ->"), std::string::npos) << text;
  const auto again = parsed(text);
  ASSERT_TRUE(again);
  EXPECT_EQ(canonical_bytes(*again), canonical_bytes(*graph));
  const auto read = deserialize(serialize(*graph));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ((*read)->defaults, graph->defaults);
  EXPECT_EQ(canonical_bytes(**read), canonical_bytes(*graph));
  const auto other = parsed("graph(%x: f32[n], %w: f32[n], %b: f32[4, 4]) { %y = mul %x, %w return %y as y }");
  ASSERT_TRUE(other);
  EXPECT_NE(canonical_bytes(*other), canonical_bytes(*graph));
  expect_parse_error("graph(%w: f32[2] = f32[3] [1, 2, 3]) { return %w }", "f32[3] for f32[2]");
  expect_parse_error("graph(%w: f32[n] = i32[3] [1, 2, 3]) { return %w }", "i32[3] for f32[n]");
  Graph damaged = *graph;
  damaged.defaults[1] = {1, 1};
  EXPECT_FALSE(verify(damaged));
  damaged.defaults = {{3, 0}};
  EXPECT_FALSE(verify(damaged));
  damaged.defaults = {{1, 9}};
  EXPECT_FALSE(verify(damaged));
}

TEST(Text, ConstantsByDigestComeFromTheSource) {
  const auto graph = parsed("graph(%x: f32[3]) { %c = constant f32[3] [1, 2, 3] %y = add %x, %c return %y }");
  ASSERT_TRUE(graph);
  const std::string text = print(*graph, 2);
  EXPECT_NE(text.find("digest"), std::string::npos) << text;
  EXPECT_EQ(parse(text).status().code(), Code::not_found);
  const auto again = parse(text, [&](const Digest& wanted) {
    return wanted == graph->constants[0].digest ? &graph->constants[0] : nullptr;
  });
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(digest(**again), digest(*graph));
}

TEST(Text, ElementsOfEveryTypeRoundTrip) {
  const auto graph = parsed(R"(graph() {
    %0 = constant f64[4] [0.1, -0, nan, -inf]
    %1 = constant f16[4] [0.1, 65504, 6e-8, bits(0xfe01)]
    %2 = constant bf16[3] [0.1, 3e38, nan]
    %3 = constant i64[2] [-9223372036854775808, 9223372036854775807]
    %4 = constant u64[2] [0, 18446744073709551615]
    %5 = constant i8[2] [-128, 127]
    %6 = constant u8[2] [0, 255]
    %7 = constant bool[2] [true, false]
    %8 = constant i16[0] []
    return %0 as a, %1 as b, %2 as c, %3 as d, %4 as e, %5 as f, %6 as g, %7 as h, %8 as i
  })");
  ASSERT_TRUE(graph);
  const auto again = parsed(print(*graph));
  ASSERT_TRUE(again);
  EXPECT_EQ(digest(*again), digest(*graph));
}

TEST(Text, ErrorsSayWhere) {
  expect_parse_error("graph(%x: f32[2]) {\n  %y = frob %x\n return %y }", "line 2, column 7: no op 'frob'");
  expect_parse_error("graph(%x: f32[2]) { %y = add %x, %z return %y }", "no value \"z\"");
  expect_parse_error("graph(%x: f32[2]) { %y = neg %x {axis = 1} return %y }", "neg has no attribute 'axis'");
  expect_parse_error("graph(%x: f32[2]) { %y = neg %x : f32[3] return %y }", "stated to be f32[3], is f32[2]");
  expect_parse_error("graph(%x: f32[2]) { %c = constant i8[1] [300] return %x }", "'300' is no i8");
  expect_parse_error("graph(%x: f32[2]) -> (f32[3]) { return %x }", "not those of the graph's head");
  expect_parse_error("graph(%x: f32[2]) { %x = neg %x return %x }", "a second value \"x\"");
  expect_parse_error("function @f(%x: f32[n]) -> (f32[n]) { return %x } graph() { return }", "no symbol 'n'");
  expect_parse_error("graph(%x: f32[2]) { return %x", "without its end");
  expect_parse_error("", "no graph");
}

TEST(Text, BrokenTextNeverCrashes) {
  std::mt19937 random(7);
  std::string text(kRichText);
  int survived = 0;
  for (int round = 0; round < 6000; ++round) {
    std::string broken = text;
    for (int edits = 1 + static_cast<int>(random() % 3); edits > 0 && !broken.empty(); --edits) {
      const size_t at = random() % broken.size();
      switch (random() % 4) {
        case 0:
          broken[at] = static_cast<char>(random());
          break;
        case 1:
          broken.erase(at, 1 + random() % 20);
          break;
        case 2:
          broken.insert(at, text.substr(random() % text.size(), random() % 30));
          break;
        default:
          broken.resize(at + 1);
          break;
      }
    }
    if (const auto graph = parse(broken)) {
      ++survived;
      EXPECT_TRUE(verify(**graph).ok());
    }
  }
  EXPECT_GT(survived, 50);
  EXPECT_LT(survived, 3500);
}

}  // namespace
}  // namespace quartet::graph
