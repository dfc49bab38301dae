// Lease rows: who in the world of this file is making which payload. A row counts while its owner lives and keeps
// renewing it; times are the boot's monotonic clock, which all processes of one boot share and no one can set.
#pragma once

#include <cstdint>
#include <string>

#include "base/hash.h"
#include "base/os.h"
#include "cache/cache.h"
#include "cache/connection.h"

namespace quartet::cache {

inline constexpr int64_t kLeaseBeatMs = 2000;
inline constexpr int64_t kLeaseLifeMs = 3 * kLeaseBeatMs;

// What makes this process one among all: its pid alone is reused, and an ended process keeps its pid until it is
// reaped.
struct LeaseOwner {
  std::string pid_space, boot;
  int64_t pid = 0;
  uint64_t pid_start = 0;
};
// Fails where the system does not tell; there are then no leases.
Result<LeaseOwner> this_owner(Os& os);

enum class LeaseState : uint8_t { free, mine, other };

// Reads the row; a row whose owner is dead or silent is free.
int lease_state(Connection& connection, Os& os, const LeaseOwner& self, const Digest& index, Kind kind,
                LeaseState& state);
// Takes a free lease, unless an entry has appeared meanwhile (`other`).
int take_lease(Connection& connection, Os& os, const LeaseOwner& self, const Digest& index, Kind kind,
               LeaseState& state);
int renew_lease(Connection& connection, Os& os, const LeaseOwner& self, const Digest& index, Kind kind);
int drop_lease(Connection& connection, const LeaseOwner& self, const Digest& index, Kind kind);

}  // namespace quartet::cache
