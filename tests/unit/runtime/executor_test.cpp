#include "runtime/executor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "unit/runtime/fixture.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace quartet::runtime {
namespace {

using testing::Arguments;
using testing::Data;
using testing::load;
using testing::RandomProgram;

TEST(Executor, RandomProgramsComputeTheSameOnAnyNumberOfVEUs) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    RandomProgram random(seed, {.stages = 1 + static_cast<int>(seed % 25), .symbolic = seed % 2 == 1});
    const auto program = load(random);
    ASSERT_TRUE(program.ok()) << program.status().message();
    for (const int64_t n : {1, 17, 100}) {
      const Data inputs = random.random_inputs(n);
      const Data expected = random.expected(inputs, n);
      Arguments arguments(**program, inputs, n);
      for (const int vEUs : {1, 2, 8}) {
        const Status status = run(**program, arguments.inputs(), arguments.outputs(), {.vEUs = vEUs});
        ASSERT_TRUE(status.ok()) << status.message();
        ASSERT_EQ(arguments.take(), expected) << "seed " << seed << ", n " << n << ", vEUs " << vEUs;
      }
    }
  }
}

TEST(Executor, ABindingRunsAgainAndFollowsItsTensors) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RandomProgram random(seed, {.stages = 10, .symbolic = true});
    const auto program = load(random);
    ASSERT_TRUE(program.ok());
    auto binding = Binding::create(*program, {.vEUs = 2, .pool = nullptr});
    ASSERT_TRUE(binding.ok());
    for (const int64_t n : {50, 50, 3, 120, 50}) {
      const Data inputs = random.random_inputs(n);
      Arguments arguments(**program, inputs, n);
      const auto in = arguments.inputs();
      const auto out = arguments.outputs();
      for (size_t i = 0; i < in.size(); ++i) ASSERT_TRUE((*binding)->set_input(static_cast<int>(i), in[i]).ok());
      // The first output stays the binding's own.
      for (size_t i = 1; i < out.size(); ++i) ASSERT_TRUE((*binding)->set_output(static_cast<int>(i), out[i]).ok());
      const Data expected = random.expected(inputs, n);
      for (int round = 0; round < 2; ++round) {
        const Status status = (*binding)->run();
        ASSERT_TRUE(status.ok()) << status.message();
        Data results = arguments.take();
        const auto* own = static_cast<const uint32_t*>((*binding)->output_data(0));
        EXPECT_EQ((*binding)->output_bytes(0), expected[0].size() * 4);
        EXPECT_EQ((*binding)->output_shape(0).size(), (*program)->outputs()[0].shape.size());
        results[0].assign(own, own + expected[0].size());
        ASSERT_EQ(results, expected) << seed << " " << n;
      }
      EXPECT_EQ(
          (*binding)->workspace_bytes().value(),
          (*program)->workspace_bytes(std::vector<std::span<const int64_t>>{in[0].shape, in[1].shape}, 2).value());
    }
  }
}

TEST(Executor, LentWorkspaceIsUsedAndChecked) {
  RandomProgram random(4, {.stages = 12});
  const auto program = load(random);
  ASSERT_TRUE(program.ok());
  const Data inputs = random.random_inputs(1), expected = random.expected(inputs, 1);
  Arguments arguments(**program, inputs, 1);
  const std::vector<std::span<const int64_t>> shapes{arguments.inputs()[0].shape, arguments.inputs()[1].shape};
  const uint64_t bytes = (*program)->workspace_bytes(shapes, 2).value();
  ASSERT_GT(bytes, 0u);
  std::vector<uint8_t> memory(bytes + 192, 0xee);
  auto* const base = memory.data() + 64 + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
  ASSERT_TRUE(
      run(**program, arguments.inputs(), arguments.outputs(), {.vEUs = 2, .workspace = base, .workspace_bytes = bytes})
          .ok());
  EXPECT_EQ(arguments.take(), expected);
  for (uint8_t* guard = memory.data(); guard < base; ++guard) ASSERT_EQ(*guard, 0xee);
  for (uint8_t* guard = base + bytes; guard < memory.data() + memory.size(); ++guard) ASSERT_EQ(*guard, 0xee);
  const auto fails = [&](RunOptions options, const char* reason) {
    const Status status = run(**program, arguments.inputs(), arguments.outputs(), options);
    EXPECT_EQ(status.code(), Code::invalid_argument);
    EXPECT_NE(status.message().find(reason), std::string::npos) << status.message();
  };
  fails({.vEUs = 2, .workspace = base, .workspace_bytes = bytes - 1}, "the run needs");
  fails({.vEUs = 2, .workspace = base + 4, .workspace_bytes = bytes}, "not aligned");
  fails({.vEUs = 0}, "vEUs");
  fails({.vEUs = 257}, "vEUs");
}

// A program of one kernel: y = f(x) over n floats, with x also read as an input of 2n.
program::Program scale_program() {
  const auto parsed = program::parse(
      "program\n"
      "dim s0 \"batch\"; lower 1\n"
      "input 0 \"x\"; f32 [s0, 4]\n"
      "input 1 \"twice\"; f32 [2*s0]\n"
      "output 0 \"y\"; f32 [s0, 4]\n"
      "workspace 0\n"
      "kernel 0 \"scale\"; blob 0; entry 0; arguments 3; dims [s0*4]; scratch 0\n"
      "stage 0; kernel 0 [input 0, input 1, output 0]; tasks 1; wave 0; cost 1e-06\n");
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  return parsed.value();
}

void scale_kernel(void* const* buffers, const int64_t* dims, int64_t, int64_t, void*) {
  for (int64_t i = 0; i < dims[0]; ++i)
    static_cast<float*>(buffers[2])[i] = static_cast<const float*>(buffers[0])[i] * 0.5f;
}

std::shared_ptr<const LoadedProgram> load_one(program::Program program, KernelFunction function) {
  const KernelFunction functions[] = {function};
  auto loaded = LoadedProgram::from_functions(std::move(program), functions, {});
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  return loaded.take();
}

struct Case {
  std::vector<int64_t> x, twice;
  const char* reason;
};

TEST(Executor, ShapeErrorsNameInputAxisExpectedAndGiven) {
  const auto program = load_one(scale_program(), scale_kernel);
  const Case cases[] = {
      {{3, 5}, {6}, "input 0 'x', axis 1: expected 4, given 5"},
      {{3}, {6}, "input 0 'x': expected 2 axes, given 1"},
      {{3, 4}, {7}, "input 1 'twice', axis 0: expected 6 (batch*2), given 7"},
      {{0, 4}, {0}, "input 0 'x', axis 0: expected at least 1 (batch), given 0"},
      {{-1, 4}, {0}, "input 0 'x', axis 0: expected an extent of at least 0, given -1"},
  };
  for (const Case& c : cases) {
    const std::vector<std::span<const int64_t>> shapes{c.x, c.twice};
    const auto result = program->output_shapes(shapes);
    ASSERT_FALSE(result.ok()) << c.reason;
    EXPECT_EQ(result.status().code(), Code::invalid_argument);
    EXPECT_EQ(result.status().message(), c.reason);
  }
  const std::vector<int64_t> x{3, 4}, twice{6}, huge{int64_t{1} << 61, 4}, huge_twice{int64_t{1} << 62};
  EXPECT_EQ(program->output_shapes(std::vector<std::span<const int64_t>>{x, twice}).value(), std::vector<Shape>{x});
  EXPECT_EQ(program->output_shapes(std::vector<std::span<const int64_t>>{x}).status().message(),
            "the program has 2 inputs, 1 are given");
  EXPECT_EQ(program->output_shapes(std::vector<std::span<const int64_t>>{huge, huge_twice}).status().code(),
            Code::resource_exhausted);
}

TEST(Executor, ASymbolOnTwoAxesMustAgree) {
  program::Program p = scale_program();
  p.inputs[1].shape = {IntExpr::symbol(0)};
  const auto program = load_one(p, scale_kernel);
  const std::vector<int64_t> x{3, 4}, other{5};
  EXPECT_EQ(program->output_shapes(std::vector<std::span<const int64_t>>{x, other}).status().message(),
            "input 1 'twice', axis 0: expected 3 (batch, as another axis has it), given 5");
}

TEST(Executor, MemoryIsChecked) {
  const auto program = load_one(scale_program(), scale_kernel);
  alignas(64) float x[8] = {2, 4, 6, 8}, twice[4] = {}, y[8] = {};
  const std::vector<int64_t> x_shape{1, 4}, twice_shape{2}, wrong{2, 4};
  const auto attempt = [&](InputTensor a, InputTensor b, OutputTensor c) {
    const InputTensor in[] = {a, b};
    const OutputTensor out[] = {c};
    return run(*program, in, out, {}).message();
  };
  const InputTensor a{x, 16, x_shape}, b{twice, 8, twice_shape};
  const OutputTensor c{y, 16, x_shape};
  EXPECT_EQ(attempt(a, b, c), "");
  EXPECT_EQ(y[3], 4.0f);
  EXPECT_EQ(attempt({nullptr, 16, x_shape}, b, c), "input 0 'x': the pointer is null, but its shape needs 16 bytes");
  EXPECT_EQ(attempt({x, 15, x_shape}, b, c), "input 0 'x': 15 bytes are given, its shape needs 16");
  EXPECT_EQ(attempt({reinterpret_cast<char*>(x) + 2, 16, x_shape}, b, c),
            "input 0 'x': the pointer is not aligned to 4 bytes, the size of f32");
  EXPECT_EQ(attempt(a, b, {y, 12, x_shape}), "output 0 'y': 12 bytes are given, its shape needs 16");
  EXPECT_EQ(attempt(a, b, {y, 32, wrong}), "output 0 'y', axis 0: expected 1, given 2");
  EXPECT_EQ(attempt(a, b, {x + 3, 16, std::nullopt}), "output 0 'y' overlaps input 0 'x'");
  EXPECT_EQ(attempt(a, b, {x + 4, 16, std::nullopt}), "");
  const InputTensor in[] = {a, b};
  EXPECT_EQ(run(*program, in, {}, {}).message(), "the program has 1 outputs, 0 are given");
  auto binding = Binding::create(program, {});
  ASSERT_TRUE(binding.ok());
  EXPECT_EQ((*binding)->run().code(), Code::failed_precondition);
  EXPECT_EQ((*binding)->workspace_bytes().status().code(), Code::failed_precondition);
  EXPECT_EQ((*binding)->set_input(2, a).code(), Code::invalid_argument);
  EXPECT_EQ((*binding)->set_output(-1, c).code(), Code::invalid_argument);
}

TEST(Executor, EmptyTensorsNeedNoMemory) {
  program::Program p = scale_program();
  p.dims[0].lower = 0;
  const auto program = load_one(p, scale_kernel);
  const std::vector<int64_t> x_shape{0, 4}, twice_shape{0};
  const InputTensor in[] = {{nullptr, 0, x_shape}, {nullptr, 0, twice_shape}};
  const OutputTensor out[] = {{nullptr, 0, x_shape}};
  EXPECT_EQ(run(*program, in, out, {}).message(), "");
  auto binding = Binding::create(program, {});
  ASSERT_TRUE(binding.ok());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE((*binding)->set_input(i, in[i]).ok());
  EXPECT_TRUE((*binding)->run().ok());
  EXPECT_EQ((*binding)->output_shape(0), x_shape);
}

TEST(Executor, TimesCoverEveryTask) {
  RandomProgram random(8, {.stages = 10});
  const auto program = load(random);
  ASSERT_TRUE(program.ok());
  Arguments arguments(**program, random.random_inputs(1), 1);
  std::vector<RangeTime> times;
  ASSERT_TRUE(run(**program, arguments.inputs(), arguments.outputs(), {.vEUs = 4, .times = &times}).ok());
  std::vector<int64_t> tasks(random.program.stages.size());
  for (const RangeTime& time : times) {
    EXPECT_LE(time.begin_ns, time.end_ns);
    tasks[static_cast<size_t>(time.stage)] += time.end_task - time.begin_task;
  }
  for (size_t s = 0; s < tasks.size(); ++s)
    EXPECT_EQ(tasks[s], RandomProgram::value(random.program.stages[s].tasks, 1));
}

#if defined(__x86_64__)
TEST(Executor, SetsTheFloatingPointEnvironmentAndGivesItBack) {
  alignas(64) float x[4] = {1e-38f, 1, 2, 3}, twice[2] = {}, y[4] = {};
  const std::vector<int64_t> x_shape{1, 4}, twice_shape{2};
  const InputTensor in[] = {{x, 16, x_shape}, {twice, 8, twice_shape}};
  const OutputTensor out[] = {{y, 16, x_shape}};
  const unsigned before = _mm_getcsr();
  // A host that flushes denormals, rounds up and has raised a flag.
  const unsigned host = 0x8040 | 0x4000 | 0x1f80 | 0x20;
  const auto strict = load_one(scale_program(), scale_kernel);
  program::Program relaxed_program = scale_program();
  relaxed_program.flush_denormals = true;
  const auto relaxed = load_one(relaxed_program, scale_kernel);
  _mm_setcsr(host);
  const Status first = run(*strict, in, out, {});
  const unsigned after = _mm_getcsr();
  const float strict_result = y[0];
  _mm_setcsr(before);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(after, host);
  EXPECT_EQ(std::fpclassify(strict_result), FP_SUBNORMAL);
  ASSERT_TRUE(run(*relaxed, in, out, {}).ok());
  EXPECT_EQ(y[0], 0.0f);
  EXPECT_EQ(_mm_getcsr() & 0xffc0u, before & 0xffc0u);
}
#endif

TEST(Executor, WorkspacesAreKeptForTheNextRunAndTrimmed) {
  RandomProgram random(4, {.stages = 12, .symbolic = true});
  auto counting = std::make_shared<CountingAllocator>(system_allocator());
  LoadOptions options;
  options.allocator = counting;
  const auto program = load(random, options);
  ASSERT_TRUE(program.ok());
  const uint64_t prepared = counting->live_bytes();
  EXPECT_EQ(prepared, (*program)->prepared_bytes());
  uint64_t held = 0;
  for (int round = 0; round < 3; ++round)
    for (const int64_t n : {100, 7}) {
      Arguments arguments(**program, random.random_inputs(n), n);
      ASSERT_TRUE(run(**program, arguments.inputs(), arguments.outputs(), {}).ok());
      if (held == 0) held = counting->live_bytes();
      EXPECT_EQ(counting->live_bytes(), held);
    }
  EXPECT_GT(held, prepared);
  (*program)->trim();
  EXPECT_EQ(counting->live_bytes(), prepared);
}

TEST(Executor, ABudgetGivesAnErrorAndNothingLeaks) {
  RandomProgram random(4, {.stages = 12, .symbolic = true});
  auto counting = std::make_shared<CountingAllocator>(system_allocator(), 4096);
  LoadOptions options;
  options.allocator = counting;
  const auto program = load(random, options);
  ASSERT_TRUE(program.ok());
  Arguments large(**program, random.random_inputs(100000), 100000), small(**program, random.random_inputs(2), 2);
  EXPECT_EQ(run(**program, large.inputs(), large.outputs(), {}).code(), Code::resource_exhausted);
  EXPECT_TRUE(run(**program, small.inputs(), small.outputs(), {}).ok());
  EXPECT_EQ(run(**program, large.inputs(), large.outputs(), {}).code(), Code::resource_exhausted);
  auto binding = Binding::create(*program, {});
  ASSERT_TRUE(binding.ok());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE((*binding)->set_input(i, large.inputs()[static_cast<size_t>(i)]).ok());
  EXPECT_EQ((*binding)->run().code(), Code::resource_exhausted);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE((*binding)->set_input(i, small.inputs()[static_cast<size_t>(i)]).ok());
  EXPECT_TRUE((*binding)->run().ok());
  counting = nullptr;
}

}  // namespace
}  // namespace quartet::runtime
