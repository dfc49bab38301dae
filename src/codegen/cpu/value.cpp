#include "codegen/cpu/value.h"

#include <algorithm>

namespace quartet::codegen {
namespace {

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();

// Ranges that touch the ends of the type say nothing, nor do sums that leave it (the arithmetic wraps).
Range checked(bool overflow, int64_t lo, int64_t hi) { return overflow ? Range() : Range{lo, hi}; }

}  // namespace

Range operator+(const Range& a, const Range& b) {
  if (!a.bounded() || !b.bounded()) return {};
  int64_t lo = 0, hi = 0;
  const bool low = __builtin_add_overflow(a.lo, b.lo, &lo), high = __builtin_add_overflow(a.hi, b.hi, &hi);
  return checked(low || high, lo, hi);
}

Range operator-(const Range& a, const Range& b) {
  if (!a.bounded() || !b.bounded()) return {};
  int64_t lo = 0, hi = 0;
  const bool low = __builtin_sub_overflow(a.lo, b.hi, &lo), high = __builtin_sub_overflow(a.hi, b.lo, &hi);
  return checked(low || high, lo, hi);
}

Range operator*(const Range& a, const Range& b) {
  if (!a.bounded() || !b.bounded()) return {};
  int64_t lo = kHighest, hi = kLowest;
  for (const int64_t x : {a.lo, a.hi}) {
    for (const int64_t y : {b.lo, b.hi}) {
      int64_t product = 0;
      if (__builtin_mul_overflow(x, y, &product)) return {};
      lo = std::min(lo, product);
      hi = std::max(hi, product);
    }
  }
  return {lo, hi};
}

Range unite(const Range& a, const Range& b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }

}  // namespace quartet::codegen
