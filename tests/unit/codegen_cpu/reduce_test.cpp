// Reductions bit for bit in the order of tile/reduction_order.h: alone, inside vector loops, in chunks, with guards.
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
using kernel::ReduceOp;
using kernel::ReduceSpec;
using kernel::Runs;
using kernel::Scope;
using kernel::ValueId;

class ReduceCode : public ::testing::TestWithParam<Isa> {};
INSTANTIATE_TEST_SUITE_P(Classes, ReduceCode, ::testing::ValuesIn(kClasses),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

kernel::Buffer in(DType type, IntExpr elements) {
  return {"", type, Scope::argument_in, std::move(elements), static_cast<int32_t>(size_of(type))};
}
kernel::Buffer out(DType type, IntExpr elements) {
  return {"", type, Scope::argument_out, std::move(elements), static_cast<int32_t>(size_of(type))};
}

bool is_indexed(ReduceOp op) { return op == ReduceOp::argmax || op == ReduceOp::argmin; }

constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::product, ReduceOp::max,
                             ReduceOp::min, ReduceOp::argmax,  ReduceOp::argmin};

// Row sums of a [rows, n] matrix, one row a task: lanes run along the row.
Result<Kernel> rows(const ReduceSpec& spec) {
  Builder b(format("rows %d %s %d %lld", static_cast<int>(spec.op), dtype_name(spec.dtype), spec.interleave,
                   static_cast<long long>(spec.chunk)));
  b.set_dims(2);
  const IntExpr m = IntExpr::symbol(0), n = IntExpr::symbol(1);
  const BufferId x = b.buffer(in(spec.dtype, m * n)), z = b.buffer(out(spec.dtype, m)),
                 at = b.buffer(out(DType::i64, m));
  const ValueId base = b.mul(b.task(), b.dim(1));
  const Ids state = b.reduce(spec, b.i64(0), b.dim(1), [&](ValueId r) { return b.load(x, b.add(base, r)); });
  b.store(z, b.task(), state[0]);
  b.store(at, b.task(), is_indexed(spec.op) ? state[1] : b.i64(0));
  return b.finish(m);
}

// Column sums of an [n, columns] matrix: lanes run along the columns, each with its own reduction.
Result<Kernel> columns(const ReduceSpec& spec) {
  Builder b(format("columns %d %s %d %lld", static_cast<int>(spec.op), dtype_name(spec.dtype), spec.interleave,
                   static_cast<long long>(spec.chunk)));
  b.set_dims(2);
  const IntExpr n = IntExpr::symbol(0), w = IntExpr::symbol(1);
  const BufferId x = b.buffer(in(spec.dtype, n * w)), z = b.buffer(out(spec.dtype, w)),
                 at = b.buffer(out(DType::i64, w));
  b.loop(LoopKind::vector, b.i64(0), b.dim(1), 1, Runs::maybe, [&](ValueId c) {
    const Ids state =
        b.reduce(spec, b.i64(0), b.dim(0), [&](ValueId r) { return b.load(x, b.add(b.mul(r, b.dim(1)), c)); });
    b.store(z, c, state[0]);
    b.store(at, c, is_indexed(spec.op) ? state[1] : b.i64(0));
  });
  return b.finish(1);
}

int32_t usual_interleave(DType type, Isa isa) {
  return 4 * (isa == Isa::avx512 ? 64 : isa == Isa::avx2 ? 32 : 16) / static_cast<int32_t>(size_of(type));
}

void compare(const Kernel& kernel, KernelFunction function, Isa isa, int64_t a, int64_t b, bool special) {
  std::vector<Argument> arguments;
  const size_t sizes[] = {static_cast<size_t>(a * b), static_cast<size_t>(kernel.name.starts_with("rows") ? a : b)};
  const DType type = kernel.buffers[0].dtype;
  arguments.push_back(special ? mixed(type, sizes[0], 11) : ordinary(type, sizes[0], 12));
  arguments.push_back(Argument(sizes[1] * size_of(type), 0xaa));
  arguments.push_back(Argument(sizes[1] * 8, 0xaa));
  const std::string found = difference(kernel, function, isa, arguments, {a, b});
  ASSERT_TRUE(found.empty()) << found << ", " << a << " by " << b;
}

TEST_P(ReduceCode, RowsOfEveryOperationAndType) {
  const Isa isa = GetParam();
  std::vector<Kernel> kernels;
  for (const ReduceOp op : kOps) {
    for (const DType type : {DType::f64, DType::f32, DType::i64, DType::i32, DType::u8, DType::i16}) {
      auto kernel = rows({op, type, usual_interleave(type, isa), 1024});
      ASSERT_TRUE(kernel.ok()) << kernel.status().message();
      kernels.push_back(kernel.take());
    }
  }
  for (const ReduceOp op : {ReduceOp::all, ReduceOp::any}) {
    auto kernel = rows({op, DType::boolean, usual_interleave(DType::boolean, isa), 1024});
    ASSERT_TRUE(kernel.ok()) << kernel.status().message();
    kernels.push_back(kernel.take());
  }
  const auto image = compile(kernels, isa);
  ASSERT_TRUE(image.ok()) << image.status().message();
  if (!runs_here(isa)) return;
  for (size_t i = 0; i < kernels.size(); ++i)
    for (const int64_t n : {0, 1, 2, 16, 31, 64, 100, 255, 257, 1024, 2100})
      compare(kernels[i], (*image)->function(i), isa, 2, n, n % 2 == 1);
}

TEST_P(ReduceCode, ColumnsOfEveryOperationAndType) {
  const Isa isa = GetParam();
  std::vector<Kernel> kernels;
  for (const ReduceOp op : kOps) {
    for (const DType type : {DType::f64, DType::f32, DType::i32, DType::u8}) {
      auto kernel = columns({op, type, usual_interleave(type, isa), 256});
      ASSERT_TRUE(kernel.ok()) << kernel.status().message();
      kernels.push_back(kernel.take());
    }
  }
  const auto image = compile(kernels, isa);
  ASSERT_TRUE(image.ok()) << image.status().message();
  if (!runs_here(isa)) return;
  for (size_t i = 0; i < kernels.size(); ++i)
    for (const int64_t n : {0, 1, 2, 7, 63, 64, 130, 257, 530})
      for (const int64_t width : {1, 5, 33}) compare(kernels[i], (*image)->function(i), isa, n, width, n % 2 == 1);
}

TEST_P(ReduceCode, EveryInterleaveAndOneChunk) {
  const Isa isa = GetParam();
  std::vector<Kernel> kernels;
  for (const int32_t interleave : {1, 2, 4, 8, 16, 32, 128, 1024}) {
    for (const bool by_rows : {true, false}) {
      const ReduceSpec spec{ReduceOp::sum, DType::f32, interleave, 0};
      auto kernel = by_rows ? rows(spec) : columns(spec);
      ASSERT_TRUE(kernel.ok()) << kernel.status().message();
      kernels.push_back(kernel.take());
    }
  }
  const auto image = compile(kernels, isa);
  ASSERT_TRUE(image.ok()) << image.status().message();
  if (!runs_here(isa)) return;
  for (size_t i = 0; i < kernels.size(); ++i)
    for (const int64_t n : {1, 3, 17, 130, 1024, 1100})
      compare(kernels[i], (*image)->function(i), isa, i % 2 == 0 ? 2 : n, i % 2 == 0 ? n : 19, false);
}

// A window of constant extent in a vector loop (pooling), with padding: guards inside the reduction.
TEST_P(ReduceCode, WindowsWithGuards) {
  for (const int64_t window : {1, 3, 9, 16, 17, 40}) {
    Builder b(format("pool %lld", static_cast<long long>(window)));
    b.set_dims(1);
    const IntExpr n = IntExpr::symbol(0);
    const BufferId x = b.buffer(in(DType::f32, n)), highest = b.buffer(out(DType::f32, n)),
                   total = b.buffer(out(DType::f32, n));
    b.loop(LoopKind::vector, b.i64(0), b.dim(0), 1, Runs::maybe, [&](ValueId i) {
      const auto element = [&](double fill) {
        return [&b, i, x, window, fill](ValueId r) {
          const ValueId at = b.add(b.sub(i, b.i64(window / 2)), r);
          const ValueId inside =
              b.binary(ScalarOp::bit_and, b.binary(ScalarOp::le, b.i64(0), at), b.less(at, b.dim(0)));
          return b.load(x, at, inside, b.real(DType::f32, fill));
        };
      };
      b.store(highest, i, b.reduce({ReduceOp::max, DType::f32, 64, 65536}, b.i64(0), b.i64(window), element(-9))[0]);
      b.store(total, i, b.reduce({ReduceOp::sum, DType::f32, 64, 65536}, b.i64(0), b.i64(window), element(0))[0]);
    });
    const auto kernel = b.finish(1);
    ASSERT_TRUE(kernel.ok()) << kernel.status().message();
    const auto image = compile({&*kernel, 1}, GetParam());
    ASSERT_TRUE(image.ok()) << image.status().message();
    if (!runs_here(GetParam())) return;
    for (const size_t n2 : {1u, 7u, 50u, 133u}) {
      const std::vector<Argument> arguments{ordinary(DType::f32, n2, 3), Argument(n2 * 4), Argument(n2 * 4)};
      const std::string found =
          difference(*kernel, (*image)->function(0), GetParam(), arguments, {static_cast<int64_t>(n2)});
      ASSERT_TRUE(found.empty()) << found << ", n = " << n2;
    }
  }
}

// Softmax of a row: maximum, sum of exponentials, quotient; reductions whose element is an expression, over constant
// and dynamic extents, starting at other places than 0.
TEST_P(ReduceCode, SoftmaxOfRows) {
  for (const int64_t extent : {-1, 10, 512, 700}) {
    Builder b(format("softmax %lld", static_cast<long long>(extent)));
    b.set_dims(2);
    const IntExpr n = IntExpr::symbol(1);
    const BufferId x = b.buffer(in(DType::f32, IntExpr::symbol(0) * n)),
                   z = b.buffer(out(DType::f32, IntExpr::symbol(0) * n));
    const ValueId columns = extent < 0 ? b.dim(1) : b.i64(extent);
    const ValueId lo = b.mul(b.task(), columns), hi = b.add(lo, columns);
    const ReduceSpec highest{ReduceOp::max, DType::f32, 64, 65536}, total{ReduceOp::sum, DType::f32, 64, 65536};
    const ValueId most = b.reduce(highest, lo, hi, [&](ValueId r) { return b.load(x, r); })[0];
    const ValueId sum =
        b.reduce(total, lo, hi, [&](ValueId r) { return b.unary(ScalarOp::exp, b.sub(b.load(x, r), most)); })[0];
    b.loop(LoopKind::vector, lo, hi, 1, Runs::maybe, [&](ValueId i) {
      b.store(z, i, b.binary(ScalarOp::div, b.unary(ScalarOp::exp, b.sub(b.load(x, i), most)), sum));
    });
    const auto kernel = b.finish(IntExpr::symbol(0));
    ASSERT_TRUE(kernel.ok()) << kernel.status().message();
    const auto image = compile({&*kernel, 1}, GetParam());
    ASSERT_TRUE(image.ok()) << image.status().message();
    if (!runs_here(GetParam())) return;
    for (const int64_t width : {extent, int64_t{1}, int64_t{64}, int64_t{200}}) {
      if (width < 0 || (extent >= 0 && width != extent)) continue;
      const size_t size = static_cast<size_t>(5 * width);
      const std::vector<Argument> arguments{ordinary(DType::f32, size, 3), Argument(size * 4)};
      const std::string found = difference(*kernel, (*image)->function(0), GetParam(), arguments, {5, width});
      ASSERT_TRUE(found.empty()) << found << ", width = " << width;
    }
  }
}

// A reduction in a reduction: the outer runs along lanes, the inner in each.
TEST_P(ReduceCode, ReductionsInReductions) {
  Builder b("frobenius");
  b.set_dims(2);
  const BufferId x = b.buffer(in(DType::f32, IntExpr::symbol(0) * IntExpr::symbol(1))),
                 z = b.buffer(out(DType::f32, 1));
  const Ids state = b.reduce({ReduceOp::max, DType::f32, 16, 0}, b.i64(0), b.dim(1), [&](ValueId c) {
    return b.reduce({ReduceOp::sum, DType::f32, 4, 0}, b.i64(0), b.dim(0), [&](ValueId r) {
      const ValueId value = b.load(x, b.add(b.mul(r, b.dim(1)), c));
      return b.mul(value, value);
    })[0];
  });
  b.store(z, b.i64(0), state[0]);
  const auto kernel = b.finish(1);
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  const auto image = compile({&*kernel, 1}, GetParam());
  ASSERT_TRUE(image.ok()) << image.status().message();
  if (!runs_here(GetParam())) return;
  for (const auto& [h, w] : {std::pair<int64_t, int64_t>{5, 40}, {1, 1}, {13, 16}, {3, 33}}) {
    const std::vector<Argument> arguments{ordinary(DType::f32, static_cast<size_t>(h * w), 3), Argument(4)};
    const std::string found = difference(*kernel, (*image)->function(0), GetParam(), arguments, {h, w});
    EXPECT_TRUE(found.empty()) << found << ", " << h << " by " << w;
  }
}

}  // namespace
}  // namespace quartet::testing
