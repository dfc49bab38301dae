// The host's allocator and budget: everything counted, everything given back, refusals survived.
#include <cstdio>
#include <fstream>

#include "capi/memory.h"
#include "unit/capi/support.h"

namespace quartet::capi_test {
namespace {

TEST(Memory, EverythingComesFromTheHostAndGoesBack) {
  if (QUARTET_REPLACES_NEW == 0) GTEST_SKIP() << "this build counts only what is asked for by name";
  HostHeap heap;
  const quartet_allocator allocator = heap.allocator();
  quartet_context_desc desc = context_desc();
  desc.allocator = &allocator;
  {
    const Context context = make_context(&desc);
    const size_t after_create = heap.live();
    EXPECT_GT(after_create, 0U);
    const Graph graph = make_mlp(context.get());
    EXPECT_GT(heap.live(), after_create);
    Error error;
    auto usage = make_struct<quartet_memory_usage>();
    ASSERT_TRUE(is_ok(quartet_context_memory_usage(context.get(), &usage, error.out()), error));
    EXPECT_EQ(usage.live_blocks, heap.live());
    EXPECT_GE(usage.peak_bytes, usage.live_bytes);
    EXPECT_GE(usage.total_blocks, usage.live_blocks);
    quartet_blob* text = nullptr;
    ASSERT_TRUE(is_ok(quartet_graph_print(graph.get(), &text, error.out()), error));
    const Blob owned(text);
    EXPECT_EQ(heap.frees_of_user(), 0);
  }
  EXPECT_EQ(heap.live(), 0U);
  EXPECT_EQ(heap.frees_of_user(), 1);
  EXPECT_EQ(heap.mistakes(), 0);
}

TEST(Memory, WhatOutlivesTheContextKeepsTheAllocator) {
  if (QUARTET_REPLACES_NEW == 0) GTEST_SKIP() << "this build counts only what is asked for by name";
  HostHeap heap;
  const quartet_allocator allocator = heap.allocator();
  quartet_context_desc desc = context_desc();
  desc.allocator = &allocator;
  Blob text;
  Graph graph;
  {
    const Context context = make_context(&desc);
    graph = make_mlp(context.get());
    Error error;
    quartet_blob* raw = nullptr;
    ASSERT_TRUE(is_ok(quartet_graph_print(graph.get(), &raw, error.out()), error));
    text.reset(raw);
  }
  EXPECT_EQ(heap.frees_of_user(), 0);
  Error error;
  uint8_t digest[16];
  EXPECT_TRUE(is_ok(quartet_graph_digest(graph.get(), digest, error.out()), error)) << "the graph holds its context";
  graph.reset();
  EXPECT_EQ(heap.frees_of_user(), 0);
  EXPECT_FALSE(text_of(text).empty());
  text.reset();
  EXPECT_EQ(heap.live(), 0U);
  EXPECT_EQ(heap.frees_of_user(), 1);
}

TEST(Memory, UserDataIsFreedOnceWhenCreatingFails) {
  if (QUARTET_REPLACES_NEW == 0) GTEST_SKIP() << "this build counts only what is asked for by name";
  HostHeap heap;
  const quartet_allocator allocator = heap.allocator();
  quartet_context_desc desc = context_desc();
  desc.allocator = &allocator;
  desc.flags = 1;
  Error error;
  quartet_context* context = nullptr;
  EXPECT_TRUE(fails(quartet_context_create(&desc, &context, error.out()), error, QUARTET_E_UNSUPPORTED, "flags"));
  EXPECT_EQ(heap.frees_of_user(), 1);
  desc.flags = 0;
  heap.fail_at(3);
  EXPECT_TRUE(fails(quartet_context_create(&desc, &context, error.out()), error, QUARTET_E_OUT_OF_MEMORY, "memory"));
  EXPECT_EQ(heap.frees_of_user(), 2);
  EXPECT_EQ(heap.live(), 0U);
}

TEST(Memory, TheBudgetIsAStatusNotAnEnd) {
  if (QUARTET_REPLACES_NEW == 0) GTEST_SKIP() << "this build counts only what is asked for by name";
  quartet_context_desc desc = context_desc();
  desc.budget_bytes = 8 << 20;
  const Context context = make_context(&desc);
  Error error;
  quartet_buffer* buffer = nullptr;
  EXPECT_TRUE(fails(quartet_buffer_alloc(context.get(), nullptr, 16 << 20, 0, 0, &buffer, error.out()), error,
                    QUARTET_E_RESOURCE_EXHAUSTED, "budget"));
  EXPECT_EQ(buffer, nullptr);
  ASSERT_TRUE(is_ok(quartet_buffer_alloc(context.get(), nullptr, 1 << 20, 0, 0, &buffer, error.out()), error));
  quartet_buffer_release(buffer);
  const std::string text(9 << 20, ' ');
  quartet_graph* graph = nullptr;
  const int32_t status = quartet_graph_parse(context.get(), text.data(), text.size(), &graph, error.out());
  EXPECT_NE(status, QUARTET_OK);
  auto usage = make_struct<quartet_memory_usage>();
  ASSERT_TRUE(is_ok(quartet_context_memory_usage(context.get(), &usage, error.out()), error));
  EXPECT_LE(usage.peak_bytes, desc.budget_bytes);
}

// What a model's file and its constants take is the context's, too: the largest blocks there are.
TEST(Memory, FilesAndConstantsCount) {
  if (QUARTET_REPLACES_NEW == 0) GTEST_SKIP() << "this build counts only what is asked for by name";
  quartet_context_desc desc = context_desc();
  desc.budget_bytes = 8 << 20;
  const Context context = make_context(&desc);
  const std::string path = testing::TempDir() + "quartet_memory_test.onnx";
  std::ofstream(path, std::ios::binary) << std::string(9 << 20, '\0');
  Error error;
  quartet_graph* graph = nullptr;
  EXPECT_TRUE(fails(quartet_graph_import_onnx_file(context.get(), path.c_str(), SIZE_MAX, nullptr, &graph, error.out()),
                    error, QUARTET_E_RESOURCE_EXHAUSTED, "budget"));
  std::remove(path.c_str());

  quartet_builder* raw = nullptr;
  ASSERT_TRUE(is_ok(quartet_builder_create(context.get(), &raw, error.out()), error));
  const Builder builder(raw);
  const std::vector<float> numbers(1 << 20, 1.5F);
  const size_t bytes = numbers.size() * sizeof(float);
  const int64_t dims[] = {1 << 20};
  int32_t value = -1;
  ASSERT_TRUE(is_ok(quartet_builder_constant(raw, QUARTET_DTYPE_F32, 1, dims, numbers.data(), bytes, 0, nullptr,
                                             nullptr, &value, error.out()),
                    error));
  auto usage = make_struct<quartet_memory_usage>();
  ASSERT_TRUE(is_ok(quartet_context_memory_usage(context.get(), &usage, error.out()), error));
  EXPECT_GE(usage.live_bytes, bytes);
}

// A sequence of calls that reaches no code generator; returns the first status that is not ok.
int32_t build_and_print(const quartet_context_desc& desc) {
  quartet_context* raw_context = nullptr;
  if (const int32_t status = quartet_context_create(&desc, &raw_context, nullptr); status != QUARTET_OK) return status;
  const Context context(raw_context);
  quartet_builder* raw_builder = nullptr;
  if (const int32_t status = quartet_builder_create(raw_context, &raw_builder, nullptr)) return status;
  const Builder builder(raw_builder);
  int64_t dims[2] = {0, 4};
  int32_t x = 0, y[2] = {0, 0};
  if (const int32_t status = quartet_builder_dim_symbol(raw_builder, "rows", 4, &dims[0], nullptr)) return status;
  if (const int32_t status = quartet_builder_input(raw_builder, "x", 1, QUARTET_DTYPE_F32, 2, dims, &x, nullptr))
    return status;
  const std::vector<float> ones(64, 1.0F);
  const int64_t c_dims[2] = {4, 16};
  if (const int32_t status = quartet_builder_constant(raw_builder, QUARTET_DTYPE_F32, 2, c_dims, ones.data(), 256, 0,
                                                      nullptr, nullptr, &y[1], nullptr)) {
    return status;
  }
  y[0] = x;
  if (const int32_t status = quartet_builder_op(raw_builder, "matmul", 6, y, 2, nullptr, 0, y, 1, nullptr))
    return status;
  auto attr = make_struct<quartet_attr>();
  const int64_t axis = 1;
  attr.kind = QUARTET_ATTR_I64;
  attr.name = "axis";
  attr.name_size = 4;
  attr.data = &axis;
  attr.count = 1;
  if (const int32_t status = quartet_builder_op(raw_builder, "softmax", 7, y, 1, &attr, 1, y, 1, nullptr))
    return status;
  if (const int32_t status = quartet_builder_output(raw_builder, y[0], "probabilities", SIZE_MAX, nullptr))
    return status;
  quartet_graph* raw_graph = nullptr;
  if (const int32_t status = quartet_builder_finish(raw_builder, &raw_graph, nullptr)) return status;
  const Graph graph(raw_graph);
  quartet_blob* raw_blob = nullptr;
  if (const int32_t status = quartet_graph_print(raw_graph, &raw_blob, nullptr)) return status;
  const Blob text(raw_blob);
  size_t size = 0;
  const auto* words = static_cast<const char*>(quartet_blob_data(raw_blob, &size));
  quartet_graph* raw_again = nullptr;
  if (const int32_t status = quartet_graph_parse(raw_context, words, size, &raw_again, nullptr)) return status;
  const Graph again(raw_again);
  if (const int32_t status = quartet_graph_serialize(raw_graph, &raw_blob, nullptr)) return status;
  const Blob bytes(raw_blob);
  const void* data = quartet_blob_data(raw_blob, &size);
  if (const int32_t status = quartet_graph_deserialize(raw_context, data, size, &raw_again, nullptr)) return status;
  const Graph third(raw_again);
  uint8_t key[16];
  if (const int32_t status = quartet_compile_key(raw_context, raw_graph, nullptr, nullptr, key, &raw_blob, nullptr))
    return status;
  quartet_blob_release(raw_blob);
  quartet_buffer* raw_buffer = nullptr;
  if (const int32_t status = quartet_buffer_alloc(raw_context, nullptr, 4096, 256, 0, &raw_buffer, nullptr))
    return status;
  quartet_buffer_release(raw_buffer);
  if (const int32_t status = quartet_cache_list(raw_context, &raw_blob, nullptr)) return status;
  quartet_blob_release(raw_blob);
  return QUARTET_OK;
}

class FailingAllocations : public testing::TestWithParam<bool> {};

TEST_P(FailingAllocations, EachInTurnGivesAStatusAndLeavesNothing) {
  if (QUARTET_REPLACES_NEW == 0) GTEST_SKIP() << "this build counts only what is asked for by name";
  int64_t n = 0;
  int refused = 0;
  while (true) {
    HostHeap heap;
    const quartet_allocator allocator = heap.allocator();
    quartet_context_desc desc = context_desc();
    desc.allocator = &allocator;
    heap.fail_at(n, GetParam());
    const int32_t status = build_and_print(desc);
    const bool was_refused = heap.refused();
    ASSERT_EQ(heap.live(), 0U) << "after refusing allocation " << n;
    ASSERT_EQ(heap.mistakes(), 0) << "after refusing allocation " << n;
    ASSERT_EQ(heap.frees_of_user(), 1) << "after refusing allocation " << n;
    if (!was_refused) {
      ASSERT_EQ(status, QUARTET_OK);
      break;
    }
    // Some refusals are survived: a message not logged, a number of threads not started.
    if (status != QUARTET_OK) {
      ASSERT_EQ(status, QUARTET_E_OUT_OF_MEMORY) << "after refusing allocation " << n;
      ++refused;
    }
    ++n;
  }
  EXPECT_GT(refused, 300);
}

INSTANTIATE_TEST_SUITE_P(OnceAndForever, FailingAllocations, testing::Bool());

}  // namespace
}  // namespace quartet::capi_test
