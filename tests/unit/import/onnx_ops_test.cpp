// Ops that the importer composes of others: what they mean at the corners.
#include <cmath>
#include <limits>

#include "unit/import/running.h"

namespace quartet {
namespace {

using reference::Tensor;
using test::Dims;
using test::expect_result;
using test::f32;
using test::floats;
using test::i64;
using test::ints;
using test::one_node;
using test::OnnxModel;
using test::OnnxNode;
using test::refusal;
using test::result_of;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// ---- Shapes that the caller gives ----

// Why a run of the model fails.
std::string failure_of(const OnnxModel& model, const std::vector<Tensor>& inputs) {
  const auto graph = test::imported(model);
  if (!graph) return "";
  const auto outputs = reference::interpret(*graph, inputs);
  return outputs.ok() ? "" : outputs.status().message();
}

TEST(OnnxOps, AxesTheCallerGivesMustLeadToTheDeclaredShape) {
  OnnxModel squeeze(13);
  squeeze.input("x", {"1", "3", "1"}).input("a", {"1"}, 7).node(OnnxNode("Squeeze", {"x", "a"}, {"y"}));
  squeeze.output("y", {"1", "3"});
  expect_result(squeeze, {f32({1, 3, 1}, {1, 2, 3}), i64({1}, {-1})}, {1, 3}, {1, 2, 3});
  EXPECT_FALSE(failure_of(squeeze, {f32({1, 3, 1}, {1, 2, 3}), i64({1}, {0})}).empty());
  OnnxModel expand(13);
  expand.input("x", {"3", "1"})
      .input("s", {"2"}, 7)
      .node(OnnxNode("Expand", {"x", "s"}, {"y"}))
      .output("y", {"3", "2"});
  expect_result(expand, {f32({3, 1}, {1, 2, 3}), i64({2}, {1, 2})}, {3, 2}, {1, 1, 2, 2, 3, 3});
  EXPECT_FALSE(failure_of(expand, {f32({3, 1}, {1, 2, 3}), i64({2}, {3, 1})}).empty());
}

TEST(OnnxOps, AShapeThatIsAnInputTakesTheModelsWord) {
  const OnnxNode reshape("Reshape", {"x", "s"}, {"y"});
  OnnxModel declared(13);
  declared.input("x", {"2", "3"}).input("s", {"2"}, 7).node(reshape).output("y", {"3", "2"});
  expect_result(declared, {f32({2, 3}, {0, 1, 2, 3, 4, 5}), i64({2}, {3, 2})}, {3, 2}, {0, 1, 2, 3, 4, 5});
  // What contradicts the declaration fails when running; -1 does not.
  expect_result(declared, {f32({2, 3}, {0, 1, 2, 3, 4, 5}), i64({2}, {-1, 2})}, {3, 2}, {0, 1, 2, 3, 4, 5});
  EXPECT_NE(failure_of(declared, {f32({2, 3}, {0, 1, 2, 3, 4, 5}), i64({2}, {2, 3})})
                .find("node_Reshape: input 1 does not give the shape that the model declares"),
            std::string::npos);
  OnnxModel open(13);
  open.input("x", {"2", "3"}).input("s", {"2"}, 7).node(reshape).output("y", {"unknown", "2"});
  // Without a declaration the run reads it.
  const Tensor six = f32({2, 3}, {0, 1, 2, 3, 4, 5});
  expect_result(open, {six, i64({2}, {3, 2})}, {3, 2}, {0, 1, 2, 3, 4, 5});
  expect_result(open, {six, i64({2}, {1, 6})}, {1, 6}, {0, 1, 2, 3, 4, 5});
  EXPECT_NE(failure_of(open, {six, i64({2}, {4, 2})}).find("has not as many elements"), std::string::npos);
  EXPECT_NE(failure_of(open, {six, i64({2}, {-1, 2})}).find("the shape (input 1), element 0 is no extent"),
            std::string::npos);
  // One that is computed is not the caller's to keep to.
  OnnxModel computed(13);
  computed.input("x", {"2", "3"})
      .input("s", {"2"}, 7)
      .node(OnnxNode("Neg", {"s"}, {"t"}))
      .node(OnnxNode("Reshape", {"x", "t"}, {"y"}))
      .output("y", {"3", "2"});
  expect_result(computed, {six, i64({2}, {-3, -2})}, {3, 2}, {0, 1, 2, 3, 4, 5});
}

TEST(OnnxOps, SliceByTheCaller) {
  OnnxModel model(13);
  model.input("x", {"2", "5"}).input("b", {"2"}, 7).input("e", {"2"}, 7).input("a", {"2"}, 7).input("s", {"2"}, 7);
  model.node(OnnxNode("Slice", {"x", "b", "e", "a", "s"}, {"y"})).output("y", {"1", "3"});
  expect_result(model,
                {f32({2, 5}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), i64({2}, {-1, 1}), i64({2}, {-100, 9}), i64({2}, {-1, 0}),
                 i64({2}, {-2, 1})},
                {1, 3}, {9, 7, 5});
  EXPECT_FALSE(failure_of(model, {f32({2, 5}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), i64({2}, {-1, 1}), i64({2}, {-100, 9}),
                                  i64({2}, {-1, 0}), i64({2}, {-1, 1})})
                   .empty());
}

TEST(OnnxOps, ReductionAxesByTheCallerAreChosenAtRunTime) {
  OnnxModel model(13);
  model.input("x", {"2", "2", "3"}).input("a", {"1"}, 7);
  model.node(OnnxNode("ReduceSum", {"x", "a"}, {"y"}).integer("keepdims", 0)).output("y", {"2", "3"});
  const Tensor x = f32({2, 2, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  expect_result(model, {x, i64({1}, {0})}, {2, 3}, {6, 8, 10, 12, 14, 16});
  expect_result(model, {x, i64({1}, {-2})}, {2, 3}, {3, 5, 7, 15, 17, 19});
  EXPECT_FALSE(failure_of(model, {x, i64({1}, {2})}).empty());
}

// ---- What fails in the middle of a composition ----

TEST(OnnxOps, CompositionsThatFailHalfWaySayWhy) {
  OnnxModel top(11);
  top.input("x", {"5"}, 9).initializer(ints("k", {1}, {1}));
  top.node(OnnxNode("TopK", {"x", "k"}, {"v", "i"})).output("v").output("i");
  EXPECT_NE(refusal(top).find("node TopK"), std::string::npos);
  OnnxModel frames(17);
  frames.input("x", {"1", "3", "1"}).initializer(ints("s", {}, {int64_t{1} << 40})).initializer(ints("l", {}, {2}));
  frames.node(OnnxNode("STFT", {"x", "s", "", "l"}, {"y"})).output("y");
  EXPECT_NE(refusal(frames).find("node STFT"), std::string::npos);
}

TEST(OnnxOps, WindowsOutOfRangeAreRefused) {
  OnnxModel wide(13);
  wide.input("x", {"1", "1", "3"}).initializer(floats("w", {1, 1, 2}, {1, 2}));
  wide.node(OnnxNode("ConvTranspose", {"x", "w"}, {"y"}).integers("output_padding", {INT64_MAX})).output("y");
  EXPECT_NE(refusal(wide).find("out of range"), std::string::npos);
  OnnxModel pool(13);
  pool.input("x", {"1", "1", "3", "3", "3"});
  pool.node(OnnxNode("MaxPool", {"x"}, {"y", "i"})
                .integers("kernel_shape", {INT32_MAX, INT32_MAX, INT32_MAX})
                .text("auto_pad", "SAME_UPPER"));
  pool.output("y").output("i");
  EXPECT_NE(refusal(pool).find("places"), std::string::npos);
}

// ---- Resize and Pad ----

TEST(OnnxOps, ResizesSymbolicSizes) {
  OnnxModel nearest(13);
  nearest.input("x", {"h", "w"}).initializer(floats("s", {2}, {2, 0.5f}));
  nearest.node(OnnxNode("Resize", {"x", "", "s"}, {"y"}).text("coordinate_transformation_mode", "asymmetric"));
  nearest.output("y");
  expect_result(nearest, {f32({1, 4}, {0, 1, 2, 3})}, {2, 2}, {0, 2, 0, 2});
  expect_result(nearest, {f32({2, 3}, {0, 1, 2, 3, 4, 5})}, {4, 1}, {0, 0, 3, 3});
  OnnxModel linear(13);
  linear.input("x", {"n"}).initializer(floats("s", {1}, {2}));
  linear.node(OnnxNode("Resize", {"x", "", "s"}, {"y"}).text("mode", "linear")).output("y");
  expect_result(linear, {f32({2}, {0, 4})}, {4}, {0, 1, 3, 4});
  expect_result(linear, {f32({1}, {7})}, {2}, {7, 7});
}

TEST(OnnxOps, SymbolicSizesTakeAScaleAsTheFractionItIsMeantToBe) {
  OnnxModel model(13);
  model.input("x", {"n"}).initializer(floats("s", {1}, {0.7f}));  // a little less than 7/10
  model.node(OnnxNode("Resize", {"x", "", "s"}, {"y"})).output("y");
  EXPECT_EQ(result_of(model, {Tensor::zeros(DType::f32, {10})}).size(), 7u);
  EXPECT_EQ(result_of(model, {Tensor::zeros(DType::f32, {9})}).size(), 6u);
}

TEST(OnnxOps, CubicWeightsThatLeaveOutWhatIsOutsideAddUpToOne) {
  OnnxModel model(13);
  model.input("x", {"3"}).initializer(floats("s", {1}, {2.5f}));
  model.node(OnnxNode("Resize", {"x", "", "s"}, {"y"}).text("mode", "cubic").integer("exclude_outside", 1)).output("y");
  expect_result(model, {f32({3}, {2, 2, 2})}, {7}, {2, 2, 2, 2, 2, 2, 2});
}

TEST(OnnxOps, ResizeRefusesAntialias) {
  OnnxModel model(18);
  model.input("x", {"3"}).initializer(floats("s", {1}, {0.5f}));
  model.node(OnnxNode("Resize", {"x", "", "s"}, {"y"}).text("mode", "linear").integer("antialias", 1)).output("y");
  EXPECT_NE(refusal(model).find("antialias"), std::string::npos);
}

TEST(OnnxOps, PadsByMirrorEdgeAndWrap) {
  const auto padded = [](const char* mode, std::vector<int64_t> pads) {
    OnnxModel model(19);
    model.input("x", {"n"}).initializer(ints("p", {2}, pads));
    model.node(OnnxNode("Pad", {"x", "p"}, {"y"}).text("mode", mode)).output("y");
    return model;
  };
  const Tensor x = f32({3}, {0, 1, 2});
  expect_result(padded("reflect", {2, 2}), {x}, {7}, {2, 1, 0, 1, 2, 1, 0});
  expect_result(padded("reflect", {5, 0}), {x}, {8}, {1, 0, 1, 2, 1, 0, 1, 2});
  expect_result(padded("edge", {1, 2}), {x}, {6}, {0, 0, 1, 2, 2, 2});
  expect_result(padded("wrap", {4, 1}), {x}, {8}, {2, 0, 1, 2, 0, 1, 2, 0});
  expect_result(padded("constant", {-1, 1}), {f32({1}, {5})}, {1}, {0});
  expect_result(padded("reflect", {1, 1}), {f32({1}, {5})}, {3}, {5, 5, 5});
}

// ---- Looking up and scattering ----

TEST(OnnxOps, ScatterTakesTheLastOfEqualPlaces) {
  OnnxModel model(18);
  model.input("x", {"2", "3"}).input("i", {"1", "3"}, 7).input("u", {"1", "3"});
  model.node(OnnxNode("ScatterElements", {"x", "i", "u"}, {"y"}).integer("axis", 1)).output("y");
  expect_result(model, {f32({2, 3}, {0, 1, 2, 3, 4, 5}), i64({1, 3}, {1, -2, 0}), f32({1, 3}, {7, 8, 9})}, {2, 3},
                {9, 8, 2, 3, 4, 5});
}

TEST(OnnxOps, ScatterJoinsUpdatesOfOnePlace) {
  const auto model = [](const char* reduction) {
    OnnxModel m(18);
    m.input("x", {"a", "2"}).input("i", {"n", "1"}, 7).input("u", {"n", "2"});
    m.node(OnnxNode("ScatterND", {"x", "i", "u"}, {"y"}).text("reduction", reduction)).output("y");
    return m;
  };
  const std::vector<Tensor> in = {f32({2, 2}, {1, 2, 3, 4}), i64({3, 1}, {1, 1, -2}), f32({3, 2}, {5, 6, 7, 8, 9, 1})};
  expect_result(model("none"), in, {2, 2}, {9, 1, 7, 8});
  expect_result(model("add"), in, {2, 2}, {10, 3, 15, 18});
  expect_result(model("mul"), in, {2, 2}, {9, 2, 105, 192});
  expect_result(model("min"), in, {2, 2}, {1, 1, 3, 4});
  expect_result(model("max"), in, {2, 2}, {9, 2, 7, 8});
  EXPECT_NE(refusal(model("mean")).find("reduction = 'mean'"), std::string::npos);
}

TEST(OnnxOps, GatherNdWithBatches) {
  OnnxModel model(13);
  model.input("x", {"2", "3", "2"}).input("i", {"2", "1"}, 7);
  model.node(OnnxNode("GatherND", {"x", "i"}, {"y"}).integer("batch_dims", 1)).output("y");
  expect_result(model, {f32({2, 3, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}), i64({2, 1}, {-1, 0})}, {2, 2},
                {4, 5, 6, 7});
}

TEST(OnnxOps, OneHotLeavesOutWhatIsNoIndex) {
  OnnxModel model(11);
  model.input("i", {"4"}, 7).initializer(ints("d", {1}, {3})).initializer(floats("v", {2}, {-1, 1}));
  model.node(OnnxNode("OneHot", {"i", "d", "v"}, {"y"}).integer("axis", 0)).output("y");
  expect_result(model, {i64({4}, {0, -1, 3, -4})}, {3, 4}, {1, -1, -1, -1, -1, -1, -1, -1, -1, 1, -1, -1});
}

TEST(OnnxOps, TopKOrdersTiesByPlaceAndNanFirst) {
  OnnxModel model(11);
  model.input("x", {"5"}).initializer(ints("k", {1}, {4}));
  model.node(OnnxNode("TopK", {"x", "k"}, {"v", "y"})).output("v").output("y");
  EXPECT_EQ(result_of(model, {f32({5}, {1, 3, kNan, 3, 2})}, 1), (std::vector<double>{2, 1, 3, 4}));
  OnnxModel smallest(11);
  smallest.input("x", {"n", "4"}).initializer(ints("k", {1}, {2}));
  smallest.node(OnnxNode("TopK", {"x", "k"}, {"v", "y"}).integer("largest", 0)).output("v").output("y");
  EXPECT_EQ(result_of(smallest, {f32({1, 4}, {2, 1, 1, 0})}, 1), (std::vector<double>{3, 1}));
}

TEST(OnnxOps, RunningSumsOfSymbolicExtent) {
  const auto model = [](const char* dim, int64_t exclusive, int64_t reverse) {
    OnnxModel m(14);
    m.input("x", {dim}).initializer(ints("a", {1}, {0}));
    m.node(OnnxNode("CumSum", {"x", "a"}, {"y"}).integer("exclusive", exclusive).integer("reverse", reverse));
    return m.output("y");
  };
  const Tensor x = f32({5}, {1, 2, 3, 4, 5});
  for (const char* dim : {"n", "5"}) {
    expect_result(model(dim, 0, 0), {x}, {5}, {1, 3, 6, 10, 15});
    expect_result(model(dim, 1, 0), {x}, {5}, {0, 1, 3, 6, 10});
    expect_result(model(dim, 0, 1), {x}, {5}, {15, 14, 12, 9, 5});
    expect_result(model(dim, 1, 1), {x}, {5}, {14, 12, 9, 5, 0});
  }
}

TEST(OnnxOps, EinsumTakesDiagonalsAndSums) {
  const Tensor x = f32({2, 2}, {1, 2, 3, 4});
  expect_result(one_node(OnnxNode("Einsum", {"x"}, {"y"}).text("equation", "ii->i"), {"2", "2"}), {x}, {2}, {1, 4});
  expect_result(one_node(OnnxNode("Einsum", {"x"}, {"y"}).text("equation", "ii"), {"2", "2"}), {x}, {}, {5});
  expect_result(one_node(OnnxNode("Einsum", {"x"}, {"y"}).text("equation", "ij -> j"), {"n", "m"}), {x}, {2}, {4, 6});
  EXPECT_NE(refusal(one_node(OnnxNode("Einsum", {"x"}, {"y"}).text("equation", "ii->i"), {"n", "n"})).find("diagonal"),
            std::string::npos);
  EXPECT_FALSE(refusal(one_node(OnnxNode("Einsum", {"x"}, {"y"}).text("equation", "ij->ik"), {"2", "2"})).empty());
}

// ---- Numbers ----

TEST(OnnxOps, QuantisationRoundsToEvenAndSaturates) {
  OnnxModel model(13);
  model.input("x", {"6"}).initializer(floats("s", {}, {2}));
  model.node(OnnxNode("QuantizeLinear", {"x", "s"}, {"y"})).output("y");
  expect_result(model, {f32({6}, {1, 3, 5, -9, 1000, kNan})}, {6}, {0, 2, 2, 0, 255, 0});
}

TEST(OnnxOps, DynamicQuantisationOfZerosHasScaleOne) {
  OnnxModel model(11);
  model.input("x", {"2"}).node(OnnxNode("DynamicQuantizeLinear", {"x"}, {"y", "s", "z"}));
  model.output("y").output("s").output("z");
  EXPECT_EQ(result_of(model, {f32({2}, {0, 0})}, 1), (std::vector<double>{1}));
  EXPECT_EQ(result_of(model, {f32({2}, {0, 0})}, 0), (std::vector<double>{0, 0}));
}

TEST(OnnxOps, HyperbolicAndInverseFunctionsAreAccurate) {
  struct Function {
    const char* op;
    double (*exact)(double);
    double low, high;
  };
  const Function functions[] = {
      {"Acos", std::acos, -1, 1},       {"Acosh", std::acosh, 1, 1e4}, {"Asin", std::asin, -1, 1},
      {"Asinh", std::asinh, -1e4, 1e4}, {"Atan", std::atan, -50, 50},  {"Atanh", std::atanh, -1, 1},
      {"Cosh", std::cosh, -80, 80},     {"Sinh", std::sinh, -80, 80},  {"Tan", std::tan, -50, 50},
  };
  constexpr int kPoints = 400;
  for (const Function& f : functions) {
    Tensor x = Tensor::zeros(DType::f32, {kPoints});
    for (int i = 0; i < kPoints; ++i) {
      const double spread = static_cast<double>(i) / (kPoints - 1), near = std::pow(10.0, -i / 20.0);
      const double at = i % 2 == 0 ? f.low + (f.high - f.low) * spread : std::max(f.low, near);
      x.elements[static_cast<size_t>(i)] = reference::bits_of(DType::f32, at);
    }
    OnnxModel model(13);
    model.input("x", {"n"}).node(OnnxNode(f.op, {"x"}, {"y"})).output("y");
    const std::vector<double> got = result_of(model, {x});
    ASSERT_EQ(got.size(), static_cast<size_t>(kPoints));
    for (size_t i = 0; i < got.size(); ++i) {
      const double at = static_cast<double>(reference::number_of(DType::f32, x.elements[i]));
      const auto wanted = static_cast<double>(static_cast<float>(f.exact(at)));
      if (got[i] == wanted) continue;
      EXPECT_NEAR(got[i], wanted, 1.2e-7 * std::fabs(wanted)) << f.op << " of " << at;
    }
  }
}

TEST(OnnxOps, SoftplusKeepsSmallValues) {
  const std::vector<double> got =
      result_of(one_node(OnnxNode("Softplus", {"x"}, {"y"}), {"3"}), {f32({3}, {-30, 0, 100})});
  ASSERT_EQ(got.size(), 3u);
  EXPECT_NEAR(got[0], std::exp(-30.0), 1e-6 * std::exp(-30.0));
  EXPECT_NEAR(got[1], std::log(2.0), 1e-7);
  EXPECT_EQ(got[2], 100);
}

TEST(OnnxOps, LayerNormalizationGivesItsMoments) {
  OnnxModel model(17);
  model.input("x", {"1", "2"}).initializer(floats("g", {2}, {1, 1}));
  model.node(OnnxNode("LayerNormalization", {"x", "g"}, {"y", "m", "d"}).number("epsilon", 0));
  model.output("y").output("m").output("d");
  const Tensor x = f32({1, 2}, {1, 5});
  EXPECT_EQ(result_of(model, {x}, 0), (std::vector<double>{-1, 1}));
  EXPECT_EQ(result_of(model, {x}, 1), (std::vector<double>{3}));
  EXPECT_EQ(result_of(model, {x}, 2), (std::vector<double>{0.5}));
}

TEST(OnnxOps, NothingReducedStillComputes) {
  OnnxModel model(18);
  model.input("x", {"2"}).node(OnnxNode("ReduceL1", {"x"}, {"y"}).integer("noop_with_empty_axes", 1)).output("y");
  expect_result(model, {f32({2}, {-1, 2})}, {2}, {1, 2});
}

// ---- What is known of shapes ----

TEST(OnnxOps, DimsGoThroughFloats) {
  // Twice the height less a half, as exporters write it: Floor(Cast(h) * 1.5).
  OnnxModel model(13);
  model.input("x", {"h", "w"}).initializer(floats("f", {}, {1.5f})).initializer(ints("zero", {}, {0}));
  model.initializer(ints("one", {1}, {1}))
      .node(OnnxNode("Shape", {"x"}, {"s"}))
      .node(OnnxNode("Gather", {"s", "zero"}, {"h"}))
      .node(OnnxNode("Cast", {"h"}, {"hf"}).integer("to", 1))
      .node(OnnxNode("Mul", {"hf", "f"}, {"hm"}))
      .node(OnnxNode("Floor", {"hm"}, {"hl"}))
      .node(OnnxNode("Cast", {"hl"}, {"hi"}).integer("to", 7))
      .node(OnnxNode("Unsqueeze", {"hi", "axis"}, {"hu"}))
      .node(OnnxNode("Concat", {"hu", "one"}, {"t"}).integer("axis", 0))
      .node(OnnxNode("Resize", {"x", "", "", "t"}, {"y"}).text("mode", "nearest"))
      .initializer(ints("axis", {1}, {0}))
      .output("y");
  EXPECT_EQ(result_of(model, {Tensor::zeros(DType::f32, {3, 4})}).size(), 4u);
  EXPECT_EQ(result_of(model, {Tensor::zeros(DType::f32, {2, 1})}).size(), 3u);
}

TEST(OnnxOps, TargetsOfExpandWithMinusOne) {
  // Where(Equal(shape, -1), 1, shape): what exporters write before Expand.
  OnnxModel model(13);
  model.input("x", {"n", "1"})
      .initializer(ints("four", {1}, {4}))
      .initializer(ints("zero", {1}, {0}))
      .initializer(ints("minus", {2}, {-1, -1}))
      .initializer(ints("ones", {2}, {1, 1}))
      .node(OnnxNode("Shape", {"x"}, {"s"}))
      .node(OnnxNode("Gather", {"s", "zero"}, {"n"}))
      .node(OnnxNode("Concat", {"n", "four"}, {"t"}).integer("axis", 0))
      .node(OnnxNode("Equal", {"t", "minus"}, {"e"}))
      .node(OnnxNode("Where", {"e", "ones", "t"}, {"w"}))
      .node(OnnxNode("Expand", {"x", "w"}, {"y"}))
      .output("y");
  expect_result(model, {f32({2, 1}, {1, 2})}, {2, 4}, {1, 1, 1, 1, 2, 2, 2, 2});
}

TEST(OnnxOps, SplitOfAShape) {
  OnnxModel model(13);
  model.input("x", {"a", "b"})
      .initializer(ints("minus", {1}, {-1}))
      .node(OnnxNode("Shape", {"x"}, {"s"}))
      .node(OnnxNode("Split", {"s"}, {"p", "q"}))
      .node(OnnxNode("Mul", {"p", "q"}, {"t"}))
      .node(OnnxNode("Reshape", {"x", "t"}, {"y"}))
      .output("y");
  expect_result(model, {f32({2, 2}, {1, 2, 3, 4})}, {4}, {1, 2, 3, 4});
}

// ---- Old versions ----

TEST(OnnxOps, OldBroadcastingInTheMiddle) {
  OnnxModel model(6);
  model.input("x", {"1", "2", "2"}).initializer(floats("b", {2}, {10, 20}));
  model.node(OnnxNode("Add", {"x", "b"}, {"y"}).integer("broadcast", 1).integer("axis", 1)).output("y");
  expect_result(model, {f32({1, 2, 2}, {1, 2, 3, 4})}, {1, 2, 2}, {11, 12, 23, 24});
}

TEST(OnnxOps, OldTrainingDefaultsAreRefused) {
  EXPECT_NE(refusal(one_node(OnnxNode("Dropout", {"x"}, {"y"}), {"2"}, 6)).find("training"), std::string::npos);
  expect_result(one_node(OnnxNode("Dropout", {"x"}, {"y"}).integer("is_test", 1), {"2"}, 6), {f32({2}, {1, 2})}, {2},
                {1, 2});
}

}  // namespace
}  // namespace quartet
