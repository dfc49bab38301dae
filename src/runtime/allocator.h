// Where the runtime's big memory comes from: workspaces, prepared buffers, outputs a binding owns.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/status.h"

namespace quartet::runtime {

// Thread-safe source of memory. A host's allocator is one of these.
class Allocator {
 public:
  virtual ~Allocator() = default;
  // `size` > 0 bytes aligned to `alignment`, a power of two. Failures: out_of_memory, resource_exhausted (a budget).
  virtual Result<void*> allocate(size_t size, size_t alignment) = 0;
  // With the size and alignment it was asked for.
  virtual void free(void* memory, size_t size, size_t alignment) = 0;
};

// The C library's heap.
std::shared_ptr<Allocator> system_allocator();

// Counts what passes through it and refuses to hold more than `budget` bytes (0: no bound).
class CountingAllocator : public Allocator {
 public:
  explicit CountingAllocator(std::shared_ptr<Allocator> source, uint64_t budget = 0)
      : source_(std::move(source)), budget_(budget) {}
  Result<void*> allocate(size_t size, size_t alignment) override;
  void free(void* memory, size_t size, size_t alignment) override;

  uint64_t live_bytes() const { return live_.load(std::memory_order_relaxed); }
  uint64_t peak_bytes() const { return peak_.load(std::memory_order_relaxed); }

 private:
  std::shared_ptr<Allocator> source_;
  uint64_t budget_;
  std::atomic<uint64_t> live_{0}, peak_{0};
};

// Memory that frees itself. Blocks are aligned to 64 bytes; those of kHugePage bytes or more to a huge page, with huge
// pages advised.
class Block {
 public:
  static constexpr size_t kAlignment = 64;
  static constexpr size_t kHugePage = size_t{2} << 20;

  Block() = default;
  // Zero bytes give an empty block. `what` names the purpose in the error message.
  static Result<Block> allocate(const std::shared_ptr<Allocator>& allocator, uint64_t size, const char* what);
  Block(Block&& other) noexcept { swap(other); }
  Block& operator=(Block&& other) noexcept {
    Block(std::move(other)).swap(*this);
    return *this;
  }
  ~Block();

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  void swap(Block& other) noexcept {
    std::swap(allocator_, other.allocator_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(alignment_, other.alignment_);
  }

  std::shared_ptr<Allocator> allocator_;
  std::byte* data_ = nullptr;
  size_t size_ = 0, alignment_ = 0;
};

}  // namespace quartet::runtime
