// Windows, slices, reductions and lookups at the corners: empty and single dims, NaN, extreme attributes, symbols.
#include "onnx/edges.h"

namespace quartet {
namespace {

using test::Compiled;
using test::Dims;
using test::expect_edge;
using test::f32;
using test::floats;
using test::i64;
using test::ints;
using test::kInf;
using test::kNan;
using test::numbers;
using test::OnnxModel;
using test::OnnxNode;
using test::ramp;

// ---- Convolutions and pools ----

TEST(OnnxEdges, SamePaddingOfSymbolicExtents) {
  for (const char* mode : {"SAME_UPPER", "SAME_LOWER"})
    for (const int64_t stride : {1, 2, 3, 5}) {
      OnnxModel conv(13);
      conv.input("x", {"n", "1", "h"}).initializer(floats("w", {1, 1, 3}, {1, 10, 100}));
      conv.node(OnnxNode("Conv", {"x", "w"}, {"y"}).text("auto_pad", mode).integers("strides", {stride})).output("y");
      const Compiled compiled(conv);
      for (const int64_t h : {1, 2, 3, 17}) compiled.expect_as_interpreted({ramp({2, 1, h}, 1)});
    }
  OnnxModel pool(13);
  pool.input("x", {"1", "1", "h"});
  pool.node(OnnxNode("MaxPool", {"x"}, {"y"})
                .text("auto_pad", "SAME_LOWER")
                .integers("kernel_shape", {2})
                .integers("strides", {2}));
  pool.output("y");
  const Compiled compiled(pool);
  compiled.expect({ramp({1, 1, 4})}, {1, 1, 2}, {1, 3});
  compiled.expect({ramp({1, 1, 5})}, {1, 1, 3}, {0, 2, 4});
}

OnnxModel transposed(const char* dim, const OnnxNode& node, std::vector<float> filter) {
  OnnxModel model(13);
  const auto places = static_cast<int64_t>(filter.size());
  return model.input("x", {"1", "1", dim}).initializer(floats("w", {1, 1, places}, filter)).node(node).output("y");
}
OnnxNode transpose_node() { return OnnxNode("ConvTranspose", {"x", "w"}, {"y"}); }

TEST(OnnxEdges, TransposedConvolutionsWithAStrideBeyondTheFilterFillUpWithZeros) {
  const auto same = [](const char* mode) { return transpose_node().text("auto_pad", mode).integers("strides", {5}); };
  for (const char* dim : {"3", "n"}) {
    const Compiled upper(transposed(dim, same("SAME_UPPER"), {1, 2})),
        lower(transposed(dim, same("SAME_LOWER"), {1, 2}));
    upper.expect({ramp({1, 1, 3}, 1)}, {1, 1, 15}, {0, 0, 1, 2, 0, 0, 0, 2, 4, 0, 0, 0, 3, 6, 0});
    lower.expect({ramp({1, 1, 3}, 1)}, {1, 1, 15}, {0, 1, 2, 0, 0, 0, 2, 4, 0, 0, 0, 3, 6, 0, 0});
  }
  expect_edge(transposed("2", transpose_node().integers("output_shape", {9}).integers("strides", {3}), {1}),
              {ramp({1, 1, 2}, 1)}, {1, 1, 9}, {0, 0, 1, 0, 0, 2, 0, 0, 0});
}

TEST(OnnxEdges, TransposedConvolutionsOfSymbolicExtents) {
  const Compiled sparse(transposed("n", transpose_node().integers("strides", {4}), {1, 2}));
  sparse.expect({ramp({1, 1, 1}, 1)}, {1, 1, 2}, {1, 2});
  sparse.expect({ramp({1, 1, 2}, 1)}, {1, 1, 6}, {1, 2, 0, 0, 2, 4});
  sparse.expect({ramp({1, 1, 0})}, {1, 1, 0}, {});
  const Compiled cut(transposed(
      "n", transpose_node().integers("strides", {2}).integers("pads", {3, 1}).integers("dilations", {3}), {1, 2, 3}));
  cut.expect({ramp({1, 1, 3}, 1)}, {1, 1, 7}, {2, 3, 4, 3, 6, 6, 0});
  cut.expect({ramp({1, 1, 1}, 1)}, {1, 1, 3}, {2, 0, 0});
  EXPECT_NE(test::refusal(transposed("1", transpose_node().integers("pads", {3, 1}), {1, 2}))
                .find("the padding is larger than the result"),
            std::string::npos);
}

// ---- Slices and splits ----

OnnxModel sliced(const std::vector<std::string>& dims, int64_t start, int64_t end, int64_t step) {
  OnnxModel model(13);
  model.input("x", dims).initializer(ints("s", {1}, {start})).initializer(ints("e", {1}, {end}));
  model.initializer(ints("a", {1}, {-1})).initializer(ints("p", {1}, {step}));
  return model.node(OnnxNode("Slice", {"x", "s", "e", "a", "p"}, {"y"})).output("y");
}

TEST(OnnxEdges, SlicesWithExtremeBoundsAndSteps) {
  constexpr int64_t kLow = INT64_MIN, kHigh = INT64_MAX;
  struct Case {
    int64_t start, end, step;
    std::vector<double> of_five, of_one, of_none;
  };
  const std::vector<Case> cases = {
      {kLow, kHigh, 1, {0, 1, 2, 3, 4}, {0}, {}},
      {kHigh, kLow, -1, {4, 3, 2, 1, 0}, {0}, {}},
      {-1, kLow, -2, {4, 2, 0}, {0}, {}},
      // Backwards from before the front starts at the front.
      {-100, kLow, -1, {0}, {0}, {}},
      {-100, -200, -1, {0}, {0}, {}},
      {-100, 3, -1, {}, {}, {}},
      {1, kHigh, kHigh, {1}, {}, {}},
      {2, kLow, kLow, {2}, {0}, {}},
      {100, 200, 1, {}, {}, {}},
      {-3, -1, 1, {2, 3}, {}, {}},
      {kHigh, kHigh, -1, {}, {}, {}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(std::to_string(c.start) + ":" + std::to_string(c.end) + ":" + std::to_string(c.step));
    const auto check = [](const Compiled& compiled, int64_t extent, const std::vector<double>& wanted) {
      compiled.expect({ramp({extent})}, {static_cast<int64_t>(wanted.size())}, wanted);
    };
    const Compiled any(sliced({"n"}, c.start, c.end, c.step));
    check(any, 5, c.of_five);
    check(any, 1, c.of_one);
    check(any, 0, c.of_none);
    check(Compiled(sliced({"5"}, c.start, c.end, c.step)), 5, c.of_five);
    check(Compiled(sliced({"0"}, c.start, c.end, c.step)), 0, c.of_none);
  }
}

TEST(OnnxEdges, SlicesByTheCallerTakeTheSameBounds) {
  OnnxModel model(13);
  model.input("x", {"5"}).input("s", {"1"}, 7).input("e", {"1"}, 7).input("a", {"1"}, 7).input("p", {"1"}, 7);
  model.node(OnnxNode("Slice", {"x", "s", "e", "a", "p"}, {"y"})).output("y", {"1"});
  const Compiled compiled(model);
  const auto by = [](int64_t start, int64_t end, int64_t step) {
    return std::vector<test::Tensor>{ramp({5}), i64({1}, {start}), i64({1}, {end}), i64({1}, {0}), i64({1}, {step})};
  };
  compiled.expect(by(-100, INT64_MIN, -1), {1}, {0});
  compiled.expect(by(2, INT64_MIN, INT64_MIN), {1}, {2});
  compiled.expect(by(3, INT64_MAX, INT64_MAX), {1}, {3});
}

TEST(OnnxEdges, SlicesByWhatTheRunComputesTakeTheSameBounds) {
  const auto model = [](int64_t step) {
    OnnxModel m(13);
    m.input("x", {"n"}).input("s", {"1"}, 7).input("e", {"1"}, 7);
    m.initializer(ints("zero", {1}, {0})).initializer(ints("p", {1}, {step}));
    m.node(OnnxNode("Add", {"s", "zero"}, {"t"})).node(OnnxNode("Sub", {"e", "zero"}, {"u"}));
    return m.node(OnnxNode("Slice", {"x", "t", "u", "zero", "p"}, {"y"})).output("y");
  };
  const auto by = [](int64_t extent, int64_t start, int64_t end) {
    return std::vector<test::Tensor>{ramp({extent}), i64({1}, {start}), i64({1}, {end})};
  };
  const Compiled back(model(-1)), far(model(INT64_MIN)), further(model(INT64_MAX));
  back.expect(by(5, -1, INT64_MIN), {5}, {4, 3, 2, 1, 0});
  back.expect(by(5, -100, INT64_MIN), {1}, {0});
  back.expect(by(0, -100, INT64_MIN), {0}, {});
  far.expect(by(5, 2, INT64_MIN), {1}, {2});
  further.expect(by(5, 1, INT64_MAX), {1}, {1});
}

TEST(OnnxEdges, ASplitHoldsItsSymbolToTheSum) {
  OnnxModel model(13);
  model.input("x", {"n"}).initializer(ints("s", {3}, {1, 0, 2}));
  model.node(OnnxNode("Split", {"x", "s"}, {"a", "b", "c"})).output("a").output("b").output("c");
  const Compiled compiled(model);
  compiled.expect({ramp({3})}, {1}, {0}, 0);
  compiled.expect({ramp({3})}, {0}, {}, 1);
  compiled.expect({ramp({3})}, {2}, {1, 2}, 2);
  EXPECT_FALSE(compiled.failure({ramp({4})}).empty());
  OnnxModel wrong(13);
  wrong.input("x", {"4"}).initializer(ints("s", {2}, {1, 2}));
  wrong.node(OnnxNode("Split", {"x", "s"}, {"a", "b"})).output("a").output("b");
  EXPECT_NE(test::refusal(wrong).find("do not add up"), std::string::npos);
}

TEST(OnnxEdges, ASplitIntoANumberOfPartsLeavesTheLastOnesShort) {
  OnnxModel model(18);
  model.input("x", {"n"});
  model.node(OnnxNode("Split", {"x"}, {"a", "b", "c"}).integer("num_outputs", 3)).output("a").output("b").output("c");
  const Compiled compiled(model);
  const std::vector<std::pair<int64_t, std::vector<int64_t>>> cases = {{0, {0, 0, 0}}, {1, {1, 0, 0}}, {2, {1, 1, 0}},
                                                                       {4, {2, 2, 0}}, {5, {2, 2, 1}}, {17, {6, 6, 5}}};
  for (const auto& [extent, parts] : cases) {
    double at = 0;
    for (size_t o = 0; o < 3; ++o) {
      std::vector<double> wanted;
      for (int64_t i = 0; i < parts[o]; ++i) wanted.push_back(at++);
      compiled.expect({ramp({extent})}, {parts[o]}, wanted, o);
    }
  }
  OnnxModel equal(13);
  equal.input("x", {"5"}).node(OnnxNode("Split", {"x"}, {"a", "b"})).output("a").output("b");
  EXPECT_NE(test::refusal(equal).find("does not split into 2 equal parts"), std::string::npos);
}

TEST(OnnxEdges, DimsThatMustBeEqualAreHeldToBe) {
  OnnxModel expand(13);
  expand.input("x", {"n", "1"}).initializer(ints("s", {2}, {3, 2}));
  expand.node(OnnxNode("Expand", {"x", "s"}, {"y"})).output("y");
  const Compiled expanded(expand);
  expanded.expect({ramp({3, 1})}, {3, 2}, {0, 0, 1, 1, 2, 2});
  EXPECT_FALSE(expanded.failure({ramp({2, 1})}).empty());
  OnnxModel reverse(13);
  reverse.input("x", {"t", "b"}).initializer(ints("l", {2}, {0, 3}));
  reverse.node(OnnxNode("ReverseSequence", {"x", "l"}, {"y"})).output("y");
  const Compiled reversed(reverse);
  reversed.expect({ramp({3, 2})}, {3, 2}, {0, 5, 2, 3, 4, 1});
  EXPECT_FALSE(reversed.failure({ramp({3, 3})}).empty());
  OnnxModel scatter(18);
  scatter.input("x", {"n", "m"}).initializer(ints("i", {1, 1}, {-1})).initializer(floats("u", {1, 2}, {8, 9}));
  scatter.node(OnnxNode("ScatterND", {"x", "i", "u"}, {"y"})).output("y");
  const Compiled scattered(scatter);
  scattered.expect({ramp({2, 2})}, {2, 2}, {0, 1, 8, 9});
  EXPECT_FALSE(scattered.failure({ramp({2, 3})}).empty());
}

// ---- Lookups ----

TEST(OnnxEdges, AnEmptyAxisGivesZeros) {
  for (const char* op : {"Gather", "GatherElements"})
    for (const bool constant : {false, true})
      for (const char* dim : {"n", "0"}) {
        OnnxModel model(13);
        model.input("x", {dim});
        if (constant)
          model.initializer(ints("i", {2}, {0, -1}));
        else
          model.input("i", {"2"}, 7);
        model.node(OnnxNode(op, {"x", "i"}, {"y"})).output("y");
        std::vector<test::Tensor> inputs = {ramp({0})};
        if (!constant) inputs.push_back(i64({2}, {0, 7}));
        expect_edge(model, inputs, {2}, {0, 0});
      }
  OnnxModel pad(13);
  pad.input("x", {"n", "m"}).initializer(ints("p", {4}, {1, 0, 1, 0}));
  pad.node(OnnxNode("Pad", {"x", "p"}, {"y"}).text("mode", "edge")).output("y");
  const Compiled padded(pad);
  padded.expect({ramp({0, 2})}, {2, 2}, {0, 0, 0, 0});
  padded.expect({ramp({1, 2})}, {3, 2}, {0, 1, 0, 1, 0, 1});
}

TEST(OnnxEdges, TrianglesFarFromTheDiagonal) {
  const auto model = [](int64_t k, int64_t upper) {
    OnnxModel m(14);
    m.input("x", {"n", "2"}).initializer(ints("k", {}, {k}));
    return m.node(OnnxNode("Trilu", {"x", "k"}, {"y"}).integer("upper", upper)).output("y");
  };
  for (const int64_t k : {INT64_MAX, int64_t{1} << 50, int64_t{3}}) {
    expect_edge(model(k, 1), {ramp({2, 2}, 1)}, {2, 2}, {0, 0, 0, 0});
    expect_edge(model(k, 0), {ramp({2, 2}, 1)}, {2, 2}, {1, 2, 3, 4});
    expect_edge(model(-k, 1), {ramp({2, 2}, 1)}, {2, 2}, {1, 2, 3, 4});
  }
  expect_edge(model(INT64_MIN, 0), {ramp({2, 2}, 1)}, {2, 2}, {0, 0, 0, 0});
}

TEST(OnnxEdges, BoundsOfOneElementKeepTheRank) {
  OnnxModel model(13);
  model.input("x", {}).initializer(floats("h", {1}, {1}));
  model.node(OnnxNode("Clip", {"x", "", "h"}, {"y"})).output("y");
  expect_edge(model, {f32({}, {5})}, {}, {1});
}

// ---- Reductions ----

TEST(OnnxEdges, IntegersAreReducedThroughRootsAndLogarithms) {
  const auto reduced = [](const char* op, DType dtype, int32_t type, const std::vector<double>& values,
                          const std::vector<double>& wanted) {
    SCOPED_TRACE(op);
    OnnxModel model(20);
    model.input("x", {"2", "n"}, type).initializer(ints("a", {1}, {1}));
    model.node(OnnxNode(op, {"x", "a"}, {"y"}).integer("keepdims", 0)).output("y");
    expect_edge(model, {numbers(dtype, {2, static_cast<int64_t>(values.size()) / 2}, values)}, {2}, wanted);
  };
  reduced("ReduceL2", DType::i64, 7, {3, -4, 0, -2}, {5, 2});
  reduced("ReduceL2", DType::i32, 6, {3, 4, 1, 1}, {5, 1});
  reduced("ReduceLogSum", DType::i32, 6, {20, 1, 1, 0}, {3, 0});
  reduced("ReduceLogSumExp", DType::i64, 7, {5, 5, -5, -5}, {5, -4});
  reduced("ReduceMax", DType::boolean, 9, {0, 1, 0, 0}, {1, 0});
  reduced("ReduceMin", DType::boolean, 9, {0, 1, 1, 1}, {0, 1});
}

TEST(OnnxEdges, EmptyReductions) {
  const auto reduced = [](const char* op, double wanted) {
    SCOPED_TRACE(op);
    OnnxModel model(18);
    model.input("x", {"2", "n"}).initializer(ints("a", {1}, {-1}));
    model.node(OnnxNode(op, {"x", "a"}, {"y"})).output("y");
    expect_edge(model, {ramp({2, 0})}, {2, 1}, {wanted, wanted});
  };
  reduced("ReduceSum", 0);
  reduced("ReduceSumSquare", 0);
  reduced("ReduceL1", 0);
  reduced("ReduceL2", 0);
  reduced("ReduceProd", 1);
  reduced("ReduceMax", -kInf);
  reduced("ReduceMin", kInf);
  reduced("ReduceLogSum", -kInf);
  reduced("ReduceLogSumExp", -kInf);
  reduced("ReduceMean", kNan);
}

}  // namespace
}  // namespace quartet
