// L0: payloads held in this process, least recently used out first.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>

#include "base/bytes.h"
#include "base/hash.h"
#include "cache/cache.h"

namespace quartet::cache {

// A key's index and kind: what entries are found by before keys are compared.
struct EntryId {
  Digest index;
  Kind kind = Kind::program;
  bool operator==(const EntryId&) const = default;
};
struct EntryIdHash {
  size_t operator()(const EntryId& id) const noexcept {
    return std::hash<Digest>()(id.index) ^ static_cast<size_t>(id.kind);
  }
};

class MemoryLevel {
 public:
  explicit MemoryLevel(uint64_t max_bytes) : max_bytes_(max_bytes) {}

  struct Found {
    std::shared_ptr<const Bytes> payload;  // null: not here
    uint64_t cost_us = 0;
    int64_t row = 0;         // the disk's row; 0: not known
    bool stamp_due = false;  // true once an hour: the disk should hear that the entry is used
  };
  Found get(const EntryId& id, std::span<const uint8_t> key, int64_t hour);

  // Replaces what is there. An entry larger than a quarter of the bound is left out.
  void put(const EntryId& id, std::shared_ptr<const Bytes> key, std::shared_ptr<const Bytes> payload, uint64_t cost_us,
           int64_t row, int64_t used_hour);
  // Tells an entry the row it got on disk.
  void note_row(const EntryId& id, int64_t row, int64_t used_hour);
  void erase(const EntryId& id);
  void clear();
  void measure(uint64_t& entries, uint64_t& bytes);

 private:
  struct Entry {
    EntryId id;
    std::shared_ptr<const Bytes> key, payload;
    uint64_t cost_us;
    int64_t row, used_hour;
    uint64_t size() const { return key->size() + payload->size() + 256; }
  };
  void erase_locked(const EntryId& id);

  const uint64_t max_bytes_;
  std::mutex mutex_;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<EntryId, std::list<Entry>::iterator, EntryIdHash> by_id_;
  uint64_t bytes_ = 0;
};

}  // namespace quartet::cache
