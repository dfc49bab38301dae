#include "cache/schema.h"

namespace quartet::cache {

const char* const kSchemaSql = R"sql(
CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE env(id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, text TEXT NOT NULL, seen_day INTEGER NOT NULL) STRICT;
CREATE TABLE entry(
  id INTEGER PRIMARY KEY, key_hash BLOB NOT NULL, kind INTEGER NOT NULL, env_id INTEGER NOT NULL,
  size INTEGER NOT NULL, codec INTEGER NOT NULL, sum_hi INTEGER NOT NULL, sum_lo INTEGER NOT NULL,
  cost_us INTEGER NOT NULL, created_day INTEGER NOT NULL, used_tick INTEGER NOT NULL, hits INTEGER NOT NULL,
  flags INTEGER NOT NULL, UNIQUE(key_hash, kind)) STRICT;
CREATE INDEX entry_used ON entry(used_tick);
CREATE TABLE keytext(entry_id INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
CREATE TABLE payload(entry_id INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
CREATE TABLE lease(
  key_hash BLOB NOT NULL, kind INTEGER NOT NULL, host TEXT NOT NULL, boot TEXT NOT NULL, pid INTEGER NOT NULL,
  pid_start INTEGER NOT NULL, expires_ms INTEGER NOT NULL, PRIMARY KEY(key_hash, kind)) STRICT, WITHOUT ROWID;
CREATE TABLE stat(name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE bad(
  id INTEGER PRIMARY KEY, key_hash BLOB NOT NULL, kind INTEGER NOT NULL, sum_hi INTEGER NOT NULL,
  sum_lo INTEGER NOT NULL, reason TEXT NOT NULL, day INTEGER NOT NULL) STRICT;
)sql";

const char* sql_text(Sql which) {
  switch (which) {
    case Sql::begin:
      return "BEGIN IMMEDIATE";
    case Sql::commit:
      return "COMMIT";
    case Sql::rollback:
      return "ROLLBACK";
    case Sql::lookup:
      return "SELECT e.id, e.size, e.codec, e.sum_hi, e.sum_lo, e.cost_us, e.used_tick, v.digest, k.bytes, p.bytes "
             "FROM entry e JOIN keytext k ON k.entry_id = e.id JOIN payload p ON p.entry_id = e.id "
             "JOIN env v ON v.id = e.env_id WHERE e.key_hash = ?1 AND e.kind = ?2";
    case Sql::find_entry:
      return "SELECT id, sum_hi, sum_lo FROM entry WHERE key_hash = ?1 AND kind = ?2";
    case Sql::find_entry_by_id:
      return "SELECT sum_hi, sum_lo FROM entry WHERE id = ?1";
    case Sql::insert_entry:
      return "INSERT INTO entry(key_hash, kind, env_id, size, codec, sum_hi, sum_lo, cost_us, created_day, used_tick, "
             "hits, flags) VALUES(?1, ?2, ?3, ?4, 0, ?5, ?6, ?7, ?8, ?9, 0, 0)";
    case Sql::insert_key:
      return "INSERT OR REPLACE INTO keytext(entry_id, bytes) VALUES(?1, ?2)";
    case Sql::insert_payload:
      return "INSERT OR REPLACE INTO payload(entry_id, bytes) VALUES(?1, ?2)";
    case Sql::delete_entry:
      return "DELETE FROM entry WHERE id = ?1";
    case Sql::delete_key:
      return "DELETE FROM keytext WHERE entry_id = ?1";
    case Sql::delete_payload:
      return "DELETE FROM payload WHERE entry_id = ?1";
    case Sql::find_env:
      return "SELECT id, seen_day FROM env WHERE digest = ?1";
    case Sql::insert_env:
      return "INSERT INTO env(digest, text, seen_day) VALUES(?1, ?2, ?3)";
    case Sql::touch_env:
      return "UPDATE env SET seen_day = ?2 WHERE id = ?1";
    case Sql::delete_unused_envs:
      return "DELETE FROM env WHERE id NOT IN (SELECT env_id FROM entry)";
    case Sql::find_bad:
      return "SELECT 1 FROM bad WHERE key_hash = ?1 AND kind = ?2 AND sum_hi = ?3 AND sum_lo = ?4";
    case Sql::insert_bad:
      return "INSERT INTO bad(key_hash, kind, sum_hi, sum_lo, reason, day) VALUES(?1, ?2, ?3, ?4, ?5, ?6)";
    case Sql::cap_bad:
      return "DELETE FROM bad WHERE id <= (SELECT max(id) FROM bad) - 64";
    case Sql::stamp:
      return "UPDATE entry SET used_tick = ?2, hits = hits + ?3 WHERE id = ?1";
    case Sql::add_stat:
      return "INSERT INTO stat(name, value) VALUES(?1, ?2) ON CONFLICT(name) DO UPDATE SET value = value + ?2";
    case Sql::read_stats:
      return "SELECT name, value FROM stat";
    case Sql::lease_find:
      return "SELECT host, boot, pid, pid_start, expires_ms FROM lease WHERE key_hash = ?1 AND kind = ?2";
    case Sql::lease_take:
      return "INSERT OR REPLACE INTO lease(key_hash, kind, host, boot, pid, pid_start, expires_ms) "
             "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    case Sql::lease_beat:
      return "UPDATE lease SET expires_ms = ?6 WHERE key_hash = ?1 AND kind = ?2 AND boot = ?3 AND pid = ?4 AND "
             "pid_start = ?5";
    case Sql::lease_drop:
      return "DELETE FROM lease WHERE key_hash = ?1 AND kind = ?2 AND boot = ?3 AND pid = ?4 AND pid_start = ?5";
    case Sql::page_count:
      return "PRAGMA page_count";
    case Sql::freelist_count:
      return "PRAGMA freelist_count";
    case Sql::page_size:
      return "PRAGMA page_size";
    case Sql::totals:
      return "SELECT count(*), coalesce(sum(size), 0) FROM entry";
    case Sql::clamp_ticks:
      return "UPDATE entry SET used_tick = ?1 WHERE used_tick > ?1";
    case Sql::clamp_envs:
      return "UPDATE env SET seen_day = ?1 WHERE seen_day > ?1";
    case Sql::victims:
      return "SELECT e.id, e.size FROM entry e LEFT JOIN env v ON v.id = e.env_id ORDER BY coalesce(v.seen_day, 0) >= "
             "?1, "
             "e.used_tick, e.cost_us / (e.size + 1.0) LIMIT ?2";
    case Sql::list:
      return "SELECT e.key_hash, e.kind, e.size, e.cost_us, e.hits, e.created_day, e.used_tick, v.text FROM entry e "
             "LEFT JOIN env v ON v.id = e.env_id ORDER BY e.used_tick DESC, e.id DESC LIMIT ?1";
    case Sql::verify_next:
      return "SELECT e.id, e.size, e.codec, e.sum_hi, e.sum_lo, e.cost_us, e.used_tick, v.digest, k.bytes, p.bytes, "
             "e.kind, e.key_hash FROM entry e LEFT JOIN keytext k ON k.entry_id = e.id LEFT JOIN payload p ON "
             "p.entry_id = e.id LEFT JOIN env v ON v.id = e.env_id WHERE e.id > ?1 ORDER BY e.id LIMIT 1";
    case Sql::any_entries:
      return "SELECT id, size FROM entry ORDER BY id LIMIT ?1";
    case Sql::drop_payloads_without_entry:
      return "DELETE FROM payload WHERE entry_id NOT IN (SELECT id FROM entry)";
    case Sql::drop_keys_without_entry:
      return "DELETE FROM keytext WHERE entry_id NOT IN (SELECT id FROM entry)";
    case Sql::count_:
      break;
  }
  return "";
}

}  // namespace quartet::cache
