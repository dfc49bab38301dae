#include "capi/graph.h"

#include <span>

#include "capi/blob.h"

namespace quartet::capi {

quartet_graph* make_graph(quartet_context& context, std::shared_ptr<const graph::Graph> graph) {
  auto handle = std::make_unique<quartet_graph>();
  const auto name_of = [&](Symbol symbol) { return graph->symbols[static_cast<size_t>(symbol)].name; };
  const graph::Function& main = graph->main();
  const auto add = [&](std::vector<TensorInfo>& infos, graph::ValueId id, const std::string& name, bool optional) {
    const graph::TensorType& type = main.values[static_cast<size_t>(id)].type;
    infos.emplace_back(name, type.dtype, type.shape, name_of, optional);
  };
  std::vector<bool> optional(main.body.arguments.size());
  for (const graph::InputDefault& given : graph->defaults) optional[static_cast<size_t>(given.input)] = true;
  for (size_t i = 0; i < main.body.arguments.size(); ++i) {
    const graph::ValueId id = main.body.arguments[i];
    add(handle->inputs, id, main.values[static_cast<size_t>(id)].name, optional[i]);
  }
  for (size_t i = 0; i < main.body.results.size(); ++i) {
    add(handle->outputs, main.body.results[i], main.output_names[i], false);
  }
  for (const graph::DimSymbol& symbol : graph->symbols) {
    if (symbol.kind == graph::DimSymbol::Kind::entry) handle->symbols.push_back(symbol.name);
  }
  handle->graph = std::move(graph);
  handle->context = ContextRef(&context);
  return handle.release();
}

Status check_graph(const quartet_graph* graph) {
  QUARTET_TRY(check_handle(graph, "graph"));
  return check_process(*graph->context);
}

HostMemory* memory_of(const quartet_graph* graph) {
  graph = valid_or_null(graph);
  return graph != nullptr ? graph->context->memory : nullptr;
}

}  // namespace quartet::capi

using namespace quartet;        // NOLINT: the functions below are outside of any namespace
using namespace quartet::capi;  // NOLINT

void quartet_graph_retain(quartet_graph* graph) {
  if ((graph = valid_or_null(graph)) != nullptr) graph->retain();
}

void quartet_graph_release(quartet_graph* graph) {
  if ((graph = valid_or_null(graph)) != nullptr && graph->drop()) delete_with_context(graph);
}

int32_t quartet_graph_digest(const quartet_graph* graph, uint8_t* out16, quartet_error** error) {
  if (out16 != nullptr) std::memset(out16, 0, 16);
  return guarded(memory_of(graph), error, [&]() -> Status {
    QUARTET_TRY(check_handle(graph, "graph"));
    QUARTET_TRY(not_null(out16, "out16"));
    write_digest(graph::digest(*graph->graph), out16);
    return {};
  });
}

uint32_t quartet_graph_input_count(const quartet_graph* graph) {
  graph = valid_or_null(graph);
  return graph != nullptr ? static_cast<uint32_t>(graph->inputs.size()) : 0;
}

uint32_t quartet_graph_output_count(const quartet_graph* graph) {
  graph = valid_or_null(graph);
  return graph != nullptr ? static_cast<uint32_t>(graph->outputs.size()) : 0;
}

int32_t quartet_graph_input_info(const quartet_graph* graph, uint32_t index, quartet_tensor_info* out,
                                 quartet_error** error) {
  clear_struct(out);
  return guarded(memory_of(graph), error, [&]() -> Status {
    QUARTET_TRY(check_handle(graph, "graph"));
    QUARTET_TRY(check_struct(out, "out"));
    return give_info(graph->inputs, index, out).with_prefix("inputs: ");
  });
}

int32_t quartet_graph_output_info(const quartet_graph* graph, uint32_t index, quartet_tensor_info* out,
                                  quartet_error** error) {
  clear_struct(out);
  return guarded(memory_of(graph), error, [&]() -> Status {
    QUARTET_TRY(check_handle(graph, "graph"));
    QUARTET_TRY(check_struct(out, "out"));
    return give_info(graph->outputs, index, out).with_prefix("outputs: ");
  });
}

uint32_t quartet_graph_symbol_count(const quartet_graph* graph) {
  graph = valid_or_null(graph);
  return graph != nullptr ? static_cast<uint32_t>(graph->symbols.size()) : 0;
}

const char* quartet_graph_symbol_name(const quartet_graph* graph, uint32_t index, size_t* size) {
  if (size != nullptr) *size = 0;
  graph = valid_or_null(graph);
  if (graph == nullptr || index >= graph->symbols.size()) return nullptr;
  if (size != nullptr) *size = graph->symbols[index].size();
  return graph->symbols[index].c_str();
}

int32_t quartet_graph_serialize(const quartet_graph* graph, quartet_blob** out, quartet_error** error) {
  if (out != nullptr) *out = nullptr;
  return guarded(memory_of(graph), error, [&]() -> Status {
    QUARTET_TRY(check_graph(graph));
    QUARTET_TRY(not_null(out, "out"));
    *out = make_blob(graph::serialize(*graph->graph));
    return {};
  });
}

int32_t quartet_graph_deserialize(quartet_context* context, const void* bytes, size_t size, quartet_graph** out,
                                  quartet_error** error) {
  if (out != nullptr) *out = nullptr;
  return guarded(memory_of(context), error, [&]() -> Status {
    QUARTET_TRY(check_context(context));
    QUARTET_TRY(not_null(out, "out"));
    QUARTET_ASSIGN(const auto view, bytes_argument(bytes, size));
    QUARTET_ASSIGN(auto graph, graph::deserialize(view));
    *out = make_graph(*context, std::move(graph));
    return {};
  });
}

int32_t quartet_graph_print(const quartet_graph* graph, quartet_blob** out, quartet_error** error) {
  if (out != nullptr) *out = nullptr;
  return guarded(memory_of(graph), error, [&]() -> Status {
    QUARTET_TRY(check_graph(graph));
    QUARTET_TRY(not_null(out, "out"));
    *out = make_blob(graph::print(*graph->graph));
    return {};
  });
}

int32_t quartet_graph_parse(quartet_context* context, const char* text, size_t text_size, quartet_graph** out,
                            quartet_error** error) {
  if (out != nullptr) *out = nullptr;
  return guarded(memory_of(context), error, [&]() -> Status {
    QUARTET_TRY(check_context(context));
    QUARTET_TRY(not_null(out, "out"));
    QUARTET_ASSIGN(const std::string_view view, text_argument(text, text_size, "text"));
    QUARTET_ASSIGN(auto graph, graph::parse(view));
    *out = make_graph(*context, std::move(graph));
    return {};
  });
}
