// Where the cache lives and whether that place may be trusted.
#pragma once

#include <memory>
#include <string>

#include "base/os.h"
#include "base/status.h"
#include "cache/process_claim.h"

namespace quartet::cache {

// The schema's number stands in the file's name, so versions of the library never touch each other's files.
inline constexpr int kSchemaVersion = 1;

struct Place {
  std::string directory;  // absolute, no symbolic links
  std::string file;       // the database
  bool writable = false;
  std::shared_ptr<ProcessClaim> claim;  // null when the directory cannot be written
};

// Makes the directory (0700) unless `read_only`, and refuses, saying why and naming the option that would allow it: a
// symbolic link, another owner, group or world write rights, a network file system without `allow_network_fs`, a
// database file with any of these faults.
Result<Place> find_place(Os& os, const std::string& path, bool read_only, bool allow_network_fs);

}  // namespace quartet::cache
