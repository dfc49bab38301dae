// Regions and functions of a graph being built.
#include <span>

#include "capi/builder.h"

using namespace quartet;        // NOLINT: the functions below are outside of any namespace
using namespace quartet::capi;  // NOLINT

namespace {

Result<std::span<const graph::ValueId>> results_argument(const int32_t* results, uint32_t count) {
  if (count != 0) QUARTET_TRY(not_null(results, "results"));
  return std::span<const graph::ValueId>(results, count);
}

}  // namespace

int32_t quartet_builder_region_begin(quartet_builder* builder, int32_t* out_region, quartet_error** error) {
  if (out_region != nullptr) *out_region = 0;
  return build(builder, error, [&](graph::Builder& graph) -> Status {
    QUARTET_TRY(not_null(out_region, "out_region"));
    QUARTET_ASSIGN(*out_region, graph.region_begin());
    return {};
  });
}

int32_t quartet_builder_region_parameter(quartet_builder* builder, int32_t dtype, int32_t rank, const int64_t* dims,
                                         int32_t* out_value, quartet_error** error) {
  if (out_value != nullptr) *out_value = 0;
  return build(builder, error, [&](graph::Builder& graph) -> Status {
    QUARTET_TRY(not_null(out_value, "out_value"));
    QUARTET_ASSIGN(graph::TensorType type, type_argument(*builder, dtype, rank, dims));
    QUARTET_ASSIGN(*out_value, graph.parameter(std::move(type)));
    return {};
  });
}

int32_t quartet_builder_region_end(quartet_builder* builder, const int32_t* results, uint32_t result_count,
                                   quartet_error** error) {
  return build(builder, error, [&](graph::Builder& graph) -> Status {
    QUARTET_ASSIGN(const auto values, results_argument(results, result_count));
    return graph.region_end(values);
  });
}

int32_t quartet_builder_function_begin(quartet_builder* builder, const char* name, size_t name_size,
                                       quartet_error** error) {
  return build(builder, error, [&](graph::Builder& graph) -> Status {
    QUARTET_ASSIGN(const std::string_view text, name_argument(name, name_size, "name"));
    return graph.function_begin(std::string(text)).status();
  });
}

int32_t quartet_builder_function_result(quartet_builder* builder, int32_t dtype, int32_t rank, const int64_t* dims,
                                        quartet_error** error) {
  return build(builder, error, [&](graph::Builder& graph) -> Status {
    QUARTET_ASSIGN(graph::TensorType type, type_argument(*builder, dtype, rank, dims));
    return graph.function_result(std::move(type));
  });
}

int32_t quartet_builder_function_end(quartet_builder* builder, const int32_t* results, uint32_t result_count,
                                     quartet_error** error) {
  return build(builder, error, [&](graph::Builder& graph) -> Status {
    QUARTET_ASSIGN(const auto values, results_argument(results, result_count));
    return graph.function_end(values);
  });
}
