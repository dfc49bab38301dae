#include "cache/eviction.h"

#include <algorithm>
#include <vector>

#include "cache/records.h"

namespace quartet::cache {
namespace {

constexpr size_t kBatchRows = 32;
constexpr uint64_t kBatchBytes = uint64_t{4} << 20;
constexpr int64_t kListed = 1024;  // victims chosen at once; sorting is done once for so many
constexpr int64_t kEnvDays = 90;

#define TRY_SQL(expression)                                         \
  do {                                                              \
    if (const int rc_ = (expression); rc_ != SQLITE_OK) return rc_; \
  } while (false)

int remove_batch(Connection& connection, std::span<const int64_t> ids) {
  Transaction transaction(connection);
  TRY_SQL(transaction.begun());
  TRY_SQL(remove_rows(connection, ids));
  return transaction.commit();
}

struct Victims {
  std::vector<int64_t> ids;
  std::vector<uint64_t> sizes;
};

int collect(Query& query, Victims& victims) {
  int rc;
  while ((rc = query.step()) == SQLITE_ROW) {
    victims.ids.push_back(query.number(0));
    victims.sizes.push_back(query.unsigned_number(1));
  }
  return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

// How many of the victims from `begin` on one transaction takes, to free `wanted` bytes.
size_t batch_rows(const Victims& victims, size_t begin, uint64_t wanted) {
  const uint64_t most = std::min(wanted, kBatchBytes);
  uint64_t bytes = 0;
  size_t end = begin;
  while (end < victims.ids.size() && end - begin < kBatchRows && (end == begin || bytes < most))
    bytes += victims.sizes[end++];
  return end - begin;
}

// A clock that once ran ahead must not protect entries for ever.
int clamp_times(Connection& connection, int64_t hour, int64_t day) {
  Transaction transaction(connection);
  TRY_SQL(transaction.begun());
  TRY_SQL(Query(connection, Sql::clamp_ticks).bind(hour).run());
  TRY_SQL(Query(connection, Sql::clamp_envs).bind(day).run());
  return transaction.commit();
}

}  // namespace

int evict_to(Connection& connection, Os& os, uint64_t target, const std::atomic<bool>* stop, uint64_t& removed) {
  const int64_t day = wall_day(os);
  const auto stopped = [stop] { return stop && stop->load(); };
  TRY_SQL(clamp_times(connection, os.wall_ns() / (int64_t{3600} * 1000000000), day));
  uint64_t used = 0;
  TRY_SQL(used_bytes(connection, used));
  int64_t first_before = -1;
  while (used > target && !stopped()) {
    Victims victims;
    {
      Query query(connection, Sql::victims);
      query.bind(day - kEnvDays).bind(kListed);
      TRY_SQL(collect(query, victims));
    }
    if (victims.ids.empty()) break;
    if (victims.ids[0] == first_before) return SQLITE_CORRUPT;  // a row that cannot be removed
    first_before = victims.ids[0];
    for (size_t begin = 0; begin < victims.ids.size() && used > target && !stopped();) {
      const size_t rows = batch_rows(victims, begin, used - target);
      TRY_SQL(remove_batch(connection, std::span<const int64_t>(victims.ids).subspan(begin, rows)));
      removed += rows;
      begin += rows;
      TRY_SQL(used_bytes(connection, used));
    }
  }
  Transaction transaction(connection);
  TRY_SQL(transaction.begun());
  TRY_SQL(Query(connection, Sql::delete_unused_envs).run());
  return transaction.commit();
}

int evict_as_janitor(Connection& connection, Os& os, const LeaseOwner& self, uint64_t target,
                     const std::atomic<bool>* stop, uint64_t& removed) {
  const Digest janitor{};
  LeaseState state = LeaseState::other;
  TRY_SQL(take_lease(connection, os, self, janitor, Kind{0}, state));
  if (state != LeaseState::mine) return SQLITE_OK;
  const int rc = evict_to(connection, os, target, stop, removed);
  const int dropped = drop_lease(connection, self, janitor, Kind{0});
  return rc != SQLITE_OK ? rc : dropped;
}

int remove_all(Connection& connection, uint64_t& removed) {
  int64_t first_before = -1;
  for (;;) {
    Victims victims;
    {
      Query any(connection, Sql::any_entries);
      any.bind(kListed);
      TRY_SQL(collect(any, victims));
    }
    if (victims.ids.empty()) break;
    if (victims.ids[0] == first_before) return SQLITE_CORRUPT;
    first_before = victims.ids[0];
    for (size_t begin = 0; begin < victims.ids.size();) {
      const size_t rows = batch_rows(victims, begin, UINT64_MAX);
      TRY_SQL(remove_batch(connection, std::span<const int64_t>(victims.ids).subspan(begin, rows)));
      removed += rows;
      begin += rows;
    }
  }
  Transaction transaction(connection);
  TRY_SQL(transaction.begun());
  TRY_SQL(Query(connection, Sql::drop_keys_without_entry).run());
  TRY_SQL(Query(connection, Sql::drop_payloads_without_entry).run());
  TRY_SQL(Query(connection, Sql::delete_unused_envs).run());
  return transaction.commit();
}

int shrink_file(Connection& connection) {
  // Checkpointing first puts all pages into the file, last moves the shortened file's size there.
  sqlite3_wal_checkpoint_v2(connection.handle(), "main", SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  const int rc = connection.execute("PRAGMA incremental_vacuum");
  if (rc != SQLITE_OK) return rc;
  const int checkpoint =
      sqlite3_wal_checkpoint_v2(connection.handle(), "main", SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  return trouble_of(checkpoint) == Trouble::soft ? SQLITE_OK : checkpoint;
}

}  // namespace quartet::cache
