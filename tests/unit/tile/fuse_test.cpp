#include "tile/fuse.h"

#include <gtest/gtest.h>

#include "tile/analysis.h"
#include "tile/remap.h"
#include "unit/tile/random_graph.h"

namespace quartet::tile {
namespace {

using namespace test;

Result<Fused> all(const TileGraph& g, int32_t core = -1) {
  std::vector<int32_t> nodes;
  for (size_t n = 0; n < g.nodes.size(); ++n) nodes.push_back(static_cast<int32_t>(n));
  return fuse(g, nodes, core, core >= 0 ? core : nodes.back(), g.outputs);
}

TEST(Fuse, AChainBecomesOneBody) {
  Write w;
  const auto x = w.in("x", DType::f32, {4, 8});
  w.out(w.op(OpCode::tanh, {w.op(OpCode::add, {w.op(OpCode::mul, {x, x}), w.number(0.5)})}));
  const auto fused = all(w.tiles());
  ASSERT_TRUE(fused.ok());
  EXPECT_EQ(fused->inputs.size(), 1u);  // the scalar constant is part of the body
  EXPECT_EQ(fused->expr.reads.size(), 1u);
  EXPECT_EQ(fused->expr.body.size(), 5u);
}

TEST(Fuse, ViewsBecomeMaps) {
  Write w;
  const auto n = *w.b.symbol("n");
  const auto x = w.in("x", DType::f32, {n, 12});
  const auto v = w.op(OpCode::transpose, {w.op(OpCode::reshape, {x}, {{AttrKey::shape, shape({n, 3, 4})}})},
                      {{AttrKey::perm, ints({0, 2, 1})}});
  w.out(w.op(OpCode::neg, {v}));
  const TileGraph g = w.tiles();
  const auto fused = all(g);
  ASSERT_TRUE(fused.ok());
  ASSERT_EQ(fused->expr.reads.size(), 1u);
  const IntExpr offset = flat_offset(fused->expr, fused->expr.reads[0], g.tensors[0].type);
  EXPECT_EQ(offset, IntExpr::axis(0) * IntExpr(12) + IntExpr::axis(2) * IntExpr(4) + IntExpr::axis(1));
}

TEST(Fuse, AReshapeThereAndBackLeavesNoDivision) {
  Write w;
  const auto x = w.in("x", DType::f32, {5, 16, 96});
  const auto flat = w.op(OpCode::reshape, {x}, {{AttrKey::shape, shape({5, 1536})}});
  w.out(w.op(OpCode::neg, {flat}));
  w.out(w.op(OpCode::neg, {w.op(OpCode::reshape, {flat}, {{AttrKey::shape, shape({5, 16, 96})}})}));
  const TileGraph g = w.tiles();
  const auto down = fuse(g, {0, 1}, -1, 1, {g.outputs[0]});
  EXPECT_EQ(flat_offset(down->expr, down->expr.reads[0], g.tensors[0].type),
            IntExpr::axis(0) * IntExpr(1536) + IntExpr::axis(1));
  const auto back = fuse(g, {0, 2, 3}, -1, 3, {g.outputs[1]});
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->expr.reads[0].index, (std::vector<IntExpr>{IntExpr::axis(0), IntExpr::axis(1), IntExpr::axis(2)}));
}

TEST(Fuse, EpilogueAcrossAReshape) {
  Write w;
  const auto x = w.in("x", DType::f32, {2, 3, 8}), r = w.in("r", DType::f32, {2, 3, 4});
  const auto flat =
      w.op(OpCode::matmul, {w.op(OpCode::reshape, {x}, {{AttrKey::shape, shape({6, 8})}}), w.weights({8, 4})});
  w.out(w.op(OpCode::add, {w.op(OpCode::reshape, {flat}, {{AttrKey::shape, shape({2, 3, 4})}}), r}));
  const TileGraph g = w.tiles();
  const auto fused = all(g, 1);
  ASSERT_TRUE(fused.ok()) << fused.status().message();
  EXPECT_EQ(fused->expr.spatial, 2);
  for (const Read& read : fused->expr.reads) {  // the residual is at the domain's own linear place
    if (fused->inputs[static_cast<size_t>(read.operand)] != 1) continue;
    EXPECT_EQ(flat_offset(fused->expr, read, g.tensors[1].type), linear_point(fused->expr));
  }
}

TEST(Fuse, RolesFollowTheViews) {
  Write w;
  // B is one matrix expanded over the batch: the batch is rows of A.
  const auto a = w.in("a", DType::f32, {5, 7, 3}), b = w.in("b", DType::f32, {3, 4});
  const auto many = w.op(OpCode::expand, {b}, {{AttrKey::shape, shape({5, 3, 4})}});
  w.out(w.op(OpCode::matmul, {a, many}));
  const TileGraph g = w.tiles();
  EXPECT_EQ(g.nodes[1].expr.contraction.batch, (std::vector<int32_t>{0}));
  const auto fused = all(g, 1);
  EXPECT_EQ(fused->expr.contraction.m, (std::vector<int32_t>{0, 1}));
  EXPECT_TRUE(fused->expr.contraction.batch.empty());
}

TEST(Fuse, AConstantTimesAColumnRunsLanesAlongTheConstantsRows) {
  Write w;
  w.out(w.op(OpCode::matmul, {w.weights({64, 32}), w.in("x", DType::f32, {32, 1})}));
  const TileGraph g = w.tiles();
  const auto fused = all(g, 0);
  EXPECT_EQ(fused->expr.contraction.n, (std::vector<int32_t>{0}));
  const Read& b = fused->expr.reads[static_cast<size_t>(fused->expr.contraction.read_b)];
  EXPECT_GE(g.tensors[static_cast<size_t>(fused->inputs[static_cast<size_t>(b.operand)])].constant, 0);
}

// What is refused, and that the message says whom.
TEST(Fuse, Refusals) {
  const auto refused = [](Write& w, int32_t core, const char* words) {
    const auto fused = all(w.tiles(), core);
    ASSERT_FALSE(fused.ok());
    EXPECT_EQ(fused.status().code(), Code::failed_precondition);
    EXPECT_NE(fused.status().message().find(words), std::string::npos) << fused.status().message();
  };
  Write back;  // a broadcast of the result over what was reduced
  const auto x = back.in("x", DType::f32, {4, 8});
  back.out(back.op(OpCode::sub,
                   {x, back.op(OpCode::reduce_max, {x}, {{AttrKey::axes, ints({1})}, {AttrKey::keepdims, one(1)}})}));
  refused(back, 0, "'sub' has not the domain's elements");
  Write turned;  // the result at another point
  const auto t = turned.op(OpCode::reduce_sum, {turned.in("x", DType::f32, {4, 4, 8})}, {{AttrKey::axes, ints({2})}});
  turned.out(turned.op(OpCode::neg, {turned.op(OpCode::transpose, {t}, {{AttrKey::perm, ints({1, 0})}})}));
  refused(turned, 0, "at another point");
  Write computed;  // arithmetic before a contraction
  computed.out(computed.op(
      OpCode::matmul, {computed.op(OpCode::exp, {computed.in("a", DType::f32, {4, 8})}), computed.weights({8, 4})}));
  refused(computed, 1, "computed");
  Write guarded;  // arithmetic under a guard
  const auto e = guarded.op(OpCode::exp, {guarded.in("a", DType::f32, {4})});
  guarded.out(
      guarded.op(OpCode::pad, {e, guarded.number(0)}, {{AttrKey::low, shape({1})}, {AttrKey::high, shape({0})}}));
  refused(guarded, -1, "guard");
  Write indirect;
  const auto i = indirect.op(OpCode::exp, {indirect.in("a", DType::f32, {4})});
  indirect.out(indirect.op(OpCode::gather, {i, indirect.in("i", DType::i64, {9})}, {{AttrKey::axis, one(0)}}));
  refused(indirect, -1, "indices from a tensor");
  Write twice;
  const auto once = twice.op(OpCode::reduce_sum, {twice.in("x", DType::f32, {4, 8})}, {{AttrKey::axes, ints({1})}});
  twice.out(twice.op(OpCode::reduce_sum, {once}, {{AttrKey::axes, ints({0})}}));
  refused(twice, 1, "second reduction");
}

TEST(Fuse, GuardsPassThroughViews) {
  Write w;
  const auto a = w.in("a", DType::f32, {3, 2});
  const auto turned = w.op(OpCode::transpose, {a}, {{AttrKey::perm, ints({1, 0})}});
  w.out(w.op(OpCode::concat, {turned, turned}, {{AttrKey::axis, one(1)}}));
  const auto fused = all(w.tiles());
  ASSERT_TRUE(fused.ok()) << fused.status().message();
  EXPECT_EQ(fused->inputs, std::vector<TensorId>{0});
  for (const Read& read : fused->expr.reads) EXPECT_EQ(read.guards.size(), 1u);
}

TEST(Remap, PointsKeepTheirNumber) {
  std::mt19937 random(4);
  for (int round = 0; round < 300; ++round) {
    // Two shapes with the same elements: factors dealt out in order.
    std::vector<int64_t> factors(1 + random() % 5);
    for (int64_t& f : factors) f = static_cast<int64_t>(1 + random() % 4);
    const auto deal = [&] {
      std::vector<IntExpr> s = {IntExpr(1)};
      for (const int64_t f : factors) {
        if (random() % 2) s.push_back(1);
        s.back() *= IntExpr(f);
      }
      return s;
    };
    const std::vector<IntExpr> from = deal(), to = deal();
    std::vector<IntExpr> point;
    for (size_t d = 0; d < from.size(); ++d)
      point.push_back(from[d].is(1) ? IntExpr(0) : IntExpr::axis(static_cast<int>(d)));
    const IntExpr::RangeOf ranges = [&](Symbol s) -> IntExpr::Range {
      return {IntExpr(0), from[static_cast<size_t>(s - kAxisSymbols)] - IntExpr(1)};
    };
    const auto mapped = remap(point, from, to, ranges);
    ASSERT_TRUE(mapped.has_value());
    int64_t count = 1;
    for (const int64_t f : factors) count *= f;
    for (int64_t e = 0; e < count; ++e) {
      std::vector<int64_t> at(from.size());
      int64_t rest = e;
      for (size_t d = from.size(); d-- > 0;) at[d] = rest % *from[d].constant(), rest /= *from[d].constant();
      int64_t number = 0;
      for (size_t d = 0; d < to.size(); ++d) {
        const int64_t index =
            *(*mapped)[d].evaluate([&](Symbol s) { return std::optional(at[static_cast<size_t>(s - kAxisSymbols)]); });
        ASSERT_TRUE(0 <= index && index < *to[d].constant());
        number = number * *to[d].constant() + index;
      }
      ASSERT_EQ(number, e);
      const IntExpr linear = linearize(*mapped, to);
      EXPECT_EQ(linear.simplify(ranges), linearize(point, from).simplify(ranges)) << linear.to_text();
    }
  }
  const IntExpr::RangeOf none = [](Symbol) { return IntExpr::Range(); };
  EXPECT_FALSE(remap({IntExpr(0)}, {IntExpr(6)}, {IntExpr(5)}, none).has_value());
}

}  // namespace
}  // namespace quartet::tile
