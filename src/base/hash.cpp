#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/status.h"

namespace quartet {

std::string Digest::hex() const {
  return format("%016llx%016llx", static_cast<unsigned long long>(hi), static_cast<unsigned long long>(lo));
}

Digest digest_of(const void* data, size_t size) {
  const XXH128_hash_t hash = XXH3_128bits(data, size);
  return {hash.low64, hash.high64};
}

Digest digest_of(std::span<const uint8_t> bytes) { return digest_of(bytes.data(), bytes.size()); }

}  // namespace quartet
