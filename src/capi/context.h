// The context: memory, messages, jobs, cache, engine and devices of one user of the library.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cache/cache.h"
#include "capi/call.h"
#include "capi/fork_guard.h"
#include "capi/handle.h"
#include "capi/jobs.h"
#include "capi/logger.h"
#include "capi/memory.h"
#include "capi/poll_queue.h"
#include "compiler/engine.h"
#include "device/device.h"
#include "runtime/allocator.h"
#include "runtime/worker_pool.h"

struct quartet_device : quartet::capi::Handle<quartet::capi::HandleKind::device> {
  quartet_context* context = nullptr;
  quartet::CpuModel model;
  std::string name;  // "cpu:host"
};

struct quartet_context : quartet::capi::SharedHandle<quartet::capi::HandleKind::context> {
  quartet_context() = default;

  quartet::capi::HostMemory* memory = nullptr;  // outlives the handle
  quartet::capi::ForkGuard fork_guard;
  std::unique_ptr<quartet::capi::Logger> logger;
  quartet::capi::PollQueue poll_queue;
  std::unique_ptr<quartet::capi::JobSystem> jobs;
  int32_t cache_mode = QUARTET_CACHE_MEMORY;
  std::vector<std::unique_ptr<quartet_device>> devices;
  std::shared_ptr<quartet::runtime::Allocator> allocator;
  std::shared_ptr<quartet::cache::Cache> cache;
  std::shared_ptr<quartet::runtime::WorkerPool> pool;
  std::unique_ptr<quartet::compiler::Engine> engine;

  // Programs in use, for trim.
  void remember(const std::shared_ptr<const quartet::runtime::LoadedProgram>& program);
  void trim_programs();

 private:
  std::mutex programs_mutex_;
  std::vector<std::weak_ptr<const quartet::runtime::LoadedProgram>> programs_;
};

namespace quartet::capi {

// Ok for a live context of this process.
Status check_context(const quartet_context* context);
// forked in a child of the process that made the context.
Status check_process(const quartet_context& context);

// The source of allocations for a call on `context`; null if that is no context.
HostMemory* memory_of(const quartet_context* context);

// One reference less; the last one ends the context.
void release_context(quartet_context* context) noexcept;

// A reference to a context.
class ContextRef {
 public:
  ContextRef() = default;
  explicit ContextRef(quartet_context* context) : context_(context) { context->retain(); }
  ContextRef(ContextRef&& other) noexcept : context_(std::exchange(other.context_, nullptr)) {}
  ContextRef& operator=(ContextRef&& other) noexcept {
    std::swap(context_, other.context_);
    return *this;
  }
  ~ContextRef() {
    if (context_ != nullptr) release_context(context_);
  }
  // Empty when the context has lost its last reference already.
  static ContextRef try_retain(quartet_context* context);
  // For a handle that is deleted: the reference outlives it.
  ContextRef take() { return std::move(*this); }

  quartet_context* get() const { return context_; }
  quartet_context* operator->() const { return context_; }
  quartet_context& operator*() const { return *context_; }
  explicit operator bool() const { return context_ != nullptr; }

 private:
  quartet_context* context_ = nullptr;
};

// Deletes a handle that has a `context` member, letting the context go last.
template <class T>
void delete_with_context(T* handle) noexcept {
  ContextRef context = handle->context.take();
  delete handle;
}

// The device given, or the first; it must be one of the context's.
Result<const quartet_device*> device_argument(const quartet_context& context, const quartet_device* device);

}  // namespace quartet::capi
