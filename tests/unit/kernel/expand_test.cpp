// The expansions: accuracy of the transcendentals, equality of what is emitted with what the sweeps measure, exactness
// of conversions, roundings and remainders, and that nothing is left that a code generator would have to call.
#include "kernel/expand.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <set>

#include "base/half.h"
#include "kernel/builder.h"
#include "reference/kernel_interpreter.h"
#include "reference/scalar.h"
#include "unit/kernel/sweep.h"

namespace quartet::kernel {
namespace {

constexpr Isa kClasses[] = {Isa::sse2, Isa::avx2, Isa::avx512};

bool host_is_fused() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

// A kernel that applies an operation to arrays.
Kernel array_kernel(ScalarOp op, DType result, DType operand, size_t operands, size_t count) {
  Builder b("op");
  std::vector<BufferId> in;
  for (size_t i = 0; i < operands; ++i)
    in.push_back(b.buffer({"x", operand, Scope::argument_in, IntExpr(static_cast<int64_t>(count)), 64}));
  const BufferId out = b.buffer({"y", result, Scope::argument_out, IntExpr(static_cast<int64_t>(count)), 64});
  b.loop(LoopKind::vector, b.i64(0), b.i64(static_cast<int64_t>(count)), 1, Runs::always, [&](ValueId i) {
    Ids values;
    for (const BufferId buffer : in) values.push_back(b.load(buffer, i));
    b.store(out, i, b.scalar(op, result, values));
  });
  return b.finish(IntExpr(1)).value();
}

// Values as canonical bits, through memory of their types.
std::vector<int64_t> run(const Kernel& kernel, Isa isa, DType result, DType operand,
                         const std::vector<std::vector<int64_t>>& operands) {
  const size_t count = operands[0].size();
  std::vector<std::vector<uint8_t>> memory;
  for (const auto& list : operands) {
    memory.emplace_back(count * size_of(operand));
    for (size_t i = 0; i < count; ++i) std::memcpy(&memory.back()[i * size_of(operand)], &list[i], size_of(operand));
  }
  memory.emplace_back(count * size_of(result));
  std::vector<std::span<uint8_t>> spans(memory.begin(), memory.end());
  const auto tasks = reference::interpret(kernel, isa, spans, {});
  EXPECT_TRUE(tasks.ok()) << tasks.status().message();
  std::vector<int64_t> values(count);
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(&values[i], &memory.back()[i * size_of(result)], size_of(result));
    if (is_signed_int(result)) {
      const int shift = 64 - static_cast<int>(size_of(result)) * 8;
      values[i] = static_cast<int64_t>(static_cast<uint64_t>(values[i]) << shift) >> shift;
    }
  }
  return values;
}

std::vector<int64_t> expanded(ScalarOp op, Isa isa, DType result, DType operand,
                              const std::vector<std::vector<int64_t>>& operands) {
  const auto kernel = expand(array_kernel(op, result, operand, operands.size(), operands[0].size()), isa);
  EXPECT_TRUE(kernel.ok()) << kernel.status().message();
  return run(*kernel, isa, result, operand, operands);
}

bool is_nan(DType type, int64_t bits) { return is_float(type) && std::isnan(float_value(type, bits)); }

// ---- Accuracy ----

struct Bound {
  ScalarOp op;
  double ulps;
};
// What src/kernel/README.md states.
constexpr Bound kBounds[] = {
    {ScalarOp::exp, 1.1}, {ScalarOp::log, 0.9}, {ScalarOp::tanh, 2.7}, {ScalarOp::erf, 1.3}, {ScalarOp::sigmoid, 2.5}};

void expect_bounds(uint64_t step) {
  for (const Bound& bound : kBounds)
    for (const bool fused : {false, true}) {
      if (fused && !host_is_fused()) continue;
      const Worst worst = fused ? sweep_fused(bound.op, step) : sweep_unfused(bound.op, step);
      EXPECT_LE(worst.ulps, bound.ulps) << scalar_op_name(bound.op) << (fused ? " fused" : "") << " at "
                                        << worst.argument;
      EXPECT_EQ(worst.wrong, 0u) << scalar_op_name(bound.op) << (fused ? " fused" : "") << " at "
                                 << worst.wrong_argument;
      EXPECT_GT(worst.ulps, 0.4) << "the sweep measured nothing";
    }
}

// Every so many arguments; QUARTET_SWEEP_STEP=1 takes all of them, which needs some minutes.
TEST(ExpandAccuracy, F32Arguments) {
  const char* const step = std::getenv("QUARTET_SWEEP_STEP");
  expect_bounds(step ? std::strtoull(step, nullptr, 10) : 4099);
}

TEST(ExpandAccuracy, PropertiesOfSingleValues) {
  const auto at = [](ScalarOp op, Isa isa, double x) {
    return float_value(DType::f32, expanded(op, isa, DType::f32, DType::f32, {{float_bits(DType::f32, x)}})[0]);
  };
  for (const Isa isa : kClasses) {
    EXPECT_EQ(at(ScalarOp::exp, isa, 0.0), 1.0);
    EXPECT_EQ(at(ScalarOp::exp, isa, -0.0), 1.0);
    EXPECT_EQ(at(ScalarOp::log, isa, 1.0), 0.0);
    EXPECT_EQ(at(ScalarOp::sigmoid, isa, 0.0), 0.5);
    EXPECT_EQ(at(ScalarOp::tanh, isa, 40.0), 1.0);
    EXPECT_EQ(at(ScalarOp::erf, isa, -8.0), -1.0);
    EXPECT_EQ(at(ScalarOp::cos, isa, 0.0), 1.0);
    EXPECT_TRUE(std::isnan(at(ScalarOp::sin, isa, HUGE_VAL)));
    for (const double x : {1e-40, 0.01, 0.3, 0.7, 2.5, 9.9})
      for (const ScalarOp odd : {ScalarOp::tanh, ScalarOp::erf, ScalarOp::sin})
        EXPECT_EQ(at(odd, isa, -x), -at(odd, isa, x));
  }
}

// What the sweeps measure is what the expansion emits.
TEST(ExpandAccuracy, EmittedArithmeticIsTheMeasuredArithmetic) {
  std::mt19937 random(3);
  std::vector<int64_t> x;
  for (const uint32_t special : {0u, 0x80000000u, 1u, 0x7f800000u, 0xff800000u, 0x7fc00000u, 0x3f800000u, 0x007fffffu})
    x.push_back(special);
  while (x.size() < 2000)
    x.push_back(static_cast<int64_t>(x.size() % 2 ? random() : 0x3b000000u + random() % 0x0a000000u));
  for (const Bound& bound : kBounds)
    for (const Isa isa : kClasses) {
      if (isa != Isa::sse2 && !host_is_fused()) continue;
      const auto y = expanded(bound.op, isa, DType::f32, DType::f32, {x});
      for (size_t i = 0; i < x.size(); ++i) {
        const auto bits = static_cast<uint32_t>(x[i]);
        const uint32_t due = isa == Isa::sse2 ? value_unfused(bound.op, bits) : value_fused(bound.op, bits);
        if (is_nan(DType::f32, due) && is_nan(DType::f32, y[i])) continue;
        ASSERT_EQ(static_cast<uint32_t>(y[i]), due) << scalar_op_name(bound.op) << " of " << std::bit_cast<float>(bits);
      }
    }
}

long double exact(ScalarOp op, long double x, long double y) {
  switch (op) {
    case ScalarOp::exp:
      return std::exp(x);
    case ScalarOp::log:
      return std::log(x);
    case ScalarOp::tanh:
      return std::tanh(x);
    case ScalarOp::erf:
      return std::erf(x);
    case ScalarOp::sigmoid:
      return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
    case ScalarOp::sin:
      return std::sin(x);
    case ScalarOp::cos:
      return std::cos(x);
    default:
      // glibc's powl gives pow(-inf, -2^63) as infinity.
      return std::isinf(x) ? std::pow(static_cast<double>(x), static_cast<double>(y)) : std::pow(x, y);
  }
}

std::vector<int64_t> sample(DType type, size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int64_t> values;
  if (is_float(type))
    for (const double special : {0.0,
                                 -0.0,
                                 1.0,
                                 -1.0,
                                 HUGE_VAL,
                                 -HUGE_VAL,
                                 double(NAN),
                                 0.5,
                                 2.0,
                                 -2.0,
                                 3.0,
                                 -3.0,
                                 0x1p53,
                                 0x1p-149,
                                 -0x1p-1074,
                                 1e300,
                                 65504.0,
                                 65520.0,
                                 0x1.fffffep-1,
                                 2.5,
                                 -0.5,
                                 1.5,
                                 0x1.fep127,
                                 4294967296.0,
                                 9.2233720368547758e18,
                                 1.8446744073709552e19,
                                 -9.2233720368547758e18,
                                 2147483648.0})
      values.push_back(float_bits(type, special));
  const int width = static_cast<int>(size_of(type)) * 8;
  while (values.size() < count) {
    uint64_t bits = random();
    if (is_float(type) && values.size() % 2) {
      const double t = static_cast<double>(bits >> 11) * 0x1p-52 - 1.0;
      bits = static_cast<uint64_t>(float_bits(type, std::ldexp(t, static_cast<int>(random() % 24) - 12)));
    }
    if (is_int(type)) bits >>= random() % 64;
    if (is_signed_int(type)) {
      values.push_back(static_cast<int64_t>(bits << (64 - width)) >> (64 - width));
    } else {
      values.push_back(type == DType::boolean ? static_cast<int64_t>(bits & 1)
                                              : static_cast<int64_t>(bits << (64 - width) >> (64 - width)));
    }
  }
  return values;
}

// Against 80-bit arithmetic. The results' last place is that of the type.
void expect_close(ScalarOp op, DType type, Isa isa, double bound, size_t count) {
  const auto x = sample(type, count, 11);
  // Every special value meets every other.
  auto y = x;
  for (size_t i = 0; i < y.size(); ++i) y[i] = x[i < 784 ? i % 28 : (i * 7919) % x.size()];
  auto first = x;
  for (size_t i = 0; i < std::min<size_t>(784, first.size()); ++i) first[i] = x[i / 28];
  const bool binary = op == ScalarOp::pow;
  const auto found = binary ? expanded(op, isa, type, type, {first, y}) : expanded(op, isa, type, type, {x});
  const int digits = type == DType::f64 ? 53 : 24;
  const double least = type == DType::f64 ? 0x1p-1022 : 0x1p-126;
  for (size_t i = 0; i < x.size(); ++i) {
    const double a = float_value(type, binary ? first[i] : x[i]), b = float_value(type, y[i]),
                 got = float_value(type, found[i]);
    const long double due = exact(op, a, b);
    const double rounded = float_value(type, float_bits(type, static_cast<double>(due)));
    const auto words = [&] {
      return std::string(scalar_op_name(op)) + " of " + format("%a, %a: %a, due %La", a, b, got, due);
    };
    if (std::isnan(rounded) || std::isinf(rounded) || std::isinf(got)) {
      ASSERT_TRUE(std::isnan(rounded) ? std::isnan(got) : got == rounded) << words();
      continue;
    }
    int exponent = 0;
    std::frexp(std::max(std::fabs(static_cast<double>(due)), least), &exponent);
    const long double error = std::fabs(static_cast<long double>(got) - due) / std::ldexp(1.0L, exponent - digits);
    ASSERT_LE(error, bound) << words();
    if (rounded == 0.0 && got == 0.0) ASSERT_EQ(std::signbit(rounded), std::signbit(got)) << words();
  }
}

TEST(ExpandAccuracy, SampledF64Arguments) {
  const Bound bounds[] = {{ScalarOp::exp, 1.1},     {ScalarOp::log, 0.9}, {ScalarOp::tanh, 2.7}, {ScalarOp::erf, 1.4},
                          {ScalarOp::sigmoid, 2.5}, {ScalarOp::sin, 0.9}, {ScalarOp::cos, 0.9},  {ScalarOp::pow, 1.1}};
  for (const Bound& bound : bounds)
    for (const Isa isa : {Isa::sse2, Isa::avx2}) expect_close(bound.op, DType::f64, isa, bound.ulps, 3000);
}

TEST(ExpandAccuracy, SampledF32SinCosPow) {
  for (const ScalarOp op : {ScalarOp::sin, ScalarOp::cos, ScalarOp::pow})
    for (const Isa isa : {Isa::sse2, Isa::avx2}) expect_close(op, DType::f32, isa, 0.51, 3000);
}

// ---- What must be exact ----

void expect_exact(ScalarOp op, DType result, DType operand, const std::vector<std::vector<int64_t>>& operands) {
  for (const Isa isa : kClasses) {
    const auto found = expanded(op, isa, result, operand, operands);
    for (size_t i = 0; i < found.size(); ++i) {
      std::vector<int64_t> values;
      for (const auto& list : operands) values.push_back(list[i]);
      const auto due = reference::evaluate(op, result, operand, values, isa != Isa::sse2);
      ASSERT_TRUE(due.has_value());
      if (is_nan(result, *due) && is_nan(result, found[i])) continue;
      ASSERT_EQ(found[i], *due) << scalar_op_name(op) << " " << dtype_name(result) << " of " << dtype_name(operand)
                                << " " << std::hex << values[0] << ", class " << isa_name(isa);
    }
  }
}

TEST(ExpandExact, EveryCast) {
  for (int from = 1; from < kDTypeCount; ++from)
    for (int to = 1; to < kDTypeCount; ++to) {
      const auto x =
          sample(static_cast<DType>(from), 300, static_cast<uint64_t>(from) * 100 + static_cast<uint64_t>(to));
      expect_exact(ScalarOp::cast, static_cast<DType>(to), static_cast<DType>(from), {x});
    }
}

TEST(ExpandExact, AllHalves) {
  std::vector<int64_t> all;
  for (int64_t bits = 0; bits < 65536; ++bits) all.push_back(bits);
  for (const DType half : {DType::f16, DType::bf16}) expect_exact(ScalarOp::cast, DType::f32, half, {all});
  // Every f32 around every boundary between halves.
  for (const DType half : {DType::f16, DType::bf16}) {
    std::vector<int64_t> near;
    for (int64_t bits = 0; bits < 65536; bits += 3) {
      const int64_t wide =
          half == DType::f16 ? std::bit_cast<uint32_t>(f16_to_f32(static_cast<uint16_t>(bits))) : bits << 16;
      const int64_t middle = half == DType::f16 ? wide + 0x1000 : wide + 0x8000;
      for (const int64_t v : {wide - 1, wide + 1, middle - 1, middle, middle + 1}) near.push_back(v & 0xffffffff);
    }
    expect_exact(ScalarOp::cast, half, DType::f32, {near});
  }
}

TEST(ExpandExact, Roundings) {
  for (const DType type : {DType::f32, DType::f64, DType::f16, DType::bf16})
    for (const ScalarOp op : {ScalarOp::floor, ScalarOp::ceil, ScalarOp::trunc, ScalarOp::round_even})
      expect_exact(op, type, type, {sample(type, 2000, 5)});
}

TEST(ExpandExact, Remainders) {
  for (const DType type : {DType::f32, DType::f64, DType::f16})
    for (const uint64_t seed : {1u, 2u}) {
      auto x = sample(type, 1200, seed), y = sample(type, 1200, seed + 10);
      for (size_t i = 0; i < 784; ++i) y[i] = x[i % 28];
      for (size_t i = 784; i-- > 0;) x[i] = x[i / 28];
      expect_exact(ScalarOp::rem, type, type, {x, y});
    }
}

TEST(ExpandExact, HalfArithmetic) {
  for (const DType type : {DType::f16, DType::bf16}) {
    const auto x = sample(type, 1000, 21), y = sample(type, 1000, 22);
    for (const ScalarOp op : {ScalarOp::add, ScalarOp::sub, ScalarOp::mul, ScalarOp::div, ScalarOp::min, ScalarOp::max})
      expect_exact(op, type, type, {x, y});
    for (const ScalarOp op : {ScalarOp::neg, ScalarOp::abs, ScalarOp::sqrt}) expect_exact(op, type, type, {x});
    for (const ScalarOp op : {ScalarOp::eq, ScalarOp::ne, ScalarOp::lt, ScalarOp::le})
      expect_exact(op, DType::boolean, type, {x, y});
  }
}

// ---- What is left ----

void collect(const Kernel& kernel, const Region& region, std::set<std::pair<Op, DType>>& found) {
  for (const Statement& s : region.body) {
    for (const Region& inner : s.regions) collect(kernel, inner, found);
    if (!is_scalar(s.op)) continue;
    found.insert({s.op, kernel.value_types[static_cast<size_t>(s.operands.back())]});
    if (s.op == Op::cast) found.insert({s.op, s.dtype});
  }
}

TEST(Expand, LeavesOnlyWhatInstructionsDo) {
  for (const Isa isa : kClasses)
    for (int o = 0; o < kScalarOpCount; ++o)
      for (const DType type : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
        const auto op = static_cast<ScalarOp>(o);
        if (op == ScalarOp::select || op == ScalarOp::bitcast || !defined_for(op, type)) continue;
        const DType result = quartet::is_comparison(op) ? DType::boolean : op == ScalarOp::cast ? DType::i32 : type;
        const auto kernel = expand(array_kernel(op, result, type, static_cast<size_t>(scalar_op_operands(op)), 4), isa);
        ASSERT_TRUE(kernel.ok()) << kernel.status().message();
        std::set<std::pair<Op, DType>> left;
        collect(*kernel, kernel->body, left);
        for (const auto& [kind, domain] : left) {
          const ScalarOp s = scalar_of(kind);
          const std::string words =
              std::string(scalar_op_name(op)) + " of " + dtype_name(type) + " leaves " + op_name(kind);
          EXPECT_FALSE(s >= ScalarOp::exp && s <= ScalarOp::pow) << words;
          EXPECT_FALSE(s == ScalarOp::rem && is_float(domain)) << words;
          const bool rounding = s >= ScalarOp::floor && s <= ScalarOp::round_even;
          EXPECT_FALSE(isa == Isa::sse2 && rounding) << words;
          const bool half = domain == DType::f16 || domain == DType::bf16;
          const bool moves = s == ScalarOp::select || s == ScalarOp::bitcast;
          const bool converts = s == ScalarOp::cast && domain == DType::f16 && isa != Isa::sse2;
          EXPECT_TRUE(!half || moves || converts) << words << " on " << dtype_name(domain);
        }
      }
}

TEST(Expand, KeepsTheStructureOfAKernel) {
  const auto kernel = parse(R"(kernel "k" dims 1 bound 0 [64]
buffer @0 in f32 [s0] align 64 "x" buffer @1 out f32 [s0] align 64 "y" buffer @2 task f32 [16] align 64 "t"
tasks [s0] body {(%0)
  %1 = constant i64 0 %2 = constant i64 1 %3 = dim 0 %4 = constant f32 0x0 %5 = lt bool (%0, %3)
  %6 = loop serial (%1, %3, %2, %4) {(%7, %8) %9 = load f32 @0 (%7, %5, %4) %10 = exp f32 (%9) %11 = add f32 (%8, %10) yield (%11)}
  %12 = branch (%5) {() %13 = tanh f32 (%6) yield (%13)} {() yield (%6)}
  %14, %15 = reduce argmax f32 4 16 (%1, %3) {(%16) %17 = load f32 @0 (%16) yield (%17)}
  contract f32 @0 @0 1 1 1 (%1, %1, %1, %1, %1, %1, %2) {(%18, %19, %20) %21 = erf f32 (%20) store @2 (%19, %21) yield ()}
    {(%22, %23) yield (%12)}
  %24 = load f32 @2 (%1) %25 = add f32 (%24, %14) store @1 (%0, %25, %5) yield ()})");
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  const auto out = expand(*kernel, Isa::avx2);
  ASSERT_TRUE(out.ok()) << out.status().message();
  const std::string text = print(*out);
  for (const char* const part : {"loop serial", "branch", "reduce argmax f32 4 16", "contract f32 @0 @0 1 1 1",
                                 "bound 0 [64]", "tasks [s0]", "task f32 [16]"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_EQ(text.find(" exp "), std::string::npos);
  // Expanding again changes nothing.
  EXPECT_EQ(print(*expand(*out, Isa::avx2)), text);
}

}  // namespace
}  // namespace quartet::kernel
