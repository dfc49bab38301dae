// A context over a counting heap with a compiled perceptron, for tests that run programs.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "unit/capi/support.h"

namespace quartet::capi_test {

class RunTest : public testing::Test {
 protected:
  void SetUp() override {
    if (quartet_has_feature(QUARTET_FEATURE_CPU_COMPILER) == 0) GTEST_SKIP() << "this build has no code generator";
    const quartet_allocator allocator = heap_.allocator();
    quartet_context_desc desc = context_desc();
    desc.allocator = &allocator;
    context_ = make_context(&desc);
    program_ = compile(make_mlp(context_.get()));
  }
  Program compile(const Graph& graph, const quartet_options* options = nullptr) {
    quartet_program* raw = nullptr;
    EXPECT_TRUE(is_ok(quartet_compile(context_.get(), graph.get(), nullptr, options, &raw, error_.out()), error_));
    return Program(raw);
  }
  int32_t run(quartet_tensor in, quartet_tensor& out) {
    return quartet_run_sync(program_.get(), &in, 1, &out, 1, error_.out());
  }

  HostHeap heap_;
  Error error_;
  Context context_;
  Program program_;
  std::vector<float> rows_{1, 2, 3, 4, -1, 0, 1, 0};
  const std::vector<float> wanted_{0, 9.75F, 2, 0, 0, 2};
};

}  // namespace quartet::capi_test
