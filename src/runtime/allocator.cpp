#include "runtime/allocator.h"

#include <sys/mman.h>

#include <cstdlib>
#include <utility>

#include "base/map_ahead.h"

namespace quartet::runtime {
namespace {

class SystemAllocator final : public Allocator {
 public:
  Result<void*> allocate(size_t size, size_t alignment) override {
    void* memory = nullptr;
    if (::posix_memalign(&memory, std::max(alignment, sizeof(void*)), size) != 0)
      return make_error(Code::out_of_memory, "the system has no %zu bytes", size);
    return memory;
  }
  void free(void* memory, size_t, size_t) override { ::free(memory); }
};

}  // namespace

std::shared_ptr<Allocator> system_allocator() { return std::make_shared<SystemAllocator>(); }

Result<void*> CountingAllocator::allocate(size_t size, size_t alignment) {
  uint64_t live = live_.load(std::memory_order_relaxed);
  do {
    if (budget_ != 0 && (live > budget_ || size > budget_ - live))
      return make_error(Code::resource_exhausted,
                        "%zu bytes more would pass the budget of %llu, of which %llu are in use", size,
                        static_cast<unsigned long long>(budget_), static_cast<unsigned long long>(live));
  } while (!live_.compare_exchange_weak(live, live + size, std::memory_order_relaxed));
  auto memory = source_->allocate(size, alignment);
  if (!memory.ok()) {
    live_.fetch_sub(size, std::memory_order_relaxed);
    return memory;
  }
  uint64_t peak = peak_.load(std::memory_order_relaxed);
  while (peak < live + size && !peak_.compare_exchange_weak(peak, live + size, std::memory_order_relaxed)) {
  }
  return memory;
}

void CountingAllocator::free(void* memory, size_t size, size_t alignment) {
  source_->free(memory, size, alignment);
  live_.fetch_sub(size, std::memory_order_relaxed);
}

Result<Block> Block::allocate(const std::shared_ptr<Allocator>& allocator, uint64_t size, const char* what) {
  Block block;
  if (size == 0) return block;
  if (size > SIZE_MAX / 2)
    return make_error(Code::resource_exhausted, "%s of %llu bytes is beyond any memory", what,
                      static_cast<unsigned long long>(size));
  block.alignment_ = size >= kHugePage ? kHugePage : kAlignment;
  auto memory = allocator->allocate(static_cast<size_t>(size), block.alignment_);
  if (!memory.ok())
    return memory.status().with_prefix(format("%s (%llu bytes): ", what, static_cast<unsigned long long>(size)));
  block.allocator_ = allocator;
  block.data_ = static_cast<std::byte*>(memory.value());
  block.size_ = static_cast<size_t>(size);
  // Advice only: a refusal changes nothing but speed.
  if (const size_t whole = block.size_ / kHugePage * kHugePage; whole != 0)
    (void)::madvise(block.data_, whole, MADV_HUGEPAGE);
  else
    map_ahead(block.data_, block.size_);
  return block;
}

Block::~Block() {
  if (data_ != nullptr) allocator_->free(data_, size_, alignment_);
}

}  // namespace quartet::runtime
