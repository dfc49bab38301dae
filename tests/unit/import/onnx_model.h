// Small ONNX models as bytes, for tests of the importer.
#pragma once

#include <cstdint>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <vector>

namespace quartet::test {

using Dims = std::vector<int64_t>;

struct OnnxTensor {
  std::string name;
  int32_t type = 1;
  Dims dims;
  std::string raw;

  std::string bytes() const {
    std::string out;
    protozero::pbf_writer w(out);
    for (const int64_t d : dims) w.add_int64(1, d);
    w.add_int32(2, type);
    if (!name.empty()) w.add_string(8, name);
    w.add_string(9, raw);
    return out;
  }
};

inline OnnxTensor floats(std::string name, Dims dims, const std::vector<float>& values) {
  return {std::move(name), 1, std::move(dims), {reinterpret_cast<const char*>(values.data()), values.size() * 4}};
}
inline OnnxTensor ints(std::string name, Dims dims, const std::vector<int64_t>& values) {
  return {std::move(name), 7, std::move(dims), {reinterpret_cast<const char*>(values.data()), values.size() * 8}};
}

// A node being described; attributes are added by name.
class OnnxNode {
 public:
  OnnxNode(const std::string& op, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
           const std::string& domain = "") {
    protozero::pbf_writer w(bytes_);
    for (const std::string& input : inputs) w.add_string(1, input);
    for (const std::string& output : outputs) w.add_string(2, output);
    w.add_string(3, "node_" + op);
    w.add_string(4, op);
    if (!domain.empty()) w.add_string(7, domain);
  }
  OnnxNode& integer(const std::string& name, int64_t value) {
    return attribute(name, 2, [&](protozero::pbf_writer& w) { w.add_int64(3, value); });
  }
  OnnxNode& number(const std::string& name, float value) {
    return attribute(name, 1, [&](protozero::pbf_writer& w) { w.add_float(2, value); });
  }
  OnnxNode& integers(const std::string& name, const Dims& values) {
    return attribute(name, 7, [&](protozero::pbf_writer& w) { w.add_packed_int64(8, values.begin(), values.end()); });
  }
  OnnxNode& text(const std::string& name, const std::string& value) {
    return attribute(name, 3, [&](protozero::pbf_writer& w) { w.add_string(4, value); });
  }
  OnnxNode& tensor(const std::string& name, const OnnxTensor& value) {
    return attribute(name, 4, [&](protozero::pbf_writer& w) { w.add_message(5, value.bytes()); });
  }
  OnnxNode& texts(const std::string& name, const std::vector<std::string>& values) {
    return attribute(name, 8, [&](protozero::pbf_writer& w) {
      for (const std::string& value : values) w.add_string(9, value);
    });
  }
  // `graph`: OnnxModel::graph of the graph inside.
  OnnxNode& graph(const std::string& name, const std::string& graph) {
    return attribute(name, 5, [&](protozero::pbf_writer& w) { w.add_message(6, graph); });
  }
  const std::string& bytes() const { return bytes_; }

 private:
  template <class Fill>
  OnnxNode& attribute(const std::string& name, int32_t type, Fill fill) {
    std::string out;
    {
      protozero::pbf_writer w(out);
      w.add_string(1, name);
      fill(w);
      w.add_int32(20, type);
    }
    protozero::pbf_writer(bytes_).add_message(5, out);
    return *this;
  }
  std::string bytes_;
};

// A whole model. A dim of an input is a number, or a name where it begins with a letter.
class OnnxModel {
 public:
  explicit OnnxModel(int64_t opset = 13, int64_t ir_version = 8) : opset_(opset), ir_version_(ir_version) {}
  OnnxModel& input(const std::string& name, const std::vector<std::string>& dims, int32_t type = 1) {
    return value(11, name, dims, type);
  }
  OnnxModel& output(const std::string& name, const std::vector<std::string>& dims = {}) {
    return value(12, name, dims, 1);
  }
  OnnxModel& initializer(const OnnxTensor& tensor) {
    protozero::pbf_writer(graph_).add_message(5, tensor.bytes());
    return *this;
  }
  OnnxModel& node(const OnnxNode& node) {
    protozero::pbf_writer(graph_).add_message(1, node.bytes());
    return *this;
  }
  const std::string& graph() const { return graph_; }
  std::vector<uint8_t> bytes() const {
    std::string out, opset;
    protozero::pbf_writer(opset).add_int64(2, opset_);
    protozero::pbf_writer w(out);
    w.add_int64(1, ir_version_);
    w.add_message(7, graph_);
    w.add_message(8, opset);
    return {out.begin(), out.end()};
  }

 private:
  OnnxModel& value(uint32_t field, const std::string& name, const std::vector<std::string>& dims, int32_t type) {
    std::string shape, tensor, wrapped, info;
    for (const std::string& dim : dims) {
      std::string d;
      if (dim.empty() || dim[0] > '9')
        protozero::pbf_writer(d).add_string(2, dim);
      else
        protozero::pbf_writer(d).add_int64(1, std::stoll(dim));
      protozero::pbf_writer(shape).add_message(1, d);
    }
    {
      protozero::pbf_writer w(tensor);
      w.add_int32(1, type);
      w.add_message(2, shape);
    }
    protozero::pbf_writer(wrapped).add_message(1, tensor);
    {
      protozero::pbf_writer w(info);
      w.add_string(1, name);
      w.add_message(2, wrapped);
    }
    protozero::pbf_writer(graph_).add_message(field, info);
    return *this;
  }

  int64_t opset_, ir_version_;
  std::string graph_;
};

}  // namespace quartet::test
