// SQLite's own way to the disk, failing on demand: the n-th call of any kind answers with an error.
#pragma once

#include <sqlite3.h>

#include <atomic>
#include <cstdint>

namespace quartet::cache::test {

struct VfsFaults {
  std::atomic<int64_t> fail_at{0};  // 0: none
  std::atomic<bool> forever{false};
  std::atomic<int64_t> calls{0};
  std::atomic<bool> writes_only{false};  // count and fail writing, syncing and truncating alone
  std::atomic<bool> reads_only{false};   // count and fail reading alone
  // What it fails with: SQLITE_IOERR; SQLITE_FULL, when half of a write happens; SQLITE_CORRUPT, given by reading.
  std::atomic<int> code{SQLITE_IOERR};
  void reset() { fail_at = 0, forever = false, calls = 0, writes_only = reads_only = false, code = SQLITE_IOERR; }
};

// One for the process; its name is "quartet-faulty". Registered by the first call.
VfsFaults& vfs_faults();
inline constexpr const char* kFaultyVfs = "quartet-faulty";

// SQLite's allocations, failing on demand. To be called before anything uses SQLite.
struct MemoryFaults {
  std::atomic<int64_t> fail_at{0};  // 0: none
  std::atomic<bool> forever{false};
  std::atomic<int64_t> calls{0};
};
MemoryFaults& memory_faults();

}  // namespace quartet::cache::test
