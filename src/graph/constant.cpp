#include "graph/constant.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/blob.h"
#include "base/half.h"
#include "graph/dims.h"
#include "graph/rounding.h"

namespace quartet::graph {
namespace {

template <class T>
T load(const uint8_t* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

template <class T>
Bytes to_bytes(T value) {
  Bytes bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

// Truncates and saturates, NaN to 0.
template <class T>
T to_integer(double value) {
  if (std::isnan(value)) return 0;
  const double truncated = std::trunc(value);
  const double low = static_cast<double>(std::numeric_limits<T>::min());
  const double beyond = std::ldexp(1.0, std::numeric_limits<T>::digits);  // the first value too high
  if (truncated <= low) return std::numeric_limits<T>::min();
  if (truncated >= beyond) return std::numeric_limits<T>::max();
  return static_cast<T>(truncated);
}

}  // namespace

Digest constant_digest(const TensorType& type, std::span<const uint8_t> bytes) {
  ByteWriter head;
  head.u8(static_cast<uint8_t>(type.dtype));
  head.u64(type.rank());
  for (const IntExpr& dim : type.shape) head.i64(dim.constant().value_or(-1));
  head.digest(digest_of(bytes));
  return digest_of(head.data());
}

Result<Constant> make_constant(TensorType type, std::span<const uint8_t> bytes, std::shared_ptr<const void> owner) {
  const Dims no_symbols({});
  const auto size = type.is_static() ? type.bytes() : std::nullopt;
  if (!is_valid(type.dtype) || !size || type.rank() > kMaxRank)
    return make_error(Code::invalid_argument, "a constant of type %s", no_symbols.text(type).c_str());
  if (*size != bytes.size())
    return make_error(Code::invalid_argument, "a constant of type %s has %zu bytes, wanted %zu",
                      no_symbols.text(type).c_str(), bytes.size(), *size);
  if (type.dtype == DType::boolean)
    for (const uint8_t byte : bytes)
      if (byte > 1) return make_error(Code::invalid_argument, "a bool constant holds the byte %u", unsigned{byte});
  Constant constant{std::move(type), std::move(owner), bytes.data(), bytes.size(), {}};
  constant.digest = constant_digest(constant.type, bytes);
  return constant;
}

Result<Constant> copy_constant(TensorType type, std::span<const uint8_t> bytes) {
  Blob blob(bytes.size());
  if (!bytes.empty()) std::memcpy(blob.data(), bytes.data(), bytes.size());
  auto copy = std::make_shared<const Blob>(std::move(blob));
  const std::span<const uint8_t> view = copy->span();
  return make_constant(std::move(type), view, std::move(copy));
}

Bytes scalar_bytes(DType type, double value) {
  switch (type) {
    case DType::f64:
      return to_bytes(value);
    case DType::f32:
      return to_bytes(static_cast<float>(value));
    case DType::f16:
      return to_bytes(to_f16(value));
    case DType::bf16:
      return to_bytes(to_bf16(value));
    case DType::i64:
      return to_bytes(to_integer<int64_t>(value));
    case DType::i32:
      return to_bytes(to_integer<int32_t>(value));
    case DType::i16:
      return to_bytes(to_integer<int16_t>(value));
    case DType::i8:
      return to_bytes(to_integer<int8_t>(value));
    case DType::u64:
      return to_bytes(to_integer<uint64_t>(value));
    case DType::u32:
      return to_bytes(to_integer<uint32_t>(value));
    case DType::u16:
      return to_bytes(to_integer<uint16_t>(value));
    case DType::u8:
      return to_bytes(to_integer<uint8_t>(value));
    case DType::boolean:
      return to_bytes(static_cast<uint8_t>(value != 0));
    case DType::invalid:
      break;
  }
  return {};
}

Bytes scalar_bytes(DType type, int64_t value) {
  switch (type) {
    case DType::i64:
    case DType::u64:
      return to_bytes(value);
    case DType::i32:
    case DType::u32:
      return to_bytes(static_cast<int32_t>(value));
    case DType::i16:
    case DType::u16:
      return to_bytes(static_cast<int16_t>(value));
    case DType::i8:
    case DType::u8:
      return to_bytes(static_cast<int8_t>(value));
    case DType::boolean:
      return to_bytes(static_cast<uint8_t>(value != 0));
    case DType::f32:
      return to_bytes(static_cast<float>(value));
    case DType::f64:
      return to_bytes(static_cast<double>(value));
    case DType::f16:
      return to_bytes(to_f16(value));
    case DType::bf16:
      return to_bytes(to_bf16(value));
    case DType::invalid:
      break;
  }
  return {};
}

double element_as_double(const Constant& constant, size_t index) {
  const uint8_t* at = constant.data + index * size_of(constant.type.dtype);
  switch (constant.type.dtype) {
    case DType::f64:
      return load<double>(at);
    case DType::f32:
      return static_cast<double>(load<float>(at));
    case DType::f16:
      return static_cast<double>(f16_to_f32(load<uint16_t>(at)));
    case DType::bf16:
      return static_cast<double>(bf16_to_f32(load<uint16_t>(at)));
    case DType::u64:
      return static_cast<double>(load<uint64_t>(at));
    default:
      return static_cast<double>(element_as_int(constant, index));
  }
}

int64_t element_as_int(const Constant& constant, size_t index) {
  const uint8_t* at = constant.data + index * size_of(constant.type.dtype);
  switch (constant.type.dtype) {
    case DType::i64:
    case DType::u64:
      return load<int64_t>(at);
    case DType::i32:
      return load<int32_t>(at);
    case DType::u32:
      return load<uint32_t>(at);
    case DType::i16:
      return load<int16_t>(at);
    case DType::u16:
      return load<uint16_t>(at);
    case DType::i8:
      return load<int8_t>(at);
    case DType::u8:
    case DType::boolean:
      return *at;
    default:
      return 0;
  }
}

bool is_splat(const Constant& constant) {
  const size_t size = size_of(constant.type.dtype);
  if (constant.bytes == 0) return false;
  // Equal to itself shifted by one element.
  return constant.bytes == size || std::memcmp(constant.data, constant.data + size, constant.bytes - size) == 0;
}

}  // namespace quartet::graph
