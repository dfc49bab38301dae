// Vector loops: tails of every length, guards, strides, gathers, index arithmetic, nested loops, branches.
#include <gtest/gtest.h>

#include "compiled.h"
#include "kernel/builder.h"

namespace quartet::testing {
namespace {

using kernel::BufferId;
using kernel::Builder;
using kernel::Ids;
using kernel::Kernel;
using kernel::LoopKind;
using kernel::Runs;
using kernel::Scope;
using kernel::ValueId;

class LoopCode : public ::testing::TestWithParam<Isa> {
 protected:
  // Compiles one kernel and compares it with the interpreter for each set of dims. `sizes`: elements of each argument.
  void check(const Result<Kernel>& kernel, const std::vector<std::vector<int64_t>>& dims,
             const std::vector<size_t>& sizes, const std::vector<std::pair<size_t, Argument>>& given = {}) {
    ASSERT_TRUE(kernel.ok()) << kernel.status().message();
    const auto image = compile({&*kernel, 1}, GetParam());
    ASSERT_TRUE(image.ok()) << image.status().message();
    if (!runs_here(GetParam())) return;
    std::vector<Argument> arguments;
    for (size_t b = 0; b < sizes.size(); ++b) arguments.push_back(ordinary(kernel->buffers[b].dtype, sizes[b], b + 1));
    for (const auto& [b, values] : given) arguments[b] = values;
    for (const auto& values : dims) {
      const std::string found = difference(*kernel, (*image)->function(0), GetParam(), arguments, values);
      EXPECT_TRUE(found.empty()) << found << " for dim " << (values.empty() ? -1 : values[0]);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Classes, LoopCode, ::testing::ValuesIn(kClasses),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

kernel::Buffer in(DType type, IntExpr elements) {
  return {"", type, Scope::argument_in, std::move(elements), static_cast<int32_t>(size_of(type))};
}
kernel::Buffer out(DType type, IntExpr elements) {
  return {"", type, Scope::argument_out, std::move(elements), static_cast<int32_t>(size_of(type))};
}

// out = a + b over n elements, n a dim.
Result<Kernel> sum_of(DType type) {
  Builder b(std::string("sum ") + dtype_name(type));
  const IntExpr n = IntExpr::symbol(0);
  const BufferId x = b.buffer(in(type, n)), y = b.buffer(in(type, n)), z = b.buffer(out(type, n));
  b.set_dims(1);
  b.loop(LoopKind::vector, b.i64(0), b.dim(0), 1, Runs::maybe, [&](ValueId i) {
    const ValueId left = b.load(x, i), right = b.load(y, i);
    b.store(z, i, type == DType::boolean ? b.binary(ScalarOp::bit_xor, left, right) : b.add(left, right));
  });
  return b.finish(1);
}

// The comparison itself: code of another kernel, and values outside a kernel's extent, do not pass.
TEST_P(LoopCode, AnotherKernelsCodeIsToldApart) {
  if (!runs_here(GetParam())) return;
  const auto scaled = [](double factor) {
    Builder b("scaled");
    const BufferId x = b.buffer(in(DType::f32, 40)), z = b.buffer(out(DType::f32, 40));
    b.loop(LoopKind::vector, b.i64(0), b.i64(40), 1, Runs::always,
           [&](ValueId i) { b.store(z, i, b.mul(b.load(x, i), b.real(DType::f32, factor))); });
    return b.finish(1);
  };
  const auto one = scaled(1.5), two = scaled(1.25);
  ASSERT_TRUE(one.ok() && two.ok());
  const auto image = compile({&*one, 1}, GetParam());
  ASSERT_TRUE(image.ok()) << image.status().message();
  const std::vector<Argument> arguments{ordinary(DType::f32, 40, 1), Argument(160)};
  EXPECT_TRUE(difference(*one, (*image)->function(0), GetParam(), arguments, {}).empty());
  EXPECT_FALSE(difference(*two, (*image)->function(0), GetParam(), arguments, {}).empty());
}

TEST_P(LoopCode, TailsOfEveryLength) {
  for (const DType type :
       {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i16, DType::u8, DType::boolean}) {
    const auto kernel = sum_of(type);
    ASSERT_TRUE(kernel.ok()) << kernel.status().message();
    const auto image = compile({&*kernel, 1}, GetParam());
    ASSERT_TRUE(image.ok()) << image.status().message();
    if (!runs_here(GetParam())) continue;
    const int lanes = (GetParam() == Isa::avx512 ? 64
                       : GetParam() == Isa::avx2 ? 32
                                                 : 16) /
                      static_cast<int>(size_of(type));
    for (int64_t n = 0; n <= 9 * lanes + 1; n += n < 3 * lanes ? 1 : 7) {
      const size_t size = static_cast<size_t>(n);
      const std::vector<Argument> arguments{ordinary(type, size, 1), ordinary(type, size, 2), ordinary(type, size, 3)};
      const std::string found = difference(*kernel, (*image)->function(0), GetParam(), arguments, {n});
      ASSERT_TRUE(found.empty()) << found << ", n = " << n;
    }
  }
}

TEST_P(LoopCode, LengthsKnownWhenCompiled) {
  for (const int64_t n : {1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 48, 63, 64, 65, 79, 127, 128, 129, 191}) {
    Builder b(format("scale %lld", static_cast<long long>(n)));
    const BufferId x = b.buffer(in(DType::f32, n)), z = b.buffer(out(DType::f32, n));
    b.loop(LoopKind::vector, b.i64(0), b.i64(n), 1, Runs::always,
           [&](ValueId i) { b.store(z, i, b.mul(b.load(x, i), b.real(DType::f32, 1.1))); });
    check(b.finish(1), {{}}, {static_cast<size_t>(n), static_cast<size_t>(n)});
  }
}

// A loop from lo to hi that are dims, also with hi below lo.
TEST_P(LoopCode, BoundsThatAreDims) {
  Builder b("between");
  b.set_dims(2);
  const BufferId x = b.buffer(in(DType::f32, 200)), z = b.buffer(out(DType::f32, 200));
  b.loop(LoopKind::vector, b.dim(0), b.dim(1), 1, Runs::maybe,
         [&](ValueId i) { b.store(z, i, b.unary(ScalarOp::neg, b.load(x, i))); });
  check(b.finish(1), {{0, 200}, {3, 199}, {5, 5}, {9, 7}, {100, 2}, {17, 18}, {63, 129}, {1, 64}}, {200, 200});
}

// Tasks cut n elements into tiles, the last one short; a row's bias by the remainder of the index.
TEST_P(LoopCode, TilesAndRemainders) {
  for (const int64_t row : {1, 2, 3, 4, 5, 8, 12, 16, 24, 37, 64, 100}) {
    Builder b(format("bias %lld", static_cast<long long>(row)));
    b.set_dims(1);
    const IntExpr n = IntExpr::symbol(0);
    const BufferId x = b.buffer(in(DType::f32, n)), bias = b.buffer(in(DType::f32, row)),
                   scale = b.buffer(in(DType::f32, 4096)), z = b.buffer(out(DType::f32, n));
    const ValueId lo = b.mul(b.task(), b.i64(96));
    const ValueId hi = b.min(b.add(lo, b.i64(96)), b.dim(0));
    b.loop(LoopKind::vector, lo, hi, 1, Runs::maybe, [&](ValueId i) {
      const ValueId column = b.binary(ScalarOp::floor_mod, i, b.i64(row));
      const ValueId line = b.binary(ScalarOp::floor_div, i, b.i64(row));
      b.store(z, i, b.add(b.mul(b.load(x, i), b.load(scale, line)), b.load(bias, column)));
    });
    const size_t size = 501;
    check(b.finish(ceil_div(n, IntExpr(96))), {{501}, {96}, {97}, {192}, {1}, {0}},
          {size, static_cast<size_t>(row), 4096, size});
  }
}

// Divisors that are dims, with and without a known bound.
TEST_P(LoopCode, RemaindersByADim) {
  for (const bool bounded : {false, true}) {
    Builder b(bounded ? "bounded" : "unbounded");
    b.set_dims(2, bounded ? std::vector<IntExpr>{4096, 4096} : std::vector<IntExpr>{});
    const BufferId bias = b.buffer(in(DType::f32, 4096)), z = b.buffer(out(DType::f32, 700));
    b.loop(LoopKind::vector, b.i64(0), b.dim(0), 1, Runs::maybe, [&](ValueId i) {
      const ValueId column = b.binary(ScalarOp::floor_mod, i, b.dim(1));
      const ValueId line = b.binary(ScalarOp::floor_div, i, b.dim(1));
      b.store(z, i, b.sub(b.load(bias, column), b.load(bias, line)));
    });
    check(b.finish(1), {{700, 1}, {700, 2}, {700, 3}, {699, 7}, {643, 16}, {700, 64}, {700, 701}, {700, 4000}},
          {4096, 700});
  }
}

// Negative indices: floor and truncating division differ.
TEST_P(LoopCode, DivisionOfNegativeIndices) {
  for (const int64_t divisor : {1, 3, 4, 7, 16, 50}) {
    Builder b("signs");
    const BufferId z = b.buffer(out(DType::i64, 4 * 300));
    b.loop(LoopKind::vector, b.i64(0), b.i64(300), 1, Runs::always, [&](ValueId i) {
      const ValueId x = b.sub(b.i64(150), b.mul(i, b.i64(1)));
      const ValueId at = b.mul(i, b.i64(4));
      int64_t n = 0;
      for (const ScalarOp op : {ScalarOp::floor_div, ScalarOp::floor_mod, ScalarOp::div, ScalarOp::rem})
        b.store(z, b.add(at, b.i64(n++)), b.binary(op, x, b.i64(divisor)));
    });
    check(b.finish(1), {{}}, {1200});
  }
}

TEST_P(LoopCode, TransposesByStridesAndScatters) {
  for (const DType type : {DType::f32, DType::f64, DType::i16, DType::u8}) {
    Builder b("transpose");
    b.set_dims(2);
    const BufferId x = b.buffer(in(type, 41 * 37)), gathered = b.buffer(out(type, 41 * 37)),
                   scattered = b.buffer(out(type, 41 * 37));
    b.loop(LoopKind::serial, b.i64(0), b.i64(37), 1, Runs::always, [&](ValueId j) {
      b.loop(LoopKind::vector, b.i64(0), b.i64(41), 1, Runs::always, [&](ValueId i) {
        b.store(gathered, b.add(b.mul(j, b.i64(41)), i), b.load(x, b.add(b.mul(i, b.dim(0)), j)));
        b.store(scattered, b.add(b.mul(i, b.i64(37)), j), b.load(x, b.add(b.mul(b.sub(b.i64(40), i), b.dim(0)), j)));
      });
    });
    check(b.finish(1), {{37, 0}}, {41 * 37, 41 * 37, 41 * 37});
  }
}

// Elements chosen by an index tensor, clamped; of i32 and i64.
TEST_P(LoopCode, Gathers) {
  for (const DType index_type : {DType::i32, DType::i64}) {
    Builder b("gather");
    const BufferId table = b.buffer(in(DType::f32, 64 * 5)), index = b.buffer(in(index_type, 83)),
                   z = b.buffer(out(DType::f32, 83 * 5));
    b.loop(LoopKind::vector, b.i64(0), b.i64(83), 1, Runs::always, [&](ValueId i) {
      const ValueId row = b.max(b.min(b.cast(DType::i64, b.load(index, i)), b.i64(63)), b.i64(0));
      for (int64_t c = 0; c < 5; ++c)
        b.store(z, b.add(b.mul(i, b.i64(5)), b.i64(c)), b.load(table, b.add(b.mul(row, b.i64(5)), b.i64(c))));
    });
    check(b.finish(1), {{}}, {64 * 5, 83, 83 * 5}, {{1, mixed(index_type, 83, 5)}});
  }
}

// Padding: guards by lane, the same for all lanes, and both; nothing outside may be touched.
TEST_P(LoopCode, GuardedLoads) {
  for (const DType type : {DType::f32, DType::f64, DType::f16, DType::i8, DType::boolean}) {
    Builder b(std::string("pad ") + dtype_name(type));
    b.set_dims(2);  // height, width
    const IntExpr h = IntExpr::symbol(0), w = IntExpr::symbol(1);
    const BufferId x = b.buffer(in(type, h * w)), z = b.buffer(out(type, (h + 3) * (w + 5)));
    b.loop(LoopKind::serial, b.i64(0), b.add(b.dim(0), b.i64(3)), 1, Runs::maybe, [&](ValueId r) {
      b.loop(LoopKind::vector, b.i64(0), b.add(b.dim(1), b.i64(5)), 1, Runs::maybe, [&](ValueId c) {
        const ValueId row = b.sub(r, b.i64(1)), column = b.sub(c, b.i64(2));
        const auto inside = [&](ValueId v, ValueId extent) {
          return b.binary(ScalarOp::bit_and, b.binary(ScalarOp::le, b.i64(0), v), b.less(v, extent));
        };
        const ValueId guard = b.binary(ScalarOp::bit_and, inside(row, b.dim(0)), inside(column, b.dim(1)));
        const ValueId fill = b.constant(type, type == DType::boolean ? 1 : 7);
        b.store(z, b.add(b.mul(r, b.add(b.dim(1), b.i64(5))), c),
                b.load(x, b.add(b.mul(row, b.dim(1)), column), guard, fill));
      });
    });
    const auto kernel = b.finish(1);
    for (const auto& [height, width] : {std::pair<int64_t, int64_t>{1, 1}, {2, 31}, {3, 60}, {5, 128}, {0, 9}})
      check(kernel, {{height, width}},
            {static_cast<size_t>(height * width), static_cast<size_t>((height + 3) * (width + 5))});
  }
}

TEST_P(LoopCode, GuardedStoresAndUniformElements) {
  Builder b("every third");
  const BufferId x = b.buffer(in(DType::f32, 100)), one = b.buffer(in(DType::f32, 1)),
                 z = b.buffer(out(DType::f32, 100));
  b.loop(LoopKind::vector, b.i64(0), b.i64(100), 1, Runs::always, [&](ValueId i) {
    const ValueId third = b.binary(ScalarOp::eq, b.binary(ScalarOp::floor_mod, i, b.i64(3)), b.i64(0));
    // One element for all lanes, but only for some of them.
    const ValueId extra = b.load(one, b.i64(0), third, b.real(DType::f32, 5));
    b.store(z, i, b.add(b.load(x, i), extra), third);
  });
  check(b.finish(1), {{}}, {100, 1, 100});
}

// A lane's own serial loop: carried values differ by lane, start the same for all.
TEST_P(LoopCode, LoopsInsideLanes) {
  Builder b("horner");
  b.set_dims(1);
  const BufferId x = b.buffer(in(DType::f32, 77)), c = b.buffer(in(DType::f32, 6)), z = b.buffer(out(DType::f32, 77)),
                 steps = b.buffer(out(DType::i64, 77));
  b.loop(LoopKind::vector, b.i64(0), b.i64(77), 1, Runs::always, [&](ValueId i) {
    const ValueId value = b.load(x, i);
    const Ids sum = b.loop(LoopKind::serial, b.i64(0), b.dim(0), 1, {b.real(DType::f32, 1), i}, Runs::maybe,
                           [&](ValueId k, std::span<const ValueId> carried) -> Ids {
                             return {b.add(b.mul(carried[0], value), b.load(c, k)), b.add(carried[1], b.i64(2))};
                           });
    b.store(z, i, sum[0]);
    b.store(steps, i, sum[1]);
  });
  check(b.finish(1), {{0}, {1}, {6}}, {77, 6, 77, 77});
}

TEST_P(LoopCode, UnrolledLoopsAndBranches) {
  Builder b("sides");
  b.set_dims(1);
  const BufferId x = b.buffer(in(DType::f32, 90)), z = b.buffer(out(DType::f32, 90));
  const ValueId many = b.less(b.i64(10), b.dim(0));
  b.loop(LoopKind::vector, b.i64(0), b.i64(90), 1, Runs::always, [&](ValueId i) {
    const ValueId value = b.load(x, i);
    const Ids side = b.branch(
        many, [&]() -> Ids { return {b.mul(value, value), b.real(DType::f32, 2)}; },
        [&]() -> Ids { return {b.real(DType::f32, 3), b.real(DType::f32, 4)}; });
    const Ids power = b.loop(LoopKind::unrolled, b.i64(0), b.i64(5), 2, {side[0]}, Runs::always,
                             [&](ValueId k, std::span<const ValueId> carried) -> Ids {
                               return {b.add(b.mul(carried[0], value), b.cast(DType::f32, k))};
                             });
    b.store(z, i, b.mul(power[0], side[1]));
  });
  check(b.finish(1), {{3}, {30}}, {90, 90});
}

// Values of the index itself, compared and converted.
TEST_P(LoopCode, IndicesAsValues) {
  Builder b("ramp");
  b.set_dims(1);
  const BufferId z = b.buffer(out(DType::f32, 150)), y = b.buffer(out(DType::i64, 150)),
                 low = b.buffer(out(DType::f32, 150)), small = b.buffer(out(DType::u8, 150));
  b.loop(LoopKind::vector, b.i64(0), b.i64(150), 1, Runs::always, [&](ValueId i) {
    const ValueId x = b.sub(b.mul(i, b.dim(0)), b.i64(20));
    b.store(z, i, b.cast(DType::f32, x));
    b.store(y, i, b.select(b.less(x, b.i64(33)), x, b.unary(ScalarOp::neg, i)));
    b.store(low, i, b.select(b.binary(ScalarOp::le, b.dim(0), i), b.real(DType::f32, 1), b.real(DType::f32, 0)));
    b.store(small, i, b.cast(DType::u8, x));
  });
  check(b.finish(1), {{0}, {1}, {3}, {1000000007}, {int64_t{1} << 40}}, {150, 150, 150, 150});
}

// Scratch of the task, written by one loop and read by others.
TEST_P(LoopCode, TaskScratch) {
  Builder b("scratch");
  const BufferId x = b.buffer(in(DType::f32, 6 * 50)), z = b.buffer(out(DType::f32, 6 * 50));
  const BufferId first = b.buffer({"", DType::f64, Scope::task, 50, 64}),
                 second = b.buffer({"", DType::boolean, Scope::task, 50, 64});
  const ValueId base = b.mul(b.task(), b.i64(50));
  b.loop(LoopKind::vector, b.i64(0), b.i64(50), 1, Runs::always, [&](ValueId i) {
    const ValueId value = b.load(x, b.add(base, i));
    b.store(first, i, b.cast(DType::f64, value));
    b.store(second, i, b.less(value, b.real(DType::f32, 0)));
  });
  b.loop(LoopKind::vector, b.i64(0), b.i64(50), 1, Runs::always, [&](ValueId i) {
    const ValueId mirrored = b.sub(b.i64(49), i);
    b.store(z, b.add(base, i),
            b.cast(DType::f32, b.select(b.load(second, i), b.load(first, mirrored), b.real(DType::f64, 0.25))));
  });
  check(b.finish(6), {{}}, {300, 300});
}

}  // namespace
}  // namespace quartet::testing
