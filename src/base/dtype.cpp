#include "base/dtype.h"

#include <iterator>

namespace quartet {
namespace {
constexpr const char* kNames[] = {"invalid", "f64", "f32", "f16", "bf16", "i64", "i32",
                                  "i16",     "i8",  "u64", "u32", "u16",  "u8",  "bool"};
static_assert(std::size(kNames) == kDTypeCount);
}  // namespace

const char* dtype_name(DType type) { return is_valid(type) ? kNames[static_cast<int>(type)] : kNames[0]; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (int i = 1; i < kDTypeCount; ++i)
    if (name == kNames[i]) return static_cast<DType>(i);
  return std::nullopt;
}

}  // namespace quartet
