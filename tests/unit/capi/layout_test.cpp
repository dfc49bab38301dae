// The layout of the structs of version 1.0 on 64-bit systems. A failure here is a broken interface, not a stale test.
#include <cstddef>

#include "unit/capi/support.h"

namespace quartet::capi_test {
namespace {

#if UINTPTR_MAX == UINT64_MAX

#define LAYOUT(type, size) static_assert(sizeof(type) == (size) && alignof(type) == 8)
#define AT(type, field, offset) static_assert(offsetof(type, field) == (offset))

LAYOUT(quartet_allocator, 40);
AT(quartet_allocator, user, 8);
AT(quartet_allocator, alloc, 16);
AT(quartet_allocator, dealloc, 24);
AT(quartet_allocator, free_user, 32);
LAYOUT(quartet_logger, 32);
AT(quartet_logger, level, 4);
AT(quartet_logger, log, 16);
AT(quartet_logger, free_user, 24);
LAYOUT(quartet_executor, 48);
AT(quartet_executor, submit, 16);
AT(quartet_executor, concurrency, 24);
AT(quartet_executor, free_user, 32);
AT(quartet_executor, stack_bytes, 40);
LAYOUT(quartet_cache_desc, 40);
AT(quartet_cache_desc, path, 8);
AT(quartet_cache_desc, max_bytes, 24);
AT(quartet_cache_desc, memory_bytes, 32);
LAYOUT(quartet_context_desc, 64);
AT(quartet_context_desc, allocator, 8);
AT(quartet_context_desc, logger, 16);
AT(quartet_context_desc, executor, 24);
AT(quartet_context_desc, cache, 32);
AT(quartet_context_desc, budget_bytes, 40);
AT(quartet_context_desc, compiler_path, 48);
LAYOUT(quartet_memory_usage, 48);
AT(quartet_memory_usage, live_bytes, 8);
AT(quartet_memory_usage, total_blocks, 40);
LAYOUT(quartet_option_info, 72);
AT(quartet_option_info, name, 24);
AT(quartet_option_info, choices, 40);
AT(quartet_option_info, most, 64);
LAYOUT(quartet_device_info, 80);
AT(quartet_device_info, name, 8);
AT(quartet_device_info, cores, 32);
AT(quartet_device_info, memory_bytes, 72);
LAYOUT(quartet_tensor_info, 48);
AT(quartet_tensor_info, flags, 12);
AT(quartet_tensor_info, dims, 32);
AT(quartet_tensor_info, dim_texts, 40);
LAYOUT(quartet_op_info, 40);
AT(quartet_op_info, name, 24);
LAYOUT(quartet_attr, 40);
AT(quartet_attr, name, 8);
AT(quartet_attr, data, 24);
AT(quartet_attr, count, 32);
LAYOUT(quartet_program_info, 64);
AT(quartet_program_info, code_bytes, 16);
AT(quartet_program_info, compile_ns, 40);
AT(quartet_program_info, library_share, 56);
LAYOUT(quartet_buffer_info, 32);
AT(quartet_buffer_info, host, 16);
LAYOUT(quartet_tensor, 304);
AT(quartet_tensor, flags, 12);
AT(quartet_tensor, data, 16);
AT(quartet_tensor, buffer, 24);
AT(quartet_tensor, offset, 32);
AT(quartet_tensor, bytes, 40);
AT(quartet_tensor, dims, 48);
AT(quartet_tensor, strides, 176);
LAYOUT(quartet_cache_stats, 104);
AT(quartet_cache_stats, lookups, 8);
AT(quartet_cache_stats, saved_ns, 96);

#endif

// Every field of an output struct lies where a host of another language reads it: written through the function, read by
// offset.
TEST(Layout, AStructIsReadByOffset) {
  auto info = make_struct<quartet_op_info>();
  Error error;
  ASSERT_TRUE(is_ok(quartet_op_describe(0, &info, error.out()), error));
  const auto* bytes = reinterpret_cast<const char*>(&info);
  int32_t id = 0;
  const char* name = nullptr;
  std::memcpy(&id, bytes + 4, sizeof id);
  std::memcpy(&name, bytes + 24, sizeof name);
  EXPECT_EQ(quartet_op_find(name, SIZE_MAX), id);
}

}  // namespace
}  // namespace quartet::capi_test
