#include "capi/future.h"

#include "capi/program.h"

namespace quartet::capi {

namespace {

void release_future(quartet_future* future) noexcept {
  if (future->drop()) delete_with_context(future);
}

Status cancelled_status() { return {Code::cancelled, "the compile was cancelled"}; }

}  // namespace

// ---- Callbacks

DoneCallback::~DoneCallback() {
  if (future != nullptr) release_future(future);
}

void DoneCallback::fire(std::unique_ptr<DoneCallback> callback, quartet_context* context) noexcept {
  const MemoryScope scope(nullptr);
  if (context != nullptr) callback->future->context = ContextRef::try_retain(context);
  callback->done(callback->user.get(), callback->future);
}

FutureState::CallbackList::~CallbackList() {
  while (pop() != nullptr) {
  }
}

void FutureState::CallbackList::push(std::unique_ptr<DoneCallback> callback) {
  callback->next = first;
  first = callback.release();
}

std::unique_ptr<DoneCallback> FutureState::CallbackList::pop() {
  std::unique_ptr<DoneCallback> taken(first);
  if (taken != nullptr) first = std::exchange(taken->next, nullptr);
  return taken;
}

// ---- The state

FutureState::FutureState(quartet_context& context, int vEUs, CompileWork work)
    : context_(context), monitor_(context.jobs->monitor()), vEUs_(vEUs), work_(std::move(work)) {}

FutureState::~FutureState() = default;

const Status& FutureState::status() const {
  static const Status ok;
  return finished() ? status_ : ok;
}

void FutureState::run() noexcept {
  Status status;
  std::shared_ptr<const compiler::CompiledProgram> program;
  {
    const MemoryScope scope(context_.memory);
    try {
      if (is_cancelled()) {
        status = cancelled_status();
      } else {
        auto result = work_(cancelled_);
        if (result.ok()) {
          program = result.take();
        } else {
          status = result.status();
        }
      }
    } catch (...) {
      status = status_of_exception();
    }
    work_ = nullptr;
  }
  finish(std::move(status), std::move(program));
}

void FutureState::abandon() noexcept {
  Status status;
  {
    const MemoryScope scope(nullptr);
    try {
      status = cancelled_status();
    } catch (...) {
      status = status_of_exception();
    }
  }
  work_ = nullptr;
  finish(std::move(status), nullptr);
}

void FutureState::finish(Status status, std::shared_ptr<const compiler::CompiledProgram> program) noexcept {
  CallbackList later, now;
  {
    const std::lock_guard lock(monitor_->mutex);
    status_ = std::move(status);
    program_ = std::move(program);
    std::swap(later.first, on_poll_.first);
    std::swap(now.first, any_thread_.first);
    finished_.store(true, std::memory_order_release);
    monitor_->changed.notify_all();
  }
  while (auto callback = later.pop()) context_.poll_queue.push(std::move(callback));
  // The last of these may be what ends the context.
  while (auto callback = now.pop()) DoneCallback::fire(std::move(callback), &context_);
}

bool FutureState::add(std::unique_ptr<DoneCallback>& callback, int32_t mode) {
  const std::lock_guard lock(monitor_->mutex);
  if (finished()) return false;
  (mode == QUARTET_DONE_ANY_THREAD ? any_thread_ : on_poll_).push(std::move(callback));
  return true;
}

namespace {

Status check_future(const quartet_future* future) {
  QUARTET_TRY(check_handle(future, "future"));
  return future->context ? check_process(*future->context) : Status();
}

HostMemory* memory_of_future(const quartet_future* future) {
  future = valid_or_null(future);
  return future != nullptr && future->context ? future->context->memory : nullptr;
}

// Makes sure that an unstarted compile will be begun even if the host's executor never does.
void hasten(const quartet_future& future) {
  if (future.state->finished() || !future.context) return;
  if (const auto link = future.link.lock()) future.context->jobs->hasten(link);
}

Status timed_out() { return {Code::timeout, "the compile has not finished in the time given"}; }

}  // namespace
}  // namespace quartet::capi

using namespace quartet;        // NOLINT: the functions below are outside of any namespace
using namespace quartet::capi;  // NOLINT

int32_t quartet_future_poll(const quartet_future* future) {
  future = valid_or_null(future);
  return future == nullptr || future->state->finished() ? 1 : 0;
}

int32_t quartet_future_wait(quartet_future* future, int64_t timeout_ns, quartet_error** error) {
  return guarded(memory_of_future(future), error, [&]() -> Status {
    QUARTET_TRY(check_future(future));
    const Deadline deadline(timeout_ns);
    if (future->state->finished() || !future->context) return {};
    if (timeout_ns != 0) hasten(*future);
    JobMonitor& monitor = *future->context->jobs->monitor();
    std::unique_lock lock(monitor.mutex);
    return monitor.wait(lock, deadline, [&] { return future->state->finished(); }) ? Status() : timed_out();
  });
}

int32_t quartet_future_wait_any(quartet_future* const* futures, uint32_t count, int64_t timeout_ns, uint32_t* out_index,
                                quartet_error** error) {
  if (out_index != nullptr) *out_index = 0;
  const bool some = futures != nullptr && count > 0;
  return guarded(some ? memory_of_future(futures[0]) : nullptr, error, [&]() -> Status {
    QUARTET_TRY(not_null(out_index, "out_index"));
    if (!some) return {Code::invalid_argument, "there is no future to wait for"};
    for (uint32_t i = 0; i < count; ++i) {
      QUARTET_TRY(check_future(futures[i]).with_prefix(format("futures[%u]: ", i)));
      if (futures[i]->context.get() != futures[0]->context.get()) {
        return make_error(Code::invalid_argument, "futures[%u] belongs to another context than futures[0]", i);
      }
    }
    const auto first_finished = [&]() -> bool {
      for (uint32_t i = 0; i < count; ++i) {
        if (!futures[i]->state->finished()) continue;
        *out_index = i;
        return true;
      }
      return false;
    };
    const Deadline deadline(timeout_ns);
    if (first_finished() || !futures[0]->context) return {};
    for (uint32_t i = 0; i < count && timeout_ns != 0; ++i) hasten(*futures[i]);
    JobMonitor& monitor = *futures[0]->context->jobs->monitor();
    std::unique_lock lock(monitor.mutex);
    return monitor.wait(lock, deadline, first_finished) ? Status() : timed_out();
  });
}

void quartet_future_cancel(quartet_future* future) {
  future = valid_or_null(future);
  if (future == nullptr || (future->context && future->context->fork_guard.in_child())) return;
  const MemoryScope scope(nullptr);
  future->state->cancel();
  if (const auto link = future->link.lock()) link->abandon();
}

int32_t quartet_future_take_program(quartet_future* future, quartet_program** out, quartet_error** error) {
  if (out != nullptr) *out = nullptr;
  return guarded(memory_of_future(future), error, [&]() -> Status {
    QUARTET_TRY(check_future(future));
    QUARTET_TRY(not_null(out, "out"));
    if (!future->state->finished()) return {Code::failed_precondition, "the compile has not finished"};
    QUARTET_TRY(future->state->status());
    if (!future->context) return {Code::cancelled, "the context is being released"};
    *out = make_program(*future->context, future->state->program(), future->state->vEUs());
    return {};
  });
}

quartet_error* quartet_future_take_error(quartet_future* future) {
  future = valid_or_null(future);
  if (future == nullptr || future->state->status().ok()) return nullptr;
  quartet_error* error = nullptr;
  report(future->state->status(), &error);
  return error;
}

int32_t quartet_future_on_done(quartet_future* future, quartet_done_fn done, void* user, quartet_free_fn free_user,
                               int32_t mode, quartet_error** error) {
  UserData owned(user, free_user);
  return guarded(memory_of_future(future), error, [&]() -> Status {
    QUARTET_TRY(check_future(future));
    if (done == nullptr) return {Code::invalid_argument, "done is NULL"};
    if (mode != QUARTET_DONE_ON_POLL && mode != QUARTET_DONE_ANY_THREAD) {
      return make_error(Code::unsupported, "there is no callback mode %d", mode);
    }
    auto callback = std::make_unique<DoneCallback>();
    callback->future = new quartet_future;
    callback->future->state = future->state;
    callback->future->link = future->link;
    callback->done = done;
    callback->user = std::move(owned);
    if (future->state->add(callback, mode)) return {};
    if (mode == QUARTET_DONE_ON_POLL && future->context) {
      future->context->poll_queue.push(std::move(callback));
    } else {
      DoneCallback::fire(std::move(callback), future->context.get());
    }
    return {};
  });
}

void quartet_future_retain(quartet_future* future) {
  if ((future = valid_or_null(future)) != nullptr) future->retain();
}

void quartet_future_release(quartet_future* future) {
  if ((future = valid_or_null(future)) != nullptr) release_future(future);
}
