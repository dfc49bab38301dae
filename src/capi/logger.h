// Messages to the host's logger.
#pragma once

#include <atomic>
#include <string_view>

#include "capi/call.h"

namespace quartet::capi {

class Logger {
 public:
  // `logger` null: silent.
  Logger(const quartet_logger* logger, UserData user);
  bool wants(int32_t level) const { return log_ != nullptr && level <= level_.load(std::memory_order_relaxed); }
  // Does nothing when there is no memory for the text.
  void log(int32_t level, std::string_view component, std::string_view message) const noexcept;
  void set_level(int32_t level) { level_.store(level, std::memory_order_relaxed); }

 private:
  quartet_log_fn log_ = nullptr;
  UserData user_;
  std::atomic<int32_t> level_{QUARTET_LOG_OFF};
};

Status check_log_level(int32_t level);

}  // namespace quartet::capi
