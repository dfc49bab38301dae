#include "base/os.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/checked.h"

namespace quartet {
namespace {

Status failure(const char* call, const std::string& path, int error) {
  Code code = Code::io;
  if (error == ENOENT || error == ENOTDIR || error == ESRCH) code = Code::not_found;
  if (error == EEXIST) code = Code::failed_precondition;
  if (error == ENOMEM) code = Code::out_of_memory;
  if (error == ENOSPC || error == EDQUOT) code = Code::resource_exhausted;
  char text[128];
  return make_error(code, "%s '%s': %s", call, path.c_str(), ::strerror_r(error, text, sizeof text));
}

class FileHandle {
 public:
  explicit FileHandle(int fd) : fd_(fd) {}
  ~FileHandle() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileHandle(const FileHandle&) = delete;
  FileHandle& operator=(const FileHandle&) = delete;
  int fd() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

int open_retrying(const std::string& path, int flags, mode_t mode = 0) {
  int fd;
  do fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  while (fd < 0 && errno == EINTR);
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  // A host without standard streams would take this file for one of them: its next message would go into it.
  const int above = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int problem = errno;
  ::close(fd);
  errno = problem;
  return above;
}

FileInfo info_of(const struct stat& s) {
  FileInfo info;
  info.kind = S_ISREG(s.st_mode)   ? FileKind::file
              : S_ISDIR(s.st_mode) ? FileKind::directory
              : S_ISLNK(s.st_mode) ? FileKind::symlink
                                   : FileKind::other;
  info.size = s.st_size > 0 ? static_cast<uint64_t>(s.st_size) : 0;
  info.owner = s.st_uid;
  info.mode = s.st_mode & 07777u;
  info.device = s.st_dev;
  info.inode = s.st_ino;
  info.modified_ns = int64_t{s.st_mtim.tv_sec} * 1000000000 + s.st_mtim.tv_nsec;
  return info;
}

// File systems without dependable byte-range locks or shared memory maps. A user-space file system may be local, but
// nothing says so.
struct NetworkType {
  uint64_t type;
  const char* name;
};
constexpr NetworkType kNetworkTypes[] = {
    {0x6969, "nfs"},       {0x517b, "smb"},        {0xff534d42, "cifs"},     {0xfe534d42, "smb2"},
    {0x01021997, "9p"},    {0x65735546, "fuse"},   {0x0bd00bd0, "lustre"},   {0x47504653, "gpfs"},
    {0x5346414f, "afs"},   {0x6b414653, "afs"},    {0x00c36400, "ceph"},     {0x73757245, "coda"},
    {0x0000564c, "ncp"},   {0x7461636f, "ocfs2"},  {0x01161970, "gfs2"},     {0x19830326, "beegfs"},
    {0xaad7aaea, "panfs"}, {0x786f4256, "vboxsf"}, {0x20030528, "orangefs"},
};

class RealFileView final : public FileView {
 public:
  RealFileView(void* address, size_t size) : address_(address), size_(size) {}
  ~RealFileView() override {
    if (address_) ::munmap(address_, size_);
  }
  std::span<const uint8_t> bytes() const override { return {static_cast<const uint8_t*>(address_), size_}; }

 private:
  void* address_;
  size_t size_;
};

class RealFileLock final : public FileLock {
 public:
  explicit RealFileLock(int fd) : handle_(fd) {}

 private:
  FileHandle handle_;
};

int64_t clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

Status write_all(int fd, std::span<const uint8_t> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failure("write", path, errno);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return {};
}

// Opens a regular file and checks its size against `max_size`.
Result<FileInfo> open_regular(const std::string& path, uint64_t max_size, int& fd) {
  fd = open_retrying(path, O_RDONLY | O_NONBLOCK);
  if (fd < 0) return failure("open", path, errno);
  struct stat s;
  if (::fstat(fd, &s) != 0) return failure("stat", path, errno);
  const FileInfo info = info_of(s);
  if (info.kind != FileKind::file) return make_error(Code::io, "open '%s': not a regular file", path.c_str());
  if (info.size > max_size)
    return make_error(Code::resource_exhausted, "open '%s': %llu bytes, the bound is %llu", path.c_str(),
                      static_cast<unsigned long long>(info.size), static_cast<unsigned long long>(max_size));
  return info;
}

class RealOs final : public Os {
 public:
  Result<FileInfo> file_info(const std::string& path) override {
    struct stat s;
    if (::lstat(path.c_str(), &s) != 0) return failure("stat", path, errno);
    return info_of(s);
  }

  Result<std::string> real_path(const std::string& path) override {
    char* text = ::realpath(path.c_str(), nullptr);
    if (!text) return failure("realpath", path, errno);
    std::string result = text;
    std::free(text);
    return result;
  }

  bool can_write(const std::string& path) override {
    return ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0;
  }

  Result<Blob> read_file(const std::string& path, uint64_t max_size) override {
    int fd = -1;
    auto info = open_regular(path, max_size, fd);
    FileHandle handle(fd);
    if (!info) return info.status();
    // Files of /proc say size 0, so the size is a first guess and the end of file decides.
    Blob bytes(static_cast<size_t>(std::min(max_size, info->size + 1)));
    size_t used = 0;
    for (;;) {
      if (used == bytes.size()) {
        if (used >= max_size) break;
        Blob longer(static_cast<size_t>(std::min<uint64_t>(max_size, used * 2 + 4096)));
        if (used > 0) std::memcpy(longer.data(), bytes.data(), used);
        bytes = std::move(longer);
      }
      const ssize_t n = ::read(fd, bytes.data() + used, bytes.size() - used);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return failure("read", path, errno);
      if (n == 0) break;
      used += static_cast<size_t>(n);
    }
    bytes.truncate(used);
    return bytes;
  }

  Result<std::shared_ptr<const FileView>> map_file(const std::string& path, uint64_t max_size) override {
    int fd = -1;
    auto info = open_regular(path, max_size, fd);
    FileHandle handle(fd);
    if (!info) return info.status();
    const size_t size = static_cast<size_t>(info->size);
    void* address = nullptr;
    if (size > 0) {
      address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
      if (address == MAP_FAILED) return failure("mmap", path, errno);
    }
    return std::shared_ptr<const FileView>(std::make_shared<RealFileView>(address, size));
  }

  Status write_file(const std::string& path, std::span<const uint8_t> bytes, uint32_t mode) override {
    const std::string temporary = path + format(".%lld-%llx.tmp", static_cast<long long>(::getpid()),
                                                static_cast<unsigned long long>(clock_ns(CLOCK_MONOTONIC)));
    FileHandle handle(open_retrying(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode));
    if (handle.fd() < 0) return failure("create", temporary, errno);
    Status status = write_all(handle.fd(), bytes, temporary);
    if (status.ok() && ::fchmod(handle.fd(), mode) != 0) status = failure("chmod", temporary, errno);
    if (status.ok() && ::fsync(handle.fd()) != 0) status = failure("fsync", temporary, errno);
    if (status.ok() && ::close(handle.release()) != 0) status = failure("close", temporary, errno);
    if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) status = failure("rename", path, errno);
    if (!status.ok()) ::unlink(temporary.c_str());
    return status;
  }

  Status create_file(const std::string& path, uint32_t mode) override {
    FileHandle handle(open_retrying(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode));
    if (handle.fd() < 0) return failure("create", path, errno);
    if (::fchmod(handle.fd(), mode) != 0) return failure("chmod", path, errno);
    return {};
  }

  Status make_directory(const std::string& path, uint32_t mode) override {
    // A narrower umask is the user's wish; a directory is never wider than `mode`.
    if (::mkdir(path.c_str(), mode) != 0) return failure("mkdir", path, errno);
    return {};
  }

  Result<std::vector<std::string>> list_directory(const std::string& path) override {
    DIR* directory = ::opendir(path.c_str());
    if (!directory) return failure("opendir", path, errno);
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(directory)) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    ::closedir(directory);
    return names;
  }

  Status rename_file(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) return failure("rename", from, errno);
    return {};
  }

  Status remove_file(const std::string& path) override {
    if (::unlink(path.c_str()) != 0) return failure("unlink", path, errno);
    return {};
  }

  Result<FileSystemInfo> file_system(const std::string& path) override {
    struct statfs s;
    int rc;
    do rc = ::statfs(path.c_str(), &s);
    while (rc != 0 && errno == EINTR);
    if (rc != 0) return failure("statfs", path, errno);
    FileSystemInfo info;
    info.type = static_cast<uint64_t>(s.f_type) & 0xffffffffu;
    info.name = "local";
    for (const NetworkType& known : kNetworkTypes)
      if (known.type == info.type) info.name = known.name, info.network = true;
    return info;
  }

  Result<std::unique_ptr<FileLock>> lock_file(const std::string& path, LockMode mode, bool wait) override {
    const int operation = (mode == LockMode::shared ? LOCK_SH : LOCK_EX) | (wait ? 0 : LOCK_NB);
    for (int attempt = 0; attempt < 16; ++attempt) {
      FileHandle handle(open_retrying(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
      if (handle.fd() < 0) return failure("open", path, errno);
      int rc;
      do rc = ::flock(handle.fd(), operation);
      while (rc != 0 && errno == EINTR);
      if (rc != 0 && errno == EWOULDBLOCK) return std::unique_ptr<FileLock>();
      if (rc != 0) return failure("flock", path, errno);
      struct stat mine, named;  // someone may have removed the file between our open and our lock
      if (::fstat(handle.fd(), &mine) == 0 && ::lstat(path.c_str(), &named) == 0 && mine.st_ino == named.st_ino &&
          mine.st_dev == named.st_dev)
        return std::unique_ptr<FileLock>(std::make_unique<RealFileLock>(handle.release()));
    }
    return make_error(Code::io, "flock '%s': the file kept changing", path.c_str());
  }

  int64_t monotonic_ns() override { return clock_ns(CLOCK_MONOTONIC); }
  int64_t wall_ns() override { return clock_ns(CLOCK_REALTIME); }

  void sleep_ns(int64_t duration) override {
    if (duration <= 0) return;
    timespec wanted{static_cast<time_t>(duration / 1000000000), static_cast<long>(duration % 1000000000)};
    while (::nanosleep(&wanted, &wanted) != 0 && errno == EINTR) {
    }
  }

  int64_t process_id() override { return ::getpid(); }
  uint32_t effective_user() override { return ::geteuid(); }

  Result<ProcessInfo> process_info(int64_t pid) override {
    const std::string path = format("/proc/%lld/stat", static_cast<long long>(pid));
    QUARTET_ASSIGN(const Blob bytes, read_file(path, 4096));
    // "pid (name) state ppid ...": the name may hold anything, so count from the last parenthesis; the start time is
    // field 22, the 20th after it.
    const std::string text(bytes.begin(), bytes.end());
    const size_t name_end = text.rfind(')');
    if (name_end == std::string::npos || name_end + 2 >= text.size())
      return make_error(Code::io, "'%s' is not in the expected form", path.c_str());
    ProcessInfo info;
    info.zombie = text[name_end + 2] == 'Z' || text[name_end + 2] == 'X';
    size_t at = name_end + 1;
    for (int field = 0; field < 20 && at != std::string::npos; ++field) at = text.find(' ', at + (field > 0 ? 1u : 0u));
    if (at == std::string::npos) return make_error(Code::io, "'%s' has too few fields", path.c_str());
    info.start_time = std::strtoull(text.c_str() + at + 1, nullptr, 10);
    return info;
  }

  Result<std::string> boot_id() override {
    QUARTET_ASSIGN(const Blob bytes, read_file("/proc/sys/kernel/random/boot_id", 128));
    std::string text(bytes.begin(), bytes.end());
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text;
  }

  std::string pid_space() override {
    char text[64];
    const ssize_t n = ::readlink("/proc/self/ns/pid", text, sizeof text);
    return n > 0 ? std::string(text, static_cast<size_t>(n)) : std::string();
  }

  Result<void*> open_library(const std::string& path) override {
    if (void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    const char* reason = ::dlerror();
    return make_error(Code::not_found, "load '%s': %s", path.c_str(), reason ? reason : "no reason given");
  }

  Result<void*> library_symbol(void* library, const std::string& name) override {
    if (void* symbol = ::dlsym(library, name.c_str())) return symbol;
    const char* reason = ::dlerror();
    return make_error(Code::not_found, "symbol '%s': %s", name.c_str(), reason ? reason : "no such symbol");
  }

  void close_library(void* library) override {
    if (library) ::dlclose(library);
  }

  Result<void*> map_pages(size_t size) override {
    const auto rounded = checked_round_up(size, page_size());
    if (!rounded || *rounded == 0) return make_error(Code::invalid_argument, "map_pages: %zu bytes", size);
    void* pages = ::mmap(nullptr, *rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return make_error(Code::out_of_memory, "map_pages: no %zu bytes of memory", *rounded);
    return pages;
  }

  Status protect_pages(void* pages, size_t size, PageAccess access) override {
    int protection = PROT_NONE;
    if (access == PageAccess::read) protection = PROT_READ;
    if (access == PageAccess::read_write) protection = PROT_READ | PROT_WRITE;
    if (access == PageAccess::read_execute) protection = PROT_READ | PROT_EXEC;
    const auto rounded = checked_round_up(size, page_size());
    if (!rounded) return make_error(Code::invalid_argument, "protect_pages: %zu bytes", size);
    if (::mprotect(pages, *rounded, protection) != 0) return failure("mprotect", "pages", errno);
    return {};
  }

  void unmap_pages(void* pages, size_t size) override {
    const auto rounded = checked_round_up(size, page_size());
    if (pages && rounded) ::munmap(pages, *rounded);
  }

 private:
  static size_t page_size() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }
};

}  // namespace

Os& real_os() {
  // Never destroyed: threads may still ask while the process ends.
  alignas(RealOs) static unsigned char storage[sizeof(RealOs)];
  static Os& os = *new (storage) RealOs;
  return os;
}

}  // namespace quartet
