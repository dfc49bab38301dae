// Several processes on one cache: cold starts, readers beside writers, leases, kills.
#include <signal.h>

#include "tests/cache/child.h"
#include "tests/cache/storm.h"
#include "tests/cache/support.h"

namespace quartet::cache {
namespace {

using namespace test;
namespace fs = std::filesystem;

// All at once, by a start signal in the file system; repeated, since each start can race in its own way.
TEST_F(ProcessTest, EightProcessesStartColdAtOnce) {
  for (int round = 0; round < 10; ++round) {
    fs::remove_all(scratch_.cache());
    const std::string go = scratch_.file("go" + std::to_string(round));
    std::vector<pid_t> children;
    for (uint64_t c = 0; c < 8; ++c)
      children.push_back(start_child([&] {
        while (::access(go.c_str(), F_OK) != 0) ::usleep(100);
        auto cache = Cache::create(options_at(scratch_.cache()));
        if (!cache->stats().disk_on || cache->stats().repairs != 0) return 1;
        put(*cache, c);
        put(*cache, 100);
        if (!cache->flush(10000) || cache->stats().puts_failed != 0) return 2;
        return holds(*cache, c) && holds(*cache, 100) ? 0 : 3;
      }));
    ASSERT_TRUE(real_os().create_file(go, 0600).ok());
    for (const pid_t child : children) EXPECT_EQ(end_of(child), 0);
    auto cache = Cache::create(options_at(scratch_.cache()));
    for (uint64_t c = 0; c < 8; ++c) EXPECT_TRUE(holds(*cache, c));
    EXPECT_EQ(cache->stats().disk_entries, 9u);
  }
}

TEST_F(ProcessTest, TwoProcessesWriteReadAndEvictAtOnce) {
  const auto work = [&](uint64_t self) {
    auto options = options_at(scratch_.cache());
    options.max_bytes = 3 << 20;
    auto cache = Cache::create(options);
    std::mt19937_64 random(self);
    for (int i = 0; i < 400; ++i) {
      const uint64_t number = random() % 300;
      const auto hit = get(*cache, number);
      if (hit && *hit->payload != payload_of(number, 12000)) return 1;
      if (!hit) put(*cache, number, 12000);
      if (i % 50 == 0) (void)cache->list(5);
    }
    if (!cache->flush(20000)) return 2;
    const Stats stats = cache->stats();
    if (stats.misses_checksum || stats.repairs || stats.hard_errors || stats.puts_failed) return 3;
    return stats.hits_disk > 0 ? 0 : 4;
  };
  const pid_t first = start_child([&] { return work(1); }), second = start_child([&] { return work(2); });
  EXPECT_EQ(end_of(first), 0);
  EXPECT_EQ(end_of(second), 0);
  expect_sound();
}

TEST_F(ProcessTest, WhatOneWritesAnotherThatIsOpenSees) {
  {
    auto warm = Cache::create(options_at(scratch_.cache()));
  }
  const std::string go = scratch_.file("go"), ready = scratch_.file("ready");
  const pid_t reader = start_child([&] {
    auto cache = Cache::create(options_at(scratch_.cache()));
    if (get(*cache, 1)) return 1;
    if (!real_os().create_file(ready, 0600).ok()) return 2;
    while (::access(go.c_str(), F_OK) != 0) ::usleep(1000);
    return holds(*cache, 1) ? 0 : 3;
  });
  while (::access(ready.c_str(), F_OK) != 0) ::usleep(1000);
  {
    auto cache = Cache::create(options_at(scratch_.cache()));
    put(*cache, 1);
    ASSERT_TRUE(cache->flush(5000));
  }
  ASSERT_TRUE(real_os().create_file(go, 0600).ok());
  EXPECT_EQ(end_of(reader), 0);
}

// Four processes want the same payloads; with leases each is made once, as the shared ledger of compiles shows.
TEST_F(ProcessTest, LeasesLetOneCompileAndTheOthersWait) {
  constexpr uint64_t kKeys = 12;
  const std::string ledger = scratch_.file("ledger");
  ASSERT_TRUE(real_os().make_directory(ledger, 0700).ok());
  std::vector<pid_t> children;
  for (int c = 0; c < 4; ++c)
    children.push_back(start_child([&, c] {
      auto cache = Cache::create(options_at(scratch_.cache()));
      for (uint64_t number = 0; number < kKeys; ++number) {
        if (get(*cache, number)) continue;
        auto lease = cache->acquire_lease(key_of(number), Kind::program, 5000000);
        if (lease.state() == Lease::State::other) {
          const auto hit = cache->wait(lease);
          if (hit && *hit->payload != payload_of(number)) return 1;
          if (hit) continue;
        }
        const std::string entry = ledger + "/" + std::to_string(number) + "-" + std::to_string(c);
        if (!real_os().create_file(entry, 0600).ok()) return 2;
        ::usleep(30000);
        put(*cache, number);
        lease.release();
      }
      if (!cache->flush(10000)) return 3;
      return cache->stats().puts_failed == 0 ? 0 : 4;
    }));
  for (const pid_t child : children) EXPECT_EQ(end_of(child), 0);
  const auto compiles = real_os().list_directory(ledger).value().size();
  EXPECT_EQ(compiles, kKeys);
  auto cache = Cache::create(options_at(scratch_.cache()));
  for (uint64_t number = 0; number < kKeys; ++number) EXPECT_TRUE(holds(*cache, number));
}

class LeaseTest : public ProcessTest {
 protected:
  // A child that takes the lease of key 1 and then does `after`; returns once it is taken.
  pid_t start_owner(uint64_t expected_us, const std::function<int(Cache&, Lease&)>& after) {
    const std::string taken = scratch_.file("taken");
    const pid_t owner = start_child([&] {
      auto cache = Cache::create(options_at(scratch_.cache()));
      auto lease = cache->acquire_lease(key_of(1), Kind::program, expected_us);
      if (lease.state() != Lease::State::owner) return 50;
      if (!real_os().create_file(taken, 0600).ok()) return 51;
      const int rc = after(*cache, lease);
      lease.release();
      return rc;
    });
    while (::access(taken.c_str(), F_OK) != 0) ::usleep(1000);
    return owner;
  }
  // Milliseconds until `wait` came back.
  int64_t timed_wait(Cache& cache, const Lease& lease, std::optional<Hit>& hit,
                     const std::function<bool()>& cancelled = {}) {
    const int64_t start = real_os().monotonic_ns();
    hit = cache.wait(lease, cancelled);
    return (real_os().monotonic_ns() - start) / 1000000;
  }
};

TEST_F(LeaseTest, AWaiterGetsWhatTheOwnerPuts) {
  const pid_t owner = start_owner(5000000, [](Cache& cache, Lease&) {
    ::usleep(300000);
    put(cache, 1);
    return 0;
  });
  auto cache = Cache::create(options_at(scratch_.cache()));
  const auto lease = cache->acquire_lease(key_of(1), Kind::program, 5000000);
  EXPECT_EQ(lease.state(), Lease::State::other);
  EXPECT_EQ(cache->acquire_lease(key_of(2), Kind::program, 5000000).state(), Lease::State::owner);
  std::optional<Hit> hit;
  EXPECT_LT(timed_wait(*cache, lease, hit), 8000);
  ASSERT_TRUE(hit);
  EXPECT_EQ(*hit->payload, payload_of(1));
  EXPECT_EQ(cache->stats().lease_hits, 1u);
  EXPECT_EQ(end_of(owner), 0);
  // There now is an entry: nobody needs to make it.
  EXPECT_EQ(cache->acquire_lease(key_of(1), Kind::program, 5000000).state(), Lease::State::other);
}

TEST_F(LeaseTest, AnOwnerThatGivesUpFreesItsWaiters) {
  const pid_t owner = start_owner(5000000, [](Cache&, Lease& lease) {
    ::usleep(200000);
    lease.release();
    ::usleep(100000);
    return 0;
  });
  auto cache = Cache::create(options_at(scratch_.cache()));
  const auto lease = cache->acquire_lease(key_of(1), Kind::program, 5000000);
  std::optional<Hit> hit;
  EXPECT_LT(timed_wait(*cache, lease, hit), 8000);
  EXPECT_FALSE(hit);
  EXPECT_EQ(end_of(owner), 0);
}

// Killed, and not yet reaped: the pid still exists.
TEST_F(LeaseTest, AKilledOwnerIsNoticedThoughItIsAZombie) {
  const pid_t owner = start_owner(5000000, [](Cache&, Lease&) {
    ::pause();
    return 0;
  });
  auto cache = Cache::create(options_at(scratch_.cache()));
  const auto lease = cache->acquire_lease(key_of(1), Kind::program, 5000000);
  ASSERT_EQ(lease.state(), Lease::State::other);
  ASSERT_EQ(::kill(owner, SIGKILL), 0);
  std::optional<Hit> hit;
  EXPECT_LT(timed_wait(*cache, lease, hit), 5000) << "ten seconds are the bound without notice";
  EXPECT_FALSE(hit);
  EXPECT_EQ(cache->acquire_lease(key_of(1), Kind::program, 5000000).state(), Lease::State::owner);
  EXPECT_EQ(end_of(owner), 1000 + SIGKILL);
}

TEST_F(LeaseTest, AStoppedOwnerIsWaitedForBoundedly) {
  const pid_t owner = start_owner(200000, [](Cache&, Lease&) {
    ::pause();
    return 0;
  });
  ASSERT_EQ(::kill(owner, SIGSTOP), 0);
  auto cache = Cache::create(options_at(scratch_.cache()));
  const auto lease = cache->acquire_lease(key_of(1), Kind::program, 200000);
  ASSERT_EQ(lease.state(), Lease::State::other);
  std::optional<Hit> hit;
  const int64_t waited = timed_wait(*cache, lease, hit);
  EXPECT_FALSE(hit);
  EXPECT_GE(waited, 400) << "twice the expected cost";
  EXPECT_LT(waited, 5000);
  EXPECT_EQ(cache->stats().lease_timeouts, 1u);
  const auto again = cache->acquire_lease(key_of(1), Kind::program, 10000000);
  EXPECT_LT(timed_wait(*cache, again, hit, [] { return true; }), 100) << "a cancelled wait ends at once";
  ASSERT_EQ(::kill(owner, SIGKILL), 0);
  EXPECT_EQ(end_of(owner), 1000 + SIGKILL);
}

TEST_F(LeaseTest, ALivingOwnerKeepsItsLeaseBeyondOneLife) {
  const std::string done = scratch_.file("done");
  const pid_t owner = start_owner(10000000, [&](Cache&, Lease&) {
    while (::access(done.c_str(), F_OK) != 0) ::usleep(10000);
    return 0;
  });
  ::usleep(7000000);  // a lease lives six seconds unless it is renewed
  {
    auto cache = Cache::create(options_at(scratch_.cache()));
    EXPECT_EQ(cache->acquire_lease(key_of(1), Kind::program, 10000000).state(), Lease::State::other);
  }
  ASSERT_TRUE(real_os().create_file(done, 0600).ok());
  EXPECT_EQ(end_of(owner), 0);
}

TEST_F(LeaseTest, CheapKernelsAreNotLeasedProgramsAre) {
  auto cache = Cache::create(options_at(scratch_.cache()));
  EXPECT_EQ(cache->acquire_lease(key_of(1), Kind::kernel, 20000).state(), Lease::State::none);
  EXPECT_EQ(cache->acquire_lease(key_of(1), Kind::kernel, 20001).state(), Lease::State::owner);
  EXPECT_EQ(cache->acquire_lease(key_of(1), Kind::program, 0).state(), Lease::State::owner);
  auto memory = Cache::create(CacheOptions{});
  EXPECT_EQ(memory->acquire_lease(key_of(1), Kind::program, 1000000).state(), Lease::State::none);
}

TEST_F(StormTest, ShortKillStorm) { run(100); }

// Killed while the directory and the file are being made.
TEST_F(ProcessTest, KilledDuringTheFirstStart) {
  for (int round = 0; round < 60; ++round) {
    fs::remove_all(scratch_.cache());
    const pid_t child = start_child([&] {
      auto cache = Cache::create(options_at(scratch_.cache()));
      put(*cache, 1);
      cache->flush(1000);
      ::pause();
      return 0;
    });
    ::usleep(static_cast<useconds_t>(round * 50));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    EXPECT_EQ(end_of(child), 1000 + SIGKILL);
    auto cache = Cache::create(options_at(scratch_.cache()));
    ASSERT_TRUE(cache->stats().disk_on) << cache->stats().reason;
    EXPECT_EQ(cache->stats().repairs, 0u);
    put(*cache, 2);
    ASSERT_TRUE(cache->flush(5000));
    EXPECT_TRUE(holds(*cache, 2));
    EXPECT_TRUE(!get(*cache, 1) || holds(*cache, 1));
  }
}

}  // namespace
}  // namespace quartet::cache
