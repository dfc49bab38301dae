// Overflow-checked arithmetic for sizes and extents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace quartet {

template <class T>
constexpr std::optional<T> checked_add(T a, T b) {
  T r;
  if (__builtin_add_overflow(a, b, &r)) return std::nullopt;
  return r;
}
template <class T>
constexpr std::optional<T> checked_mul(T a, T b) {
  T r;
  if (__builtin_mul_overflow(a, b, &r)) return std::nullopt;
  return r;
}
constexpr std::optional<size_t> checked_round_up(size_t value, size_t alignment) {
  const auto sum = checked_add(value, alignment - 1);
  if (!sum) return std::nullopt;
  return *sum / alignment * alignment;
}

}  // namespace quartet
