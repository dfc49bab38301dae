#include "base/int_expr.h"
#include "base/int_expr_reader.h"

#include <gtest/gtest.h>

#include <random>

namespace quartet {
namespace {

// Named as in algebra. NOLINTBEGIN(readability-identifier-naming)
const IntExpr n = IntExpr::symbol(0), m = IntExpr::symbol(1);
const IntExpr i = IntExpr::axis(0), j = IntExpr::axis(1), k = IntExpr::axis(2);
// NOLINTEND(readability-identifier-naming)

// i in [0, n), j in [0, m), k in [0, 12); n, m >= 1.
IntExpr::Range ranges(Symbol s) {
  if (s == axis_symbol(0)) return {IntExpr(0), n - IntExpr(1)};
  if (s == axis_symbol(1)) return {IntExpr(0), m - IntExpr(1)};
  if (s == axis_symbol(2)) return {IntExpr(0), IntExpr(11)};
  return {IntExpr(1), std::nullopt};
}

TEST(IntExpr, AlgebraIsNormal) {
  EXPECT_EQ((n + IntExpr(1)) * (n - IntExpr(1)), n * n - IntExpr(1));
  EXPECT_EQ(n * m + m * n, IntExpr(2) * m * n);
  EXPECT_TRUE((n - n).is(0));
  EXPECT_EQ(floor_div(n * IntExpr(6) + IntExpr(7), IntExpr(3)), n * IntExpr(2) + IntExpr(2));
  EXPECT_EQ(floor_mod(n * IntExpr(6) + IntExpr(7), IntExpr(3)), IntExpr(1));
  EXPECT_EQ(floor_div(n * m, m), n);
  EXPECT_TRUE(floor_mod(n * m, m).is(0));
  EXPECT_EQ(floor_div(floor_div(n, IntExpr(3)), IntExpr(4)), floor_div(n, IntExpr(12)));
  EXPECT_EQ(floor_div(n * IntExpr(2), IntExpr(6)), floor_div(n, IntExpr(3)));
  EXPECT_EQ(min(n, n + IntExpr(1)), n);
  EXPECT_EQ(max(n, n + IntExpr(1)), n + IntExpr(1));
  EXPECT_EQ(ceil_div(IntExpr(7), IntExpr(2)), IntExpr(4));
}

TEST(IntExpr, OverflowAndZeroDivisionAreInvalid) {
  EXPECT_FALSE((IntExpr(INT64_MAX) + IntExpr(1)).is_valid());
  EXPECT_FALSE(((n + IntExpr(INT64_MAX)) * IntExpr(2)).is_valid());
  EXPECT_FALSE(floor_div(n, IntExpr(0)).is_valid());
  EXPECT_FALSE((n * IntExpr(INT64_MAX)).evaluate([](Symbol) { return 2; }).has_value());
  EXPECT_FALSE(floor_div(n, m).evaluate([](Symbol) { return 0; }).has_value());
}

// Texts and files may say anything: what is too large is invalid, and soon.
TEST(IntExpr, TheSizeOfExpressionsIsBounded) {
  IntExpr sum = 1, power = 1, nested = n;
  for (int s = 0; s < 6; ++s) sum = sum + IntExpr::symbol(s);
  for (int p = 0; p < 100; ++p) power = power * sum;
  EXPECT_FALSE(power.is_valid());
  power = n;
  for (int p = 1; p < 64; ++p) power = power * n;
  EXPECT_TRUE(power.is_valid());
  EXPECT_FALSE((power * n).is_valid());
  for (int d = 0; d < 32; ++d) nested = floor_div(nested * n + IntExpr(1), IntExpr(3));
  EXPECT_TRUE(nested.is_valid());
  ByteWriter out;
  nested.write(out);
  ByteReader in(out.data(), "expression");
  EXPECT_EQ(IntExpr::read(in), nested);
  EXPECT_TRUE(in.finish().ok());
  EXPECT_FALSE(floor_div(nested * n + IntExpr(1), IntExpr(3)).is_valid());
}

TEST(IntExpr, TermsThatMeetAreOne) {
  EXPECT_EQ((n + m) * (n - m), n * n - m * m);
  EXPECT_EQ((n + m + IntExpr(1)) * (n + m - IntExpr(1)), n * n + IntExpr(2) * n * m + m * m - IntExpr(1));
  EXPECT_EQ(floor_div(n * n * m + n * m * IntExpr(3) + m * m, m), n * n + n * IntExpr(3) + m);
  EXPECT_EQ(floor_div(n * n * m + m * IntExpr(3), m), n * n + IntExpr(3));
  EXPECT_FALSE(((n + IntExpr(INT64_MAX)) * (m + IntExpr(2))).is_valid());
}

TEST(IntExpr, RangesDecideDivisions) {
  const IntExpr linear = i * m + j;
  EXPECT_EQ(floor_div(linear, m).simplify(ranges), i);
  EXPECT_EQ(floor_mod(linear, m).simplify(ranges), j);
  EXPECT_EQ(floor_div(i * IntExpr(12) + k, IntExpr(24)).simplify(ranges), floor_div(i, IntExpr(2)));
  EXPECT_EQ(floor_mod(i * IntExpr(12) + k, IntExpr(24)).simplify(ranges), IntExpr(12) * floor_mod(i, IntExpr(2)) + k);
  EXPECT_EQ(floor_div(i * m + j, m * IntExpr(2)).simplify(ranges), floor_div(i, IntExpr(2)));
  EXPECT_EQ(min(i, n).simplify(ranges), i);
  // j may reach m, so this one must stay.
  EXPECT_NE(floor_div(i * m + j + IntExpr(1), m).simplify(ranges), i);
}

TEST(IntExpr, Nonnegativity) {
  EXPECT_TRUE((n - IntExpr(1) - i).provably_nonnegative(ranges));
  EXPECT_FALSE((i - IntExpr(1)).provably_nonnegative(ranges));
  EXPECT_TRUE((n * m - IntExpr(1) - i * m - j).provably_nonnegative(ranges));
  EXPECT_TRUE((IntExpr(2) - floor_div(k, IntExpr(4))).provably_nonnegative(ranges));
  EXPECT_FALSE((IntExpr(1) - floor_div(k, IntExpr(4))).provably_nonnegative(ranges));
}

TEST(IntExpr, LinearIn) {
  const auto linear = (i * m * IntExpr(3) + j - IntExpr(2)).linear_in(axis_symbol(0));
  ASSERT_TRUE(linear.has_value());
  EXPECT_EQ(linear->coefficient, m * IntExpr(3));
  EXPECT_EQ(linear->rest, j - IntExpr(2));
  EXPECT_FALSE((i * i).linear_in(axis_symbol(0)).has_value());
  EXPECT_FALSE(floor_div(i, IntExpr(2)).linear_in(axis_symbol(0)).has_value());
}

TEST(IntExpr, TextRoundTrip) {
  const auto names = [](std::string_view name) -> std::optional<Symbol> {
    if (name == "s0") return 0;
    if (name == "s1") return 1;
    if (name == "i0") return axis_symbol(0);
    return std::nullopt;
  };
  for (const IntExpr& e : {n * IntExpr(4) + IntExpr(1), floor_div(n - IntExpr(1), m), IntExpr(-3),
                           min(n, m) * max(n, IntExpr(2)) - floor_mod(n, IntExpr(5)), -n - m, IntExpr(INT64_MIN)}) {
    if (e.is(INT64_MIN)) {
      EXPECT_EQ(e.to_text(), "-9223372036854775808");
      continue;
    }
    const auto parsed = IntExpr::parse(e.to_text(), names);
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    EXPECT_EQ(*parsed, e) << e.to_text();
  }
  for (const char* bad :
       {"", "n", "1 +", "(1", "floor_div(1)", "1 2", "99999999999999999999", "foo(1, 2)", "floor_div(1, 0)"})
    EXPECT_FALSE(IntExpr::parse(bad, names).ok()) << bad;
  EXPECT_FALSE(IntExpr::parse(std::string(1000, '('), names).ok());
}

IntExpr random_expr(std::mt19937& rng, int depth) {
  const auto pick = [&](int bound) { return static_cast<int>(rng() % static_cast<unsigned>(bound)); };
  if (depth == 0) {
    const IntExpr leaves[] = {n, m, i, j, k, IntExpr(pick(7) - 3)};
    return leaves[pick(6)];
  }
  const IntExpr a = random_expr(rng, depth - 1), b = random_expr(rng, depth - 1);
  const IntExpr divisors[] = {IntExpr(1 + pick(9)), n, m, n * IntExpr(2), n * m};
  switch (pick(8)) {
    case 0:
    case 1:
      return a + b;
    case 2:
      return a - b;
    case 3:
      return a * b;
    case 4:
      return floor_div(a, divisors[pick(5)]);
    case 5:
      return floor_mod(a, divisors[pick(5)]);
    case 6:
      return min(a, b);
    default:
      return max(a, b);
  }
}

// Simplification and bounds hold at every point of the ranges, tried exhaustively for small dims.
TEST(IntExpr, SimplifyAndBoundsAgreeWithEvaluation) {
  std::mt19937 rng(7);
  for (int round = 0; round < 1500; ++round) {
    const IntExpr e = random_expr(rng, 1 + round % 4);
    if (!e.is_valid()) continue;
    const IntExpr s = e.simplify(ranges);
    const auto bounds = e.bounds(ranges);
    ByteWriter out;
    e.write(out);
    ByteReader in(out.data(), "expression");
    EXPECT_EQ(IntExpr::read(in), e);
    EXPECT_TRUE(in.finish().ok());
    ByteReader again(out.data(), "expression");
    IntExprReader reader;
    EXPECT_EQ(reader.read(again), e);
    EXPECT_TRUE(again.finish().ok());
    const bool nonnegative = e.provably_nonnegative(ranges);
    for (int64_t vn : {1, 2, 3})
      for (int64_t vm : {1, 4})
        for (int64_t vi = 0; vi < vn; ++vi)
          for (int64_t vj = 0; vj < vm; ++vj)
            for (int64_t vk : {0, 5, 11}) {
              const auto value = [&](Symbol symbol) -> std::optional<int64_t> {
                if (symbol == 0) return vn;
                if (symbol == 1) return vm;
                return symbol == axis_symbol(0) ? vi : symbol == axis_symbol(1) ? vj : vk;
              };
              const auto want = e.evaluate(value);
              ASSERT_TRUE(want.has_value());
              ASSERT_EQ(s.evaluate(value), want) << e.to_text() << "  ->  " << s.to_text();
              if (nonnegative) ASSERT_GE(*want, 0) << e.to_text();
              if (bounds.lo)
                ASSERT_LE(*bounds.lo->evaluate(value), *want) << e.to_text() << " lo " << bounds.lo->to_text();
              if (bounds.hi)
                ASSERT_GE(*bounds.hi->evaluate(value), *want) << e.to_text() << " hi " << bounds.hi->to_text();
            }
  }
}

// One end of a range is looked for at a time: a chain of functions is not walked twice as often for each of them.
TEST(IntExpr, ReasoningIsNotExponentialInTheDepth) {
  const auto asked = [](int depth) {
    IntExpr e = n + IntExpr(100);
    for (int d = 0; d < depth; ++d) e = floor_div(e * IntExpr(3) + IntExpr(d), IntExpr(4)) + IntExpr(1);
    int64_t count = 0;
    EXPECT_TRUE(e.provably_nonnegative([&](Symbol) {
      ++count;
      return IntExpr::Range{IntExpr(0), {}};
    }));
    return count;
  };
  EXPECT_GT(asked(4), 0);
  EXPECT_LE(asked(12), 12 * 12);
  EXPECT_LE(asked(12), 10 * asked(4));
}

// Sums over the same terms, as the offsets of a program are: each function is made once, each sum once.
TEST(IntExpr, AReaderMakesTheSameBytesOnce) {
  constexpr int kTerms = 30;
  ByteWriter out;
  std::vector<IntExpr> sums;
  IntExpr sum;
  for (int t = 0; t < kTerms; ++t) {
    sum += floor_div(n * IntExpr(t + 3) + IntExpr(1), m);
    for (int twice = 0; twice < 2; ++twice) {
      sums.push_back(sum);
      sum.write(out);
    }
  }
  ByteReader in(out.data(), "expressions");
  IntExprReader reader;
  std::vector<IntExpr> read;
  for (size_t e = 0; e < sums.size(); ++e) read.push_back(reader.read(in));
  EXPECT_TRUE(in.finish().ok());
  EXPECT_EQ(read, sums);
  EXPECT_EQ(reader.made(), static_cast<size_t>(2 * kTerms));
  EXPECT_EQ(&read[40].terms(), &read[41].terms());
  EXPECT_EQ(read[10].terms()[0].factors[0].func, read[50].terms()[0].factors[0].func);
}

// What is not in normal form becomes so, or is refused.
TEST(IntExpr, ReadsWhatIsNotNormal) {
  ByteWriter out;
  const auto term = [&out](int64_t coefficient, Symbol s) {
    out.i64(coefficient);
    out.u8(1);
    out.u8(0);
    out.i32(s);
  };
  out.u8(1);
  out.i64(5);
  out.u32(5);
  term(2, 1);
  term(3, 0);
  term(-2, 1);
  out.i64(7);  // a number as a term
  out.u8(0);
  out.i64(4);  // 4 * floor_div(2 n, 2)
  out.u8(1);
  out.u8(1);
  (n * IntExpr(2)).write(out);
  IntExpr(2).write(out);
  ByteReader in(out.data(), "expression"), again(out.data(), "expression");
  EXPECT_EQ(IntExpr::read(in), n * IntExpr(7) + IntExpr(12));
  EXPECT_TRUE(in.finish().ok());
  EXPECT_EQ(IntExprReader().read(again), n * IntExpr(7) + IntExpr(12));
}

TEST(IntExpr, ReadRefusesHostileBytes) {
  std::mt19937 rng(3);
  ByteWriter out;
  (floor_div(n * m + IntExpr(3), m) * min(n, m)).write(out);
  for (int round = 0; round < 2000; ++round) {
    Bytes bytes = out.data();
    bytes[rng() % bytes.size()] = static_cast<uint8_t>(rng());
    bytes.resize(rng() % (bytes.size() + 1));
    ByteReader in(bytes, "expression");
    const IntExpr e = IntExpr::read(in);
    (void)e.to_text();
    ByteReader again(bytes, "expression");
    const IntExpr other = IntExprReader().read(again);
    EXPECT_EQ(again.ok(), in.ok());
    if (in.ok()) EXPECT_EQ(other, e);
  }
}

}  // namespace
}  // namespace quartet
