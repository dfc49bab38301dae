#include "graph/text_numbers.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/half.h"
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
void store(T value, Bytes& out) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

template <class T>
std::string number_text(T value) {
  std::array<char, 64> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return {buffer.data(), end};
}

// The quiet NaN of each type, which "nan" stands for.
uint64_t usual_nan(DType type) {
  switch (type) {
    case DType::f64:
      return 0x7ff8000000000000u;
    case DType::f32:
      return 0x7fc00000u;
    case DType::f16:
      return 0x7e00u;
    default:
      return 0x7fc0u;
  }
}

template <class Bits, class Number>
std::string float_text(DType type, Bits bits, Number value) {
  if (std::isnan(value)) {
    if (bits == usual_nan(type)) return "nan";
    std::array<char, 24> buffer;
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), bits, 16).ptr;
    return "bits(0x" + std::string(buffer.data(), end) + ")";
  }
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return number_text(value);
}

template <class T>
bool parse_number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

template <class T>
bool parse_integer(std::string_view text, Bytes& out) {
  T value{};
  if (!parse_number(text, value)) return false;
  store(value, out);
  return true;
}

void store_float(DType type, double value, Bytes& out) {
  if (type == DType::f64) store(value, out);
  if (type == DType::f16) store(to_f16(value), out);
  if (type == DType::bf16) store(to_bf16(value), out);
}

bool store_bits(DType type, std::string_view text, Bytes& out) {
  uint64_t bits = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bits, 16);
  const size_t size = size_of(type);
  if (error != std::errc() || end != text.data() + text.size() || (size < 8 && bits >> (8 * size) != 0)) return false;
  const auto* bytes = reinterpret_cast<const uint8_t*>(&bits);
  out.insert(out.end(), bytes, bytes + size);
  return true;
}

bool parse_float(DType type, std::string_view text, Bytes& out) {
  constexpr std::string_view kBits = "bits(0x";
  if (text.starts_with(kBits) && text.ends_with(")"))
    return store_bits(type, text.substr(kBits.size(), text.size() - kBits.size() - 1), out);
  if (text == "nan") {
    const uint64_t bits = usual_nan(type);
    const auto* bytes = reinterpret_cast<const uint8_t*>(&bits);
    out.insert(out.end(), bytes, bytes + size_of(type));
    return true;
  }
  if (text == "inf" || text == "-inf") {
    const double infinity = text == "inf" ? HUGE_VAL : -HUGE_VAL;
    if (type == DType::f32)
      store(static_cast<float>(infinity), out);
    else
      store_float(type, infinity, out);
    return true;
  }
  if (text.empty() || text.find_first_not_of("0123456789+-.eE") != std::string_view::npos) return false;
  if (type == DType::f32) {
    float value = 0;
    if (!parse_number(text, value)) return false;
    store(value, out);
    return true;
  }
  double value = 0;
  if (!parse_number(text, value)) return false;
  store_float(type, value, out);
  return true;
}

}  // namespace

std::string element_text(DType type, const uint8_t* element) {
  switch (type) {
    case DType::f64:
      return float_text(type, load<uint64_t>(element), load<double>(element));
    case DType::f32:
      return float_text(type, load<uint32_t>(element), load<float>(element));
    case DType::f16:
      return float_text(type, load<uint16_t>(element), f16_to_f32(load<uint16_t>(element)));
    case DType::bf16:
      return float_text(type, load<uint16_t>(element), bf16_to_f32(load<uint16_t>(element)));
    case DType::i64:
      return number_text(load<int64_t>(element));
    case DType::i32:
      return number_text(load<int32_t>(element));
    case DType::i16:
      return number_text(load<int16_t>(element));
    case DType::i8:
      return number_text(static_cast<int>(load<int8_t>(element)));
    case DType::u64:
      return number_text(load<uint64_t>(element));
    case DType::u32:
      return number_text(load<uint32_t>(element));
    case DType::u16:
      return number_text(load<uint16_t>(element));
    case DType::u8:
      return number_text(static_cast<int>(*element));
    case DType::boolean:
      return *element ? "true" : "false";
    case DType::invalid:
      break;
  }
  return "";
}

bool parse_element(DType type, std::string_view text, Bytes& out) {
  switch (type) {
    case DType::f64:
    case DType::f32:
    case DType::f16:
    case DType::bf16:
      return parse_float(type, text, out);
    case DType::i64:
      return parse_integer<int64_t>(text, out);
    case DType::i32:
      return parse_integer<int32_t>(text, out);
    case DType::i16:
      return parse_integer<int16_t>(text, out);
    case DType::i8:
      return parse_integer<int8_t>(text, out);
    case DType::u64:
      return parse_integer<uint64_t>(text, out);
    case DType::u32:
      return parse_integer<uint32_t>(text, out);
    case DType::u16:
      return parse_integer<uint16_t>(text, out);
    case DType::u8:
      return parse_integer<uint8_t>(text, out);
    case DType::boolean:
      if (text != "true" && text != "false" && text != "0" && text != "1") return false;
      out.push_back(text == "true" || text == "1" ? 1 : 0);
      return true;
    case DType::invalid:
      break;
  }
  return false;
}

}  // namespace quartet::graph
