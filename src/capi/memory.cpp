#include "capi/memory.h"

#include <bit>
#include <cstdlib>

#include "base/checked.h"

namespace quartet::capi {

namespace {

thread_local HostMemory* current = nullptr;

// Stands right before the memory handed out.
struct Header {
  HostMemory* owner;
  uint64_t total : 56;  // bytes asked from the source, header and padding included
  uint64_t align_log2 : 8;
};
static_assert(sizeof(Header) == 16);

}  // namespace

struct BlockAccess {
  static bool charge(HostMemory& memory, uint64_t bytes, bool* over_budget) {
    const uint64_t live = memory.live_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    if (memory.budget_ != 0 && live > memory.budget_) {
      memory.live_.fetch_sub(bytes, std::memory_order_relaxed);
      *over_budget = true;
      return false;
    }
    uint64_t peak = memory.peak_.load(std::memory_order_relaxed);
    while (live > peak && !memory.peak_.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
    }
    return true;
  }

  static void* take(HostMemory* memory, size_t total, size_t align, bool* over_budget) {
    if (memory == nullptr)
      return align <= alignof(std::max_align_t) ? std::malloc(total) : std::aligned_alloc(align, total);
    if (!charge(*memory, total, over_budget)) return nullptr;
    const MemoryScope nobody(nullptr);  // what the host's allocator allocates is its own
    void* base = memory->allocator_.alloc(memory->allocator_.user, total, align);
    if (base == nullptr) {
      memory->live_.fetch_sub(total, std::memory_order_relaxed);
      return nullptr;
    }
    memory->references_.fetch_add(1, std::memory_order_relaxed);
    memory->total_blocks_.fetch_add(1, std::memory_order_relaxed);
    return base;
  }

  static void give(HostMemory* memory, void* base, size_t total, size_t align) {
    if (memory == nullptr) return std::free(base);
    const MemoryScope nobody(nullptr);
    memory->allocator_.dealloc(memory->allocator_.user, base, total, align);
    memory->live_.fetch_sub(total, std::memory_order_relaxed);
    memory->release();
  }
};

void* allocate_block(size_t size, size_t align, bool* over_budget) noexcept {
  if (align < sizeof(Header)) align = sizeof(Header);
  const auto sum = checked_add(size, align);
  const auto total = sum ? checked_round_up(*sum, align) : std::nullopt;
  if (!total || *total >> 56 != 0) return nullptr;
  HostMemory* memory = current;
  void* base = BlockAccess::take(memory, *total, align, over_budget);
  if (base == nullptr) return nullptr;
  char* block = static_cast<char*>(base) + align;
  Header* header = reinterpret_cast<Header*>(block) - 1;
  header->owner = memory;
  header->total = *total & ((uint64_t{1} << 56) - 1);
  header->align_log2 = static_cast<uint8_t>(std::countr_zero(align));
  return block;
}

void free_block(void* block) noexcept {
  if (block == nullptr) return;
  const Header header = *(static_cast<Header*>(block) - 1);
  const size_t align = size_t{1} << header.align_log2;
  BlockAccess::give(header.owner, static_cast<char*>(block) - align, header.total, align);
}

namespace {

void* QUARTET_CALL default_alloc(void*, size_t size, size_t align) {
  return align <= alignof(std::max_align_t) ? std::malloc(size) : std::aligned_alloc(align, size);
}
void QUARTET_CALL default_dealloc(void*, void* memory, size_t, size_t) { std::free(memory); }

}  // namespace

HostMemory* HostMemory::create(const quartet_allocator* allocator, uint64_t budget) noexcept {
  void* place = std::malloc(sizeof(HostMemory));
  if (place == nullptr) return nullptr;
  auto* memory = ::new (place) HostMemory();
  if (allocator != nullptr) {
    memory->allocator_ = *allocator;
  } else {
    memory->allocator_.alloc = default_alloc;
    memory->allocator_.dealloc = default_dealloc;
  }
  memory->budget_ = budget;
  return memory;
}

void HostMemory::release() noexcept {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const quartet_allocator allocator = allocator_;
  this->~HostMemory();
  std::free(this);
  if (allocator.free_user != nullptr) allocator.free_user(allocator.user);
}

HostMemory::Usage HostMemory::usage() const noexcept {
  Usage usage;
  usage.live_bytes = live_.load(std::memory_order_relaxed);
  usage.peak_bytes = peak_.load(std::memory_order_relaxed);
  usage.budget_bytes = budget_;
  usage.live_blocks = references_.load(std::memory_order_relaxed) - 1;
  usage.total_blocks = total_blocks_.load(std::memory_order_relaxed);
  return usage;
}

MemoryScope::MemoryScope(HostMemory* memory) noexcept : previous_(current) { current = memory; }
MemoryScope::~MemoryScope() { current = previous_; }

}  // namespace quartet::capi

// ---- Operators new and delete of everything in this library
// In libquartet_c.so these are private symbols: the host's own operators are not touched.
#if QUARTET_REPLACES_NEW

namespace {

void* new_block(size_t size, size_t align) {
  bool over_budget = false;
  void* block = quartet::capi::allocate_block(size, align, &over_budget);
  if (block != nullptr) return block;
  if (over_budget) throw quartet::capi::BudgetExceeded();
  throw std::bad_alloc();
}

void* new_block_or_null(size_t size, size_t align) noexcept {
  bool over_budget = false;
  return quartet::capi::allocate_block(size, align, &over_budget);
}

}  // namespace

void* operator new(size_t size) { return new_block(size, 0); }
void* operator new[](size_t size) { return new_block(size, 0); }
void* operator new(size_t size, std::align_val_t align) { return new_block(size, static_cast<size_t>(align)); }
void* operator new[](size_t size, std::align_val_t align) { return new_block(size, static_cast<size_t>(align)); }
void* operator new(size_t size, const std::nothrow_t&) noexcept { return new_block_or_null(size, 0); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return new_block_or_null(size, 0); }
void* operator new(size_t size, std::align_val_t align, const std::nothrow_t&) noexcept {
  return new_block_or_null(size, static_cast<size_t>(align));
}
void* operator new[](size_t size, std::align_val_t align, const std::nothrow_t&) noexcept {
  return new_block_or_null(size, static_cast<size_t>(align));
}
void operator delete(void* block) noexcept { quartet::capi::free_block(block); }
void operator delete[](void* block) noexcept { quartet::capi::free_block(block); }
void operator delete(void* block, size_t) noexcept { quartet::capi::free_block(block); }
void operator delete[](void* block, size_t) noexcept { quartet::capi::free_block(block); }
void operator delete(void* block, std::align_val_t) noexcept { quartet::capi::free_block(block); }
void operator delete[](void* block, std::align_val_t) noexcept { quartet::capi::free_block(block); }
void operator delete(void* block, size_t, std::align_val_t) noexcept { quartet::capi::free_block(block); }
void operator delete[](void* block, size_t, std::align_val_t) noexcept { quartet::capi::free_block(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { quartet::capi::free_block(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { quartet::capi::free_block(block); }
void operator delete(void* block, std::align_val_t, const std::nothrow_t&) noexcept {
  quartet::capi::free_block(block);
}
void operator delete[](void* block, std::align_val_t, const std::nothrow_t&) noexcept {
  quartet::capi::free_block(block);
}

#endif
