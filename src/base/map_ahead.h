#pragma once

#include <cstddef>

namespace quartet {

// Maps the whole pages inside memory that is about to be written, all in one go: a fault for each costs more than
// filling it. Advice only, for 64 KiB and more; the system may be older than it.
void map_ahead(void* memory, size_t size);

}  // namespace quartet
