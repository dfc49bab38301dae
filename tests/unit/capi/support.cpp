#include "unit/capi/support.h"

#include <cstdlib>

namespace quartet::capi_test {

quartet_context_desc context_desc() {
  auto desc = make_struct<quartet_context_desc>();
  desc.compiler_path = QUARTET_TEST_COMPILER;
  desc.compiler_path_size = SIZE_MAX;
  return desc;
}

Context make_context(const quartet_context_desc* desc) {
  const quartet_context_desc usual = context_desc();
  Error error;
  quartet_context* context = nullptr;
  EXPECT_TRUE(is_ok(quartet_context_create(desc != nullptr ? desc : &usual, &context, error.out()), error));
  return Context(context);
}

Graph parse_graph(quartet_context* context, std::string_view text) {
  Error error;
  quartet_graph* graph = nullptr;
  EXPECT_TRUE(is_ok(quartet_graph_parse(context, text.data(), text.size(), &graph, error.out()), error));
  return Graph(graph);
}

Graph make_mlp(quartet_context* context) {
  static const float weights[12] = {1, 0, -1, 0.5f, 1, 0, 0, 0.25f, 1, -1, 2, 0};
  static const float bias[3] = {0.5f, -1, 0};
  Error error;
  quartet_builder* raw = nullptr;
  EXPECT_TRUE(is_ok(quartet_builder_create(context, &raw, error.out()), error));
  const Builder builder(raw);
  int64_t x_dims[2] = {0, 4}, w_dims[2] = {4, 3}, b_dims[1] = {3};
  int32_t x = 0, w = 0, b = 0;
  EXPECT_TRUE(is_ok(quartet_builder_dim_symbol(raw, "rows", SIZE_MAX, &x_dims[0], error.out()), error));
  EXPECT_TRUE(is_ok(quartet_builder_input(raw, "x", SIZE_MAX, QUARTET_DTYPE_F32, 2, x_dims, &x, error.out()), error));
  EXPECT_TRUE(is_ok(quartet_builder_constant(raw, QUARTET_DTYPE_F32, 2, w_dims, weights, sizeof weights, 0, nullptr,
                                             nullptr, &w, error.out()),
                    error));
  EXPECT_TRUE(is_ok(quartet_builder_constant(raw, QUARTET_DTYPE_F32, 1, b_dims, bias, sizeof bias, 0, nullptr, nullptr,
                                             &b, error.out()),
                    error));
  const int32_t product_of[2] = {x, w};
  int32_t sum_of[2] = {0, b}, y = 0;
  EXPECT_TRUE(
      is_ok(quartet_builder_op(raw, "matmul", 6, product_of, 2, nullptr, 0, &sum_of[0], 1, error.out()), error));
  EXPECT_TRUE(is_ok(quartet_builder_op(raw, "add", 3, sum_of, 2, nullptr, 0, &y, 1, error.out()), error));
  EXPECT_TRUE(is_ok(quartet_builder_op(raw, "relu", 4, &y, 1, nullptr, 0, &y, 1, error.out()), error));
  EXPECT_TRUE(is_ok(quartet_builder_output(raw, y, "y", 1, error.out()), error));
  quartet_graph* graph = nullptr;
  EXPECT_TRUE(is_ok(quartet_builder_finish(raw, &graph, error.out()), error));
  return Graph(graph);
}

quartet_allocator HostHeap::allocator() {
  auto allocator = make_struct<quartet_allocator>();
  allocator.user = this;
  allocator.alloc = alloc;
  allocator.dealloc = dealloc;
  allocator.free_user = free_user;
  return allocator;
}

size_t HostHeap::live() const {
  const std::lock_guard lock(mutex_);
  return blocks_.size();
}

void* HostHeap::alloc(void* user, size_t size, size_t align) {
  auto* heap = static_cast<HostHeap*>(user);
  const int64_t left = heap->countdown_.load() < 0 ? -1 : heap->countdown_.fetch_sub(1);
  if (left == 0) {
    if (heap->persistent_) heap->countdown_ = 0;
    heap->refused_ = true;
    return nullptr;
  }
  void* memory = std::aligned_alloc(align, (size + align - 1) / align * align);
  if (memory == nullptr) return nullptr;
  std::memset(memory, 0xa5, size);  // nobody may count on zeroes
  const std::lock_guard lock(heap->mutex_);
  heap->blocks_[memory] = {size, align};
  return memory;
}

void HostHeap::dealloc(void* user, void* memory, size_t size, size_t align) {
  auto* heap = static_cast<HostHeap*>(user);
  const std::lock_guard lock(heap->mutex_);
  const auto found = heap->blocks_.find(memory);
  if (found == heap->blocks_.end() || found->second != std::pair(size, align)) {
    ++heap->mistakes_;
    return;
  }
  heap->blocks_.erase(found);
  std::memset(memory, 0x5a, size);
  std::free(memory);
}

void HostHeap::free_user(void* user) { ++static_cast<HostHeap*>(user)->user_frees_; }

quartet_tensor tensor_of(std::vector<float>& values, std::initializer_list<int64_t> dims) {
  auto tensor = make_struct<quartet_tensor>();
  tensor.dtype = QUARTET_DTYPE_F32;
  tensor.rank = static_cast<int32_t>(dims.size());
  tensor.data = values.data();
  tensor.bytes = values.size() * sizeof(float);
  std::copy(dims.begin(), dims.end(), tensor.dims);
  return tensor;
}

quartet_tensor empty_tensor() { return make_struct<quartet_tensor>(); }

}  // namespace quartet::capi_test
