// One SQLite connection to the cache's file, opened in the one right order, with its prepared statements. The only
// files that see sqlite3.h are those that include this one.
#pragma once

#include <sqlite3.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/os.h"

namespace quartet::cache {

// Payload plus key of one entry; SQLite is held to a little more.
inline constexpr uint64_t kMaxEntryBytes = uint64_t{64} << 20;

// What an SQLite answer means for the cache.
enum class Trouble : uint8_t {
  none,
  soft,     // busy, interrupted, out of memory, too big: this call failed
  refused,  // the file or its directory cannot be written
  io,       // the system failed: I/O error, disk full, cannot open
  corrupt,  // the file is not what it should be
};
Trouble trouble_of(int rc);

struct ConnectionConfig {
  Os* os = nullptr;
  std::string file;
  const char* vfs = nullptr;
  bool read_only = false;
  const std::atomic<bool>* stop = nullptr;  // ends waits for other processes' locks early; may be null
};

enum class Sql : uint8_t {
  begin,
  commit,
  rollback,
  lookup,
  find_entry,
  find_entry_by_id,
  insert_entry,
  insert_key,
  insert_payload,
  delete_entry,
  delete_key,
  delete_payload,
  find_env,
  insert_env,
  touch_env,
  delete_unused_envs,
  find_bad,
  insert_bad,
  cap_bad,
  stamp,
  add_stat,
  read_stats,
  lease_find,
  lease_take,
  lease_beat,
  lease_drop,
  page_count,
  freelist_count,
  page_size,
  totals,
  clamp_ticks,
  clamp_envs,
  victims,
  list,
  verify_next,
  any_entries,
  drop_payloads_without_entry,
  drop_keys_without_entry,
  count_
};

class Connection {
 public:
  // Opens `config.file`, which exists, makes it a cache file if it is empty, and checks that it is one. On failure
  // `out` stays null and SQLite's extended result code is returned; SQLITE_NOTADB when the file is another program's.
  static int open(const ConnectionConfig& config, std::unique_ptr<Connection>& out);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  sqlite3* handle() { return db_; }
  int execute(const char* sql);
  uint64_t device = 0, inode = 0;  // of the file this is a connection to
  int64_t patience_ms = 2000;      // longest wait for another process's lock

 private:
  friend class Query;
  Connection() = default;
  int configure();
  int switch_to_wal();
  int check_or_make_schema();
  int read_identity(bool& is_ours);
  int make_schema();
  int read_pragma(const char* sql, int64_t& value);
  int prepare(Sql which);
  static int on_busy(void* self, int attempts);
  void pause_with_jitter(int attempt);

  ConnectionConfig config_;
  sqlite3* db_ = nullptr;
  int64_t busy_since_ns_ = 0;
  std::array<sqlite3_stmt*, static_cast<size_t>(Sql::count_)> statements_{};
};

// One use of a prepared statement: bind left to right, step, read columns. Bound bytes must live until it is destroyed.
class Query {
 public:
  Query(Connection& connection, Sql which);
  ~Query();
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  Query& bind(int64_t value);
  Query& bind(uint64_t value) { return bind(static_cast<int64_t>(value)); }
  Query& bind(std::span<const uint8_t> bytes);
  Query& bind(const Digest& digest);
  Query& bind_text(std::string_view text);

  // SQLITE_ROW, SQLITE_DONE or an error.
  int step();
  // Steps a statement that gives no rows: SQLITE_OK or an error.
  int run();

  int64_t number(int column);
  uint64_t unsigned_number(int column) { return static_cast<uint64_t>(number(column)); }
  // Empty when the column holds no blob. Valid until the next step.
  std::span<const uint8_t> blob(int column);
  std::string text(int column);
  Digest digest(int column);

 private:
  sqlite3_stmt* statement_ = nullptr;
  int rc_ = SQLITE_OK;
  int next_ = 1;
};

// BEGIN IMMEDIATE ... COMMIT; rolled back when destroyed before a successful commit.
class Transaction {
 public:
  explicit Transaction(Connection& connection);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  int begun() const { return rc_; }  // SQLITE_OK or why not
  int commit();

 private:
  Connection& connection_;
  int rc_;
  bool open_;
};

}  // namespace quartet::cache
