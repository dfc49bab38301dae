#include "capi/builder.h"

#include "capi/graph.h"
#include "graph/constant.h"

namespace quartet::capi {

Status check_builder(const quartet_builder* builder) {
  QUARTET_TRY(check_handle(builder, "builder"));
  QUARTET_TRY(check_process(*builder->context));
  if (builder->broken) return {Code::failed_precondition, "the builder ran out of memory in an earlier call"};
  return {};
}

HostMemory* memory_of(const quartet_builder* builder) {
  builder = valid_or_null(builder);
  return builder != nullptr ? builder->context->memory : nullptr;
}

namespace {

// -1 is QUARTET_DIM_UNKNOWN; numbers of dims that are not extents begin below it.
constexpr int64_t kFirstDim = -2;

}  // namespace

Result<graph::Shape> shape_argument(const quartet_builder& builder, const int64_t* dims, size_t count,
                                    const char* parameter) {
  if (count != 0) QUARTET_TRY(not_null(dims, parameter));
  graph::Shape shape;
  shape.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    if (dims[i] >= 0) {
      shape.emplace_back(dims[i]);
      continue;
    }
    const uint64_t index = static_cast<uint64_t>(kFirstDim - dims[i]);
    if (dims[i] > kFirstDim || index >= builder.dims.size()) {
      return make_error(Code::invalid_argument, "%s[%zu] is %lld, neither an extent nor a dim of this builder",
                        parameter, i, static_cast<long long>(dims[i]));
    }
    shape.push_back(builder.dims[static_cast<size_t>(index)]);
  }
  return shape;
}

Result<graph::TensorType> type_argument(const quartet_builder& builder, int32_t dtype, int32_t rank,
                                        const int64_t* dims) {
  if (dtype <= 0 || dtype >= kDTypeCount) return make_error(Code::unsupported, "there is no element type %d", dtype);
  if (rank < 0 || rank > QUARTET_MAX_RANK) {
    return make_error(Code::invalid_argument, "rank is %d, not 0 to %d", rank, QUARTET_MAX_RANK);
  }
  graph::TensorType type;
  type.dtype = static_cast<DType>(dtype);
  QUARTET_ASSIGN(type.shape, shape_argument(builder, dims, static_cast<size_t>(rank), "dims"));
  return type;
}

namespace {

int64_t number_of(quartet_builder& builder, const IntExpr& dim) {
  if (const auto extent = dim.constant(); extent && *extent >= 0) return *extent;
  for (size_t i = 0; i < builder.dims.size(); ++i) {
    if (builder.dims[i] == dim) return kFirstDim - static_cast<int64_t>(i);
  }
  builder.dims.push_back(dim);
  return kFirstDim - static_cast<int64_t>(builder.dims.size() - 1);
}

// Memory lent by the host, given back when the last user of it is gone.
class LentData {
 public:
  LentData(const void* data, size_t size, quartet_free_data_fn free_data, void* user)
      : data_(const_cast<void*>(data)), size_(size), free_(free_data), user_(user) {}
  LentData(const LentData&) = delete;
  LentData& operator=(const LentData&) = delete;
  ~LentData() {
    if (free_ != nullptr) free_(user_, data_, size_);
  }
  void keep() { free_ = nullptr; }

 private:
  void* data_;
  size_t size_;
  quartet_free_data_fn free_;
  void* user_;
};

}  // namespace
}  // namespace quartet::capi

using namespace quartet;        // NOLINT: the functions below are outside of any namespace
using namespace quartet::capi;  // NOLINT

int32_t quartet_builder_create(quartet_context* context, quartet_builder** out, quartet_error** error) {
  if (out != nullptr) *out = nullptr;
  return guarded(memory_of(context), error, [&]() -> Status {
    QUARTET_TRY(check_context(context));
    QUARTET_TRY(not_null(out, "out"));
    auto builder = std::make_unique<quartet_builder>();
    builder->context = ContextRef(context);
    *out = builder.release();
    return {};
  });
}

void quartet_builder_destroy(quartet_builder* builder) {
  if ((builder = valid_or_null(builder)) != nullptr) delete_with_context(builder);
}

int32_t quartet_builder_dim_symbol(quartet_builder* builder, const char* name, size_t name_size, int64_t* out_dim,
                                   quartet_error** error) {
  if (out_dim != nullptr) *out_dim = 0;
  return build(builder, error, [&](graph::Builder& graph) -> Status {
    QUARTET_TRY(not_null(out_dim, "out_dim"));
    QUARTET_ASSIGN(const std::string_view text, name_argument(name, name_size, "name"));
    QUARTET_ASSIGN(const IntExpr dim, graph.symbol(text));
    *out_dim = number_of(*builder, dim);
    return {};
  });
}

int32_t quartet_builder_dim_text(quartet_builder* builder, const char* text, size_t text_size, int64_t* out_dim,
                                 quartet_error** error) {
  if (out_dim != nullptr) *out_dim = 0;
  return build(builder, error, [&](graph::Builder& graph) -> Status {
    QUARTET_TRY(not_null(out_dim, "out_dim"));
    QUARTET_ASSIGN(const std::string_view expression, name_argument(text, text_size, "text"));
    QUARTET_ASSIGN(const IntExpr dim, graph.dim(expression));
    if (!graph.dims().well_formed(dim)) return graph.dims().no_extent(dim);
    *out_dim = number_of(*builder, dim);
    return {};
  });
}

int32_t quartet_builder_input(quartet_builder* builder, const char* name, size_t name_size, int32_t dtype, int32_t rank,
                              const int64_t* dims, int32_t* out_value, quartet_error** error) {
  if (out_value != nullptr) *out_value = 0;
  return build(builder, error, [&](graph::Builder& graph) -> Status {
    QUARTET_TRY(not_null(out_value, "out_value"));
    QUARTET_ASSIGN(const std::string_view text, name_argument(name, name_size, "name"));
    QUARTET_ASSIGN(graph::TensorType type, type_argument(*builder, dtype, rank, dims));
    QUARTET_ASSIGN(*out_value, graph.input(std::string(text), std::move(type)));
    return {};
  });
}

int32_t quartet_builder_input_default(quartet_builder* builder, int32_t input, int32_t constant,
                                      quartet_error** error) {
  return build(builder, error, [&](graph::Builder& graph) -> Status {
    const graph::Constant* known = graph.constant_of(constant);
    if (known == nullptr) return make_error(Code::invalid_argument, "value %d is no constant", constant);
    return graph.set_default(input, *known);
  });
}

int32_t quartet_builder_constant(quartet_builder* builder, int32_t dtype, int32_t rank, const int64_t* dims,
                                 const void* data, size_t bytes, uint32_t flags, quartet_free_data_fn free_data,
                                 void* user, int32_t* out_value, quartet_error** error) {
  if (out_value != nullptr) *out_value = 0;
  LentData lent(data, bytes, free_data, user);
  return build(builder, error, [&](graph::Builder& graph) -> Status {
    QUARTET_TRY(not_null(out_value, "out_value"));
    if ((flags & ~uint32_t{QUARTET_CONSTANT_BORROW}) != 0) return make_error(Code::unsupported, "flags is 0x%x", flags);
    if (data == nullptr && bytes != 0) return {Code::invalid_argument, "data is NULL"};
    if (bytes > PTRDIFF_MAX) return make_error(Code::invalid_argument, "bytes is %zu", bytes);
    QUARTET_ASSIGN(graph::TensorType type, type_argument(*builder, dtype, rank, dims));
    const std::span view(static_cast<const uint8_t*>(data), bytes);
    graph::Constant constant;
    if ((flags & QUARTET_CONSTANT_BORROW) != 0) {
      auto owner = std::make_shared<LentData>(data, bytes, free_data, user);
      lent.keep();
      QUARTET_ASSIGN(constant, graph::make_constant(std::move(type), view, std::move(owner)));
    } else {
      QUARTET_ASSIGN(constant, graph::copy_constant(std::move(type), view));
    }
    QUARTET_ASSIGN(*out_value, graph.constant(std::move(constant)));
    return {};
  });
}

namespace {

Status add_op(quartet_builder& builder, graph::Builder& graph, graph::OpCode code, const int32_t* inputs,
              uint32_t input_count, const quartet_attr* attrs, uint32_t attr_count, int32_t* outputs,
              uint32_t output_count) {
  const graph::OpInfo& op = graph::op_info(code);
  const std::string prefix = std::string(op.name) + ": ";
  if (input_count != 0) QUARTET_TRY(not_null(inputs, "inputs"));
  if (output_count != 0) QUARTET_TRY(not_null(outputs, "outputs"));
  if (op.results >= 0 && output_count != static_cast<uint32_t>(op.results)) {
    return make_error(Code::invalid_argument, "%s: output_count is %u, but it has %d results", op.name, output_count,
                      op.results);
  }
  auto arguments = attrs_argument(builder, op, attrs, attr_count);
  if (!arguments.ok()) return arguments.status().with_prefix(prefix);
  if (code == graph::OpCode::call && arguments->extras.callee < 0) {
    return {Code::invalid_argument, prefix + "the attribute function is missing"};
  }
  QUARTET_ASSIGN(const std::vector<graph::ValueId> results,
                 graph.op(code, std::vector<graph::ValueId>(inputs, inputs + input_count), std::move(arguments->attrs),
                          std::move(arguments->extras)));
  if (results.size() != output_count) {
    return make_error(Code::invalid_argument, "%s: output_count is %u, but it has %zu results here; they are not given",
                      op.name, output_count, results.size());
  }
  std::copy(results.begin(), results.end(), outputs);
  return {};
}

void clear_outputs(int32_t* outputs, uint32_t count) {
  if (outputs != nullptr) std::fill(outputs, outputs + count, 0);
}

}  // namespace

int32_t quartet_builder_op(quartet_builder* builder, const char* op, size_t op_size, const int32_t* inputs,
                           uint32_t input_count, const quartet_attr* attrs, uint32_t attr_count, int32_t* outputs,
                           uint32_t output_count, quartet_error** error) {
  // Operands may be given and results taken in one array, so results are cleared only when there will be none.
  const int32_t status = build(builder, error, [&](graph::Builder& graph) -> Status {
    QUARTET_ASSIGN(const std::string_view name, name_argument(op, op_size, "op"));
    const auto code = graph::op_from_name(name);
    if (!code) {
      return make_error(Code::not_found, "there is no op '%.*s'", static_cast<int>(std::min<size_t>(name.size(), 80)),
                        name.data());
    }
    return add_op(*builder, graph, *code, inputs, input_count, attrs, attr_count, outputs, output_count);
  });
  if (status != QUARTET_OK) clear_outputs(outputs, output_count);
  return status;
}

int32_t quartet_builder_op_by_id(quartet_builder* builder, int32_t op, const int32_t* inputs, uint32_t input_count,
                                 const quartet_attr* attrs, uint32_t attr_count, int32_t* outputs,
                                 uint32_t output_count, quartet_error** error) {
  const int32_t status = build(builder, error, [&](graph::Builder& graph) -> Status {
    if (op <= 0 || op >= graph::kOpCount) return make_error(Code::unsupported, "there is no op number %d", op);
    return add_op(*builder, graph, static_cast<graph::OpCode>(op), inputs, input_count, attrs, attr_count, outputs,
                  output_count);
  });
  if (status != QUARTET_OK) clear_outputs(outputs, output_count);
  return status;
}

int32_t quartet_builder_value_info(quartet_builder* builder, int32_t value, quartet_tensor_info* out,
                                   quartet_error** error) {
  clear_struct(out);
  return guarded(memory_of(builder), error, [&]() -> Status {
    QUARTET_TRY(check_builder(builder));
    QUARTET_TRY(check_struct(out, "out"));
    const graph::Value* found = builder->builder.value(value);
    if (found == nullptr) return make_error(Code::invalid_argument, "there is no value %d", value);
    const auto symbols = builder->builder.symbols();
    builder->info = TensorInfo(found->name, found->type.dtype, found->type.shape,
                               [&](Symbol symbol) { return symbols[static_cast<size_t>(symbol)].name; });
    write_struct(out, builder->info.view());
    return {};
  });
}

int32_t quartet_builder_set_name(quartet_builder* builder, int32_t value, const char* name, size_t name_size,
                                 quartet_error** error) {
  return build(builder, error, [&](graph::Builder& graph) -> Status {
    QUARTET_ASSIGN(const std::string_view text, name_argument(name, name_size, "name"));
    return graph.set_name(value, std::string(text));
  });
}

int32_t quartet_builder_output(quartet_builder* builder, int32_t value, const char* name, size_t name_size,
                               quartet_error** error) {
  return build(builder, error, [&](graph::Builder& graph) -> Status {
    QUARTET_ASSIGN(const std::string_view text, name_argument(name, name_size, "name"));
    return graph.output(value, std::string(text));
  });
}

int32_t quartet_builder_finish(quartet_builder* builder, quartet_graph** out, quartet_error** error) {
  if (out != nullptr) *out = nullptr;
  return build(builder, error, [&](graph::Builder& graph) -> Status {
    QUARTET_TRY(not_null(out, "out"));
    QUARTET_ASSIGN(auto made, graph.finish());
    *out = make_graph(*builder->context, std::move(made));
    return {};
  });
}
