// The kernel cache: what was compiled once comes back as bytes, from memory or from a SQLite file, in this process or
// in a later one. It can only help: every failure is a miss, a counter and at most one log line, never an error of a
// compile.
//
// A key is a run of bytes that states everything its payload depends on; the cache compares keys whole and never
// interprets them. All functions are safe from any thread. In a child made by fork the cache keeps working from memory
// alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/os.h"
#include "base/status.h"
#include "cache/stats.h"

namespace quartet::cache {

// What a payload is. Part of the look-up and stored on disk; append only.
enum class Kind : uint32_t { program = 1, kernel = 2, tuning = 3, compiler_memo = 4, prepared = 5 };
// "program", ...; "other" for a number this version does not know. Static storage.
const char* kind_name(Kind kind);

enum class Level : uint8_t { memory = 0, bundle = 1, disk = 2, remote = 3 };
enum class LogLevel : uint8_t { info = 0, warning = 1 };

struct CacheOptions {
  std::string path;                                     // directory, made if missing (0700); empty: memory alone
  uint64_t max_bytes = uint64_t{512} << 20;             // bound of the file; passing it prunes to 80 %
  uint64_t memory_bytes = uint64_t{64} << 20;           // payloads and keys held in memory; 0: none
  bool read_only = false;                               // use what is there, change nothing (its lock files apart)
  bool allow_network_fs = false;                        // trust a network file system's locks
  std::function<void(LogLevel, std::string_view)> log;  // may be called from any thread; must not call back
};

// What tests replace.
struct CacheSeams {
  Os* os = nullptr;                                         // null: the real system
  Digest (*index)(std::span<const uint8_t> key) = nullptr;  // null: XXH3-128 of the key
  const char* sqlite_vfs = nullptr;                         // null: SQLite's default
};

struct Hit {
  std::shared_ptr<const Bytes> payload;
  Level level = Level::memory;
  uint64_t cost_us = 0;  // what making the payload cost when it was put
};

struct EntryInfo {
  Digest key;  // index of the key
  Kind kind = Kind::program;
  uint64_t size = 0;  // key and payload, bytes
  uint64_t cost_us = 0;
  uint64_t hits = 0;        // as recorded, at most about once an hour and process
  int64_t created_day = 0;  // days since 1970
  int64_t used_hour = 0;    // hours since 1970
  std::string env;          // text given to put
};

struct VerifyReport {
  uint64_t checked = 0, damaged = 0, removed = 0;
  bool file_sound = true;    // SQLite's own check of the file
  std::string file_problem;  // its first finding
};

// The right to make one payload while other processes wait for it, or the knowledge that another process is at it.
// Given back when destroyed; must not outlive its cache. Correctness never depends on it.
class Lease {
 public:
  enum class State : uint8_t {
    none,   // there is no lease for this key: make the payload
    owner,  // make the payload, put it, then let the lease go
    other,  // another process makes it, or has just made it: `Cache::wait`
  };
  Lease() = default;
  Lease(Lease&& other) noexcept { *this = std::move(other); }
  Lease& operator=(Lease&& other) noexcept;
  ~Lease() { release(); }

  State state() const { return state_; }
  // Idempotent. The release follows this owner's earlier puts to the disk, so that waiters find the payload.
  void release();

 private:
  friend class Core;
  State state_ = State::none;
  class Core* core_ = nullptr;
  Digest index_;
  Kind kind_ = Kind::program;
  std::shared_ptr<const Bytes> key_;
  uint64_t expected_cost_us_ = 0;
};

class Cache {
 public:
  // Opens or makes the directory and its file. Never fails: what cannot be used is reported through `log` and left out.
  static std::unique_ptr<Cache> create(CacheOptions options, CacheSeams seams = {});
  // Gives queued puts up to two seconds to reach the disk.
  ~Cache();
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  std::optional<Hit> get(std::span<const uint8_t> key, Kind kind);

  // Remembers the payload at once in memory, and on disk through a background thread. A full queue drops the disk's
  // part. `env` is a short text naming what outlives the payload (driver, compiler): entries of an env that is no
  // longer met are pruned first. `cost_us` is what making the payload cost.
  void put(std::span<const uint8_t> key, Kind kind, std::string_view env, std::shared_ptr<const Bytes> payload,
           uint64_t cost_us);
  // Waits until all puts so far are on disk or given up; false when `timeout_ms` passes first.
  bool flush(uint64_t timeout_ms);

  // Deletes an entry whose payload proved unusable, and refuses that same payload from now on. Returns before the disk
  // is changed; no later `get` of this cache sees the entry.
  void mark_bad(std::span<const uint8_t> key, Kind kind, std::string_view reason);

  // After a miss: the cross-process single flight. `none` at once where it cannot pay: no writable disk, or a kind
  // other than program that is expected to cost under 20 ms.
  Lease acquire_lease(std::span<const uint8_t> key, Kind kind, uint64_t expected_cost_us);
  // Waits for another process's payload, at most twice the expected cost and 10 s, less when the owner is seen to be
  // dead or `cancelled` says so. Nothing means: make it yourself.
  std::optional<Hit> wait(const Lease& lease, const std::function<bool()>& cancelled = {});

  Stats stats();
  // Entries on disk, most recently used first.
  Result<std::vector<EntryInfo>> list(uint64_t limit = UINT64_MAX);
  // Reads and checks every entry, removing damaged ones unless read-only. `progress(done, total)` returns false to
  // stop.
  Result<VerifyReport> verify(const std::function<bool(uint64_t, uint64_t)>& progress = {});
  // Evicts until the file's used bytes are within `max_bytes` and gives free pages back to the file system. Returns the
  // number of entries removed.
  Result<uint64_t> prune(uint64_t max_bytes);
  // Removes every entry, from memory, from the queue and from disk.
  Status clear();

 private:
  Cache() = default;
  class Core& core();

  CacheOptions options_;
  CacheSeams seams_;
  std::atomic<class Core*> core_{nullptr};
};

}  // namespace quartet::cache
