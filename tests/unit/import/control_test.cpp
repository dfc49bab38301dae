// If, Loop, Scan and the recurrent ops: what models mean, by running the imported graph on the interpreter.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "import/onnx/onnx.h"
#include "reference/graph_interpreter.h"
#include "reference/graph_ops.h"
#include "unit/import/onnx_model.h"

namespace quartet {
namespace {

using reference::Tensor;
using test::Dims;
using test::OnnxModel;
using test::OnnxNode;

Tensor f32(Dims dims, const std::vector<double>& values) {
  Tensor tensor = Tensor::zeros(DType::f32, std::move(dims));
  for (size_t i = 0; i < tensor.elements.size(); ++i) tensor.elements[i] = reference::bits_of(DType::f32, values[i]);
  return tensor;
}
Tensor scalar(DType dtype, int64_t value) {
  Tensor tensor = Tensor::zeros(dtype, {});
  tensor.elements[0] = value;
  return tensor;
}

Result<std::vector<Tensor>> run(const OnnxModel& model, const std::vector<Tensor>& inputs) {
  QUARTET_ASSIGN(const auto graph, import::import_onnx(model.bytes()));
  return reference::interpret(*graph, inputs);
}

void expect_values(const Result<std::vector<Tensor>>& outputs, size_t index, const Dims& dims,
                   const std::vector<double>& values) {
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  const Tensor& got = (*outputs)[index];
  EXPECT_EQ(got.dims, dims);
  ASSERT_EQ(got.elements.size(), values.size());
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(static_cast<double>(reference::number_of(got.dtype, got.elements[i])), values[i], 1e-5) << i;
}

constexpr int32_t kBool = 9, kI64 = 7;

OnnxModel graph_of(const OnnxNode& node, const std::string& output) { return OnnxModel().node(node).output(output); }

TEST(OnnxIf, BranchesUseWhatIsOutside) {
  // The constant is asked for inside both branches and outside: each place makes its own.
  const auto yes = graph_of(OnnxNode("Add", {"x", "two"}, {"a"}), "a"),
             no = graph_of(OnnxNode("Mul", {"x", "two"}, {"b"}), "b");
  const auto model =
      OnnxModel()
          .initializer(test::floats("two", {1}, {2}))
          .input("c", {}, kBool)
          .input("x", {"3"})
          .node(OnnxNode("If", {"c"}, {"y"}).graph("then_branch", yes.graph()).graph("else_branch", no.graph()))
          .node(OnnxNode("Sub", {"y", "two"}, {"z"}))
          .output("z");
  expect_values(run(model, {scalar(DType::boolean, 1), f32({3}, {1, 2, 3})}), 0, {3}, {1, 2, 3});
  expect_values(run(model, {scalar(DType::boolean, 0), f32({3}, {1, 2, 3})}), 0, {3}, {0, 2, 4});
}

TEST(OnnxIf, ABranchThatIsNeverTakenMayBeAnything) {
  const auto yes = graph_of(OnnxNode("Relu", {"x"}, {"a"}), "a"),
             no = graph_of(OnnxNode("NoSuchOp", {"x"}, {"b"}), "b");
  const auto model =
      OnnxModel()
          .input("x", {"2", "3"})
          .node(OnnxNode("Shape", {"x"}, {"s"}))
          .node(OnnxNode("Size", {"s"}, {"n"}))
          .node(OnnxNode("Constant", {}, {"k"}).tensor("value", test::ints("", {}, {2})))
          .node(OnnxNode("Equal", {"n", "k"}, {"c"}))
          .node(OnnxNode("If", {"c"}, {"y"}).graph("then_branch", yes.graph()).graph("else_branch", no.graph()))
          .output("y");
  expect_values(run(model, {f32({2, 3}, {-1, 2, -3, 4, -5, 6})}), 0, {2, 3}, {0, 2, 0, 4, 0, 6});
}

TEST(OnnxIf, AnUnsupportedOpInsideIsNamed) {
  const auto yes = graph_of(OnnxNode("Relu", {"x"}, {"a"}), "a"),
             no = graph_of(OnnxNode("NoSuchOp", {"x"}, {"b"}), "b");
  const auto model =
      OnnxModel()
          .input("c", {}, kBool)
          .input("x", {"3"})
          .node(OnnxNode("If", {"c"}, {"y"}).graph("then_branch", yes.graph()).graph("else_branch", no.graph()))
          .output("y");
  const auto graph = import::import_onnx(model.bytes());
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.status().code(), Code::unsupported);
  EXPECT_NE(graph.status().message().find("1 node is not supported:\n  NoSuchOp"), std::string::npos)
      << graph.status().message();
}

TEST(OnnxIf, ABranchThatContradictsItselfFailsWhenTaken) {
  const auto yes = graph_of(OnnxNode("Relu", {"x"}, {"a"}), "a"),
             no = graph_of(OnnxNode("MatMul", {"x", "x"}, {"b"}), "b");
  const auto model =
      OnnxModel()
          .input("c", {}, kBool)
          .input("x", {"2", "3"})
          .node(OnnxNode("If", {"c"}, {"y"}).graph("then_branch", yes.graph()).graph("else_branch", no.graph()))
          .output("y");
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_values(run(model, {scalar(DType::boolean, 1), x}), 0, {2, 3}, {1, 2, 3, 4, 5, 6});
  const auto failed = run(model, {scalar(DType::boolean, 0), x});
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.status().message().find("the else branch cannot run"), std::string::npos)
      << failed.status().message();
}

TEST(OnnxIf, ASqueezeOfASymbolicAxisHoldsTheRunToIt) {
  const auto yes = graph_of(OnnxNode("Squeeze", {"x", "one"}, {"a"}), "a"),
             no = graph_of(OnnxNode("Identity", {"x"}, {"b"}), "b");
  const auto model =
      OnnxModel()
          .initializer(test::ints("one", {1}, {1}))
          .initializer(test::ints("k", {}, {1}))
          .input("x", {"3", "n"})
          .node(OnnxNode("Shape", {"x"}, {"s"}))
          .node(OnnxNode("Gather", {"s", "k"}, {"e"}).integer("axis", 0))
          .node(OnnxNode("Equal", {"e", "k"}, {"c"}))
          .node(OnnxNode("If", {"c"}, {"y"}).graph("then_branch", yes.graph()).graph("else_branch", no.graph()))
          .output("y");
  expect_values(run(model, {f32({3, 1}, {1, 2, 3})}), 0, {3}, {1, 2, 3});
  const auto failed = run(model, {f32({3, 2}, {1, 2, 3, 4, 5, 6})});
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.status().message().find("does not have extent 1"), std::string::npos) << failed.status().message();
}

// Body: (i, c, v) -> (i < limit, v + v, v).
OnnxModel doubling() {
  return OnnxModel()
      .input("i", {}, kI64)
      .input("cond_in", {}, kBool)
      .input("v", {"2"})
      .node(OnnxNode("Less", {"i", "limit"}, {"cond_out"}))
      .node(OnnxNode("Add", {"v", "v"}, {"v_out"}))
      .node(OnnxNode("Identity", {"v"}, {"row"}))
      .output("cond_out")
      .output("v_out")
      .output("row");
}

TEST(OnnxLoop, ATripCountAloneIgnoresTheBodysCondition) {
  const auto model = OnnxModel()
                         .initializer(test::ints("m", {}, {3}))
                         .initializer(test::ints("limit", {}, {0}))
                         .input("x", {"2"})
                         .node(OnnxNode("Loop", {"m", "", "x"}, {"y", "rows"}).graph("body", doubling().graph()))
                         .output("y")
                         .output("rows");
  const auto outputs = run(model, {f32({2}, {1, 3})});
  expect_values(outputs, 0, {2}, {8, 24});
  expect_values(outputs, 1, {3, 2}, {1, 3, 2, 6, 4, 12});
}

TEST(OnnxLoop, AConditionEndsItAndSetsADim) {
  const auto model = OnnxModel()
                         .initializer(test::ints("m", {}, {9}))
                         .input("limit", {}, kI64)
                         .input("go", {}, kBool)
                         .input("x", {"2"})
                         .node(OnnxNode("Loop", {"m", "go", "x"}, {"y", "rows"}).graph("body", doubling().graph()))
                         .output("y")
                         .output("rows");
  const auto some = run(model, {scalar(DType::i64, 1), scalar(DType::boolean, 1), f32({2}, {1, 3})});
  expect_values(some, 0, {2}, {4, 12});
  expect_values(some, 1, {2, 2}, {1, 3, 2, 6});
  const auto none = run(model, {scalar(DType::i64, 1), scalar(DType::boolean, 0), f32({2}, {1, 3})});
  expect_values(none, 0, {2}, {1, 3});
  expect_values(none, 1, {0, 2}, {});
}

TEST(OnnxLoop, ATripCountThatIsAnInput) {
  const auto model = OnnxModel()
                         .initializer(test::ints("limit", {}, {100}))
                         .input("m", {}, kI64)
                         .input("x", {"2"})
                         .node(OnnxNode("Loop", {"m", "", "x"}, {"y", "rows"}).graph("body", doubling().graph()))
                         .output("rows");
  for (const int64_t trips : {3, 0, 200}) {
    const auto outputs = run(model, {scalar(DType::i64, trips), f32({2}, {1, 0})});
    ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    EXPECT_EQ((*outputs)[0].dims, (std::vector<int64_t>{trips, 2}));
  }
  expect_values(run(model, {scalar(DType::i64, 3), f32({2}, {1, 3})}), 0, {3, 2}, {1, 3, 2, 6, 4, 12});
}

TEST(OnnxLoop, ATripCountThatIsNoBoundPlansNoMemory) {
  const auto model = OnnxModel()
                         .initializer(test::ints("m", {}, {INT64_MAX}))
                         .input("limit", {}, kI64)
                         .input("go", {}, kBool)
                         .input("x", {"2"})
                         .node(OnnxNode("Loop", {"m", "go", "x"}, {"y", "rows"}).graph("body", doubling().graph()))
                         .output("rows");
  expect_values(run(model, {scalar(DType::i64, 1), scalar(DType::boolean, 1), f32({2}, {1, 3})}), 0, {2, 2},
                {1, 3, 2, 6});
}

TEST(OnnxLoop, AValueThatGrows) {
  const auto body = OnnxModel()
                        .input("i", {}, kI64)
                        .input("cond_in", {}, kBool)
                        .input("v", {"n"})
                        .input("w", {"n"})
                        .node(OnnxNode("Concat", {"v", "x"}, {"v_out"}).integer("axis", 0))
                        .node(OnnxNode("Add", {"v_out", "v_out"}, {"w_out"}))
                        .output("cond_in")
                        .output("v_out")
                        .output("w_out");
  const auto model = OnnxModel()
                         .input("m", {}, kI64)
                         .input("x", {"2"})
                         .node(OnnxNode("Loop", {"m", "", "x", "x"}, {"y", "z"}).graph("body", body.graph()))
                         .node(OnnxNode("Add", {"y", "z"}, {"sum"}))
                         .output("y")
                         .output("sum");
  const auto outputs = run(model, {scalar(DType::i64, 2), f32({2}, {1, 3})});
  expect_values(outputs, 0, {6}, {1, 3, 1, 3, 1, 3});
  expect_values(outputs, 1, {6}, {3, 9, 3, 9, 3, 9});
  expect_values(run(model, {scalar(DType::i64, 0), f32({2}, {1, 3})}), 1, {2}, {2, 6});
}

TEST(OnnxLoop, ValuesThatGrowInTheirOwnWays) {
  const auto body = OnnxModel()
                        .input("i", {}, kI64)
                        .input("cond_in", {}, kBool)
                        .input("v", {"n"})
                        .input("w", {"n"})
                        .node(OnnxNode("Concat", {"v", "w"}, {"v_out"}).integer("axis", 0))
                        .output("cond_in")
                        .output("v_out")
                        .output("v");
  const auto model = OnnxModel()
                         .input("m", {}, kI64)
                         .input("x", {"1"})
                         .node(OnnxNode("Loop", {"m", "", "x", "x"}, {"y", "z"}).graph("body", body.graph()))
                         .output("y")
                         .output("z");
  const auto outputs = run(model, {scalar(DType::i64, 4), f32({1}, {2})});
  expect_values(outputs, 0, {8}, {2, 2, 2, 2, 2, 2, 2, 2});
  expect_values(outputs, 1, {5}, {2, 2, 2, 2, 2});
}

TEST(OnnxLoop, AValueThatChangesItsRankIsRefused) {
  const auto body = OnnxModel()
                        .initializer(test::ints("axes", {1}, {0}))
                        .input("i", {}, kI64)
                        .input("cond_in", {}, kBool)
                        .input("v", {"n"})
                        .node(OnnxNode("Unsqueeze", {"v", "axes"}, {"v_out"}))
                        .output("cond_in")
                        .output("v_out");
  const auto model = OnnxModel()
                         .initializer(test::ints("m", {}, {3}))
                         .input("x", {"2"})
                         .node(OnnxNode("Loop", {"m", "", "x"}, {"y"}).graph("body", body.graph()))
                         .output("y");
  const auto graph = import::import_onnx(model.bytes());
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.status().message().find("carried value 0 changes its type from f32[2] to f32[1, 2]"),
            std::string::npos)
      << graph.status().message();
}

TEST(OnnxIf, BranchesOfDifferentDims) {
  const auto yes = OnnxModel().node(OnnxNode("Concat", {"x", "x"}, {"b"}).integer("axis", 0)).output("b");
  const auto no = OnnxModel().node(OnnxNode("Neg", {"x"}, {"b"})).output("b");
  const auto model =
      OnnxModel()
          .input("c", {}, kBool)
          .input("x", {"n"})
          .node(OnnxNode("If", {"c"}, {"y"}).graph("then_branch", yes.graph()).graph("else_branch", no.graph()))
          .node(OnnxNode("Add", {"y", "y"}, {"z"}))
          .output("z");
  expect_values(run(model, {scalar(DType::boolean, 1), f32({2}, {1, 3})}), 0, {4}, {2, 6, 2, 6});
  expect_values(run(model, {scalar(DType::boolean, 0), f32({2}, {1, 3})}), 0, {2}, {-2, -6});
}

TEST(OnnxScan, DirectionsAndAxes) {
  // Running sums of columns, from the last column to the first; stacked along axis 1 from the end again.
  const auto body = OnnxModel()
                        .input("s", {"2"})
                        .input("c", {"2"})
                        .node(OnnxNode("Add", {"s", "c"}, {"s_out"}))
                        .node(OnnxNode("Identity", {"s_out"}, {"o"}))
                        .output("s_out")
                        .output("o");
  const auto model = OnnxModel()
                         .input("s0", {"2"})
                         .input("x", {"2", "n"})
                         .node(OnnxNode("Scan", {"s0", "x"}, {"s", "y"})
                                   .graph("body", body.graph())
                                   .integer("num_scan_inputs", 1)
                                   .integers("scan_input_axes", {1})
                                   .integers("scan_input_directions", {1})
                                   .integers("scan_output_axes", {-1})
                                   .integers("scan_output_directions", {1}))
                         .output("s")
                         .output("y");
  const auto outputs = run(model, {f32({2}, {0, 10}), f32({2, 3}, {1, 2, 3, 4, 5, 6})});
  expect_values(outputs, 0, {2}, {6, 25});
  expect_values(outputs, 1, {2, 3}, {6, 5, 3, 25, 21, 16});
}

// One unit, weights 1, no bias: numbers to be followed by hand.
TEST(OnnxRnn, ActivationsClipAndLengths) {
  const auto model = OnnxModel(14)
                         .initializer(test::floats("w", {1, 1, 1}, {1}))
                         .initializer(test::floats("r", {1, 1, 1}, {1}))
                         .input("x", {"3", "2", "1"})
                         .input("lengths", {"2"}, 6)
                         .node(OnnxNode("RNN", {"x", "w", "r", "", "lengths"}, {"y", "h"})
                                   .integer("hidden_size", 1)
                                   .number("clip", 4)
                                   .text("direction", "reverse")
                                   .texts("activations", {"affine"}))
                         .output("y")
                         .output("h");
  Tensor lengths = Tensor::zeros(DType::i32, {2});
  lengths.elements = {3, 1};
  // Batch 0 in reverse: 3, then 2 + 3 clipped to 4, then 1 + 4 clipped to 4. Batch 1: only its first step.
  const auto outputs = run(model, {f32({3, 2, 1}, {1, 1, 2, 2, 3, 3}), lengths});
  expect_values(outputs, 0, {3, 1, 2, 1}, {4, 1, 4, 0, 3, 0});
  expect_values(outputs, 1, {1, 2, 1}, {4, 1});
}

TEST(OnnxLstm, SymbolicDimsThatMustBeEqualAreAssumedToBe) {
  const auto model = OnnxModel(14)
                         .initializer(test::floats("w", {1, 4, 1}, {1, 1, 1, 1}))
                         .initializer(test::floats("r", {1, 4, 1}, {1, 1, 1, 1}))
                         .input("x", {"1", "n", "1"})
                         .input("h", {"1", "m", "1"})
                         .node(OnnxNode("LSTM", {"x", "w", "r", "", "", "h"}, {"y"}).integer("hidden_size", 1))
                         .output("y");
  const auto graph = import::import_onnx(model.bytes());
  EXPECT_TRUE(graph.ok()) << graph.status().message();
}

TEST(OnnxLstm, AnUnknownActivationIsNamed) {
  const auto model = OnnxModel(14)
                         .initializer(test::floats("w", {1, 4, 1}, {1, 1, 1, 1}))
                         .initializer(test::floats("r", {1, 4, 1}, {1, 1, 1, 1}))
                         .input("x", {"3", "2", "1"})
                         .node(OnnxNode("LSTM", {"x", "w", "r"}, {"y"})
                                   .integer("hidden_size", 1)
                                   .texts("activations", {"Sigmoid", "Swish", "Tanh"}))
                         .output("y");
  const auto graph = import::import_onnx(model.bytes());
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.status().message().find("the activation 'Swish'"), std::string::npos) << graph.status().message();
}

}  // namespace
}  // namespace quartet
