#include "runtime/allocator.h"

#include <gtest/gtest.h>

#include <cstring>

namespace quartet::runtime {
namespace {

class Refusing final : public Allocator {
 public:
  Result<void*> allocate(size_t, size_t) override { return Status(Code::out_of_memory, "refused"); }
  void free(void*, size_t, size_t) override { FAIL() << "nothing was given"; }
};

TEST(Block, IsAlignedAndCounted) {
  auto counting = std::make_shared<CountingAllocator>(system_allocator());
  {
    auto small = Block::allocate(counting, 100, "a test");
    auto large = Block::allocate(counting, Block::kHugePage + 1, "a test");
    ASSERT_TRUE(small.ok() && large.ok());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(small->data()) % Block::kAlignment, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(large->data()) % Block::kHugePage, 0u);
    std::memset(large->data(), 1, large->size());
    EXPECT_EQ(counting->live_bytes(), 100 + Block::kHugePage + 1);
    Block moved = large.take();
    Block again;
    again = std::move(moved);
    EXPECT_EQ(again.size(), Block::kHugePage + 1);
    again = Block();
    EXPECT_EQ(counting->live_bytes(), 100u);
  }
  EXPECT_EQ(counting->live_bytes(), 0u);
  EXPECT_EQ(counting->peak_bytes(), 100 + Block::kHugePage + 1);
}

TEST(Block, EmptyNeedsNoAllocator) {
  const auto block = Block::allocate(std::make_shared<Refusing>(), 0, "a test");
  ASSERT_TRUE(block.ok());
  EXPECT_EQ(block->data(), nullptr);
}

TEST(Block, FailuresNameThePurpose) {
  const auto refused = Block::allocate(std::make_shared<Refusing>(), 8, "the workspace of a run");
  EXPECT_EQ(refused.status().code(), Code::out_of_memory);
  EXPECT_EQ(refused.status().message(), "the workspace of a run (8 bytes): refused");
  EXPECT_EQ(Block::allocate(system_allocator(), ~uint64_t{0}, "x").status().code(), Code::resource_exhausted);
}

TEST(CountingAllocator, HoldsTheBudget) {
  auto counting = std::make_shared<CountingAllocator>(system_allocator(), 1000);
  auto first = Block::allocate(counting, 600, "a test");
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(Block::allocate(counting, 401, "a test").status().code(), Code::resource_exhausted);
  EXPECT_TRUE(Block::allocate(counting, 400, "a test").ok());
  EXPECT_EQ(counting->live_bytes(), 600u);
  EXPECT_EQ(counting->peak_bytes(), 1000u);
  auto empty_source = std::make_shared<CountingAllocator>(std::make_shared<Refusing>());
  EXPECT_FALSE(Block::allocate(empty_source, 10, "a test").ok());
  EXPECT_EQ(empty_source->live_bytes(), 0u);
}

}  // namespace
}  // namespace quartet::runtime
