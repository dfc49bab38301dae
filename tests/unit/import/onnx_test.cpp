// The importer: what models mean, by running the imported graph on the interpreter, and what it refuses.
#include "import/onnx/onnx.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <random>

#include "reference/graph_interpreter.h"
#include "reference/graph_ops.h"
#include "unit/import/running.h"

namespace quartet {
namespace {

using reference::Tensor;
using test::Dims;
using test::expect_result;
using test::f32;
using test::imported;
using test::one_node;
using test::OnnxModel;
using test::OnnxNode;
using test::refusal;

TEST(Onnx, GemmScalesAndTransposes) {
  OnnxModel model(13);
  model.input("a", {"n", "2"})
      .initializer(test::floats("w", {2, 2}, {1, 2, 3, 4}))
      .initializer(test::floats("c", {2}, {10, 20}))
      .node(OnnxNode("Gemm", {"a", "w", "c"}, {"y"}).integer("transB", 1).number("alpha", 2).number("beta", 0.5f))
      .output("y");
  expect_result(model, {f32({1, 2}, {1, 1})}, {1, 2}, {2 * 3 + 5, 2 * 7 + 10});
  const auto graph = imported(model);
  ASSERT_TRUE(graph);
  ASSERT_EQ(graph->symbols.size(), 1u);
  EXPECT_EQ(graph->symbols[0].name, "n");
  EXPECT_EQ(graph->main().output_names[0], "y");
}

TEST(Onnx, ShapeArithmeticBecomesDims) {
  // Reshape(x, Concat(Shape(x)[0], -1)) and back again by Shape.
  OnnxModel model(13);
  model.input("x", {"batch", "2", "3"})
      .initializer(test::ints("zero", {1}, {0}))
      .initializer(test::ints("minus", {1}, {-1}))
      .node(OnnxNode("Shape", {"x"}, {"s"}))
      .node(OnnxNode("Gather", {"s", "zero"}, {"b"}))
      .node(OnnxNode("Concat", {"b", "minus"}, {"t"}).integer("axis", 0))
      .node(OnnxNode("Reshape", {"x", "t"}, {"y"}))
      .output("y");
  const auto graph = imported(model);
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->main().body.ops.size(), 1u) << graph::print(*graph);
  expect_result(model, {f32({2, 2, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})}, {2, 6},
                {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
}

TEST(Onnx, ShapeCanBeAnOutput) {
  OnnxModel model(15);
  model.input("x", {"n", "4"}).node(OnnxNode("Shape", {"x"}, {"y"})).output("y");
  expect_result(model, {Tensor::zeros(DType::f32, {3, 4})}, {2}, {3, 4});
}

TEST(Onnx, SoftmaxBefore13TakesTrailingAxesAsOne) {
  const Tensor x = f32({1, 2, 2}, {0, 0, 0, 0});
  expect_result(one_node(OnnxNode("Softmax", {"x"}, {"y"}), {"1", "2", "2"}, 11), {x}, {1, 2, 2},
                {0.25, 0.25, 0.25, 0.25});
  expect_result(one_node(OnnxNode("Softmax", {"x"}, {"y"}), {"1", "2", "2"}, 13), {x}, {1, 2, 2}, {0.5, 0.5, 0.5, 0.5});
}

TEST(Onnx, SliceByAttributesAndInputs) {
  const Tensor x = f32({5}, {0, 1, 2, 3, 4});
  expect_result(
      one_node(OnnxNode("Slice", {"x"}, {"y"}).integers("starts", {-3}).integers("ends", {INT64_MAX}), {"5"}, 9), {x},
      {3}, {2, 3, 4});
  OnnxModel model(13);
  model.input("x", {"n"})
      .initializer(test::ints("starts", {1}, {-1}))
      .initializer(test::ints("ends", {1}, {INT64_MIN}))
      .initializer(test::ints("axes", {1}, {0}))
      .initializer(test::ints("steps", {1}, {-2}))
      .node(OnnxNode("Slice", {"x", "starts", "ends", "axes", "steps"}, {"y"}))
      .output("y");
  expect_result(model, {x}, {3}, {4, 2, 0});
}

TEST(Onnx, SplitAndPad) {
  OnnxModel split(13);
  split.input("x", {"5"})
      .initializer(test::ints("parts", {2}, {2, 3}))
      .node(OnnxNode("Split", {"x", "parts"}, {"", "y"}))
      .output("y");
  expect_result(split, {f32({5}, {0, 1, 2, 3, 4})}, {3}, {2, 3, 4});
  OnnxModel pad(11);
  pad.input("x", {"3"})
      .initializer(test::ints("pads", {2}, {-1, 2}))
      .initializer(test::floats("fill", {}, {7}))
      .node(OnnxNode("Pad", {"x", "pads", "fill"}, {"y"}))
      .output("y");
  expect_result(pad, {f32({3}, {0, 1, 2})}, {4}, {1, 2, 7, 7});
}

TEST(Onnx, ReduceAxesMoveFromAttributeToInput) {
  const Tensor x = f32({2, 2}, {1, 2, 3, 4});
  expect_result(
      one_node(OnnxNode("ReduceSum", {"x"}, {"y"}).integers("axes", {-1}).integer("keepdims", 0), {"2", "2"}, 11), {x},
      {2}, {3, 7});
  OnnxModel model(18);
  model.input("x", {"2", "2"})
      .initializer(test::ints("axes", {1}, {0}))
      .node(OnnxNode("ReduceMax", {"x", "axes"}, {"y"}))
      .output("y");
  expect_result(model, {x}, {1, 2}, {3, 4});
  expect_result(one_node(OnnxNode("ReduceMean", {"x"}, {"y"}), {"2", "2"}), {x}, {1, 1}, {2.5});
}

TEST(Onnx, Activations) {
  const Tensor x = f32({3}, {-1, 0, 2});
  expect_result(one_node(OnnxNode("LeakyRelu", {"x"}, {"y"}).number("alpha", 0.5f), {"3"}), {x}, {3}, {-0.5, 0, 2});
  expect_result(one_node(OnnxNode("HardSigmoid", {"x"}, {"y"}), {"3"}), {x}, {3}, {0.3, 0.5, 0.9});
  expect_result(one_node(OnnxNode("Elu", {"x"}, {"y"}).number("alpha", 2), {"3"}), {x}, {3},
                {2 * (std::exp(-1.0) - 1), 0, 2});
  expect_result(one_node(OnnxNode("Softplus", {"x"}, {"y"}), {"3"}), {x}, {3},
                {std::log1p(std::exp(-1.0)), std::log(2.0), std::log1p(std::exp(2.0))});
  expect_result(one_node(OnnxNode("Clip", {"x"}, {"y"}).number("min", 0).number("max", 1), {"3"}, 6 + 1), {x}, {3},
                {0, 0, 1});
}

TEST(Onnx, TileExpandTranspose) {
  OnnxModel tile(13);
  tile.input("x", {"1", "2"})
      .initializer(test::ints("repeats", {2}, {2, 2}))
      .node(OnnxNode("Tile", {"x", "repeats"}, {"t"}))
      .node(OnnxNode("Transpose", {"t"}, {"y"}))
      .output("y");
  expect_result(tile, {f32({1, 2}, {1, 2})}, {4, 2}, {1, 1, 2, 2, 1, 1, 2, 2});
}

TEST(Onnx, NamelessDimsGetTheInputsName) {
  OnnxModel model(13);
  model.input("in", {"", "3"}).node(OnnxNode("Relu", {"in"}, {"y"})).output("y");
  const auto graph = imported(model);
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->symbols.at(0).name, "in.0");
}

TEST(Onnx, InitializersThatAreInputsAreConstants) {
  OnnxModel model(13);
  model.input("x", {"1"}).input("w", {"1"}).initializer(test::floats("w", {1}, {3}));
  model.node(OnnxNode("Mul", {"x", "w"}, {"y"})).output("y");
  const auto graph = imported(model);
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->main().body.arguments.size(), 1u);
}

TEST(Onnx, InitializersThatAreInputsAreDefaultsIfAsked) {
  OnnxModel model(13);
  model.input("w", {"n"}).input("x", {"n"}).initializer(test::floats("w", {1}, {3}));
  model.initializer(test::floats("c", {1}, {2}));
  model.node(OnnxNode("Mul", {"x", "w"}, {"z"})).node(OnnxNode("Mul", {"z", "c"}, {"y"})).output("y");
  const import::ImportOptions options{.initializer_inputs = true};
  const auto graph = import::import_onnx(model.bytes(), options);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ((*graph)->main().body.arguments.size(), 2u);
  ASSERT_EQ((*graph)->defaults.size(), 1u);
  EXPECT_EQ((*graph)->defaults[0].input, 0);
  EXPECT_EQ(
      reinterpret_cast<const float*>((*graph)->constants[static_cast<size_t>((*graph)->defaults[0].constant)].data)[0],
      3.0F);
  model.initializer(test::floats("w", {1}, {4}));
  EXPECT_FALSE(import::import_onnx(model.bytes(), options).ok());
  // Before IR version 4 it had to be listed.
  OnnxModel old(8, 3);
  old.input("x", {"1"}).input("w", {"1"}).initializer(test::floats("w", {1}, {3}));
  old.node(OnnxNode("Mul", {"x", "w"}, {"y"})).output("y");
  const auto constant = import::import_onnx(old.bytes(), options);
  ASSERT_TRUE(constant.ok()) << constant.status().message();
  EXPECT_EQ((*constant)->main().body.arguments.size(), 1u);
}

TEST(Onnx, ListsEveryNodeThatIsNotSupported) {
  OnnxModel model(13);
  model.input("x", {"1"})
      .initializer(test::ints("p", {2}, {1, 1}))
      .node(OnnxNode("Fancy", {"x"}, {"a"}))
      .node(OnnxNode("Relu", {"a"}, {"b"}))  // its fault is Fancy's
      .node(OnnxNode("Relu", {"x"}, {"c"}, "com.example"))
      .node(OnnxNode("Pad", {"x", "p"}, {"d"}).text("mode", "odd"))
      .output("b");
  const std::string text = refusal(model);
  EXPECT_NE(text.find("3 nodes"), std::string::npos) << text;
  EXPECT_NE(text.find("Fancy 'node_Fancy'"), std::string::npos) << text;
  EXPECT_NE(text.find("com.example::Relu"), std::string::npos) << text;
  EXPECT_NE(text.find("mode = 'odd'"), std::string::npos) << text;
}

TEST(Onnx, RefusesModelsThatContradictThemselves) {
  EXPECT_NE(refusal(OnnxModel(13).input("x", {"1"}).node(OnnxNode("Relu", {"gone"}, {"y"})).output("y")).find("'gone'"),
            std::string::npos);
  EXPECT_NE(refusal(OnnxModel(13).input("x", {"1"}).output("y")).find("output 'y'"), std::string::npos);
  EXPECT_NE(refusal(OnnxModel(99).input("x", {"1"}).output("x")).find("operator set 99"), std::string::npos);
  test::OnnxTensor short_data = test::floats("w", {4}, {1, 2});
  EXPECT_NE(refusal(OnnxModel(13).initializer(short_data).output("w")).find("8 bytes"), std::string::npos);
  test::OnnxTensor huge = test::floats("w", {INT64_MAX, INT64_MAX}, {});
  EXPECT_NE(refusal(OnnxModel(13).initializer(huge).output("w")).find("impossible size"), std::string::npos);
  EXPECT_NE(
      refusal(OnnxModel(13).input("x", {"2"}).input("z", {"3"}).node(OnnxNode("Add", {"x", "z"}, {"y"})).output("y"))
          .find("node Add 'node_Add'"),
      std::string::npos);
}

// External data stays inside the model's folder.
TEST(Onnx, ExternalFilesAreConfined) {
  const auto external = [](const std::string& location) {
    std::string entry, tensor;
    {
      protozero::pbf_writer w(entry);
      w.add_string(1, "location");
      w.add_string(2, location);
    }
    {
      protozero::pbf_writer w(tensor);
      w.add_int64(1, 2);
      w.add_int32(2, 1);
      w.add_string(8, "w");
      w.add_message(13, entry);
      w.add_int32(14, 1);
    }
    std::string graph, opset, model;
    protozero::pbf_writer(graph).add_message(5, tensor);
    {
      std::string info;
      protozero::pbf_writer(info).add_string(1, "w");
      protozero::pbf_writer(graph).add_message(12, info);
    }
    protozero::pbf_writer(opset).add_int64(2, 13);
    protozero::pbf_writer w(model);
    w.add_message(7, graph);
    w.add_message(8, opset);
    return model;
  };
  const std::string folder = testing::TempDir() + "quartet_onnx_" + std::to_string(::getpid());
  ASSERT_TRUE(real_os().make_directory(folder, 0700).ok());
  const auto write = [](const std::string& path, const std::string& bytes) { std::ofstream(path) << bytes; };
  write(folder + "/data", std::string(8, '\0'));
  const auto import = [&](const std::string& location) {
    write(folder + "/m.onnx", external(location));
    return import::import_onnx_file(folder + "/m.onnx", real_os());
  };
  EXPECT_TRUE(import("data").ok()) << import("data").status().message();
  EXPECT_FALSE(import("../data").ok());
  EXPECT_FALSE(import("/etc/passwd").ok());
  EXPECT_FALSE(import("missing").ok());
  const std::string in_memory = external("data");
  const auto bytes = reinterpret_cast<const uint8_t*>(in_memory.data());
  EXPECT_EQ(import::import_onnx({bytes, in_memory.size()}).status().code(), Code::unsupported);
  for (const char* name : {"/data", "/m.onnx"}) std::remove((folder + name).c_str());
  std::remove(folder.c_str());
}

// Damaged models give errors, never crashes.
TEST(Onnx, SurvivesDamage) {
  OnnxModel model(13);
  model.input("x", {"n", "2", "3"})
      .initializer(test::ints("shape", {2}, {0, -1}))
      .initializer(test::floats("w", {6, 2}, std::vector<float>(12, 1.0f)))
      .node(OnnxNode("Reshape", {"x", "shape"}, {"r"}))
      .node(OnnxNode("MatMul", {"r", "w"}, {"m"}))
      .node(OnnxNode("Softmax", {"m"}, {"s"}).integer("axis", -1))
      .node(OnnxNode("ReduceMean", {"s"}, {"t"}).integers("axes", {0, 1}))
      .node(OnnxNode("Constant", {}, {"c"}).tensor("value", test::floats("", {1}, {2})))
      .node(OnnxNode("Add", {"t", "c"}, {"y"}))
      .output("y");
  const std::vector<uint8_t> whole = model.bytes();
  ASSERT_TRUE(import::import_onnx(whole).ok());
  std::mt19937 rng(5);
  for (int round = 0; round < 20000; ++round) {
    std::vector<uint8_t> bytes = whole;
    for (uint32_t flips = 1 + rng() % 3; flips > 0; --flips)
      bytes[rng() % bytes.size()] ^= static_cast<uint8_t>(1u << (rng() % 8));
    if (round % 4 == 0) bytes.resize(rng() % bytes.size());
    const auto graph = import::import_onnx(bytes);
    if (graph.ok()) EXPECT_TRUE(graph::verify(**graph).ok());
  }
}

}  // namespace
}  // namespace quartet
