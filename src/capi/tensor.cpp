#include "capi/tensor.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "capi/buffer.h"

namespace quartet::capi {

Status check_tensor(const quartet_tensor* tensor, const char* name) {
  QUARTET_TRY(not_null(tensor, name));
  QUARTET_TRY(check_struct_size(tensor->struct_size, sizeof(quartet_tensor), name));
  QUARTET_TRY(check_struct_tail(tensor, tensor->struct_size, sizeof(quartet_tensor), name));
  if ((tensor->flags & ~uint32_t{QUARTET_TENSOR_STRIDED}) != 0) {
    return make_error(Code::unsupported, "%s: flags is 0x%x", name, tensor->flags);
  }
  if (tensor->rank < 0 || tensor->rank > QUARTET_MAX_RANK) {
    return make_error(Code::invalid_argument, "%s: rank is %d, not 0 to %d", name, tensor->rank, QUARTET_MAX_RANK);
  }
  if (tensor->dtype < 0 || tensor->dtype >= kDTypeCount) {
    return make_error(Code::unsupported, "%s: there is no element type %d", name, tensor->dtype);
  }
  return {};
}

Status check_tensors(const quartet_tensor* first, uint32_t count, const char* name) {
  if (count == 0) return {};
  QUARTET_TRY(check_tensor(first, name));
  const TensorArray<const quartet_tensor> array(first, count);
  for (uint32_t i = 1; i < count; ++i) {
    if (array[i].struct_size != first->struct_size) {
      return make_error(Code::invalid_argument, "%s[%u]: struct_size is %u, but %u in the first", name, i,
                        array[i].struct_size, first->struct_size);
    }
    if (Status status = check_tensor(&array[i], name); !status.ok()) return status.with_prefix(format("[%u] ", i));
  }
  return {};
}

std::optional<uint64_t> dense_bytes_of(DType dtype, std::span<const int64_t> dims) {
  uint64_t bytes = size_of(dtype);
  for (const int64_t dim : dims) {
    const auto product = checked_mul<uint64_t>(bytes, static_cast<uint64_t>(dim));
    if (!product) return std::nullopt;
    bytes = *product;
  }
  return bytes;
}

namespace {

Status find_memory(const quartet_tensor& tensor, TensorRef& ref) {
  if (tensor.buffer != nullptr) {
    QUARTET_TRY(check_handle(tensor.buffer, "buffer"));
    const quartet_buffer& buffer = *tensor.buffer;
    const uint64_t rest = tensor.offset <= buffer.bytes ? buffer.bytes - tensor.offset : 0;
    if (tensor.offset > buffer.bytes || tensor.bytes > rest) {
      return make_error(Code::invalid_argument, "bytes [%llu, +%llu) are not in its buffer of %llu",
                        static_cast<unsigned long long>(tensor.offset), static_cast<unsigned long long>(tensor.bytes),
                        static_cast<unsigned long long>(buffer.bytes));
    }
    ref.data = buffer.data != nullptr ? buffer.data + tensor.offset : nullptr;
    ref.bytes = tensor.bytes != 0 ? tensor.bytes : rest;
    ref.has_memory = true;
  } else if (tensor.data != nullptr) {
    ref.data = static_cast<std::byte*>(tensor.data) + tensor.offset;
    ref.bytes = tensor.bytes;
    ref.has_memory = true;
  }
  if (reinterpret_cast<uintptr_t>(ref.data) % size_of(ref.dtype) != 0) {
    return make_error(Code::invalid_argument, "its address %p is not a multiple of the element size %zu",
                      static_cast<void*>(ref.data), size_of(ref.dtype));
  }
  return {};
}

// Whether strides say what dense row-major order would.
bool is_dense(std::span<const int64_t> dims, const int64_t* strides) {
  int64_t expected = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    if (dims[i] == 0) return true;
    if (dims[i] != 1 && strides[i] != expected) return false;
    expected *= dims[i];
  }
  return true;
}

Status check_strides(const quartet_tensor& tensor, TensorRef& ref, Role role) {
  uint64_t last = 0;  // element with the greatest offset
  for (size_t i = 0; i < ref.dims.size(); ++i) {
    const int64_t stride = tensor.strides[i];
    if (stride < 0) {
      return make_error(Code::unsupported, "axis %zu: stride %lld; negative strides are not taken", i,
                        static_cast<long long>(stride));
    }
    if (role == Role::output && stride == 0 && ref.dims[i] > 1) {
      return make_error(Code::invalid_argument, "axis %zu: an output with stride 0 would overlap itself", i);
    }
    if (ref.dims[i] < 2) continue;
    const auto step = checked_mul<uint64_t>(static_cast<uint64_t>(ref.dims[i] - 1), static_cast<uint64_t>(stride));
    const auto sum = step ? checked_add(last, *step) : std::nullopt;
    if (!sum) return make_error(Code::invalid_argument, "axis %zu: its extent times its stride overflows", i);
    last = *sum;
  }
  const auto end = checked_mul<uint64_t>(last + 1, size_of(ref.dtype));
  if (ref.dense_bytes != 0 && (!end || *end > ref.bytes)) {
    return make_error(Code::invalid_argument, "its strides reach beyond its %llu bytes",
                      static_cast<unsigned long long>(ref.bytes));
  }
  ref.strides = tensor.strides;
  return {};
}

}  // namespace

Result<TensorRef> tensor_ref(const quartet_tensor& tensor, DType dtype, Role role, bool with_memory) {
  const auto given = static_cast<DType>(tensor.dtype);
  if (given != dtype && (role == Role::input || given != DType::invalid)) {
    return make_error(Code::invalid_argument, "its element type is %s, but the program's %s", dtype_name(given),
                      dtype_name(dtype));
  }
  TensorRef ref;
  ref.dtype = dtype;
  if (with_memory) QUARTET_TRY(find_memory(tensor, ref));
  const bool strided = (tensor.flags & QUARTET_TENSOR_STRIDED) != 0 && ref.has_memory;
  if (role == Role::output && !strided) return ref;
  ref.dims = std::span(tensor.dims, static_cast<size_t>(tensor.rank));
  for (size_t i = 0; i < ref.dims.size(); ++i) {
    if (ref.dims[i] < 0) {
      return make_error(Code::invalid_argument, "axis %zu: an extent of %lld", i, static_cast<long long>(ref.dims[i]));
    }
  }
  const auto bytes = dense_bytes_of(dtype, ref.dims);
  if (!bytes) return Status(Code::invalid_argument, "its extents overflow");
  ref.dense_bytes = *bytes;
  if (strided && !is_dense(ref.dims, tensor.strides)) QUARTET_TRY(check_strides(tensor, ref, role));
  if (role == Role::input && ref.has_memory && ref.strides == nullptr && ref.bytes < ref.dense_bytes) {
    return make_error(Code::invalid_argument, "it has %llu bytes, but its dims need %llu",
                      static_cast<unsigned long long>(ref.bytes), static_cast<unsigned long long>(ref.dense_bytes));
  }
  return ref;
}

namespace {

// Visits the strided addresses of all elements in dense order.
template <class Visit>
void for_each_element(const TensorRef& ref, Visit&& visit) {
  if (ref.dense_bytes == 0) return;
  const size_t rank = ref.dims.size();
  const auto size = static_cast<int64_t>(size_of(ref.dtype));
  int64_t index[QUARTET_MAX_RANK] = {};
  int64_t offset = 0;
  while (true) {
    visit(ref.data + offset * size);
    size_t axis = rank;
    while (axis-- > 0) {
      offset += ref.strides[axis];
      if (++index[axis] < ref.dims[axis]) break;
      offset -= ref.strides[axis] * ref.dims[axis];
      index[axis] = 0;
    }
    if (axis == SIZE_MAX) return;
  }
}

}  // namespace

void gather_elements(const TensorRef& from, std::byte* dense) {
  const size_t size = size_of(from.dtype);
  for_each_element(from, [&](const std::byte* element) {
    std::memcpy(dense, element, size);
    dense += size;
  });
}

void scatter_elements(const std::byte* dense, const TensorRef& to) {
  const size_t size = size_of(to.dtype);
  for_each_element(to, [&](std::byte* element) {
    std::memcpy(element, dense, size);
    dense += size;
  });
}

void describe_output(quartet_tensor& tensor, DType dtype, std::span<const int64_t> dims) {
  tensor.dtype = static_cast<int32_t>(dtype);
  tensor.rank = static_cast<int32_t>(dims.size());
  std::copy(dims.begin(), dims.end(), tensor.dims);
  std::fill(tensor.dims + dims.size(), tensor.dims + QUARTET_MAX_RANK, 0);
}

}  // namespace quartet::capi
