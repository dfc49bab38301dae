// What one process may hold only once.
//
// POSIX record locks belong to the process: a second copy of SQLite that closes a file drops the locks of the first. So
// each cache directory is claimed by a flock on a file named after the pid, which a second copy of this library is
// refused; and a child made by fork never uses the SQLite whose files its parent had open. Both need memory that is as
// wide as the process: the registry in process_claim.cpp, the one mutable global of this folder.
#pragma once

#include <memory>
#include <string>

#include "base/os.h"
#include "base/status.h"

namespace quartet::cache {

class ProcessClaim {
 public:
  // Claims `directory` (absolute, without links) for this copy of the library. Several caches of one copy share the
  // claim. `suffix()` is empty, or "-b" when another copy in this process has the directory's first file. Fails with
  // `failed_precondition` when a third copy asks, with `io` when the lock file cannot be made.
  static Result<std::shared_ptr<ProcessClaim>> take(Os& os, const std::string& directory, const FileInfo& identity);
  ~ProcessClaim();
  ProcessClaim(const ProcessClaim&) = delete;
  ProcessClaim& operator=(const ProcessClaim&) = delete;

  const std::string& suffix() const { return suffix_; }

  // Makes `path` empty with mode 0600 unless it exists. One thread of the process at a time: closing a file that
  // another thread has just opened through SQLite would drop its locks.
  static Status ensure_file(Os& os, const std::string& path);

 private:
  ProcessClaim() = default;
  Os* os_ = nullptr;
  uint64_t device_ = 0, inode_ = 0;
  std::string suffix_;
};

// Held by whoever has SQLite files open.
class SqliteUse {
 public:
  // False in a child whose parent was using SQLite at the fork: its locks and mutexes are not ours.
  static bool begin(Os& os);
  static void end();
};

// Removes lock files of processes that are gone. Returns how many.
size_t sweep_claims(Os& os, const std::string& directory);

}  // namespace quartet::cache
