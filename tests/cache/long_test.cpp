// What takes a minute or much room: for the label `long`.
#include <signal.h>
#include <sqlite3.h>

#include "tests/cache/child.h"
#include "tests/cache/storm.h"
#include "tests/cache/support.h"

namespace quartet::cache {
namespace {

using namespace test;
namespace fs = std::filesystem;

TEST_F(StormTest, LongKillStorm) { run(1500); }

// A reader that is stopped within its transaction keeps the WAL from shrinking. Takes 300 MB.
TEST_F(ProcessTest, AStoppedReaderDoesNotGrowTheWalWithoutBound) {
  {
    put(*Cache::create(options_at(scratch_.cache())), 1);
  }
  const std::string ready = scratch_.file("ready");
  const pid_t reader = start_child([&] {
    sqlite3* db = nullptr;
    if (sqlite3_open(scratch_.database().c_str(), &db) != SQLITE_OK) return 1;
    if (sqlite3_exec(db, "BEGIN; SELECT count(*) FROM entry", nullptr, nullptr, nullptr) != SQLITE_OK) return 2;
    if (!real_os().create_file(ready, 0600).ok()) return 3;
    ::pause();
    return 0;
  });
  while (::access(ready.c_str(), F_OK) != 0) ::usleep(1000);
  auto cache = Cache::create(options_at(scratch_.cache()));
  const auto payload = std::make_shared<const Bytes>(payload_of(0, 4 << 20));
  for (uint64_t i = 0; i < 100; ++i) {
    cache->put(key_of(i), Kind::program, "env", payload, 1);
    ASSERT_TRUE(cache->flush(20000));
  }
  EXPECT_GT(cache->stats().puts_dropped, 10u);
  EXPECT_LT(cache->stats().wal_bytes, uint64_t{280} << 20);
  ASSERT_EQ(::kill(reader, SIGKILL), 0);
  EXPECT_EQ(end_of(reader), 1000 + SIGKILL);
  for (uint64_t i = 200; i < 210; ++i) cache->put(key_of(i), Kind::program, "env", payload, 1);
  ASSERT_TRUE(cache->flush(60000));
  const auto hit = get(*cache, 209);
  ASSERT_TRUE(hit);
  EXPECT_EQ(*hit->payload, *payload);
  cache.reset();
  EXPECT_EQ(fs::file_size(scratch_.database() + "-wal"), 0u);
}

}  // namespace
}  // namespace quartet::cache
