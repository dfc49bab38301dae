// Putting a thread to sleep on a word of memory.
#pragma once

#include <atomic>
#include <cstdint>

namespace quartet::runtime {

// Sleeps while `word` holds `expected`; may return early, so callers look again.
void park(std::atomic<uint32_t>& word, uint32_t expected);
// Wakes every thread asleep on `word`.
void unpark(std::atomic<uint32_t>& word);
// Tells the processor that this thread spins.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace quartet::runtime
