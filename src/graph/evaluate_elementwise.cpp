// Elementwise ops and order-free reductions on constants. Each element type has a class that loads its elements into
// the type they are computed in, computes, and rounds back.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/half.h"
#include "graph/constant.h"
#include "graph/evaluate_rules.h"
#include "graph/rounding.h"

namespace quartet::graph {
namespace {

template <class T>
T load(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
void append(T value, Bytes& out) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

// `Value` is what is computed in.
template <class T>
struct Native {
  using Value = T;
  static Value get(const uint8_t* at) { return load<T>(at); }
  static void put(Value value, Bytes& out) { append(value, out); }
};
struct Half {
  using Value = float;
  static Value get(const uint8_t* at) { return f16_to_f32(load<uint16_t>(at)); }
  static void put(Value value, Bytes& out) { append(f32_to_f16(value), out); }
};
struct BrainHalf {
  using Value = float;
  static Value get(const uint8_t* at) { return bf16_to_f32(load<uint16_t>(at)); }
  static void put(Value value, Bytes& out) { append(f32_to_bf16(value), out); }
};

// Calls `use` with the class of an element type. bool is computed as u8.
template <class Use>
auto with_type(DType type, const Use& use) -> decltype(use(Native<float>{})) {
  switch (type) {
    case DType::f64:
      return use(Native<double>{});
    case DType::f32:
      return use(Native<float>{});
    case DType::f16:
      return use(Half{});
    case DType::bf16:
      return use(BrainHalf{});
    case DType::i64:
      return use(Native<int64_t>{});
    case DType::i32:
      return use(Native<int32_t>{});
    case DType::i16:
      return use(Native<int16_t>{});
    case DType::i8:
      return use(Native<int8_t>{});
    case DType::u64:
      return use(Native<uint64_t>{});
    case DType::u32:
      return use(Native<uint32_t>{});
    case DType::u16:
      return use(Native<uint16_t>{});
    case DType::u8:
    case DType::boolean:
      return use(Native<uint8_t>{});
    case DType::invalid:
      break;
  }
  return {};
}

// Wrapping integer arithmetic, through an unsigned type wide enough not to promote to int.
template <class V, class F>
V wrapped(V a, V b, const F& f) {
  using U = std::conditional_t<sizeof(V) < 8, uint32_t, uint64_t>;
  return static_cast<V>(f(static_cast<U>(a), static_cast<U>(b)));
}

template <class V>
std::optional<V> integer_binary(ScalarOp op, V a, V b) {
  using U = std::make_unsigned_t<V>;
  const bool overflows = std::is_signed_v<V> && a == std::numeric_limits<V>::min() && b == static_cast<V>(-1);
  const U bits = sizeof(V) * 8;
  switch (op) {
    case ScalarOp::add:
      return wrapped(a, b, [](auto x, auto y) { return x + y; });
    case ScalarOp::sub:
      return wrapped(a, b, [](auto x, auto y) { return x - y; });
    case ScalarOp::mul:
      return wrapped(a, b, [](auto x, auto y) { return x * y; });
    case ScalarOp::div:
      return b == 0 ? V{0} : overflows ? a : static_cast<V>(a / b);
    case ScalarOp::rem:
      return b == 0 ? a : overflows ? V{0} : static_cast<V>(a % b);
    case ScalarOp::min:
      return std::min(a, b);
    case ScalarOp::max:
      return std::max(a, b);
    case ScalarOp::bit_and:
      return static_cast<V>(a & b);
    case ScalarOp::bit_or:
      return static_cast<V>(a | b);
    case ScalarOp::bit_xor:
      return static_cast<V>(a ^ b);
    case ScalarOp::shift_left:
      return static_cast<U>(b) >= bits ? V{0} : wrapped(a, b, [](auto x, auto y) { return x << y; });
    case ScalarOp::shift_right:
      if (static_cast<U>(b) >= bits) return static_cast<V>(a < V{0} ? -1 : 0);
      return static_cast<V>(a >> b);
    default:
      return std::nullopt;
  }
}

template <class V>
V float_min(V a, V b) {
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

template <class V>
std::optional<V> float_binary(ScalarOp op, V a, V b) {
  V r{};
  switch (op) {
    case ScalarOp::add:
      r = a + b;
      break;
    case ScalarOp::sub:
      r = a - b;
      break;
    case ScalarOp::mul:
      r = a * b;
      break;
    case ScalarOp::div:
      r = a / b;
      break;
    case ScalarOp::rem:
      r = std::fmod(a, b);
      break;
    case ScalarOp::min:
      r = float_min(a, b);
      break;
    case ScalarOp::max:
      r = -float_min(-a, -b);
      break;
    default:
      return std::nullopt;
  }
  if (std::isnan(r) || std::isnan(a) || std::isnan(b)) return std::nullopt;
  return r;
}

template <class V>
std::optional<V> binary(ScalarOp op, V a, V b) {
  if constexpr (std::is_floating_point_v<V>)
    return float_binary(op, a, b);
  else
    return integer_binary(op, a, b);
}

template <class V>
std::optional<V> unary(ScalarOp op, V a, bool boolean) {
  if constexpr (std::is_floating_point_v<V>) {
    if (op == ScalarOp::neg) return -a;
    if (op == ScalarOp::abs) return std::fabs(a);
    V r{};
    switch (op) {
      case ScalarOp::sqrt:
        r = std::sqrt(a);
        break;
      case ScalarOp::floor:
        r = std::floor(a);
        break;
      case ScalarOp::ceil:
        r = std::ceil(a);
        break;
      case ScalarOp::trunc:
        r = std::trunc(a);
        break;
      case ScalarOp::round_even:
        r = std::nearbyint(a);
        break;
      default:
        return std::nullopt;
    }
    if (std::isnan(r)) return std::nullopt;
    return r;
  } else {
    switch (op) {
      case ScalarOp::neg:
        return wrapped(V{0}, a, [](auto x, auto y) { return x - y; });
      case ScalarOp::abs:
        return a < V{0} ? wrapped(V{0}, a, [](auto x, auto y) { return x - y; }) : a;
      case ScalarOp::bit_not:
        return boolean ? static_cast<V>(a == V{0}) : static_cast<V>(~a);
      default:
        return std::nullopt;
    }
  }
}

template <class V>
bool compare(ScalarOp op, V a, V b) {
  switch (op) {
    case ScalarOp::eq:
      return a == b;
    case ScalarOp::ne:
      return a != b;
    case ScalarOp::lt:
      return a < b;
    default:
      return a <= b;
  }
}

// Strides of an operand over the result's axes, 0 where it is repeated.
std::vector<int64_t> broadcast_strides(const TensorType& operand, size_t rank) {
  const auto extents = extents_of(operand);
  const auto dense = dense_strides(extents);
  std::vector<int64_t> strides(rank, 0);
  for (size_t i = 0; i < extents.size(); ++i)
    if (extents[i] != 1) strides[rank - extents.size() + i] = dense[i];
  return strides;
}

template <class T>
constexpr DType kIntegerType = sizeof(T) == 8   ? (std::is_signed_v<T> ? DType::i64 : DType::u64)
                               : sizeof(T) == 4 ? (std::is_signed_v<T> ? DType::i32 : DType::u32)
                               : sizeof(T) == 2 ? (std::is_signed_v<T> ? DType::i16 : DType::u16)
                                                : (std::is_signed_v<T> ? DType::i8 : DType::u8);

template <class From, class To>
std::optional<typename To::Value> cast_value(typename From::Value value) {
  using F = typename From::Value;
  using T = typename To::Value;
  if constexpr (std::is_floating_point_v<F> && std::is_floating_point_v<T>) {
    if (std::isnan(value) && !std::is_same_v<From, To>) return std::nullopt;
    return static_cast<T>(value);
  } else if constexpr (std::is_floating_point_v<F>) {
    return load<T>(scalar_bytes(kIntegerType<T>, static_cast<double>(value)).data());
  } else {
    return static_cast<T>(value);
  }
}

// Into the 16-bit floats from what f32 cannot hold, rounded once.
template <class From, class To>
bool put_cast(typename From::Value value, DType to, Bytes& out) {
  using F = typename From::Value;
  if (to == DType::boolean) {
    out.push_back(value != F{0} ? 1 : 0);
    return true;
  }
  if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BrainHalf>) {
    if (std::is_floating_point_v<F> && std::isnan(static_cast<double>(value)) && !std::is_same_v<From, To>)
      return false;
    const auto wide = [value] {
      if constexpr (std::is_floating_point_v<F>)
        return static_cast<double>(value);
      else if constexpr (std::is_signed_v<F>)
        return static_cast<int64_t>(value);
      else
        return static_cast<uint64_t>(value);
    }();
    append(std::is_same_v<To, Half> ? to_f16(wide) : to_bf16(wide), out);
    return true;
  } else {
    const auto result = cast_value<From, To>(value);
    if (result) To::put(*result, out);
    return result.has_value();
  }
}

std::optional<Bytes> cast(const Constant& from, DType to) {
  const size_t size = size_of(from.type.dtype), count = from.bytes / size;
  Bytes out;
  const bool done = with_type(from.type.dtype, [&](auto source) -> bool {
    return with_type(to, [&](auto target) -> bool {
      for (size_t i = 0; i < count; ++i) {
        using From = decltype(source);
        if (!put_cast<From, decltype(target)>(From::get(from.data + i * size), to, out)) return false;
      }
      return true;
    });
  });
  return done ? std::optional(std::move(out)) : std::nullopt;
}

Bytes select(std::span<const Constant* const> operands, const TensorType& result) {
  const size_t size = size_of(result.dtype);
  Walk walk(extents_of(result),
            {broadcast_strides(operands[0]->type, result.rank()), broadcast_strides(operands[1]->type, result.rank()),
             broadcast_strides(operands[2]->type, result.rank())});
  Bytes out;
  for (size_t i = 0; i < walk.points(); ++i, walk.next()) {
    const size_t which = operands[0]->data[walk.offset(0)] != 0 ? 1 : 2;
    const uint8_t* at = operands[which]->data + static_cast<size_t>(walk.offset(which)) * size;
    out.insert(out.end(), at, at + size);
  }
  return out;
}

template <class Type>
bool map_unary(ScalarOp op, const Constant& a, bool boolean, Bytes& out) {
  const size_t size = size_of(a.type.dtype), count = a.bytes / size;
  for (size_t i = 0; i < count; ++i) {
    const auto value = unary(op, Type::get(a.data + i * size), boolean);
    if (!value) return false;
    Type::put(*value, out);
  }
  return true;
}

template <class Type>
bool map_binary(ScalarOp op, const Constant& a, const Constant& b, const TensorType& result, Bytes& out) {
  const size_t size = size_of(a.type.dtype);
  Walk walk(extents_of(result), {broadcast_strides(a.type, result.rank()), broadcast_strides(b.type, result.rank())});
  for (size_t i = 0; i < walk.points(); ++i, walk.next()) {
    const auto x = Type::get(a.data + static_cast<size_t>(walk.offset(0)) * size);
    const auto y = Type::get(b.data + static_cast<size_t>(walk.offset(1)) * size);
    if (is_comparison(op)) {
      out.push_back(compare(op, x, y) ? 1 : 0);
      continue;
    }
    const auto value = binary(op, x, y);
    if (!value) return false;
    Type::put(*value, out);
  }
  return true;
}

// The start and the step of a reduction whose order does not matter for this type.
std::optional<ScalarOp> reduction_step(OpCode code, DType type) {
  const bool floating = is_float(type);
  switch (code) {
    case OpCode::reduce_sum:
      return floating ? std::nullopt : std::optional(ScalarOp::add);
    case OpCode::reduce_prod:
      return floating ? std::nullopt : std::optional(ScalarOp::mul);
    case OpCode::reduce_max:
      return ScalarOp::max;
    case OpCode::reduce_min:
      return ScalarOp::min;
    case OpCode::reduce_all:
      return ScalarOp::bit_and;
    case OpCode::reduce_any:
      return ScalarOp::bit_or;
    default:
      return std::nullopt;
  }
}

template <class V>
V identity_of(OpCode code) {
  using Limits = std::numeric_limits<V>;
  switch (code) {
    case OpCode::reduce_max:
      return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    case OpCode::reduce_min:
      return Limits::has_infinity ? Limits::infinity() : Limits::max();
    case OpCode::reduce_prod:
    case OpCode::reduce_all:
      return V{1};
    default:
      return V{0};
  }
}

template <class Type>
bool reduce(const Op& op, ScalarOp step, const Constant& operand, const TensorType& result, Bytes& out) {
  using V = typename Type::Value;
  const auto& axes = *attr_ints(op, AttrKey::axes);
  const auto extents = extents_of(operand.type);
  // Where each operand element goes in the result: dense strides over the axes that stay.
  std::vector<int64_t> strides(extents.size(), 0);
  int64_t stride = 1;
  for (size_t i = extents.size(); i-- > 0;) {
    if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end()) continue;
    strides[i] = stride;
    stride *= extents[i];
  }
  std::vector<V> states(*result.bytes() / size_of(result.dtype), identity_of<V>(op.code));
  Walk walk(extents, {strides});
  const size_t size = size_of(operand.type.dtype);
  for (size_t i = 0; i < walk.points(); ++i, walk.next()) {
    V& state = states[static_cast<size_t>(walk.offset(0))];
    const auto value = binary(step, state, Type::get(operand.data + i * size));
    if (!value) return false;
    state = *value;
  }
  for (const V state : states) Type::put(state, out);
  return true;
}

}  // namespace

std::optional<Bytes> evaluate_elementwise(const Op& op, std::span<const Constant* const> operands,
                                          const TensorType& result) {
  const ScalarOp scalar = *op_info(op.code).scalar;
  if (scalar == ScalarOp::cast) return cast(*operands[0], result.dtype);
  if (scalar == ScalarOp::select) return select(operands, result);
  const DType type = operands[0]->type.dtype;
  Bytes out;
  const bool done = with_type(type, [&](auto element) -> bool {
    using Type = decltype(element);
    if (operands.size() == 1) return map_unary<Type>(scalar, *operands[0], type == DType::boolean, out);
    return map_binary<Type>(scalar, *operands[0], *operands[1], result, out);
  });
  return done ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<Bytes> evaluate_reduction(const Op& op, const Constant& operand, const TensorType& result) {
  const auto step = reduction_step(op.code, operand.type.dtype);
  if (!step) return std::nullopt;
  Bytes out;
  const bool done = with_type(operand.type.dtype, [&](auto element) -> bool {
    return reduce<decltype(element)>(op, *step, operand, result, out);
  });
  return done ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace quartet::graph
