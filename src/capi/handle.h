// What every handle starts with: a word that says what it is. A pointer to something else, to freed memory (as far as
// it still reads) or to another kind of handle is refused with words instead of being followed.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/status.h"

namespace quartet::capi {

enum class HandleKind : uint32_t {
  error = 0x51430001,
  blob = 0x51430002,
  options = 0x51430003,
  context = 0x51430004,
  device = 0x51430005,
  builder = 0x51430006,
  graph = 0x51430007,
  program = 0x51430008,
  buffer = 0x51430009,
  binding = 0x5143000a,
  future = 0x5143000b,
};
inline constexpr uint32_t kDeadHandle = 0x514300ff;

// "quartet_error" ...; null for a word that is no kind.
const char* handle_kind_name(uint32_t word);

template <HandleKind K>
class Handle {
 public:
  static constexpr HandleKind kKind = K;
  Handle() = default;
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { word_.store(kDeadHandle, std::memory_order_relaxed); }

 private:
  std::atomic<uint32_t> word_{static_cast<uint32_t>(K)};  // at offset 0 of every handle
};

// A handle with references; the creator holds the first.
template <HandleKind K>
class SharedHandle : public Handle<K> {
 public:
  void retain() { references_.fetch_add(1, std::memory_order_relaxed); }
  // False when the last reference is gone already.
  bool retain_unless_zero() {
    uint32_t count = references_.load(std::memory_order_relaxed);
    while (count != 0) {
      if (references_.compare_exchange_weak(count, count + 1, std::memory_order_relaxed)) return true;
    }
    return false;
  }
  // True for the last one: the caller destroys the object.
  bool drop() { return references_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

 private:
  std::atomic<uint32_t> references_{1};
};

// Ok, or invalid_argument with words about `parameter`.
Status check_word(const void* handle, HandleKind kind, const char* parameter);

template <class T>
Status check_handle(const T* handle, const char* parameter) {
  return check_word(handle, T::kKind, parameter);
}

// For functions that cannot fail: null unless it is a live handle of this kind.
template <class T>
T* valid_or_null(T* handle) {
  const bool aligned = (reinterpret_cast<uintptr_t>(handle) & 7) == 0;
  if (handle == nullptr || !aligned) return nullptr;
  const auto word = reinterpret_cast<const std::atomic<uint32_t>*>(handle)->load(std::memory_order_relaxed);
  return word == static_cast<uint32_t>(T::kKind) ? handle : nullptr;
}

}  // namespace quartet::capi
