// Arithmetic on emitter values: keeps what is the same for all lanes scalar, and indices as base + stride * lane +
// offset.
#pragma once

#include <span>

#include "base/scalar_ops.h"
#include "codegen/cpu/ir.h"
#include "codegen/cpu/value.h"

namespace quartet::codegen {

// The lanes that a statement is emitted for. `active` (null: all) tells the lanes whose loads and stores count.
struct Lanes {
  int count = 1;
  llvm::Value* active = nullptr;
};

class LaneMath {
 public:
  explicit LaneMath(Ir& builder) : ir(builder) {}

  Value uniform(DType dtype, llvm::Value* value);
  Value vector(DType dtype, llvm::Value* value);
  // An i64, the same for all lanes, with what is known of it.
  Value index(llvm::Value* value, Range range, uint64_t multiple);
  Value number(int64_t value) { return index(ir.i64(value), Range::exactly(value), magnitude(value)); }
  // base, base + 1 ... by lane.
  Value consecutive(llvm::Value* base, Range range, uint64_t multiple, int lanes);

  // The operation on values; null base and vector if it has no form here.
  Value apply(ScalarOp op, DType to, std::span<const Value> operands, int lanes);

  // All lanes of a value (a scalar if there is one lane), and of an i64 whose range fits i32.
  llvm::Value* all(const Value& value, int lanes);
  llvm::Value* all_i32(const Value& value, int lanes);
  // The offsets of an index in i32, stride included; null if they might not fit.
  llvm::Value* offsets_i32(const Value& value, int lanes);

  static uint64_t magnitude(int64_t value) {
    return value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  }

  Ir& ir;

 private:
  Value apply_i64(ScalarOp op, std::span<const Value> operands, int lanes);
  Value uniform_i64(ScalarOp op, std::span<const Value> operands);
  Value uniform_divide(ScalarOp op, const Value& a, const Value& d);
  Value add(const Value& a, const Value& c, bool subtract, int lanes);
  Value multiply(const Value& a, const Value& factor, int lanes);
  // floor_div and floor_mod (or div and rem, of what is not negative) of an index by a uniform divisor.
  Value divide_index(ScalarOp op, const Value& a, const Value& d, int lanes);
  Value divide_blocks(bool quotient, const Value& a, const Value& d, int lanes);
  Value compare_index(ScalarOp op, const Value& a, const Value& c, int lanes);
  // The operation in i32 where all ranges allow it, else on 64-bit vectors.
  Value elementwise_i64(ScalarOp op, std::span<const Value> operands, Range result, int lanes);
  Value cast_from_i64(DType to, const Value& a, int lanes);
  Value cast_to_i64(const Value& a);  // of a vector of at most 32 bits
  Value normalised(Value value);
};

}  // namespace quartet::codegen
