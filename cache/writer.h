// The one background thread that changes the disk: puts, removals, lease releases and renewals, pruning. It starts with
// the first of these, so that a process that only reads has no thread of ours.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cache/lease.h"
#include "cache/memory_level.h"
#include "cache/records.h"
#include "cache/store.h"

namespace quartet::cache {

class Writer {
 public:
  struct Config {
    Os* os = nullptr;
    Store* store = nullptr;
    Counters* counters = nullptr;
    Reporter* report = nullptr;
    uint64_t max_bytes = 0;  // of the file
    std::string directory;   // whose stale claims are swept
    // The disk now has, or no longer has, the entry. Row 0: removed. Called without any lock of the writer.
    std::function<void(const EntryId&, int64_t row, int64_t hour)> on_change;
  };
  explicit Writer(Config config) : config_(std::move(config)) {}
  ~Writer() { close(0); }

  // False when the queue is full or no thread can be had: the put is dropped.
  bool put(NewEntry entry);
  void remove_bad(const EntryId& id, std::string reason);
  void remove_damaged(int64_t row, const Digest& sum);
  // Renews the lease until it is released; the release follows everything queued before it.
  void hold_lease(const EntryId& id, const LeaseOwner& self);
  void release_lease(const EntryId& id);

  bool flush(uint64_t timeout_ms);
  // Forgets queued puts and waits for the job in hand, boundedly.
  void discard_puts();
  // Works off the queue for at most `timeout_ms`, drops the rest, ends the thread. No job is taken afterwards.
  void close(uint64_t timeout_ms);
  bool ever_wrote();

 private:
  struct Job {
    enum class What : uint8_t { put, remove_bad, remove_damaged, release_lease } what = What::put;
    NewEntry entry;  // `index` and `kind` for all but remove_damaged
    std::string reason;
    int64_t row = 0;
    Digest sum;
  };
  bool enqueue(Job job);
  bool start_locked();
  void run();
  void do_job(Job& job);
  void do_put(Connection& connection, const NewEntry& entry);
  void keep_bound(Connection& connection);
  void renew_leases();
  bool idle_locked() const { return jobs_.empty() && !busy_; }

  Config config_;
  std::atomic<bool> stop_now_{false};  // drop everything, also what is in hand
  std::mutex mutex_;                   // guards what follows
  std::condition_variable wake_, idle_;
  std::deque<Job> jobs_;
  uint64_t queued_bytes_ = 0;
  bool busy_ = false, closing_ = false, started_ = false, failed_ = false;
  std::vector<EntryId> leases_;
  LeaseOwner self_;
  std::thread thread_;
};

}  // namespace quartet::cache
