// Keeping the file within its bound.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/os.h"
#include "cache/connection.h"
#include "cache/lease.h"

namespace quartet::cache {

// Removes entries until the file's used bytes are at most `target`: first those of envs not met for 90 days, then the
// least recently used by the hour, then the cheapest per byte. Batches of 32 rows, so that no one waits long for the
// lock. Stops early when `stop` (may be null) turns true. `removed` counts entries, whatever is returned.
int evict_to(Connection& connection, Os& os, uint64_t target, const std::atomic<bool>* stop, uint64_t& removed);

// The same under the janitor's lease, so that one process at a time prunes; without it nothing is removed.
int evict_as_janitor(Connection& connection, Os& os, const LeaseOwner& self, uint64_t target,
                     const std::atomic<bool>* stop, uint64_t& removed);

// Removes all entries in such batches.
int remove_all(Connection& connection, uint64_t& removed);

// Gives free pages back to the file system and empties the WAL. Slow: only on request.
int shrink_file(Connection& connection);

}  // namespace quartet::cache
