// ONNX's own backend cases through compiled code. See README.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "base/os.h"
#include "graph/constant.h"
#include "import/onnx/onnx.h"
#include "import/onnx/proto.h"
#include "import/onnx/tensors.h"
#include "reference/graph_interpreter.h"
#include "unit/compiler/rig.h"

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

enum class Outcome { passed, refused, failed };
struct Verdict {
  Outcome outcome = Outcome::failed;
  std::string reason;
};

// A case's inputs and wanted outputs.
struct Data {
  std::vector<Tensor> inputs, wanted;
};

// The data of these cases declares bf16 as u16, and some of it has not the shape that the model declares. Empty if the
// tensor fits the type, else why not.
std::string fit(Tensor& tensor, const graph::TensorType& type) {
  if (type.dtype == DType::bf16 && tensor.dtype == DType::u16) tensor.dtype = DType::bf16;
  bool fits = tensor.dims.size() == type.rank();
  for (size_t d = 0; fits && d < type.rank(); ++d) {
    const auto extent = type.shape[d].constant();
    fits = !extent || *extent == tensor.dims[d];
  }
  return fits ? "" : "the case's data has another shape than its model declares";
}

Result<Data> read_data(const graph::Function& main, const fs::path& folder) {
  Data data;
  const auto read = [&](const char* kind, const std::vector<graph::ValueId>& ids, std::vector<Tensor>& into) -> Status {
    for (size_t i = 0; i < ids.size(); ++i) {
      const std::string name = kind + std::to_string(i);
      auto tensor = read_tensor(folder / (name + ".pb"));
      if (!tensor) return Status(Code::internal, name + " cannot be read");
      if (const auto why = fit(*tensor, main.values[static_cast<size_t>(ids[i])].type); !why.empty())
        return Status(Code::unsupported, name + ": " + why);
      into.push_back(*std::move(tensor));
    }
    return {};
  };
  QUARTET_TRY(read("input_", main.body.arguments, data.inputs));
  QUARTET_TRY(read("output_", main.body.results, data.wanted));
  return data;
}

std::string compare(const std::vector<Tensor>& outputs, const std::vector<Tensor>& wanted) {
  for (size_t i = 0; i < wanted.size(); ++i)
    if (const std::string words = difference(outputs[i], wanted[i]); !words.empty())
      return "output " + std::to_string(i) + ": " + words;
  return "";
}

// What the reference interpreter says of a case whose compiled code is wrong: whose fault it is.
std::string second_opinion(const graph::Graph& graph, const Data& data) {
  const auto outputs = reference::interpret(graph, data.inputs);
  if (!outputs.ok()) return "the interpreter: " + outputs.status().message();
  const std::string words = compare(*outputs, data.wanted);
  return words.empty() ? "the interpreter agrees with the case" : "the interpreter: " + words;
}

// Every refusal must be a clear one: unsupported, or naming a node of the model.
Verdict refusal(const Status& status, const fs::path& model) {
  if (status.code() == Code::unsupported) return {Outcome::refused, status.message()};
  const auto bytes = real_os().read_file(model.string(), uint64_t{1} << 30);
  if (bytes.ok()) {
    const auto read = import::onnx::read_model(bytes->span());
    if (read.ok() && read->graph)
      for (const auto& node : read->graph->nodes)
        if (status.message().find(node.op) != std::string::npos) return {Outcome::refused, status.message()};
  }
  return {Outcome::failed, "an error that names no node: " + status.message()};
}

Verdict run_case(compiler::Engine& engine, const fs::path& path) {
  const fs::path model = path / "model.onnx";
  const auto graph = import::import_onnx_file(model.string(), real_os());
  if (!graph.ok()) return refusal(graph.status(), model);
  const auto data = read_data((*graph)->main(), path / "test_data_set_0");
  if (!data.ok())
    return {data.status().code() == Code::unsupported ? Outcome::refused : Outcome::failed, data.status().message()};
  compiler::Request request{*graph, {}, host_cpu()};
  const auto program = engine.compile(request);
  if (!program.ok()) return refusal(program.status(), model);
  const auto outputs = test::run(*(*program)->program, data->inputs);
  if (!outputs.ok()) return refusal(outputs.status(), model);
  const std::string words = compare(*outputs, data->wanted);
  if (words.empty()) return {Outcome::passed, ""};
  return {Outcome::failed, words + " (" + second_opinion(**graph, *data) + ")"};
}

// Cases whose data are not what the operators' definitions say: bf16 that was cut off instead of rounded, and corners
// aligned by the product of scale and length instead of the result's length (as ONNX Runtime has it, too).
bool has_wrong_data(const std::string& name) {
  static const std::set<std::string> kNames = {
      "node/test_cast_FLOAT_to_BFLOAT16",
      "node/test_resize_downsample_scales_cubic_align_corners",
      "node/test_resize_downsample_scales_linear_align_corners",
  };
  return kNames.contains(name);
}

std::set<std::string> read_list(const char* path) {
  std::ifstream in(path);
  std::set<std::string> names;
  for (std::string line; std::getline(in, line);)
    if (!line.empty() && line[0] != '#') names.insert(line);
  return names;
}

std::vector<std::string> all_cases() {
  std::vector<std::string> names;
  for (const char* suite : {"node", "simple", "pytorch-converted", "pytorch-operator"})
    for (const auto& entry : fs::directory_iterator(fs::path(QUARTET_ONNX_DATA) / suite))
      names.push_back(std::string(suite) + "/" + entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// The cases on as many threads as there are cores.
std::vector<Verdict> run_all(const std::vector<std::string>& names) {
  const auto engine = test::make_engine();
  std::vector<Verdict> verdicts(names.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < names.size(); i = next++)
      verdicts[i] = run_case(*engine, fs::path(QUARTET_ONNX_DATA) / names[i]);
  };
  std::vector<std::thread> threads;
  for (unsigned t = 1; t < std::thread::hardware_concurrency(); ++t) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return verdicts;
}

void write_list(const char* path, const std::set<std::string>& passed) {
  std::ofstream out(path);
  out << "# Cases that must pass, written by QUARTET_UPDATE_ONNX_LIST=FILE onnx_node_suite.\n";
  for (const std::string& name : passed) out << name << "\n";
}

TEST(NodeSuite, ListedCasesPassAndEveryOtherIsRefusedClearly) {
  const std::set<std::string> listed = read_list(QUARTET_ONNX_SUPPORTED);
  ASSERT_FALSE(listed.empty());
  std::vector<std::string> names = all_cases();
  if (const char* only = std::getenv("QUARTET_ONNX_CASES"))
    std::erase_if(names, [&](const std::string& name) { return name.find(only) == std::string::npos; });
  const std::vector<Verdict> verdicts = run_all(names);
  std::set<std::string> passed;
  const char* report = std::getenv("QUARTET_ONNX_REPORT");
  std::ofstream reasons(report ? report : "/dev/null");
  for (size_t i = 0; i < names.size(); ++i) {
    const auto& [outcome, reason] = verdicts[i];
    if (outcome == Outcome::passed) passed.insert(names[i]);
    if (outcome == Outcome::refused) reasons << names[i] << ": " << reason << "\n";
    if (!has_wrong_data(names[i])) EXPECT_NE(outcome, Outcome::failed) << names[i] << ": " << reason;
    if (listed.contains(names[i])) EXPECT_EQ(outcome, Outcome::passed) << names[i] << ": " << reason;
  }
  std::printf("%zu of %zu cases pass\n", passed.size(), names.size());
  if (const char* path = std::getenv("QUARTET_UPDATE_ONNX_LIST")) return write_list(path, passed);
  for (const std::string& name : passed)
    EXPECT_TRUE(listed.contains(name)) << name << " passes and is not in the list; write it anew as README.md says";
}

}  // namespace
}  // namespace quartet
