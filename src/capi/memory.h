// Host memory by context. Inside a MemoryScope every allocation of this library on the thread, operator new included,
// comes from the scope's HostMemory: counted, bounded by a budget, taken from the host's allocator. A block remembers
// where it came from, so it may be freed anywhere and at any time. Outside of a scope memory comes from the C library
// uncounted.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "quartet_c.h"

// ThreadSanitizer insists on operators new and delete of its own: in its builds only blocks asked for by name are
// counted.
#if defined(__SANITIZE_THREAD__)
#define QUARTET_REPLACES_NEW 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define QUARTET_REPLACES_NEW 0
#endif
#endif
#ifndef QUARTET_REPLACES_NEW
#define QUARTET_REPLACES_NEW 1
#endif

namespace quartet::capi {

// Thrown by operator new where a context's budget, not the system, refuses.
struct BudgetExceeded : std::bad_alloc {
  const char* what() const noexcept override { return "memory budget exceeded"; }
};

class HostMemory {
 public:
  struct Usage {
    uint64_t live_bytes = 0, peak_bytes = 0, budget_bytes = 0, live_blocks = 0, total_blocks = 0;
  };

  // One reference; null when there is no memory. `allocator` null: the C library's. `budget` 0: none.
  static HostMemory* create(const quartet_allocator* allocator, uint64_t budget) noexcept;
  // Live blocks hold references too. The host's free_user is called with the last one.
  void release() noexcept;
  Usage usage() const noexcept;

 private:
  friend struct BlockAccess;
  HostMemory() = default;

  quartet_allocator allocator_{};
  uint64_t budget_ = 0;
  std::atomic<uint64_t> references_{1};  // the creator's and one a live block
  std::atomic<uint64_t> live_{0}, peak_{0}, total_blocks_{0};
};

// Makes `memory` (null: the C library) the source of this thread's allocations until destroyed.
class MemoryScope {
 public:
  explicit MemoryScope(HostMemory* memory) noexcept;
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

 private:
  HostMemory* previous_;
};

// A block of the scope's memory, or null with `over_budget` saying why; any power of two as alignment.
void* allocate_block(size_t size, size_t align, bool* over_budget) noexcept;
void free_block(void* block) noexcept;

}  // namespace quartet::capi
