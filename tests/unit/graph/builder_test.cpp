#include "graph/builder.h"

#include "graph_testing.h"

namespace quartet::graph {
namespace {

TensorType f32(Shape shape) { return {DType::f32, std::move(shape)}; }

TEST(Builder, BuildsAGraph) {
  Builder b;
  const IntExpr n = *b.symbol("batch");
  const ValueId x = *b.input("x", f32({n, 64}));
  const std::vector<float> weights(640, 0.5f);
  const auto w = b.constant(*copy_constant(f32({10, 64}), {reinterpret_cast<const uint8_t*>(weights.data()), 2560}));
  ASSERT_TRUE(w.ok());
  const auto y = b.one(OpCode::matmul, {x, *w}, {{AttrKey::transpose_b, int64_t{1}}}, "fc1");
  ASSERT_TRUE(y.ok()) << y.status().message();
  const auto s = b.one(OpCode::softmax, {*y}, {{AttrKey::axis, int64_t{-1}}});
  ASSERT_TRUE(s.ok());
  ASSERT_TRUE(b.output(*s, "probabilities").ok());
  const auto graph = b.finish();
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(print(**graph), R"(dim batch
graph @main(%x: f32[batch, 64]) -> (f32[batch, 10]) {
  %1 = constant f32[10, 64] all 0.5
  %2 = matmul %x, %1 {transpose_b = 1} : f32[batch, 10] as "fc1"
  %3 = softmax %2 {axis = 1} : f32[batch, 10]
  return %3 as "probabilities"
}
)");
  EXPECT_EQ(b.input("z", f32({})).status().code(), Code::failed_precondition);
}

TEST(Builder, ErrorsNameTheOpAndLeaveTheBuilderUsable) {
  Builder b;
  const ValueId x = *b.input("x", f32({2, 128}));
  const ValueId w = *b.input("w", f32({64, 10}));
  const auto bad = b.one(OpCode::matmul, {x, w}, {}, "fc1");
  EXPECT_EQ(bad.status().message(), "op 0 'fc1' (matmul): K differs: 128 against 64");
  EXPECT_EQ(bad.status().error()->node, 0);
  EXPECT_FALSE(b.one(OpCode::neg, {99}).ok());
  EXPECT_FALSE(b.input("x", f32({})).ok());
  const auto y = b.one(OpCode::neg, {x});
  ASSERT_TRUE(y.ok());
  EXPECT_TRUE(b.output(*y, "y").ok());
  EXPECT_FALSE(b.output(*y, "y").ok());
  EXPECT_TRUE(b.output(x, "same as the input").ok());
  EXPECT_TRUE(b.finish().ok());
}

TEST(Builder, EqualConstantsAreOne) {
  Builder b;
  const ValueId one = *b.scalar(DType::f32, 1.0), again = *b.scalar(DType::f32, 1.0),
                other = *b.scalar(DType::f64, 1.0);
  ASSERT_TRUE(b.output(one, "a").ok() && b.output(again, "b").ok() && b.output(other, "c").ok());
  const auto graph = b.finish();
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ((*graph)->constants.size(), 2u);
}

TEST(Builder, RegionsSeeOuterValuesAndEnd) {
  Builder b;
  const ValueId p = *b.input("p", {DType::boolean, {}}), x = *b.input("x", f32({3}));
  const int32_t yes = *b.region_begin();
  const ValueId inner = *b.one(OpCode::neg, {x});
  ASSERT_TRUE(b.region_end(std::vector{inner}).ok());
  EXPECT_FALSE(b.one(OpCode::neg, {inner}).ok());
  const int32_t no = *b.region_begin();
  ASSERT_TRUE(b.region_end(std::vector{x}).ok());
  EXPECT_FALSE(b.op(OpCode::if_, {p}, {}, {{yes, yes}, -1, ""}).ok());
  const auto r = b.op(OpCode::if_, {p}, {}, {{yes, no}, -1, ""});
  ASSERT_TRUE(r.ok()) << r.status().message();
  ASSERT_TRUE(b.output((*r)[0], "r").ok());
  EXPECT_TRUE(b.finish().ok());
}

TEST(Builder, UnusedRegionsAndOpenEndsAreErrors) {
  Builder b;
  ASSERT_TRUE(b.region_begin().ok());
  ASSERT_TRUE(b.region_end({}).ok());
  EXPECT_EQ(b.finish().status().message(), "region 0 was given to no op");
  Builder c;
  ASSERT_TRUE(c.region_begin().ok());
  EXPECT_EQ(c.finish().status().code(), Code::failed_precondition);
}

TEST(Builder, RecursionNeedsDeclaredResults) {
  Builder b;
  const int32_t f = *b.function_begin("f");
  const ValueId a = *b.parameter(f32({2}));
  EXPECT_EQ(b.op(OpCode::call, {a}, {}, {{}, f, ""}).status().code(), Code::failed_precondition);
  ASSERT_TRUE(b.function_result(f32({2})).ok());
  const auto r = b.op(OpCode::call, {a}, {}, {{}, f, ""});
  ASSERT_TRUE(r.ok()) << r.status().message();
  ASSERT_TRUE(b.function_end(*r).ok());
  const ValueId x = *b.input("x", f32({2}));
  const auto y = b.op(OpCode::call, {x}, {}, {{}, f, ""});
  ASSERT_TRUE(y.ok());
  ASSERT_TRUE(b.output((*y)[0], "y").ok());
  EXPECT_TRUE(b.finish().ok());
}

TEST(Builder, SymbolsMustBeBoundByAnInput) {
  Builder b;
  const IntExpr n = *b.symbol("n");
  const auto d = b.one(OpCode::dims, {}, {{AttrKey::shape, Shape{n}}});
  ASSERT_TRUE(d.ok());
  ASSERT_TRUE(b.output(*d, "d").ok());
  EXPECT_EQ(b.finish().status().message(), "no input has the dim n alone, so nothing tells its value");
}

}  // namespace
}  // namespace quartet::graph
