// The buffer handle.
#pragma once

#include <atomic>

#include "capi/context.h"
#include "runtime/allocator.h"

struct quartet_buffer : quartet::capi::SharedHandle<quartet::capi::HandleKind::buffer> {
  quartet_buffer() = default;
  ~quartet_buffer();

  quartet::capi::ContextRef context;
  const quartet_device* device = nullptr;
  std::byte* data = nullptr;
  uint64_t bytes = 0;
  std::atomic<int32_t> mappings{0};

  // One of the three: a block of the runtime's kind, one of another alignment, or the caller's memory.
  quartet::runtime::Block block;
  void* aligned = nullptr;
  quartet_free_data_fn free_data = nullptr;
  void* user = nullptr;
};

namespace quartet::capi {

// Owned by the caller. `align` 0: the best for the size.
Result<quartet_buffer*> allocate_buffer(quartet_context& context, const quartet_device* device, uint64_t bytes,
                                        uint64_t align);
void release_buffer(quartet_buffer* buffer) noexcept;

// A reference to a buffer, or none.
class BufferRef {
 public:
  BufferRef() = default;
  explicit BufferRef(quartet_buffer* buffer) : buffer_(buffer) {
    if (buffer != nullptr) buffer->retain();
  }
  BufferRef(BufferRef&& other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
  BufferRef& operator=(BufferRef&& other) noexcept {
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~BufferRef() {
    if (buffer_ != nullptr) release_buffer(buffer_);
  }
  quartet_buffer* get() const { return buffer_; }

 private:
  quartet_buffer* buffer_ = nullptr;
};

}  // namespace quartet::capi
