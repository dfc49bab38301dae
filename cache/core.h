// One cache in one process: the levels together. `Cache` owns one, and in a forked child a second that has memory
// alone.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "cache/cache.h"
#include "cache/lease.h"
#include "cache/memory_level.h"
#include "cache/reporter.h"
#include "cache/store.h"
#include "cache/writer.h"

namespace quartet::cache {

class Core {
 public:
  // `forked`: stand in for a parent's core, from memory alone.
  Core(const CacheOptions& options, const CacheSeams& seams, bool forked);
  // Not to be called in a child of the process that made it: the files are the parent's.
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  bool in_own_process() const { return os_.process_id() == pid_; }

  std::optional<Hit> get(std::span<const uint8_t> key, Kind kind);
  void put(std::span<const uint8_t> key, Kind kind, std::string_view env, std::shared_ptr<const Bytes> payload,
           uint64_t cost_us);
  bool flush(uint64_t timeout_ms) { return !writer_ || writer_->flush(timeout_ms); }
  void mark_bad(std::span<const uint8_t> key, Kind kind, std::string_view reason);

  Lease acquire_lease(std::span<const uint8_t> key, Kind kind, uint64_t expected_cost_us);
  std::optional<Hit> wait(const Lease& lease, const std::function<bool()>& cancelled);
  void release(const Lease& lease);

  Stats stats();
  Result<std::vector<EntryInfo>> list(uint64_t limit);
  Result<VerifyReport> verify(const std::function<bool(uint64_t, uint64_t)>& progress);
  Result<uint64_t> prune(uint64_t max_bytes);
  Status clear();

 private:
  EntryId id_of(std::span<const uint8_t> key, Kind kind) const;
  void open_disk();
  std::optional<Hit> read_disk(const EntryId& id, std::span<const uint8_t> key);
  void note_use(int64_t row);
  void write_stamps_if_due();
  void write_stamps_now(Connection& connection, bool closing);
  bool is_bad(const EntryId& id);
  void on_disk_change(const EntryId& id, int64_t row, int64_t hour);
  const LeaseOwner* owner();
  // A connection for maintenance, or why there is none.
  Result<Store::Loan> borrow_for(Side side, const char* what);
  Status failed(Connection& connection, int rc, Side side, const char* what);
  int64_t hour() const { return os_.wall_ns() / (int64_t{3600} * 1000000000); }

  const CacheOptions options_;
  const CacheSeams seams_;
  Os& os_;
  const int64_t pid_;
  Counters counters_;
  Reporter report_;
  MemoryLevel memory_;
  std::string no_disk_reason_;
  bool uses_sqlite_ = false;
  std::unique_ptr<Store> store_;    // null without a disk level
  std::unique_ptr<Writer> writer_;  // null without a writable one

  std::mutex stamps_mutex_;
  std::unordered_map<int64_t, uint64_t> stamps_;  // row -> hits since the last stamp
  std::atomic<int64_t> stamps_since_ns_{0};       // when the oldest was noted; 0: none

  std::mutex bad_mutex_;
  std::unordered_map<EntryId, uint64_t, EntryIdHash> bad_;  // marked bad; removals that are still to come
  std::atomic<uint64_t> bad_count_{0}, bad_epoch_{0};

  std::mutex owner_mutex_;
  std::optional<LeaseOwner> owner_;
};

}  // namespace quartet::cache
