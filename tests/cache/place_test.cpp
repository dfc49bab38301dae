// Where the cache may live, and what else may be in the process.
#include <dlfcn.h>
#include <grp.h>
#include <sys/stat.h>

#include "tests/cache/child.h"
#include "tests/cache/faulty_os.h"
#include "tests/cache/support.h"

namespace quartet::cache {
namespace {

using namespace test;
namespace fs = std::filesystem;

class PlaceTest : public ::testing::Test {
 protected:
  // Opens with a log, and says whether the disk is in use.
  std::unique_ptr<Cache> open(const std::string& path, FaultyOs* os = nullptr, bool allow_network_fs = false) {
    auto options = options_at(path, 1 << 20);
    options.log = log_.sink();
    options.allow_network_fs = allow_network_fs;
    CacheSeams seams;
    seams.os = os;
    return Cache::create(options, seams);
  }
  // Refused with one line that holds `words`, and working from memory all the same.
  void expect_refused(const std::string& path, const char* words, FaultyOs* os = nullptr) {
    auto cache = open(path, os);
    EXPECT_FALSE(cache->stats().disk_on);
    ASSERT_EQ(log_.lines().size(), 1u) << log_.all();
    EXPECT_TRUE(log_.has(words)) << log_.all();
    EXPECT_NE(cache->stats().reason.find(words), std::string::npos) << cache->stats().reason;
    put(*cache, 1);
    EXPECT_TRUE(cache->flush(0));
    EXPECT_EQ(get(*cache, 1)->level, Level::memory);
  }
  void make_directory(const std::string& path, mode_t mode) {
    ASSERT_TRUE(fs::create_directory(path));
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
  }

  Scratch scratch_;
  Log log_;
};

TEST_F(PlaceTest, ASymbolicLinkIsRefused) {
  make_directory(scratch_.file("target"), 0700);
  fs::create_symlink("target", scratch_.cache());
  expect_refused(scratch_.cache(), "symbolic link");
  EXPECT_TRUE(fs::is_empty(scratch_.file("target")));
}

TEST_F(PlaceTest, ALinkFurtherUpIsNot) {
  make_directory(scratch_.file("target"), 0700);
  fs::create_symlink("target", scratch_.file("link"));
  auto cache = open(scratch_.file("link/cache"));
  EXPECT_TRUE(cache->stats().disk_on) << log_.all();
  EXPECT_EQ(cache->stats().file, scratch_.file("target/cache/kernels-1.db"));
}

TEST_F(PlaceTest, ADirectoryThatOthersCanWriteIsRefused) {
  make_directory(scratch_.cache(), 0770);
  expect_refused(scratch_.cache(), "can be written by others (mode 0770)");
}

TEST_F(PlaceTest, ADirectoryThatOthersCanReadIsNot) {
  make_directory(scratch_.cache(), 0755);
  EXPECT_TRUE(open(scratch_.cache())->stats().disk_on) << log_.all();
}

TEST_F(PlaceTest, AnotherUsersDirectoryIsRefused) {
  make_directory(scratch_.cache(), 0700);
  FaultyOs os;
  os.user_answer = ::geteuid() + 1;
  expect_refused(scratch_.cache(), "belongs to user", &os);
}

TEST_F(PlaceTest, AnotherUsersDirectoryIsRefusedToRootToo) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a directory away";
  make_directory(scratch_.cache(), 0700);
  ASSERT_EQ(::chown(scratch_.cache().c_str(), 65534, 65534), 0);
  expect_refused(scratch_.cache(), "belongs to user 65534");
}

TEST_F(PlaceTest, AFileInPlaceOfTheDirectoryIsRefused) {
  ASSERT_TRUE(real_os().create_file(scratch_.cache(), 0600).ok());
  expect_refused(scratch_.cache(), "is not a directory");
}

TEST_F(PlaceTest, ADatabaseThatIsALinkIsRefused) {
  make_directory(scratch_.cache(), 0700);
  fs::create_symlink(scratch_.file("elsewhere"), scratch_.database());
  expect_refused(scratch_.cache(), "symbolic link");
  EXPECT_FALSE(fs::exists(scratch_.file("elsewhere")));
}

TEST_F(PlaceTest, ADatabaseThatOthersCanWriteIsRefused) {
  make_directory(scratch_.cache(), 0700);
  ASSERT_TRUE(real_os().create_file(scratch_.database(), 0666).ok());
  expect_refused(scratch_.cache(), "can be written by others (mode 0666)");
}

TEST_F(PlaceTest, AWalThatIsALinkIsNeverFollowed) {
  {
    put(*open(scratch_.cache()), 1);
  }
  fs::remove(scratch_.database() + "-wal");
  fs::create_symlink(scratch_.file("elsewhere"), scratch_.database() + "-wal");
  auto cache = open(scratch_.cache());
  put(*cache, 2);
  cache->flush(5000);
  EXPECT_FALSE(fs::exists(scratch_.file("elsewhere")));
}

TEST_F(PlaceTest, AClaimFolderThatIsALinkIsRefused) {
  make_directory(scratch_.cache(), 0700);
  make_directory(scratch_.file("elsewhere"), 0700);
  fs::create_symlink(scratch_.file("elsewhere"), scratch_.file("cache/proc"));
  expect_refused(scratch_.cache(), "symbolic link");
  EXPECT_TRUE(fs::is_empty(scratch_.file("elsewhere")));
}

TEST_F(PlaceTest, NetworkFileSystemsAreRefusedUnlessAllowed) {
  FaultyOs os;
  os.file_system_answer = FileSystemInfo{0x6969, "nfs", true};
  EXPECT_TRUE(open(scratch_.cache(), &os, true)->stats().disk_on) << log_.all();
  expect_refused(scratch_.cache(), "cache_allow_network_fs", &os);
}

TEST_F(PlaceTest, APathThatCannotBeMadeIsRefused) {
  ASSERT_TRUE(real_os().create_file(scratch_.file("file"), 0600).ok());
  expect_refused(scratch_.file("file/cache"), "file/cache");
}

// As root, rights do not bind; a child without them does the looking.
int as_nobody(const std::function<int()>& work) {
  return run_child([&] {
    if (::geteuid() == 0 && (::setgroups(0, nullptr) != 0 || ::setresgid(65534, 65534, 65534) != 0 ||
                             ::setresuid(65534, 65534, 65534) != 0))
      return 99;
    return work();
  });
}

TEST_F(PlaceTest, AReadOnlyDirectoryIsRead) {
  {
    put(*open(scratch_.cache()), 1);
  }
  if (::geteuid() == 0) {
    ASSERT_EQ(::chmod(scratch_.path().c_str(), 0755), 0);
    for (const auto& entry : fs::recursive_directory_iterator(scratch_.cache()))
      ASSERT_EQ(::chown(entry.path().c_str(), 65534, 65534), 0);
    ASSERT_EQ(::chown(scratch_.cache().c_str(), 65534, 65534), 0);
  }
  // What a clean end leaves, what a copied file alone is, and files that cannot be written either.
  for (const char* state : {"whole", "without -wal and -shm", "files read-only"}) {
    SCOPED_TRACE(state);
    if (std::string_view(state) == "without -wal and -shm") {
      fs::remove(scratch_.database() + "-wal");
      fs::remove(scratch_.database() + "-shm");
    }
    if (std::string_view(state) == "files read-only") ASSERT_EQ(::chmod(scratch_.database().c_str(), 0400), 0);
    ASSERT_EQ(::chmod(scratch_.cache().c_str(), 0500), 0);
    EXPECT_EQ(as_nobody([&] {
                auto cache = open(scratch_.cache());
                if (!cache->stats().disk_on || !cache->stats().read_only) return 1;
                if (!holds(*cache, 1)) return 2;
                put(*cache, 2);
                if (!cache->flush(0) || get(*cache, 2)->level != Level::memory) return 3;
                if (cache->prune(0).ok()) return 4;
                return log_.lines().size() == 1 ? 0 : 5;
              }),
              0);
    ASSERT_EQ(::chmod(scratch_.cache().c_str(), 0700), 0);
  }
}

TEST_F(PlaceTest, AFileThatCannotBeWrittenIsRead) {
  {
    put(*open(scratch_.cache()), 1);
  }
  if (::geteuid() == 0) {
    ASSERT_EQ(::chmod(scratch_.path().c_str(), 0755), 0);
    for (const auto& entry : fs::recursive_directory_iterator(scratch_.cache()))
      ASSERT_EQ(::chown(entry.path().c_str(), 65534, 65534), 0);
    ASSERT_EQ(::chown(scratch_.cache().c_str(), 65534, 65534), 0);
  }
  ASSERT_EQ(::chmod(scratch_.database().c_str(), 0400), 0);
  EXPECT_EQ(as_nobody([&] {
              auto cache = open(scratch_.cache());
              if (!cache->stats().disk_on || !cache->stats().read_only) return 1;
              return holds(*cache, 1) ? 0 : 2;
            }),
            0);
}

TEST_F(PlaceTest, ASecondCopyUsesAFileOfItsOwnAndAThirdNone) {
  make_directory(scratch_.cache(), 0700);
  make_directory(scratch_.file("cache/proc"), 0700);
  const std::string lock = scratch_.file("cache/proc/" + std::to_string(::getpid()));
  // What another copy of this library would hold.
  const auto first = real_os().lock_file(lock + ".lock", LockMode::exclusive, false);
  ASSERT_TRUE(first.ok() && first.value());
  {
    auto cache = open(scratch_.cache());
    EXPECT_EQ(cache->stats().file, scratch_.file("cache/kernels-1-b.db"));
    put(*cache, 1);
    ASSERT_TRUE(cache->flush(5000));
    EXPECT_EQ(cache->stats().disk_entries, 1u);
    EXPECT_FALSE(fs::exists(scratch_.database()));
  }
  const auto second = real_os().lock_file(lock + "-b.lock", LockMode::exclusive, false);
  ASSERT_TRUE(second.ok() && second.value());
  expect_refused(scratch_.cache(), "two other copies");
}

TEST_F(PlaceTest, ARealSecondCopyOfTheLibrary) {
  void* library = ::dlopen(SECOND_COPY_PATH, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  const auto symbol = [&](const char* name) { return ::dlsym(library, name); };
  auto* open_second = reinterpret_cast<void* (*)(const char*)>(symbol("second_copy_open"));
  auto* put_second = reinterpret_cast<void (*)(void*, unsigned)>(symbol("second_copy_put"));
  auto* second_holds = reinterpret_cast<int (*)(void*, unsigned)>(symbol("second_copy_holds"));
  auto* length = reinterpret_cast<unsigned (*)(void*)>(symbol("second_copy_file_length"));
  auto* close_second = reinterpret_cast<void (*)(void*)>(symbol("second_copy_close"));
  auto cache = open(scratch_.cache());
  put(*cache, 1);
  ASSERT_TRUE(cache->flush(5000));
  void* second = open_second(scratch_.cache().c_str());
  EXPECT_EQ(length(second), scratch_.database().size() + 2) << "kernels-1-b.db";
  EXPECT_EQ(second_holds(second, 1), 0);
  put_second(second, 2);
  EXPECT_EQ(second_holds(second, 2), 1);
  EXPECT_TRUE(holds(*cache, 1));
  close_second(second);
  // The first copy's locks are whole: it still writes, and so does another process.
  put(*cache, 3);
  ASSERT_TRUE(cache->flush(5000));
  EXPECT_TRUE(holds(*cache, 3));
  EXPECT_TRUE(cache->verify()->file_sound);
}

TEST_F(PlaceTest, LocksOfEndedProcessesAreSwept) {
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(run_child([&] {
                auto cache = open(scratch_.cache());
                (void)get(*cache, 1);
                return 0;
              }),
              0);
  const pid_t killed = start_child([&] {
    auto cache = open(scratch_.cache());
    ::raise(SIGKILL);
    return 0;
  });
  EXPECT_EQ(end_of(killed), 1000 + SIGKILL);
  const std::string stale = scratch_.file("cache/proc/" + std::to_string(killed) + ".lock");
  EXPECT_TRUE(fs::exists(stale));
  auto cache = open(scratch_.cache());
  put(*cache, 1);
  ASSERT_TRUE(cache->flush(5000));
  EXPECT_FALSE(fs::exists(stale));
  size_t locks = 0;
  for (const auto& entry : fs::directory_iterator(scratch_.file("cache/proc"))) locks += entry.exists() ? 1 : 0;
  EXPECT_EQ(locks, 2u) << "this process's and the gate";
}

TEST_F(PlaceTest, AForkedChildHasMemoryAloneAndTouchesNothing) {
  auto cache = open(scratch_.cache());
  put(*cache, 1);
  ASSERT_TRUE(cache->flush(5000));
  auto lease = cache->acquire_lease(key_of(9), Kind::program, 1000000);
  EXPECT_EQ(lease.state(), Lease::State::owner);
  EXPECT_EQ(run_child([&] {
              lease.release();
              if (get(*cache, 1)) return 1;
              put(*cache, 2);
              if (!holds(*cache, 2)) return 2;
              if (!cache->flush(1000)) return 3;
              if (cache->stats().disk_on || cache->stats().reason.find("forked") == std::string::npos) return 4;
              auto another = open(scratch_.cache());  // of SQLite as the parent left it
              if (another->stats().disk_on || another->stats().reason.find("forked") == std::string::npos) return 5;
              another.reset();
              cache.reset();
              return 0;
            }),
            0);
  // The parent goes on undisturbed; the child's put stayed its own.
  EXPECT_TRUE(holds(*cache, 1));
  put(*cache, 3);
  ASSERT_TRUE(cache->flush(5000));
  EXPECT_TRUE(cache->verify()->file_sound);
  EXPECT_EQ(cache->stats().disk_entries, 2u);
  EXPECT_TRUE(fs::exists(scratch_.file("cache/proc/" + std::to_string(::getpid()) + ".lock")));
}

TEST_F(PlaceTest, AChildForkedWhileNoCacheIsOpenHasTheDisk) {
  {
    put(*open(scratch_.cache()), 1);
  }
  EXPECT_EQ(run_child([&] {
              auto cache = open(scratch_.cache());
              return cache->stats().disk_on && holds(*cache, 1) ? 0 : 1;
            }),
            0);
}

TEST_F(PlaceTest, ADirectoryRemovedUnderAnOpenCacheIsNoError) {
  auto cache = open(scratch_.cache());
  put(*cache, 1);
  ASSERT_TRUE(cache->flush(5000));
  fs::remove_all(scratch_.cache());
  put(*cache, 2);
  EXPECT_TRUE(cache->flush(5000));
  EXPECT_TRUE(holds(*cache, 2));
  (void)cache->verify();
  (void)cache->clear();
  put(*cache, 3);
  EXPECT_TRUE(holds(*cache, 3));
  cache = open(scratch_.cache());
  EXPECT_TRUE(cache->stats().disk_on) << "the next one makes it anew";
}

TEST_F(PlaceTest, AFileRemovedUnderAnOpenCacheIsMadeAnewForItsOwnerAlone) {
  auto cache = open(scratch_.cache());
  put(*cache, 1);
  ASSERT_TRUE(cache->flush(5000));
  for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(scratch_.database() + suffix);
  auto other = open(scratch_.cache());
  put(*other, 2);
  ASSERT_TRUE(other->flush(5000));
  cache.reset();
  EXPECT_TRUE(holds(*other, 2));
  EXPECT_TRUE(other->verify()->file_sound);
  EXPECT_EQ(real_os().file_info(scratch_.database())->mode, 0600u);
  EXPECT_TRUE(fs::exists(scratch_.database() + "-wal")) << "closing the old file removes nothing of the new one";
}

TEST_F(PlaceTest, ClockJumpsDoNoHarm) {
  FaultyOs os;
  constexpr int64_t kDay = int64_t{86400} * 1000000000;
  CacheSeams seams;
  seams.os = &os;
  auto options = options_at(scratch_.cache());
  options.max_bytes = 1 << 20;
  os.wall_shift_ns = 3000 * kDay;
  {
    auto cache = Cache::create(options, seams);
    for (uint64_t i = 0; i < 10; ++i) put(*cache, i, 20000);
  }
  os.wall_shift_ns = 0;
  auto cache = Cache::create(options, seams);
  EXPECT_TRUE(holds(*cache, 3, 20000));
  for (uint64_t i = 100; i < 200; ++i) put(*cache, i, 20000, 1000000);
  ASSERT_TRUE(cache->flush(20000));
  EXPECT_FALSE(get(*cache, 0)) << "an entry from the future is not kept for ever";
  EXPECT_TRUE(holds(*cache, 199, 20000));
  EXPECT_GT(cache->stats().evictions, 50u);
  os.wall_shift_ns = -30000 * kDay;  // before 1970
  put(*cache, 300, 20000);
  ASSERT_TRUE(cache->flush(20000));
  EXPECT_TRUE(holds(*cache, 300, 20000));
}

TEST_F(PlaceTest, UseIsStampedOncePerHour) {
  FaultyOs os;
  constexpr int64_t kHour = int64_t{3600} * 1000000000;
  CacheSeams seams;
  seams.os = &os;
  const auto options = options_at(scratch_.cache(), 1 << 20);
  {
    auto cache = Cache::create(options, seams);
    put(*cache, 1);
  }
  const int64_t start = os.wall_ns() / kHour;
  os.wall_shift_ns = 5 * kHour;
  {
    auto cache = Cache::create(options, seams);
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(holds(*cache, 1));
    EXPECT_EQ(cache->list()->at(0).used_hour, start) << "not while the process works";
    os.monotonic_shift_ns = int64_t{31} * 1000000000;
    os.wall_shift_ns = 6 * kHour;
    EXPECT_TRUE(holds(*cache, 1)) << "found in memory, an hour later, half a minute after the first stamp was noted";
    EXPECT_EQ(cache->list()->at(0).used_hour, start + 6);
    EXPECT_EQ(cache->list()->at(0).hits, 2u);
    os.wall_shift_ns = 7 * kHour;
    EXPECT_TRUE(holds(*cache, 1));
  }
  auto cache = Cache::create(options, seams);
  EXPECT_EQ(cache->list()->at(0).used_hour, start + 7) << "the last one at close";
  EXPECT_EQ(cache->list()->at(0).hits, 3u);
}

TEST_F(PlaceTest, EntriesOfAForgottenEnvGoFirst) {
  FaultyOs os;
  constexpr int64_t kDay = int64_t{86400} * 1000000000;
  CacheSeams seams;
  seams.os = &os;
  auto options = options_at(scratch_.cache());
  options.max_bytes = 1 << 20;
  {
    auto cache = Cache::create(options, seams);
    for (uint64_t i = 0; i < 5; ++i)
      cache->put(key_of(i), Kind::program, "old driver", std::make_shared<const Bytes>(payload_of(i, 20000)), 99999999);
    put(*cache, 100, 20000, 1);
    ASSERT_TRUE(cache->flush(5000));
    os.wall_shift_ns = 91 * kDay;
    put(*cache, 101, 20000, 1);  // "env" is met again, "old driver" is not
    ASSERT_TRUE(cache->flush(5000));
    for (uint64_t i = 0; i < 5; ++i) EXPECT_TRUE(holds(*cache, i, 20000));
  }
  auto cache = Cache::create(options, seams);  // stamps are written: all are used in the same hour
  ASSERT_TRUE(cache->prune(100000).ok());
  for (uint64_t i = 0; i < 5; ++i) EXPECT_FALSE(get(*cache, i)) << i;
  EXPECT_TRUE(holds(*cache, 101, 20000));
}

}  // namespace
}  // namespace quartet::cache
