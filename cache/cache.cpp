#include "cache/cache.h"

#include "cache/core.h"

namespace quartet::cache {

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::program:
      return "program";
    case Kind::kernel:
      return "kernel";
    case Kind::tuning:
      return "tuning";
    case Kind::compiler_memo:
      return "compiler_memo";
    case Kind::prepared:
      return "prepared";
  }
  return "other";
}

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this == &other) return *this;
  release();
  state_ = std::exchange(other.state_, State::none);
  core_ = std::exchange(other.core_, nullptr);
  index_ = other.index_;
  kind_ = other.kind_;
  key_ = std::move(other.key_);
  expected_cost_us_ = other.expected_cost_us_;
  return *this;
}

void Lease::release() {
  if (state_ == State::owner && core_->in_own_process()) core_->release(*this);
  state_ = State::none;
  core_ = nullptr;
}

std::unique_ptr<Cache> Cache::create(CacheOptions options, CacheSeams seams) {
  std::unique_ptr<Cache> cache(new Cache);
  cache->options_ = std::move(options);
  cache->seams_ = seams;
  cache->core_.store(new Core(cache->options_, seams, false));
  return cache;
}

// A forked child leaves its parent's core alone, locks and all, and never frees it: closing would change the parent's
// files.
Core& Cache::core() {
  Core* seen = core_.load(std::memory_order_acquire);
  if (seen->in_own_process()) return *seen;
  auto* fresh = new Core(options_, seams_, true);
  if (core_.compare_exchange_strong(seen, fresh)) return *fresh;
  delete fresh;
  return *seen;
}

Cache::~Cache() {
  Core* last = core_.load();
  if (last != nullptr && last->in_own_process()) delete last;  // null when create ran out of memory
}

std::optional<Hit> Cache::get(std::span<const uint8_t> key, Kind kind) { return core().get(key, kind); }
void Cache::put(std::span<const uint8_t> key, Kind kind, std::string_view env, std::shared_ptr<const Bytes> payload,
                uint64_t cost_us) {
  core().put(key, kind, env, std::move(payload), cost_us);
}
bool Cache::flush(uint64_t timeout_ms) { return core().flush(timeout_ms); }
void Cache::mark_bad(std::span<const uint8_t> key, Kind kind, std::string_view reason) {
  core().mark_bad(key, kind, reason);
}
Lease Cache::acquire_lease(std::span<const uint8_t> key, Kind kind, uint64_t expected_cost_us) {
  return core().acquire_lease(key, kind, expected_cost_us);
}
std::optional<Hit> Cache::wait(const Lease& lease, const std::function<bool()>& cancelled) {
  return core().wait(lease, cancelled);
}
Stats Cache::stats() { return core().stats(); }
Result<std::vector<EntryInfo>> Cache::list(uint64_t limit) { return core().list(limit); }
Result<VerifyReport> Cache::verify(const std::function<bool(uint64_t, uint64_t)>& progress) {
  return core().verify(progress);
}
Result<uint64_t> Cache::prune(uint64_t max_bytes) { return core().prune(max_bytes); }
Status Cache::clear() { return core().clear(); }

}  // namespace quartet::cache
