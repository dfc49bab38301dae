// The cache's voice: each cause is reported once in a cache's life, through the host's callback alone.
#pragma once

#include <atomic>
#include <string_view>
#include <utility>

#include "cache/cache.h"

namespace quartet::cache {

enum class Cause : uint32_t {
  place,
  forked,
  open,
  read_only,
  soft,
  refused,
  io,
  corrupt,
  off,
  damaged,
  full_queue,
  thread,
  bad
};

class Reporter {
 public:
  explicit Reporter(std::function<void(LogLevel, std::string_view)> log) : log_(std::move(log)) {}
  void operator()(Cause cause, LogLevel level, std::string_view message) {
    const uint32_t bit = 1u << static_cast<uint32_t>(cause);
    if (log_ && !(said_.fetch_or(bit) & bit)) log_(level, message);
  }

 private:
  std::function<void(LogLevel, std::string_view)> log_;
  std::atomic<uint32_t> said_{0};
};

}  // namespace quartet::cache
