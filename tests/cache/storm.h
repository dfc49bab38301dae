// Processes on one cache that are killed at any moment, and the fixture of tests with several processes.
#pragma once

#include <signal.h>

#include <cstdio>

#include "tests/cache/child.h"
#include "tests/cache/support.h"

namespace quartet::cache::test {

class ProcessTest : public ::testing::Test {
 protected:
  void expect_sound() {
    auto cache = Cache::create(options_at(scratch_.cache()));
    ASSERT_TRUE(cache->stats().disk_on) << cache->stats().reason;
    const auto report = cache->verify();
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_TRUE(report->file_sound) << report->file_problem;
    EXPECT_EQ(report->damaged, 0u);
  }
  Scratch scratch_;
};

// Writers and readers that evict, list and lease, killed at any moment and replaced. Afterwards the file is sound, no
// false byte was ever seen, and neither the file nor its WAL has grown without bound.
inline void storm(Scratch& scratch, int kills, uint64_t& largest_wal) {
  const auto work = [&](uint64_t self) {
    std::mt19937_64 random(self);
    for (;;) {
      auto options = options_at(scratch.cache());
      options.max_bytes = 12 << 20;
      auto cache = Cache::create(options);
      for (int i = 0; i < 60; ++i) {
        const uint64_t number = random() % 600;
        const size_t size = 1000 + number * 97;
        const auto hit = get(*cache, number);
        if (hit && *hit->payload != payload_of(number, size)) return 3;
        if (!hit) {
          auto lease = cache->acquire_lease(key_of(number), Kind::program, 25000);
          put(*cache, number, size);
        }
        if (random() % 40 == 0) cache->mark_bad(key_of(random() % 600), Kind::program, "test");
      }
      const Stats stats = cache->stats();
      if (stats.misses_checksum != 0) return 4;
      if (stats.repairs != 0) return 5;
      if (!stats.disk_on) return 6;
    }
  };
  constexpr int kWorkers = 4;
  std::mt19937_64 random(99);
  uint64_t seed = 0;
  pid_t workers[kWorkers];
  for (pid_t& worker : workers) worker = start_child([&] { return work(++seed); }), ++seed;
  for (int i = 0; i < kills; ++i) {
    ::usleep(static_cast<useconds_t>(5000 + random() % 60000));
    pid_t& victim = workers[random() % kWorkers];
    ASSERT_EQ(::kill(victim, SIGKILL), 0);
    ASSERT_EQ(end_of(victim), 1000 + SIGKILL) << "3: false bytes, 4: checksum, 5: corrupt file, 6: off";
    victim = start_child([&] { return work(1000 + seed); });
    ++seed;
    std::error_code absent;
    const auto wal = std::filesystem::file_size(scratch.database() + "-wal", absent);
    if (!absent) largest_wal = std::max<uint64_t>(largest_wal, wal);
  }
  for (const pid_t worker : workers) {
    ::kill(worker, SIGKILL);
    ASSERT_EQ(end_of(worker), 1000 + SIGKILL);
  }
}

class StormTest : public ProcessTest {
 protected:
  void run(int kills) {
    uint64_t largest_wal = 0;
    storm(scratch_, kills, largest_wal);
    if (HasFatalFailure()) return;
    expect_sound();
    EXPECT_LT(largest_wal, uint64_t{160} << 20);
    EXPECT_LT(std::filesystem::file_size(scratch_.database()), uint64_t{40} << 20);
    auto cache = Cache::create(options_at(scratch_.cache()));
    EXPECT_GT(cache->stats().disk_entries, 20u);
    EXPECT_FALSE(std::filesystem::exists(scratch_.database() + ".bad"));
    put(*cache, 10000);
    ASSERT_TRUE(cache->flush(20000));
    EXPECT_TRUE(holds(*cache, 10000));
    std::printf("%d kills, largest WAL %.1f MiB, %llu entries\n", kills, static_cast<double>(largest_wal) / 1048576.0,
                static_cast<unsigned long long>(cache->stats().disk_entries));
  }
};

}  // namespace quartet::cache::test
