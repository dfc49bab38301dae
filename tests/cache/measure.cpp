// Times of the cache's ways, printed as one line each: opening with the first look-up, look-ups by level and size,
// puts.
#include <algorithm>
#include <cstdio>
#include <functional>

#include "tests/cache/support.h"

namespace quartet::cache {
namespace {

using namespace test;

void report(const char* what, std::vector<double>& microseconds) {
  std::sort(microseconds.begin(), microseconds.end());
  std::printf("%-44s median %8.2f us   p95 %8.2f us   min %8.2f us   (%zu times)\n", what,
              microseconds[microseconds.size() / 2], microseconds[microseconds.size() * 95 / 100], microseconds[0],
              microseconds.size());
}

void measure(const char* what, size_t times, const std::function<void(size_t)>& once) {
  std::vector<double> spent;
  for (size_t i = 0; i < times; ++i) {
    const int64_t start = real_os().monotonic_ns();
    once(i);
    spent.push_back(static_cast<double>(real_os().monotonic_ns() - start) / 1000.0);
  }
  report(what, spent);
}

// As `measure`, for what takes less than the clock: an average of `inner` calls each time.
void measure_short(const char* what, size_t times, size_t inner, const std::function<void()>& once) {
  std::vector<double> spent;
  for (size_t i = 0; i < times; ++i) {
    const int64_t start = real_os().monotonic_ns();
    for (size_t k = 0; k < inner; ++k) once();
    spent.push_back(static_cast<double>(real_os().monotonic_ns() - start) / 1000.0 / static_cast<double>(inner));
  }
  report(what, spent);
}

int measure_all(const std::string& path) {
  const std::string directory = path + "/cache";
  const size_t sizes[] = {4 << 10, 16 << 10, 64 << 10, 256 << 10};
  std::vector<double> cold;
  measure("open, no directory yet", 20,
          [&](size_t i) { Cache::create(options_at(path + "/new" + std::to_string(i))); });
  {
    auto cache = Cache::create(options_at(directory));
    for (uint64_t i = 0; i < 200; ++i) put(*cache, i, sizes[i % 4]);
    cache->flush(60000);
  }
  // Everything below reads what an earlier cache wrote. Keys are made beforehand: making them is not the cache's time.
  std::vector<Bytes> keys;
  for (uint64_t i = 0; i < 200; ++i) keys.push_back(key_of(i));
  std::vector<double> opening, closing;
  for (size_t i = 0; i < 200; ++i) {
    const int64_t start = real_os().monotonic_ns();
    auto cache = Cache::create(options_at(directory));
    const bool hit = cache->get(keys[0], Kind::program).has_value();
    const int64_t found = real_os().monotonic_ns();
    cache.reset();
    if (!hit) return 1;
    opening.push_back(static_cast<double>(found - start) / 1000.0);
    closing.push_back(static_cast<double>(real_os().monotonic_ns() - found) / 1000.0);
  }
  report("open and first get (4 KiB)", opening);
  report("close after only reading", closing);
  auto cache = Cache::create(options_at(directory));
  for (size_t s = 0; s < 4; ++s)
    measure(("get from disk, " + std::to_string(sizes[s] >> 10) + " KiB").c_str(), 500,
            [&](size_t i) { cache->get(keys[s + 4 * (i % 50)], Kind::program); });
  measure("get from disk, absent", 500, [&](size_t) { cache->get(keys[0], Kind::kernel); });
  auto warm = Cache::create(options_at(directory, 64 << 20));
  for (size_t s = 0; s < 4; s += 2) {
    warm->get(keys[s], Kind::program);
    measure_short(("get from memory, " + std::to_string(sizes[s] >> 10) + " KiB, key 200 B").c_str(), 100, 1000,
                  [&] { warm->get(keys[s], Kind::program); });
  }
  const Bytes long_key = key_of(7, 10000);
  warm->put(long_key, Kind::program, "env", std::make_shared<const Bytes>(4096), 1);
  measure_short("get from memory, 4 KiB, key 10000 B", 100, 1000, [&] { warm->get(long_key, Kind::program); });
  for (size_t s = 0; s < 4; ++s) {
    uint64_t next = 1000 + 1000 * s;
    std::vector<std::shared_ptr<const Bytes>> payloads;
    for (uint64_t i = 0; i < 100; ++i)
      payloads.push_back(std::make_shared<const Bytes>(payload_of(next + i, sizes[s])));
    measure(("put to disk and flush, " + std::to_string(sizes[s] >> 10) + " KiB").c_str(), 100, [&](size_t i) {
      cache->put(key_of(next++), Kind::program, "env", payloads[i], 1);
      cache->flush(10000);
    });
  }
  measure("acquire lease", 100, [&](size_t i) {
    auto lease = cache->acquire_lease(key_of(90000 + i), Kind::program, 1000000);
    cache->flush(1000);
  });
  return 0;
}

}  // namespace
}  // namespace quartet::cache

int main() {
  quartet::cache::test::Scratch scratch;
  return quartet::cache::measure_all(scratch.path());
}
