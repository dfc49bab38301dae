#include "base/os.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace quartet {
namespace {

class OsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/quartet-os-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern), nullptr);
    root_ = pattern;
  }
  void TearDown() override {
    const std::string command = "rm -rf '" + root_ + "'";
    ASSERT_EQ(::system(command.c_str()), 0);
  }
  std::string path(const char* name) const { return root_ + "/" + name; }

  std::string root_;
  Os& os_ = real_os();
};

Bytes bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

TEST_F(OsTest, WritesReadsAndMapsWholeFiles) {
  const Bytes text = bytes_of("twelve bytes");
  ASSERT_TRUE(os_.write_file(path("a"), text, 0600).ok());
  EXPECT_EQ(os_.read_file(path("a"), 100).value(), text);
  auto view = os_.map_file(path("a"), 100);
  ASSERT_TRUE(view.ok());
  EXPECT_TRUE(std::ranges::equal(view.value()->bytes(), text));
  EXPECT_EQ(os_.read_file(path("a"), 11).status().code(), Code::resource_exhausted);
  EXPECT_EQ(os_.map_file(path("a"), 11).status().code(), Code::resource_exhausted);
  EXPECT_EQ(os_.read_file(path("missing"), 11).status().code(), Code::not_found);
  EXPECT_EQ(os_.read_file(root_, 11).status().code(), Code::io);
  // Replacing keeps the old mapping whole and leaves no temporary file behind.
  ASSERT_TRUE(os_.write_file(path("a"), bytes_of("x"), 0640).ok());
  EXPECT_TRUE(std::ranges::equal(view.value()->bytes(), text));
  EXPECT_EQ(os_.file_info(path("a"))->mode, 0640u);
  EXPECT_EQ(os_.list_directory(root_).value(), std::vector<std::string>{"a"});
  ASSERT_TRUE(os_.write_file(path("empty"), {}, 0600).ok());
  EXPECT_TRUE(os_.map_file(path("empty"), 0).value()->bytes().empty());
  EXPECT_TRUE(os_.read_file(path("empty"), 0).value().empty());
}

TEST_F(OsTest, SaysWhatAPathIs) {
  ASSERT_TRUE(os_.make_directory(path("d"), 0700).ok());
  EXPECT_EQ(os_.make_directory(path("d"), 0700).code(), Code::failed_precondition);
  EXPECT_EQ(os_.file_info(path("d"))->kind, FileKind::directory);
  EXPECT_EQ(os_.file_info(path("d"))->mode, 0700u);
  EXPECT_EQ(os_.file_info(path("d"))->owner, ::geteuid());
  ASSERT_TRUE(os_.create_file(path("f"), 0600).ok());
  EXPECT_EQ(os_.create_file(path("f"), 0600).code(), Code::failed_precondition);
  EXPECT_EQ(os_.file_info(path("f"))->kind, FileKind::file);
  ASSERT_EQ(::symlink("d", path("l").c_str()), 0);
  EXPECT_EQ(os_.file_info(path("l"))->kind, FileKind::symlink);
  EXPECT_EQ(os_.real_path(path("l")).value(), os_.real_path(path("d")).value());
  EXPECT_FALSE(os_.lock_file(path("l"), LockMode::exclusive, false).ok()) << "links are not followed";
  EXPECT_TRUE(os_.rename_file(path("f"), path("g")).ok());
  EXPECT_EQ(os_.remove_file(path("f")).code(), Code::not_found);
  EXPECT_TRUE(os_.remove_file(path("g")).ok());
  EXPECT_EQ(os_.file_info(path("g")).status().code(), Code::not_found);
  EXPECT_FALSE(os_.file_system("/proc").value().network);
}

TEST_F(OsTest, LocksAreExclusiveWithinOneProcess) {
  auto first = os_.lock_file(path("lock"), LockMode::exclusive, false);
  ASSERT_TRUE(first.ok());
  ASSERT_NE(first.value(), nullptr);
  EXPECT_EQ(os_.lock_file(path("lock"), LockMode::exclusive, false).value(), nullptr);
  EXPECT_EQ(os_.lock_file(path("lock"), LockMode::shared, false).value(), nullptr);
  first.value().reset();
  auto shared = os_.lock_file(path("lock"), LockMode::shared, false);
  auto also = os_.lock_file(path("lock"), LockMode::shared, false);
  EXPECT_NE(shared.value(), nullptr);
  EXPECT_NE(also.value(), nullptr);
  EXPECT_EQ(os_.file_info(path("lock"))->mode, 0600u);
}

TEST_F(OsTest, KnowsProcesses) {
  const auto self = os_.process_info(os_.process_id());
  ASSERT_TRUE(self.ok()) << self.status().message();
  EXPECT_GT(self->start_time, 0u);
  EXPECT_FALSE(self->zombie);
  EXPECT_EQ(os_.process_info(os_.process_id())->start_time, self->start_time);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t info;
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  const auto dead = os_.process_info(child);
  ASSERT_TRUE(dead.ok());
  EXPECT_TRUE(dead->zombie);
  EXPECT_GE(dead->start_time, self->start_time);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(os_.process_info(child).status().code(), Code::not_found);
  EXPECT_EQ(os_.boot_id()->size(), 36u);
  const int64_t before = os_.monotonic_ns();
  os_.sleep_ns(1000000);
  EXPECT_GE(os_.monotonic_ns() - before, 1000000);
  EXPECT_GT(wall_day(os_), 19000);
}

TEST_F(OsTest, LoadsLibrariesAndPages) {
  auto library = os_.open_library("libm.so.6");
  ASSERT_TRUE(library.ok()) << library.status().message();
  EXPECT_TRUE(os_.library_symbol(*library, "cosf").ok());
  EXPECT_EQ(os_.library_symbol(*library, "no_such_symbol_here").status().code(), Code::not_found);
  os_.close_library(*library);
  EXPECT_EQ(os_.open_library(path("missing.so")).status().code(), Code::not_found);
  auto pages = os_.map_pages(5000);
  ASSERT_TRUE(pages.ok());
  static_cast<uint8_t*>(*pages)[8191] = 1;
  EXPECT_TRUE(os_.protect_pages(*pages, 5000, PageAccess::read_execute).ok());
  EXPECT_EQ(static_cast<uint8_t*>(*pages)[8191], 1);
  os_.unmap_pages(*pages, 5000);
  EXPECT_EQ(os_.map_pages(0).status().code(), Code::invalid_argument);
}

}  // namespace
}  // namespace quartet
