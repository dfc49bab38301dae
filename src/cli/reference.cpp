#include "reference.h"

#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <sstream>
#include <stdexcept>

namespace cli {

namespace {

using Text = std::unique_ptr<char, void (*)(void*)>;

std::string library_folder() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<const void*>(&quartet_abi_version), &info) || !info.dli_fname) return "";
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

void collect(void* user, uint32_t, const quartet_tensor* value) {
  auto& outputs = *static_cast<std::vector<quartet::Tensor>*>(user);
  const std::vector<int64_t> dims(value->dims, value->dims + value->rank);
  quartet::Tensor copy = quartet::Tensor::zeros(value->dtype, dims);
  if (copy.dense_bytes()) std::memcpy(copy.data(), value->data, copy.dense_bytes());
  outputs.push_back(std::move(copy));
}

}  // namespace

Reference::Reference() {
  const std::string path = library_folder() + "libquartet_reference.so";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw std::runtime_error(
        std::string("the reference interpreter, which is built with the tests, cannot be opened: ") + dlerror());
  expose_ = reinterpret_cast<ExposeFunction>(dlsym(library, "quartet_reference_expose"));
  run_ = reinterpret_cast<RunFunction>(dlsym(library, "quartet_reference_run"));
  if (!expose_ || !run_) throw std::runtime_error(path + ": not the reference interpreter of this version");
}

Reference::Exposed Reference::expose(const quartet::Context& context, const quartet::Graph& graph) const {
  const std::vector<uint8_t> bytes = graph.serialize().value();
  uint8_t* out = nullptr;
  uint64_t size = 0;
  char* text = nullptr;
  const int32_t status = expose_(bytes.data(), bytes.size(), &out, &size, &text);
  const std::unique_ptr<uint8_t, void (*)(void*)> out_owner(out, std::free);
  const Text text_owner(text, std::free);
  if (status != 0) throw std::runtime_error(std::string("reference: ") + (text ? text : "out of memory"));
  std::vector<std::string> values;
  std::istringstream lines(text ? text : "");
  for (std::string line; std::getline(lines, line);) values.push_back(line);
  return {quartet::Graph::deserialize(context, quartet::Span<const uint8_t>(out, static_cast<size_t>(size))).value(),
          std::move(values)};
}

std::vector<quartet::Tensor> Reference::run(const quartet::Graph& graph,
                                            const std::vector<quartet::Tensor>& inputs) const {
  const std::vector<uint8_t> bytes = graph.serialize().value();
  std::vector<quartet_tensor> raw;
  for (const quartet::Tensor& tensor : inputs) raw.push_back(tensor.raw());
  std::vector<quartet::Tensor> outputs;
  char* text = nullptr;
  const int32_t status =
      run_(bytes.data(), bytes.size(), raw.data(), static_cast<uint32_t>(raw.size()), collect, &outputs, &text);
  const Text owner(text, std::free);
  if (status != 0) throw std::runtime_error(std::string("reference: ") + (text ? text : "out of memory"));
  return outputs;
}

}  // namespace cli
