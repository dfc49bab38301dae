// Softmax, normalisations and attention through compiled code: near the reference interpreter, and bit for bit the same
// whether a row stays in one kernel or not, whatever is symbolic and however many vEUs run it.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "graph/builder.h"
#include "unit/compiler/rig.h"

namespace quartet {
namespace {

using reference::Tensor;
using Dims = std::vector<int64_t>;

Tensor random_tensor(std::mt19937& random, Dims dims) {
  Tensor t = Tensor::zeros(DType::f32, std::move(dims));
  std::normal_distribution<float> normal(0, 2);
  for (int64_t& e : t.elements) e = static_cast<int64_t>(std::bit_cast<uint32_t>(normal(random)));
  return t;
}

double number(int64_t bits) { return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits))); }

void expect_near(const Tensor& got, const Tensor& want, const std::string& what) {
  ASSERT_EQ(got.dims, want.dims) << what;
  for (size_t i = 0; i < want.elements.size(); ++i) {
    const double a = number(got.elements[i]), b = number(want.elements[i]);
    if (std::isnan(a) && std::isnan(b)) continue;
    ASSERT_TRUE(std::fabs(a - b) <= 1e-4 + 1e-4 * std::fabs(b)) << what << " at " << i << ": " << a << ", not " << b;
  }
}

class Rows : public testing::Test {
 protected:
  // `text` has N where a size of the first input's first dim stands; it is a number or a symbol.
  void check(const std::string& text, int64_t n, const std::vector<Dims>& shapes) {
    std::mt19937 random(static_cast<uint32_t>(n));
    std::vector<Tensor> inputs;
    for (const Dims& dims : shapes) inputs.push_back(random_tensor(random, dims));
    check(text, n, inputs);
  }

  void check(const std::string& text, int64_t n, const std::vector<Tensor>& inputs) {
    std::vector<Tensor> first;
    for (const std::string& size : {std::to_string(n), std::string("n")}) {
      std::string with = text;
      for (size_t at = with.find('N'); at != std::string::npos; at = with.find('N', at)) with.replace(at, 1, size);
      const auto graph = graph::parse(with);
      ASSERT_TRUE(graph.ok()) << graph.status().message();
      const auto want = reference::interpret(**graph, inputs);
      ASSERT_TRUE(want.ok()) << want.status().message();
      for (const bool fusion : {true, false}) {
        const std::string what = with + (fusion ? " fused" : " apart");
        compiler::Request request{*graph, {}, host_cpu()};
        ASSERT_TRUE(request.options.set(OptionId::fusion, fusion).ok());
        const auto program = engine_->compile(request);
        ASSERT_TRUE(program.ok()) << what << program.status().message();
        for (const int vEUs : {1, 3}) {
          const auto got = test::run(*(*program)->program, inputs, {vEUs, vEUs > 1 ? pool_ : nullptr});
          ASSERT_TRUE(got.ok()) << what << got.status().message();
          if (first.empty()) first = *got;
          for (size_t o = 0; o < first.size(); ++o) {
            expect_near((*got)[o], (*want)[o], what);
            expect_same((*got)[o], first[o], what);
          }
        }
      }
    }
  }

  static void expect_same(const Tensor& a, const Tensor& b, const std::string& what) {
    ASSERT_EQ(a.elements.size(), b.elements.size()) << what;
    for (size_t i = 0; i < a.elements.size(); ++i)
      ASSERT_TRUE(a.elements[i] == b.elements[i] ||
                  (std::isnan(number(a.elements[i])) && std::isnan(number(b.elements[i]))))
          << what << " at " << i;
  }

  std::unique_ptr<compiler::Engine> engine_ = test::make_engine();
  std::shared_ptr<runtime::WorkerPool> pool_ =
      std::make_shared<runtime::WorkerPool>(runtime::WorkerPool::Options{.threads = 2, .jobs = nullptr});
};

TEST_F(Rows, Softmax) {
  for (const int64_t n : {1, 3, 64, 101})
    for (const int64_t length : {1, 7, 64, 1000, 4096}) {
      const std::string type = "f32[N, " + std::to_string(length) + "]";
      check("graph(%x: " + type + ") { %y = softmax %x {axis = 1} return %y }", n, {{n, length}});
      check("graph(%x: " + type + ") { %y = log_softmax %x {axis = 1} return %y }", n, {{n, length}});
      if (HasFailure()) return;
    }
}

// Beyond a block the statistics merge blocks; both forms hold the same values where both exist.
TEST_F(Rows, LongRowsMergeBlocks) {
  check("graph(%x: f32[N, 9000]) { %y = softmax %x {axis = 1} return %y }", 3, {{3, 9000}});
  check("graph(%x: f32[3, N]) { %y = softmax %x {axis = 1} return %y }", 4095, {{3, 4095}});
  check("graph(%x: f32[3, N]) { %y = log_softmax %x {axis = 1} return %y }", 5000, {{3, 5000}});
}

TEST_F(Rows, SoftmaxAlongAnyAxis) {
  check("graph(%x: f32[N, 5, 6, 7]) { %y = softmax %x {axis = 1} return %y }", 4, {{4, 5, 6, 7}});
  check("graph(%x: f32[N, 5, 6, 7]) { %y = softmax %x {axis = 2} return %y }", 9, {{9, 5, 6, 7}});
  check("graph(%x: f32[N, 40]) { %y = softmax %x {axis = 0} return %y }", 30, {{30, 40}});
}

TEST_F(Rows, MaskedRows) {
  std::mt19937 random(1);
  Tensor x = random_tensor(random, {5, 20});
  const auto minus = static_cast<int64_t>(std::bit_cast<uint32_t>(-std::numeric_limits<float>::infinity()));
  for (size_t i = 20; i < 40; ++i) x.elements[i] = minus;  // a whole row
  for (size_t i = 45; i < 55; ++i) x.elements[i] = minus;  // a part of one
  check("graph(%x: f32[N, 20]) { %y = softmax %x {axis = 1} return %y }", 5, {x});
  check("graph(%x: f32[5, N]) { %y = softmax %x {axis = 1} return %y }", 20, {x});
}

TEST_F(Rows, LayerNorm) {
  for (const int64_t n : {1, 5, 130})
    for (const int64_t length : {3, 96, 768}) {
      const std::string l = std::to_string(length);
      check("graph(%x: f32[N, " + l + "], %r: f32[N, " + l + "], %g: f32[" + l + "], %b: f32[" + l + R"(]) {
        %a = add %x, %r
        %m = reduce_mean %a {axes = [1], keepdims = 1}
        %c = sub %a, %m
        %q = mul %c, %c
        %v = reduce_mean %q {axes = [1], keepdims = 1}
        %e = constant f32[] [1e-5]
        %w = add %v, %e
        %s = sqrt %w
        %d = div %c, %s
        %t = mul %d, %g
        %y = add %t, %b
        return %y, %a
      })",
            n, {{n, length}, {n, length}, {length}, {length}});
      if (HasFailure()) return;
    }
}

TEST_F(Rows, InstanceNormAndLength) {
  check(R"(graph(%x: f32[N, 6, 9, 10], %g: f32[6, 1, 1]) {
    %m = reduce_mean %x {axes = [2, 3], keepdims = 1}
    %c = sub %x, %m
    %q = mul %c, %c
    %v = reduce_mean %q {axes = [2, 3], keepdims = 1}
    %s = sqrt %v
    %d = div %c, %s
    %y = mul %d, %g
    %l = reduce_l2 %y {axes = [1, 2, 3], keepdims = 1}
    %z = div %y, %l
    return %z
  })",
        3, {{3, 6, 9, 10}, {6, 1, 1}});
}

// Scores, mask, softmax and the weighted sum, with more heads, rows and keys than tiles divide.
TEST_F(Rows, Attention) {
  struct Case {
    int64_t heads, rows, keys, depth;
  };
  for (const Case& c : {Case{8, 128, 128, 64}, {3, 50, 70, 16}, {1, 7, 130, 33}, {2, 200, 64, 8}, {5, 1, 40, 24}}) {
    const std::string rows = std::to_string(c.rows), keys = std::to_string(c.keys), depth = std::to_string(c.depth);
    const std::string text = "graph(%q: f32[N, " + rows + ", " + depth + "], %k: f32[N, " + keys + ", " + depth +
                             "], %v: f32[N, " + keys + ", " + depth + "], %m: f32[N, 1, " + keys + R"(]) {
      %s = matmul %q, %k {transpose_b = 1}
      %f = constant f32[] [0.125]
      %t = mul %s, %f
      %u = add %t, %m
      %p = softmax %u {axis = 2}
      %y = matmul %p, %v
      return %y
    })";
    check(text, c.heads,
          {{c.heads, c.rows, c.depth}, {c.heads, c.keys, c.depth}, {c.heads, c.keys, c.depth}, {c.heads, 1, c.keys}});
    if (HasFailure()) return;
  }
}

// A projection before and after a normalisation, rows cut differently by what stands beside them.
TEST_F(Rows, ProjectionsAroundANormalisation) {
  check(R"(graph(%x: f32[N, 48, 32], %w: f32[32, 40], %h: f32[N, 1, 40], %u: f32[40, 24]) {
    %a = matmul %x, %w
    %b = add %a, %h
    %m = reduce_mean %b {axes = [2], keepdims = 1}
    %c = sub %b, %m
    %q = mul %c, %c
    %v = reduce_mean %q {axes = [2], keepdims = 1}
    %e = constant f32[] [1e-5]
    %o = add %v, %e
    %s = sqrt %o
    %d = div %c, %s
    %y = matmul %d, %u
    return %y
  })",
        6, {{6, 48, 32}, {32, 40}, {6, 1, 40}, {40, 24}});
}

}  // namespace
}  // namespace quartet
