#include "capi/context.h"

#include <algorithm>

#include "capi/context_desc.h"
#include "capi/future.h"
#include "graph/ops.h"

namespace quartet::capi {

namespace {

// Everything of the runtime that is big: workspaces, prepared operands, buffers.
class ContextAllocator final : public runtime::Allocator {
 public:
  explicit ContextAllocator(HostMemory* memory) : memory_(memory) {}
  Result<void*> allocate(size_t size, size_t alignment) override {
    const MemoryScope scope(memory_);
    bool over_budget = false;
    void* block = allocate_block(size, alignment, &over_budget);
    if (block != nullptr) return block;
    if (over_budget) {
      return make_error(Code::resource_exhausted, "%zu bytes would pass the context's memory budget", size);
    }
    return make_error(Code::out_of_memory, "no memory for %zu bytes", size);
  }
  void free(void* block, size_t, size_t) override { free_block(block); }

 private:
  HostMemory* memory_;
};

// Tables that live as long as the process must not come from the first context's memory.
void warm_up() {
  const MemoryScope nobody(nullptr);
  prepare_for_failure();
  static_cast<void>(graph::op_from_name("add"));
  static_cast<void>(graph::attr_key_from_name("axis"));
  static_cast<void>(Status().message());
}

std::shared_ptr<cache::Cache> open_cache(const ContextDesc& desc, Logger& logger) {
  cache::CacheOptions options;
  options.path = desc.cache_path;
  options.read_only = desc.cache.mode == QUARTET_CACHE_DISK_READ_ONLY;
  if (desc.cache.max_bytes != 0) options.max_bytes = desc.cache.max_bytes;
  if (desc.cache.memory_bytes != 0) options.memory_bytes = desc.cache.memory_bytes;
  options.log = [&logger](cache::LogLevel level, std::string_view message) {
    constexpr std::string_view kPrefix = "cache: ";  // the component says it
    std::string_view text(message);
    if (text.starts_with(kPrefix)) text.remove_prefix(kPrefix.size());
    logger.log(level == cache::LogLevel::warning ? QUARTET_LOG_WARNING : QUARTET_LOG_INFO, "cache", text);
  };
  return cache::Cache::create(std::move(options));
}

Status fill_context(quartet_context& context, ContextDesc& desc) {
  QUARTET_TRY(context.fork_guard.arm());
  context.logger = std::make_unique<Logger>(desc.logger ? &*desc.logger : nullptr, std::move(desc.logger_user));
  context.allocator = std::make_shared<ContextAllocator>(context.memory);
  std::shared_ptr<HostExecutor> executor;
  if (desc.executor) executor = std::make_shared<HostExecutor>(*desc.executor, std::move(desc.executor_user));
  auto device = std::make_unique<quartet_device>();
  device->context = &context;
  device->model = host_cpu();
  device->name = "cpu:host";
  const int cores = std::clamp(device->model.cores, 1, runtime::WorkerPool::kMaxVEUs);
  context.devices.push_back(std::move(device));

  context.jobs = std::make_unique<JobSystem>(executor, static_cast<unsigned>(std::min(cores, 4)));
  runtime::WorkerPool::Options pool;
  pool.threads = cores - 1;
  pool.jobs = executor;
  context.cache_mode = desc.cache.mode;
  if (desc.cache.mode != QUARTET_CACHE_OFF) context.cache = open_cache(desc, *context.logger);
  {
    const MemoryScope nobody(nullptr);  // tasks that a host never runs keep a part of it
    context.pool = std::make_shared<runtime::WorkerPool>(std::move(pool));
  }
  compiler::EngineOptions engine;
  engine.llvm_path = desc.compiler_path;
  engine.allocator = context.allocator;
  engine.pool = context.pool;
  engine.vEUs = context.pool->vEUs();
  context.engine = std::make_unique<compiler::Engine>(real_os(), context.cache, std::move(engine));
  return {};
}

}  // namespace

Status check_process(const quartet_context& context) {
  if (!context.fork_guard.in_child()) return {};
  return {Code::forked, "the context belongs to the process this one was forked from; make another"};
}

Status check_context(const quartet_context* context) {
  QUARTET_TRY(check_handle(context, "context"));
  return check_process(*context);
}

HostMemory* memory_of(const quartet_context* context) {
  context = valid_or_null(context);
  return context != nullptr ? context->memory : nullptr;
}

void release_context(quartet_context* context) noexcept {
  if (!context->drop()) return;
  // A child has neither the threads nor a right to the files: what it inherited stays as it is.
  if (context->fork_guard.in_child()) return;
  context->jobs->shut_down();
  while (auto callback = context->poll_queue.pop()) DoneCallback::fire(std::move(callback), context);
  HostMemory* memory = context->memory;
  delete context;
  memory->release();
}

ContextRef ContextRef::try_retain(quartet_context* context) {
  ContextRef reference;
  if (context->retain_unless_zero()) reference.context_ = context;
  return reference;
}

}  // namespace quartet::capi

using namespace quartet;        // NOLINT: the functions below are outside of any namespace
using namespace quartet::capi;  // NOLINT

void quartet_context::remember(const std::shared_ptr<const runtime::LoadedProgram>& program) {
  const std::lock_guard lock(programs_mutex_);
  std::erase_if(programs_, [](const auto& known) { return known.expired(); });
  for (const auto& known : programs_) {
    if (known.lock() == program) return;
  }
  programs_.push_back(program);
}

void quartet_context::trim_programs() {
  std::vector<std::shared_ptr<const runtime::LoadedProgram>> live;
  {
    const std::lock_guard lock(programs_mutex_);
    for (const auto& known : programs_) {
      if (auto program = known.lock()) live.push_back(std::move(program));
    }
  }
  for (const auto& program : live) program->trim();
}

int32_t quartet_context_create(const quartet_context_desc* desc, quartet_context** out, quartet_error** error) {
  if (out != nullptr) *out = nullptr;
  ContextDesc given;
  return guarded(nullptr, error, [&]() -> Status {
    QUARTET_TRY(given.read(desc));
    QUARTET_TRY(not_null(out, "out"));
    warm_up();
    HostMemory* memory = HostMemory::create(given.allocator ? &*given.allocator : nullptr, given.budget_bytes);
    if (memory == nullptr) throw std::bad_alloc();
    given.allocator.reset();  // its user data is the memory's now
    struct Release {
      void operator()(HostMemory* owned) const { owned->release(); }
    };
    std::unique_ptr<HostMemory, Release> hold(memory);
    const MemoryScope scope(memory);
    auto context = std::make_unique<quartet_context>();
    context->memory = memory;
    QUARTET_TRY(fill_context(*context, given));
    *out = context.release();
    [[maybe_unused]] const HostMemory* const kept = hold.release();  // the context holds it now
    return {};
  });
}

void quartet_context_retain(quartet_context* context) {
  if ((context = valid_or_null(context)) != nullptr) context->retain();
}

void quartet_context_release(quartet_context* context) {
  if ((context = valid_or_null(context)) != nullptr) release_context(context);
}

int32_t quartet_context_poll(quartet_context* context, int64_t budget_ns, uint32_t* out_run, quartet_error** error) {
  if (out_run != nullptr) *out_run = 0;
  return guarded(memory_of(context), error, [&]() -> Status {
    QUARTET_TRY(check_context(context));
    const ContextRef keep(context);  // a callback may release the caller's reference
    const Deadline deadline(budget_ns);
    uint32_t run = 0;
    while (auto callback = context->poll_queue.pop()) {
      DoneCallback::fire(std::move(callback), context);
      ++run;
      if (deadline.passed()) break;
    }
    if (out_run != nullptr) *out_run = run;
    return {};
  });
}

int32_t quartet_context_wait_idle(quartet_context* context, int64_t timeout_ns, quartet_error** error) {
  return guarded(memory_of(context), error, [&]() -> Status {
    QUARTET_TRY(check_context(context));
    if (context->jobs->wait_idle(Deadline(timeout_ns))) return {};
    return {Code::timeout, "compiles are still in progress"};
  });
}

int32_t quartet_context_event_handle(quartet_context* context, int64_t* out, quartet_error** error) {
  if (out != nullptr) *out = -1;
  return guarded(memory_of(context), error, [&]() -> Status {
    QUARTET_TRY(check_context(context));
    QUARTET_TRY(not_null(out, "out"));
    QUARTET_ASSIGN(*out, context->poll_queue.descriptor());
    return {};
  });
}

int32_t quartet_context_memory_usage(const quartet_context* context, quartet_memory_usage* out, quartet_error** error) {
  clear_struct(out);
  return guarded(memory_of(context), error, [&]() -> Status {
    QUARTET_TRY(check_handle(context, "context"));
    QUARTET_TRY(check_struct(out, "out"));
    const HostMemory::Usage usage = context->memory->usage();
    quartet_memory_usage filled{};
    filled.live_bytes = usage.live_bytes;
    filled.peak_bytes = usage.peak_bytes;
    filled.budget_bytes = usage.budget_bytes;
    filled.live_blocks = usage.live_blocks;
    filled.total_blocks = usage.total_blocks;
    write_struct(out, filled);
    return {};
  });
}

int32_t quartet_context_trim(quartet_context* context, quartet_error** error) {
  return guarded(memory_of(context), error, [&]() -> Status {
    QUARTET_TRY(check_context(context));
    context->trim_programs();
    return {};
  });
}

int32_t quartet_context_set_log_level(quartet_context* context, int32_t level, quartet_error** error) {
  return guarded(memory_of(context), error, [&]() -> Status {
    QUARTET_TRY(check_handle(context, "context"));
    QUARTET_TRY(check_log_level(level));
    context->logger->set_level(level);
    return {};
  });
}
