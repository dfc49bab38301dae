// Dims that only the run knows, without a bound before: the bits and the shapes are the reference interpreter's,
// whatever the number of vEUs, and the memory for them grows.
#include <gtest/gtest.h>

#include "unit/compiler/rig.h"

namespace quartet {
namespace {

using reference::Tensor;

Tensor ints(DType dtype, std::vector<int64_t> dims, std::vector<int64_t> values) {
  return {dtype, std::move(dims), std::move(values)};
}
Tensor number(int64_t value) { return ints(DType::i64, {}, {value}); }
Tensor counted(DType dtype, const std::vector<int64_t>& dims, int64_t first = 1) {
  Tensor tensor = Tensor::zeros(dtype, dims);
  for (size_t i = 0; i < tensor.elements.size(); ++i) tensor.elements[i] = first + static_cast<int64_t>(i);
  return tensor;
}

class Growing : public testing::Test {
 protected:
  compiler::ProgramPtr compile(const char* text) {
    const auto graph = graph::parse(text);
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    if (!graph.ok()) return nullptr;
    graph_ = *graph;
    compiler::Request request{*graph, {}, host_cpu()};
    EXPECT_TRUE(request.options.set(OptionId::verify_stages, true).ok());
    const auto program = engine_->compile(request);
    EXPECT_TRUE(program.ok()) << program.status().message();
    return program.ok() ? *program : nullptr;
  }

  // Compiles once, runs every list of inputs twice with 1, 2 and 8 vEUs, so that what a run leaves is there for the
  // next.
  void check(const char* text, const std::vector<std::vector<Tensor>>& runs) {
    const auto program = compile(text);
    ASSERT_TRUE(program);
    for (int round = 0; round < 2; ++round)
      for (const auto& inputs : runs) {
        const auto want = reference::interpret(*graph_, inputs);
        ASSERT_TRUE(want.ok()) << want.status().message();
        for (const int vEUs : {1, 2, 8}) {
          const auto got = test::run(*program->program, inputs, {vEUs, vEUs > 1 ? pool_ : nullptr});
          ASSERT_TRUE(got.ok()) << got.status().message() << "\n" << program::print(program->program->program());
          ASSERT_EQ(got->size(), want->size());
          for (size_t o = 0; o < got->size(); ++o) {
            EXPECT_EQ((*got)[o].dims, (*want)[o].dims) << "output " << o;
            EXPECT_EQ((*got)[o].elements, (*want)[o].elements) << "output " << o << ", " << vEUs << " vEUs\n"
                                                               << program::print(program->program->program());
          }
        }
      }
  }

  std::unique_ptr<compiler::Engine> engine_ = test::make_engine();
  std::shared_ptr<const graph::Graph> graph_;
  std::shared_ptr<runtime::WorkerPool> pool_ =
      std::make_shared<runtime::WorkerPool>(runtime::WorkerPool::Options{.threads = 7, .jobs = nullptr});
};

const char* const kRows = R"(dim t run
  graph(%n: i64, %x: i32[w]) {
    %none = constant i32[] [0]
    %start = expand %none {shape=[w]} : i32[w]
    %last, %rows = loop %n, _, %start {trip=[t]} : i32[w], i32[t, w] do (%i: i64, %c: bool, %a: i32[w]) {
      %b = add %a, %x
      %d = mul %b, %b
      yield %c, %b, %d
    }
    return %rows as rows, %last as last
  })";

TEST_F(Growing, AStackedResultIsAnOutput) {
  check(kRows, {{number(5), counted(DType::i32, {3})},
                {number(0), counted(DType::i32, {3})},
                {number(300), counted(DType::i32, {40})},
                {number(-2), counted(DType::i32, {1})},
                {number(1000), counted(DType::i32, {0})}});
}

TEST_F(Growing, WhatFollowsIsOfTheNewDim) {
  check(R"(dim t run
    graph(%n: i64, %x: i32[5], %most: i32[]) {
      %rows, %sums = loop %n, _ {trip=[t]} : i32[t, 5], i32[t] do (%i: i64, %c: bool) {
        %k = cast %i {to=i32}
        %r = add %x, %k
        %s = reduce_sum %r {axes=[0]}
        %go = less %s, %most
        yield %go, %r, %s
      }
      %index = iota {shape=[t, 5], axis=0, dtype=i32} : i32[t, 5]
      %both = add %rows, %index
      %turned = transpose %both {perm=[1, 0]}
      %product = matmul %turned, %both
      %maximum = reduce_max %sums {axes=[0]}
      %size = dims {shape=[t, 2*t]} : i64[2]
      %flat = reshape %both {shape=[5*t]} : i32[5*t]
      %twice = concat %flat, %flat {axis=0} : i32[10*t]
      return %product as product, %maximum as maximum, %size as size, %twice as twice, %turned as turned
    })",
        {{number(100), counted(DType::i32, {5}), ints(DType::i32, {}, {60})},
         {number(3), counted(DType::i32, {5}), ints(DType::i32, {}, {600})},
         {number(0), counted(DType::i32, {5}), ints(DType::i32, {}, {600})},
         {number(5000), counted(DType::i32, {5}), ints(DType::i32, {}, {20000})}});
}

TEST_F(Growing, LoopsOverWhatALoopMade) {
  check(R"(dim t run
    graph(%n: i64, %x: i32[4]) {
      %rows = loop %n, _ {trip=[t]} : i32[t, 4] do (%i: i64, %c: bool) {
        %k = cast %i {to=i32}
        %r = mul %x, %k
        yield %c, %r
      }
      %list = dims {shape=[t]} : i64[1]
      %count = reshape %list {shape=[]} : i64
      %zero = constant i32[] [0]
      %none = expand %zero {shape=[4]} : i32[4]
      %sum, %running = loop %count, _, %none {trip=[t]} : i32[4], i32[t, 4] do (%j: i64, %d: bool, %a: i32[4]) {
        %row = gather %rows, %j {axis=0}
        %b = add %a, %row
        yield %d, %b, %b
      }
      return %sum as sum, %running as running
    })",
        {{number(7), counted(DType::i32, {4})},
         {number(0), counted(DType::i32, {4})},
         {number(90), counted(DType::i32, {4})}});
}

TEST_F(Growing, ALoopInsideALoopFindsAnewEachTime) {
  check(R"(dim t run
    graph(%n: i64, %x: i32[3]) {
      %zero = constant i32[] [0]
      %total = loop %n, _, %zero : i32 do (%i: i64, %c: bool, %a: i32) {
        %rows = loop %i, _ {trip=[t]} : i32[t, 3] do (%j: i64, %d: bool) {
          %k = cast %j {to=i32}
          %r = add %x, %k
          yield %d, %r
        }
        %index = iota {shape=[t, 3], axis=0, dtype=i32} : i32[t, 3]
        %weighed = mul %rows, %index
        %s = reduce_sum %weighed {axes=[0, 1]}
        %b = add %a, %s
        yield %c, %b
      }
      return %total as total
    })",
        {{number(0), counted(DType::i32, {3})},
         {number(1), counted(DType::i32, {3})},
         {number(40), counted(DType::i32, {3})}});
}

TEST_F(Growing, OnlyTheDimIsUsed) {
  check(R"(dim t run
    graph(%n: i64, %x: i32[3]) {
      %rows = loop %n, _ {trip=[t]} : i32[t, 3] do (%i: i64, %c: bool) {
        yield %c, %x
      }
      %size = dims {shape=[t + 1]} : i64[1]
      return %size as size
    })",
        {{number(4), counted(DType::i32, {3})}, {number(0), counted(DType::i32, {3})}});
}

TEST_F(Growing, ACarriedValueGrowsByARow) {
  check(R"(dim s run
    graph(%n: i64, %x: i32[3], %first: i32[k, 3]) {
      %all = loop %n, _, %first {births=[s]} : i32[s, 3] do (%i: i64, %c: bool, %v: i32[s, 3]) {
        %row = reduce_sum %v {axes=[0]}
        %next = add %row, %x
        %one = reshape %next {shape=[1, 3]} : i32[1, 3]
        %longer = concat %v, %one {axis=0} : i32[s + 1, 3]
        yield %c, %longer
      }
      %index = iota {shape=[s, 3], axis=0, dtype=i32} : i32[s, 3]
      %weighed = mul %all, %index
      %sum = reduce_sum %weighed {axes=[0]}
      return %all as all, %sum as sum
    })",
        {{number(4), counted(DType::i32, {3}), counted(DType::i32, {2, 3})},
         {number(0), counted(DType::i32, {3}), counted(DType::i32, {5, 3})},
         {number(150), counted(DType::i32, {3}), counted(DType::i32, {0, 3})},
         {number(20), counted(DType::i32, {3}), counted(DType::i32, {1, 3})}});
}

TEST_F(Growing, CarriedDimsThatDependOnEachOther) {
  // Fibonacci: each becomes what both are of.
  check(R"(dim s run
           dim r run
    graph(%n: i64, %x: i32[1], %y: i32[1]) {
      %a, %b = loop %n, _, %x, %y {births=[s, r]} : i32[s], i32[r] do (%i: i64, %c: bool, %v: i32[s], %w: i32[r]) {
        %both = concat %v, %w {axis=0} : i32[s + r]
        %one = constant i32[] [1]
        %more = add %both, %one
        yield %c, %w, %more
      }
      return %a as a, %b as b
    })",
        {{number(0), counted(DType::i32, {1}), counted(DType::i32, {1}, 5)},
         {number(3), counted(DType::i32, {1}), counted(DType::i32, {1}, 5)},
         {number(15), counted(DType::i32, {1}), counted(DType::i32, {1}, 5)}});
}

TEST_F(Growing, ACarriedValueShrinksInALoopInALoop) {
  check(R"(dim s run
           dim r run
    graph(%n: i64, %x: i32[40]) {
      %out = loop %n, _, %x {births=[s]} : i32[s] do (%i: i64, %c: bool, %v: i32[s]) {
        %two = constant i64[] [2]
        %inner = loop %two, %c, %v {births=[r]} : i32[r] do (%j: i64, %d: bool, %w: i32[r]) {
          %half = slice %w {starts=[0], limits=[r], steps=[2]} : i32[floor_div(r + 1, 2)]
          %once = add %half, %half
          yield %d, %once
        }
        %joined = concat %inner, %inner, %inner {axis=0} : i32[3*r]
        yield %c, %joined
      }
      return %out as out
    })",
        {{number(0), counted(DType::i32, {40})},
         {number(1), counted(DType::i32, {40})},
         {number(6), counted(DType::i32, {40})}});
}

TEST_F(Growing, SmallLoopsAreUnrolledWithTheirDims) {
  check(R"(dim s run
    graph(%x: i32[k]) {
      %n = constant i64[] [3]
      %all = loop %n, _, %x {births=[s]} : i32[s] do (%i: i64, %c: bool, %v: i32[s]) {
        %both = concat %v, %x {axis=0} : i32[k + s]
        %more = add %both, %both
        yield %c, %more
      }
      %index = iota {shape=[s], axis=0, dtype=i32} : i32[s]
      %sum = add %all, %index
      return %sum as sum
    })",
        {{counted(DType::i32, {4})}, {counted(DType::i32, {0})}});
}

TEST_F(Growing, SidesOfDifferentDims) {
  check(R"(dim s run
           dim r run
    graph(%p: bool, %x: i32[k, 3], %y: i32[4, 3]) {
      %a, %b, %c = if %p {births=[s, s, r], places=[0, 0, 1, 0, 2, 0]} : i32[s, 3], i32[s], i32[r] then {
        %z = add %x, %x
        %w = reduce_sum %z {axes=[1]}
        %flat = reshape %z {shape=[3*k]} : i32[3*k]
        yield %z, %w, %flat
      } else {
        %w2 = reduce_sum %y {axes=[1]}
        %row = reduce_sum %y {axes=[0]}
        yield %y, %w2, %row
      }
      %column = reshape %b {shape=[s, 1]} : i32[s, 1]
      %sum = add %a, %column
      %twice = concat %c, %c {axis=0} : i32[2*r]
      return %sum as sum, %twice as twice, %a as a
    })",
        {{ints(DType::boolean, {}, {1}), counted(DType::i32, {7, 3}), counted(DType::i32, {4, 3})},
         {ints(DType::boolean, {}, {0}), counted(DType::i32, {7, 3}), counted(DType::i32, {4, 3})},
         {ints(DType::boolean, {}, {1}), counted(DType::i32, {0, 3}), counted(DType::i32, {4, 3})}});
}

TEST_F(Growing, ABoundedBirthHasItsMemoryPlanned) {
  check(R"(dim k dim s in [0, max(4, k)] run
    graph(%p: bool, %x: i32[k], %y: i32[4]) {
      %a = if %p {births=[s], places=[0, 0]} : i32[s] then {
        %z = add %x, %x
        yield %z
      } else {
        yield %y
      }
      %t = mul %a, %a
      return %t as t
    })",
        {{ints(DType::boolean, {}, {1}), counted(DType::i32, {7}), counted(DType::i32, {4})},
         {ints(DType::boolean, {}, {0}), counted(DType::i32, {7}), counted(DType::i32, {4})},
         {ints(DType::boolean, {}, {1}), counted(DType::i32, {2}), counted(DType::i32, {4})}});
}

TEST_F(Growing, ADimFromAValue) {
  check(R"(dim s run
    graph(%n: i64, %x: i32[3]) {
      bind %n {births=[s], reason="the count is negative"}
      %index = iota {shape=[s, 3], axis=0, dtype=i32} : i32[s, 3]
      %y = mul %index, %x
      return %y as y
    })",
        {{number(4), counted(DType::i32, {3})},
         {number(0), counted(DType::i32, {3})},
         {number(700), counted(DType::i32, {3})}});
  const auto program = engine_->compile({graph_, {}, host_cpu()});
  ASSERT_TRUE(program.ok());
  const auto failed = test::run(*(*program)->program, {number(-1), counted(DType::i32, {3})});
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.status().code(), Code::failed_precondition);
  EXPECT_NE(failed.status().message().find("the count is negative: -1"), std::string::npos)
      << failed.status().message();
}

// What a program's memory comes from.
struct Budget : runtime::Allocator {
  Result<void*> allocate(size_t size, size_t alignment) override {
    if (size > most) return make_error(Code::resource_exhausted, "%zu bytes are beyond the test's budget", size);
    ++calls;
    return source->allocate(size, alignment);
  }
  void free(void* memory, size_t size, size_t alignment) override { source->free(memory, size, alignment); }
  std::shared_ptr<runtime::Allocator> source = runtime::system_allocator();
  size_t most = SIZE_MAX;
  int calls = 0;
};

// A binding of kRows with its own memory for the outputs.
struct RowsRun {
  explicit RowsRun(const std::shared_ptr<const runtime::LoadedProgram>& program)
      : binding(runtime::Binding::create(program, {}).take()) {}
  Status operator()(int64_t trips, const Tensor& x) {
    count = number(trips).to_memory();
    row = x.to_memory();
    QUARTET_TRY(binding->set_input(0, {count.data(), count.size(), {}}));
    QUARTET_TRY(binding->set_input(1, {row.data(), row.size(), x.dims}));
    return binding->run();
  }
  Bytes count, row;
  std::unique_ptr<runtime::Binding> binding;
};

TEST_F(Growing, MemoryIsKeptAndARunThatGetsNoneLosesNothing) {
  const auto budget = std::make_shared<Budget>();
  compiler::EngineOptions options;
  options.llvm_path = QUARTET_TEST_LLVM;
  options.allocator = budget;
  engine_ = std::make_unique<compiler::Engine>(real_os(), nullptr, options);
  const auto program = compile(kRows);
  ASSERT_TRUE(program);
  const Tensor x = counted(DType::i32, {8});
  RowsRun run(program->program);
  ASSERT_TRUE(run(1000, x).ok());
  EXPECT_LT(budget->calls, 14) << "doubled, not grown by rows";
  EXPECT_EQ(run.binding->output_shape(0), (runtime::Shape{1000, 8}));
  EXPECT_EQ(run.binding->output_bytes(0), 32000u);
  const int before = budget->calls;
  for (const int64_t trips : {1000, 10, 700}) ASSERT_TRUE(run(trips, x).ok());
  EXPECT_EQ(budget->calls, before);
  budget->most = 40000;
  const Status status = run(5000, x);
  EXPECT_EQ(status.code(), Code::resource_exhausted);
  EXPECT_NE(status.message().find("output 0 'rows'"), std::string::npos) << status.message();
  ASSERT_TRUE(run(1024, x).ok());
  EXPECT_EQ(run.binding->output_shape(0), (runtime::Shape{1024, 8}));
  EXPECT_EQ(static_cast<const int32_t*>(run.binding->output_data(0))[8 * 1023], 1024 * 1024);
}

TEST_F(Growing, LentMemoryTakesTheResultOrTheRunFails) {
  const auto program = compile(kRows);
  ASSERT_TRUE(program);
  const Tensor n = number(6), x = counted(DType::i32, {2});
  const Bytes count = n.to_memory(), row = x.to_memory();
  std::vector<int32_t> rows(12), last(2);
  const std::vector<runtime::InputTensor> in{{count.data(), count.size(), n.dims}, {row.data(), row.size(), x.dims}};
  std::vector<runtime::OutputTensor> out{{rows.data(), 48, std::nullopt}, {last.data(), 8, std::nullopt}};
  std::vector<runtime::Shape> shapes;
  runtime::RunOptions options;
  options.output_shapes = &shapes;
  ASSERT_TRUE(runtime::run(*program->program, in, out, options).ok());
  EXPECT_EQ(shapes[0], (runtime::Shape{6, 2}));
  EXPECT_EQ(rows[11], 144);
  out[0].bytes = 40;
  const Status status = runtime::run(*program->program, in, out, options);
  EXPECT_EQ(status.code(), Code::resource_exhausted);
  EXPECT_NE(status.message().find("output 0 'rows': it has room for 40 bytes, but the result takes at least 48"),
            std::string::npos)
      << status.message();
  // The next run is as good as ever.
  out[0].bytes = 48;
  EXPECT_TRUE(runtime::run(*program->program, in, out, options).ok());
}

}  // namespace
}  // namespace quartet
