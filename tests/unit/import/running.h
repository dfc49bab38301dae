// Models imported and run on the interpreter, for tests of the importer.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "import/onnx/onnx.h"
#include "reference/graph_interpreter.h"
#include "reference/graph_ops.h"
#include "unit/import/onnx_model.h"

namespace quartet::test {

using reference::Tensor;

inline Tensor f32(Dims dims, const std::vector<double>& values) {
  Tensor tensor = Tensor::zeros(DType::f32, std::move(dims));
  for (size_t i = 0; i < tensor.elements.size(); ++i) tensor.elements[i] = reference::bits_of(DType::f32, values[i]);
  return tensor;
}

inline std::shared_ptr<const graph::Graph> imported(const OnnxModel& model) {
  auto graph = import::import_onnx(model.bytes());
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return graph.ok() ? *graph : nullptr;
}

inline std::string refusal(const OnnxModel& model) {
  const auto graph = import::import_onnx(model.bytes());
  EXPECT_FALSE(graph.ok());
  return graph.ok() ? "" : graph.status().message();
}

// Runs a model of one output and compares shape and numbers.
inline void expect_result(const OnnxModel& model, const std::vector<Tensor>& inputs, const Dims& dims,
                          const std::vector<double>& values) {
  const auto graph = imported(model);
  ASSERT_TRUE(graph);
  const auto outputs = reference::interpret(*graph, inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  const Tensor& got = outputs->at(0);
  EXPECT_EQ(got.dims, dims);
  ASSERT_EQ(got.elements.size(), values.size());
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(static_cast<double>(reference::number_of(got.dtype, got.elements[i])), values[i], 1e-5) << i;
}

inline OnnxModel one_node(const OnnxNode& node, const std::vector<std::string>& dims, int64_t opset = 13) {
  return OnnxModel(opset).input("x", dims).node(node).output("y");
}

// The numbers of output `o`, NaN where nothing was computed.
inline std::vector<double> result_of(const OnnxModel& model, const std::vector<Tensor>& inputs, size_t o = 0) {
  const auto graph = imported(model);
  if (!graph) return {};
  const auto outputs = reference::interpret(*graph, inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status().message();
  std::vector<double> numbers;
  if (!outputs.ok()) return numbers;
  const Tensor& got = outputs->at(o);
  for (const int64_t bits : got.elements) numbers.push_back(static_cast<double>(reference::number_of(got.dtype, bits)));
  return numbers;
}

inline Tensor i64(Dims dims, const std::vector<int64_t>& values) {
  Tensor tensor = Tensor::zeros(DType::i64, std::move(dims));
  tensor.elements = values;
  return tensor;
}

}  // namespace quartet::test
