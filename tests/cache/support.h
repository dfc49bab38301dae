// What the cache's tests share: a directory that goes away, keys and payloads made from numbers, a log that is kept.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "cache/cache.h"

namespace quartet::cache::test {

class Scratch {
 public:
  Scratch() {
    // In memory where possible: a test of many small transactions else waits for the disk most of the time. TMPDIR
    // decides.
    const bool in_memory = !::getenv("TMPDIR") && ::access("/dev/shm", W_OK) == 0 &&
                           std::filesystem::space("/dev/shm").available > (uint64_t{1} << 30);
    const std::filesystem::path base = in_memory ? "/dev/shm" : std::filesystem::temp_directory_path();
    std::string pattern = (base / "quartet-cache-XXXXXX").string();
    if (::mkdtemp(pattern.data())) path_ = std::filesystem::canonical(pattern).string();
  }
  ~Scratch() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  // The cache directory below it, and the database therein.
  std::string cache() const { return file("cache"); }
  std::string database() const { return file("cache/kernels-1.db"); }

 private:
  std::string path_;
};

class Log {
 public:
  std::function<void(LogLevel, std::string_view)> sink() {
    return [this](LogLevel, std::string_view text) {
      std::lock_guard guard(mutex_);
      lines_.emplace_back(text);
    };
  }
  std::vector<std::string> lines() {
    std::lock_guard guard(mutex_);
    return lines_;
  }
  std::string all() {
    std::string text;
    for (const std::string& line : lines()) text += line + "\n";
    return text;
  }
  void clear() {
    std::lock_guard guard(mutex_);
    lines_.clear();
  }
  bool has(std::string_view words) { return all().find(words) != std::string::npos; }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

inline Bytes random_bytes(uint64_t seed, size_t size) {
  std::mt19937_64 random(seed);
  Bytes bytes(size);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}
// Keys and payloads are functions of a number, so that any process can tell a true payload from a false one.
inline Bytes key_of(uint64_t number, size_t size = 200) { return random_bytes(number * 2 + 1, size); }
inline Bytes payload_of(uint64_t number, size_t size = 3000) { return random_bytes(number * 2 + 2000000, size); }

inline void put(Cache& cache, uint64_t number, size_t size = 3000, uint64_t cost_us = 50000) {
  cache.put(key_of(number), Kind::program, "env", std::make_shared<const Bytes>(payload_of(number, size)), cost_us);
}
inline std::optional<Hit> get(Cache& cache, uint64_t number) { return cache.get(key_of(number), Kind::program); }
// A hit with exactly the bytes that were put.
inline bool holds(Cache& cache, uint64_t number, size_t size = 3000) {
  const auto hit = get(cache, number);
  return hit && *hit->payload == payload_of(number, size);
}

inline CacheOptions options_at(const std::string& path, uint64_t memory_bytes = 0) {
  CacheOptions options;
  options.path = path;
  options.memory_bytes = memory_bytes;
  return options;
}

}  // namespace quartet::cache::test
