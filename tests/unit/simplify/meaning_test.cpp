// Simplified graphs compute what the graphs computed, by the reference interpreter.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "base/half.h"
#include "graph/graph.h"
#include "reference/generator.h"
#include "reference/graph_interpreter.h"
#include "simplify/simplify.h"

namespace quartet::simplify {
namespace {

using reference::Tensor;

double number(DType type, const uint8_t* at) {
  if (type == DType::f64) {
    double value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  if (type == DType::f32) {
    float value;
    std::memcpy(&value, at, sizeof value);
    return static_cast<double>(value);
  }
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return static_cast<double>(type == DType::f16 ? f16_to_f32(bits) : bf16_to_f32(bits));
}

// `tolerance` relative to the largest finite element; 0: the same bits, but any NaN is NaN.
void expect_equal(const Tensor& a, const Tensor& b, double tolerance, const std::string& what) {
  ASSERT_EQ(a.dtype, b.dtype) << what;
  ASSERT_EQ(a.dims, b.dims) << what;
  const Bytes x = a.to_memory(), y = b.to_memory();
  if (!is_float(a.dtype)) {
    EXPECT_EQ(x, y) << what;
    return;
  }
  const size_t size = size_of(a.dtype);
  double scale = 0;
  for (size_t i = 0; i < x.size(); i += size)
    if (const double value = std::fabs(number(a.dtype, x.data() + i)); std::isfinite(value))
      scale = std::max(scale, value);
  for (size_t i = 0; i < x.size(); i += size) {
    const double p = number(a.dtype, x.data() + i), q = number(b.dtype, y.data() + i);
    if (std::isnan(p) && std::isnan(q)) continue;
    if (tolerance == 0)
      EXPECT_EQ(std::memcmp(x.data() + i, y.data() + i, size), 0)
          << what << " element " << i / size << ": " << p << ", " << q;
    else if (p != q)
      EXPECT_LE(std::fabs(p - q), tolerance * scale) << what << " element " << i / size << ": " << p << ", " << q;
  }
}

void expect_same_meaning(const std::shared_ptr<const graph::Graph>& graph, const std::vector<Tensor>& inputs,
                         const std::vector<bool>& exact, double tolerance, const std::string& what) {
  const auto simple = simplify(graph);
  ASSERT_TRUE(simple.ok()) << what << simple.status().message() << "\n" << graph::print(*graph);
  const auto before = reference::interpret(*graph, inputs), after = reference::interpret(**simple, inputs);
  ASSERT_TRUE(before.ok()) << before.status().message();
  ASSERT_TRUE(after.ok()) << after.status().message() << graph::print(**simple);
  ASSERT_EQ(before->size(), after->size());
  for (size_t i = 0; i < before->size(); ++i)
    expect_equal((*before)[i], (*after)[i], exact[i] ? 0 : tolerance,
                 what + " output " + std::to_string(i) + "\n" + graph::print(*graph) + graph::print(**simple));
}

TEST(Meaning, RandomGraphs) {
  reference::GeneratorOptions options;
  options.max_ops = 24;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const auto random = reference::random_graph(seed, options);
    ASSERT_TRUE(random.ok()) << random.status().message();
    for (const auto& graph : {random->symbolic, random->fixed})
      expect_same_meaning(graph, random->inputs, random->exact, 0.02, "seed " + std::to_string(seed));
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Meaning, SimplifyingTwiceChangesNothing) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const auto random = reference::random_graph(seed);
    ASSERT_TRUE(random.ok());
    const auto once = simplify(random->symbolic);
    ASSERT_TRUE(once.ok());
    const auto twice = simplify(*once);
    ASSERT_TRUE(twice.ok());
    EXPECT_EQ(graph::print(**once), graph::print(**twice)) << "seed " << seed;
  }
}

TEST(Meaning, SpecialValuesSurvive) {
  const char* ops[] = {
      "%k = constant f32[] [0.5] %r = pow %x, %k",
      "%k = constant f32[] [2] %r = pow %x, %k",
      "%k = constant f32[] [-1] %r = pow %x, %k",
      "%k = constant f32[] [0] %r = pow %x, %k",
      "%r = relu %x",
      "%r = sign %x",
      "%r = reciprocal %x",
      "%k = constant f32[] [-0] %r = add %x, %k",
      "%k = constant f32[] [0] %r = add %x, %k",
      "%k = constant f32[] [8] %r = div %x, %k",
      "%k = constant f32[] [0.75] %r = floor_mod %x, %k",
      "%n = neg %x %k = constant f32[] [0] %r = sub %k, %n",
  };
  const std::vector<float> values = {0.0f, -0.0f, 1.5f, -1.5f, INFINITY, -INFINITY, NAN, 1e-40f, -1e-40f, 3e38f, 0.1f};
  const auto count = static_cast<int64_t>(values.size());
  for (const char* op : ops) {
    const auto graph = graph::parse(std::string("graph(%x: f32[n]) { ") + op + " return %r }");
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    expect_same_meaning(*graph, {Tensor::from_memory(DType::f32, {count}, values.data())}, {true}, 0, op);
  }
}

TEST(Meaning, EveryRowOfDecompositions) {
  const char* ops[] = {
      "%r = reduce_mean %x {axes = [1]}",
      "%r = reduce_mean %x {axes = [0, 1], keepdims = 1}",
      "%r = reduce_sum_square %x {axes = [0]}",
      "%r = reduce_l1 %x {axes = [1]}",
      "%r = reduce_l2 %x {axes = [0, 1]}",
      "%r = reduce_log_sum_exp %x {axes = [1]}",
      "%r = reduce_log_sum_exp %x {axes = [0], keepdims = 1}",
      "%a = abs %x %r = reduce_log_sum %a {axes = [1]}",
      "%r = softmax %x {axis = 1}",
      "%r = log_softmax %x {axis = 0}",
      "%r = argmax %x {axis = 1, select_last_index = 1}",
      "%r = argmin %x {axis = 0, select_last_index = 1, keepdims = 1}",
  };
  std::mt19937 random(3);
  std::vector<float> values(35);
  for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 9)) - 4.0f;
  for (const char* op : ops) {
    const auto graph = graph::parse(std::string("graph(%x: f32[n, 7]) { ") + op + " return %r }");
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    expect_same_meaning(*graph, {Tensor::from_memory(DType::f32, {5, 7}, values.data())}, {false}, 1e-6, op);
  }
}

}  // namespace
}  // namespace quartet::simplify
