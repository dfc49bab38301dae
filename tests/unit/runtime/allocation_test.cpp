// A prepared binding runs without allocating.
#include "unit/counted_new.h"
#if QUARTET_COUNTS_NEW
#include <gtest/gtest.h>

#include "unit/runtime/fixture.h"

namespace quartet::runtime {
namespace {

using testing::Arguments;
using testing::load;
using testing::RandomProgram;

TEST(Allocation, APreparedBindingRunsWithout) {
  const auto pool = std::make_shared<WorkerPool>(WorkerPool::Options{.threads = 2, .jobs = nullptr, .spin_ns = 20'000});
  for (const int vEUs : {1, 3}) {
    RandomProgram random(11, {.stages = 15, .symbolic = true, .task_cost = 1e-5});
    LoadOptions options;
    auto counting = std::make_shared<CountingAllocator>(system_allocator());
    options.allocator = counting;
    const auto program = load(random, options);
    ASSERT_TRUE(program.ok());
    const auto inputs = random.random_inputs(60), other = random.random_inputs(60);
    Arguments first(**program, inputs, 60), second(**program, other, 60);
    const auto in_first = first.inputs(), in_second = second.inputs();
    const auto out_first = first.outputs(), out_second = second.outputs();
    auto binding = Binding::create(*program, {.vEUs = vEUs, .pool = pool});
    ASSERT_TRUE(binding.ok());
    const auto bind = [&](const std::vector<InputTensor>& in, const std::vector<OutputTensor>& out) {
      bool ok = true;
      for (size_t i = 0; i < in.size(); ++i) ok &= (*binding)->set_input(static_cast<int>(i), in[i]).ok();
      for (size_t i = 0; i < out.size(); ++i) ok &= (*binding)->set_output(static_cast<int>(i), out[i]).ok();
      return ok;
    };
    ASSERT_TRUE(bind(in_first, out_first));
    ASSERT_TRUE((*binding)->prepare().ok());
    const int64_t before = allocations.load();
    EXPECT_GT(before, 0);
    const uint64_t held = counting->live_bytes();
    bool ok = true;
    // Neither do tensors of the same shapes at other addresses.
    for (int round = 0; round < 20; ++round) {
      ok &= round % 2 == 0 ? bind(in_first, out_first) : bind(in_second, out_second);
      ok &= (*binding)->run().ok();
      ok &= (*binding)->run().ok();
    }
    EXPECT_EQ(allocations.load(), before);
    EXPECT_TRUE(ok);
    EXPECT_EQ(counting->live_bytes(), held);
    EXPECT_EQ(first.take(), random.expected(inputs, 60));
    EXPECT_EQ(second.take(), random.expected(other, 60));
  }
}

}  // namespace
}  // namespace quartet::runtime

#endif
