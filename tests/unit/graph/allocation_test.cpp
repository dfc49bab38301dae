// Finishing a graph infers nothing again: what it allocates for an op does not grow with how deep the op's dims are.
#include "unit/counted_new.h"
#if QUARTET_COUNTS_NEW
#include <gtest/gtest.h>

#include "graph/builder.h"

namespace quartet::graph {
namespace {

// Six strided convolutions in a chain, then pointwise ops over what they give.
int64_t allocations_of_finish(int pointwise) {
  Builder b;
  const IntExpr height = *b.symbol("height"), width = *b.symbol("width");
  ValueId x =
      *b.input("x", {DType::f32, {1, 4, height * IntExpr(3) + IntExpr(200), width * IntExpr(3) + IntExpr(200)}});
  EXPECT_TRUE(b.input("sizes", {DType::f32, {height, width}}).ok());
  const ValueId filters = *b.input("filters", {DType::f32, {4, 4, 3, 3}});
  for (int i = 0; i < 6; ++i) {
    const auto y = b.one(OpCode::conv, {x, filters}, {{AttrKey::strides, std::vector<int64_t>{2, 2}}});
    EXPECT_TRUE(y.ok()) << y.status().message();
    x = *y;
  }
  for (int i = 0; i < pointwise; ++i) x = *b.one(OpCode::add, {x, x}, {});
  EXPECT_TRUE(b.output(x, "y").ok());
  const int64_t before = allocations.load();
  EXPECT_GT(before, 0);
  EXPECT_TRUE(b.finish().ok());
  return allocations.load() - before;
}

TEST(Allocation, FinishingAGraphInfersNothingAgain) {
  constexpr int kOps = 200;
  const int64_t none = allocations_of_finish(0), many = allocations_of_finish(kOps);
  EXPECT_LE(none, 100);
  EXPECT_LE(many - none, 4 * kOps);
}

}  // namespace
}  // namespace quartet::graph
#endif
