#include "cache/memory_level.h"

#include <algorithm>

namespace quartet::cache {

MemoryLevel::Found MemoryLevel::get(const EntryId& id, std::span<const uint8_t> key, int64_t hour) {
  std::lock_guard guard(mutex_);
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return {};
  Entry& entry = *found->second;
  if (!std::ranges::equal(*entry.key, key)) return {};
  if (found->second != entries_.begin()) entries_.splice(entries_.begin(), entries_, found->second);
  const bool due = entry.row != 0 && entry.used_hour != hour;
  if (due) entry.used_hour = hour;
  return {entry.payload, entry.cost_us, entry.row, due};
}

void MemoryLevel::put(const EntryId& id, std::shared_ptr<const Bytes> key, std::shared_ptr<const Bytes> payload,
                      uint64_t cost_us, int64_t row, int64_t used_hour) {
  Entry entry{id, std::move(key), std::move(payload), cost_us, row, used_hour};
  std::list<Entry> dropped;  // freed after the lock
  std::lock_guard guard(mutex_);
  erase_locked(id);
  if (entry.size() > max_bytes_ / 4) return;
  bytes_ += entry.size();
  entries_.push_front(std::move(entry));
  by_id_.emplace(id, entries_.begin());
  while (bytes_ > max_bytes_) {
    bytes_ -= entries_.back().size();
    by_id_.erase(entries_.back().id);
    dropped.splice(dropped.begin(), entries_, std::prev(entries_.end()));
  }
}

void MemoryLevel::note_row(const EntryId& id, int64_t row, int64_t used_hour) {
  std::lock_guard guard(mutex_);
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return;
  found->second->row = row;
  found->second->used_hour = used_hour;
}

void MemoryLevel::erase(const EntryId& id) {
  std::lock_guard guard(mutex_);
  erase_locked(id);
}

void MemoryLevel::erase_locked(const EntryId& id) {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return;
  bytes_ -= found->second->size();
  entries_.erase(found->second);
  by_id_.erase(found);
}

void MemoryLevel::clear() {
  std::lock_guard guard(mutex_);
  by_id_.clear();
  entries_.clear();
  bytes_ = 0;
}

void MemoryLevel::measure(uint64_t& entries, uint64_t& bytes) {
  std::lock_guard guard(mutex_);
  entries = entries_.size();
  bytes = bytes_;
}

}  // namespace quartet::cache
