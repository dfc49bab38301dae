// ONNX's own backend cases through the importer and simplify, on the reference interpreter. See README.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/os.h"
#include "graph/constant.h"
#include "import/onnx/onnx.h"
#include "import/onnx/proto.h"
#include "import/onnx/tensors.h"
#include "reference/graph_interpreter.h"
#include "simplify/simplify.h"

namespace quartet {
namespace {

namespace fs = std::filesystem;
using reference::Tensor;

// A serialized TensorProto, by way of a model that holds nothing else: fields ModelProto.graph and
// GraphProto.initializer.
std::optional<Tensor> read_tensor(const fs::path& path) {
  const auto bytes = real_os().read_file(path.string(), uint64_t{1} << 30);
  if (!bytes.ok()) return std::nullopt;
  const auto field = [](uint8_t number, std::span<const uint8_t> content) {
    Bytes out{static_cast<uint8_t>(number << 3 | 2)};
    for (size_t size = content.size();; size >>= 7) {
      out.push_back(static_cast<uint8_t>((size & 0x7f) | (size > 0x7f ? 0x80 : 0)));
      if (size <= 0x7f) break;
    }
    out.insert(out.end(), content.begin(), content.end());
    return out;
  };
  Bytes model = field(7, field(5, bytes->span()));
  const Bytes opset = field(8, {});
  model.insert(model.end(), opset.begin(), opset.end());
  const auto read = import::onnx::read_model(model);
  if (!read.ok() || !read->graph || read->graph->initializers.size() != 1) return std::nullopt;
  import::onnx::ExternalFiles files;
  const auto constant = import::onnx::constant_of(read->graph->initializers[0], files, nullptr);
  if (!constant.ok()) return std::nullopt;
  std::vector<int64_t> dims;
  for (const IntExpr& dim : constant->type.shape) dims.push_back(*dim.constant());
  return Tensor::from_memory(constant->type.dtype, std::move(dims), constant->data);
}

std::string difference(const Tensor& got, const Tensor& wanted) {
  if (got.dtype != wanted.dtype)
    return std::string("type ") + dtype_name(got.dtype) + ", wanted " + dtype_name(wanted.dtype);
  if (got.dims != wanted.dims) return "another shape";
  const auto a = graph::copy_constant({got.dtype, graph::Shape(got.dims.begin(), got.dims.end())}, got.to_memory());
  const auto b =
      graph::copy_constant({wanted.dtype, graph::Shape(got.dims.begin(), got.dims.end())}, wanted.to_memory());
  for (size_t i = 0; i < wanted.elements.size(); ++i) {
    const double x = graph::element_as_double(*a, i), y = graph::element_as_double(*b, i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (!(std::fabs(x - y) <= 1e-7 + 1e-3 * std::fabs(y)))
      return "element " + std::to_string(i) + " is " + std::to_string(x) + ", wanted " + std::to_string(y);
  }
  return "";
}

enum class Outcome { passed, unsupported, failed };
struct Verdict {
  Outcome outcome = Outcome::failed;
  std::string reason;
};

std::string check_outputs(const graph::Graph& graph, const std::vector<Tensor>& inputs, const fs::path& folder) {
  const auto outputs = reference::interpret(graph, inputs);
  if (!outputs.ok()) return outputs.status().message();
  for (size_t i = 0; i < outputs->size(); ++i) {
    const auto wanted = read_tensor(folder / ("output_" + std::to_string(i) + ".pb"));
    if (!wanted) return "output " + std::to_string(i) + " cannot be read";
    if (const std::string words = difference((*outputs)[i], *wanted); !words.empty())
      return "output " + std::to_string(i) + ": " + words;
  }
  return "";
}

Verdict run_case(const fs::path& path) {
  const auto graph = import::import_onnx_file((path / "model.onnx").string(), real_os());
  if (!graph.ok()) {
    const bool unsupported = graph.status().code() == Code::unsupported;
    return {unsupported ? Outcome::unsupported : Outcome::failed, graph.status().message()};
  }
  // The data of these cases says u16, and loses the shape.
  const graph::Function& main = (*graph)->main();
  for (const auto* ids : {&main.body.arguments, &main.body.results})
    for (const graph::ValueId id : *ids)
      if (main.values[static_cast<size_t>(id)].type.dtype == DType::bf16) return {Outcome::unsupported, "bf16 data"};
  const fs::path folder = path / "test_data_set_0";
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < main.body.arguments.size(); ++i) {
    auto input = read_tensor(folder / ("input_" + std::to_string(i) + ".pb"));
    if (!input) return {Outcome::failed, "input " + std::to_string(i) + " cannot be read"};
    inputs.push_back(*std::move(input));
  }
  if (const std::string words = check_outputs(**graph, inputs, folder); !words.empty()) return {Outcome::failed, words};
  const auto simple = simplify::simplify(*graph);
  if (!simple.ok()) return {Outcome::failed, simple.status().message()};
  if (const std::string words = check_outputs(**simple, inputs, folder); !words.empty())
    return {Outcome::failed, "simplified: " + words};
  return {Outcome::passed, ""};
}

std::set<std::string> read_list(const char* path) {
  std::ifstream in(path);
  std::set<std::string> names;
  for (std::string line; std::getline(in, line);)
    if (!line.empty() && line[0] != '#') names.insert(line);
  return names;
}

TEST(NodeSuite, ListedCasesPassAndNoOtherIsWrong) {
  const std::set<std::string> listed = read_list(QUARTET_ONNX_SUPPORTED);
  ASSERT_FALSE(listed.empty());
  std::set<std::string> passed;
  size_t unsupported = 0;
  for (const char* suite : {"node", "simple", "pytorch-converted", "pytorch-operator"})
    for (const auto& entry : fs::directory_iterator(fs::path(QUARTET_ONNX_DATA) / suite)) {
      const std::string name = std::string(suite) + "/" + entry.path().filename().string();
      const Verdict verdict = run_case(entry.path());
      if (verdict.outcome == Outcome::passed) passed.insert(name);
      if (verdict.outcome == Outcome::unsupported) ++unsupported;
      EXPECT_NE(verdict.outcome, Outcome::failed) << name << ": " << verdict.reason;
      if (listed.contains(name)) EXPECT_EQ(verdict.outcome, Outcome::passed) << name << ": " << verdict.reason;
    }
  if (const char* path = std::getenv("QUARTET_UPDATE_ONNX_LIST")) {
    std::ofstream out(path);
    out << "# Cases that must pass, written by QUARTET_UPDATE_ONNX_LIST=FILE onnx_node_suite.\n";
    for (const std::string& name : passed) out << name << "\n";
    return;
  }
  for (const std::string& name : passed) EXPECT_TRUE(listed.contains(name)) << name << " passes and is not in the list";
  RecordProperty("passed", static_cast<int>(passed.size()));
  RecordProperty("unsupported", static_cast<int>(unsupported));
}

}  // namespace
}  // namespace quartet
