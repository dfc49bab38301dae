// Entries as rows: reading, writing, removing, stamping. Functions return SQLite's result code; those that write open
// and commit their own transaction.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "cache/cache.h"
#include "cache/connection.h"

namespace quartet::cache {

// The checksum kept with an entry: over key, payload, kind, cost and the digest of the env's text.
Digest entry_sum(Kind kind, const Digest& key, uint64_t key_size, std::span<const uint8_t> payload, const Digest& env,
                 uint64_t cost_us);

struct Found {
  enum class Outcome : uint8_t { hit, absent, key_differs, damaged } outcome = Outcome::absent;
  std::shared_ptr<const Bytes> payload;  // for a hit
  uint64_t cost_us = 0;
  int64_t id = 0;
  int64_t used_hour = 0;
  Digest sum;  // as stored
};

// Looks up (index, kind), compares the whole key and checks the sum.
int read_entry(Connection& connection, const Digest& index, Kind kind, std::span<const uint8_t> key, Found& found);
// Whether there is an entry, whatever its key and state.
int entry_exists(Connection& connection, const Digest& index, Kind kind, bool& exists);

struct NewEntry {
  Digest index;
  Kind kind = Kind::program;
  std::shared_ptr<const Bytes> key, payload;
  std::string env;
  uint64_t cost_us = 0;
};
enum class Written : uint8_t { stored, known, refused };
// Stores an entry in place of any other with its index and kind. `known` when the same bytes are there, `refused` when
// this payload was marked bad. `id` is the row.
int write_entry(Connection& connection, const NewEntry& entry, int64_t day, int64_t hour, Written& written,
                int64_t& id);

// Removes (index, kind). With `bad`, remembers the removed payload's sum and `reason`.
int remove_entry(Connection& connection, const Digest& index, Kind kind, bool bad, std::string_view reason,
                 int64_t day);
// Removes row `id` if it still has this sum: another process may have replaced it.
int remove_damaged(Connection& connection, int64_t id, const Digest& sum);
// Removes these rows, whatever they are, within the caller's transaction.
int remove_rows(Connection& connection, std::span<const int64_t> ids);

struct Stamp {
  int64_t id = 0;
  uint64_t hits = 0;
};
struct StatDelta {
  const char* name;
  uint64_t by;
};
// Marks entries as used in `hour` and adds to the persistent sums, in one transaction.
int write_stamps(Connection& connection, std::span<const Stamp> stamps, int64_t hour, std::span<const StatDelta> stats);

// Bytes in use in the file: whole pages, without free ones.
int used_bytes(Connection& connection, uint64_t& bytes);

}  // namespace quartet::cache
