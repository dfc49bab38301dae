// The form in which the emitter holds a kernel-IR value: one number for all lanes, an index that differs by lane in a
// known way, or a vector.
#pragma once

#include <cstdint>
#include <limits>

#include <llvm/IR/Value.h>

#include "base/dtype.h"

namespace quartet::codegen {

// Inclusive bounds of an i64 over all lanes; the type's own where nothing is known. Arithmetic saturates.
struct Range {
  int64_t lo = std::numeric_limits<int64_t>::min();
  int64_t hi = std::numeric_limits<int64_t>::max();

  static Range exactly(int64_t value) { return {value, value}; }
  bool bounded() const {
    return lo != std::numeric_limits<int64_t>::min() && hi != std::numeric_limits<int64_t>::max();
  }
  bool within(int64_t low, int64_t high) const { return lo >= low && hi <= high; }
  bool fits_i32() const { return within(std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()); }
  // Far enough from the ends of the type that sums with i32 distances do not wrap.
  bool calm() const { return within(-(int64_t{1} << 62), int64_t{1} << 62); }
  bool nonnegative() const { return lo >= 0; }
};
Range operator+(const Range& a, const Range& b);
Range operator-(const Range& a, const Range& b);
Range operator*(const Range& a, const Range& b);
Range unite(const Range& a, const Range& b);

// Exactly one of these:
//   uniform: base alone
//   index (i64 only): base + stride * lane + offset, where stride (i64, the same for all lanes) and offset (i32 by
//   lane) may
//     be missing, not both
//   vector: `vector` alone
struct Value {
  DType dtype = DType::invalid;
  llvm::Value* base = nullptr;
  llvm::Value* stride = nullptr;
  llvm::Value* offset = nullptr;
  llvm::Value* vector = nullptr;
  Range offset_range = Range::exactly(0);
  Range range;            // of the value, i64 only
  uint64_t multiple = 1;  // base is a multiple of it; 0: base is 0 (i64 only)

  bool uniform() const { return !stride && !offset && !vector; }
  bool is_index() const { return stride || offset; }
};

}  // namespace quartet::codegen
