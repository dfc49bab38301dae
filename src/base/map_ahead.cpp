#include "base/map_ahead.h"

#include <sys/mman.h>

#include <cstdint>

namespace quartet {

void map_ahead(void* memory, size_t size) {
#ifdef MADV_POPULATE_WRITE
  constexpr size_t kWorthWhile = size_t{64} << 10;
  constexpr uintptr_t kPage = 4096;
  if (size < kWorthWhile) return;
  const auto first = (reinterpret_cast<uintptr_t>(memory) + kPage - 1) / kPage * kPage;
  const auto last = (reinterpret_cast<uintptr_t>(memory) + size) / kPage * kPage;
  (void)::madvise(reinterpret_cast<void*>(first), last - first, MADV_POPULATE_WRITE);
#else
  (void)memory, (void)size;
#endif
}

}  // namespace quartet
