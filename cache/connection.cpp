#include "cache/connection.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "cache/place.h"
#include "cache/schema.h"

namespace quartet::cache {
namespace {

constexpr int kWalAttempts = 20;

bool is_busy(int rc) { return (rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_LOCKED; }

// A file: URI for SQLite, for the cases that need parameters.
std::string uri_of(const std::string& path, const char* parameters) {
  std::string uri = "file:";
  for (const char c : path) {
    if (c == '%' || c == '?' || c == '#')
      uri += format("%%%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    else
      uri += c;
  }
  return uri + "?" + parameters;
}

}  // namespace

Trouble trouble_of(int rc) {
  if (rc == SQLITE_IOERR_NOMEM) return Trouble::soft;
  if (rc == SQLITE_IOERR_SHORT_READ || rc == SQLITE_IOERR_CORRUPTFS) return Trouble::corrupt;
  switch (rc & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
      return Trouble::none;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_INTERRUPT:
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG:
    case SQLITE_SCHEMA:
    case SQLITE_ABORT:
      return Trouble::soft;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return Trouble::refused;
    // A statement of ours that does not fit the tables, or a constraint that cannot fail: the schema or an index is
    // damaged.
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
      return Trouble::corrupt;
    default:
      return Trouble::io;
  }
}

int Connection::open(const ConnectionConfig& config, std::unique_ptr<Connection>& out) {
  std::unique_ptr<Connection> connection(new Connection);
  connection->config_ = config;
  const int common = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE;
  int rc;
  if (!config.read_only) {
    rc = sqlite3_open_v2(config.file.c_str(), &connection->db_, common | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                         config.vfs);
    if (rc == SQLITE_OK) rc = connection->configure();
    if (rc == SQLITE_OK && sqlite3_db_readonly(connection->db_, "main") == 1) rc = SQLITE_READONLY;
    // SQLite only reads files whose header names a format it does not know; none of ours does.
    if (rc == SQLITE_READONLY && config.os->can_write(config.file)) rc = SQLITE_NOTADB;
  } else {
    rc = sqlite3_open_v2(config.file.c_str(), &connection->db_, common | SQLITE_OPEN_READONLY, config.vfs);
    if (rc == SQLITE_OK) rc = connection->configure();
    // Reading a WAL file needs its -wal and -shm files. Where these can neither be opened nor made, no one else can be
    // writing as this user either; without a WAL that holds anything the file alone is the whole truth.
    const Trouble trouble = trouble_of(rc);
    if (trouble == Trouble::io || trouble == Trouble::refused) {
      const auto wal = config.os->file_info(config.file + "-wal");
      if (wal ? wal->size == 0 : wal.status().code() == Code::not_found) {
        sqlite3_close(connection->db_);
        connection->db_ = nullptr;
        rc = sqlite3_open_v2(uri_of(config.file, "immutable=1").c_str(), &connection->db_,
                             common | SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, config.vfs);
        if (rc == SQLITE_OK) rc = connection->configure();
      }
    }
  }
  if (rc == SQLITE_OK) out = std::move(connection);
  return rc;
}

Connection::~Connection() {
  for (sqlite3_stmt* statement : statements_) sqlite3_finalize(statement);
  sqlite3_close(db_);
}

// The order matters: the busy handler before anything that can wait, what shapes a new file before anything that writes
// it.
int Connection::configure() {
  int rc = sqlite3_busy_handler(db_, &Connection::on_busy, this);
  // Files of a cache are never removed by SQLite: after a file was set aside, a late close would remove its
  // successor's.
  int keep_wal = 1;
  if (rc == SQLITE_OK) sqlite3_file_control(db_, "main", SQLITE_FCNTL_PERSIST_WAL, &keep_wal);
  if (rc == SQLITE_OK) rc = sqlite3_db_config(db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  sqlite3_limit(db_, SQLITE_LIMIT_LENGTH, static_cast<int>(kMaxEntryBytes + 4096));
  bool fresh = false;
  if (rc == SQLITE_OK && !config_.read_only) {
    const auto info = config_.os->file_info(config_.file);
    fresh = info && info->size == 0;
    // An empty file has nothing to lose to a power cut; making it durable at once would cost the first run many syncs.
    if (fresh) rc = execute("PRAGMA synchronous=OFF; PRAGMA page_size=4096; PRAGMA auto_vacuum=INCREMENTAL");
    if (rc == SQLITE_OK) rc = switch_to_wal();
  }
  if (rc == SQLITE_OK && !fresh) rc = execute("PRAGMA synchronous=NORMAL");
  if (rc == SQLITE_OK)
    rc = execute(
        "PRAGMA wal_autocheckpoint=1000; PRAGMA journal_size_limit=67108864;"
        "PRAGMA cache_size=-8192; PRAGMA mmap_size=0; PRAGMA temp_store=MEMORY; PRAGMA foreign_keys=OFF;"
        "PRAGMA cell_size_check=ON; PRAGMA trusted_schema=OFF; PRAGMA secure_delete=OFF");
  for (const auto [option, value] :
       {std::pair(SQLITE_DBCONFIG_DEFENSIVE, 1), std::pair(SQLITE_DBCONFIG_ENABLE_TRIGGER, 0),
        std::pair(SQLITE_DBCONFIG_ENABLE_VIEW, 0)})
    if (rc == SQLITE_OK) rc = sqlite3_db_config(db_, option, value, nullptr);
  if (rc == SQLITE_OK) rc = check_or_make_schema();
  return rc == SQLITE_OK && fresh ? execute("PRAGMA synchronous=NORMAL") : rc;
}

// Several processes may make one file WAL at once; SQLite then answers "locked" to some at once, busy handler or not.
int Connection::switch_to_wal() {
  int rc = SQLITE_BUSY;
  for (int attempt = 0; attempt < kWalAttempts; ++attempt) {
    if (attempt > 0) pause_with_jitter(attempt);
    sqlite3_stmt* statement = nullptr;
    rc = sqlite3_prepare_v2(db_, "PRAGMA journal_mode=WAL", -1, &statement, nullptr);
    bool is_wal = false;
    if (rc == SQLITE_OK) {
      rc = sqlite3_step(statement);
      const unsigned char* mode = rc == SQLITE_ROW ? sqlite3_column_text(statement, 0) : nullptr;
      is_wal = mode && std::strcmp(reinterpret_cast<const char*>(mode), "wal") == 0;
      if (rc == SQLITE_ROW) rc = SQLITE_OK;
    }
    sqlite3_finalize(statement);
    if (is_wal) return SQLITE_OK;
    if (rc == SQLITE_OK) rc = SQLITE_CANTOPEN;  // this file system cannot do it
    if (!is_busy(rc)) return rc;
    if (config_.stop && config_.stop->load()) return rc;
  }
  return rc;
}

int Connection::read_pragma(const char* sql, int64_t& value) {
  sqlite3_stmt* statement = nullptr;
  int rc = sqlite3_prepare_v2(db_, sql, -1, &statement, nullptr);
  if (rc == SQLITE_OK) rc = sqlite3_step(statement);
  if (rc == SQLITE_ROW) {
    value = sqlite3_column_int64(statement, 0);
    rc = SQLITE_OK;
  } else if (rc == SQLITE_DONE) {
    rc = SQLITE_NOTADB;
  }
  sqlite3_finalize(statement);
  return rc;
}

int Connection::check_or_make_schema() {
  int rc = SQLITE_BUSY;
  for (int attempt = 0; attempt < kWalAttempts; ++attempt) {
    if (attempt > 0) pause_with_jitter(attempt);
    bool is_ours = false;
    rc = read_identity(is_ours);
    if (rc == SQLITE_OK && is_ours) return SQLITE_OK;
    if (rc == SQLITE_OK) rc = make_schema();
    if (rc == SQLITE_OK || !is_busy(rc) || (config_.stop && config_.stop->load())) return rc;
  }
  return rc;
}

int Connection::read_identity(bool& is_ours) {
  int64_t application = 0, version = 0;
  int rc = read_pragma("PRAGMA application_id", application);
  if (rc == SQLITE_OK) rc = read_pragma("PRAGMA user_version", version);
  is_ours = application == kApplicationId && version == kSchemaVersion;
  return rc;
}

// Decides within one transaction what a file without our identity is: outside of one, the two numbers and the tables
// may be seen from before and from after another process's commit.
int Connection::make_schema() {
  std::optional<Transaction> transaction;
  int rc = SQLITE_OK;
  if (config_.read_only) {
    rc = execute("BEGIN");
  } else {
    transaction.emplace(*this);
    rc = transaction->begun();
  }
  bool is_ours = false;
  int64_t tables = 0;
  if (rc == SQLITE_OK) rc = read_identity(is_ours);
  if (rc == SQLITE_OK && !is_ours) {
    rc = read_pragma("SELECT count(*) FROM sqlite_schema", tables);
    if (rc == SQLITE_OK && (tables != 0 || config_.read_only)) rc = SQLITE_NOTADB;
    if (rc == SQLITE_OK) rc = execute(kSchemaSql);
    if (rc == SQLITE_OK)
      rc = execute(format("PRAGMA application_id=%lld; PRAGMA user_version=%d", static_cast<long long>(kApplicationId),
                          kSchemaVersion)
                       .c_str());
    if (rc == SQLITE_OK) rc = transaction->commit();
  }
  if (config_.read_only) (void)execute("ROLLBACK");
  return rc;
}

int Connection::execute(const char* sql) { return sqlite3_exec(db_, sql, nullptr, nullptr, nullptr); }

int Connection::prepare(Sql which) {
  sqlite3_stmt*& statement = statements_[static_cast<size_t>(which)];
  if (statement) return SQLITE_OK;
  return sqlite3_prepare_v3(db_, sql_text(which), -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
}

// Sleeps 1 to 25 ms, not in step with other processes.
void Connection::pause_with_jitter(int attempt) {
  const int64_t now = config_.os->monotonic_ns();
  const uint64_t seed[2] = {static_cast<uint64_t>(now), static_cast<uint64_t>(config_.os->process_id())};
  const int64_t longest = std::min(25, 2 << std::min(attempt, 10)) * int64_t{1000000};
  config_.os->sleep_ns(500000 + static_cast<int64_t>(digest_of(seed, sizeof seed).lo % static_cast<uint64_t>(longest)));
}

int Connection::on_busy(void* self, int attempts) {
  auto& connection = *static_cast<Connection*>(self);
  const int64_t now = connection.config_.os->monotonic_ns();
  if (attempts == 0) connection.busy_since_ns_ = now;
  if (now - connection.busy_since_ns_ >= connection.patience_ms * 1000000) return 0;
  if (connection.config_.stop && connection.config_.stop->load()) return 0;
  connection.pause_with_jitter(attempts);
  return 1;
}

Query::Query(Connection& connection, Sql which) {
  rc_ = connection.prepare(which);
  statement_ = connection.statements_[static_cast<size_t>(which)];
}

Query::~Query() {
  if (!statement_) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

Query& Query::bind(int64_t value) {
  if (rc_ == SQLITE_OK) rc_ = sqlite3_bind_int64(statement_, next_++, value);
  return *this;
}

Query& Query::bind(std::span<const uint8_t> bytes) {
  // A null pointer would bind NULL, and an empty vector may hold one.
  const void* data = bytes.empty() ? static_cast<const void*>("") : bytes.data();
  if (rc_ == SQLITE_OK) rc_ = sqlite3_bind_blob64(statement_, next_++, data, bytes.size(), SQLITE_STATIC);
  return *this;
}

Query& Query::bind(const Digest& digest) {
  uint8_t bytes[16];
  std::memcpy(bytes, &digest.lo, 8);
  std::memcpy(bytes + 8, &digest.hi, 8);
  // NOLINTNEXTLINE: SQLite's own constant
  if (rc_ == SQLITE_OK) rc_ = sqlite3_bind_blob64(statement_, next_++, bytes, sizeof bytes, SQLITE_TRANSIENT);
  return *this;
}

Query& Query::bind_text(std::string_view text) {
  const char* data = text.empty() ? "" : text.data();
  if (rc_ == SQLITE_OK) rc_ = sqlite3_bind_text64(statement_, next_++, data, text.size(), SQLITE_STATIC, SQLITE_UTF8);
  return *this;
}

int Query::step() {
  if (rc_ == SQLITE_OK) {
    const int rc = sqlite3_step(statement_);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) rc_ = rc;
    return rc;
  }
  return rc_;
}

int Query::run() {
  const int rc = step();
  return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : rc;
}

int64_t Query::number(int column) { return sqlite3_column_int64(statement_, column); }

std::span<const uint8_t> Query::blob(int column) {
  if (sqlite3_column_type(statement_, column) != SQLITE_BLOB) return {};
  const void* data = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  if (!data || size <= 0) return {};
  return {static_cast<const uint8_t*>(data), static_cast<size_t>(size)};
}

std::string Query::text(int column) {
  const unsigned char* data = sqlite3_column_text(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  if (!data || size <= 0) return {};
  return {reinterpret_cast<const char*>(data), static_cast<size_t>(size)};
}

Digest Query::digest(int column) {
  Digest digest;
  const auto bytes = blob(column);
  if (bytes.size() == 16) {
    std::memcpy(&digest.lo, bytes.data(), 8);
    std::memcpy(&digest.hi, bytes.data() + 8, 8);
  }
  return digest;
}

Transaction::Transaction(Connection& connection)
    : connection_(connection), rc_(Query(connection, Sql::begin).run()), open_(rc_ == SQLITE_OK) {}

Transaction::~Transaction() {
  // Some errors have rolled back already; a second rollback only says so.
  if (open_ && sqlite3_get_autocommit(connection_.handle()) == 0) (void)Query(connection_, Sql::rollback).run();
}

int Transaction::commit() {
  const int rc = Query(connection_, Sql::commit).run();
  if (rc == SQLITE_OK) open_ = false;
  return rc;
}

}  // namespace quartet::cache
