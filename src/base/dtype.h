// Element types of tensors and scalars.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace quartet {

// The numbers are the ABI's QUARTET_DTYPE_* values and part of serialized forms; append only.
enum class DType : uint8_t {
  invalid = 0,
  f64 = 1,
  f32 = 2,
  f16 = 3,
  bf16 = 4,
  i64 = 5,
  i32 = 6,
  i16 = 7,
  i8 = 8,
  u64 = 9,
  u32 = 10,
  u16 = 11,
  u8 = 12,
  boolean = 13,  // one byte, 0 or 1; spelt "bool"
};
inline constexpr int kDTypeCount = 14;  // including invalid

constexpr bool is_valid(DType type) { return type > DType::invalid && static_cast<int>(type) < kDTypeCount; }
constexpr bool is_float(DType type) { return type >= DType::f64 && type <= DType::bf16; }
constexpr bool is_signed_int(DType type) { return type >= DType::i64 && type <= DType::i8; }
constexpr bool is_unsigned_int(DType type) { return type >= DType::u64 && type <= DType::u8; }
constexpr bool is_int(DType type) { return type >= DType::i64 && type <= DType::u8; }

// Bytes of one element; 0 for invalid.
constexpr size_t size_of(DType type) {
  switch (type) {
    case DType::f64:
    case DType::i64:
    case DType::u64:
      return 8;
    case DType::f32:
    case DType::i32:
    case DType::u32:
      return 4;
    case DType::f16:
    case DType::bf16:
    case DType::i16:
    case DType::u16:
      return 2;
    case DType::i8:
    case DType::u8:
    case DType::boolean:
      return 1;
    case DType::invalid:
      break;
  }
  return 0;
}

// "f32", "bool", ...; "invalid" for anything else. Static storage.
const char* dtype_name(DType type);
std::optional<DType> dtype_from_name(std::string_view name);

}  // namespace quartet
