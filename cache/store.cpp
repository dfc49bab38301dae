#include "cache/store.h"

#include <algorithm>
#include <utility>

namespace quartet::cache {
namespace {

constexpr size_t kIdleConnections = 4;
constexpr uint32_t kFailuresInARow = 3;
constexpr uint64_t kWalBound = uint64_t{64} << 20;
constexpr uint64_t kWalHardBound = 4 * kWalBound;
constexpr int64_t kGateWaitNs = int64_t{2000} * 1000000;

size_t at(Side side) { return static_cast<size_t>(side); }

}  // namespace

Store::Store(const Config& config, Place place) : config_(config), place_(std::move(place)) {
  config_.read_only = config_.read_only || !place_.writable;
  if (config_.read_only) off_[at(Side::write)].store(true);
  (void)borrow(Side::read);
}

Store::Loan Store::borrow(Side side) {
  if (!usable(side)) return {};
  {
    std::lock_guard guard(mutex_);
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      return {this, std::move(connection)};
    }
  }
  // A corrupt file is replaced by the first attempt and opened by the second.
  for (int attempt = 0; attempt < 2 && usable(side); ++attempt)
    if (auto connection = open_connection(side)) return {this, std::move(connection)};
  return {};
}

void Store::give_back(std::unique_ptr<Connection> connection) {
  std::lock_guard guard(mutex_);
  if (connection->device == device_ && connection->inode == inode_ && idle_.size() < kIdleConnections)
    idle_.push_back(std::move(connection));
}

// Whoever opens the file holds the gate shared; whoever sets it aside holds it exclusively. So no one is halfway into a
// file, its -wal and its -shm while they are renamed. Bounded: a stopped process must not stop us.
std::unique_ptr<FileLock> Store::lock_gate(LockMode mode) {
  const int64_t start = config_.os->monotonic_ns();
  for (int64_t pause = 500000;; pause = std::min(pause * 2, int64_t{20000000})) {
    auto lock = config_.os->lock_file(place_.directory + "/proc/gate.lock", mode, false);
    if (!lock) return nullptr;
    if (lock.value()) return lock.take();
    if (stop_.load() || config_.os->monotonic_ns() - start > kGateWaitNs) return nullptr;
    config_.os->sleep_ns(pause);
  }
}

std::unique_ptr<Connection> Store::open_connection(Side side) {
  std::unique_ptr<FileLock> gate;
  if (place_.writable && !(gate = lock_gate(LockMode::shared))) {
    (*config_.report)(Cause::open, LogLevel::warning,
                      "'" + place_.file + "' is being replaced or its lock file cannot be opened");
    switch_off(side, "the lock file of the cache directory cannot be taken");
    return nullptr;
  }
  if (!config_.read_only) (void)ProcessClaim::ensure_file(*config_.os, place_.file);  // for its mode, should it be gone
  ConnectionConfig config;
  config.os = config_.os;
  config.file = place_.file;
  config.vfs = config_.vfs;
  config.read_only = config_.read_only;
  config.stop = &stop_;
  std::unique_ptr<Connection> connection;
  int rc = Connection::open(config, connection);
  if (trouble_of(rc) == Trouble::refused && !config.read_only) {
    (*config_.report)(Cause::read_only, LogLevel::warning, "'" + place_.file + "' cannot be written, it is only read");
    off_[at(Side::write)].store(true);
    config.read_only = true;
    rc = Connection::open(config, connection);
  }
  const auto info = config_.os->file_info(place_.file);
  if (connection) {
    if (info) connection->device = info->device, connection->inode = info->inode;
    std::vector<std::unique_ptr<Connection>> old;  // to a file that another process has set aside
    std::lock_guard guard(mutex_);
    if (device_ != connection->device || inode_ != connection->inode) old.swap(idle_);
    device_ = connection->device;
    inode_ = connection->inode;
    return connection;
  }
  gate.reset();
  const Trouble trouble = trouble_of(rc);
  count(config_.counters->hard_errors, trouble == Trouble::soft ? 0 : 1);
  if (trouble == Trouble::corrupt && info && repair(info->device, info->inode)) return nullptr;
  (*config_.report)(
      Cause::open, LogLevel::warning,
      format("'%s' cannot be opened (%s); memory is used alone", place_.file.c_str(), sqlite3_errstr(rc)));
  if (trouble != Trouble::soft) switch_off(side, format("the file cannot be opened: %s", sqlite3_errstr(rc)));
  return nullptr;
}

bool Store::note(Connection& connection, int rc, Side side) {
  const Trouble trouble = trouble_of(rc);
  auto& failures = failures_[at(side)];
  if (trouble == Trouble::none) {
    if (failures.load(std::memory_order_relaxed) != 0) failures.store(0);
    return true;
  }
  const std::string words = format("'%s': %s", place_.file.c_str(), sqlite3_errstr(rc));
  if (trouble == Trouble::soft) {
    (*config_.report)(Cause::soft, LogLevel::info, words);
    return false;
  }
  count(config_.counters->hard_errors);
  if (trouble == Trouble::refused) {
    (*config_.report)(Cause::refused, LogLevel::warning, words + "; it is only read from now on");
    off_[at(Side::write)].store(true);
    return false;
  }
  if (trouble == Trouble::corrupt && repair(connection.device, connection.inode)) return false;
  (*config_.report)(trouble == Trouble::io ? Cause::io : Cause::corrupt, LogLevel::warning, words);
  if (failures.fetch_add(1) + 1 >= kFailuresInARow)
    switch_off(side, format("three errors in a row, the last: %s", sqlite3_errstr(rc)));
  return false;
}

void Store::switch_off(Side side, const std::string& reason) {
  (*config_.report)(Cause::off, LogLevel::warning,
                    format("'%s' is %s for this process: %s", place_.file.c_str(),
                           side == Side::read ? "off" : "no longer written", reason.c_str()));
  off_[at(Side::write)].store(true);
  if (side == Side::write) return;
  off_[at(Side::read)].store(true);
  std::lock_guard guard(mutex_);
  if (reason_.empty()) reason_ = reason;
}

std::string Store::reason() {
  std::lock_guard guard(mutex_);
  return reason_;
}

// Sets a file aside if it is still the one in place. True when the caller may open what is there now.
bool Store::repair(uint64_t device, uint64_t inode) {
  std::lock_guard once(repair_mutex_);
  const auto gate = usable(Side::write) ? lock_gate(LockMode::exclusive) : nullptr;
  if (!gate) return false;
  Os& os = *config_.os;
  const auto info = os.file_info(place_.file);
  if (!info && info.status().code() != Code::not_found) return false;
  if (info && info->device == device && info->inode == inode) {
    if (repaired_ || !os.rename_file(place_.file, place_.file + ".bad").ok()) return false;
    (void)os.rename_file(place_.file + "-wal", place_.file + ".bad-wal");
    (void)os.remove_file(place_.file + "-shm");
    repaired_ = true;
    count(config_.counters->repairs);
    (*config_.report)(Cause::corrupt, LogLevel::warning,
                      "'" + place_.file + "' was damaged; it is kept as .bad and made anew");
  }  // else another thread or process has done it
  return begin_new_file();
}

// With the gate held exclusively: no connection to what was there is lent again.
bool Store::begin_new_file() {
  std::vector<std::unique_ptr<Connection>> old;
  std::lock_guard guard(mutex_);
  device_ = inode_ = 0;
  old.swap(idle_);
  return ProcessClaim::ensure_file(*config_.os, place_.file).ok();
}

bool Store::start_over() {
  std::lock_guard once(repair_mutex_);
  const auto gate =
      usable(Side::read) && place_.writable && !config_.read_only ? lock_gate(LockMode::exclusive) : nullptr;
  if (!gate) return false;
  for (const char* suffix : {"-wal", "-shm", ".bad", ".bad-wal", ""}) {
    const Status removed = config_.os->remove_file(place_.file + suffix);
    if (!removed.ok() && removed.code() != Code::not_found) return false;
  }
  failures_[at(Side::write)].store(0);
  off_[at(Side::write)].store(false);
  return begin_new_file();
}

bool Store::bound_wal(Connection& connection) {
  const auto size = [this] {
    const auto wal = config_.os->file_info(place_.file + "-wal");
    return wal ? wal->size : 0;
  };
  if (size() <= kWalBound) return true;
  // A reader that never ends its transaction, stopped perhaps, keeps the WAL from starting over; it is not worth
  // waiting for.
  const int64_t patience = std::exchange(connection.patience_ms, 100);
  const int rc = sqlite3_wal_checkpoint_v2(connection.handle(), "main", SQLITE_CHECKPOINT_RESTART, nullptr, nullptr);
  connection.patience_ms = patience;
  return rc == SQLITE_OK || size() <= kWalHardBound;
}

void Store::close(bool used_for_writing) {
  hurry();
  std::vector<std::unique_ptr<Connection>> old;
  if (used_for_writing && usable(Side::write)) {
    if (Loan last = borrow(Side::write))
      sqlite3_wal_checkpoint_v2((*last).handle(), "main", SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  }
  std::lock_guard guard(mutex_);
  old.swap(idle_);
}

}  // namespace quartet::cache
