// Programs whose memory grows while they run, with plain functions as kernels.
#include <gtest/gtest.h>

#include <cstring>

#include "program/program.h"
#include "runtime/executor.h"

namespace quartet::runtime {
namespace {

// Appends a number to a list: [count] -> [count + 1]. dims: count.
void append(void* const* buffers, const int64_t* dims, int64_t, int64_t, void*) {
  const auto* list = static_cast<const int64_t*>(buffers[0]);
  auto* longer = static_cast<int64_t*>(buffers[1]);
  for (int64_t i = 0; i < dims[0]; ++i) longer[i] = list[i];
  longer[dims[0]] = 10 * dims[0];
}

// By way of scratch that holds all of it, so that scratch that is too small shows. dims: count.
void reverse(void* const* buffers, const int64_t* dims, int64_t begin, int64_t end, void* scratch) {
  if (begin == end) return;
  const size_t bytes = 8 * static_cast<size_t>(dims[0]);
  std::memcpy(scratch, buffers[0], bytes);
  for (int64_t i = 0; i < dims[0]; ++i)
    static_cast<int64_t*>(buffers[1])[i] = static_cast<int64_t*>(scratch)[dims[0] - 1 - i];
}

// A list of s0 zeros, as many as input 0 says, grows in each of input 1's iterations; output 0 is it backwards.
const char* const kText =
    "program\n"
    "dim s0 \"count\"; lower 0; run\n"
    "input 0 \"first\"; i64 []\n"
    "input 1 \"times\"; i64 []\n"
    "input 2 \"zeros\"; i64 [4]\n"
    "output 0 \"y\"; i64 [s0]\n"
    "slot 0; bytes s0*8; moments 0..0; offset 0; region 0\n"
    "slot 1; bytes s0*8 + 8; moments 0..0; offset 0; region 0\n"
    "workspace 0\n"
    "kernel 0 \"append\"; blob 0; entry 0; arguments 2; dims [s0]; scratch 0\n"
    "kernel 1 \"reverse\"; blob 0; entry 0; arguments 2; dims [s0]; scratch s0*8\n"
    "stage 0; kernel 0 [slot 0, slot 1]; tasks 1; wave 0; cost 1e-06\n"
    "stage 1; kernel 1 [slot 0, output 0]; tasks min(s0, 1); wave 1; cost 1e-06\n"
    "message 0 \"the count\"\n"
    "loop 0; trip input 1\n"
    "do read 0; from input 0; message 0\n"
    "do grow slot 0\n"
    "do copy input 2; to slot 0; bytes 32\n"
    "do loop 0\n"
    "do   grow slot 1\n"
    "do   run 0; count 1\n"
    "do   swap slot 0; with slot 1\n"
    "do   set 0; to s0 + 1\n"
    "do loop_end\n"
    "do grow output 0\n"
    "do run 1; count 1\n";

class GrowingRun : public testing::Test {
 protected:
  void load(const std::string& text) {
    auto program = program::parse(text);
    ASSERT_TRUE(program.ok()) << program.status().message();
    program::plan_memory(*program);
    const KernelFunction functions[] = {append, reverse};
    LoadOptions options;
    options.allocator = std::make_shared<CountingAllocator>(system_allocator(), uint64_t{1} << 24);
    auto loaded = LoadedProgram::from_functions(*std::move(program), functions, options);
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    program_ = *std::move(loaded);
  }
  static std::string without(const std::string& line) {
    std::string text = kText;
    const size_t at = text.find(line);
    EXPECT_NE(at, std::string::npos) << line;
    return text.erase(at, line.size());
  }
  Status run(int64_t first, int64_t times) {
    const std::vector<int64_t> zeros(4), four{4};
    const InputTensor in[] = {{&first, 8, {}}, {&times, 8, {}}, {zeros.data(), 32, four}};
    const OutputTensor out[] = {{nullptr, 0, std::nullopt, &made_}};
    RunOptions options;
    options.output_shapes = &shapes_;
    return runtime::run(*program_, in, out, options);
  }

  std::shared_ptr<const LoadedProgram> program_;
  Block made_;
  std::vector<Shape> shapes_;
};

TEST_F(GrowingRun, DimsAreReadAndSetAndMemoryFollows) {
  load(kText);
  for (const int64_t times : {0, 3, 1000, 5}) {
    ASSERT_TRUE(run(4, times).ok());
    EXPECT_EQ(shapes_[0], (Shape{4 + times}));
    const auto* y = reinterpret_cast<const int64_t*>(made_.data());
    for (int64_t i = 0; i < 4 + times; ++i) EXPECT_EQ(y[3 + times - i], i < 4 ? 0 : 10 * i) << i;
  }
}

TEST_F(GrowingRun, NumbersThatAreNoDimFailTheRun) {
  load(kText);
  const Status negative = run(-1, 2);
  EXPECT_EQ(negative.code(), Code::failed_precondition);
  EXPECT_NE(negative.message().find("the count: -1"), std::string::npos) << negative.message();
  const Status huge = run(INT64_MAX / 2, 2);
  EXPECT_EQ(huge.code(), Code::resource_exhausted) << huge.message();
  const Status large = run(int64_t{1} << 58, 2);
  EXPECT_FALSE(large.ok());
  EXPECT_NE(large.message().find("memory that grows"), std::string::npos) << large.message();
  EXPECT_TRUE(run(4, 2).ok());
}

TEST_F(GrowingRun, NothingIsTouchedThatHasNoRoom) {
  for (const char* line : {"do grow slot 0\n", "do   grow slot 1\n", "do grow output 0\n"}) {
    load(without(line));
    const Status status = run(4, 2);
    EXPECT_EQ(status.code(), Code::internal) << line;
    EXPECT_NE(status.message().find("before it has room"), std::string::npos) << status.message();
  }
}

TEST_F(GrowingRun, ACopyIsNoLargerThanWhatItCopies) {
  load(kText);
  const Status status = run(3, 2);
  EXPECT_EQ(status.code(), Code::internal);
  EXPECT_NE(status.message().find("a copy is larger"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace quartet::runtime
