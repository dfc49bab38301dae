#include "cache/process_claim.h"

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <utility>

namespace quartet::cache {
namespace {

struct Held {
  std::unique_ptr<FileLock> lock;
  std::string lock_path, suffix;
  uint64_t users = 0;
};

struct Registry {
  std::mutex mutex;
  std::map<std::pair<uint64_t, uint64_t>, Held> claims;  // by device and inode of the directory
  std::atomic<int64_t> pid{0};                           // the process that SQLite's own globals belong to
  std::atomic<int64_t> sqlite_users{0};
};

Registry& registry() {
  // Never destroyed: caches may be closed while the process ends. Not on the heap, whose owner may be a context.
  alignas(Registry) static unsigned char storage[sizeof(Registry)];
  static Registry& instance = *new (storage) Registry;
  return instance;
}

std::string lock_path_of(const std::string& directory, int64_t pid, const char* suffix) {
  return directory + format("/proc/%lld%s.lock", static_cast<long long>(pid), suffix);
}

}  // namespace

Result<std::shared_ptr<ProcessClaim>> ProcessClaim::take(Os& os, const std::string& directory,
                                                         const FileInfo& identity) {
  Registry& all = registry();
  std::lock_guard guard(all.mutex);
  const auto key = std::pair(identity.device, identity.inode);
  auto found = all.claims.find(key);
  if (found == all.claims.end()) {
    Held held;
    for (const char* suffix : {"", "-b"}) {
      held.lock_path = lock_path_of(directory, os.process_id(), suffix);
      QUARTET_ASSIGN(held.lock, os.lock_file(held.lock_path, LockMode::exclusive, false));
      held.suffix = suffix;
      if (held.lock) break;
    }
    if (!held.lock)
      return make_error(Code::failed_precondition, "two other copies of the library use '%s' in this process",
                        directory.c_str());
    found = all.claims.emplace(key, std::move(held)).first;
  }
  ++found->second.users;
  std::shared_ptr<ProcessClaim> claim(new ProcessClaim);
  claim->os_ = &os;
  claim->device_ = identity.device;
  claim->inode_ = identity.inode;
  claim->suffix_ = found->second.suffix;
  return claim;
}

ProcessClaim::~ProcessClaim() {
  Registry& all = registry();
  std::lock_guard guard(all.mutex);
  const auto found = all.claims.find(std::pair(device_, inode_));
  if (found == all.claims.end() || --found->second.users > 0) return;
  // Removed while still locked: whoever opened it meanwhile sees that its file has no name and starts over.
  (void)os_->remove_file(found->second.lock_path);
  all.claims.erase(found);
}

Status ProcessClaim::ensure_file(Os& os, const std::string& path) {
  std::lock_guard guard(registry().mutex);
  if (os.file_info(path).ok()) return {};
  const Status made = os.create_file(path, 0600);
  return made.code() == Code::failed_precondition ? Status() : made;
}

bool SqliteUse::begin(Os& os) {
  Registry& all = registry();
  const int64_t self = os.process_id();
  int64_t seen = all.pid.load();
  while (seen != self) {
    if (seen != 0 && all.sqlite_users.load() != 0) return false;
    if (all.pid.compare_exchange_weak(seen, self)) break;
  }
  all.sqlite_users.fetch_add(1);
  return true;
}

void SqliteUse::end() { registry().sqlite_users.fetch_sub(1); }

size_t sweep_claims(Os& os, const std::string& directory) {
  const std::string folder = directory + "/proc";
  const auto names = os.list_directory(folder);
  if (!names) return 0;
  size_t removed = 0;
  for (const std::string& name : names.value()) {
    char* end = nullptr;
    const int64_t pid = std::strtoll(name.c_str(), &end, 10);
    const std::string rest = end;
    if (pid <= 0 || (rest != ".lock" && rest != "-b.lock")) continue;
    if (os.process_info(pid).status().code() != Code::not_found) continue;
    const std::string path = folder + "/" + name;
    const auto lock = os.lock_file(path, LockMode::exclusive, false);
    if (lock && lock.value() && os.remove_file(path).ok()) ++removed;
  }
  return removed;
}

}  // namespace quartet::cache
