// The operating system behind one replaceable interface: what the cache, artifact loading and library loading need from
// files, locks, clocks, processes, pages and the loader. Product code takes an `Os&` and passes `real_os()` at the top;
// tests derive from `Os` (or from a forwarding wrapper) and make single calls fail.
//
// Paths are bytes as the system takes them. Failures are statuses that name the call and the path: `not_found` when the
// path, process, library or symbol is absent, `failed_precondition` when something is there already, `out_of_memory`,
// `resource_exhausted` when a given bound is passed or the disk is full, `io` for every other refusal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/blob.h"
#include "base/bytes.h"
#include "base/status.h"

namespace quartet {

enum class FileKind : uint8_t { file, directory, symlink, other };

// A directory entry itself; a symbolic link is not followed.
struct FileInfo {
  FileKind kind = FileKind::other;
  uint64_t size = 0;   // bytes
  uint32_t owner = 0;  // user id
  uint32_t mode = 0;   // permission bits only, e.g. 0600
  uint64_t device = 0, inode = 0;
  int64_t modified_ns = 0;  // since 1970
};

struct FileSystemInfo {
  uint64_t type = 0;      // statfs magic
  const char* name = "";  // "nfs", "fuse", ... for network file systems, else "local"; static storage
  bool network = false;   // byte-range locks and shared mappings cannot be relied on
};

struct ProcessInfo {
  uint64_t start_time = 0;  // clock ticks after boot; with the pid it names one process of this boot
  bool zombie = false;      // has ended, waits to be reaped
};

// A whole file mapped read-only and privately. The bytes are only as stable as the file: map what is replaced by
// rename, never what is rewritten in place.
class FileView {
 public:
  virtual ~FileView() = default;
  virtual std::span<const uint8_t> bytes() const = 0;
};

// An advisory whole-file lock (flock), held until destroyed or until the process ends. It is tied to the file that
// `path` named when the lock was taken, which is checked after taking it.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

enum class LockMode : uint8_t { shared, exclusive };
enum class PageAccess : uint8_t { none, read, read_write, read_execute };

class Os {
 public:
  virtual ~Os() = default;

  // Files and directories.
  virtual Result<FileInfo> file_info(const std::string& path) = 0;
  // The absolute path without symbolic links; every component must exist.
  virtual Result<std::string> real_path(const std::string& path) = 0;
  virtual bool can_write(const std::string& path) = 0;
  virtual Result<Blob> read_file(const std::string& path, uint64_t max_size) = 0;
  virtual Result<std::shared_ptr<const FileView>> map_file(const std::string& path, uint64_t max_size) = 0;
  // Writes a new file beside `path`, syncs it and renames it over `path`: readers see the old or the new bytes.
  virtual Status write_file(const std::string& path, std::span<const uint8_t> bytes, uint32_t mode) = 0;
  // Creates an empty file with exactly `mode`; `failed_precondition` when `path` exists.
  virtual Status create_file(const std::string& path, uint32_t mode) = 0;
  // Creates one directory with exactly `mode`; `failed_precondition` when `path` exists.
  virtual Status make_directory(const std::string& path, uint32_t mode) = 0;
  // Names without "." and "..", in no order.
  virtual Result<std::vector<std::string>> list_directory(const std::string& path) = 0;
  virtual Status rename_file(const std::string& from, const std::string& to) = 0;
  virtual Status remove_file(const std::string& path) = 0;
  virtual Result<FileSystemInfo> file_system(const std::string& path) = 0;
  // Opens or creates `path` (0600, links not followed) and locks it. With `wait` false, a null pointer says that
  // another open file holds the lock, in this process or in another.
  virtual Result<std::unique_ptr<FileLock>> lock_file(const std::string& path, LockMode mode, bool wait) = 0;

  // Clocks, in nanoseconds. The monotonic clock is the same for all processes of one boot.
  virtual int64_t monotonic_ns() = 0;
  virtual int64_t wall_ns() = 0;
  virtual void sleep_ns(int64_t duration) = 0;

  // Processes.
  virtual int64_t process_id() = 0;
  virtual uint32_t effective_user() = 0;
  virtual Result<ProcessInfo> process_info(int64_t pid) = 0;
  // Text that changes at every boot of the machine.
  virtual Result<std::string> boot_id() = 0;
  // Text that names the space in which pids are meaningful; empty when unknown.
  virtual std::string pid_space() = 0;

  // Libraries. Symbols are bound at once and stay local to the library.
  virtual Result<void*> open_library(const std::string& path) = 0;
  virtual Result<void*> library_symbol(void* library, const std::string& name) = 0;
  virtual void close_library(void* library) = 0;

  // Private zeroed pages, readable and writable; `size` is rounded up to whole pages. No page is ever writable and
  // executable at once: write, then change the access.
  virtual Result<void*> map_pages(size_t size) = 0;
  virtual Status protect_pages(void* pages, size_t size, PageAccess access) = 0;
  virtual void unmap_pages(void* pages, size_t size) = 0;
};

// The system this process runs on. Stateless; safe from any thread.
Os& real_os();

// Days since 1970 (UTC) on the system's wall clock.
inline int64_t wall_day(Os& os) { return os.wall_ns() / (86400 * int64_t{1000000000}); }

}  // namespace quartet
