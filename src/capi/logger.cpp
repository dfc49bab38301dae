#include "capi/logger.h"

#include <string>

namespace quartet::capi {

Logger::Logger(const quartet_logger* logger, UserData user) : user_(std::move(user)) {
  if (logger == nullptr) return;
  log_ = logger->log;
  level_.store(logger->level, std::memory_order_relaxed);
}

void Logger::log(int32_t level, std::string_view component, std::string_view message) const noexcept {
  if (!wants(level)) return;
  quiet(nullptr, [&] {
    const std::string name(component), text(message);  // NUL-terminated
    log_(user_.get(), level, name.c_str(), name.size(), text.c_str(), text.size());
  });
}

Status check_log_level(int32_t level) {
  if (level >= QUARTET_LOG_OFF && level <= QUARTET_LOG_DEBUG) return {};
  return make_error(Code::unsupported, "there is no log level %d", level);
}

}  // namespace quartet::capi
