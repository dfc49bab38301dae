// What libquartet_reference.so exports: the graph interpreter over bytes, for `quartet check --reference`. On failure a
// function returns 1 and a malloc'ed message; everything handed out is freed with free().
#include <quartet_c.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "reference/graph_interpreter.h"

namespace {

using quartet::Bytes;
using quartet::Status;

char* copy_text(const std::string& text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy) std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

template <class Function>
int32_t guarded(char** text, Function function) {
  *text = nullptr;
  try {
    const Status status = function();
    if (status.ok()) return 0;
    *text = copy_text(status.message());
  } catch (const std::exception& error) {
    *text = copy_text(error.what());
  }
  return 1;
}

}  // namespace

extern "C" {

// The graph with every value an output; `text` gets a line for each output, saying what it is.
[[gnu::visibility("default")]] int32_t quartet_reference_expose(const uint8_t* graph, uint64_t size, uint8_t** out,
                                                                uint64_t* out_size, char** text) {
  *out = nullptr;
  *out_size = 0;
  std::string lines;
  const int32_t failed = guarded(text, [&]() -> Status {
    QUARTET_ASSIGN(const auto parsed, quartet::graph::deserialize({graph, static_cast<size_t>(size)}));
    QUARTET_ASSIGN(const auto exposed, quartet::reference::expose(*parsed));
    for (const std::string& value : exposed.values) {
      for (const char c : value) lines += c == '\n' ? ' ' : c;
      lines += '\n';
    }
    const Bytes bytes = quartet::graph::serialize(*exposed.graph);
    *out = static_cast<uint8_t*>(std::malloc(bytes.size()));
    if (!*out) return Status(quartet::Code::out_of_memory, "no memory for the exposed graph");
    std::memcpy(*out, bytes.data(), bytes.size());
    *out_size = bytes.size();
    return {};
  });
  if (!failed) *text = copy_text(lines);
  return failed;
}

// Interprets the graph; `sink` gets each output in order, valid during the call.
[[gnu::visibility("default")]] int32_t quartet_reference_run(const uint8_t* graph, uint64_t size,
                                                             const quartet_tensor* inputs, uint32_t count,
                                                             void (*sink)(void*, uint32_t, const quartet_tensor*),
                                                             void* user, char** text) {
  return guarded(text, [&]() -> Status {
    QUARTET_ASSIGN(const auto parsed, quartet::graph::deserialize({graph, static_cast<size_t>(size)}));
    std::vector<quartet::reference::Tensor> tensors;
    for (uint32_t i = 0; i < count; ++i)
      tensors.push_back(quartet::reference::Tensor::from_memory(static_cast<quartet::DType>(inputs[i].dtype),
                                                                {inputs[i].dims, inputs[i].dims + inputs[i].rank},
                                                                inputs[i].data));
    QUARTET_ASSIGN(const auto outputs, quartet::reference::interpret(*parsed, tensors));
    for (uint32_t i = 0; i < outputs.size(); ++i) {
      Bytes memory = outputs[i].to_memory();
      quartet_tensor raw{};
      raw.struct_size = sizeof raw;
      raw.dtype = static_cast<int32_t>(outputs[i].dtype);
      raw.rank = static_cast<int32_t>(outputs[i].dims.size());
      std::copy(outputs[i].dims.begin(), outputs[i].dims.end(), raw.dims);
      raw.data = memory.data();
      raw.bytes = memory.size();
      sink(user, i, &raw);
    }
    return {};
  });
}

}  // extern "C"
