// An ONNX model as plain structs, read from its wire format. Strings and data are views into the bytes given. Only what
// the importer uses is kept; unknown fields are skipped.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace quartet::import::onnx {

// TensorProto.DataType
enum class ElementType : int32_t {
  undefined = 0,
  f32 = 1,
  u8 = 2,
  i8 = 3,
  u16 = 4,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  string = 8,
  boolean = 9,
  f16 = 10,
  f64 = 11,
  u32 = 12,
  u64 = 13,
  complex64 = 14,
  complex128 = 15,
  bf16 = 16,
};

struct Tensor {
  std::string_view name;
  int32_t element_type = 0;
  std::vector<int64_t> dims;
  std::optional<std::string_view> raw;
  // Typed fields; which one holds the data depends on the element type.
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<int32_t> ints32;
  std::vector<int64_t> ints64;
  std::vector<uint64_t> uints64;
  bool external = false;
  std::string_view location;
  std::optional<int64_t> offset, length;
};

struct Graph;

struct Attribute {
  std::string_view name;
  int32_t type = 0;  // AttributeProto.AttributeType, 0 in old models
  float f = 0;
  int64_t i = 0;
  std::string_view s;
  std::optional<Tensor> tensor;
  std::vector<Graph> graph;  // none or one
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string_view> strings;
};

struct Node {
  std::string_view op, domain, name;
  std::vector<std::string_view> inputs, outputs;
  std::vector<Attribute> attributes;
};

struct Dim {
  std::optional<int64_t> value;
  std::string_view parameter;
};

struct ValueInfo {
  std::string_view name;
  bool is_tensor = false;
  int32_t element_type = 0;
  std::optional<std::vector<Dim>> shape;
};

struct Graph {
  std::string_view name;
  std::vector<Node> nodes;
  std::vector<Tensor> initializers;
  std::vector<ValueInfo> inputs, outputs;
  bool sparse_initializers = false;
};

struct Opset {
  std::string_view domain;
  int64_t version = 0;
};

struct Model {
  int64_t ir_version = 0;
  std::vector<Opset> opsets;
  std::optional<Graph> graph;
  size_t functions = 0;
};

// Failures: corrupt. Depth of nested graphs is bounded.
Result<Model> read_model(std::span<const uint8_t> bytes);

}  // namespace quartet::import::onnx
