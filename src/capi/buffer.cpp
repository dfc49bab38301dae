#include "capi/buffer.h"

#include <bit>

namespace quartet::capi {

Result<quartet_buffer*> allocate_buffer(quartet_context& context, const quartet_device* device, uint64_t bytes,
                                        uint64_t align) {
  auto buffer = std::make_unique<quartet_buffer>();
  const uint64_t usual = bytes >= runtime::Block::kHugePage ? runtime::Block::kHugePage : runtime::Block::kAlignment;
  if (align <= usual) {
    QUARTET_ASSIGN(buffer->block, runtime::Block::allocate(context.allocator, bytes, "a buffer"));
    buffer->data = buffer->block.data();
  } else if (bytes > 0) {
    QUARTET_ASSIGN(buffer->aligned,
                   context.allocator->allocate(static_cast<size_t>(bytes), static_cast<size_t>(align)));
    buffer->data = static_cast<std::byte*>(buffer->aligned);
  }
  buffer->bytes = bytes;
  buffer->device = device != nullptr ? device : context.devices.front().get();
  buffer->context = ContextRef(&context);
  return buffer.release();
}

void release_buffer(quartet_buffer* buffer) noexcept {
  if (buffer->drop()) delete_with_context(buffer);
}

namespace {

Status check_buffer(const quartet_buffer* buffer) {
  QUARTET_TRY(check_handle(buffer, "buffer"));
  return check_process(*buffer->context);
}

HostMemory* memory_of_buffer(const quartet_buffer* buffer) {
  buffer = valid_or_null(buffer);
  return buffer != nullptr ? buffer->context->memory : nullptr;
}

}  // namespace
}  // namespace quartet::capi

using namespace quartet;        // NOLINT: the functions below are outside of any namespace
using namespace quartet::capi;  // NOLINT

quartet_buffer::~quartet_buffer() {
  if (aligned != nullptr) free_block(aligned);
  if (free_data != nullptr) free_data(user, data, static_cast<size_t>(bytes));
}

int32_t quartet_buffer_alloc(quartet_context* context, const quartet_device* device, uint64_t bytes, uint64_t align,
                             uint32_t flags, quartet_buffer** out, quartet_error** error) {
  if (out != nullptr) *out = nullptr;
  return guarded(memory_of(context), error, [&]() -> Status {
    QUARTET_TRY(check_context(context));
    QUARTET_TRY(not_null(out, "out"));
    QUARTET_ASSIGN(const quartet_device* const place, device_argument(*context, device));
    if (flags != 0) return make_error(Code::unsupported, "flags is 0x%x", flags);
    if (align != 0 && !std::has_single_bit(align)) {
      return make_error(Code::invalid_argument, "align is %llu, not a power of two",
                        static_cast<unsigned long long>(align));
    }
    QUARTET_ASSIGN(*out, allocate_buffer(*context, place, bytes, align));
    return {};
  });
}

int32_t quartet_buffer_wrap(quartet_context* context, const quartet_device* device, void* data, uint64_t bytes,
                            quartet_free_data_fn free_data, void* user, quartet_buffer** out, quartet_error** error) {
  if (out != nullptr) *out = nullptr;
  bool taken = false;
  const int32_t status = guarded(memory_of(context), error, [&]() -> Status {
    QUARTET_TRY(check_context(context));
    QUARTET_TRY(not_null(out, "out"));
    QUARTET_ASSIGN(const quartet_device* const place, device_argument(*context, device));
    if (data == nullptr && bytes != 0) return {Code::invalid_argument, "data is NULL"};
    if (bytes > UINTPTR_MAX - reinterpret_cast<uintptr_t>(data)) {
      return make_error(Code::invalid_argument, "bytes is %llu: more than the address space has after data",
                        static_cast<unsigned long long>(bytes));
    }
    auto buffer = std::make_unique<quartet_buffer>();
    buffer->data = static_cast<std::byte*>(data);
    buffer->bytes = bytes;
    buffer->device = place;
    buffer->free_data = free_data;
    buffer->user = user;
    buffer->context = ContextRef(context);
    taken = true;
    *out = buffer.release();
    return {};
  });
  if (!taken && free_data != nullptr) free_data(user, data, static_cast<size_t>(bytes));
  return status;
}

void quartet_buffer_retain(quartet_buffer* buffer) {
  if ((buffer = valid_or_null(buffer)) != nullptr) buffer->retain();
}

void quartet_buffer_release(quartet_buffer* buffer) {
  if ((buffer = valid_or_null(buffer)) != nullptr) release_buffer(buffer);
}

int32_t quartet_buffer_map(quartet_buffer* buffer, uint64_t offset, uint64_t bytes, uint32_t mode, void** out,
                           quartet_error** error) {
  if (out != nullptr) *out = nullptr;
  return guarded(memory_of_buffer(buffer), error, [&]() -> Status {
    QUARTET_TRY(check_buffer(buffer));
    QUARTET_TRY(not_null(out, "out"));
    constexpr uint32_t known = QUARTET_MAP_READ | QUARTET_MAP_WRITE;
    if ((mode & ~known) != 0) return make_error(Code::unsupported, "mode is 0x%x", mode);
    if (mode == 0) return {Code::invalid_argument, "mode is 0: neither read nor write"};
    if (bytes == UINT64_MAX && offset <= buffer->bytes) bytes = buffer->bytes - offset;
    if (offset > buffer->bytes || bytes > buffer->bytes - offset) {
      return make_error(Code::invalid_argument, "bytes [%llu, +%llu) are not in a buffer of %llu",
                        static_cast<unsigned long long>(offset), static_cast<unsigned long long>(bytes),
                        static_cast<unsigned long long>(buffer->bytes));
    }
    buffer->mappings.fetch_add(1, std::memory_order_relaxed);
    *out = buffer->data != nullptr ? buffer->data + offset : nullptr;
    return {};
  });
}

int32_t quartet_buffer_unmap(quartet_buffer* buffer, quartet_error** error) {
  return guarded(memory_of_buffer(buffer), error, [&]() -> Status {
    QUARTET_TRY(check_buffer(buffer));
    int32_t count = buffer->mappings.load(std::memory_order_relaxed);
    do {
      if (count == 0) return {Code::failed_precondition, "the buffer is not mapped"};
    } while (!buffer->mappings.compare_exchange_weak(count, count - 1, std::memory_order_acq_rel));
    return {};
  });
}

int32_t quartet_buffer_get_info(const quartet_buffer* buffer, quartet_buffer_info* out, quartet_error** error) {
  clear_struct(out);
  return guarded(memory_of_buffer(buffer), error, [&]() -> Status {
    QUARTET_TRY(check_handle(buffer, "buffer"));
    QUARTET_TRY(check_struct(out, "out"));
    quartet_buffer_info info{};
    info.bytes = buffer->bytes;
    info.host = buffer->data;
    info.device = buffer->device;
    write_struct(out, info);
    return {};
  });
}
