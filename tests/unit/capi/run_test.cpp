// Programs: running in every way the interface offers, and what they tell of themselves.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "capi/memory.h"
#include "unit/capi/run_fixture.h"

namespace quartet::capi_test {
namespace {

TEST_F(RunTest, IntoMemoryGiven) {
  std::vector<float> y(7, -5);
  auto out = empty_tensor();
  out.data = y.data();
  out.bytes = 6 * sizeof(float);
  ASSERT_TRUE(is_ok(run(tensor_of(rows_, {2, 4}), out), error_));
  EXPECT_EQ(std::vector<float>(y.begin(), y.begin() + 6), wanted_);
  EXPECT_EQ(y[6], -5);
  EXPECT_EQ(out.dtype, QUARTET_DTYPE_F32);
  EXPECT_EQ(out.rank, 2);
  EXPECT_EQ(out.dims[0], 2);
  EXPECT_EQ(out.dims[1], 3);
}

TEST_F(RunTest, IntoABufferMade) {
  auto out = empty_tensor();
  ASSERT_TRUE(is_ok(run(tensor_of(rows_, {2, 4}), out), error_));
  ASSERT_NE(out.buffer, nullptr);
  const Buffer buffer(out.buffer);
  auto info = make_struct<quartet_buffer_info>();
  ASSERT_TRUE(is_ok(quartet_buffer_get_info(out.buffer, &info, error_.out()), error_));
  EXPECT_EQ(info.bytes, 24U);
  EXPECT_EQ(info.host, out.data);
  EXPECT_EQ(std::memcmp(out.data, wanted_.data(), 24), 0);
}

TEST_F(RunTest, AfterAskingForShapes) {
  auto in = make_struct<quartet_tensor>();  // no memory
  in.dtype = QUARTET_DTYPE_F32;
  in.rank = 2;
  in.dims[0] = 2;
  in.dims[1] = 4;
  auto out = empty_tensor();
  ASSERT_TRUE(is_ok(quartet_program_output_shapes(program_.get(), &in, 1, &out, 1, error_.out()), error_));
  EXPECT_EQ(out.rank, 2);
  EXPECT_EQ(out.dims[0], 2);
  EXPECT_EQ(out.bytes, 24U);
  std::vector<float> y(6);
  out.data = y.data();
  ASSERT_TRUE(is_ok(run(tensor_of(rows_, {2, 4}), out), error_));
  EXPECT_EQ(y, wanted_);
}

TEST_F(RunTest, OtherDimsWithoutAnotherCompile) {
  for (int64_t count : {0, 1, 3, 17}) {
    std::vector<float> x(static_cast<size_t>(count) * 4 + 1, 1.0F);
    auto out = empty_tensor();
    ASSERT_TRUE(is_ok(run(tensor_of(x, {count, 4}), out), error_)) << count;
    const Buffer buffer(out.buffer);
    EXPECT_EQ(out.dims[0], count);
    for (int64_t i = 0; i < count; ++i) EXPECT_EQ(static_cast<float*>(out.data)[i * 3], 1.0F);
  }
}

TEST_F(RunTest, WhatDoesNotFitIsNamed) {
  std::vector<float> y(6);
  quartet_tensor out = tensor_of(y, {});
  EXPECT_TRUE(fails(run(tensor_of(rows_, {2, 2, 2}), out), error_, QUARTET_E_INVALID_ARGUMENT, "x"));
  EXPECT_TRUE(fails(run(tensor_of(rows_, {4, 2}), out), error_, QUARTET_E_INVALID_ARGUMENT, "x"));
  EXPECT_TRUE(fails(run(tensor_of(rows_, {3, 4}), out), error_, QUARTET_E_INVALID_ARGUMENT, "bytes"));
  EXPECT_TRUE(fails(run(tensor_of(rows_, {-2, 4}), out), error_, QUARTET_E_INVALID_ARGUMENT, "extent"));
  quartet_tensor wrong_type = tensor_of(rows_, {2, 4});
  wrong_type.dtype = QUARTET_DTYPE_I32;
  EXPECT_TRUE(fails(run(wrong_type, out), error_, QUARTET_E_INVALID_ARGUMENT, "i32"));
  quartet_tensor no_memory = tensor_of(rows_, {2, 4});
  no_memory.data = nullptr;
  EXPECT_TRUE(fails(run(no_memory, out), error_, QUARTET_E_INVALID_ARGUMENT, "neither"));
  quartet_tensor askew = tensor_of(rows_, {1, 4});
  askew.offset = 2;
  EXPECT_TRUE(fails(run(askew, out), error_, QUARTET_E_INVALID_ARGUMENT, "multiple"));
  quartet_tensor flags = tensor_of(rows_, {2, 4});
  flags.flags = 8;
  EXPECT_TRUE(fails(run(flags, out), error_, QUARTET_E_UNSUPPORTED, "flags"));
  out.bytes = 20;
  EXPECT_TRUE(fails(run(tensor_of(rows_, {2, 4}), out), error_, QUARTET_E_INVALID_ARGUMENT, "20 bytes"));
  const quartet_tensor in = tensor_of(rows_, {2, 4});
  EXPECT_TRUE(fails(quartet_run_sync(program_.get(), &in, 0, &out, 1, error_.out()), error_, QUARTET_E_INVALID_ARGUMENT,
                    "inputs"));
  EXPECT_TRUE(fails(quartet_run_sync(program_.get(), &in, 1, &out, 0, error_.out()), error_, QUARTET_E_INVALID_ARGUMENT,
                    "outputs"));
}

TEST_F(RunTest, StridedTensors) {
  // The rows as columns of a [4, 2] array.
  std::vector<float> columns{1, -1, 2, 0, 3, 1, 4, 0};
  quartet_tensor in = tensor_of(columns, {2, 4});
  in.flags = QUARTET_TENSOR_STRIDED;
  in.strides[0] = 1;
  in.strides[1] = 2;
  std::vector<float> y(8, 9);
  quartet_tensor out = tensor_of(y, {2, 3});
  out.flags = QUARTET_TENSOR_STRIDED;
  out.strides[0] = 1;
  out.strides[1] = 2;
  ASSERT_TRUE(is_ok(run(in, out), error_));
  EXPECT_EQ(y, (std::vector<float>{0, 0, 9.75F, 0, 2, 2, 9, 9}));
  in.strides[1] = 3;
  EXPECT_TRUE(fails(run(in, out), error_, QUARTET_E_INVALID_ARGUMENT, "beyond"));
  in.strides[1] = -2;
  EXPECT_TRUE(fails(run(in, out), error_, QUARTET_E_UNSUPPORTED, "negative"));
  in.strides[1] = 2;
  out.strides[1] = 0;
  EXPECT_TRUE(fails(run(in, out), error_, QUARTET_E_INVALID_ARGUMENT, "overlap"));
}

TEST_F(RunTest, BuffersAsTensors) {
  quartet_buffer* raw = nullptr;
  ASSERT_TRUE(is_ok(quartet_buffer_alloc(context_.get(), nullptr, 48, 0, 0, &raw, error_.out()), error_));
  const Buffer buffer(raw);
  void* mapped = nullptr;
  ASSERT_TRUE(is_ok(quartet_buffer_map(raw, 16, 32, QUARTET_MAP_WRITE, &mapped, error_.out()), error_));
  std::memcpy(mapped, rows_.data(), 32);
  EXPECT_TRUE(is_ok(quartet_buffer_unmap(raw, error_.out()), error_));
  EXPECT_TRUE(fails(quartet_buffer_unmap(raw, error_.out()), error_, QUARTET_E_FAILED_PRECONDITION, "mapped"));
  EXPECT_TRUE(fails(quartet_buffer_map(raw, 40, 9, QUARTET_MAP_READ, &mapped, error_.out()), error_,
                    QUARTET_E_INVALID_ARGUMENT, "40"));
  EXPECT_EQ(mapped, nullptr);
  auto in = make_struct<quartet_tensor>();
  in.dtype = QUARTET_DTYPE_F32;
  in.rank = 2;
  in.dims[0] = 2;
  in.dims[1] = 4;
  in.buffer = raw;
  in.offset = 16;
  auto out = empty_tensor();
  ASSERT_TRUE(is_ok(run(in, out), error_));
  EXPECT_EQ(std::memcmp(out.data, wanted_.data(), 24), 0);
  quartet_buffer_release(out.buffer);
  in.offset = 20;
  out = empty_tensor();
  EXPECT_TRUE(fails(run(in, out), error_, QUARTET_E_INVALID_ARGUMENT, "bytes"));
  in.offset = 52;
  EXPECT_TRUE(fails(run(in, out), error_, QUARTET_E_INVALID_ARGUMENT, "buffer"));
  EXPECT_EQ(out.buffer, nullptr);
}

TEST_F(RunTest, ABindingRunsWithoutAllocating) {
  quartet_binding* raw = nullptr;
  ASSERT_TRUE(is_ok(quartet_binding_create(program_.get(), &raw, error_.out()), error_));
  const Binding binding(raw);
  auto out = empty_tensor();
  EXPECT_TRUE(fails(quartet_binding_run(raw, error_.out()), error_, QUARTET_E_FAILED_PRECONDITION, "x"));
  EXPECT_TRUE(fails(quartet_binding_get_output(raw, 0, &out, error_.out()), error_, QUARTET_E_FAILED_PRECONDITION, ""));
  const quartet_tensor in = tensor_of(rows_, {2, 4});
  ASSERT_TRUE(is_ok(quartet_binding_set_input(raw, 0, &in, error_.out()), error_));
  ASSERT_TRUE(is_ok(quartet_binding_prepare(raw, error_.out()), error_));
  ASSERT_TRUE(is_ok(quartet_binding_run(raw, error_.out()), error_));  // the first run may start threads
  auto before = make_struct<quartet_memory_usage>(), after = before;
  ASSERT_EQ(quartet_context_memory_usage(context_.get(), &before, nullptr), QUARTET_OK);
  for (int i = 0; i < 100; ++i) {
    rows_[0] = static_cast<float>(i);
    ASSERT_EQ(quartet_binding_run(raw, nullptr), QUARTET_OK);
  }
  ASSERT_EQ(quartet_context_memory_usage(context_.get(), &after, nullptr), QUARTET_OK);
  EXPECT_EQ(before.total_blocks, after.total_blocks);
  ASSERT_TRUE(is_ok(quartet_binding_get_output(raw, 0, &out, error_.out()), error_));
  EXPECT_EQ(out.dims[0], 2);
  EXPECT_EQ(static_cast<const float*>(out.data)[0], 96.5F);
  EXPECT_TRUE(fails(quartet_binding_set_input(raw, 1, &in, error_.out()), error_, QUARTET_E_INVALID_ARGUMENT, "index"));
}

TEST_F(RunTest, ABindingTakesOtherTensorsAndWorkspace) {
  quartet_binding* raw = nullptr;
  ASSERT_TRUE(is_ok(quartet_binding_create(program_.get(), &raw, error_.out()), error_));
  const Binding binding(raw);
  quartet_tensor in = tensor_of(rows_, {2, 4});
  ASSERT_TRUE(is_ok(quartet_binding_set_input(raw, 0, &in, error_.out()), error_));
  uint64_t bytes = 0;
  ASSERT_TRUE(is_ok(quartet_binding_workspace_size(raw, &bytes, error_.out()), error_));
  void* workspace = std::aligned_alloc(64, (bytes + 127) / 64 * 64);
  ASSERT_TRUE(is_ok(quartet_binding_set_workspace(raw, workspace, bytes, error_.out()), error_));
  std::vector<float> y(6, -1);
  quartet_tensor out = tensor_of(y, {});
  ASSERT_TRUE(is_ok(quartet_binding_set_output(raw, 0, &out, error_.out()), error_));
  ASSERT_TRUE(is_ok(quartet_binding_run(raw, error_.out()), error_));
  EXPECT_EQ(y, wanted_);
  in = tensor_of(rows_, {1, 4});
  ASSERT_TRUE(is_ok(quartet_binding_set_input(raw, 0, &in, error_.out()), error_));
  out = empty_tensor();
  ASSERT_TRUE(is_ok(quartet_binding_set_output(raw, 0, &out, error_.out()), error_));
  ASSERT_TRUE(is_ok(quartet_binding_set_workspace(raw, nullptr, 0, error_.out()), error_));
  ASSERT_TRUE(is_ok(quartet_binding_run(raw, error_.out()), error_));
  ASSERT_TRUE(is_ok(quartet_binding_get_output(raw, 0, &out, error_.out()), error_));
  EXPECT_EQ(out.dims[0], 1);
  EXPECT_EQ(std::memcmp(out.data, wanted_.data(), 12), 0);
  std::free(workspace);
}

TEST_F(RunTest, ABindingWithStridesAndBuffers) {
  quartet_binding* raw = nullptr;
  ASSERT_TRUE(is_ok(quartet_binding_create(program_.get(), &raw, error_.out()), error_));
  const Binding binding(raw);
  std::vector<float> columns{1, -1, 2, 0, 3, 1, 4, 0}, y(6, 9);
  quartet_tensor in = tensor_of(columns, {2, 4}), out = tensor_of(y, {2, 3});
  in.flags = out.flags = QUARTET_TENSOR_STRIDED;
  in.strides[0] = out.strides[0] = 1;
  in.strides[1] = out.strides[1] = 2;
  ASSERT_TRUE(is_ok(quartet_binding_set_input(raw, 0, &in, error_.out()), error_));
  ASSERT_TRUE(is_ok(quartet_binding_set_output(raw, 0, &out, error_.out()), error_));
  in.strides[1] = 77;  // the binding has its own copy
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(is_ok(quartet_binding_run(raw, error_.out()), error_));
    EXPECT_EQ(y, (std::vector<float>{0, 0, 9.75F, 0, 2, 2}));
  }
  int freed = 0;
  const auto count = [](void* user, void*, size_t) { ++*static_cast<int*>(user); };
  quartet_buffer* wrapped = nullptr;
  ASSERT_TRUE(is_ok(
      quartet_buffer_wrap(context_.get(), nullptr, rows_.data(), 32, count, &freed, &wrapped, error_.out()), error_));
  in = tensor_of(rows_, {2, 4});
  in.data = nullptr;
  in.bytes = 0;
  in.buffer = wrapped;
  ASSERT_TRUE(is_ok(quartet_binding_set_input(raw, 0, &in, error_.out()), error_));
  quartet_buffer_release(wrapped);
  EXPECT_EQ(freed, 0) << "the binding holds the buffer";
  ASSERT_TRUE(is_ok(quartet_binding_run(raw, error_.out()), error_));
  in = tensor_of(rows_, {2, 4});
  ASSERT_TRUE(is_ok(quartet_binding_set_input(raw, 0, &in, error_.out()), error_));
  EXPECT_EQ(freed, 1);
}

TEST_F(RunTest, ProgramsTellOfThemselves) {
  auto info = make_struct<quartet_program_info>();
  ASSERT_TRUE(is_ok(quartet_program_get_info(program_.get(), &info, error_.out()), error_));
  EXPECT_EQ(info.origin, QUARTET_ORIGIN_COMPILED);
  EXPECT_GE(info.kernels, 1U);
  EXPECT_GE(info.stages, 1U);
  EXPECT_GT(info.code_bytes, 0U);
  EXPECT_GT(info.compile_ns, 0U);
  auto tensor = make_struct<quartet_tensor_info>();
  ASSERT_TRUE(is_ok(quartet_program_input_info(program_.get(), 0, &tensor, error_.out()), error_));
  EXPECT_STREQ(tensor.name, "x");
  EXPECT_STREQ(tensor.dim_texts[0], "rows");
  ASSERT_TRUE(is_ok(quartet_program_output_info(program_.get(), 0, &tensor, error_.out()), error_));
  EXPECT_STREQ(tensor.name, "y");
  for (const char* stage : {"graph", "simplified", "tiles", "program", "kernel", "llvm", "asm"}) {
    quartet_blob* text = nullptr;
    ASSERT_TRUE(is_ok(quartet_program_dump(program_.get(), stage, SIZE_MAX, &text, error_.out()), error_)) << stage;
    EXPECT_FALSE(text_of(Blob(text)).empty()) << stage;
  }
  quartet_blob* none = nullptr;
  EXPECT_TRUE(
      fails(quartet_program_dump(program_.get(), "soup", 4, &none, error_.out()), error_, QUARTET_E_NOT_FOUND, "soup"));
}

TEST_F(RunTest, TheSameRequestComesFromMemory) {
  const Program again = compile(make_mlp(context_.get()));
  auto info = make_struct<quartet_program_info>();
  ASSERT_TRUE(is_ok(quartet_program_get_info(again.get(), &info, error_.out()), error_));
  EXPECT_EQ(info.origin, QUARTET_ORIGIN_MEMORY);
  quartet_options* raw = nullptr;
  ASSERT_TRUE(is_ok(quartet_options_create(&raw, error_.out()), error_));
  const OptionsHandle options(raw);
  ASSERT_TRUE(is_ok(quartet_options_set_named(raw, "cache_mode", SIZE_MAX, "off", SIZE_MAX, error_.out()), error_));
  const Program off = compile(make_mlp(context_.get()), raw);
  ASSERT_TRUE(is_ok(quartet_program_get_info(off.get(), &info, error_.out()), error_));
  EXPECT_EQ(info.origin, QUARTET_ORIGIN_COMPILED);
}

TEST_F(RunTest, OptionsAreLookedAt) {
  quartet_options* raw = nullptr;
  ASSERT_TRUE(is_ok(quartet_options_create(&raw, error_.out()), error_));
  const OptionsHandle options(raw);
  const Graph graph = make_mlp(context_.get());
  ASSERT_TRUE(is_ok(quartet_options_set_i64(raw, QUARTET_OPTION_TUNE, 4, error_.out()), error_));
  quartet_program* none = nullptr;
  EXPECT_TRUE(fails(quartet_compile(context_.get(), graph.get(), nullptr, raw, &none, error_.out()), error_,
                    QUARTET_E_UNSUPPORTED, "tune"));
  ASSERT_TRUE(is_ok(quartet_options_set_i64(raw, QUARTET_OPTION_TUNE, 0, error_.out()), error_));
  ASSERT_TRUE(is_ok(quartet_options_set_named(raw, "isa", 3, "sse2", 4, error_.out()), error_));
  ASSERT_TRUE(is_ok(quartet_options_set_named(raw, "threads", 7, "3", 1, error_.out()), error_));
  program_ = compile(graph, raw);
  auto info = make_struct<quartet_program_info>();
  ASSERT_TRUE(is_ok(quartet_program_get_info(program_.get(), &info, error_.out()), error_));
  EXPECT_EQ(info.origin, QUARTET_ORIGIN_COMPILED) << "another class is another program";
  auto out = empty_tensor();
  ASSERT_TRUE(is_ok(run(tensor_of(rows_, {2, 4}), out), error_));
  EXPECT_EQ(std::memcmp(out.data, wanted_.data(), 24), 0);
  quartet_buffer_release(out.buffer);
}

TEST_F(RunTest, BytesCarryAProgramToAnotherContext) {
  quartet_blob* blob = nullptr;
  ASSERT_TRUE(is_ok(quartet_program_serialize(program_.get(), &blob, error_.out()), error_));
  const Blob owned(blob);
  size_t size = 0;
  const void* bytes = quartet_blob_data(blob, &size);
  const Context other = make_context();
  quartet_program* raw = nullptr;
  EXPECT_TRUE(fails(quartet_program_load(other.get(), bytes, size, nullptr, nullptr, 0, &raw, error_.out()), error_,
                    QUARTET_E_INVALID_ARGUMENT, "TRUSTED"));
  EXPECT_TRUE(fails(quartet_program_load(other.get(), bytes, size, nullptr, nullptr, 6, &raw, error_.out()), error_,
                    QUARTET_E_UNSUPPORTED, "flags"));
  for (size_t cut = 0; cut < size; cut += 1 + size / 50) {
    EXPECT_NE(quartet_program_load(other.get(), bytes, cut, nullptr, nullptr, QUARTET_LOAD_TRUSTED, &raw, nullptr),
              QUARTET_OK);
  }
  ASSERT_TRUE(
      is_ok(quartet_program_load(other.get(), bytes, size, nullptr, nullptr, QUARTET_LOAD_TRUSTED, &raw, error_.out()),
            error_));
  program_.reset(raw);
  auto info = make_struct<quartet_program_info>();
  ASSERT_TRUE(is_ok(quartet_program_get_info(raw, &info, error_.out()), error_));
  EXPECT_EQ(info.origin, QUARTET_ORIGIN_BYTES);
  auto out = empty_tensor();
  ASSERT_TRUE(is_ok(run(tensor_of(rows_, {2, 4}), out), error_));
  EXPECT_EQ(std::memcmp(out.data, wanted_.data(), 24), 0);
  quartet_buffer_release(out.buffer);
}

TEST_F(RunTest, BytesCarryConstantsThatOnlyThePreparationReads) {
  constexpr int64_t kWidth = 96;
  std::vector<float> weights(kWidth * kWidth), row(kWidth, 1), wanted(kWidth);
  for (int64_t i = 0; i < kWidth * kWidth; ++i) {
    weights[static_cast<size_t>(i)] = static_cast<float>(i % 7 - 3);
    wanted[static_cast<size_t>(i % kWidth)] += static_cast<float>(i % 7 - 3);
  }
  quartet_builder* raw_builder = nullptr;
  ASSERT_TRUE(is_ok(quartet_builder_create(context_.get(), &raw_builder, error_.out()), error_));
  const Builder builder(raw_builder);
  int64_t x_dims[2] = {0, kWidth};
  const int64_t w_dims[2] = {kWidth, kWidth};
  int32_t operands[2] = {}, y = 0;
  ASSERT_TRUE(is_ok(quartet_builder_dim_symbol(raw_builder, "rows", SIZE_MAX, &x_dims[0], error_.out()), error_));
  ASSERT_TRUE(
      is_ok(quartet_builder_input(raw_builder, "x", SIZE_MAX, QUARTET_DTYPE_F32, 2, x_dims, &operands[0], error_.out()),
            error_));
  ASSERT_TRUE(
      is_ok(quartet_builder_constant(raw_builder, QUARTET_DTYPE_F32, 2, w_dims, weights.data(),
                                     weights.size() * sizeof(float), 0, nullptr, nullptr, &operands[1], error_.out()),
            error_));
  ASSERT_TRUE(
      is_ok(quartet_builder_op(raw_builder, "matmul", SIZE_MAX, operands, 2, nullptr, 0, &y, 1, error_.out()), error_));
  ASSERT_TRUE(is_ok(quartet_builder_output(raw_builder, y, "y", SIZE_MAX, error_.out()), error_));
  quartet_graph* raw_graph = nullptr;
  ASSERT_TRUE(is_ok(quartet_builder_finish(raw_builder, &raw_graph, error_.out()), error_));
  program_ = compile(Graph(raw_graph));
  // Once from the graph's constants, once more from those the bytes carry.
  for (int round = 0; round < 2; ++round) {
    quartet_blob* blob = nullptr;
    ASSERT_TRUE(is_ok(quartet_program_serialize(program_.get(), &blob, error_.out()), error_));
    const Blob owned(blob);
    size_t size = 0;
    const void* bytes = quartet_blob_data(blob, &size);
    quartet_program* raw = nullptr;
    ASSERT_TRUE(is_ok(
        quartet_program_load(context_.get(), bytes, size, nullptr, nullptr, QUARTET_LOAD_TRUSTED, &raw, error_.out()),
        error_));
    program_.reset(raw);
    auto out = empty_tensor();
    ASSERT_TRUE(is_ok(run(tensor_of(row, {1, kWidth}), out), error_));
    EXPECT_EQ(std::memcmp(out.data, wanted.data(), wanted.size() * sizeof(float)), 0);
    quartet_buffer_release(out.buffer);
  }
}

// From bytes to results, everything a host does without a compile; the first status that is not ok.
int32_t load_and_run(const quartet_context_desc& desc, const void* bytes, size_t size, std::vector<float>& rows) {
  quartet_context* raw_context = nullptr;
  if (const int32_t status = quartet_context_create(&desc, &raw_context, nullptr)) return status;
  const Context context(raw_context);
  quartet_program* raw = nullptr;
  if (const int32_t status =
          quartet_program_load(raw_context, bytes, size, nullptr, nullptr, QUARTET_LOAD_TRUSTED, &raw, nullptr)) {
    return status;
  }
  const Program program(raw);
  auto info = make_struct<quartet_program_info>();
  if (const int32_t status = quartet_program_get_info(raw, &info, nullptr)) return status;
  const quartet_tensor in = tensor_of(rows, {2, 4});
  auto out = empty_tensor();
  if (const int32_t status = quartet_program_output_shapes(raw, &in, 1, &out, 1, nullptr)) return status;
  if (const int32_t status = quartet_run_sync(raw, &in, 1, &out, 1, nullptr)) return status;
  quartet_buffer_release(out.buffer);
  quartet_binding* raw_binding = nullptr;
  if (const int32_t status = quartet_binding_create(raw, &raw_binding, nullptr)) return status;
  const Binding binding(raw_binding);
  if (const int32_t status = quartet_binding_set_input(raw_binding, 0, &in, nullptr)) return status;
  if (const int32_t status = quartet_binding_run(raw_binding, nullptr)) return status;
  quartet_blob* blob = nullptr;
  if (const int32_t status = quartet_program_serialize(raw, &blob, nullptr)) return status;
  quartet_blob_release(blob);
  return QUARTET_OK;
}

TEST_F(RunTest, EachFailingAllocationGivesAStatusAndLeavesNothing) {
  if (QUARTET_REPLACES_NEW == 0) GTEST_SKIP() << "this build counts only what is asked for by name";
  quartet_blob* blob = nullptr;
  ASSERT_TRUE(is_ok(quartet_program_serialize(program_.get(), &blob, error_.out()), error_));
  const Blob owned(blob);
  size_t size = 0;
  const void* bytes = quartet_blob_data(blob, &size);
  for (const bool persistent : {false, true}) {
    for (int64_t n = 0;; ++n) {
      HostHeap heap;
      const quartet_allocator allocator = heap.allocator();
      quartet_context_desc desc = context_desc();
      desc.allocator = &allocator;
      heap.fail_at(n, persistent);
      const int32_t status = load_and_run(desc, bytes, size, rows_);
      ASSERT_EQ(heap.live(), 0U) << "after refusing allocation " << n;
      ASSERT_EQ(heap.mistakes(), 0) << "after refusing allocation " << n;
      ASSERT_EQ(heap.frees_of_user(), 1) << "after refusing allocation " << n;
      if (!heap.refused()) {
        ASSERT_EQ(status, QUARTET_OK);
        ASSERT_GT(n, 100);
        break;
      }
      ASSERT_TRUE(status == QUARTET_OK || status == QUARTET_E_OUT_OF_MEMORY) << quartet_status_name(status, nullptr);
    }
  }
}

TEST_F(RunTest, AnyOrderOfRelease) {
  quartet_binding* binding = nullptr;
  ASSERT_TRUE(is_ok(quartet_binding_create(program_.get(), &binding, error_.out()), error_));
  auto out = empty_tensor();
  ASSERT_TRUE(is_ok(run(tensor_of(rows_, {2, 4}), out), error_));
  context_.reset();
  program_.reset();
  const quartet_tensor in = tensor_of(rows_, {2, 4});
  EXPECT_TRUE(is_ok(quartet_binding_set_input(binding, 0, &in, error_.out()), error_));
  EXPECT_TRUE(is_ok(quartet_binding_run(binding, error_.out()), error_));
  quartet_binding_destroy(binding);
  EXPECT_EQ(heap_.frees_of_user(), 0);
  EXPECT_EQ(std::memcmp(out.data, wanted_.data(), 24), 0);
  quartet_buffer_release(out.buffer);
  EXPECT_EQ(heap_.live(), 0U);
  EXPECT_EQ(heap_.frees_of_user(), 1);
  EXPECT_EQ(heap_.mistakes(), 0);
}

TEST_F(RunTest, AForkedChildIsToldSo) {
  const pid_t child = fork();
  if (child == 0) {
    std::vector<float> y(6);
    quartet_tensor in = tensor_of(rows_, {2, 4}), out = tensor_of(y, {});
    quartet_error* error = nullptr;
    const bool told = quartet_run_sync(program_.get(), &in, 1, &out, 1, &error) == QUARTET_E_FORKED &&
                      quartet_error_code(error) == QUARTET_E_FORKED &&
                      quartet_context_trim(context_.get(), nullptr) == QUARTET_E_FORKED;
    quartet_error_release(error);
    program_.reset();
    context_.reset();
    // The child may have a context of its own.
    quartet_context* own = nullptr;
    const bool made = quartet_context_create(nullptr, &own, nullptr) == QUARTET_OK;
    quartet_context_release(own);
    _exit(told && made ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  auto out = empty_tensor();
  EXPECT_TRUE(is_ok(run(tensor_of(rows_, {2, 4}), out), error_)) << "the parent goes on";
  quartet_buffer_release(out.buffer);
}

// A directory of its own, gone afterwards.
class Directory {
 public:
  Directory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "quartet_capi_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST_F(RunTest, TheDiskRemembersForTheNextContext) {
  const Directory directory;
  auto cache = make_struct<quartet_cache_desc>();
  cache.mode = QUARTET_CACHE_DISK;
  const std::string path = directory.path() + "/kernels";
  cache.path = path.c_str();
  cache.path_size = path.size();
  quartet_context_desc desc = context_desc();
  desc.cache = &cache;
  for (const int32_t origin : {QUARTET_ORIGIN_COMPILED, QUARTET_ORIGIN_DISK}) {
    context_ = make_context(&desc);
    program_ = compile(make_mlp(context_.get()));
    auto info = make_struct<quartet_program_info>();
    ASSERT_TRUE(is_ok(quartet_program_get_info(program_.get(), &info, error_.out()), error_));
    EXPECT_EQ(info.origin, origin);
    auto out = empty_tensor();
    ASSERT_TRUE(is_ok(run(tensor_of(rows_, {2, 4}), out), error_));
    EXPECT_EQ(std::memcmp(out.data, wanted_.data(), 24), 0);
    quartet_buffer_release(out.buffer);
    ASSERT_TRUE(is_ok(quartet_cache_flush(context_.get(), error_.out()), error_));
    auto stats = make_struct<quartet_cache_stats>();
    ASSERT_TRUE(is_ok(quartet_cache_get_stats(context_.get(), &stats, error_.out()), error_));
    EXPECT_EQ(stats.mode, QUARTET_CACHE_DISK);
    EXPECT_EQ(stats.entries, 1U);
    EXPECT_EQ(stats.hits_disk, origin == QUARTET_ORIGIN_DISK ? 1U : 0U);
  }
  quartet_blob* blob = nullptr;
  ASSERT_TRUE(is_ok(quartet_cache_list(context_.get(), &blob, error_.out()), error_));
  EXPECT_NE(text_of(Blob(blob)).find("\"kind\":\"program\""), std::string::npos);
  ASSERT_TRUE(is_ok(quartet_cache_verify(context_.get(), &blob, error_.out()), error_));
  EXPECT_NE(text_of(Blob(blob)).find("\"checked\":1,\"damaged\":0"), std::string::npos);
  ASSERT_TRUE(is_ok(quartet_cache_clear(context_.get(), error_.out()), error_));
  ASSERT_TRUE(is_ok(quartet_cache_list(context_.get(), &blob, error_.out()), error_));
  EXPECT_EQ(text_of(Blob(blob)), "[]");
  EXPECT_TRUE(is_ok(quartet_cache_trim(context_.get(), 0, error_.out()), error_));
}

struct Log {
  std::mutex mutex;
  std::vector<std::string> lines;
  std::atomic<int> frees{0};
  static void QUARTET_CALL write(void* user, int32_t level, const char* component, size_t component_size,
                                 const char* message, size_t message_size) {
    auto* self = static_cast<Log*>(user);
    EXPECT_EQ(std::strlen(component), component_size);
    EXPECT_EQ(std::strlen(message), message_size);
    const std::lock_guard lock(self->mutex);
    self->lines.push_back(std::to_string(level) + " " + component + ": " + message);
  }
  bool has(std::string_view words) {
    const std::lock_guard lock(mutex);
    for (const std::string& line : lines) {
      if (line.find(words) != std::string::npos) return true;
    }
    return false;
  }
};

TEST_F(RunTest, TheLoggerHearsWhatItAskedFor) {
  Log log;
  auto logger = make_struct<quartet_logger>();
  logger.level = QUARTET_LOG_DEBUG;
  logger.user = &log;
  logger.log = Log::write;
  logger.free_user = [](void* user) { ++static_cast<Log*>(user)->frees; };
  auto cache = make_struct<quartet_cache_desc>();
  cache.mode = QUARTET_CACHE_DISK;
  cache.path = "/proc/no such place";
  cache.path_size = SIZE_MAX;
  quartet_context_desc desc = context_desc();
  desc.logger = &logger;
  desc.cache = &cache;
  context_ = make_context(&desc);
  program_ = compile(make_mlp(context_.get()));
  EXPECT_TRUE(log.has("3 compile: ")) << "info: one line a compile";
  EXPECT_TRUE(log.has("4 compile: stage codegen")) << "debug: the stages";
  auto stats = make_struct<quartet_cache_stats>();
  ASSERT_TRUE(is_ok(quartet_cache_get_stats(context_.get(), &stats, error_.out()), error_));
  EXPECT_EQ(stats.mode, QUARTET_CACHE_MEMORY) << "a directory that cannot be used is no error";
  EXPECT_TRUE(log.has(" cache: "));
  EXPECT_FALSE(log.has("cache: cache: "));
  ASSERT_TRUE(is_ok(quartet_context_set_log_level(context_.get(), QUARTET_LOG_OFF, error_.out()), error_));
  const size_t before = log.lines.size();
  compile(parse_graph(context_.get(), kExpGraph));
  EXPECT_EQ(log.lines.size(), before);
  program_.reset();
  context_.reset();
  EXPECT_EQ(log.frees, 1);
}

TEST_F(RunTest, AModelFromAFile) {
  Error error;
  quartet_graph* raw = nullptr;
  const std::string path = std::string(QUARTET_TEST_MODELS) + "/digits/digits.onnx";
  ASSERT_TRUE(
      is_ok(quartet_graph_import_onnx_file(context_.get(), path.c_str(), SIZE_MAX, nullptr, &raw, error.out()), error));
  const Graph graph(raw);
  const Program program = compile(graph);
  std::vector<float> pixels(64, 0.0F);
  const quartet_tensor in = tensor_of(pixels, {1, 64});
  auto out = empty_tensor();
  ASSERT_TRUE(is_ok(quartet_run_sync(program.get(), &in, 1, &out, 1, error.out()), error));
  float sum = 0;
  for (int i = 0; i < 10; ++i) sum += static_cast<const float*>(out.data)[i];
  EXPECT_NEAR(sum, 1.0F, 1e-5);
  quartet_buffer_release(out.buffer);
  EXPECT_TRUE(
      fails(quartet_graph_import_onnx_file(context_.get(), "no such file", SIZE_MAX, nullptr, &raw, error.out()), error,
            QUARTET_E_NOT_FOUND, "no such file"));
  EXPECT_TRUE(fails(quartet_graph_import_onnx(context_.get(), "soup", 4, nullptr, &raw, error.out()), error,
                    QUARTET_E_CORRUPT, ""));
}

TEST_F(RunTest, DevicesAndKeys) {
  ASSERT_EQ(quartet_device_count(context_.get()), 1U);
  const quartet_device* device = nullptr;
  ASSERT_TRUE(is_ok(quartet_device_get(context_.get(), 0, &device, error_.out()), error_));
  auto info = make_struct<quartet_device_info>();
  ASSERT_TRUE(is_ok(quartet_device_get_info(device, &info, error_.out()), error_));
  EXPECT_STREQ(info.name, "cpu:host");
  EXPECT_GE(info.cores, 1);
  EXPECT_GE(info.vector_bytes, 16);
  EXPECT_GT(info.memory_bytes, 0U);
  const quartet_device* found = nullptr;
  ASSERT_TRUE(is_ok(quartet_device_find(context_.get(), "cpu", 3, &found, error_.out()), error_));
  EXPECT_EQ(found, device);
  EXPECT_TRUE(fails(quartet_device_find(context_.get(), "cuda:0", 6, &found, error_.out()), error_, QUARTET_E_NOT_FOUND,
                    "cuda:0"));
  quartet_blob* blob = nullptr;
  ASSERT_TRUE(is_ok(quartet_device_target(device, &blob, error_.out()), error_));
  EXPECT_NE(text_of(Blob(blob)).find("x86_64"), std::string::npos);
  const Context other = make_context();
  const Graph graph = make_mlp(context_.get());
  quartet_program* none = nullptr;
  EXPECT_TRUE(fails(quartet_compile(other.get(), graph.get(), device, nullptr, &none, error_.out()), error_,
                    QUARTET_E_INVALID_ARGUMENT, "another context"));
  uint8_t key[16], same[16];
  ASSERT_TRUE(
      is_ok(quartet_compile_key(context_.get(), graph.get(), nullptr, nullptr, key, &blob, error_.out()), error_));
  EXPECT_NE(text_of(Blob(blob)).find("\"graph\":\""), std::string::npos);
  ASSERT_TRUE(
      is_ok(quartet_compile_key(other.get(), graph.get(), nullptr, nullptr, same, nullptr, error_.out()), error_));
  EXPECT_EQ(std::memcmp(key, same, 16), 0);
}

}  // namespace
}  // namespace quartet::capi_test
