// Damaged files: every look-up gives the true bytes or a miss, and the cache goes on.
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/cache/support.h"

namespace quartet::cache {
namespace {

using namespace test;
namespace fs = std::filesystem;

constexpr uint64_t kEntries = 12;

// A cache directory as bytes, to be damaged and laid out again and again.
struct Files {
  Bytes database, wal;
};

size_t size_of_entry(uint64_t number) { return 500 + 700 * number; }

Bytes read(const std::string& path) {
  const Blob bytes = real_os().read_file(path, 1 << 26).take();
  return {bytes.begin(), bytes.end()};
}
void write(const std::string& path, const Bytes& bytes) { ASSERT_TRUE(real_os().write_file(path, bytes, 0600).ok()); }

// With `in_wal`, what a killed process leaves: the entries are still in the WAL.
Files make_files(bool in_wal) {
  Scratch scratch;
  Files files;
  auto cache = Cache::create(options_at(scratch.cache()));
  for (uint64_t i = 0; i < kEntries; ++i) put(*cache, i, size_of_entry(i));
  EXPECT_TRUE(cache->flush(10000));
  if (!in_wal) cache.reset();
  files.database = read(scratch.database());
  files.wal = read(scratch.database() + "-wal");
  EXPECT_EQ(files.wal.empty(), !in_wal);
  return files;
}

struct Outcome {
  uint64_t hits = 0;
  Stats stats;
};

// Opens the laid-out directory, looks everything up, uses every function, and asks that the cache works in the end.
Outcome use(const std::string& directory) {
  Outcome outcome;
  auto cache = Cache::create(options_at(directory));
  for (uint64_t i = 0; i < kEntries; ++i) {
    const auto hit = get(*cache, i);
    if (!hit) continue;
    EXPECT_EQ(*hit->payload, payload_of(i, size_of_entry(i))) << "entry " << i;
    ++outcome.hits;
  }
  put(*cache, 100, 5000);
  cache->flush(10000);
  if (const auto hit = get(*cache, 100)) EXPECT_EQ(*hit->payload, payload_of(100, 5000));
  (void)cache->list();
  (void)cache->verify();
  (void)cache->acquire_lease(key_of(200), Kind::program, 1000000);
  (void)cache->prune(100000);
  for (uint64_t i = 0; i < kEntries; ++i) {
    const auto hit = get(*cache, i);
    if (hit) EXPECT_EQ(*hit->payload, payload_of(i, size_of_entry(i))) << "entry " << i;
  }
  // Whatever was found on the way: at the latest the third new entry stays.
  bool works = false;
  for (uint64_t i = 101; i < 104 && !works; ++i) {
    put(*cache, i);
    EXPECT_TRUE(cache->flush(10000));
    works = holds(*cache, i);
  }
  EXPECT_TRUE(works) << cache->stats().reason;
  outcome.stats = cache->stats();
  EXPECT_LE(outcome.stats.repairs, 1u);
  return outcome;
}

class DamageTest : public ::testing::Test {
 protected:
  void lay_out(const Files& files) {
    fs::remove_all(scratch_.cache());
    fs::create_directory(scratch_.cache());
    ::chmod(scratch_.cache().c_str(), 0700);
    write(scratch_.database(), files.database);
    if (!files.wal.empty()) write(scratch_.database() + "-wal", files.wal);
  }
  Outcome use_damaged(const Files& files) {
    lay_out(files);
    return use(scratch_.cache());
  }
  Scratch scratch_;
};

TEST_F(DamageTest, TheUndamagedFilesGiveEverything) {
  for (const bool in_wal : {false, true}) EXPECT_EQ(use_damaged(make_files(in_wal)).hits, kEntries);
}

// One flipped byte somewhere in each 97 bytes of the file; a prime, so that all places of a page are met.
TEST_F(DamageTest, FlippedBytesInTheDatabase) {
  const Files sound = make_files(false);
  uint64_t hits = 0, misses = 0, repairs = 0, checksum = 0;
  std::mt19937_64 random(1);
  for (size_t at = 0; at < sound.database.size(); at += 97 * 3) {
    Files files = sound;
    const size_t place = std::min(at + random() % 97, files.database.size() - 1);
    files.database[place] ^= static_cast<uint8_t>(1 + random() % 255);
    SCOPED_TRACE("byte " + std::to_string(place));
    const Outcome outcome = use_damaged(files);
    hits += outcome.hits;
    misses += kEntries - outcome.hits;
    repairs += outcome.stats.repairs;
    checksum += outcome.stats.misses_checksum;
  }
  EXPECT_GT(hits, misses);
  EXPECT_GT(checksum, 50u) << "payloads fill most of the file, so most damage is theirs";
  EXPECT_GT(repairs, 1u);
}

// All of the first page, where SQLite keeps what the whole file hangs on, byte by byte.
TEST_F(DamageTest, FlippedBytesInTheHeader) {
  const Files sound = make_files(false);
  for (size_t place = 0; place < 112; ++place) {
    Files files = sound;
    files.database[place] ^= 0x5a;
    SCOPED_TRACE("byte " + std::to_string(place));
    const Outcome outcome = use_damaged(files);
    EXPECT_TRUE(outcome.stats.disk_on) << outcome.stats.reason;
  }
}

TEST_F(DamageTest, FlippedBytesInTheWal) {
  const Files sound = make_files(true);
  std::mt19937_64 random(2);
  uint64_t misses = 0;
  for (size_t at = 0; at < sound.wal.size(); at += 97 * 8) {
    Files files = sound;
    const size_t place = std::min(at + random() % 97, files.wal.size() - 1);
    files.wal[place] ^= static_cast<uint8_t>(1 + random() % 255);
    SCOPED_TRACE("byte " + std::to_string(place));
    const Outcome outcome = use_damaged(files);
    EXPECT_TRUE(outcome.stats.disk_on) << outcome.stats.reason;
    misses += kEntries - outcome.hits;
  }
  EXPECT_GT(misses, 0u);
}

TEST_F(DamageTest, TruncatedFiles) {
  const Files sound = make_files(false), with_wal = make_files(true);
  for (size_t size = 0; size < sound.database.size(); size += size < 4096 ? 511 : 2731) {
    SCOPED_TRACE("database cut to " + std::to_string(size));
    Files files = sound;
    files.database.resize(size);
    EXPECT_TRUE(use_damaged(files).stats.disk_on);
  }
  for (size_t size = 0; size < with_wal.wal.size(); size += 4567) {
    SCOPED_TRACE("WAL cut to " + std::to_string(size));
    Files files = with_wal;
    files.wal.resize(size);
    EXPECT_TRUE(use_damaged(files).stats.disk_on);
  }
}

TEST_F(DamageTest, OverwrittenPages) {
  const Files sound = make_files(false);
  std::mt19937_64 random(3);
  for (size_t page = 0; page < sound.database.size() / 4096; page += 2) {
    for (const bool zeros : {true, false}) {
      SCOPED_TRACE("page " + std::to_string(page));
      Files files = sound;
      for (size_t i = 0; i < 4096; ++i) files.database[page * 4096 + i] = zeros ? 0 : static_cast<uint8_t>(random());
      use_damaged(files);
    }
  }
}

// Pages that are sound in themselves but stand where others belong.
TEST_F(DamageTest, SwappedPages) {
  const Files sound = make_files(false);
  const size_t pages = sound.database.size() / 4096;
  std::mt19937_64 random(4);
  for (int i = 0; i < 60; ++i) {
    Files files = sound;
    const size_t a = random() % pages, b = random() % pages;
    SCOPED_TRACE("pages " + std::to_string(a) + " and " + std::to_string(b));
    std::swap_ranges(files.database.begin() + static_cast<ptrdiff_t>(a * 4096),
                     files.database.begin() + static_cast<ptrdiff_t>((a + 1) * 4096),
                     files.database.begin() + static_cast<ptrdiff_t>(b * 4096));
    use_damaged(files);
  }
}

TEST_F(DamageTest, AFileThatIsNoDatabaseIsSetAsideOnce) {
  Log log;
  fs::create_directory(scratch_.cache());
  ::chmod(scratch_.cache().c_str(), 0700);
  const Bytes text = random_bytes(9, 20000);
  write(scratch_.database(), text);
  auto options = options_at(scratch_.cache());
  options.log = log.sink();
  auto cache = Cache::create(options);
  EXPECT_TRUE(cache->stats().disk_on);
  EXPECT_EQ(cache->stats().repairs, 1u);
  put(*cache, 1);
  ASSERT_TRUE(cache->flush(5000));
  EXPECT_TRUE(holds(*cache, 1));
  EXPECT_EQ(read(scratch_.database() + ".bad"), text);
  EXPECT_EQ(log.lines().size(), 1u) << log.all();
  EXPECT_TRUE(log.has("kept as .bad")) << log.all();
}

TEST_F(DamageTest, AnotherProgramsDatabaseIsSetAside) {
  // Ours, with another application id: a sound database that is not a cache.
  Files files = make_files(false);
  files.database[68] ^= 0xff;
  const Outcome outcome = use_damaged(files);
  EXPECT_EQ(outcome.hits, 0u);
  EXPECT_EQ(outcome.stats.repairs, 1u);
  EXPECT_TRUE(outcome.stats.disk_on);
}

TEST_F(DamageTest, DamageWhileTheCacheIsOpen) {
  Scratch scratch;
  auto cache = Cache::create(options_at(scratch.cache()));
  for (uint64_t i = 0; i < 300; ++i) put(*cache, i, 20000);
  ASSERT_TRUE(cache->flush(20000));
  cache.reset();
  cache = Cache::create(options_at(scratch.cache()));
  EXPECT_TRUE(holds(*cache, 0, 20000));
  {
    // Through its own descriptor, as a failing disk would; the process holds no lock at this moment.
    std::fstream file(scratch.database(), std::ios::in | std::ios::out | std::ios::binary);
    const Bytes noise = random_bytes(5, 4000000);
    file.seekp(8192);
    file.write(reinterpret_cast<const char*>(noise.data()), static_cast<std::streamsize>(noise.size()));
  }
  for (uint64_t i = 0; i < 300; ++i)
    if (const auto hit = get(*cache, i)) EXPECT_EQ(*hit->payload, payload_of(i, 20000));
  put(*cache, 1000);
  ASSERT_TRUE(cache->flush(20000));
  EXPECT_EQ(cache->stats().repairs, 1u);
  EXPECT_TRUE(holds(*cache, 1000));
}

TEST_F(DamageTest, OtherSchemasAreLeftAlone) {
  fs::create_directory(scratch_.cache());
  ::chmod(scratch_.cache().c_str(), 0700);
  const Bytes older = random_bytes(1, 5000), newer = random_bytes(2, 5000);
  write(scratch_.file("cache/kernels-0.db"), older);
  write(scratch_.file("cache/kernels-2.db"), newer);
  {
    auto cache = Cache::create(options_at(scratch_.cache()));
    put(*cache, 1);
    EXPECT_TRUE(cache->flush(5000));
    EXPECT_TRUE(holds(*cache, 1));
    EXPECT_TRUE(cache->clear().ok());
  }
  EXPECT_EQ(read(scratch_.file("cache/kernels-0.db")), older);
  EXPECT_EQ(read(scratch_.file("cache/kernels-2.db")), newer);
}

}  // namespace
}  // namespace quartet::cache
