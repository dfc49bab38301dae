// The cache and its SQLite once more, as a library of its own: what a process holds that loads two hosts of Quartet.
#include "tests/cache/support.h"

using namespace quartet::cache;
using namespace quartet::cache::test;

extern "C" {
[[gnu::visibility("default")]] void* second_copy_open(const char* path) {
  return Cache::create(options_at(path)).release();
}
[[gnu::visibility("default")]] void second_copy_put(void* cache, unsigned number) {
  put(*static_cast<Cache*>(cache), number);
  static_cast<Cache*>(cache)->flush(10000);
}
[[gnu::visibility("default")]] int second_copy_holds(void* cache, unsigned number) {
  return holds(*static_cast<Cache*>(cache), number) ? 1 : 0;
}
[[gnu::visibility("default")]] unsigned second_copy_file_length(void* cache) {
  return static_cast<unsigned>(static_cast<Cache*>(cache)->stats().file.size());
}
[[gnu::visibility("default")]] void second_copy_close(void* cache) { delete static_cast<Cache*>(cache); }
}
