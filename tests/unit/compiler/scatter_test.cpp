// Scatters through compiled code: the bits are the reference interpreter's, whatever the tiles and the number of vEUs.
#include <gtest/gtest.h>

#include <random>

#include "reference/graph_ops.h"
#include "unit/compiler/rig.h"

namespace quartet {
namespace {

using reference::Tensor;

struct Extents {
  int64_t rows, columns, updates;
};

class Scatter : public testing::Test {
 protected:
  Tensor random(DType dtype, std::vector<int64_t> dims, double low, double high) {
    Tensor tensor = Tensor::zeros(dtype, std::move(dims));
    std::uniform_real_distribution<double> uniform(low, high);
    for (int64_t& element : tensor.elements) element = reference::bits_of(dtype, uniform(random_));
    return tensor;
  }

  // Indices point outside, too, on both sides.
  std::vector<Tensor> inputs(DType dtype, const Extents& e) {
    const auto reach = static_cast<double>(e.rows) * 1.1 + 1;
    return {random(dtype, {e.rows, e.columns}, -4, 4), random(DType::i64, {e.updates}, -reach, reach),
            random(dtype, {e.updates, e.columns}, -4, 4)};
  }

  void check(const std::string& text, const std::vector<std::vector<Tensor>>& runs) {
    const auto graph = graph::parse(text);
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    for (const bool fusion : {true, false}) {
      compiler::Request request{*graph, {}, host_cpu()};
      ASSERT_TRUE(request.options.set(OptionId::verify_stages, true).ok());
      ASSERT_TRUE(request.options.set(OptionId::fusion, fusion).ok());
      const auto program = engine_->compile(request);
      ASSERT_TRUE(program.ok()) << program.status().message();
      for (const auto& inputs : runs) {
        const auto want = reference::interpret(**graph, inputs);
        ASSERT_TRUE(want.ok()) << want.status().message();
        for (const int vEUs : {1, 8}) {
          const auto got = test::run(*(*program)->program, inputs, {vEUs, vEUs > 1 ? pool_ : nullptr});
          ASSERT_TRUE(got.ok()) << got.status().message();
          ASSERT_EQ(got->size(), want->size());
          for (size_t o = 0; o < got->size(); ++o)
            EXPECT_TRUE((*got)[o].elements == (*want)[o].elements) << "output " << o << ", " << vEUs << " vEUs\n"
                                                                   << text;
        }
      }
    }
  }

  std::mt19937_64 random_{7};
  std::unique_ptr<compiler::Engine> engine_ = test::make_engine();
  std::shared_ptr<runtime::WorkerPool> pool_ =
      std::make_shared<runtime::WorkerPool>(runtime::WorkerPool::Options{.threads = 7, .jobs = nullptr});
};

std::string one_scatter(const std::string& type, const std::string& shape, int combine) {
  return "graph(%x: " + type + "[" + shape + "], %i: i64[k], %u: " + type + "[k, " + shape.substr(shape.find(' ') + 1) +
         "]) { %r = scatter %x, %i, %u {combine = " + std::to_string(combine) + "} return %r }";
}

TEST_F(Scatter, EveryCombinationOfSymbolicExtents) {
  const Extents extents[] = {{1, 1, 3}, {5, 3, 9}, {0, 4, 2}, {4, 0, 2}, {7, 33, 0}, {300, 1, 700}, {40, 70, 64}};
  for (int combine = 0; combine <= 4; ++combine) {
    for (const auto& [name, dtype] : {std::pair("f32", DType::f32), {"i16", DType::i16}, {"bf16", DType::bf16}}) {
      std::vector<std::vector<Tensor>> runs;
      for (const Extents& e : extents) runs.push_back(inputs(dtype, e));
      check(one_scatter(name, "r, c", combine), runs);
    }
  }
}

TEST_F(Scatter, TilesOfRowsAndOfColumns) {
  check(one_scatter("f32", "150000, 1", 1), {inputs(DType::f32, {150000, 1, 5000})});
  check(one_scatter("f32", "3, 100000", 1), {inputs(DType::f32, {3, 100000, 6})});
  check(one_scatter("f32", "1, 70000", 0), {inputs(DType::f32, {1, 70000, 3})});
  check(one_scatter("i32", "1, 1", 2), {inputs(DType::i32, {1, 1, 5})});
}

TEST_F(Scatter, WhatItReadsIsComputedInItsKernel) {
  check(R"(graph(%x: f32[r, 4], %i: i64[k], %u: f32[k, 4]) {
             %one = constant i64[] [1]
             %s = add %x, %x
             %j = sub %i, %one
             %v = mul %u, %u
             %r = scatter %s, %j, %v {combine = 1}
             %after = neg %r
             return %after, %s
           })",
        {inputs(DType::f32, {9, 4, 12}), inputs(DType::f32, {1, 4, 5})});
}

}  // namespace
}  // namespace quartet
