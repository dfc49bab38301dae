// What a person asks of the cache: numbers, lists, checks, pruning. Unlike look-ups these report errors.
#include <algorithm>

#include "cache/core.h"
#include "cache/eviction.h"

namespace quartet::cache {

Stats Core::stats() {
  Stats stats;
  counters_.snapshot(stats);
  memory_.measure(stats.memory_entries, stats.memory_bytes);
  stats.reason = no_disk_reason_;
  if (!store_) return stats;
  stats.file = store_->file();
  stats.disk_on = store_->usable(Side::read);
  stats.read_only = !store_->usable(Side::write);
  stats.reason = store_->reason();
  if (const auto info = os_.file_info(stats.file)) stats.file_bytes = info->size;
  if (const auto info = os_.file_info(stats.file + "-wal")) stats.wal_bytes = info->size;
  auto loan = store_->borrow(Side::read);
  if (!loan) return stats;
  {
    Query totals(*loan, Sql::totals);
    if (const int rc = totals.step(); rc == SQLITE_ROW)
      stats.disk_entries = totals.unsigned_number(0), stats.disk_entry_bytes = totals.unsigned_number(1);
    else
      store_->note(*loan, rc, Side::read);
  }
  Query sums(*loan, Sql::read_stats);
  int rc;
  while ((rc = sums.step()) == SQLITE_ROW) {
    const std::string name = sums.text(0);
    const uint64_t value = sums.unsigned_number(1);
    if (name == "hits") stats.total_hits = value;
    if (name == "misses") stats.total_misses = value;
    if (name == "puts") stats.total_puts = value;
    if (name == "evictions") stats.total_evictions = value;
    if (name == "saved_us") stats.total_saved_us = value;
  }
  store_->note(*loan, rc, Side::read);
  return stats;
}

Result<Store::Loan> Core::borrow_for(Side side, const char* what) {
  if (!store_)
    return make_error(Code::failed_precondition, "%s: the cache has no disk level%s%s", what,
                      no_disk_reason_.empty() ? "" : ": ", no_disk_reason_.c_str());
  auto loan = store_->borrow(side);
  if (loan) return loan;
  if (side == Side::write && store_->usable(Side::read))
    return make_error(Code::failed_precondition, "%s: the cache '%s' is only read", what, store_->file().c_str());
  return make_error(Code::io, "%s: the cache '%s' is off: %s", what, store_->file().c_str(), store_->reason().c_str());
}

Status Core::failed(Connection& connection, int rc, Side side, const char* what) {
  store_->note(connection, rc, side);
  return make_error(trouble_of(rc) == Trouble::corrupt ? Code::corrupt : Code::io, "%s: '%s': %s", what,
                    store_->file().c_str(), sqlite3_errstr(rc));
}

Result<std::vector<EntryInfo>> Core::list(uint64_t limit) {
  QUARTET_ASSIGN(Store::Loan loan, borrow_for(Side::read, "cache list"));
  std::vector<EntryInfo> entries;
  int rc;
  {
    Query rows(*loan, Sql::list);
    rows.bind(std::min<uint64_t>(limit, INT64_MAX));
    while ((rc = rows.step()) == SQLITE_ROW) {
      EntryInfo entry;
      entry.key = rows.digest(0);
      entry.kind = static_cast<Kind>(rows.number(1));
      entry.size = rows.unsigned_number(2);
      entry.cost_us = rows.unsigned_number(3);
      entry.hits = rows.unsigned_number(4);
      entry.created_day = rows.number(5);
      entry.used_hour = rows.number(6);
      entry.env = rows.text(7);
      entries.push_back(std::move(entry));
    }
  }
  if (rc != SQLITE_DONE) return failed(*loan, rc, Side::read, "cache list");
  return entries;
}

Result<VerifyReport> Core::verify(const std::function<bool(uint64_t, uint64_t)>& progress) {
  QUARTET_ASSIGN(Store::Loan loan, borrow_for(Side::read, "cache verify"));
  VerifyReport report;
  uint64_t total = 0;
  {
    Query totals(*loan, Sql::totals);
    const int rc = totals.step();
    if (rc != SQLITE_ROW) return failed(*loan, rc, Side::read, "cache verify");
    total = totals.unsigned_number(0);
  }
  const bool may_remove = store_->usable(Side::write);
  for (int64_t last = INT64_MIN;;) {
    int64_t row = 0;
    Digest stored;
    bool sound = false;
    {
      Query next(*loan, Sql::verify_next);
      const int rc = next.bind(last).step();
      if (rc == SQLITE_DONE) break;
      if (rc != SQLITE_ROW) return failed(*loan, rc, Side::read, "cache verify");
      row = next.number(0);
      stored = {next.unsigned_number(4), next.unsigned_number(3)};
      const auto key = next.blob(8), payload = next.blob(9);
      const Kind kind = static_cast<Kind>(next.number(10));
      const Digest sum = entry_sum(kind, digest_of(key), key.size(), payload, next.digest(7), next.unsigned_number(5));
      const Digest index = seams_.index ? seams_.index(key) : digest_of(key);
      sound = sum == stored && next.number(2) == 0 && next.unsigned_number(1) == key.size() + payload.size() &&
              next.digest(11) == index;
    }
    ++report.checked;
    if (!sound) {
      ++report.damaged;
      if (may_remove) {
        const int rc = remove_damaged(*loan, row, stored);
        if (rc != SQLITE_OK) return failed(*loan, rc, Side::write, "cache verify");
        ++report.removed;
      }
    }
    last = row;
    if (progress && !progress(report.checked, std::max(total, report.checked))) return report;
  }
  sqlite3_stmt* check = nullptr;
  int rc = sqlite3_prepare_v2((*loan).handle(), "PRAGMA integrity_check(1)", -1, &check, nullptr);
  if (rc == SQLITE_OK) rc = sqlite3_step(check);
  if (rc == SQLITE_ROW) {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(check, 0));
    report.file_problem = text ? text : "";
    report.file_sound = report.file_problem == "ok";
    if (report.file_sound) report.file_problem.clear();
  }
  sqlite3_finalize(check);
  if (rc != SQLITE_ROW) return failed(*loan, rc, Side::read, "cache verify");
  return report;
}

Result<uint64_t> Core::prune(uint64_t max_bytes) {
  QUARTET_ASSIGN(Store::Loan loan, borrow_for(Side::write, "cache prune"));
  uint64_t removed = 0;
  int rc = evict_to(*loan, os_, max_bytes, nullptr, removed);
  count(counters_.evictions, removed);
  const StatDelta delta{"evictions", removed};
  if (rc == SQLITE_OK && removed > 0) rc = write_stamps(*loan, {}, 0, std::span(&delta, 1));
  if (rc == SQLITE_OK) rc = shrink_file(*loan);
  if (rc != SQLITE_OK) return failed(*loan, rc, Side::write, "cache prune");
  return removed;
}

Status Core::clear() {
  memory_.clear();
  if (writer_) writer_->discard_puts();
  memory_.clear();
  if (!store_) return {};
  int rc = SQLITE_OK;
  {
    QUARTET_ASSIGN(Store::Loan loan, borrow_for(Side::write, "cache clear"));
    uint64_t removed = 0;
    rc = remove_all(*loan, removed);
    if (rc == SQLITE_OK) rc = shrink_file(*loan);
    if (rc == SQLITE_OK) return {};
    store_->note(*loan, rc, Side::write);
  }
  if (trouble_of(rc) == Trouble::soft || !store_->start_over())
    return make_error(Code::io, "cache clear: '%s': %s", store_->file().c_str(), sqlite3_errstr(rc));
  return {};
}

}  // namespace quartet::cache
