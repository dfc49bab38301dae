// 128-bit XXH3 digests: keys of the cache, checksums of stored bytes, identities of constants.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace quartet {

struct Digest {
  uint64_t lo = 0, hi = 0;
  auto operator<=>(const Digest&) const = default;
  std::string hex() const;  // 32 lower-case digits, high word first
};

Digest digest_of(std::span<const uint8_t> bytes);
Digest digest_of(const void* data, size_t size);

}  // namespace quartet

template <>
struct std::hash<quartet::Digest> {
  size_t operator()(const quartet::Digest& digest) const noexcept { return static_cast<size_t>(digest.lo); }
};
