// Tensor descriptors as the host gives them: checked, their memory found, copied between strided and dense form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/dtype.h"
#include "base/status.h"
#include "capi/context.h"
#include "quartet_c.h"

namespace quartet::capi {

// An array of descriptors, all of the first one's struct_size.
template <class T>
class TensorArray {
 public:
  TensorArray() = default;
  TensorArray(T* first, uint32_t count) : first_(first), count_(count) {}
  uint32_t size() const { return count_; }
  T& operator[](uint32_t index) const {
    using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
    return *reinterpret_cast<T*>(reinterpret_cast<Byte*>(first_) + size_t{index} * first_->struct_size);
  }

 private:
  T* first_ = nullptr;
  uint32_t count_ = 0;
};

// Checks sizes, flags and tails of all; `name` is "inputs" or "outputs".
Status check_tensors(const quartet_tensor* first, uint32_t count, const char* name);
// The same for one.
Status check_tensor(const quartet_tensor* tensor, const char* name);

// What a checked descriptor means.
struct TensorRef {
  DType dtype = DType::invalid;
  std::span<const int64_t> dims;
  const int64_t* strides = nullptr;  // null: dense
  std::byte* data = nullptr;
  uint64_t bytes = 0;        // from `data` on
  bool has_memory = false;   // false: neither data nor buffer was given
  uint64_t dense_bytes = 0;  // of the dims
};

enum class Role : uint8_t { input, output };
// `dtype` is what the program wants. Of an output without strides dims and rank are not looked at. `with_memory` false:
// only dtype and dims count.
Result<TensorRef> tensor_ref(const quartet_tensor& tensor, DType dtype, Role role, bool with_memory = true);

// Elements of a strided tensor into dense memory, and back.
void gather_elements(const TensorRef& from, std::byte* dense);
void scatter_elements(const std::byte* dense, const TensorRef& to);

// Writes what an output turned out to be.
void describe_output(quartet_tensor& tensor, DType dtype, std::span<const int64_t> dims);
// Bytes of a dense tensor; nothing when that overflows.
std::optional<uint64_t> dense_bytes_of(DType dtype, std::span<const int64_t> dims);

}  // namespace quartet::capi
