// Convolutions, windows and what is assumed of dims through compiled code, against the reference interpreter: integers
// bit for bit; floats nearly, and bit for bit whatever is fused and however many vEUs run it.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "graph/builder.h"
#include "unit/compiler/rig.h"

namespace quartet {
namespace {

using graph::AttrKey;
using graph::Attrs;
using graph::OpCode;
using reference::Tensor;
using Ints = std::vector<int64_t>;

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % uint64_t(high - low + 1));
  }
  bool chance(int64_t in) { return between(1, in) == 1; }
  Tensor tensor(DType dtype, Ints dims) {
    Tensor t = Tensor::zeros(dtype, std::move(dims));
    for (int64_t& e : t.elements) {
      const int64_t n = between(-20, 20);
      e = is_float(dtype) ? static_cast<int64_t>(std::bit_cast<uint32_t>(static_cast<float>(n) / 8)) : n;
    }
    return t;
  }

 private:
  std::mt19937_64 engine_;
};

struct Case {
  int64_t batch = 1, groups = 1, channels = 1, filters = 1;  // a group
  Ints extents, kernel, strides, dilations;
  DType dtype = DType::i32;
};

Case random_case(Random& r) {
  Case c;
  c.batch = r.between(1, 2);
  const bool depthwise = r.chance(3);
  c.groups = depthwise ? r.between(1, 40) : r.chance(3) ? r.between(2, 3) : 1;
  c.channels = depthwise ? 1 : r.between(1, 9);
  c.filters = depthwise ? r.between(1, 2) : r.between(1, 35);
  const int64_t spatial = r.between(1, 3);
  for (int64_t i = 0; i < spatial; ++i) {
    c.kernel.push_back(r.between(1, 3));
    c.strides.push_back(r.between(1, 2));
    c.dilations.push_back(r.between(1, 2));
    c.extents.push_back((c.kernel.back() - 1) * c.dilations.back() + r.between(0, spatial == 1 ? 40 : 8));
  }
  c.dtype = r.chance(2) ? DType::f32 : DType::i32;
  return c;
}

graph::Shape shape(const Ints& dims) { return {dims.begin(), dims.end()}; }

// conv, a bias for each filter, relu; the batch may be symbolic.
std::shared_ptr<const graph::Graph> graph_of(const Case& c, const Tensor& w, const Tensor& bias, bool symbolic) {
  graph::Builder b;
  graph::Shape x = {symbolic ? *b.symbol("n") : IntExpr(c.batch), IntExpr(c.groups * c.channels)};
  x.insert(x.end(), c.extents.begin(), c.extents.end());
  const auto in = b.input("x", {c.dtype, x});
  const auto filters = b.constant(*graph::copy_constant({c.dtype, shape(w.dims)}, w.to_memory()));
  const auto added = b.constant(*graph::copy_constant({c.dtype, shape(bias.dims)}, bias.to_memory()));
  const auto y = b.one(OpCode::conv, {*in, *filters},
                       {{AttrKey::strides, c.strides}, {AttrKey::dilations, c.dilations}, {AttrKey::groups, c.groups}});
  EXPECT_TRUE(y.ok()) << y.status().message();
  const auto sum = b.one(OpCode::add, {*y, *added});
  const auto r = b.one(OpCode::relu, {*sum});
  EXPECT_TRUE(b.output(*r, "r").ok());
  return *b.finish();
}

double value(const Tensor& t, size_t i) {
  return is_float(t.dtype) ? static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(t.elements[i])))
                           : static_cast<double>(t.elements[i]);
}

void expect_close(const Tensor& got, const Tensor& want, const std::string& what) {
  ASSERT_EQ(got.dims, want.dims) << what;
  for (size_t i = 0; i < want.elements.size(); ++i)
    ASSERT_TRUE(std::fabs(value(got, i) - value(want, i)) <= (is_float(want.dtype) ? 1e-4 : 0)) << what << " at " << i;
}

class Convolution : public testing::Test {
 protected:
  // The outputs with fusion on and off and several vEUs, which must all be the same.
  std::vector<Tensor> run(const std::shared_ptr<const graph::Graph>& graph, const std::vector<Tensor>& inputs,
                          const std::string& what) {
    std::vector<Tensor> first;
    for (const bool fusion : {true, false}) {
      compiler::Request request{graph, {}, host_cpu()};
      EXPECT_TRUE(request.options.set(OptionId::fusion, fusion).ok());
      const auto program = engine_->compile(request);
      EXPECT_TRUE(program.ok()) << what << program.status().message();
      if (!program.ok()) return {};
      for (const int vEUs : {1, 2}) {
        auto got = test::run(*(*program)->program, inputs, {vEUs, vEUs > 1 ? pool_ : nullptr});
        EXPECT_TRUE(got.ok()) << what << got.status().message();
        if (!got.ok()) return {};
        if (first.empty())
          first = std::move(*got);
        else
          EXPECT_EQ((*got)[0].elements, first[0].elements) << what << " fusion " << fusion << " vEUs " << vEUs;
      }
    }
    return first;
  }

  std::unique_ptr<compiler::Engine> engine_ = test::make_engine();
  std::shared_ptr<runtime::WorkerPool> pool_ =
      std::make_shared<runtime::WorkerPool>(runtime::WorkerPool::Options{.threads = 1, .jobs = nullptr});
};

TEST_F(Convolution, RandomForms) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Random r(seed);
    const Case c = random_case(r);
    Ints w = {c.groups * c.filters, c.channels}, x = {c.batch, c.groups * c.channels};
    w.insert(w.end(), c.kernel.begin(), c.kernel.end());
    x.insert(x.end(), c.extents.begin(), c.extents.end());
    Ints bias = {c.groups * c.filters};
    bias.insert(bias.end(), c.extents.size(), 1);
    const auto graph = graph_of(c, r.tensor(c.dtype, w), r.tensor(c.dtype, bias), r.chance(2));
    const std::vector<Tensor> inputs = {r.tensor(c.dtype, x)};
    const auto want = reference::interpret(*graph, inputs);
    ASSERT_TRUE(want.ok()) << want.status().message();
    const std::string what = "seed " + std::to_string(seed) + "\n" + graph::print(*graph);
    const auto got = run(graph, inputs, what);
    ASSERT_EQ(got.size(), 1u);
    expect_close(got[0], (*want)[0], what);
    if (HasFailure()) return;
  }
}

std::shared_ptr<const graph::Graph> parsed(const char* text) {
  const auto graph = graph::parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return graph.ok() ? *graph : nullptr;
}

TEST_F(Convolution, ChannelsLastSinksThroughWhatReadsIt) {
  // Padding, a pool, a concat, a mean over space and a gather between two convolutions.
  const auto graph = parsed(R"(graph(%x: i32[2, 3, 9, 8], %w: i32[5, 3, 2, 2], %v: i32[4, 7, 1, 1], %i: i64[7]) {
    %a = conv %x, %w {strides = [1, 1]}
    %z = constant i32[] [0]
    %p = pad %a, %z {low = [0, 0, 1, 1], high = [0, 0, 0, 1]}
    %u = window %p {axes = [2, 3], sizes = [2, 2], strides = [2, 2]}
    %m = reduce_max %u {axes = [4, 5]}
    %n = neg %m
    %c = concat %m, %n {axis = 1}
    %g = gather %c, %i {axis = 1}
    %s = slice %g {starts = [0, 0, 1, 0], limits = [2, 7, 4, 4], steps = [1, 1, 1, 2]}
    %y = conv %s, %v
    %t = reduce_sum %y {axes = [2, 3], keepdims = 1}
    return %y, %t
  })");
  ASSERT_TRUE(graph);
  Random r(5);
  std::vector<Tensor> inputs = {r.tensor(DType::i32, {2, 3, 9, 8}), r.tensor(DType::i32, {5, 3, 2, 2}),
                                r.tensor(DType::i32, {4, 7, 1, 1}), Tensor::zeros(DType::i64, {7})};
  inputs[3].elements = {9, 0, 3, -1, 4, 4, 7};
  const auto want = reference::interpret(*graph, inputs);
  ASSERT_TRUE(want.ok()) << want.status().message();
  const auto got = run(graph, inputs, "");
  ASSERT_EQ(got.size(), 2u);
  expect_close(got[0], (*want)[0], "y");
  expect_close(got[1], (*want)[1], "t");
}

TEST_F(Convolution, AssumedDimsAreCheckedBeforeTheRun) {
  const auto graph = parsed(R"(graph(%x: f32[n, 2], %y: f32[m]) {
    %a = assume_shape %y {shape = [floor_div(n + 1, 2)]}
    %h = slice %x {starts = [0, 0], limits = [n, 1], steps = [2, 1]}
    %v = reshape %h {shape = [floor_div(n + 1, 2)]}
    %r = add %v, %a
    return %r
  })");
  ASSERT_TRUE(graph);
  const auto program = engine_->compile({graph, {}, host_cpu()});
  ASSERT_TRUE(program.ok()) << program.status().message();
  Random r(1);
  const std::vector<Tensor> good = {r.tensor(DType::f32, {5, 2}), r.tensor(DType::f32, {3})};
  const auto got = test::run(*(*program)->program, good), want = reference::interpret(*graph, good);
  ASSERT_TRUE(got.ok() && want.ok()) << got.status().message();
  EXPECT_EQ((*got)[0].elements, (*want)[0].elements);
  const std::vector<Tensor> bad = {r.tensor(DType::f32, {5, 2}), r.tensor(DType::f32, {2})};
  const auto refused = test::run(*(*program)->program, bad);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::invalid_argument);
  EXPECT_NE(refused.status().message().find("m is 2, floor_div(n + 1, 2) is 3"), std::string::npos)
      << refused.status().message();
  EXPECT_FALSE(reference::interpret(*graph, bad).ok());
}

}  // namespace
}  // namespace quartet
