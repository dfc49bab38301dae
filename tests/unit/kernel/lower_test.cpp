// Lowered kernels against the plain evaluation of the expressions they came from, bit for bit, for random expressions,
// plans and extents, static and symbolic.
#include <gtest/gtest.h>

#include <cstring>

#include "unit/kernel/fused_case.h"

namespace quartet::kernel {
namespace {

using roller::OperandForm;
using roller::Plan;

CpuModel device(Isa isa) { return named_cpu(isa_name(isa)).value(); }

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int64_t upto(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n + 1)); }
  bool chance(int64_t of) { return upto(of - 1) == 0; }
  template <class T>
  T pick(std::initializer_list<T> list) {
    return list.begin()[upto(static_cast<int64_t>(list.size()) - 1)];
  }

 private:
  std::mt19937_64 engine_;
};

Isa random_isa(Random& r) { return r.pick({Isa::sse2, Isa::avx2, Isa::avx512}); }

// Consecutive axes of extent other than 1, merged at random.
void random_runs(Random& r, const FusedCase& c, Plan& plan) {
  for (int32_t axis = 0; axis < c.fused.expr.spatial; ++axis) {
    if (c.fused.expr.axes[static_cast<size_t>(axis)].is(1)) continue;
    if (!plan.merged.empty() && r.chance(2))
      plan.merged.back().push_back(axis);
    else
      plan.merged.push_back({axis});
  }
  for (size_t i = 0; i < plan.merged.size(); ++i) plan.task_tile.push_back(r.pick<int64_t>({0, 1, 2, 3, 5, 8, 1000}));
  plan.vector_axis = static_cast<int32_t>(r.upto(static_cast<int64_t>(plan.merged.size()))) - 1;
}

void expect_equal(const FusedCase& c, const Plan& plan, Isa isa, uint64_t seed) {
  const auto group = lower(c.graph, c.fused, plan, device(isa));
  ASSERT_TRUE(group.ok()) << group.status().message();
  const Memory inputs = random_inputs(c, seed);
  const Memory expected = evaluate_plainly(c, inputs, isa);
  const auto found = evaluate_lowered(c, *group, inputs, isa);
  ASSERT_TRUE(found.ok()) << found.status().message();
  for (const auto& [tensor, bytes] : expected) {
    const auto& other = found->at(tensor);
    ASSERT_EQ(other.size(), bytes.size());
    const size_t size = size_of(c.graph.tensors[static_cast<size_t>(tensor)].type.dtype);
    for (size_t at = 0; at < bytes.size(); at += size)
      ASSERT_EQ(std::memcmp(&bytes[at], &other[at], size), 0)
          << "element " << at / size << " of tensor " << tensor << ", class " << isa_name(isa) << "\n"
          << print(group->main.kernel);
  }
}

// Calls `make` for static and for symbolic extents with the same seed; both must equal the plain evaluation, which does
// not know the difference.
template <class Make>
void static_and_symbolic(uint64_t seed, Make&& make) {
  for (const bool symbolic : {false, true}) {
    SCOPED_TRACE("seed " + std::to_string(seed) + (symbolic ? ", symbolic" : ", static"));
    Random r(seed);
    make(r, symbolic);
    if (testing::Test::HasFatalFailure()) return;
  }
}

int64_t random_extent(Random& r) { return r.chance(12) ? 0 : r.pick<int64_t>({1, 1, 2, 3, 4, 5, 7, 8, 9}); }

// ---- Maps ----

// An input of the domain's shape, permuted, broadcast, offset, strided, or with a guard.
int32_t random_read(Random& r, FusedCase& c, DType dtype) {
  const int32_t rank = c.fused.expr.spatial;
  std::vector<int32_t> order;
  for (int32_t i = 0; i < rank; ++i) order.insert(order.begin() + r.upto(static_cast<int64_t>(order.size())), i);
  std::vector<IntExpr> shape, index;
  std::vector<tile::Guard> guards;
  for (const int32_t axis : order) {
    const IntExpr extent = c.fused.expr.axes[static_cast<size_t>(axis)], i = IntExpr::axis(axis);
    switch (r.upto(8)) {
      case 0:  // broadcast
        shape.push_back(1), index.push_back(0);
        break;
      case 1:  // reversed
        shape.push_back(extent), index.push_back(extent - IntExpr(1) - i);
        break;
      case 2:  // a slice with a step
        shape.push_back(extent * IntExpr(2) + IntExpr(1)), index.push_back(i * IntExpr(2) + IntExpr(1));
        break;
      case 3:  // padding
        shape.push_back(extent), index.push_back(i - IntExpr(2));
        guards.push_back({index.back(), extent});
        break;
      default:
        shape.push_back(extent), index.push_back(i);
    }
  }
  const int32_t fill = guards.empty() ? -1 : c.constant(dtype, 3);
  return c.read(c.tensor(dtype, std::move(shape)), std::move(index), std::move(guards), fill);
}

FusedCase random_map(Random& r, bool symbolic) {
  FusedCase c;
  const int64_t rank = r.upto(4);
  for (int64_t i = 0; i < rank; ++i) c.fused.expr.axes.push_back(c.dim(random_extent(r), symbolic && r.chance(2)));
  c.fused.expr.spatial = static_cast<int32_t>(rank);
  const DType dtype = r.pick({DType::f32, DType::f32, DType::f16, DType::i32, DType::f64});
  const int32_t a = random_read(r, c, dtype), b = random_read(r, c, dtype);
  const int32_t sum = c.op(ScalarOp::add, dtype, {a, c.op(ScalarOp::mul, dtype, {b, c.constant(dtype, 3)})});
  c.output(sum);
  if (rank > 0 && r.chance(2)) {
    const int32_t position = c.index(IntExpr::axis(static_cast<int>(r.upto(rank - 1))) * IntExpr(3) - IntExpr(1));
    c.output(c.op(ScalarOp::sub, dtype, {c.cast(dtype, position), sum}));
  }
  if (r.chance(3)) c.output(c.op(ScalarOp::lt, DType::boolean, {a, b}));
  return c;
}

TEST(LowerMap, RandomExpressionsAndPlans) {
  for (uint64_t seed = 1; seed <= 300; ++seed)
    static_and_symbolic(seed, [&](Random& r, bool symbolic) {
      const FusedCase c = random_map(r, symbolic);
      Plan plan;
      random_runs(r, c, plan);
      expect_equal(c, plan, random_isa(r), seed);
    });
}

TEST(LowerMap, ConcatenationReadsEachPartWhereItLies) {
  static_and_symbolic(1, [](Random&, bool symbolic) {
    FusedCase c;
    const IntExpr rows = c.dim(3, symbolic), left = c.dim(4, symbolic), right = c.dim(5, symbolic);
    c.fused.expr.axes = {rows, left + right};
    c.fused.expr.spatial = 2;
    const IntExpr i = IntExpr::axis(0), j = IntExpr::axis(1);
    const int32_t second =
        c.read(c.tensor(DType::f32, {rows, right}), {i, j - left}, {{j - left, right}}, c.constant(DType::f32, 0));
    const int32_t first = c.read(c.tensor(DType::f32, {rows, left}), {i, j}, {{j, left}}, second);
    c.output(first);
    Plan plan;
    plan.merged = {{0}, {1}};
    plan.task_tile = {1, 4};
    plan.vector_axis = 1;
    expect_equal(c, plan, Isa::avx2, 3);
  });
}

TEST(LowerMap, IndicesFromATensor) {
  static_and_symbolic(1, [](Random&, bool symbolic) {
    FusedCase c;
    const IntExpr rows = c.dim(6, symbolic), columns = c.dim(7, symbolic);
    c.fused.expr.axes = {rows, columns};
    c.fused.expr.spatial = 2;
    const int32_t raw = c.cast(DType::i64, c.read(c.tensor(DType::i32, {rows}), {IntExpr::axis(0)}));
    const int32_t last = c.index(columns - IntExpr(1));
    const int32_t clamped =
        c.op(ScalarOp::max, DType::i64, {c.op(ScalarOp::min, DType::i64, {raw, last}), c.constant(DType::i64, 0)});
    const tile::TensorId table = c.tensor(DType::f32, {columns, columns});
    c.output(c.read(table, {IntExpr::symbol(value_symbol(clamped)), IntExpr::axis(1)}));
    Plan plan;
    plan.merged = {{0, 1}};
    plan.task_tile = {10};
    plan.vector_axis = 0;
    expect_equal(c, plan, Isa::avx512, 4);
  });
}

TEST(LowerMap, AMergedContiguousAccessHasUnitStride) {
  FusedCase c;
  const IntExpr n = c.dim(12, true);
  c.fused.expr.axes = {n, 4, 8};
  c.fused.expr.spatial = 3;
  const std::vector<IntExpr> point = {IntExpr::axis(0), IntExpr::axis(1), IntExpr::axis(2)};
  c.output(c.op(ScalarOp::neg, DType::f32, {c.read(c.tensor(DType::f32, {n, 4, 8}), point)}));
  Plan plan;
  plan.merged = {{0, 1, 2}};
  plan.task_tile = {0};
  plan.vector_axis = 0;
  const auto group = lower(c.graph, c.fused, plan, device(Isa::avx2));
  ASSERT_TRUE(group.ok());
  // load, neg, store, yield: the index is the loop's variable itself.
  const std::string text = print(group->main.kernel);
  EXPECT_NE(text.find("load f32 @0 (%"), std::string::npos);
  EXPECT_EQ(text.find("floor_div"), text.find("floor_mod"));
  for (const Statement& s : group->main.kernel.body.body)
    if (s.op == Op::loop) EXPECT_EQ(s.regions[0].body.size(), 4u) << text;
}

// ---- Reductions ----

FusedCase random_reduction(Random& r, bool symbolic) {
  FusedCase c;
  using tile::Reduction;
  const int64_t spatial = r.upto(2), reduced = 1 + r.upto(2);
  for (int64_t i = 0; i < spatial + reduced; ++i) {
    int64_t extent = random_extent(r);
    if (i >= spatial && r.chance(4)) extent = r.pick<int64_t>({33, 64, 129});
    c.fused.expr.axes.push_back(c.dim(extent, symbolic && r.chance(2)));
  }
  c.fused.expr.spatial = static_cast<int32_t>(spatial);
  tile::TensorExpr& e = c.fused.expr;
  e.reduction =
      r.pick({Reduction::sum, Reduction::sum, Reduction::product, Reduction::max, Reduction::min, Reduction::all,
              Reduction::any, Reduction::argmax, Reduction::argmin, Reduction::softmax_stats});
  const bool logical = e.reduction == Reduction::all || e.reduction == Reduction::any;
  const bool softmax = e.reduction == Reduction::softmax_stats;
  const DType type = logical   ? DType::boolean
                     : softmax ? DType::f32
                               : r.pick({DType::f32, DType::f16, DType::i32, DType::f64});
  // The operand's dims in any order of the axes.
  std::vector<int32_t> order;
  for (int32_t i = 0; i < spatial + reduced; ++i)
    order.insert(
        order.begin() + (r.chance(2) ? r.upto(static_cast<int64_t>(order.size())) : static_cast<int64_t>(order.size())),
        i);
  std::vector<IntExpr> shape, index;
  for (const int32_t axis : order) {
    shape.push_back(e.axes[static_cast<size_t>(axis)]);
    index.push_back(IntExpr::axis(axis));
  }
  int32_t element = c.read(c.tensor(type, shape), index);
  const DType accumulator = type == DType::f16 ? DType::f32 : type;
  if (!logical) element = c.op(ScalarOp::sub, type, {element, c.constant(type, 1)});
  e.element = c.cast(accumulator, element);
  const bool indexed = e.reduction == Reduction::argmax || e.reduction == Reduction::argmin;
  if (!indexed || r.chance(2)) {
    int32_t value = c.reduced(accumulator, 0);
    if (!logical) value = c.op(ScalarOp::add, accumulator, {value, c.constant(accumulator, 0)});
    c.output(c.cast(type, value));
  }
  if (indexed) c.output(c.reduced(DType::i64, 1));
  if (softmax) c.output(c.reduced(accumulator, 1));
  return c;
}

TEST(LowerReduce, RandomReductionsAndPlans) {
  for (uint64_t seed = 1; seed <= 150; ++seed)
    static_and_symbolic(seed, [&](Random& r, bool symbolic) {
      const FusedCase c = random_reduction(r, symbolic);
      Plan plan;
      plan.kind = Plan::Kind::reduce;
      random_runs(r, c, plan);
      expect_equal(c, plan, random_isa(r), seed);
    });
}

TEST(LowerReduce, LongRowsKeepTheirChunksAndBlocks) {
  for (const auto reduction : {tile::Reduction::sum, tile::Reduction::softmax_stats})
    for (const int64_t length : {511, 4096, 4097, 9000, 70000}) {
      if (reduction != tile::Reduction::sum && length > 10000) continue;
      static_and_symbolic(static_cast<uint64_t>(length), [&](Random& r, bool symbolic) {
        FusedCase c;
        const IntExpr n = c.dim(length, symbolic);
        c.fused.expr.axes = {2, n};
        c.fused.expr.spatial = 1;
        c.fused.expr.reduction = reduction;
        c.fused.expr.element = c.read(c.tensor(DType::f32, {2, n}), {IntExpr::axis(0), IntExpr::axis(1)});
        c.output(c.reduced(DType::f32, 0));
        if (reduction == tile::Reduction::softmax_stats) c.output(c.reduced(DType::f32, 1));
        Plan plan;
        plan.kind = Plan::Kind::reduce;
        plan.merged = {{0}};
        plan.task_tile = {1};
        plan.vector_axis = r.chance(2) ? 0 : -1;
        expect_equal(c, plan, Isa::avx512, 5);
      });
    }
}

TEST(LowerReduce, SoftmaxOfMaskedRowsIsNoNaN) {
  FusedCase c;
  c.fused.expr.axes = {1100};
  c.fused.expr.reduction = tile::Reduction::softmax_stats;
  c.fused.expr.element = c.read(c.tensor(DType::f32, {1100}), {IntExpr::axis(0)});
  c.output(c.reduced(DType::f32, 0));
  c.output(c.reduced(DType::f32, 1));
  Plan plan;
  plan.kind = Plan::Kind::reduce;
  const auto group = lower(c.graph, c.fused, plan, device(Isa::avx2));
  ASSERT_TRUE(group.ok());
  Memory inputs = random_inputs(c, 1);
  std::vector<float> row(1100, -HUGE_VALF);
  row[1050] = 2.0f, row[1051] = 2.0f;
  std::memcpy(inputs[0].data(), row.data(), 4400);
  const auto out = evaluate_lowered(c, *group, inputs, Isa::avx2);
  ASSERT_TRUE(out.ok()) << out.status().message();
  float values[2];
  std::memcpy(&values[0], out->at(1).data(), 4);
  std::memcpy(&values[1], out->at(2).data(), 4);
  EXPECT_EQ(values[0], 2.0f);
  EXPECT_EQ(values[1], 2.0f);
}

// ---- Contractions ----

struct Product {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  bool batched_b = true, transposed_a = false, transposed_b = false;
  DType type = DType::f32;
};

// out[b, m, n] = bias[n] + residual[m, n] * sum over k of a[b, m, k] * b[b, k, n]
FusedCase product_case(const Product& p, bool symbolic, Random& r) {
  FusedCase c;
  const IntExpr batch = c.dim(p.batch, symbolic && r.chance(2)), m = c.dim(p.m, symbolic && r.chance(2)),
                n = c.dim(p.n, symbolic && r.chance(2)), k = c.dim(p.k, symbolic && r.chance(4));
  tile::TensorExpr& e = c.fused.expr;
  e.axes = {batch, m, n, k};
  e.spatial = 3;
  const IntExpr bi = batch.is(1) ? IntExpr(0) : IntExpr::axis(0), mi = m.is(1) ? IntExpr(0) : IntExpr::axis(1),
                ni = n.is(1) ? IntExpr(0) : IntExpr::axis(2), ki = IntExpr::axis(3);
  std::vector<IntExpr> a_shape{batch, m, k}, a_index{bi, mi, ki}, b_shape{k, n}, b_index{ki, ni};
  if (p.transposed_a) std::swap(a_shape[1], a_shape[2]), std::swap(a_index[1], a_index[2]);
  if (p.transposed_b) std::swap(b_shape[0], b_shape[1]), std::swap(b_index[0], b_index[1]);
  if (p.batched_b) b_shape.insert(b_shape.begin(), batch), b_index.insert(b_index.begin(), bi);
  const int32_t a = c.read(c.tensor(p.type, a_shape), a_index), b = c.read(c.tensor(p.type, b_shape, 0), b_index);
  const DType accumulator = p.type == DType::f16 || p.type == DType::bf16 ? DType::f32 : p.type;
  e.reduction = tile::Reduction::contraction;
  e.contraction.read_a = 0, e.contraction.read_b = 1;
  e.contraction.k = {3};
  e.element = c.op(ScalarOp::mul, accumulator, {c.cast(accumulator, a), c.cast(accumulator, b)});
  const int32_t sum = c.cast(p.type, c.reduced(accumulator, 0));
  const int32_t bias = c.read(c.tensor(p.type, {n}), {ni}), residual = c.read(c.tensor(p.type, {m, n}), {mi, ni});
  c.output(c.op(ScalarOp::add, p.type, {bias, c.op(ScalarOp::mul, p.type, {residual, sum})}));
  return c;
}

Plan product_plan(Random& r, const FusedCase& c, const Product& p) {
  const auto& axes = c.fused.expr.axes;
  Plan plan;
  plan.kind = Plan::Kind::contract;
  if (!axes[0].is(1)) plan.merged.push_back({0});
  plan.merged.push_back(axes[1].is(1) ? std::vector<int32_t>{} : std::vector<int32_t>{1});
  plan.merged.push_back(axes[2].is(1) ? std::vector<int32_t>{} : std::vector<int32_t>{2});
  if (!axes[3].is(1)) plan.reduction = {{3}};
  plan.rows = r.pick({1, 2, 3, 4, 6, 8, 14});
  plan.columns = r.pick({4, 8, 16, 48});
  plan.unroll = r.pick({1, 2, 4});
  plan.task_m = r.pick<int64_t>({0, 1, 5, plan.rows, plan.rows * 2, 1000});
  plan.task_n = plan.columns * r.upto(3);
  const bool static_k = axes[3].is_constant(), static_m = axes[1].is_constant() || plan.task_m > 0;
  if (static_k && static_m && r.chance(2)) plan.a = OperandForm::packed;
  plan.b = r.pick({OperandForm::prepared, OperandForm::packed});
  if (!p.transposed_b && r.chance(2)) plan.b = OperandForm::in_place;
  return plan;
}

Plan chain_plan(Random& r, const FusedCase& c) {
  const auto& axes = c.fused.expr.axes;
  Plan plan;
  plan.kind = Plan::Kind::chain;
  for (int32_t axis = 0; axis < 3; ++axis)
    if (!axes[static_cast<size_t>(axis)].is(1)) plan.merged.push_back({axis});
  if (!axes[3].is(1)) plan.reduction = {{3}};
  for (size_t i = 0; i < plan.merged.size(); ++i) plan.task_tile.push_back(r.pick<int64_t>({0, 1, 5, 16}));
  const auto runs = static_cast<int64_t>(plan.merged.size());
  plan.vector_axis = static_cast<int32_t>(r.upto(runs)) - 1;
  plan.row_axis = static_cast<int32_t>(r.upto(runs)) - 1;
  plan.rows = r.pick({1, 2, 3, 6});
  return plan;
}

TEST(LowerChain, RandomProductsAndPlans) {
  for (uint64_t seed = 1; seed <= 200; ++seed)
    static_and_symbolic(seed, [&](Random& r, bool symbolic) {
      Product p;
      p.batch = r.pick<int64_t>({1, 2, 3});
      p.m = r.chance(15) ? 0 : r.pick<int64_t>({1, 2, 3, 5, 8});
      p.n = r.chance(15) ? 0 : r.pick<int64_t>({1, 3, 17, 31});
      p.k = r.chance(15) ? 0 : r.pick<int64_t>({1, 2, 3, 7, 20});
      p.batched_b = r.chance(2), p.transposed_a = r.chance(2), p.transposed_b = r.chance(2);
      p.type = r.pick({DType::f32, DType::f32, DType::f16, DType::f64, DType::i32});
      const FusedCase c = product_case(p, symbolic, r);
      expect_equal(c, chain_plan(r, c), random_isa(r), seed);
    });
}

TEST(LowerContract, RandomProductsAndPlans) {
  for (uint64_t seed = 1; seed <= 400; ++seed)
    static_and_symbolic(seed, [&](Random& r, bool symbolic) {
      Product p;
      p.batch = r.pick<int64_t>({1, 1, 2, 3});
      p.m = r.chance(15) ? 0 : r.pick<int64_t>({1, 2, 3, 5, 8, 13, 16, 29});
      p.n = r.chance(15) ? 0 : r.pick<int64_t>({1, 3, 4, 8, 17, 31, 48, 50});
      p.k = r.chance(15) ? 0 : r.pick<int64_t>({1, 2, 3, 7, 16});
      p.batched_b = r.chance(2), p.transposed_a = r.chance(2), p.transposed_b = r.chance(2);
      p.type = r.pick({DType::f32, DType::f32, DType::f16, DType::bf16, DType::f64, DType::i32});
      const FusedCase c = product_case(p, symbolic, r);
      expect_equal(c, product_plan(r, c, p), random_isa(r), seed);
    });
}

TEST(LowerContract, SeveralReducedAxesAndMergedRows) {
  // out[x, y, n] = sum over (p, q) of a[x, y, p, q] * b[p, q, n]; rows are x and y together, p and q are or are not.
  using Runs = std::vector<std::vector<int32_t>>;
  for (const Runs& reduction : {Runs{{3, 4}}, Runs{{3}, {4}}})
    for (const auto a_form : {OperandForm::in_place, OperandForm::packed})
      for (const auto b_form : {OperandForm::in_place, OperandForm::packed})
        static_and_symbolic(9, [&](Random&, bool symbolic) {
          FusedCase c;
          const IntExpr x = c.dim(3, symbolic), y = c.dim(5, symbolic);
          tile::TensorExpr& e = c.fused.expr;
          e.axes = {x, y, 20, 2, 3};
          e.spatial = 3;
          const auto i = [](int axis) { return IntExpr::axis(axis); };
          const int32_t a = c.read(c.tensor(DType::f32, {x, y, 2, 3}), {i(0), i(1), i(3), i(4)});
          const int32_t b = c.read(c.tensor(DType::f32, {2, 3, 20}), {i(3), i(4), i(2)});
          e.reduction = tile::Reduction::contraction;
          e.contraction.read_a = 0, e.contraction.read_b = 1;
          e.element = c.op(ScalarOp::mul, DType::f32, {a, b});
          c.output(c.op(ScalarOp::max, DType::f32, {c.reduced(DType::f32, 0), c.constant(DType::f32, 0)}));
          Plan plan;
          plan.kind = Plan::Kind::contract;
          plan.merged = {{0, 1}, {2}};
          plan.rows = 4, plan.columns = 8, plan.task_m = 7, plan.task_n = 16;
          plan.reduction = reduction;
          plan.a = a_form, plan.b = b_form;
          expect_equal(c, plan, Isa::avx2, 6);
        });
}

TEST(LowerContract, RefusesAPlanThatReadsColumnsApart) {
  Random r(1);
  Product p;
  p.m = 4, p.n = 8, p.k = 3, p.transposed_b = true;
  const FusedCase c = product_case(p, false, r);
  Plan plan;
  plan.kind = Plan::Kind::contract;
  plan.merged = {{1}, {2}};
  plan.reduction = {{3}};
  plan.rows = 2, plan.columns = 8;
  const auto group = lower(c.graph, c.fused, plan, device(Isa::avx2));
  ASSERT_FALSE(group.ok());
  EXPECT_NE(group.status().message().find("columns are 3 apart"), std::string::npos) << group.status().message();
}

TEST(Lower, RefusesAPlanOfAnotherKind) {
  Random r(1);
  const FusedCase c = random_reduction(r, false);
  EXPECT_FALSE(lower(c.graph, c.fused, Plan{}, device(Isa::avx2)).ok());
}

}  // namespace
}  // namespace quartet::kernel
