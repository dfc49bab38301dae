// A quartet_context_desc taken over: checked, copied, its callbacks' user data owned.
#pragma once

#include <optional>
#include <string>

#include "capi/call.h"

namespace quartet::capi {

struct ContextDesc {
  // Null: all defaults. Whatever goes wrong, each free_user that could be read is called once, at the latest by the
  // destructor.
  Status read(const quartet_context_desc* given);
  ~ContextDesc();

  std::optional<quartet_allocator> allocator;  // owns its user data until reset
  std::optional<quartet_logger> logger;
  UserData logger_user;
  std::optional<quartet_executor> executor;
  UserData executor_user;
  quartet_cache_desc cache{};
  std::string cache_path;
  std::string compiler_path;
  uint64_t budget_bytes = 0;

 private:
  Status take_callbacks(const quartet_context_desc& desc);
  Status check_callbacks() const;
  Status read_cache(const quartet_cache_desc* given);
};

}  // namespace quartet::capi
