#include "cache/core.h"

#include <algorithm>

namespace quartet::cache {
namespace {

constexpr int64_t kMs = 1000000;
constexpr int64_t kStampDelayNs = 30000 * kMs;
constexpr uint64_t kCloseFlushMs = 2000;
constexpr uint64_t kCheapUs = 20000;  // making it again costs less than asking who else is at it
constexpr size_t kMaxStamps = 4096;

}  // namespace

Core::Core(const CacheOptions& options, const CacheSeams& seams, bool forked)
    : options_(options),
      seams_(seams),
      os_(seams.os ? *seams.os : real_os()),
      pid_(os_.process_id()),
      report_(options.log),
      memory_(options.memory_bytes) {
  if (forked) {
    no_disk_reason_ = "this process was forked from the one that opened the cache";
    return;
  }
  if (!options_.path.empty()) open_disk();
}

void Core::open_disk() {
  uses_sqlite_ = SqliteUse::begin(os_);
  if (!uses_sqlite_) {
    no_disk_reason_ = "this process was forked while its parent had a cache open";
    report_(Cause::forked, LogLevel::info, "memory is used alone: " + no_disk_reason_);
    return;
  }
  auto place = find_place(os_, options_.path, options_.read_only, options_.allow_network_fs);
  if (!place) {
    no_disk_reason_ = place.status().message();
    report_(Cause::place, LogLevel::warning, "memory is used alone: " + no_disk_reason_);
    return;
  }
  if (!place->claim && !options_.read_only)
    report_(Cause::read_only, LogLevel::warning, "'" + place->directory + "' cannot be written, it is only read");
  const std::string directory = place->directory;
  Store::Config config;
  config.os = &os_;
  config.vfs = seams_.sqlite_vfs;
  config.read_only = options_.read_only;
  config.report = &report_;
  config.counters = &counters_;
  store_ = std::make_unique<Store>(config, place.take());
  if (!store_->usable(Side::write)) return;
  Writer::Config writer;
  writer.os = &os_;
  writer.store = store_.get();
  writer.counters = &counters_;
  writer.report = &report_;
  writer.max_bytes = options_.max_bytes;
  writer.directory = directory;
  writer.on_change = [this](const EntryId& id, int64_t row, int64_t at_hour) { on_disk_change(id, row, at_hour); };
  writer_ = std::make_unique<Writer>(std::move(writer));
}

Core::~Core() {
  const bool wrote = writer_ && writer_->ever_wrote();
  if (writer_) writer_->close(kCloseFlushMs);
  if (store_) {
    if (stamps_since_ns_.load() != 0 || wrote)
      if (auto loan = store_->borrow(Side::write)) write_stamps_now(*loan, true);
    store_->close(wrote);
  }
  writer_.reset();
  store_.reset();
  if (uses_sqlite_) SqliteUse::end();
}

EntryId Core::id_of(std::span<const uint8_t> key, Kind kind) const {
  return {seams_.index ? seams_.index(key) : digest_of(key), kind};
}

std::optional<Hit> Core::get(std::span<const uint8_t> key, Kind kind) {
  count(counters_.lookups);
  const EntryId id = id_of(key, kind);
  auto held = memory_.get(id, key, hour());
  if (held.payload) {
    count(counters_.hits_memory);
    count(counters_.saved_us, held.cost_us);
    if (held.stamp_due) {
      note_use(held.row);
      write_stamps_if_due();
    }
    return Hit{std::move(held.payload), Level::memory, held.cost_us};
  }
  if (!store_) {
    count(counters_.misses_absent);
    return std::nullopt;
  }
  return read_disk(id, key);
}

std::optional<Hit> Core::read_disk(const EntryId& id, std::span<const uint8_t> key) {
  const uint64_t epoch = bad_epoch_.load();  // before the question, so that a mark_bad after it is noticed below
  if (is_bad(id)) {
    count(counters_.misses_marked_bad);
    return std::nullopt;
  }
  const int64_t start = os_.monotonic_ns();
  Found found;
  {
    auto loan = store_->borrow(Side::read);
    if (!loan || !store_->note(*loan, read_entry(*loan, id.index, id.kind, key, found), Side::read)) {
      count(counters_.misses_error);
      return std::nullopt;
    }
  }
  switch (found.outcome) {
    case Found::Outcome::absent:
      count(counters_.misses_absent);
      return std::nullopt;
    case Found::Outcome::key_differs:
      count(counters_.misses_key_differs);
      return std::nullopt;
    case Found::Outcome::damaged:
      count(counters_.misses_checksum);
      report_(Cause::damaged, LogLevel::warning, "'" + store_->file() + "': an entry is damaged, it is removed");
      if (writer_) writer_->remove_damaged(found.id, found.sum);
      return std::nullopt;
    case Found::Outcome::hit:
      break;
  }
  const int64_t now_hour = hour();
  memory_.put(id, std::make_shared<const Bytes>(key.begin(), key.end()), found.payload, found.cost_us, found.id,
              now_hour);
  if (bad_epoch_.load() != epoch) memory_.erase(id);  // what we read may have been marked bad meanwhile
  count(counters_.hits_disk);
  if (found.used_hour != now_hour) note_use(found.id);
  const auto spent_us = static_cast<uint64_t>((os_.monotonic_ns() - start) / 1000);
  if (found.cost_us > spent_us) count(counters_.saved_us, found.cost_us - spent_us);
  write_stamps_if_due();
  return Hit{std::move(found.payload), Level::disk, found.cost_us};
}

void Core::put(std::span<const uint8_t> key, Kind kind, std::string_view env, std::shared_ptr<const Bytes> payload,
               uint64_t cost_us) {
  if (!payload) return;
  count(counters_.puts);
  const EntryId id = id_of(key, kind);
  const auto key_bytes = std::make_shared<const Bytes>(key.begin(), key.end());
  memory_.put(id, key_bytes, payload, cost_us, 0, hour());
  if (!writer_) return;
  if (!store_->usable(Side::write)) return count(counters_.puts_failed);
  const uint64_t size = key.size() + payload->size();
  if (size > kMaxEntryBytes || size > options_.max_bytes / 2) {
    count(counters_.puts_refused);
    return;
  }
  NewEntry entry;
  entry.index = id.index;
  entry.kind = kind;
  entry.key = key_bytes;
  entry.payload = std::move(payload);
  entry.env = env.substr(0, 4096);
  entry.cost_us = cost_us;
  if (!writer_->put(std::move(entry))) count(counters_.puts_dropped);
}

void Core::mark_bad(std::span<const uint8_t> key, Kind kind, std::string_view reason) {
  count(counters_.marked_bad);
  const EntryId id = id_of(key, kind);
  report_(Cause::bad, LogLevel::warning,
          "the entry " + id.index.hex() + " proved unusable and is removed: " + std::string(reason.substr(0, 256)));
  if (store_) {
    std::lock_guard guard(bad_mutex_);
    ++bad_[id];
    bad_count_.store(bad_.size());
  }
  bad_epoch_.fetch_add(1);
  memory_.erase(id);
  if (writer_) writer_->remove_bad(id, std::string(reason));
}

bool Core::is_bad(const EntryId& id) {
  if (bad_count_.load() == 0) return false;
  std::lock_guard guard(bad_mutex_);
  return bad_.contains(id);
}

void Core::on_disk_change(const EntryId& id, int64_t row, int64_t at_hour) {
  if (row != 0) return memory_.note_row(id, row, at_hour);
  std::lock_guard guard(bad_mutex_);
  const auto found = bad_.find(id);
  if (found != bad_.end() && --found->second == 0) bad_.erase(found);
  bad_count_.store(bad_.size());
}

void Core::note_use(int64_t row) {
  if (!writer_) return;
  std::lock_guard guard(stamps_mutex_);
  if (stamps_.size() >= kMaxStamps && !stamps_.contains(row)) return;
  if (stamps_.empty()) stamps_since_ns_.store(std::max<int64_t>(1, os_.monotonic_ns()));
  ++stamps_[row];
}

// Stamps are written by whoever notices that the oldest has waited half a minute, without waiting for anyone's lock: a
// process that only reads has no background thread.
void Core::write_stamps_if_due() {
  const int64_t since = stamps_since_ns_.load(std::memory_order_relaxed);
  if (since == 0 || os_.monotonic_ns() - since < kStampDelayNs) return;
  if (auto loan = store_->borrow(Side::write)) write_stamps_now(*loan, false);
}

void Core::write_stamps_now(Connection& connection, bool closing) {
  std::unordered_map<int64_t, uint64_t> due;
  {
    std::lock_guard guard(stamps_mutex_);
    due.swap(stamps_);
    stamps_since_ns_.store(0);
  }
  std::vector<Stamp> stamps;
  for (const auto& [row, hits] : due) stamps.push_back({row, hits});
  std::vector<StatDelta> sums;
  if (closing) {
    Stats now;
    counters_.snapshot(now);
    sums = {{"hits", now.hits_memory + now.hits_disk},
            {"misses", now.lookups - std::min(now.lookups, now.hits_memory + now.hits_disk)},
            {"puts", now.puts_stored},
            {"saved_us", now.saved_us}};
  }
  const int64_t patience = std::exchange(connection.patience_ms, closing ? 50 : 0);
  store_->note(connection, write_stamps(connection, stamps, hour(), sums), Side::write);
  connection.patience_ms = patience;
}

const LeaseOwner* Core::owner() {
  std::lock_guard guard(owner_mutex_);
  if (!owner_)
    if (auto self = this_owner(os_)) owner_ = self.take();
  return owner_ ? &*owner_ : nullptr;
}

Lease Core::acquire_lease(std::span<const uint8_t> key, Kind kind, uint64_t expected_cost_us) {
  Lease lease;
  if (!writer_ || !store_->usable(Side::write) || (kind != Kind::program && expected_cost_us <= kCheapUs)) return lease;
  const LeaseOwner* self = owner();
  auto loan = self ? store_->borrow(Side::write) : Store::Loan();
  if (!loan) return lease;
  const EntryId id = id_of(key, kind);
  LeaseState state = LeaseState::free;
  if (!store_->note(*loan, take_lease(*loan, os_, *self, id.index, kind, state), Side::write)) return lease;
  lease.core_ = this;
  lease.index_ = id.index;
  lease.kind_ = kind;
  lease.key_ = std::make_shared<const Bytes>(key.begin(), key.end());
  lease.expected_cost_us_ = expected_cost_us;
  if (state == LeaseState::mine) {
    count(counters_.leases_owned);
    lease.state_ = Lease::State::owner;
    writer_->hold_lease(id, *self);
  } else {
    lease.state_ = Lease::State::other;
  }
  return lease;
}

void Core::release(const Lease& lease) {
  if (writer_) writer_->release_lease({lease.index_, lease.kind_});
}

std::optional<Hit> Core::wait(const Lease& lease, const std::function<bool()>& cancelled) {
  if (lease.state_ != Lease::State::other || lease.core_ != this) return std::nullopt;
  count(counters_.leases_waited);
  const LeaseOwner* self = owner();
  const uint64_t bound_us = std::clamp<uint64_t>(lease.expected_cost_us_, 50000, 5000000) * 2;
  const int64_t end = os_.monotonic_ns() + static_cast<int64_t>(bound_us) * 1000;
  const EntryId id{lease.index_, lease.kind_};
  for (int64_t pause = 2 * kMs;; pause = std::min(pause * 3 / 2, 20 * kMs)) {
    bool exists = false;
    LeaseState state = LeaseState::free;
    {
      auto loan = store_->borrow(Side::read);
      // The lease is read before the entry: an owner puts, then lets go.
      if (!loan || !self ||
          !store_->note(*loan, lease_state(*loan, os_, *self, id.index, id.kind, state), Side::read) ||
          !store_->note(*loan, entry_exists(*loan, id.index, id.kind, exists), Side::read))
        return std::nullopt;
    }
    if (exists) {
      auto hit = read_disk(id, *lease.key_);
      if (hit) count(counters_.lease_hits);
      return hit;
    }
    if (state != LeaseState::other || (cancelled && cancelled())) return std::nullopt;
    if (os_.monotonic_ns() >= end) {
      count(counters_.lease_timeouts);
      return std::nullopt;
    }
    os_.sleep_ns(pause);
  }
}

}  // namespace quartet::cache
