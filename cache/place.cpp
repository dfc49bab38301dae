#include "cache/place.h"

namespace quartet::cache {
namespace {

// Owner, rights and kind of something that only this user may be able to change.
Status check_trusted(Os& os, const std::string& path, FileKind kind, const FileInfo& info) {
  const char* what = kind == FileKind::directory ? "directory" : "file";
  if (info.kind == FileKind::symlink)
    return make_error(Code::failed_precondition, "cache %s '%s' is a symbolic link; give its target as cache_path",
                      what, path.c_str());
  if (info.kind != kind)
    return make_error(Code::failed_precondition, "'%s' is not a %s; give another cache_path", path.c_str(), what);
  if (info.owner != os.effective_user())
    return make_error(Code::failed_precondition,
                      "cache %s '%s' belongs to user %u, this process runs as user %u; give another cache_path", what,
                      path.c_str(), info.owner, os.effective_user());
  if (info.mode & 022u)
    return make_error(Code::failed_precondition,
                      "cache %s '%s' can be written by others (mode %04o); chmod go-w it or give another cache_path",
                      what, path.c_str(), info.mode);
  return {};
}

// mkdir -p; a directory that appears meanwhile is as good as one of ours.
Status make_directories(Os& os, const std::string& path) {
  if (os.file_info(path).status().code() != Code::not_found) return {};
  const size_t slash = path.find_last_of('/');
  if (slash != std::string::npos && slash > 0) QUARTET_TRY(make_directories(os, path.substr(0, slash)));
  const Status status = os.make_directory(path, 0700);
  return status.code() == Code::failed_precondition ? Status() : status;
}

std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

Result<Place> find_place(Os& os, const std::string& asked, bool read_only, bool allow_network_fs) {
  const std::string path = without_trailing_slashes(asked);
  if (path.find('\0') != std::string::npos) return make_error(Code::invalid_argument, "cache_path holds a zero byte");
  if (!read_only) QUARTET_TRY(make_directories(os, path));
  QUARTET_ASSIGN(const FileInfo directory, os.file_info(path));
  QUARTET_TRY(check_trusted(os, path, FileKind::directory, directory));
  QUARTET_ASSIGN(const FileSystemInfo system, os.file_system(path));
  if (system.network && !allow_network_fs)
    return make_error(Code::failed_precondition,
                      "cache directory '%s' is on a network file system (%s), whose locks cannot be relied on; give a "
                      "local cache_path or set cache_allow_network_fs",
                      path.c_str(), system.name);
  Place place;
  QUARTET_ASSIGN(place.directory, os.real_path(path));
  place.writable = os.can_write(place.directory);
  if (place.writable) {
    const std::string folder = place.directory + "/proc";
    QUARTET_TRY(make_directories(os, folder));
    QUARTET_ASSIGN(const FileInfo claims, os.file_info(folder));
    QUARTET_TRY(check_trusted(os, folder, FileKind::directory, claims));
    QUARTET_ASSIGN(place.claim, ProcessClaim::take(os, place.directory, directory));
  }
  place.file =
      place.directory + format("/kernels-%d%s.db", kSchemaVersion, place.claim ? place.claim->suffix().c_str() : "");
  if (!read_only && place.writable) QUARTET_TRY(ProcessClaim::ensure_file(os, place.file));
  const auto file = os.file_info(place.file);
  if (file.status().code() == Code::not_found)
    return make_error(Code::not_found, "there is no cache file '%s' to read", place.file.c_str());
  QUARTET_TRY(file.status());
  QUARTET_TRY(check_trusted(os, place.file, FileKind::file, file.value()));
  return place;
}

}  // namespace quartet::cache
