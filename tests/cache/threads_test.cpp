// Many threads on one cache, and on several of one directory. Small enough for ThreadSanitizer, where it earns its
// keep.
#include <thread>

#include "tests/cache/support.h"

namespace quartet::cache {
namespace {

using namespace test;

void run_threads(int count, const std::function<void(uint64_t)>& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&work, i] { work(static_cast<uint64_t>(i)); });
  for (std::thread& thread : threads) thread.join();
}

// What a thread does with a cache; false bytes are the only failure.
void use(Cache& cache, uint64_t self, int rounds) {
  std::mt19937_64 random(self);
  for (int i = 0; i < rounds; ++i) {
    const uint64_t number = random() % 40;
    const auto hit = get(cache, number);
    if (hit) {
      ASSERT_EQ(*hit->payload, payload_of(number)) << number;
    } else {
      auto lease = cache.acquire_lease(key_of(number), Kind::program, 30000);
      put(cache, number);
    }
    switch (random() % 24) {
      case 0:
        cache.mark_bad(key_of(random() % 40), Kind::program, "test");
        break;
      case 1:
        ASSERT_TRUE(cache.list(10).ok());
        break;
      case 2:
        (void)cache.stats();
        break;
      case 3:
        (void)cache.flush(1);
        break;
      case 4:
        (void)cache.verify([](uint64_t done, uint64_t) { return done < 5; });
        break;
      case 5:
        (void)cache.prune(200000);
        break;
      case 6:
        if (random() % 4 == 0) (void)cache.clear();
        break;
      default:
        break;
    }
  }
}

TEST(ThreadsTest, OneCacheManyThreads) {
  Scratch scratch;
  for (const uint64_t memory : {uint64_t{0}, uint64_t{40000}}) {
    Log log;
    auto options = options_at(scratch.cache(), memory);
    options.max_bytes = 256 << 10;
    options.log = log.sink();
    auto cache = Cache::create(options);
    run_threads(6, [&](uint64_t self) { use(*cache, self, 60); });
    const Stats stats = cache->stats();
    EXPECT_EQ(stats.misses_checksum, 0u);
    EXPECT_EQ(stats.hard_errors, 0u) << log.all();
    EXPECT_EQ(stats.lookups, stats.hits_memory + stats.hits_disk + stats.misses_absent + stats.misses_marked_bad +
                                 stats.misses_error + stats.misses_key_differs);
  }
}

TEST(ThreadsTest, CachesOfOneDirectoryComeAndGo) {
  Scratch scratch;
  run_threads(4, [&](uint64_t self) {
    for (int i = 0; i < 8; ++i) {
      auto cache = Cache::create(options_at(scratch.cache(), 20000));
      ASSERT_TRUE(cache->stats().disk_on) << cache->stats().reason;
      ASSERT_EQ(cache->stats().file, scratch.database());
      use(*cache, self * 100 + static_cast<uint64_t>(i), 8);
    }
  });
  auto cache = Cache::create(options_at(scratch.cache()));
  EXPECT_TRUE(cache->verify()->file_sound);
  EXPECT_EQ(cache->verify()->damaged, 0u);
}

TEST(ThreadsTest, AQueueThatIsFullDropsAndCounts) {
  Scratch scratch;
  auto cache = Cache::create(options_at(scratch.cache()));
  const auto payload = std::make_shared<const Bytes>(payload_of(0, 2 << 20));
  run_threads(4, [&](uint64_t self) {
    for (uint64_t i = 0; i < 100; ++i) cache->put(key_of(self * 1000 + i), Kind::program, "env", payload, 1);
  });
  ASSERT_TRUE(cache->flush(60000));
  const Stats stats = cache->stats();
  EXPECT_EQ(stats.puts, 400u);
  EXPECT_EQ(stats.puts_stored + stats.puts_dropped, 400u);
  EXPECT_GT(stats.puts_dropped, 0u);
  EXPECT_EQ(stats.disk_entries + stats.evictions, stats.puts_stored);
}

TEST(ThreadsTest, ClosingIsBoundedAndKeepsWhatItCan) {
  Scratch scratch;
  auto cache = Cache::create(options_at(scratch.cache()));
  for (uint64_t i = 0; i < 200; ++i) put(*cache, i);
  const int64_t start = real_os().monotonic_ns();
  cache.reset();
  EXPECT_LT(real_os().monotonic_ns() - start, int64_t{5} * 1000000000);
  cache = Cache::create(options_at(scratch.cache()));
  EXPECT_TRUE(holds(*cache, 0));
  EXPECT_TRUE(holds(*cache, 199));
}

}  // namespace
}  // namespace quartet::cache
