#include "cache/writer.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <system_error>

#include "cache/eviction.h"

namespace quartet::cache {
namespace {

constexpr size_t kQueueJobs = 256;
constexpr uint64_t kQueueBytes = uint64_t{128} << 20;
using Clock = std::chrono::steady_clock;

int64_t hour_of(Os& os) { return os.wall_ns() / (int64_t{3600} * 1000000000); }

uint64_t bytes_of(const NewEntry& entry) {
  return (entry.key ? entry.key->size() : 0) + (entry.payload ? entry.payload->size() : 0);
}

}  // namespace

// A host's signals are not for this thread, so it is born with all of them blocked.
bool Writer::start_locked() {
  if (started_) return true;
  if (failed_ || closing_) return false;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { run(); });
    started_ = true;
  } catch (const std::system_error&) {
    failed_ = true;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (failed_)
    (*config_.report)(Cause::thread, LogLevel::warning, "no thread could be started; nothing is written to disk");
  return started_;
}

bool Writer::enqueue(Job job) {
  std::lock_guard guard(mutex_);
  if (closing_ || !start_locked()) return false;
  const bool bounded = job.what == Job::What::put;
  const uint64_t bytes = bytes_of(job.entry);
  if (bounded && (jobs_.size() >= kQueueJobs || queued_bytes_ + bytes > kQueueBytes)) return false;
  queued_bytes_ += bytes;
  jobs_.push_back(std::move(job));
  wake_.notify_one();
  return true;
}

bool Writer::put(NewEntry entry) {
  Job job;
  job.entry = std::move(entry);
  if (enqueue(std::move(job))) return true;
  (*config_.report)(Cause::full_queue, LogLevel::info, "the disk cannot follow; some entries are kept in memory only");
  return false;
}

void Writer::remove_bad(const EntryId& id, std::string reason) {
  Job job;
  job.what = Job::What::remove_bad;
  job.entry.index = id.index;
  job.entry.kind = id.kind;
  job.reason = std::move(reason);
  enqueue(std::move(job));
}

void Writer::remove_damaged(int64_t row, const Digest& sum) {
  Job job;
  job.what = Job::What::remove_damaged;
  job.row = row;
  job.sum = sum;
  enqueue(std::move(job));
}

void Writer::hold_lease(const EntryId& id, const LeaseOwner& self) {
  std::lock_guard guard(mutex_);
  self_ = self;
  if (!start_locked()) return;  // the lease then ends by itself
  leases_.push_back(id);
  wake_.notify_one();
}

void Writer::release_lease(const EntryId& id) {
  Job job;
  job.what = Job::What::release_lease;
  job.entry.index = id.index;
  job.entry.kind = id.kind;
  enqueue(std::move(job));
}

bool Writer::flush(uint64_t timeout_ms) {
  std::unique_lock lock(mutex_);
  return idle_.wait_for(lock, std::chrono::milliseconds(std::min<uint64_t>(timeout_ms, 86400000)),
                        [this] { return idle_locked(); });
}

void Writer::discard_puts() {
  {
    std::lock_guard guard(mutex_);
    const size_t before = jobs_.size();
    std::erase_if(jobs_, [](const Job& job) { return job.what == Job::What::put; });
    count(config_.counters->puts_dropped, before - jobs_.size());
    queued_bytes_ = 0;
  }
  flush(2500);
}

void Writer::close(uint64_t timeout_ms) {
  std::unique_lock lock(mutex_);
  closing_ = true;
  if (!started_) return;
  idle_.wait_for(lock, std::chrono::milliseconds(timeout_ms), [this] { return idle_locked(); });
  const auto puts =
      std::count_if(jobs_.begin(), jobs_.end(), [](const Job& job) { return job.what == Job::What::put; });
  count(config_.counters->puts_dropped, static_cast<uint64_t>(puts));
  jobs_.clear();
  stop_now_.store(true);
  config_.store->hurry();
  wake_.notify_all();
  lock.unlock();
  if (thread_.joinable()) thread_.join();
}

bool Writer::ever_wrote() {
  std::lock_guard guard(mutex_);
  return started_;
}

void Writer::run() {
  pthread_setname_np(pthread_self(), "quartet-cache");
  sweep_claims(*config_.os, config_.directory);
  auto beat = Clock::now() + std::chrono::milliseconds(kLeaseBeatMs);
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto ready = [this] { return !jobs_.empty() || closing_; };
    if (leases_.empty()) {
      wake_.wait(lock, [&] { return ready() || !leases_.empty(); });
      beat = std::max(beat, Clock::now());
    } else {
      wake_.wait_until(lock, beat, ready);
    }
    if (!leases_.empty() && Clock::now() >= beat) {
      busy_ = true;
      lock.unlock();
      renew_leases();
      beat = Clock::now() + std::chrono::milliseconds(kLeaseBeatMs);
      lock.lock();
      busy_ = false;
    }
    if (jobs_.empty()) {
      idle_.notify_all();
      if (closing_) return;
      continue;
    }
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    queued_bytes_ -= std::min(queued_bytes_, bytes_of(job.entry));
    busy_ = true;
    lock.unlock();
    do_job(job);
    job = Job();
    lock.lock();
    busy_ = false;
    if (jobs_.empty()) idle_.notify_all();
  }
}

void Writer::do_job(Job& job) {
  const EntryId id{job.entry.index, job.entry.kind};
  auto loan = config_.store->borrow(Side::write);
  if (!loan) {
    if (job.what == Job::What::put) count(config_.counters->puts_failed);
    return;
  }
  Connection& connection = *loan;
  switch (job.what) {
    case Job::What::put:
      do_put(connection, job.entry);
      break;
    case Job::What::remove_bad:
      if (config_.store->note(connection,
                              remove_entry(connection, id.index, id.kind, true, job.reason, wall_day(*config_.os)),
                              Side::write))
        config_.on_change(id, 0, 0);
      break;
    case Job::What::remove_damaged:
      config_.store->note(connection, quartet::cache::remove_damaged(connection, job.row, job.sum), Side::write);
      break;
    case Job::What::release_lease: {
      LeaseOwner self;
      {
        std::lock_guard guard(mutex_);
        const auto held = std::find(leases_.begin(), leases_.end(), id);
        if (held != leases_.end()) leases_.erase(held);
        self = self_;
      }
      config_.store->note(connection, drop_lease(connection, self, id.index, id.kind), Side::write);
      break;
    }
  }
}

void Writer::do_put(Connection& connection, const NewEntry& entry) {
  if (!config_.store->bound_wal(connection)) return count(config_.counters->puts_dropped);
  const int64_t hour = hour_of(*config_.os);
  Written written = Written::stored;
  int64_t row = 0;
  const int rc = write_entry(connection, entry, wall_day(*config_.os), hour, written, row);
  if (!config_.store->note(connection, rc, Side::write)) {
    count(config_.counters->puts_failed);
    return;
  }
  if (written == Written::refused) {
    count(config_.counters->puts_refused);
    return;
  }
  count(written == Written::stored ? config_.counters->puts_stored : config_.counters->puts_known);
  config_.on_change({entry.index, entry.kind}, row, hour);
  if (written == Written::stored) keep_bound(connection);
}

void Writer::keep_bound(Connection& connection) {
  uint64_t used = 0;
  if (!config_.store->note(connection, used_bytes(connection, used), Side::write) || used <= config_.max_bytes) return;
  const auto self = this_owner(*config_.os);
  if (!self) return;
  uint64_t removed = 0;
  const int rc =
      evict_as_janitor(connection, *config_.os, self.value(), config_.max_bytes / 5 * 4, &stop_now_, removed);
  count(config_.counters->evictions, removed);
  if (config_.store->note(connection, rc, Side::write) && removed > 0) {
    const StatDelta delta{"evictions", removed};
    config_.store->note(connection, write_stamps(connection, {}, 0, std::span(&delta, 1)), Side::write);
  }
  (void)config_.store->bound_wal(connection);
}

void Writer::renew_leases() {
  std::vector<EntryId> held;
  LeaseOwner self;
  {
    std::lock_guard guard(mutex_);
    held = leases_;
    self = self_;
  }
  auto loan = config_.store->borrow(Side::write);
  if (!loan) return;
  for (const EntryId& id : held)
    config_.store->note(*loan, renew_lease(*loan, *config_.os, self, id.index, id.kind), Side::write);
}

}  // namespace quartet::cache
