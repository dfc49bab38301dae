#include "cache/cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "tests/cache/support.h"

namespace quartet::cache {
namespace {

using namespace test;

size_t thread_count() {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) count += entry.exists() ? 1 : 0;
  return count;
}

TEST(CacheTest, MemoryAloneHoldsWhatWasPut) {
  auto cache = Cache::create(CacheOptions{});
  EXPECT_FALSE(get(*cache, 1));
  put(*cache, 1);
  const auto hit = get(*cache, 1);
  ASSERT_TRUE(hit);
  EXPECT_EQ(*hit->payload, payload_of(1));
  EXPECT_EQ(hit->level, Level::memory);
  EXPECT_EQ(hit->cost_us, 50000u);
  EXPECT_FALSE(cache->get(key_of(1), Kind::kernel)) << "the kind is part of the look-up";
  const Stats stats = cache->stats();
  EXPECT_EQ(stats.lookups, 3u);
  EXPECT_EQ(stats.hits_memory, 1u);
  EXPECT_EQ(stats.misses_absent, 2u);
  EXPECT_EQ(stats.puts, 1u);
  EXPECT_EQ(stats.memory_entries, 1u);
  EXPECT_EQ(stats.saved_us, 50000u);
  EXPECT_FALSE(stats.disk_on);
  EXPECT_TRUE(stats.reason.empty());
  EXPECT_TRUE(cache->flush(0));
  EXPECT_EQ(cache->list().status().code(), Code::failed_precondition);
  EXPECT_TRUE(cache->clear().ok());
  EXPECT_FALSE(get(*cache, 1));
}

TEST(CacheTest, MemoryIsBoundedAndForgetsTheLeastRecentlyUsed) {
  CacheOptions options;
  options.memory_bytes = 10 * 3456;  // ten entries of 3000 + 200 + 256
  auto cache = Cache::create(options);
  for (uint64_t i = 0; i < 10; ++i) put(*cache, i);
  EXPECT_TRUE(holds(*cache, 0));
  put(*cache, 10);
  EXPECT_TRUE(holds(*cache, 0));
  EXPECT_FALSE(get(*cache, 1));
  EXPECT_EQ(cache->stats().memory_entries, 10u);
  EXPECT_LE(cache->stats().memory_bytes, options.memory_bytes);
  put(*cache, 11, 20000);
  EXPECT_FALSE(get(*cache, 11)) << "one entry must not push out all others";
  EXPECT_EQ(cache->stats().memory_entries, 10u);
}

TEST(CacheTest, ComesBackFromDisk) {
  Scratch scratch;
  {
    auto cache = Cache::create(options_at(scratch.cache()));
    EXPECT_FALSE(get(*cache, 1));
    put(*cache, 1);
    put(*cache, 2, 0);
    put(*cache, 3, 500000);
    cache->put({}, Kind::tuning, "", std::make_shared<const Bytes>(Bytes{7}), 0);
    ASSERT_TRUE(cache->flush(5000));
    const auto hit = get(*cache, 1);
    ASSERT_TRUE(hit);
    EXPECT_EQ(hit->level, Level::disk);
    EXPECT_EQ(*hit->payload, payload_of(1));
    EXPECT_EQ(cache->stats().puts_stored, 4u);
  }
  const size_t before = thread_count();
  auto cache = Cache::create(options_at(scratch.cache(), 1 << 20));
  EXPECT_TRUE(holds(*cache, 1));
  EXPECT_TRUE(holds(*cache, 2, 0));
  EXPECT_TRUE(holds(*cache, 3, 500000));
  EXPECT_EQ(*cache->get({}, Kind::tuning)->payload, Bytes{7});
  EXPECT_EQ(get(*cache, 1)->level, Level::memory);
  EXPECT_FALSE(get(*cache, 4));
  EXPECT_EQ(thread_count(), before) << "a process that only reads starts no thread";
  const Stats stats = cache->stats();
  EXPECT_TRUE(stats.disk_on);
  EXPECT_FALSE(stats.read_only);
  EXPECT_EQ(stats.file, scratch.database());
  EXPECT_EQ(stats.hits_disk, 4u);
  EXPECT_EQ(stats.hits_memory, 1u);
  EXPECT_EQ(stats.disk_entries, 4u);
  EXPECT_EQ(stats.total_puts, 4u);
  EXPECT_EQ(stats.total_hits, 1u);
}

TEST(CacheTest, FilesAreForTheirOwnerAlone) {
  Scratch scratch;
  ::umask(0);
  auto cache = Cache::create(options_at(scratch.file("a/b/cache")));
  put(*cache, 1);
  ASSERT_TRUE(cache->flush(5000));
  size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(scratch.path())) {
    struct stat s;
    ASSERT_EQ(::lstat(entry.path().c_str(), &s), 0);
    EXPECT_EQ(s.st_mode & 0777u, entry.is_directory() ? 0700u : 0600u) << entry.path();
    files += entry.is_regular_file() ? 1 : 0;
  }
  EXPECT_GE(files, 4u);
  ::umask(022);
}

TEST(CacheTest, PuttingAgainReplacesOrKeeps) {
  Scratch scratch;
  auto cache = Cache::create(options_at(scratch.cache()));
  put(*cache, 1);
  put(*cache, 1);
  ASSERT_TRUE(cache->flush(5000));
  EXPECT_EQ(cache->stats().puts_stored, 1u);
  EXPECT_EQ(cache->stats().puts_known, 1u);
  put(*cache, 1, 100);
  ASSERT_TRUE(cache->flush(5000));
  EXPECT_TRUE(holds(*cache, 1, 100));
  EXPECT_EQ(cache->stats().disk_entries, 1u);
}

Digest one_for_all(std::span<const uint8_t>) { return {1, 2}; }

TEST(CacheTest, CollidingDigestsAreMissesNeverWrongBytes) {
  Scratch scratch;
  CacheSeams seams;
  seams.index = one_for_all;
  for (const uint64_t memory : {uint64_t{0}, uint64_t{1} << 20}) {
    auto cache = Cache::create(options_at(scratch.cache(), memory), seams);
    put(*cache, 1);
    ASSERT_TRUE(cache->flush(5000));
    EXPECT_FALSE(get(*cache, 2));
    EXPECT_GE(cache->stats().misses_key_differs, 1u);
    EXPECT_TRUE(holds(*cache, 1));
    put(*cache, 2);
    ASSERT_TRUE(cache->flush(5000));
    EXPECT_TRUE(holds(*cache, 2));
    EXPECT_FALSE(get(*cache, 1));
    EXPECT_EQ(cache->stats().disk_entries, 1u);
  }
}

TEST(CacheTest, MarkedBadIsGoneAtOnceAndTheSameBytesAreRefused) {
  Scratch scratch;
  Log log;
  auto options = options_at(scratch.cache(), 1 << 20);
  options.log = log.sink();
  auto cache = Cache::create(options);
  put(*cache, 1);
  put(*cache, 2);
  ASSERT_TRUE(cache->flush(5000));
  cache->mark_bad(key_of(1), Kind::program, "entry point missing");
  EXPECT_FALSE(get(*cache, 1));
  EXPECT_TRUE(log.has("entry point missing"));
  ASSERT_TRUE(cache->flush(5000));
  EXPECT_FALSE(get(*cache, 1));
  EXPECT_TRUE(holds(*cache, 2));
  EXPECT_EQ(cache->stats().disk_entries, 1u);
  put(*cache, 1);
  ASSERT_TRUE(cache->flush(5000));
  EXPECT_EQ(cache->stats().puts_refused, 1u);
  EXPECT_EQ(cache->stats().disk_entries, 1u);
  put(*cache, 1, 2999);  // made anew, other bytes
  ASSERT_TRUE(cache->flush(5000));
  EXPECT_EQ(cache->stats().disk_entries, 2u);
  auto other = Cache::create(options_at(scratch.cache()));
  EXPECT_TRUE(holds(*other, 1, 2999));
}

TEST(CacheTest, OnlySoManyBadPayloadsAreRemembered) {
  Scratch scratch;
  auto cache = Cache::create(options_at(scratch.cache()));
  for (uint64_t i = 0; i < 70; ++i) {
    put(*cache, i, 10);
    cache->mark_bad(key_of(i), Kind::program, "test");
  }
  ASSERT_TRUE(cache->flush(20000));
  for (uint64_t i = 0; i < 70; ++i) put(*cache, i, 10);
  ASSERT_TRUE(cache->flush(20000));
  EXPECT_EQ(cache->stats().puts_refused, 64u);
  EXPECT_EQ(cache->stats().disk_entries, 6u);
}

TEST(CacheTest, TheFileStaysWithinItsBound) {
  Scratch scratch;
  auto options = options_at(scratch.cache());
  options.max_bytes = 2 << 20;
  auto cache = Cache::create(options);
  for (uint64_t i = 0; i < 400; ++i) {
    put(*cache, i, 20000);
    if (i % 50 == 49) ASSERT_TRUE(cache->flush(20000));
  }
  ASSERT_TRUE(cache->flush(20000));
  const Stats stats = cache->stats();
  EXPECT_GT(stats.evictions, 250u);
  EXPECT_EQ(stats.puts_stored, 400u);
  EXPECT_EQ(stats.disk_entries, 400 - stats.evictions);
  EXPECT_GT(stats.disk_entry_bytes, options.max_bytes / 2);
  EXPECT_EQ(stats.total_evictions, stats.evictions);
  cache.reset();
  EXPECT_LE(std::filesystem::file_size(scratch.database()), options.max_bytes + (1 << 17));
  cache = Cache::create(options);
  for (uint64_t i = 0; i < 400; ++i)
    if (const auto hit = get(*cache, i)) EXPECT_EQ(*hit->payload, payload_of(i, 20000));
  EXPECT_EQ(cache->stats().hits_disk, stats.disk_entries);
}

TEST(CacheTest, ATinyCacheEvictsAllTheTimeAndStaysRight) {
  Scratch scratch;
  auto options = options_at(scratch.cache());
  options.max_bytes = 256 << 10;
  auto cache = Cache::create(options);
  uint64_t found = 0;
  for (uint64_t i = 0; i < 60; ++i) {
    put(*cache, i, 30000);
    ASSERT_TRUE(cache->flush(20000));
    found += holds(*cache, i, 30000) ? 1 : 0;
  }
  EXPECT_GT(cache->stats().evictions, 50u);
  EXPECT_GT(found, 50u);
  put(*cache, 100, 200000);  // more than half of the whole: memory alone
  EXPECT_EQ(cache->stats().puts_refused, 1u);
}

TEST(CacheTest, ListsVerifiesPrunesAndClears) {
  Scratch scratch;
  auto cache = Cache::create(options_at(scratch.cache()));
  for (uint64_t i = 0; i < 50; ++i) put(*cache, i, 10000 + i, 100 * i);
  ASSERT_TRUE(cache->flush(5000));
  const auto list = cache->list();
  ASSERT_TRUE(list.ok()) << list.status().message();
  ASSERT_EQ(list->size(), 50u);
  const EntryInfo& last = list->front();
  EXPECT_EQ(last.key, digest_of(key_of(49)));
  EXPECT_EQ(last.kind, Kind::program);
  EXPECT_EQ(last.size, 10049u + 200u);
  EXPECT_EQ(last.cost_us, 4900u);
  EXPECT_EQ(last.env, "env");
  EXPECT_EQ(last.created_day, wall_day(real_os()));
  EXPECT_EQ(cache->list(7)->size(), 7u);
  uint64_t calls = 0;
  const auto report = cache->verify([&](uint64_t done, uint64_t total) {
    EXPECT_EQ(++calls, done);
    EXPECT_EQ(total, 50u);
    return true;
  });
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->checked, 50u);
  EXPECT_EQ(report->damaged, 0u);
  EXPECT_TRUE(report->file_sound) << report->file_problem;
  EXPECT_EQ(cache->verify([](uint64_t, uint64_t) { return false; })->checked, 1u);
  const auto pruned = cache->prune(300000);
  ASSERT_TRUE(pruned.ok());
  EXPECT_GT(*pruned, 20u);
  EXPECT_LE(std::filesystem::file_size(scratch.database()), 300000u);
  EXPECT_TRUE(holds(*cache, 49, 10049)) << "the dearest stay";
  EXPECT_FALSE(get(*cache, 0)) << "the cheapest go first";
  ASSERT_TRUE(cache->clear().ok());
  EXPECT_EQ(cache->stats().disk_entries, 0u);
  EXPECT_FALSE(get(*cache, 49));
  EXPECT_LE(std::filesystem::file_size(scratch.database()), 100000u);
}

TEST(CacheTest, ReadOnlyChangesNothing) {
  Scratch scratch;
  auto options = options_at(scratch.cache());
  options.read_only = true;
  {
    auto cache = Cache::create(options);
    EXPECT_FALSE(cache->stats().disk_on);
    EXPECT_FALSE(std::filesystem::exists(scratch.cache()));
    EXPECT_NE(cache->stats().reason, "");
  }
  {
    auto cache = Cache::create(options_at(scratch.cache()));
    put(*cache, 1);
  }
  const Blob before = real_os().read_file(scratch.database(), 1 << 24).take();
  {
    auto cache = Cache::create(options);
    EXPECT_TRUE(cache->stats().disk_on);
    EXPECT_TRUE(cache->stats().read_only);
    EXPECT_TRUE(holds(*cache, 1));
    put(*cache, 2);
    EXPECT_TRUE(cache->flush(0));
    EXPECT_FALSE(get(*cache, 2)) << "without a memory level nothing can hold it";
    EXPECT_EQ(cache->prune(0).status().code(), Code::failed_precondition);
    EXPECT_EQ(cache->clear().code(), Code::failed_precondition);
    EXPECT_EQ(cache->acquire_lease(key_of(2), Kind::program, 1000000).state(), Lease::State::none);
    cache->mark_bad(key_of(1), Kind::program, "test");
    EXPECT_FALSE(get(*cache, 1));
    EXPECT_EQ(cache->stats().misses_marked_bad, 1u);
  }
  EXPECT_EQ(real_os().read_file(scratch.database(), 1 << 24).value(), before);
}

TEST(CacheTest, SeveralCachesOfOneProcessShareTheFile) {
  Scratch scratch;
  auto first = Cache::create(options_at(scratch.cache()));
  auto second = Cache::create(options_at(scratch.cache() + "/"));
  auto third = Cache::create(options_at(scratch.cache()));
  put(*first, 1);
  ASSERT_TRUE(first->flush(5000));
  EXPECT_TRUE(holds(*second, 1));
  first.reset();
  put(*second, 2);
  ASSERT_TRUE(second->flush(5000));
  EXPECT_TRUE(holds(*third, 1));
  EXPECT_TRUE(holds(*third, 2));
  EXPECT_EQ(third->stats().file, scratch.database());
}

TEST(CacheTest, LargePayloadsAndTheBoundOfAnEntry) {
  Scratch scratch;
  auto cache = Cache::create(options_at(scratch.cache()));
  const size_t most = (size_t{64} << 20) - 200;
  put(*cache, 1, most);
  put(*cache, 2, most + 1);
  ASSERT_TRUE(cache->flush(60000));
  EXPECT_EQ(cache->stats().puts_stored, 1u);
  EXPECT_EQ(cache->stats().puts_refused, 1u);
  const auto hit = get(*cache, 1);
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->payload->size(), most);
  EXPECT_EQ(digest_of(*hit->payload), digest_of(payload_of(1, most)));
}

}  // namespace
}  // namespace quartet::cache
