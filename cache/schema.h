// The tables of kernels-1.db and every statement on them.
//
// entry holds what look-ups, stamps and eviction read and rewrite; keys and payloads lie apart so that these never move
// a blob. A change here is a new schema number (place.h), never a migration.
#pragma once

#include <cstdint>

#include "cache/connection.h"

namespace quartet::cache {

inline constexpr int64_t kApplicationId = 0x51525454;  // "QRTT"

extern const char* const kSchemaSql;
const char* sql_text(Sql which);

}  // namespace quartet::cache
