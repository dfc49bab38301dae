// Contractions against the interpreter, bit for bit: odd tiles, every operand type, limits known and not, k of any
// length.
#include <gtest/gtest.h>

#include "compiled.h"
#include "kernel/builder.h"

namespace quartet::testing {
namespace {

using kernel::BufferId;
using kernel::Builder;
using kernel::ContractTile;
using kernel::Kernel;
using kernel::LoopKind;
using kernel::Runs;
using kernel::Scope;
using kernel::ValueId;

class ContractCode : public ::testing::TestWithParam<Isa> {};
INSTANTIATE_TEST_SUITE_P(Classes, ContractCode, ::testing::ValuesIn(kClasses),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

kernel::Buffer in(DType type, IntExpr elements) {
  return {"", type, Scope::argument_in, std::move(elements), static_cast<int32_t>(size_of(type))};
}
kernel::Buffer out(DType type, IntExpr elements) {
  return {"", type, Scope::argument_out, std::move(elements), static_cast<int32_t>(size_of(type))};
}

struct Shape {
  int32_t rows, columns, unroll;
  DType a = DType::f32, b = DType::f32, accumulator = DType::f32;
  bool known_k = false, known_n = false;  // constants of the code, else dims
  int64_t k = 0, n = 0;                   // the constants
  bool bias = false, heavy = false;
};

std::string name_of(const Shape& s) {
  return format("%dx%d u%d %s %s %s k%d n%d%s%s", s.rows, s.columns, s.unroll, dtype_name(s.a), dtype_name(s.b),
                dtype_name(s.accumulator), s.known_k ? static_cast<int>(s.k) : -1,
                s.known_n ? static_cast<int>(s.n) : -1, s.bias ? " bias" : "", s.heavy ? " heavy" : "");
}

// C[rows, n] = A[rows, k] B[k, n] in place, columns in tiles; dims k, n.
Result<Kernel> product(const Shape& s) {
  Builder b(name_of(s));
  b.set_dims(2);
  const IntExpr k = IntExpr::symbol(0), n = IntExpr::symbol(1);
  const BufferId left = b.buffer(in(s.a, IntExpr(s.rows) * k)), right = b.buffer(in(s.b, k * n)),
                 bias = b.buffer(in(s.accumulator, n));
  const BufferId result = b.buffer(out(s.accumulator, IntExpr(s.rows) * n));
  const ValueId k_count = s.known_k ? b.i64(s.k) : b.dim(0), width = s.known_n ? b.i64(s.n) : b.dim(1);
  b.loop(LoopKind::serial, b.i64(0), width, s.columns, Runs::maybe, [&](ValueId first) {
    ContractTile tile{s.accumulator, left, right, s.rows, s.columns, s.unroll};
    tile.k_count = k_count;
    tile.a_base = b.i64(0);
    tile.a_row_stride = k_count;
    tile.a_k_stride = b.i64(1);
    tile.b_base = first;
    tile.b_k_stride = width;
    tile.column_limit = s.known_n && s.n == s.columns ? b.i64(s.n) : b.sub(width, first);
    const auto init = [&](ValueId, ValueId column) { return b.load(bias, b.add(first, column)); };
    b.contract(
        tile,
        [&](ValueId row, ValueId column, ValueId acc) {
          ValueId value = acc;
          if (s.heavy)
            value = b.unary(ScalarOp::tanh,
                            b.mul(b.unary(ScalarOp::exp, b.mul(value, b.real(s.accumulator, 0.125))), value));
          b.store(result, b.add(b.mul(row, width), b.add(first, column)), value);
        },
        s.bias ? std::function<ValueId(ValueId, ValueId)>(init) : nullptr);
  });
  return b.finish(1);
}

void run(const std::vector<Shape>& shapes, Isa isa) {
  std::vector<Kernel> kernels;
  for (const Shape& s : shapes) {
    auto kernel = product(s);
    ASSERT_TRUE(kernel.ok()) << kernel.status().message();
    kernels.push_back(kernel.take());
  }
  const auto image = compile(kernels, isa);
  ASSERT_TRUE(image.ok()) << image.status().message();
  if (!runs_here(isa)) return;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Shape& s = shapes[i];
    for (const int64_t k : {0, 1, 3, 13}) {
      for (const int64_t n : {0, 1, 8, 19, 32, 70}) {
        if ((s.known_k && k != 1) || (s.known_n && n != 1)) continue;
        const int64_t depth = s.known_k ? s.k : k, width = s.known_n ? s.n : n;
        const auto size = [](int64_t count) { return static_cast<size_t>(count); };
        const std::vector<Argument> arguments{
            ordinary(s.a, size(s.rows * depth), 1), ordinary(s.b, size(depth * width), 2),
            ordinary(s.accumulator, size(width), 3), ordinary(s.accumulator, size(s.rows * width), 4)};
        const std::string found = difference(kernels[i], (*image)->function(i), isa, arguments, {depth, width});
        ASSERT_TRUE(found.empty()) << found << ", k = " << depth << ", n = " << width;
      }
    }
  }
}

TEST_P(ContractCode, TilesOfEveryShape) {
  std::vector<Shape> shapes;
  for (const int32_t rows : {1, 6, 7, 14})
    for (const int32_t columns : {1, 3, 8, 16, 20, 32}) shapes.push_back({rows, columns, rows % 3 + 1});
  run(shapes, GetParam());
}

TEST_P(ContractCode, EveryType) {
  std::vector<Shape> shapes;
  shapes.push_back({4, 16, 4, DType::f64, DType::f64, DType::f64});
  for (const DType half : {DType::f16, DType::bf16}) {
    shapes.push_back({4, 32, 2, half, half, DType::f32});
    shapes.push_back({4, 32, 2, DType::f32, half, DType::f32});
    shapes.push_back({3, 32, 2, half, DType::f32, DType::f64});
  }
  for (const DType whole : {DType::i8, DType::u8, DType::i16, DType::i32})
    shapes.push_back({4, 32, 2, whole, whole, DType::i32});
  shapes.push_back({4, 32, 2, DType::u8, DType::i8, DType::i32});
  for (const DType own : {DType::i64, DType::i16, DType::u8}) shapes.push_back({4, 32, 2, own, own, own});
  run(shapes, GetParam());
}

TEST_P(ContractCode, ConstantsStartsAndLongEpilogues) {
  std::vector<Shape> shapes;
  for (const bool bias : {false, true}) {
    for (const bool heavy : {false, true}) {
      shapes.push_back({6, 32, 4, DType::f32, DType::f32, DType::f32, false, false, 0, 0, bias, heavy});
      shapes.push_back({14, 32, 4, DType::f32, DType::f32, DType::f32, true, true, 33, 70, bias, heavy});
      shapes.push_back({14, 32, 4, DType::f32, DType::f32, DType::f32, true, true, 64, 32, bias, heavy});
      shapes.push_back({3, 10, 4, DType::f32, DType::f32, DType::f32, true, true, 3, 10, bias, heavy});
    }
  }
  run(shapes, GetParam());
}

// A limit beyond the tile, or not above zero, is as good as the tile's width, or nothing.
TEST_P(ContractCode, LimitsOutsideTheTile) {
  Builder b("limits");
  b.set_dims(1);
  const BufferId left = b.buffer(in(DType::f32, 4 * 5)), right = b.buffer(in(DType::f32, 5 * 32)),
                 result = b.buffer(out(DType::f32, 4 * 32));
  ContractTile tile{DType::f32, left, right, 4, 32, 2};
  tile.k_count = b.i64(5);
  tile.a_base = tile.b_base = b.i64(0);
  tile.a_row_stride = b.i64(1);
  tile.a_k_stride = b.i64(4);
  tile.b_k_stride = b.i64(32);
  tile.column_limit = b.sub(b.dim(0), b.i64(10));
  b.contract(tile, [&](ValueId row, ValueId column, ValueId acc) {
    b.store(result, b.add(b.mul(row, b.i64(32)), column), acc);
  });
  const auto kernel = b.finish(1);
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  const auto image = compile({&*kernel, 1}, GetParam());
  ASSERT_TRUE(image.ok()) << image.status().message();
  if (!runs_here(GetParam())) return;
  const std::vector<Argument> arguments{ordinary(DType::f32, 20, 1), ordinary(DType::f32, 160, 2),
                                        Argument(4 * 32 * 4, 0xcc)};
  for (const int64_t dim : {0, 10, 11, 37, 42, 43, 1000}) {
    const std::string found = difference(*kernel, (*image)->function(0), GetParam(), arguments, {dim});
    EXPECT_TRUE(found.empty()) << found << ", limit " << dim - 10;
  }
}

}  // namespace
}  // namespace quartet::testing
