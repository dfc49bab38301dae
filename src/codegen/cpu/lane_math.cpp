#include "codegen/cpu/lane_math.h"

#include <algorithm>
#include <numeric>

#include "codegen/cpu/arithmetic.h"

namespace quartet::codegen {
namespace {

// What an i64 operation gives from the ranges of its operands.
Range result_range(ScalarOp op, std::span<const Value> x) {
  const Range a = x.empty() ? Range() : x[0].range;
  const Range c = x.size() > 1 ? x[1].range : Range();
  switch (op) {
    case ScalarOp::add:
      return a + c;
    case ScalarOp::sub:
      return a - c;
    case ScalarOp::mul:
      return a * c;
    case ScalarOp::neg:
      return Range::exactly(0) - a;
    case ScalarOp::min:
      return {std::min(a.lo, c.lo), std::min(a.hi, c.hi)};
    case ScalarOp::max:
      return {std::max(a.lo, c.lo), std::max(a.hi, c.hi)};
    case ScalarOp::select:
      return unite(x[1].range, x[2].range);
    case ScalarOp::floor_div:
    case ScalarOp::div:
      return a.nonnegative() && c.lo >= 1 ? Range{a.lo / c.hi, a.hi / c.lo} : Range();
    case ScalarOp::floor_mod:
      return c.lo >= 1 ? Range{0, a.nonnegative() ? std::min(a.hi, c.hi - 1) : c.hi - 1} : Range();
    case ScalarOp::rem:
      return a.nonnegative() && c.lo >= 1 ? Range{0, std::min(a.hi, c.hi - 1)} : Range();
    case ScalarOp::bit_and:
      return a.nonnegative() || c.nonnegative() ? Range{0, a.nonnegative() ? a.hi : c.hi} : Range();
    default:
      return {};
  }
}

uint64_t result_multiple(ScalarOp op, std::span<const Value> x) {
  const uint64_t a = x[0].multiple;
  const uint64_t c = x.size() > 1 ? x[1].multiple : 1;
  switch (op) {
    case ScalarOp::add:
    case ScalarOp::sub:
    case ScalarOp::min:
    case ScalarOp::max:
      return std::gcd(a, c);
    case ScalarOp::neg:
      return a;
    case ScalarOp::mul: {
      uint64_t product = 0;
      return __builtin_mul_overflow(a, c, &product) || product > (uint64_t{1} << 62) ? std::max(a, c) : product;
    }
    case ScalarOp::select:
      return std::gcd(x[1].multiple, x[2].multiple);
    case ScalarOp::floor_div: {
      const auto* d = llvm::dyn_cast<llvm::ConstantInt>(x[1].base);
      return d && d->getSExtValue() > 0 && a % d->getZExtValue() == 0 ? a / d->getZExtValue() : 1;
    }
    case ScalarOp::floor_mod: {
      const auto* d = llvm::dyn_cast<llvm::ConstantInt>(x[1].base);
      return d && d->getSExtValue() > 0 ? std::gcd(a, d->getZExtValue()) : 1;
    }
    default:
      return 1;
  }
}

Range range_of(DType type) {
  if (type == DType::boolean) return {0, 1};
  const int bits = static_cast<int>(size_of(type)) * 8;
  if (bits > 32) return {};
  return is_signed_int(type) ? Range{-(int64_t{1} << (bits - 1)), (int64_t{1} << (bits - 1)) - 1}
                             : Range{0, (int64_t{1} << bits) - 1};
}

bool is_constant(const llvm::Value* value, int64_t n) {
  const auto* constant = llvm::dyn_cast_or_null<llvm::ConstantInt>(value);
  return constant && constant->getSExtValue() == n;
}

// Bounds of what lanes add to the base of an index with a constant stride.
Range spread_of(const Value& a, int lanes) {
  if (!a.stride) return a.offset_range;
  return a.offset_range + Range{0, lanes - 1} * Range::exactly(llvm::cast<llvm::ConstantInt>(a.stride)->getSExtValue());
}

}  // namespace

Value LaneMath::uniform(DType dtype, llvm::Value* value) {
  Value out;
  out.dtype = dtype;
  out.base = value;
  return out;
}

Value LaneMath::vector(DType dtype, llvm::Value* value) {
  Value out;
  out.dtype = dtype;
  (Ir::lanes_of(value) == 1 ? out.base : out.vector) = value;
  return out;
}

Value LaneMath::index(llvm::Value* value, Range range, uint64_t multiple) {
  Value out = uniform(DType::i64, value);
  out.range = range;
  out.multiple = multiple;
  if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value)) {
    out.range = Range::exactly(constant->getSExtValue());
    out.multiple = magnitude(constant->getSExtValue());
  }
  return out;
}

Value LaneMath::consecutive(llvm::Value* base, Range range, uint64_t multiple, int lanes) {
  Value out = index(base, range, multiple);
  out.range = range;
  if (lanes > 1) out.stride = ir.i64(1);
  return out;
}

Value LaneMath::normalised(Value value) {
  if (value.stride && is_constant(value.stride, 0)) value.stride = nullptr;
  return value;
}

llvm::Value* LaneMath::offsets_i32(const Value& value, int lanes) {
  llvm::Value* out = value.offset;
  if (value.stride) {
    const auto* stride = llvm::dyn_cast<llvm::ConstantInt>(value.stride);
    if (!stride || !Range::exactly(stride->getSExtValue()).within(-(1 << 24), 1 << 24)) return nullptr;
    if (!spread_of(value, lanes).fits_i32()) return nullptr;
    llvm::Constant* const by_lane = ir.iota(lanes, stride->getSExtValue());
    out = out ? ir.b.CreateAdd(out, by_lane) : by_lane;
  }
  return out;
}

llvm::Value* LaneMath::all(const Value& value, int lanes) {
  if (value.vector) return value.vector;
  if (lanes == 1) return value.base;
  if (value.uniform()) return ir.splat(value.base, lanes);
  auto& b = ir.b;
  llvm::Type* const wide = ir.type(DType::i64, lanes);
  llvm::Value* out = nullptr;
  if (llvm::Value* const offsets = offsets_i32(value, lanes)) {
    out = b.CreateSExt(offsets, wide);
  } else {
    out = b.CreateMul(ir.splat(value.stride, lanes), b.CreateSExt(ir.iota(lanes), wide));
    if (value.offset) out = b.CreateAdd(out, b.CreateSExt(value.offset, wide));
  }
  return is_constant(value.base, 0) ? out : b.CreateAdd(ir.splat(value.base, lanes), out);
}

llvm::Value* LaneMath::all_i32(const Value& value, int lanes) {
  auto& b = ir.b;
  llvm::Type* const type = ir.type(DType::i32, lanes);
  if (value.vector) return b.CreateTrunc(value.vector, type);
  llvm::Value* const base = ir.splat(b.CreateTrunc(value.base, b.getInt32Ty()), lanes);
  if (value.uniform()) return base;
  llvm::Value* out = value.offset;
  if (value.stride) {  // modulo 2^32, as the sum is
    llvm::Value* const steps =
        b.CreateMul(ir.splat(b.CreateTrunc(value.stride, b.getInt32Ty()), lanes), ir.iota(lanes));
    out = out ? b.CreateAdd(out, steps) : steps;
  }
  return is_constant(value.base, 0) ? out : b.CreateAdd(base, out);
}

Value LaneMath::apply(ScalarOp op, DType to, std::span<const Value> operands, int lanes) {
  const DType from = op == ScalarOp::select ? operands[1].dtype : operands[0].dtype;
  const bool all_uniform = std::all_of(operands.begin(), operands.end(), [](const Value& v) { return v.uniform(); });
  if (all_uniform && from == DType::i64 && to == DType::i64) return uniform_i64(op, operands);
  if (all_uniform || lanes == 1) {
    llvm::SmallVector<llvm::Value*, 3> scalars;
    for (const Value& v : operands) scalars.push_back(v.base);
    Value out = uniform(to, emit_scalar(ir, op, from, to, scalars));
    if (op == ScalarOp::cast && to == DType::i64 && !is_float(from)) out.range = range_of(from);
    return out;
  }
  if (op == ScalarOp::cast && from == DType::i64) return cast_from_i64(to, operands[0], lanes);
  if (op == ScalarOp::cast && to == DType::i64 && !is_float(from) && size_of(from) <= 4)
    return cast_to_i64(operands[0]);
  if (from == DType::i64 && (to == DType::i64 || is_comparison(op))) return apply_i64(op, operands, lanes);
  llvm::SmallVector<llvm::Value*, 3> vectors;
  for (size_t i = 0; i < operands.size(); ++i)  // a select by one condition for all lanes keeps it scalar
    vectors.push_back(op == ScalarOp::select && i == 0 && operands[0].uniform() ? operands[0].base
                                                                                : all(operands[i], lanes));
  llvm::Value* const result = emit_scalar(ir, op, from, to, vectors);
  return result ? vector(to, result) : uniform(to, nullptr);
}

Value LaneMath::uniform_i64(ScalarOp op, std::span<const Value> operands) {
  if (op == ScalarOp::div || op == ScalarOp::rem || op == ScalarOp::floor_div || op == ScalarOp::floor_mod)
    return uniform_divide(op, operands[0], operands[1]);
  llvm::SmallVector<llvm::Value*, 3> scalars;
  for (const Value& v : operands) scalars.push_back(v.base);
  return index(emit_scalar(ir, op, DType::i64, DType::i64, scalars), result_range(op, operands),
               result_multiple(op, operands));
}

Value LaneMath::uniform_divide(ScalarOp op, const Value& a, const Value& d) {
  auto& b = ir.b;
  const bool quotient = op == ScalarOp::div || op == ScalarOp::floor_div;
  const Value operands[] = {a, d};
  const Range range = result_range(op, operands);
  const uint64_t multiple = result_multiple(op, operands);
  if (!a.range.nonnegative() || d.range.lo < 1)
    return index(emit_divide(ir, op, DType::i64, a.base, d.base), range, multiple);
  const bool narrow = a.range.hi <= 0xffffffffLL && d.range.hi <= 0xffffffffLL && !llvm::isa<llvm::Constant>(d.base);
  llvm::Type* const type = narrow ? b.getInt32Ty() : b.getInt64Ty();
  llvm::Value* const x = b.CreateTrunc(a.base, type);
  llvm::Value* const y = b.CreateTrunc(d.base, type);
  return index(b.CreateZExt(quotient ? b.CreateUDiv(x, y) : b.CreateURem(x, y), b.getInt64Ty()), range, multiple);
}

Value LaneMath::apply_i64(ScalarOp op, std::span<const Value> x, int lanes) {
  if (is_comparison(op)) return compare_index(op, x[0], x[1], lanes);
  const Range range = result_range(op, x);
  const bool indices = std::none_of(x.begin(), x.end(), [](const Value& v) { return v.vector; });
  if (indices && (op == ScalarOp::add || op == ScalarOp::sub)) {
    if (Value sum = add(x[0], x[1], op == ScalarOp::sub, lanes); sum.base) return sum;
  }
  if (indices && op == ScalarOp::mul && (x[0].uniform() || x[1].uniform())) {
    const bool second = x[1].uniform();
    if (Value product = multiply(second ? x[0] : x[1], second ? x[1] : x[0], lanes); product.base) return product;
  }
  const bool floors = op == ScalarOp::floor_div || op == ScalarOp::floor_mod;
  const bool truncates = op == ScalarOp::div || op == ScalarOp::rem;
  if (indices && x.size() == 2 && x[1].uniform() && (floors || (truncates && x[0].range.nonnegative()))) {
    if (Value result = divide_index(op, x[0], x[1], lanes); result.base) return result;
  }
  return elementwise_i64(op, x, range, lanes);
}

Value LaneMath::add(const Value& a, const Value& c, bool subtract, int lanes) {
  auto& b = ir.b;
  const Value operands[] = {a, c};
  const ScalarOp op = subtract ? ScalarOp::sub : ScalarOp::add;
  Value out =
      index(subtract ? b.CreateSub(a.base, c.base) : b.CreateAdd(a.base, c.base), {}, result_multiple(op, operands));
  out.range = result_range(op, operands);
  llvm::Value* const zero = ir.i64(0);
  llvm::Value* const left = a.stride ? a.stride : zero;
  if (c.stride) {
    out.stride = subtract ? b.CreateSub(left, c.stride) : b.CreateAdd(left, c.stride);
  } else {
    out.stride = a.stride;
  }
  out.offset_range = subtract ? a.offset_range - c.offset_range : a.offset_range + c.offset_range;
  if (!out.offset_range.fits_i32()) return uniform(DType::i64, nullptr);
  out.offset = a.offset;
  if (c.offset) {
    llvm::Value* const from = a.offset ? a.offset : ir.number_like(c.offset, 0);
    out.offset = subtract ? b.CreateSub(from, c.offset) : b.CreateAdd(from, c.offset);
  }
  (void)lanes;
  return normalised(out);
}

Value LaneMath::multiply(const Value& a, const Value& factor, int lanes) {
  auto& b = ir.b;
  const Value operands[] = {a, factor};
  Value out = index(b.CreateMul(a.base, factor.base), {}, result_multiple(ScalarOp::mul, operands));
  out.range = result_range(ScalarOp::mul, operands);
  if (a.stride) out.stride = b.CreateMul(a.stride, factor.base);
  if (a.offset) {
    out.offset_range = a.offset_range * factor.range;
    if (!out.offset_range.fits_i32() || !factor.range.fits_i32()) return uniform(DType::i64, nullptr);
    out.offset = b.CreateMul(a.offset, ir.splat(b.CreateTrunc(factor.base, b.getInt32Ty()), lanes));
  }
  return normalised(out);
}

// Of an index that is known not to wrap. Where a run of lanes stays in one block of d elements, the quotient is uniform
// and the rest counts up; where every run starts at a multiple of d, both follow one pattern. Neither divides vectors.
Value LaneMath::divide_index(ScalarOp op, const Value& a, const Value& d, int lanes) {
  const bool quotient = op == ScalarOp::floor_div || op == ScalarOp::div;
  if (d.range.lo < 1 || !a.range.calm()) return uniform(DType::i64, nullptr);
  const auto* known = llvm::dyn_cast<llvm::ConstantInt>(d.base);
  const auto* stride = llvm::dyn_cast_or_null<llvm::ConstantInt>(a.stride);
  if (known && stride && stride->getSExtValue() > 0 && !a.offset) {
    const uint64_t step = stride->getZExtValue();
    const uint64_t divisor = known->getZExtValue();
    const uint64_t grain = std::gcd(a.multiple, divisor);
    if (step <= divisor && static_cast<uint64_t>(lanes - 1) * step < grain) {
      Value base = a;
      base.stride = nullptr;
      base.range = a.range;
      Value out = uniform_divide(quotient ? ScalarOp::floor_div : ScalarOp::floor_mod, base, d);
      if (!quotient) out.stride = a.stride;
      return out;
    }
  }
  return divide_blocks(quotient, a, d, lanes);
}

// floor(base / d) and the rest are uniform; the lanes' distances from the lowest are small numbers, divided in i32.
Value LaneMath::divide_blocks(bool quotient, const Value& a, const Value& d, int lanes) {
  auto& b = ir.b;
  llvm::Value* offsets = offsets_i32(a, lanes);
  constexpr int64_t kLimit = int64_t{1} << 30;
  if (!offsets || d.range.hi > kLimit) return uniform(DType::i64, nullptr);
  const Range spread = spread_of(a, lanes);
  if (!spread.within(-kLimit, kLimit) || spread.hi - spread.lo > kLimit) return uniform(DType::i64, nullptr);
  Value lowest = a;
  lowest.stride = lowest.offset = nullptr;
  lowest.offset_range = Range::exactly(0);
  if (spread.lo != 0) {  // the lowest lane may lie before the base
    lowest = add(lowest, number(spread.lo), false, lanes);
    lowest.range = a.range;
    offsets = b.CreateSub(offsets, ir.number_like(offsets, spread.lo));
  }
  const Value first = uniform_divide(ScalarOp::floor_div, lowest, d);
  const Value rest = uniform_divide(ScalarOp::floor_mod, lowest, d);
  const int64_t most = d.range.hi - 1 + (spread.hi - spread.lo);  // of rest + offset
  llvm::Value* const from_block = b.CreateAdd(offsets, ir.splat(b.CreateTrunc(rest.base, b.getInt32Ty()), lanes));
  llvm::Value* const divisor = ir.splat(b.CreateTrunc(d.base, b.getInt32Ty()), lanes);
  llvm::Value* blocks = nullptr;
  if (d.range.lo == d.range.hi && most < 2 * d.range.lo) {
    blocks = b.CreateZExt(b.CreateICmpSGE(from_block, divisor), from_block->getType());
  } else {
    blocks = emit_divide(ir, ScalarOp::div, d.range.lo == d.range.hi ? DType::u32 : DType::i32, from_block, divisor);
  }
  Value out = quotient ? first : number(0);
  out.range = quotient ? Range() : Range{0, d.range.hi - 1};
  if (quotient && a.range.nonnegative()) out.range = {a.range.lo / d.range.hi, a.range.hi / d.range.lo};
  out.offset = quotient ? blocks : b.CreateSub(from_block, b.CreateMul(blocks, divisor));
  out.offset_range = quotient ? Range{0, most / d.range.lo} : Range{0, d.range.hi - 1};
  return out;
}

// a < c as a's distances from its base against the distance of the bases: one comparison of i32. Only of what is known
// not to wrap.
Value LaneMath::compare_index(ScalarOp op, const Value& a, const Value& c, int lanes) {
  auto& b = ir.b;
  const Value operands[] = {a, c};
  if (a.vector || c.vector || !a.range.calm() || !c.range.calm()) return elementwise_i64(op, operands, {}, lanes);
  const Value difference = add(a, c, true, lanes);
  if (difference.base && difference.uniform()) {  // the lanes differ from the base in the same way
    llvm::Value* const scalars[] = {a.base, c.base};
    return uniform(DType::boolean, emit_scalar(ir, op, DType::i64, DType::boolean, scalars));
  }
  constexpr int64_t kFar = int64_t{1} << 30;
  llvm::Value* const offsets = difference.base ? offsets_i32(difference, lanes) : nullptr;
  if (!offsets || !spread_of(difference, lanes).within(-kFar, kFar)) return elementwise_i64(op, operands, {}, lanes);
  llvm::Value* distance = b.CreateSub(c.base, a.base);
  // Clamped outside of what the offsets reach, so that i32 holds it and the outcome stays.
  distance = ir.intrinsic(llvm::Intrinsic::smin, distance, ir.i64(2 * kFar - 1));
  distance = ir.intrinsic(llvm::Intrinsic::smax, distance, ir.i64(-2 * kFar));
  llvm::Value* const threshold = ir.splat(b.CreateTrunc(distance, b.getInt32Ty()), lanes);
  llvm::Value* const vectors[] = {offsets, threshold};
  return vector(DType::boolean, emit_scalar(ir, op, DType::i32, DType::boolean, vectors));
}

Value LaneMath::elementwise_i64(ScalarOp op, std::span<const Value> operands, Range result, int lanes) {
  const bool to_bool = is_comparison(op);
  bool narrow = to_bool || result.fits_i32();
  for (const Value& v : operands) narrow = narrow && (v.dtype == DType::boolean || v.range.fits_i32());
  const DType type = narrow ? DType::i32 : DType::i64;
  llvm::SmallVector<llvm::Value*, 3> vectors;
  for (const Value& v : operands) {
    if (v.dtype == DType::boolean) {
      vectors.push_back(v.uniform() ? v.base : v.vector);
    } else {
      vectors.push_back(narrow ? all_i32(v, lanes) : all(v, lanes));
    }
  }
  llvm::Value* const out = emit_scalar(ir, op, type, to_bool ? DType::boolean : type, vectors);
  if (!out) return uniform(DType::i64, nullptr);
  if (to_bool) return vector(DType::boolean, out);
  Value value = narrow ? number(0) : vector(DType::i64, out);
  value.range = result;
  if (narrow) {
    value.offset = out;
    value.offset_range = result;
  }
  return value;
}

Value LaneMath::cast_from_i64(DType to, const Value& a, int lanes) {
  if (to == DType::i64) return a;
  const bool whole = to == DType::boolean || is_float(to) || size_of(to) == 8;  // needs all 64 bits
  if (whole && !a.range.fits_i32()) return vector(to, emit_cast(ir, DType::i64, to, all(a, lanes)));
  return vector(to, emit_cast(ir, DType::i32, to, all_i32(a, lanes)));
}

Value LaneMath::cast_to_i64(const Value& a) {
  const Range range = range_of(a.dtype);
  Value out = number(0);
  if (a.dtype == DType::u32) {
    out = vector(DType::i64, emit_cast(ir, DType::u32, DType::i64, a.vector));
  } else {
    out.offset = emit_cast(ir, a.dtype, DType::i32, a.vector);
    out.offset_range = range;
  }
  out.range = range;
  return out;
}

}  // namespace quartet::codegen
