// What a careless host does: NULL everywhere, the wrong kind of handle, freed handles, structs of the wrong size,
// unknown numbers. Every one of these is a status with words, never a crash.
#include <fstream>
#include <functional>
#include <iterator>
#include <regex>
#include <set>

#include "capi/memory.h"
#include "unit/capi/support.h"

namespace quartet::capi_test {
namespace {

// A function whose first parameter is a handle, called with a pointer of the tester's choice and nothing else.
struct Call {
  const char* name;
  const char* handle;
  std::function<int32_t(void*, quartet_error**)> call;
};

#define CALL(function, type, ...)                                                    \
  Call {                                                                             \
    #function, #type, [](void* handle, quartet_error** error) -> int32_t {           \
      return function(static_cast<type*>(handle) __VA_OPT__(, ) __VA_ARGS__, error); \
    }                                                                                \
  }

// clang-format off
const Call kCalls[] = {
    CALL(quartet_options_set_i64, quartet_options, 0, 0),
    CALL(quartet_options_set_text, quartet_options, 0, nullptr, 0),
    CALL(quartet_options_set_named, quartet_options, nullptr, 0, nullptr, 0),
    CALL(quartet_options_get_i64, quartet_options, 0, nullptr),
    CALL(quartet_options_digest, quartet_options, nullptr),
    CALL(quartet_context_poll, quartet_context, 0, nullptr),
    CALL(quartet_context_wait_idle, quartet_context, 0),
    CALL(quartet_context_event_handle, quartet_context, nullptr),
    CALL(quartet_context_memory_usage, quartet_context, nullptr),
    CALL(quartet_context_trim, quartet_context),
    CALL(quartet_context_set_log_level, quartet_context, 0),
    CALL(quartet_device_get, quartet_context, 0, nullptr),
    CALL(quartet_device_find, quartet_context, nullptr, 0, nullptr),
    CALL(quartet_device_get_info, quartet_device, nullptr),
    CALL(quartet_device_target, quartet_device, nullptr),
    CALL(quartet_builder_create, quartet_context, nullptr),
    CALL(quartet_builder_dim_symbol, quartet_builder, nullptr, 0, nullptr),
    CALL(quartet_builder_dim_text, quartet_builder, nullptr, 0, nullptr),
    CALL(quartet_builder_input, quartet_builder, nullptr, 0, 0, 0, nullptr, nullptr),
    CALL(quartet_builder_input_default, quartet_builder, 0, 0),
    CALL(quartet_builder_constant, quartet_builder, 0, 0, nullptr, nullptr, 0, 0, nullptr, nullptr, nullptr),
    CALL(quartet_builder_op, quartet_builder, nullptr, 0, nullptr, 0, nullptr, 0, nullptr, 0),
    CALL(quartet_builder_op_by_id, quartet_builder, 0, nullptr, 0, nullptr, 0, nullptr, 0),
    CALL(quartet_builder_value_info, quartet_builder, 0, nullptr),
    CALL(quartet_builder_set_name, quartet_builder, 0, nullptr, 0),
    CALL(quartet_builder_output, quartet_builder, 0, nullptr, 0),
    CALL(quartet_builder_region_begin, quartet_builder, nullptr),
    CALL(quartet_builder_region_parameter, quartet_builder, 0, 0, nullptr, nullptr),
    CALL(quartet_builder_region_end, quartet_builder, nullptr, 0),
    CALL(quartet_builder_function_begin, quartet_builder, nullptr, 0),
    CALL(quartet_builder_function_result, quartet_builder, 0, 0, nullptr),
    CALL(quartet_builder_function_end, quartet_builder, nullptr, 0),
    CALL(quartet_builder_finish, quartet_builder, nullptr),
    CALL(quartet_graph_digest, quartet_graph, nullptr),
    CALL(quartet_graph_input_info, quartet_graph, 0, nullptr),
    CALL(quartet_graph_output_info, quartet_graph, 0, nullptr),
    CALL(quartet_graph_serialize, quartet_graph, nullptr),
    CALL(quartet_graph_deserialize, quartet_context, nullptr, 0, nullptr),
    CALL(quartet_graph_print, quartet_graph, nullptr),
    CALL(quartet_graph_parse, quartet_context, nullptr, 0, nullptr),
    CALL(quartet_graph_import_onnx, quartet_context, nullptr, 0, nullptr, nullptr),
    CALL(quartet_graph_import_onnx_file, quartet_context, nullptr, 0, nullptr, nullptr),
    CALL(quartet_compile, quartet_context, nullptr, nullptr, nullptr, nullptr),
    CALL(quartet_compile_async, quartet_context, nullptr, nullptr, nullptr, nullptr),
    CALL(quartet_compile_key, quartet_context, nullptr, nullptr, nullptr, nullptr, nullptr),
    CALL(quartet_future_wait, quartet_future, 0),
    CALL(quartet_future_take_program, quartet_future, nullptr),
    CALL(quartet_future_on_done, quartet_future, nullptr, nullptr, nullptr, 0),
    CALL(quartet_program_get_info, quartet_program, nullptr),
    CALL(quartet_program_input_info, quartet_program, 0, nullptr),
    CALL(quartet_program_output_info, quartet_program, 0, nullptr),
    CALL(quartet_program_output_shapes, quartet_program, nullptr, 0, nullptr, 0),
    CALL(quartet_program_dump, quartet_program, nullptr, 0, nullptr),
    CALL(quartet_program_serialize, quartet_program, nullptr),
    CALL(quartet_program_load, quartet_context, nullptr, 0, nullptr, nullptr, 0, nullptr),
    CALL(quartet_buffer_alloc, quartet_context, nullptr, 0, 0, 0, nullptr),
    CALL(quartet_buffer_wrap, quartet_context, nullptr, nullptr, 0, nullptr, nullptr, nullptr),
    CALL(quartet_buffer_map, quartet_buffer, 0, 0, 0, nullptr),
    CALL(quartet_buffer_unmap, quartet_buffer),
    CALL(quartet_buffer_get_info, quartet_buffer, nullptr),
    CALL(quartet_run_sync, quartet_program, nullptr, 0, nullptr, 0),
    CALL(quartet_binding_create, quartet_program, nullptr),
    CALL(quartet_binding_set_input, quartet_binding, 0, nullptr),
    CALL(quartet_binding_set_output, quartet_binding, 0, nullptr),
    CALL(quartet_binding_set_workspace, quartet_binding, nullptr, 0),
    CALL(quartet_binding_workspace_size, quartet_binding, nullptr),
    CALL(quartet_binding_prepare, quartet_binding),
    CALL(quartet_binding_run, quartet_binding),
    CALL(quartet_binding_get_output, quartet_binding, 0, nullptr),
    CALL(quartet_cache_get_stats, quartet_context, nullptr),
    CALL(quartet_cache_flush, quartet_context),
    CALL(quartet_cache_trim, quartet_context, 0),
    CALL(quartet_cache_clear, quartet_context),
    CALL(quartet_cache_verify, quartet_context, nullptr),
    CALL(quartet_cache_list, quartet_context, nullptr),
};
// clang-format on

// Fallible functions whose first parameter is no handle; each has a test of its own below or elsewhere.
const std::set<std::string> kOthers = {
    "quartet_build_info",     "quartet_options_create", "quartet_option_describe",
    "quartet_context_create", "quartet_op_describe",    "quartet_future_wait_any",
};

TEST(Misuse, TheTableCoversTheHeader) {
  std::ifstream file(QUARTET_TEST_HEADER);
  const std::string header((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::set<std::string> missing;
  const std::regex function(R"(QUARTET_API int32_t QUARTET_CALL (\w+)\(([^;]*)\);)");
  for (std::sregex_iterator it(header.begin(), header.end(), function), end; it != end; ++it) {
    if ((*it)[2].str().find("quartet_error** error") != std::string::npos) missing.insert((*it)[1].str());
  }
  EXPECT_GT(missing.size(), 60U);
  for (const Call& call : kCalls) EXPECT_EQ(missing.erase(call.name), 1U) << call.name;
  for (const std::string& name : kOthers) EXPECT_EQ(missing.erase(name), 1U) << name;
  EXPECT_TRUE(missing.empty()) << *missing.begin();
}

TEST(Misuse, NullHandle) {
  for (const Call& call : kCalls) {
    SCOPED_TRACE(call.name);
    Error error;
    EXPECT_TRUE(fails(call.call(nullptr, error.out()), error, QUARTET_E_INVALID_ARGUMENT, "is NULL"));
    EXPECT_EQ(call.call(nullptr, nullptr), QUARTET_E_INVALID_ARGUMENT);
  }
}

TEST(Misuse, NullOutputsWithAGoodHandle) {
  const Context context = make_context();
  const Graph graph = make_mlp(context.get());
  Error error;
  EXPECT_TRUE(fails(quartet_graph_print(graph.get(), nullptr, error.out()), error, QUARTET_E_INVALID_ARGUMENT, "out"));
  EXPECT_TRUE(
      fails(quartet_graph_digest(graph.get(), nullptr, error.out()), error, QUARTET_E_INVALID_ARGUMENT, "out16"));
  EXPECT_TRUE(fails(quartet_graph_input_info(graph.get(), 0, nullptr, error.out()), error, QUARTET_E_INVALID_ARGUMENT,
                    "out is NULL"));
  EXPECT_TRUE(fails(quartet_compile(context.get(), graph.get(), nullptr, nullptr, nullptr, error.out()), error,
                    QUARTET_E_INVALID_ARGUMENT, "out is NULL"));
  EXPECT_TRUE(fails(quartet_graph_parse(context.get(), nullptr, 3, nullptr, error.out()), error,
                    QUARTET_E_INVALID_ARGUMENT, "NULL"));
  EXPECT_TRUE(fails(quartet_context_create(nullptr, nullptr, error.out()), error, QUARTET_E_INVALID_ARGUMENT, "out"));
  EXPECT_TRUE(fails(quartet_options_create(nullptr, error.out()), error, QUARTET_E_INVALID_ARGUMENT, "out"));
  EXPECT_TRUE(fails(quartet_build_info(nullptr, error.out()), error, QUARTET_E_INVALID_ARGUMENT, "out"));
  EXPECT_TRUE(fails(quartet_option_describe(0, nullptr, error.out()), error, QUARTET_E_INVALID_ARGUMENT, "out"));
  EXPECT_TRUE(fails(quartet_op_describe(0, nullptr, error.out()), error, QUARTET_E_INVALID_ARGUMENT, "out"));
  EXPECT_TRUE(
      fails(quartet_future_wait_any(nullptr, 2, 0, nullptr, error.out()), error, QUARTET_E_INVALID_ARGUMENT, "NULL"));
}

TEST(Misuse, WrongKindOfHandle) {
  Error error;
  quartet_options* options = nullptr;
  ASSERT_TRUE(is_ok(quartet_options_create(&options, error.out()), error));
  const OptionsHandle owned(options);
  const Context context = make_context();
  for (const Call& call : kCalls) {
    SCOPED_TRACE(call.name);
    const bool takes_options = std::string_view(call.handle) == "quartet_options";
    void* wrong = takes_options ? static_cast<void*>(context.get()) : static_cast<void*>(options);
    const std::string words =
        std::string(takes_options ? "quartet_context" : "quartet_options") + " where a " + call.handle;
    EXPECT_TRUE(fails(call.call(wrong, error.out()), error, QUARTET_E_INVALID_ARGUMENT, words));
  }
}

TEST(Misuse, PointerToSomethingElse) {
  alignas(16) char memory[64] = "this is no handle";
  for (const Call& call : kCalls) {
    SCOPED_TRACE(call.name);
    Error error;
    EXPECT_TRUE(fails(call.call(memory, error.out()), error, QUARTET_E_INVALID_ARGUMENT, "unknown"));
    EXPECT_TRUE(fails(call.call(memory + 1, error.out()), error, QUARTET_E_INVALID_ARGUMENT, "is not a"));
  }
}

TEST(Misuse, InfallibleFunctionsTakeAnything) {
  alignas(16) char memory[64] = "this is no handle";
  for (void* handle : {static_cast<void*>(nullptr), static_cast<void*>(memory), static_cast<void*>(memory + 1)}) {
    EXPECT_EQ(quartet_error_code(static_cast<quartet_error*>(handle)), QUARTET_OK);
    EXPECT_STREQ(quartet_error_message(static_cast<quartet_error*>(handle), nullptr), "");
    EXPECT_STREQ(quartet_error_stage(static_cast<quartet_error*>(handle), nullptr), "");
    EXPECT_EQ(quartet_error_node(static_cast<quartet_error*>(handle)), -1);
    EXPECT_EQ(quartet_error_attachment_count(static_cast<quartet_error*>(handle)), 0U);
    EXPECT_EQ(quartet_error_attachment_name(static_cast<quartet_error*>(handle), 0, nullptr), nullptr);
    EXPECT_EQ(quartet_error_attachment_text(static_cast<quartet_error*>(handle), 0, nullptr), nullptr);
    EXPECT_EQ(quartet_blob_data(static_cast<quartet_blob*>(handle), nullptr), nullptr);
    EXPECT_EQ(quartet_device_count(static_cast<quartet_context*>(handle)), 0U);
    EXPECT_EQ(quartet_graph_input_count(static_cast<quartet_graph*>(handle)), 0U);
    EXPECT_EQ(quartet_graph_output_count(static_cast<quartet_graph*>(handle)), 0U);
    EXPECT_EQ(quartet_graph_symbol_count(static_cast<quartet_graph*>(handle)), 0U);
    EXPECT_EQ(quartet_graph_symbol_name(static_cast<quartet_graph*>(handle), 0, nullptr), nullptr);
    EXPECT_EQ(quartet_program_input_count(static_cast<quartet_program*>(handle)), 0U);
    EXPECT_EQ(quartet_program_output_count(static_cast<quartet_program*>(handle)), 0U);
    EXPECT_EQ(quartet_future_poll(static_cast<quartet_future*>(handle)), 1);
    EXPECT_EQ(quartet_future_take_error(static_cast<quartet_future*>(handle)), nullptr);
    quartet_error_retain(static_cast<quartet_error*>(handle));
    quartet_error_release(static_cast<quartet_error*>(handle));
    quartet_blob_release(static_cast<quartet_blob*>(handle));
    quartet_options_destroy(static_cast<quartet_options*>(handle));
    quartet_context_retain(static_cast<quartet_context*>(handle));
    quartet_context_release(static_cast<quartet_context*>(handle));
    quartet_builder_destroy(static_cast<quartet_builder*>(handle));
    quartet_graph_retain(static_cast<quartet_graph*>(handle));
    quartet_graph_release(static_cast<quartet_graph*>(handle));
    quartet_program_retain(static_cast<quartet_program*>(handle));
    quartet_program_release(static_cast<quartet_program*>(handle));
    quartet_buffer_retain(static_cast<quartet_buffer*>(handle));
    quartet_buffer_release(static_cast<quartet_buffer*>(handle));
    quartet_binding_destroy(static_cast<quartet_binding*>(handle));
    quartet_future_retain(static_cast<quartet_future*>(handle));
    quartet_future_release(static_cast<quartet_future*>(handle));
    quartet_future_cancel(static_cast<quartet_future*>(handle));
  }
}

TEST(Misuse, ShortAndLongStructs) {
  const Context context = make_context();
  Error error;
  struct Longer {
    quartet_memory_usage usage;
    uint64_t later;
  } longer{};
  longer.usage.struct_size = sizeof longer;
  longer.later = 99;
  EXPECT_TRUE(is_ok(quartet_context_memory_usage(context.get(), &longer.usage, error.out()), error));
  EXPECT_EQ(longer.later, 0U) << "what the library does not know is zeroed";
  EXPECT_EQ(longer.usage.struct_size, sizeof longer);
  if (QUARTET_REPLACES_NEW) {
    EXPECT_GT(longer.usage.live_bytes, 0U);
  }
  for (const uint32_t size : {0U, 4U, static_cast<uint32_t>(sizeof(quartet_memory_usage)) - 1, 0xffffffffU}) {
    quartet_memory_usage usage{};
    usage.struct_size = size;
    EXPECT_TRUE(fails(quartet_context_memory_usage(context.get(), &usage, error.out()), error,
                      QUARTET_E_INVALID_ARGUMENT, "struct_size"));
  }
}

TEST(Misuse, InputStructsOfTheFuture) {
  Error error;
  struct Longer {
    quartet_context_desc desc;
    uint64_t later;
  } longer{};
  longer.desc = context_desc();
  longer.desc.struct_size = sizeof longer;
  quartet_context* raw = nullptr;
  ASSERT_TRUE(is_ok(quartet_context_create(&longer.desc, &raw, error.out()), error));
  quartet_context_release(raw);
  longer.later = 1;
  EXPECT_TRUE(fails(quartet_context_create(&longer.desc, &raw, error.out()), error, QUARTET_E_UNSUPPORTED, "byte"));
  EXPECT_EQ(raw, nullptr);
  longer.desc.struct_size = 8;
  EXPECT_TRUE(
      fails(quartet_context_create(&longer.desc, &raw, error.out()), error, QUARTET_E_INVALID_ARGUMENT, "struct_size"));
}

TEST(Misuse, UnknownFlagsAndNumbers) {
  const Context context = make_context();
  Error error;
  quartet_buffer* buffer = nullptr;
  EXPECT_TRUE(fails(quartet_buffer_alloc(context.get(), nullptr, 64, 0, 1, &buffer, error.out()), error,
                    QUARTET_E_UNSUPPORTED, "flags"));
  EXPECT_TRUE(fails(quartet_buffer_alloc(context.get(), nullptr, 64, 48, 0, &buffer, error.out()), error,
                    QUARTET_E_INVALID_ARGUMENT, "power of two"));
  EXPECT_TRUE(fails(quartet_context_set_log_level(context.get(), 9, error.out()), error, QUARTET_E_UNSUPPORTED, "9"));
  quartet_context_desc desc = context_desc();
  desc.flags = 4;
  quartet_context* other = nullptr;
  EXPECT_TRUE(fails(quartet_context_create(&desc, &other, error.out()), error, QUARTET_E_UNSUPPORTED, "flags"));
  auto cache = make_struct<quartet_cache_desc>();
  cache.mode = 17;
  desc = context_desc();
  desc.cache = &cache;
  EXPECT_TRUE(fails(quartet_context_create(&desc, &other, error.out()), error, QUARTET_E_UNSUPPORTED, "cache mode"));
  cache.mode = QUARTET_CACHE_DISK;
  EXPECT_TRUE(fails(quartet_context_create(&desc, &other, error.out()), error, QUARTET_E_INVALID_ARGUMENT, "path"));
}

}  // namespace
}  // namespace quartet::capi_test
