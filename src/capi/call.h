// The frame of every entry point: outputs cleared first, every failure turned into a status and an error object,
// nothing thrown across the C boundary; and the checks of arguments that all groups share.
#pragma once

#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/hash.h"
#include "base/status.h"
#include "capi/handle.h"
#include "capi/memory.h"
#include "quartet_c.h"

namespace quartet::capi {

// The status as a number, with an error object stored if `error` is not null.
int32_t report(const Status& status, quartet_error** error) noexcept;
// The exception being handled.
int32_t report_exception(quartet_error** error) noexcept;
Status status_of_exception() noexcept;
// Makes what the failure path needs when there is no memory.
void prepare_for_failure();

// Runs a body that returns Status, allocating from `memory` (null: the C library).
template <class Body>
int32_t guarded(HostMemory* memory, quartet_error** error, Body&& body) noexcept {
  if (error != nullptr) *error = nullptr;
  const MemoryScope scope(memory);
  try {
    const Status status = body();
    return status.ok() ? QUARTET_OK : report(status, error);
  } catch (...) {
    return report_exception(error);
  }
}

// Runs a body that must not let anything out: callbacks, releases.
template <class Body>
void quiet(HostMemory* memory, Body&& body) noexcept {
  const MemoryScope scope(memory);
  try {
    body();
  } catch (const std::exception&) {
    // What is being undone has no one to report to.
  }
}

// The text of a pointer and a size (SIZE_MAX: NUL-terminated). NULL is a text only with size 0.
Result<std::string_view> text_argument(const char* text, size_t size, const char* parameter);
// The same, not empty and without NULs: names and paths.
Result<std::string_view> name_argument(const char* text, size_t size, const char* parameter);
Result<std::span<const uint8_t>> bytes_argument(const void* bytes, size_t size);
Status not_null(const void* pointer, const char* parameter);
// The bytes of a digest as hosts see them: those of its hexadecimal text.
void write_digest(const Digest& digest, uint8_t* out16);

// ---- Sized structs

// `size` is a struct_size of the caller, `least` that of version 1.0, `known` ours.
bool is_struct_size(uint32_t size, size_t least) noexcept;
Status check_struct_size(uint32_t size, size_t least, const char* name);
// unsupported when bytes [known, size) of the caller's struct are not all zero.
Status check_struct_tail(const void* data, uint32_t size, size_t known, const char* name);

// Copies what the caller's struct has of ours.
template <class T>
Result<T> read_struct(const T* in, const char* name) {
  if (Status status = not_null(in, name); !status.ok()) return status;
  uint32_t size = 0;
  std::memcpy(&size, in, sizeof size);
  if (Status status = check_struct_size(size, sizeof(T), name); !status.ok()) return status;
  if (Status status = check_struct_tail(in, size, sizeof(T), name); !status.ok()) return status;
  T copy{};
  std::memcpy(&copy, in, size < sizeof(T) ? size : sizeof(T));
  copy.struct_size = sizeof(T);
  return copy;
}

// Clears the caller's output struct but for its size, if it has a size that can be.
template <class T>
void clear_struct(T* out) noexcept {
  if (out == nullptr || !is_struct_size(out->struct_size, sizeof(T))) return;
  std::memset(reinterpret_cast<char*>(out) + sizeof(uint32_t), 0, out->struct_size - sizeof(uint32_t));
}

// Ok for an output struct that can be written.
template <class T>
Status check_struct(const T* out, const char* name) {
  QUARTET_TRY(not_null(out, name));
  return check_struct_size(out->struct_size, sizeof(T), name);
}

// Fills a cleared output struct.
template <class T>
void write_struct(T* out, const T& value) {
  const uint32_t size = out->struct_size;
  std::memcpy(out, &value, size < sizeof(T) ? size : sizeof(T));
  out->struct_size = size;
}

// ---- Callbacks

// User data that came with a callback: freed exactly once.
class UserData {
 public:
  UserData() = default;
  UserData(void* user, quartet_free_fn free_user) noexcept : user_(user), free_(free_user) {}
  UserData(UserData&& other) noexcept : user_(other.user_), free_(std::exchange(other.free_, nullptr)) {}
  UserData& operator=(UserData&& other) noexcept {
    reset();
    user_ = other.user_;
    free_ = std::exchange(other.free_, nullptr);
    return *this;
  }
  ~UserData() { reset(); }
  void* get() const { return user_; }
  void reset() noexcept {
    if (free_ != nullptr) std::exchange(free_, nullptr)(user_);
  }

 private:
  void* user_ = nullptr;
  quartet_free_fn free_ = nullptr;
};

}  // namespace quartet::capi
