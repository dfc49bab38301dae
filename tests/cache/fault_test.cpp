// A system that fails: each call of SQLite's file layer, of its allocator and of `Os` in turn, once and from then on.
// The cache gives true bytes or misses, says little, and a later one finds a sound file.
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "tests/cache/child.h"
#include "tests/cache/faulty_os.h"
#include "tests/cache/faulty_vfs.h"
#include "tests/cache/support.h"

namespace quartet::cache {
namespace {

using namespace test;
namespace fs = std::filesystem;

constexpr uint64_t kEntries = 4;

class FaultTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    memory_faults();  // first: SQLite takes its allocator once
    vfs_faults();
  }
  void TearDown() override {
    vfs_faults().reset();
    memory_faults().fail_at = 0;
  }

  CacheSeams seams(FaultyOs* os = nullptr) {
    CacheSeams seams;
    seams.sqlite_vfs = kFaultyVfs;
    seams.os = os;
    return seams;
  }
  CacheOptions options() {
    auto options = options_at(scratch_.cache());
    options.log = log_.sink();
    return options;
  }
  // A directory with four entries, as a clean end leaves it.
  void lay_out() {
    fs::remove_all(scratch_.cache());
    auto cache = Cache::create(options_at(scratch_.cache()));
    for (uint64_t i = 0; i < kEntries; ++i) put(*cache, i, 9000);
    ASSERT_TRUE(cache->flush(10000));
  }
  // Everything a cache does; the bytes of every hit must be true.
  void use(Cache& cache) {
    for (uint64_t i = 0; i < kEntries; ++i) expect_true_or_missing(cache, i);
    put(cache, 10, 9000);
    put(cache, 1, 8000);
    EXPECT_TRUE(cache.flush(20000));
    if (const auto hit = get(cache, 10)) EXPECT_EQ(*hit->payload, payload_of(10, 9000));
    cache.mark_bad(key_of(2), Kind::program, "test");
    EXPECT_FALSE(get(cache, 2));
    auto lease = cache.acquire_lease(key_of(11), Kind::program, 100000);
    lease.release();
    (void)cache.list();
    (void)cache.verify();
    (void)cache.stats();
    (void)cache.prune(100000);
    for (uint64_t i = 0; i < kEntries; ++i) expect_true_or_missing(cache, i);
  }
  void expect_true_or_missing(Cache& cache, uint64_t number) {
    const auto hit = get(cache, number);
    if (hit && *hit->payload != payload_of(number, 9000))
      EXPECT_EQ(*hit->payload, payload_of(number, 8000)) << "entry " << number;
  }
  // After the trouble: the file is sound, and works.
  void expect_sound() {
    auto cache = Cache::create(options_at(scratch_.cache()), seams());
    ASSERT_TRUE(cache->stats().disk_on) << cache->stats().reason;
    for (uint64_t i = 0; i < kEntries; ++i) expect_true_or_missing(*cache, i);
    const auto report = cache->verify();
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_TRUE(report->file_sound) << report->file_problem;
    EXPECT_EQ(report->damaged, 0u);
    put(*cache, 20);
    ASSERT_TRUE(cache->flush(10000));
    EXPECT_TRUE(holds(*cache, 20));
  }
  // Runs `round` with the n-th call failing, for n = 1, 1 + step, ... until fewer calls are made than n.
  template <class Faults>
  void each_call(Faults& faults, bool forever, int64_t step, const std::function<void()>& round) {
    int64_t rounds = 0;
    for (int64_t n = 1;; n += step, ++rounds) {
      lay_out();
      log_.clear();
      SCOPED_TRACE("call " + std::to_string(n) + (forever ? " and all later ones" : ""));
      faults.calls = 0;
      faults.forever = forever;
      faults.fail_at = n;
      round();
      faults.fail_at = 0;
      const bool reached = faults.calls >= n;
      expect_sound();
      EXPECT_LE(log_.lines().size(), 6u) << log_.all();
      if (!reached || HasFatalFailure()) break;
    }
    EXPECT_GT(rounds, 20);
  }

  Scratch scratch_;
  Log log_;
};

TEST_F(FaultTest, EachCallOfTheFileLayerFailsOnce) {
  each_call(vfs_faults(), false, 1, [&] { use(*Cache::create(options(), seams())); });
}

TEST_F(FaultTest, EachCallOfTheFileLayerFailsFromThenOn) {
  each_call(vfs_faults(), true, 1, [&] { use(*Cache::create(options(), seams())); });
}

TEST_F(FaultTest, EachWriteFindsTheDiskFull) {
  for (const bool forever : {false, true}) {
    each_call(vfs_faults(), forever, 1, [&] {
      vfs_faults().writes_only = true;
      vfs_faults().code = SQLITE_FULL;
      use(*Cache::create(options(), seams()));
      vfs_faults().writes_only = false;
      vfs_faults().code = SQLITE_IOERR;
    });
  }
}

TEST_F(FaultTest, EachAllocationOfSqliteFailsOnce) {
  each_call(memory_faults(), false, 13, [&] { use(*Cache::create(options(), seams())); });
}

TEST_F(FaultTest, EachAllocationOfSqliteFailsFromThenOn) {
  each_call(memory_faults(), true, 17, [&] { use(*Cache::create(options(), seams())); });
}

TEST_F(FaultTest, EachCallOfTheSystemFailsOnce) {
  FaultyOs os;
  each_call(os, false, 1, [&] { use(*Cache::create(options(), seams(&os))); });
}

TEST_F(FaultTest, EachCallOfTheSystemFailsFromThenOn) {
  FaultyOs os;
  each_call(os, true, 1, [&] { use(*Cache::create(options(), seams(&os))); });
}

TEST_F(FaultTest, EachCallFailsWhileTheFileIsMade) {
  const auto round = [&] {
    fs::remove_all(scratch_.cache());
    use(*Cache::create(options(), seams()));
  };
  for (const bool forever : {false, true}) each_call(vfs_faults(), forever, 1, round);
}

TEST_F(FaultTest, ThreeReadErrorsSwitchTheCacheOff) {
  lay_out();
  auto cache = Cache::create(options(), seams());
  ASSERT_TRUE(cache->stats().disk_on);
  vfs_faults().forever = true;
  vfs_faults().fail_at = 1;
  for (uint64_t i = 0; i < 3; ++i) EXPECT_FALSE(get(*cache, 0));
  EXPECT_FALSE(cache->stats().disk_on);
  EXPECT_NE(cache->stats().reason.find("three errors in a row"), std::string::npos) << cache->stats().reason;
  const int64_t calls = vfs_faults().calls;
  EXPECT_FALSE(get(*cache, 0));
  put(*cache, 30);
  EXPECT_TRUE(cache->flush(1000));
  EXPECT_EQ(vfs_faults().calls, calls) << "nothing is asked of the disk any more";
  EXPECT_EQ(cache->stats().hard_errors, 3u);
  EXPECT_EQ(cache->stats().misses_error, 4u);
  EXPECT_EQ(log_.lines().size(), 2u) << log_.all();
}

TEST_F(FaultTest, ThreeWriteErrorsStopWritingAlone) {
  lay_out();
  auto cache = Cache::create(options(), seams());
  vfs_faults().writes_only = true;
  vfs_faults().code = SQLITE_FULL;
  vfs_faults().forever = true;
  vfs_faults().fail_at = 1;
  for (uint64_t i = 40; i < 45; ++i) put(*cache, i);
  EXPECT_TRUE(cache->flush(10000));
  EXPECT_TRUE(holds(*cache, 0, 9000));
  EXPECT_TRUE(cache->stats().disk_on);
  EXPECT_TRUE(cache->stats().read_only);
  EXPECT_EQ(cache->stats().puts_failed, 5u);
  EXPECT_EQ(cache->stats().hard_errors, 3u);
}

TEST_F(FaultTest, CorruptIsRepairedOnceThenOff) {
  lay_out();
  auto cache = Cache::create(options(), seams());
  vfs_faults().code = SQLITE_CORRUPT;
  vfs_faults().reads_only = true;
  vfs_faults().forever = true;
  vfs_faults().fail_at = 1;
  for (uint64_t i = 0; i < 5; ++i) EXPECT_FALSE(get(*cache, 0));
  EXPECT_EQ(cache->stats().repairs, 1u);
  EXPECT_FALSE(cache->stats().disk_on);
  EXPECT_TRUE(fs::exists(scratch_.database() + ".bad"));
  EXPECT_LE(log_.lines().size(), 4u) << log_.all();
  vfs_faults().reset();
  expect_sound();
}

// A real full disk: a file system of a megabyte, in a mount space of the child's own.
TEST_F(FaultTest, ARealFullDisk) {
  const int end = run_child([&] {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 77;
    if (::mkdir(scratch_.file("small").c_str(), 0700) != 0) return 1;
    if (::mount("tmpfs", scratch_.file("small").c_str(), "tmpfs", 0, "size=1m,mode=0700") != 0) return 77;
    {
      auto options = options_at(scratch_.file("small/cache"));
      options.log = log_.sink();
      auto cache = Cache::create(options);
      if (!cache->stats().disk_on) return 2;
      for (uint64_t i = 0; i < 100; ++i) put(*cache, i, 20000);
      if (!cache->flush(20000)) return 3;
      const Stats stats = cache->stats();
      if (stats.puts_stored < 5 || stats.puts_failed < 10) return 4;
      if (!stats.disk_on || !stats.read_only) return 5;
      uint64_t hits = 0;
      for (uint64_t i = 0; i < 100; ++i) hits += holds(*cache, i, 20000) ? 1u : 0u;
      if (hits < 5) return 6;
      if (log_.lines().size() > 3) return 7;
    }
    auto cache = Cache::create(options_at(scratch_.file("small/cache")));
    if (!cache->verify().ok() || !cache->verify()->file_sound) return 8;
    if (!cache->clear().ok()) return 9;
    put(*cache, 1, 20000);
    if (!cache->flush(5000) || !holds(*cache, 1, 20000)) return 10;
    return 0;
  });
  if (end == 77) GTEST_SKIP() << "a file system of its own may not be mounted here";
  EXPECT_EQ(end, 0);
}

}  // namespace
}  // namespace quartet::cache
