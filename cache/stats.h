// Counters of one cache, as a snapshot and as the live numbers behind it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace quartet::cache {

// Every counter: name, meaning. One line each, so that snapshot, live numbers and listings cannot disagree.
#define QUARTET_CACHE_COUNTERS(X)                                       \
  X(lookups, "calls of get")                                            \
  X(hits_memory, "found in memory")                                     \
  X(hits_disk, "found on disk")                                         \
  X(misses_absent, "no entry")                                          \
  X(misses_key_differs, "an entry of another key with the same digest") \
  X(misses_checksum, "entry damaged, removed")                          \
  X(misses_marked_bad, "entry marked bad, removal pending")             \
  X(misses_error, "the disk could not be asked")                        \
  X(puts, "calls of put")                                               \
  X(puts_stored, "written to disk")                                     \
  X(puts_known, "already on disk with the same bytes")                  \
  X(puts_dropped, "queue full, closing, or a WAL that cannot shrink")   \
  X(puts_refused, "too large, or the payload was marked bad")           \
  X(puts_failed, "the disk refused")                                    \
  X(evictions, "entries pruned by this process")                        \
  X(marked_bad, "calls of mark_bad")                                    \
  X(leases_owned, "leases taken")                                       \
  X(leases_waited, "waits for another process")                         \
  X(lease_hits, "waits that ended with the payload")                    \
  X(lease_timeouts, "waits that ended with nothing in time")            \
  X(hard_errors, "corrupt, I/O or disk-full answers of the file")       \
  X(repairs, "files set aside and made anew")                           \
  X(saved_us, "cost of what was found, less the time to read it, microseconds")

struct Stats {
#define X(name, meaning) uint64_t name = 0;
  QUARTET_CACHE_COUNTERS(X)
#undef X
  uint64_t memory_entries = 0, memory_bytes = 0;
  // The disk now; zero without one.
  uint64_t disk_entries = 0, disk_entry_bytes = 0, file_bytes = 0, wal_bytes = 0;
  // Sums over all processes since the file was made, as far as they were recorded.
  uint64_t total_hits = 0, total_misses = 0, total_puts = 0, total_evictions = 0, total_saved_us = 0;
  bool disk_on = false, read_only = false;
  std::string file;    // full path, empty without a disk level
  std::string reason;  // why the disk is off, empty while it is on or was not asked for
};

struct Counters {
#define X(name, meaning) std::atomic<uint64_t> name{0};
  QUARTET_CACHE_COUNTERS(X)
#undef X
  void snapshot(Stats& stats) const {
#define X(name, meaning) stats.name = name.load(std::memory_order_relaxed);
    QUARTET_CACHE_COUNTERS(X)
#undef X
  }
};

inline void count(std::atomic<uint64_t>& counter, uint64_t by = 1) { counter.fetch_add(by, std::memory_order_relaxed); }

}  // namespace quartet::cache
