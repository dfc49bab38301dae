// The real system, with calls that can be made to fail or to lie.
#pragma once

#include <atomic>
#include <optional>

#include "base/os.h"

namespace quartet::cache::test {

class FaultyOs final : public Os {
 public:
  // The n-th call (from 1) fails, and all later ones too if `forever`. 0: none.
  std::atomic<int64_t> fail_at{0};
  std::atomic<bool> forever{false};
  std::atomic<int64_t> calls{0};
  // Answers given in place of the real ones.
  std::optional<FileSystemInfo> file_system_answer;
  std::optional<uint32_t> user_answer;
  std::optional<std::string> boot_answer;
  std::atomic<int64_t> wall_shift_ns{0}, monotonic_shift_ns{0};

  Result<FileInfo> file_info(const std::string& path) override { return fails() ? refusal() : real_.file_info(path); }
  Result<std::string> real_path(const std::string& path) override {
    return fails() ? refusal() : real_.real_path(path);
  }
  bool can_write(const std::string& path) override { return !fails() && real_.can_write(path); }
  Result<Blob> read_file(const std::string& path, uint64_t max_size) override {
    return fails() ? refusal() : real_.read_file(path, max_size);
  }
  Result<std::shared_ptr<const FileView>> map_file(const std::string& path, uint64_t max_size) override {
    return fails() ? refusal() : real_.map_file(path, max_size);
  }
  Status write_file(const std::string& path, std::span<const uint8_t> bytes, uint32_t mode) override {
    return fails() ? refusal() : real_.write_file(path, bytes, mode);
  }
  Status create_file(const std::string& path, uint32_t mode) override {
    return fails() ? refusal() : real_.create_file(path, mode);
  }
  Status make_directory(const std::string& path, uint32_t mode) override {
    return fails() ? refusal() : real_.make_directory(path, mode);
  }
  Result<std::vector<std::string>> list_directory(const std::string& path) override {
    return fails() ? refusal() : real_.list_directory(path);
  }
  Status rename_file(const std::string& from, const std::string& to) override {
    return fails() ? refusal() : real_.rename_file(from, to);
  }
  Status remove_file(const std::string& path) override { return fails() ? refusal() : real_.remove_file(path); }
  Result<FileSystemInfo> file_system(const std::string& path) override {
    if (file_system_answer) return *file_system_answer;
    return fails() ? refusal() : real_.file_system(path);
  }
  Result<std::unique_ptr<FileLock>> lock_file(const std::string& path, LockMode mode, bool wait) override {
    return fails() ? refusal() : real_.lock_file(path, mode, wait);
  }
  int64_t monotonic_ns() override { return real_.monotonic_ns() + monotonic_shift_ns; }
  int64_t wall_ns() override { return real_.wall_ns() + wall_shift_ns; }
  void sleep_ns(int64_t duration) override { real_.sleep_ns(duration); }
  int64_t process_id() override { return real_.process_id(); }
  uint32_t effective_user() override { return user_answer.value_or(real_.effective_user()); }
  Result<ProcessInfo> process_info(int64_t pid) override { return fails() ? refusal() : real_.process_info(pid); }
  Result<std::string> boot_id() override {
    if (boot_answer) return *boot_answer;
    return fails() ? refusal() : real_.boot_id();
  }
  std::string pid_space() override { return real_.pid_space(); }
  Result<void*> open_library(const std::string& path) override {
    return fails() ? refusal() : real_.open_library(path);
  }
  Result<void*> library_symbol(void* library, const std::string& name) override {
    return fails() ? refusal() : real_.library_symbol(library, name);
  }
  void close_library(void* library) override { real_.close_library(library); }
  Result<void*> map_pages(size_t size) override { return fails() ? refusal() : real_.map_pages(size); }
  Status protect_pages(void* pages, size_t size, PageAccess access) override {
    return fails() ? refusal() : real_.protect_pages(pages, size, access);
  }
  void unmap_pages(void* pages, size_t size) override { real_.unmap_pages(pages, size); }

 private:
  bool fails() {
    const int64_t call = ++calls, wanted = fail_at;
    return wanted > 0 && (call == wanted || (forever && call > wanted));
  }
  static Status refusal() { return make_error(Code::io, "injected failure"); }

  Os& real_ = real_os();
};

}  // namespace quartet::cache::test
