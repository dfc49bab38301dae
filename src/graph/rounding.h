// Single rounding into 16-bit floats from types wider than f32: by way of an f32 that is rounded to odd, which keeps
// what the second rounding needs to know.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "base/half.h"

namespace quartet::graph {

// Truncated, with the last bit set if anything was cut off.
inline float to_odd_f32(double value) {
  const float nearest = static_cast<float>(value);
  const double back = static_cast<double>(nearest);
  if (std::isnan(value) || back == value) return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (std::fabs(back) > std::fabs(value)) --bits;
  return std::bit_cast<float>(bits | 1u);
}

inline float to_odd_f32(uint64_t magnitude) {
  const int excess = static_cast<int>(std::bit_width(magnitude)) - 24;
  if (excess <= 0) return static_cast<float>(magnitude);
  const uint64_t kept = magnitude >> excess;
  const uint64_t lost = magnitude & ((uint64_t{1} << excess) - 1);
  return std::ldexp(static_cast<float>(kept | (lost != 0 ? 1u : 0u)), excess);
}

inline float to_odd_f32(int64_t value) {
  return value < 0 ? -to_odd_f32(uint64_t{0} - static_cast<uint64_t>(value)) : to_odd_f32(static_cast<uint64_t>(value));
}

template <class T>
uint16_t to_f16(T value) {
  return f32_to_f16(to_odd_f32(value));
}
template <class T>
uint16_t to_bf16(T value) {
  return f32_to_bf16(to_odd_f32(value));
}

}  // namespace quartet::graph
