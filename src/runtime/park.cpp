#include "runtime/park.h"

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#endif

namespace quartet::runtime {

#if defined(__linux__)

static_assert(sizeof(std::atomic<uint32_t>) == 4 && std::atomic<uint32_t>::is_always_lock_free);

void park(std::atomic<uint32_t>& word, uint32_t expected) {
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}
void unpark(std::atomic<uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

#else

void park(std::atomic<uint32_t>& word, uint32_t expected) { word.wait(expected); }
void unpark(std::atomic<uint32_t>& word) { word.notify_all(); }

#endif

}  // namespace quartet::runtime
