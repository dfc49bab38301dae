// Graphs from ONNX models.
#include "capi/graph.h"
#include "capi/options.h"
#include "import/onnx/onnx.h"

using namespace quartet;        // NOLINT: the functions below are outside of any namespace
using namespace quartet::capi;  // NOLINT

namespace {

import::ImportOptions import_options(const Options& options) { return {options.initializer_inputs()}; }

}  // namespace

int32_t quartet_graph_import_onnx(quartet_context* context, const void* bytes, size_t size,
                                  const quartet_options* options, quartet_graph** out, quartet_error** error) {
  if (out != nullptr) *out = nullptr;
  return guarded(memory_of(context), error, [&]() -> Status {
    QUARTET_TRY(check_context(context));
    QUARTET_TRY(not_null(out, "out"));
    QUARTET_ASSIGN(const Options set, options_argument(options));
    QUARTET_ASSIGN(const auto view, bytes_argument(bytes, size));
    QUARTET_ASSIGN(auto graph, import::import_onnx(view, import_options(set)));
    *out = make_graph(*context, std::move(graph));
    return {};
  });
}

int32_t quartet_graph_import_onnx_file(quartet_context* context, const char* path, size_t path_size,
                                       const quartet_options* options, quartet_graph** out, quartet_error** error) {
  if (out != nullptr) *out = nullptr;
  return guarded(memory_of(context), error, [&]() -> Status {
    QUARTET_TRY(check_context(context));
    QUARTET_TRY(not_null(out, "out"));
    QUARTET_ASSIGN(const Options set, options_argument(options));
    QUARTET_ASSIGN(const std::string_view name, name_argument(path, path_size, "path"));
    QUARTET_ASSIGN(auto graph, import::import_onnx_file(std::string(name), real_os(), import_options(set)));
    *out = make_graph(*context, std::move(graph));
    return {};
  });
}
