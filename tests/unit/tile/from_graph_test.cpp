// Each op as a tensor expression, evaluated point by point, against loops written here.
#include <gtest/gtest.h>

#include <cstring>

#include "unit/tile/evaluate.h"
#include "unit/tile/random_graph.h"

namespace quartet::tile {
namespace {

using namespace test;

Cells counted(int64_t count, double from = 0) {
  Cells c(static_cast<size_t>(count));
  for (size_t i = 0; i < c.size(); ++i)
    c[i] = {from + static_cast<double>(i), static_cast<int64_t>(from) + static_cast<int64_t>(i)};
  return c;
}

// Runs a graph whose inputs are the numbers 0, 1, 2 ... and gives its outputs.
std::vector<Cells> run(Write& w, std::vector<int64_t> dims = {}) {
  const TileGraph tiles = w.tiles();
  GraphValues values{tiles, std::move(dims), std::vector<Cells>(tiles.tensors.size())};
  for (size_t t = 0; t < tiles.tensors.size(); ++t) {
    const Tensor& tensor = tiles.tensors[t];
    if (tensor.producer >= 0) continue;
    const auto count = tensor.type.elements().evaluate(
        [&](Symbol s) -> std::optional<int64_t> { return values.dims.at(static_cast<size_t>(s)); });
    values.cells[t] = counted(*count);
    if (tensor.scalar) {
      values.cells[t] = {
          {static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(*tensor.scalar))), *tensor.scalar}};
    }
  }
  values.run_nodes();
  std::vector<Cells> outputs;
  for (const TensorId t : tiles.outputs) outputs.push_back(values.cells[static_cast<size_t>(t)]);
  return outputs;
}

std::vector<double> floats(const Cells& cells) {
  std::vector<double> f;
  for (const Cell& c : cells) f.push_back(c.f);
  return f;
}
std::vector<int64_t> integers(const Cells& cells) {
  std::vector<int64_t> i;
  for (const Cell& c : cells) i.push_back(c.i);
  return i;
}
using F = std::vector<double>;
using I = std::vector<int64_t>;

TEST(FromGraph, ElementwiseBroadcasts) {
  Write w;
  const auto a = w.in("a", DType::f32, {2, 3}), b = w.in("b", DType::f32, {3}), c = w.in("c", DType::f32, {2, 1});
  w.out(w.op(OpCode::add, {a, b}));
  w.out(w.op(OpCode::sub, {a, c}));
  w.out(w.op(OpCode::mul, {a, a}));
  const auto out = run(w);
  EXPECT_EQ(floats(out[0]), (F{0, 2, 4, 3, 5, 7}));
  EXPECT_EQ(floats(out[1]), (F{0, 1, 2, 2, 3, 4}));
  EXPECT_EQ(floats(out[2]), (F{0, 1, 4, 9, 16, 25}));
}

TEST(FromGraph, TheSameOperandTwiceIsOneRead) {
  Write w;
  const auto a = w.in("a", DType::f32, {2, 3});
  w.out(w.op(OpCode::mul, {a, a}));
  EXPECT_EQ(w.tiles().nodes[0].expr.reads.size(), 1u);
}

TEST(FromGraph, IotaAndDims) {
  Write w;
  const auto n = *w.b.symbol("n");
  w.in("x", DType::f32, {n});
  w.out(w.op(OpCode::iota, {}, {{AttrKey::shape, Shape{2, 3}}, {AttrKey::axis, one(1)}, {AttrKey::dtype, DType::i32}}));
  w.out(w.op(OpCode::dims, {}, {{AttrKey::shape, Shape{n, n * IntExpr(2) + IntExpr(1), 7}}}));
  const auto out = run(w, {5});
  EXPECT_EQ(integers(out[0]), (I{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(integers(out[1]), (I{5, 11, 7}));
}

TEST(FromGraph, Views) {
  Write w;
  const auto a = w.in("a", DType::f32, {2, 3});
  w.out(w.op(OpCode::transpose, {a}, {{AttrKey::perm, ints({1, 0})}}));
  w.out(w.op(OpCode::reshape, {a}, {{AttrKey::shape, shape({3, 2})}}));
  w.out(w.op(OpCode::slice, {a},
             {{AttrKey::starts, shape({0, 2})}, {AttrKey::limits, shape({2, -1})}, {AttrKey::steps, ints({1, -2})}}));
  w.out(w.op(OpCode::expand,
             {w.op(OpCode::slice, {a}, {{AttrKey::starts, shape({1, 0})}, {AttrKey::limits, shape({2, 3})}})},
             {{AttrKey::shape, shape({2, 2, 3})}}));
  const auto out = run(w);
  EXPECT_EQ(floats(out[0]), (F{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(floats(out[1]), (F{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(floats(out[2]), (F{2, 0, 5, 3}));
  EXPECT_EQ(floats(out[3]), (F{3, 4, 5, 3, 4, 5, 3, 4, 5, 3, 4, 5}));
}

TEST(FromGraph, ReshapeKeepsWhatItLeavesAlone) {
  Write w;
  const auto n = *w.b.symbol("n");
  const auto a = w.in("a", DType::f32, {n, 6, 4});
  w.out(w.op(OpCode::reshape, {a}, {{AttrKey::shape, shape({n, 2, 12})}}));
  const TileGraph tiles = w.tiles();
  EXPECT_EQ(tiles.nodes[0].expr.reads[0].index[0], IntExpr::axis(0));
  // A join is plain algebra; only a split divides.
  Write joined;
  const auto m = *joined.b.symbol("n");
  joined.in("n", DType::f32, {m});
  joined.out(joined.op(OpCode::reshape, {joined.in("a", DType::f32, {m * IntExpr(6), 4})},
                       {{AttrKey::shape, shape({m, 6, 4})}}));
  const TileGraph flat = joined.tiles();
  EXPECT_EQ(flat.nodes[0].expr.reads[0].index[0].to_text(),
            (IntExpr::axis(0) * IntExpr(6) + IntExpr::axis(1)).to_text());
}

TEST(FromGraph, ConcatPadGather) {
  Write w;
  const auto a = w.in("a", DType::f32, {2, 2}), b = w.in("b", DType::f32, {2, 1}), x = w.in("i", DType::i64, {4});
  w.out(w.op(OpCode::concat, {a, b, a}, {{AttrKey::axis, one(1)}}));
  w.out(w.op(OpCode::pad, {a, w.number(9)}, {{AttrKey::low, shape({1, 0})}, {AttrKey::high, shape({0, 2})}}));
  const auto shifted = w.op(OpCode::sub, {x, w.op(OpCode::cast, {w.number(2)}, {{AttrKey::to, DType::i64}})});
  w.out(w.op(OpCode::gather, {a, shifted}, {{AttrKey::axis, one(0)}}));  // indices -2 -1 0 1
  w.out(w.op(OpCode::gather, {a, x}, {{AttrKey::axis, one(0)}}));        // 0 1 2 3: the last two are clamped
  const auto out = run(w);
  EXPECT_EQ(floats(out[0]), (F{0, 1, 0, 0, 1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(floats(out[1]), (F{9, 9, 9, 9, 0, 1, 9, 9, 2, 3, 9, 9}));
  EXPECT_EQ(floats(out[2]), (F{0, 1, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(floats(out[3]), (F{0, 1, 2, 3, 2, 3, 2, 3}));
}

TEST(FromGraph, ScatterAppliesUpdatesInOrder) {
  Write w;
  const auto a = w.in("a", DType::f32, {3, 2}), i = w.in("i", DType::i64, {4}), u = w.in("u", DType::f32, {4, 2});
  const auto two = w.op(OpCode::cast, {w.number(2)}, {{AttrKey::to, DType::i64}});
  const auto halves = w.op(OpCode::div, {i, two});  // rows 0 0 1 1
  const auto beyond = w.op(OpCode::sub, {i, w.op(OpCode::cast, {w.number(5)}, {{AttrKey::to, DType::i64}})});
  w.out(w.op(OpCode::scatter, {a, halves, u}));
  w.out(w.op(OpCode::scatter, {a, halves, u}, {{AttrKey::combine, one(1)}}));
  w.out(w.op(OpCode::scatter, {a, beyond, u}));  // -5 -4 -3 -2: the last two are rows 0 and 1
  w.out(w.op(OpCode::scatter, {a, halves, u}, {{AttrKey::combine, one(3)}}));
  const auto out = run(w);
  EXPECT_EQ(floats(out[0]), (F{2, 3, 6, 7, 4, 5}));
  EXPECT_EQ(floats(out[1]), (F{2, 5, 12, 15, 4, 5}));
  EXPECT_EQ(floats(out[2]), (F{4, 5, 6, 7, 4, 5}));
  EXPECT_EQ(floats(out[3]), (F{0, 1, 2, 3, 4, 5}));
}

TEST(FromGraph, Reductions) {
  Write w;
  const auto a = w.in("a", DType::f32, {2, 3, 2});
  w.out(w.op(OpCode::reduce_sum, {a}, {{AttrKey::axes, ints({1})}}));
  w.out(w.op(OpCode::reduce_max, {a}, {{AttrKey::axes, ints({0, 2})}, {AttrKey::keepdims, one(1)}}));
  w.out(w.op(OpCode::reduce_sum, {a}, {{AttrKey::axes, ints({})}}));
  w.out(w.op(OpCode::argmax, {w.op(OpCode::neg, {a})}, {{AttrKey::axis, one(1)}}));
  w.out(w.op(OpCode::argmin, {w.op(OpCode::neg, {a})}, {{AttrKey::axis, one(1)}, {AttrKey::keepdims, one(1)}}));
  const auto stats = w.b.op(OpCode::softmax_stats, {a}, {{AttrKey::axis, one(2)}});
  w.out((*stats)[0]), w.out((*stats)[1]);
  const auto out = run(w);
  EXPECT_EQ(floats(out[0]), (F{6, 9, 24, 27}));
  EXPECT_EQ(floats(out[1]), (F{7, 9, 11}));
  EXPECT_EQ(floats(out[2]), (F{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(integers(out[3]), (I{0, 0, 0, 0}));
  EXPECT_EQ(integers(out[4]), (I{2, 2, 2, 2}));
  EXPECT_EQ(floats(out[5]), (F{1, 3, 5, 7, 9, 11}));
  for (const Cell& c : out[6]) EXPECT_EQ(c.f, 1 + std::exp(-1.0));
}

TEST(FromGraph, ASumEndsWithPlusZero) {
  Write w;
  w.out(w.op(OpCode::reduce_sum, {w.in("a", DType::f32, {2, 3})}, {{AttrKey::axes, ints({1})}}));
  const TensorExpr expr = w.tiles().nodes[0].expr;
  const BodyNode& last = expr.body[static_cast<size_t>(expr.outputs[0])];
  EXPECT_EQ(last.op, ScalarOp::add);
  EXPECT_EQ(expr.body[static_cast<size_t>(last.operands[0])].kind, BodyNode::Kind::reduced);
  EXPECT_EQ(expr.body[static_cast<size_t>(last.operands[1])].bits, 0);
}

TEST(FromGraph, HalfPrecisionAccumulatesInF32) {
  Write w;
  w.out(w.op(OpCode::reduce_sum, {w.in("a", DType::f16, {2, 3})}, {{AttrKey::axes, ints({1})}}));
  w.out(w.op(OpCode::matmul, {w.in("b", DType::bf16, {2, 3}), w.in("c", DType::bf16, {3, 4})}));
  const TileGraph tiles = w.tiles();
  for (const Node& node : tiles.nodes) {
    EXPECT_EQ(node.expr.body[static_cast<size_t>(node.expr.element)].dtype, DType::f32);
    EXPECT_EQ(node.expr.body[static_cast<size_t>(node.expr.outputs[0])].op, ScalarOp::cast);
  }
}

// Every form of matmul against three loops.
TEST(FromGraph, Matmul) {
  struct Form {
    Shape a, b;
    int64_t ta, tb;
  };
  const Form forms[] = {{{2, 3}, {3, 4}, 0, 0},    {{3, 2}, {3, 4}, 1, 0},
                        {{2, 3}, {4, 3}, 0, 1},    {{3, 2}, {4, 3}, 1, 1},
                        {{3}, {3, 4}, 0, 0},       {{2, 3}, {3}, 0, 0},
                        {{3}, {3}, 0, 0},          {{5, 2, 3}, {3, 4}, 0, 0},
                        {{2, 3}, {5, 3, 4}, 0, 0}, {{5, 1, 2, 3}, {6, 3, 4}, 0, 0},
                        {{1, 3}, {3, 1}, 0, 0},    {{5, 2, 3}, {5, 4, 3}, 0, 1}};
  for (const Form& form : forms) {
    Write w;
    const auto a = w.in("a", DType::f32, form.a), b = w.in("b", DType::f32, form.b);
    w.out(w.op(OpCode::matmul, {a, b}, {{AttrKey::transpose_a, form.ta}, {AttrKey::transpose_b, form.tb}}));
    const auto number = [](const IntExpr& e) { return *e.constant(); };
    Shape sa = form.a, sb = form.b;
    if (sa.size() == 1) sa.insert(sa.begin(), 1);
    if (sb.size() == 1) sb.push_back(1);
    const size_t ra = sa.size(), rb = sb.size();
    const int64_t m = number(sa[ra - (form.ta ? 1 : 2)]), k = number(sa[ra - (form.ta ? 2 : 1)]);
    const int64_t n = number(sb[rb - (form.tb ? 2 : 1)]);
    const size_t batch_rank = std::max(ra, rb) - 2;
    std::vector<int64_t> extent(batch_rank), stride_a(batch_rank), stride_b(batch_rank);
    int64_t batches = 1, step_a = m * k, step_b = k * n;
    for (size_t d = batch_rank; d-- > 0;) {
      const auto dim = [&](const Shape& s) {
        const ptrdiff_t at = static_cast<ptrdiff_t>(s.size()) - 2 - static_cast<ptrdiff_t>(batch_rank - d);
        return at < 0 ? int64_t{1} : number(s[static_cast<size_t>(at)]);
      };
      extent[d] = std::max(dim(sa), dim(sb));
      stride_a[d] = dim(sa) == 1 ? 0 : step_a;
      stride_b[d] = dim(sb) == 1 ? 0 : step_b;
      step_a *= dim(sa), step_b *= dim(sb);
      batches *= extent[d];
    }
    F expected;
    for (int64_t batch = 0; batch < batches; ++batch) {
      int64_t rest = batch, base_a = 0, base_b = 0;
      for (size_t d = batch_rank; d-- > 0;) {
        base_a += rest % extent[d] * stride_a[d], base_b += rest % extent[d] * stride_b[d];
        rest /= extent[d];
      }
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          int64_t sum = 0;
          for (int64_t x = 0; x < k; ++x) {
            sum += (base_a + (form.ta ? x * m + i : i * k + x)) * (base_b + (form.tb ? j * k + x : x * n + j));
          }
          expected.push_back(static_cast<double>(sum));
        }
      }
    }
    EXPECT_EQ(floats(run(w)[0]), expected);
  }
}

TEST(FromGraph, MatmulRoles) {
  Write w;
  const auto x = w.in("x", DType::f32, {5, 7, 3}), k = w.weights({3, 4});
  w.out(w.op(OpCode::matmul, {x, k}));
  const TensorExpr expr = w.tiles().nodes[0].expr;
  EXPECT_EQ(expr.contraction.m, (std::vector<int32_t>{0, 1}));  // a batch axis that only A has is rows, too
  EXPECT_EQ(expr.contraction.n, (std::vector<int32_t>{2}));
  EXPECT_EQ(expr.contraction.k, (std::vector<int32_t>{3}));
  EXPECT_TRUE(expr.contraction.batch.empty());
}

TEST(FromGraph, OutputsAreTensorsOfTheirOwn) {
  Write w;
  const auto a = w.in("a", DType::f32, {2});
  const auto b = w.op(OpCode::neg, {a});
  w.out(a), w.out(b), w.out(b), w.out(w.number(3));
  const TileGraph tiles = w.tiles();
  ASSERT_EQ(tiles.outputs.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const Tensor& t = tiles.tensors[static_cast<size_t>(tiles.outputs[i])];
    EXPECT_GE(t.producer, 0);
    EXPECT_EQ(t.outputs, std::vector<int32_t>{static_cast<int32_t>(i)});
  }
}

TEST(FromGraph, SymbolicShapes) {
  Write w;
  const auto n = *w.b.symbol("n");
  const auto a = w.in("a", DType::f32, {n, 2}), b = w.in("b", DType::f32, {2, 3});
  w.out(w.op(OpCode::matmul, {a, b}));
  w.out(w.op(OpCode::reshape, {a}, {{AttrKey::shape, shape({n * IntExpr(2)})}}));
  w.out(w.op(OpCode::concat, {a, a}, {{AttrKey::axis, one(0)}}));
  const auto out = run(w, {2});
  EXPECT_EQ(floats(out[0]), (F{3, 4, 5, 9, 14, 19}));
  EXPECT_EQ(floats(out[1]), (F{0, 1, 2, 3}));
  EXPECT_EQ(floats(out[2]), (F{0, 1, 2, 3, 0, 1, 2, 3}));
}

TEST(FromGraph, CompositesAreRefusedByName) {
  Write w;
  w.out(w.op(OpCode::softmax, {w.in("a", DType::f32, {2, 3})}, {{AttrKey::axis, one(1)}}));
  const auto graph = w.finish();
  const auto tiles = from_graph(*graph);
  EXPECT_EQ(tiles.status().code(), Code::unsupported);
  EXPECT_NE(tiles.status().message().find("softmax"), std::string::npos) << tiles.status().message();
}

TEST(FromGraph, PrintIsStable) {
  Write w;
  const auto n = *w.b.symbol("n");
  const auto a = w.in("x", DType::f32, {n, 3});
  w.out(w.op(OpCode::reduce_sum, {w.op(OpCode::mul, {a, a})}, {{AttrKey::axes, ints({1})}}));
  EXPECT_EQ(print(w.tiles()),
            "input 0: t0 f32[n, 3] 'x'\n"
            "node 0 'mul'\n"
            "  axes i0 < n, i1 < 3\n"
            "  v0 = f32 read r0 t0[i0, i1]\n"
            "  v1 = f32 mul v0 v0\n"
            "  t1 f32[n, 3] = v1\n"
            "node 1 'reduce_sum'\n"
            "  axes i0 < n | i1 < 3\n"
            "  v0 = f32 read r0 t1[i0, i1]\n"
            "  v1 = f32 reduced 0\n"
            "  v2 = f32 constant 0\n"
            "  v3 = f32 add v1 v2\n"
            "  reduce sum of v0\n"
            "  t2 f32[n] = v3\n"
            "output 0: t2\n");
}

TEST(FromGraph, VerifierFindsDamage) {
  Write w;
  const auto a = w.in("x", DType::f32, {2, 3});
  w.out(w.op(OpCode::reduce_sum, {w.op(OpCode::mul, {a, a})}, {{AttrKey::axes, ints({1})}}));
  const TileGraph good = w.tiles();
  const auto broken = [&](auto&& damage) {
    TileGraph g = good;
    damage(g);
    return !verify(g).ok();
  };
  EXPECT_TRUE(broken([](TileGraph& g) { g.nodes[0].expr.body[1].operands = {0, 5}; }));
  EXPECT_TRUE(broken([](TileGraph& g) { g.nodes[0].expr.body[1].operands = {0}; }));
  EXPECT_TRUE(broken([](TileGraph& g) { g.nodes[0].expr.body[1].dtype = DType::i32; }));
  EXPECT_TRUE(broken([](TileGraph& g) { g.nodes[0].expr.reads[0].index[0] = IntExpr::axis(9); }));
  EXPECT_TRUE(broken([](TileGraph& g) { g.nodes[0].expr.reads[0].index.pop_back(); }));
  EXPECT_TRUE(broken([](TileGraph& g) { g.nodes[0].expr.is_view = true; }));
  EXPECT_TRUE(broken([](TileGraph& g) { g.nodes[1].expr.element = -1; }));
  EXPECT_TRUE(broken([](TileGraph& g) { g.nodes[1].expr.outputs[0] = 0; }));  // depends on the reduction axis
  EXPECT_TRUE(broken([](TileGraph& g) { g.nodes[1].expr.reduction = Reduction::none; }));
  EXPECT_TRUE(broken([](TileGraph& g) { std::swap(g.nodes[0], g.nodes[1]); }));
  EXPECT_TRUE(broken([](TileGraph& g) { g.tensors[1].producer = -1; }));
  EXPECT_FALSE(broken([](TileGraph&) {}));
}

}  // namespace
}  // namespace quartet::tile
