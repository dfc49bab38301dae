// Futures of compiles: a shared result, callbacks, and the handle over them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "base/status.h"
#include "capi/call.h"
#include "capi/context.h"
#include "capi/jobs.h"
#include "compiler/engine.h"

namespace quartet::capi {

// A callback waiting for its future. The handle it will be given is made when it is registered, so that finishing needs
// no memory.
struct DoneCallback {
  quartet_done_fn done = nullptr;
  UserData user;
  quartet_future* future = nullptr;  // owned; detached from the context until called
  DoneCallback* next = nullptr;

  DoneCallback() = default;
  DoneCallback(const DoneCallback&) = delete;
  DoneCallback& operator=(const DoneCallback&) = delete;
  ~DoneCallback();
  // Calls and frees. `context` may be on its way out: then the future given stays detached.
  static void fire(std::unique_ptr<DoneCallback> callback, quartet_context* context) noexcept;
};

using CompileWork =
    std::function<Result<std::shared_ptr<const compiler::CompiledProgram>>(const std::atomic<bool>& cancelled)>;

class FutureState final : public Job, public std::enable_shared_from_this<FutureState> {
 public:
  // `context` outlives the state's work, not the state.
  FutureState(quartet_context& context, int vEUs, CompileWork work);
  ~FutureState() override;

  void run() noexcept override;
  void abandon() noexcept override;

  bool finished() const { return finished_.load(std::memory_order_acquire); }
  bool is_cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  void cancel() noexcept { cancelled_.store(true, std::memory_order_relaxed); }
  // Ok while unfinished.
  const Status& status() const;
  const std::shared_ptr<const compiler::CompiledProgram>& program() const { return program_; }
  int vEUs() const { return vEUs_; }  // a run's

  // Keeps the callback until finished; false when that has happened, and then takes nothing.
  bool add(std::unique_ptr<DoneCallback>& callback, int32_t mode);

 private:
  struct CallbackList {
    DoneCallback* first = nullptr;
    ~CallbackList();
    void push(std::unique_ptr<DoneCallback> callback);
    std::unique_ptr<DoneCallback> pop();
  };
  void finish(Status status, std::shared_ptr<const compiler::CompiledProgram> program) noexcept;

  quartet_context& context_;
  std::shared_ptr<JobMonitor> monitor_;
  const int vEUs_;
  CompileWork work_;
  std::atomic<bool> cancelled_{false}, finished_{false};
  Status status_;
  std::shared_ptr<const compiler::CompiledProgram> program_;
  CallbackList on_poll_, any_thread_;
};

}  // namespace quartet::capi

struct quartet_future : quartet::capi::SharedHandle<quartet::capi::HandleKind::future> {
  quartet::capi::ContextRef context;  // empty when the context was on its way out
  std::shared_ptr<quartet::capi::FutureState> state;
  std::weak_ptr<quartet::capi::JobLink> link;
};
