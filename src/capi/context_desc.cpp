#include "capi/context_desc.h"

#include "capi/logger.h"

namespace quartet::capi {

namespace {

Status first_failure(Status a, Status b) { return a.ok() ? b : a; }

}  // namespace

ContextDesc::~ContextDesc() {
  if (allocator && allocator->free_user != nullptr) allocator->free_user(allocator->user);
}

Status ContextDesc::read(const quartet_context_desc* given) {
  cache.mode = QUARTET_CACHE_MEMORY;
  if (given == nullptr) return {};
  QUARTET_ASSIGN(const quartet_context_desc desc, read_struct(given, "desc"));
  QUARTET_TRY(take_callbacks(desc));
  QUARTET_TRY(check_callbacks());
  if (desc.flags != 0) return make_error(Code::unsupported, "desc.flags is 0x%x", desc.flags);
  QUARTET_TRY(read_cache(desc.cache));
  budget_bytes = desc.budget_bytes;
  if (desc.compiler_path != nullptr) {
    QUARTET_ASSIGN(compiler_path, name_argument(desc.compiler_path, desc.compiler_path_size, "desc.compiler_path"));
  }
  return {};
}

// Takes all that can be read before it reports what cannot.
Status ContextDesc::take_callbacks(const quartet_context_desc& desc) {
  Status status;
  if (desc.allocator != nullptr) {
    auto read = read_struct(desc.allocator, "desc.allocator");
    if (read.ok()) allocator = *read;
    status = first_failure(status, read.status());
  }
  if (desc.logger != nullptr) {
    auto read = read_struct(desc.logger, "desc.logger");
    if (read.ok()) {
      logger = *read;
      logger_user = UserData(logger->user, logger->free_user);
    }
    status = first_failure(status, read.status());
  }
  if (desc.executor != nullptr) {
    auto read = read_struct(desc.executor, "desc.executor");
    if (read.ok()) {
      executor = *read;
      executor_user = UserData(executor->user, executor->free_user);
    }
    status = first_failure(status, read.status());
  }
  return status;
}

Status ContextDesc::check_callbacks() const {
  if (allocator) {
    if (allocator->flags != 0) return make_error(Code::unsupported, "desc.allocator.flags is 0x%x", allocator->flags);
    if (allocator->alloc == nullptr) return {Code::invalid_argument, "desc.allocator.alloc is NULL"};
    if (allocator->dealloc == nullptr) return {Code::invalid_argument, "desc.allocator.dealloc is NULL"};
  }
  if (logger) {
    if (logger->log == nullptr) return {Code::invalid_argument, "desc.logger.log is NULL"};
    QUARTET_TRY(check_log_level(logger->level).with_prefix("desc.logger: "));
  }
  if (executor) {
    if (executor->flags != 0) return make_error(Code::unsupported, "desc.executor.flags is 0x%x", executor->flags);
    if (executor->submit == nullptr) return {Code::invalid_argument, "desc.executor.submit is NULL"};
    if (executor->concurrency == nullptr) return {Code::invalid_argument, "desc.executor.concurrency is NULL"};
  }
  return {};
}

Status ContextDesc::read_cache(const quartet_cache_desc* given) {
  if (given == nullptr) return {};
  QUARTET_ASSIGN(cache, read_struct(given, "desc.cache"));
  const bool on_disk = cache.mode == QUARTET_CACHE_DISK || cache.mode == QUARTET_CACHE_DISK_READ_ONLY;
  if (!on_disk && cache.mode != QUARTET_CACHE_MEMORY && cache.mode != QUARTET_CACHE_OFF) {
    return make_error(Code::unsupported, "desc.cache: there is no cache mode %d", cache.mode);
  }
  if (!on_disk) {
    if (cache.path == nullptr) return {};
    return {Code::invalid_argument, "desc.cache.path is given, but the mode keeps nothing on disk"};
  }
  QUARTET_ASSIGN(cache_path, name_argument(cache.path, cache.path_size, "desc.cache.path"));
  return {};
}

}  // namespace quartet::capi
