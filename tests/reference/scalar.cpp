#include "reference/scalar.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/half.h"

namespace quartet::reference {
namespace {

// f32 with the last bit sticky: rounding it to fewer bits rounds the double once.
float to_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (!std::isfinite(nearest) || static_cast<double>(nearest) == value) return nearest;
  const bool away = std::fabs(static_cast<double>(nearest)) > std::fabs(value);
  const float below = away ? std::nextafterf(nearest, 0.0f) : nearest;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(below) | 1u);
}

float to_odd(float value) { return value; }

struct F16 {
  using Compute = float;
  static float get(int64_t bits) { return f16_to_f32(static_cast<uint16_t>(bits)); }
  template <class T>
  static int64_t put(T value) {
    return f32_to_f16(to_odd(value));
  }
};
struct BF16 {
  using Compute = float;
  static float get(int64_t bits) { return bf16_to_f32(static_cast<uint16_t>(bits)); }
  template <class T>
  static int64_t put(T value) {
    return f32_to_bf16(to_odd(value));
  }
};
struct F32 {
  using Compute = float;
  static float get(int64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }
  template <class T>
  static int64_t put(T value) {
    return static_cast<int64_t>(std::bit_cast<uint32_t>(static_cast<float>(value)));
  }
};
struct F64 {
  using Compute = double;
  static double get(int64_t bits) { return std::bit_cast<double>(bits); }
  template <class T>
  static int64_t put(T value) {
    return std::bit_cast<int64_t>(static_cast<double>(value));
  }
};
template <class T>
struct Int {
  using Compute = T;
  static T get(int64_t bits) { return static_cast<T>(bits); }
  static int64_t put(T value) { return static_cast<int64_t>(value); }
};

// Calls f with the accessor of a type.
template <class F>
auto with_type(DType type, F&& f) -> decltype(f(F32{})) {
  switch (type) {
    case DType::f64:
      return f(F64{});
    case DType::f32:
      return f(F32{});
    case DType::f16:
      return f(F16{});
    case DType::bf16:
      return f(BF16{});
    case DType::i64:
      return f(Int<int64_t>{});
    case DType::i32:
      return f(Int<int32_t>{});
    case DType::i16:
      return f(Int<int16_t>{});
    case DType::i8:
      return f(Int<int8_t>{});
    case DType::u64:
      return f(Int<uint64_t>{});
    case DType::u32:
      return f(Int<uint32_t>{});
    case DType::u16:
      return f(Int<uint16_t>{});
    default:
      return f(Int<uint8_t>{});  // u8, bool
  }
}

template <class T>
T float_min(T a, T b) {
  if (std::isnan(a)) return a;
  if (std::isnan(b)) return b;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

template <class T>
T float_max(T a, T b) {
  if (std::isnan(a)) return a;
  if (std::isnan(b)) return b;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

template <class Type, class T = typename Type::Compute>
std::optional<int64_t> float_op(ScalarOp op, std::span<const int64_t> v, bool fused) {
  const T a = Type::get(v[0]), b = v.size() > 1 ? Type::get(v[1]) : T(0), c = v.size() > 2 ? Type::get(v[2]) : T(0);
  switch (op) {
    case ScalarOp::add:
      return Type::put(a + b);
    case ScalarOp::sub:
      return Type::put(a - b);
    case ScalarOp::mul:
      return Type::put(a * b);
    case ScalarOp::div:
      return Type::put(a / b);
    case ScalarOp::rem:
      return Type::put(std::fmod(a, b));
    case ScalarOp::min:
      return Type::put(float_min(a, b));
    case ScalarOp::max:
      return Type::put(float_max(a, b));
    case ScalarOp::fma: {
      const T product = a * b;
      return Type::put(fused ? std::fma(a, b, c) : product + c);
    }
    case ScalarOp::sqrt:
      return Type::put(std::sqrt(a));
    case ScalarOp::floor:
      return Type::put(std::floor(a));
    case ScalarOp::ceil:
      return Type::put(std::ceil(a));
    case ScalarOp::trunc:
      return Type::put(std::trunc(a));
    case ScalarOp::round_even:
      return Type::put(std::nearbyint(a));
    case ScalarOp::eq:
      return a == b;
    case ScalarOp::ne:
      return a != b;
    case ScalarOp::lt:
      return a < b;
    case ScalarOp::le:
      return a <= b;
    default:
      return std::nullopt;
  }
}

template <class T>
T divide(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>)
    if (b == T(-1)) return static_cast<T>(std::make_unsigned_t<T>(0) - static_cast<std::make_unsigned_t<T>>(a));
  return static_cast<T>(a / b);
}

template <class T>
T shift_right(T a, T b) {
  constexpr int kBits = static_cast<int>(sizeof(T) * 8);
  const bool beyond = b < T(0) || b >= T(kBits);
  if (beyond) return a < T(0) ? static_cast<T>(-1) : T(0);
  return static_cast<T>(a >> b);
}

template <class T>
std::optional<int64_t> int_op(ScalarOp op, std::span<const int64_t> v) {
  using Type = Int<T>;
  using U = uint64_t;  // wraps, and its low bits are right for every width
  const T a = Type::get(v[0]), b = v.size() > 1 ? Type::get(v[1]) : T(0);
  const U ua = static_cast<U>(a), ub = static_cast<U>(b);
  const auto wrap = [](U value) { return Type::put(static_cast<T>(value)); };
  switch (op) {
    case ScalarOp::add:
      return wrap(ua + ub);
    case ScalarOp::sub:
      return wrap(ua - ub);
    case ScalarOp::mul:
      return wrap(ua * ub);
    case ScalarOp::div:
      return Type::put(divide(a, b));
    case ScalarOp::rem:
      return b == 0 ? Type::put(a) : wrap(ua - static_cast<U>(divide(a, b)) * ub);
    case ScalarOp::floor_div: {
      const T q = divide(a, b), r = static_cast<T>(ua - static_cast<U>(q) * ub);
      return wrap(static_cast<U>(q) - (r < T(0) ? 1u : 0u));
    }
    case ScalarOp::floor_mod: {
      const T r = static_cast<T>(ua - static_cast<U>(divide(a, b)) * ub);
      return wrap(static_cast<U>(r) + (r < T(0) ? ub : 0u));
    }
    case ScalarOp::min:
      return Type::put(std::min(a, b));
    case ScalarOp::max:
      return Type::put(std::max(a, b));
    case ScalarOp::neg:
      return wrap(U{0} - ua);
    case ScalarOp::abs:
      return wrap(a < T(0) ? U{0} - ua : ua);
    case ScalarOp::bit_and:
      return wrap(ua & ub);
    case ScalarOp::bit_or:
      return wrap(ua | ub);
    case ScalarOp::bit_xor:
      return wrap(ua ^ ub);
    case ScalarOp::bit_not:
      return wrap(~ua);
    case ScalarOp::shift_left:
      return b < T(0) || b >= T(sizeof(T) * 8) ? 0 : wrap(ua << ub);
    case ScalarOp::shift_right:
      return Type::put(shift_right(a, b));
    case ScalarOp::eq:
      return a == b;
    case ScalarOp::ne:
      return a != b;
    case ScalarOp::lt:
      return a < b;
    case ScalarOp::le:
      return a <= b;
    default:
      return std::nullopt;
  }
}

// The sign of a float is a bit: NaN and zero included.
int64_t sign_op(ScalarOp op, DType type, int64_t bits) {
  const uint64_t sign = uint64_t{1} << (size_of(type) * 8 - 1);
  const auto v = static_cast<uint64_t>(bits);
  return static_cast<int64_t>(op == ScalarOp::neg ? v ^ sign : v & ~sign);
}

template <class To, class From>
To saturate(From value) {
  if (std::isnan(value)) return 0;
  constexpr From kLow = static_cast<From>(std::numeric_limits<To>::min());
  // The first value beyond the range is a power of two, exact in every float type but f16.
  const From beyond = std::ldexp(From(1), std::numeric_limits<To>::digits);
  if (value < kLow) return std::numeric_limits<To>::min();
  if (value >= beyond) return std::numeric_limits<To>::max();
  return static_cast<To>(value);
}

// Integers up to 64 bits to f16 and bf16 go through a double with a sticky last bit, so that they round once.
template <class T>
double sticky_double(T value) {
  const double nearest = static_cast<double>(value);
  if constexpr (sizeof(T) == 8) {
    const auto magnitude = value < T(0) ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
    if (magnitude < (uint64_t{1} << 53)) return nearest;
    const int shift = 11 - std::countl_zero(magnitude);
    const uint64_t kept = magnitude >> shift | ((magnitude & ((uint64_t{1} << shift) - 1)) != 0 ? 1 : 0);
    const double result = std::ldexp(static_cast<double>(kept), shift);
    return value < T(0) ? -result : result;
  }
  return nearest;
}

template <class From, class To>
int64_t convert(int64_t bits) {
  using S = typename From::Compute;
  using D = typename To::Compute;
  const S value = From::get(bits);
  if constexpr (std::is_floating_point_v<D>) {
    if constexpr (std::is_floating_point_v<S>)
      return To::put(value);
    else if constexpr (std::is_same_v<To, F32> || std::is_same_v<To, F64>)
      return To::put(static_cast<D>(value));
    else
      return To::put(sticky_double(value));
  } else if constexpr (std::is_floating_point_v<S>) {
    return To::put(saturate<D>(value));
  } else {
    return To::put(static_cast<D>(value));
  }
}

int64_t cast(DType to, DType from, int64_t bits) {
  if (to == from) return bits;
  if (to == DType::boolean) {
    if (!is_float(from)) return bits != 0;
    return sign_op(ScalarOp::abs, from, bits) != 0;
  }
  return with_type(from, [&](auto source) {
    return with_type(to, [&](auto target) { return convert<decltype(source), decltype(target)>(bits); });
  });
}

int64_t bitcast(DType to, int64_t bits) {
  if (is_float(to)) {
    const size_t size = size_of(to);
    return size == 8 ? bits : static_cast<int64_t>(static_cast<uint64_t>(bits) & ((uint64_t{1} << (size * 8)) - 1));
  }
  return with_type(to, [&](auto type) {
    using T = decltype(type);
    if constexpr (std::is_integral_v<typename T::Compute>) return T::put(T::get(bits));
    return bits;
  });
}

}  // namespace

std::optional<int64_t> evaluate(ScalarOp op, DType result, DType operand, std::span<const int64_t> operands,
                                bool fused) {
  switch (op) {
    case ScalarOp::select:
      return operands[0] != 0 ? operands[1] : operands[2];
    case ScalarOp::cast:
      return cast(result, operand, operands[0]);
    case ScalarOp::bitcast:
      return bitcast(result, operands[0]);
    default:
      break;
  }
  if (is_float(operand) && (op == ScalarOp::neg || op == ScalarOp::abs)) return sign_op(op, operand, operands[0]);
  if (operand == DType::boolean && op == ScalarOp::bit_not) return 1 - operands[0];
  return with_type(operand, [&](auto type) -> std::optional<int64_t> {
    using Type = decltype(type);
    if constexpr (std::is_floating_point_v<typename Type::Compute>)
      return float_op<Type>(op, operands, fused);
    else
      return int_op<typename Type::Compute>(op, operands);
  });
}

int compare_best(DType dtype, int64_t a, int64_t b, bool smallest) {
  return with_type(dtype, [&](auto type) {
    using Type = decltype(type);
    const auto x = Type::get(a), y = Type::get(b);
    if constexpr (std::is_floating_point_v<typename Type::Compute>)
      if (std::isnan(x) || std::isnan(y)) return static_cast<int>(std::isnan(x)) - static_cast<int>(std::isnan(y));
    if (x == y) return 0;
    return (x > y) != smallest ? 1 : -1;
  });
}

}  // namespace quartet::reference
