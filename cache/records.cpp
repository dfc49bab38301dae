#include "cache/records.h"

#include <algorithm>

namespace quartet::cache {
namespace {

#define TRY_SQL(expression)                                         \
  do {                                                              \
    if (const int rc_ = (expression); rc_ != SQLITE_OK) return rc_; \
  } while (false)

int64_t as_number(Kind kind) { return static_cast<int64_t>(kind); }

// The row of an env, made or marked as met today.
int env_row(Connection& connection, const std::string& text, int64_t day, int64_t& id) {
  const Digest digest = digest_of(text.data(), text.size());
  int64_t seen = 0;
  {
    Query find(connection, Sql::find_env);
    const int rc = find.bind(digest).step();
    if (rc == SQLITE_ROW) {
      id = find.number(0);
      seen = find.number(1);
    } else if (rc != SQLITE_DONE) {
      return rc;
    } else {
      TRY_SQL(Query(connection, Sql::insert_env).bind(digest).bind_text(text).bind(day).run());
      id = sqlite3_last_insert_rowid(connection.handle());
      return SQLITE_OK;
    }
  }
  return seen == day ? SQLITE_OK : Query(connection, Sql::touch_env).bind(id).bind(day).run();
}

int find_entry(Connection& connection, const Digest& index, Kind kind, int64_t& id, Digest& sum) {
  Query find(connection, Sql::find_entry);
  const int rc = find.bind(index).bind(as_number(kind)).step();
  if (rc != SQLITE_ROW) return rc;
  id = find.number(0);
  sum = {find.unsigned_number(2), find.unsigned_number(1)};
  return rc;
}

int is_bad(Connection& connection, const Digest& index, Kind kind, const Digest& sum) {
  return Query(connection, Sql::find_bad).bind(index).bind(as_number(kind)).bind(sum.hi).bind(sum.lo).step();
}

}  // namespace

Digest entry_sum(Kind kind, const Digest& key, uint64_t key_size, std::span<const uint8_t> payload, const Digest& env,
                 uint64_t cost_us) {
  const Digest bytes = digest_of(payload);
  const uint64_t words[] = {static_cast<uint64_t>(kind),
                            key.lo,
                            key.hi,
                            key_size,
                            bytes.lo,
                            bytes.hi,
                            payload.size(),
                            env.lo,
                            env.hi,
                            cost_us};
  return digest_of(words, sizeof words);
}

int read_entry(Connection& connection, const Digest& index, Kind kind, std::span<const uint8_t> key, Found& found) {
  Query row(connection, Sql::lookup);
  const int rc = row.bind(index).bind(as_number(kind)).step();
  found.outcome = Found::Outcome::absent;
  if (rc == SQLITE_DONE) return SQLITE_OK;
  if (rc != SQLITE_ROW) return rc;
  found.id = row.number(0);
  found.sum = {row.unsigned_number(4), row.unsigned_number(3)};
  found.cost_us = row.unsigned_number(5);
  found.used_hour = row.number(6);
  const auto stored_key = row.blob(8);
  const auto payload = row.blob(9);
  const bool same_key = std::ranges::equal(stored_key, key);
  const Digest sum = entry_sum(kind, digest_of(stored_key), stored_key.size(), payload, row.digest(7), found.cost_us);
  if (sum != found.sum || row.number(2) != 0 || row.unsigned_number(1) != stored_key.size() + payload.size()) {
    found.outcome = Found::Outcome::damaged;
  } else if (!same_key) {
    found.outcome = Found::Outcome::key_differs;
  } else {
    found.outcome = Found::Outcome::hit;
    found.payload = std::make_shared<const Bytes>(payload.begin(), payload.end());
  }
  return SQLITE_OK;
}

int entry_exists(Connection& connection, const Digest& index, Kind kind, bool& exists) {
  int64_t id = 0;
  Digest sum;
  const int rc = find_entry(connection, index, kind, id, sum);
  exists = rc == SQLITE_ROW;
  return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int write_entry(Connection& connection, const NewEntry& entry, int64_t day, int64_t hour, Written& written,
                int64_t& id) {
  const Digest sum = entry_sum(entry.kind, digest_of(*entry.key), entry.key->size(), *entry.payload,
                               digest_of(entry.env.data(), entry.env.size()), entry.cost_us);
  Transaction transaction(connection);
  TRY_SQL(transaction.begun());
  int64_t old = 0;
  Digest old_sum;
  int rc = find_entry(connection, entry.index, entry.kind, old, old_sum);
  if (rc == SQLITE_ROW) {
    if (old_sum == sum) {
      written = Written::known;
      id = old;
      return SQLITE_OK;
    }
    TRY_SQL(remove_rows(connection, std::span(&old, 1)));
  } else if (rc != SQLITE_DONE) {
    return rc;
  }
  rc = is_bad(connection, entry.index, entry.kind, sum);
  if (rc == SQLITE_ROW) {
    written = Written::refused;
    return SQLITE_OK;
  }
  if (rc != SQLITE_DONE) return rc;
  int64_t env = 0;
  TRY_SQL(env_row(connection, entry.env, day, env));
  TRY_SQL(Query(connection, Sql::insert_entry)
              .bind(entry.index)
              .bind(as_number(entry.kind))
              .bind(env)
              .bind(uint64_t{entry.key->size() + entry.payload->size()})
              .bind(sum.hi)
              .bind(sum.lo)
              .bind(entry.cost_us)
              .bind(day)
              .bind(hour)
              .run());
  id = sqlite3_last_insert_rowid(connection.handle());
  TRY_SQL(Query(connection, Sql::insert_key).bind(id).bind(std::span<const uint8_t>(*entry.key)).run());
  TRY_SQL(Query(connection, Sql::insert_payload).bind(id).bind(std::span<const uint8_t>(*entry.payload)).run());
  written = Written::stored;
  return transaction.commit();
}

int remove_entry(Connection& connection, const Digest& index, Kind kind, bool bad, std::string_view reason,
                 int64_t day) {
  Transaction transaction(connection);
  TRY_SQL(transaction.begun());
  int64_t id = 0;
  Digest sum;
  const int rc = find_entry(connection, index, kind, id, sum);
  if (rc != SQLITE_ROW) return rc == SQLITE_DONE ? SQLITE_OK : rc;
  TRY_SQL(remove_rows(connection, std::span(&id, 1)));
  if (bad) {
    TRY_SQL(Query(connection, Sql::insert_bad)
                .bind(index)
                .bind(as_number(kind))
                .bind(sum.hi)
                .bind(sum.lo)
                .bind_text(reason.substr(0, 256))
                .bind(day)
                .run());
    TRY_SQL(Query(connection, Sql::cap_bad).run());
  }
  return transaction.commit();
}

int remove_damaged(Connection& connection, int64_t id, const Digest& sum) {
  Transaction transaction(connection);
  TRY_SQL(transaction.begun());
  {
    Query find(connection, Sql::find_entry_by_id);
    const int rc = find.bind(id).step();
    if (rc != SQLITE_ROW) return rc == SQLITE_DONE ? SQLITE_OK : rc;
    if (Digest{find.unsigned_number(1), find.unsigned_number(0)} != sum) return SQLITE_OK;
  }
  TRY_SQL(remove_rows(connection, std::span(&id, 1)));
  return transaction.commit();
}

int remove_rows(Connection& connection, std::span<const int64_t> ids) {
  for (const int64_t id : ids) {
    TRY_SQL(Query(connection, Sql::delete_entry).bind(id).run());
    TRY_SQL(Query(connection, Sql::delete_key).bind(id).run());
    TRY_SQL(Query(connection, Sql::delete_payload).bind(id).run());
  }
  return SQLITE_OK;
}

int write_stamps(Connection& connection, std::span<const Stamp> stamps, int64_t hour,
                 std::span<const StatDelta> stats) {
  Transaction transaction(connection);
  TRY_SQL(transaction.begun());
  for (const Stamp& stamp : stamps)
    TRY_SQL(Query(connection, Sql::stamp).bind(stamp.id).bind(hour).bind(stamp.hits).run());
  for (const StatDelta& stat : stats)
    if (stat.by > 0) TRY_SQL(Query(connection, Sql::add_stat).bind_text(stat.name).bind(stat.by).run());
  return transaction.commit();
}

int used_bytes(Connection& connection, uint64_t& bytes) {
  uint64_t values[3] = {};
  const Sql asked[3] = {Sql::page_count, Sql::freelist_count, Sql::page_size};
  for (int i = 0; i < 3; ++i) {
    Query query(connection, asked[i]);
    const int rc = query.step();
    if (rc != SQLITE_ROW) return rc == SQLITE_DONE ? SQLITE_CORRUPT : rc;
    values[i] = query.unsigned_number(0);
  }
  bytes = (values[0] - std::min(values[0], values[1])) * values[2];
  return SQLITE_OK;
}

}  // namespace quartet::cache
