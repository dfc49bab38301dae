// Futures, callbacks and the host's executor, well and badly behaved.
#include <poll.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <thread>

#include "capi/memory.h"
#include "unit/capi/support.h"

namespace quartet::capi_test {
namespace {

// A job system that runs tasks when the test says so, or never.
class HostExecutor {
 public:
  enum class Mode { keep, refuse, inside_submit };
  explicit HostExecutor(Mode mode = Mode::keep) : mode_(mode) {}
  ~HostExecutor() { run_late(); }  // what is dropped leaks an empty link

  quartet_executor executor() {
    auto executor = make_struct<quartet_executor>();
    executor.user = this;
    executor.submit = submit;
    executor.concurrency = [](void*) -> int32_t { return 1; };
    executor.free_user = [](void* user) { ++static_cast<HostExecutor*>(user)->user_frees; };
    executor.stack_bytes = 8 << 20;
    return executor;
  }
  size_t kept() {
    const std::lock_guard lock(mutex_);
    return tasks_.size();
  }
  // Runs all tasks kept so far, on a thread of its own.
  void run_late() {
    std::thread([this] {
      while (true) {
        std::function<void()> task;
        {
          const std::lock_guard lock(mutex_);
          if (tasks_.empty()) return;
          task = std::move(tasks_.front());
          tasks_.pop_front();
        }
        task();
      }
    }).join();
  }

  std::atomic<int> user_frees{0}, submitted{0};

 private:
  static int32_t QUARTET_CALL submit(void* user, quartet_task_fn task, void* arg, int32_t) {
    auto* self = static_cast<HostExecutor*>(user);
    ++self->submitted;
    if (self->mode_ == Mode::refuse) return QUARTET_E_RESOURCE_EXHAUSTED;
    if (self->mode_ == Mode::inside_submit) {
      task(arg);
      return QUARTET_OK;
    }
    const std::lock_guard lock(self->mutex_);
    self->tasks_.push_back([task, arg] { task(arg); });
    return QUARTET_OK;
  }

  Mode mode_;
  std::mutex mutex_;
  std::deque<std::function<void()>> tasks_;
};

// Counts calls, remembers what it saw.
struct Witness {
  std::atomic<int> calls{0}, frees{0};
  int32_t status = -1;
  std::thread::id thread;
  static void QUARTET_CALL done(void* user, quartet_future* future) {
    auto* self = static_cast<Witness*>(user);
    EXPECT_EQ(quartet_future_poll(future), 1);
    quartet_error* error = quartet_future_take_error(future);
    self->status = quartet_error_code(error);
    quartet_error_release(error);
    self->thread = std::this_thread::get_id();
    ++self->calls;
  }
  static void QUARTET_CALL free_user(void* user) { ++static_cast<Witness*>(user)->frees; }
};

class FutureTest : public testing::Test {
 protected:
  void SetUp() override {
    if (quartet_has_feature(QUARTET_FEATURE_CPU_COMPILER) == 0) GTEST_SKIP() << "this build has no code generator";
  }
  Context context_with(HostExecutor& host) {
    const quartet_executor executor = host.executor();
    quartet_context_desc desc = context_desc();
    desc.executor = &executor;
    return make_context(&desc);
  }
  Future start(const Context& context, std::string_view op = "exp") {
    const std::string text =
        "graph @main(%x: f32[4]) -> (f32[4]) {\n  %y = " + std::string(op) + " %x : f32[4]\n  return %y as \"y\"\n}\n";
    const Graph graph = parse_graph(context.get(), text);
    quartet_future* raw = nullptr;
    EXPECT_TRUE(is_ok(quartet_compile_async(context.get(), graph.get(), nullptr, nullptr, &raw, error_.out()), error_));
    return Future(raw);
  }
  void watch(const Future& future, Witness& witness, int32_t mode) {
    EXPECT_TRUE(is_ok(
        quartet_future_on_done(future.get(), Witness::done, &witness, Witness::free_user, mode, error_.out()), error_));
  }
  void expect_runs(const Future& future) {
    quartet_program* raw = nullptr;
    ASSERT_TRUE(is_ok(quartet_future_take_program(future.get(), &raw, error_.out()), error_));
    const Program program(raw);
    std::vector<float> x{0, 0, 0, 0}, y(4, -1);
    quartet_tensor in = tensor_of(x, {4}), out = tensor_of(y, {4});
    ASSERT_TRUE(is_ok(quartet_run_sync(raw, &in, 1, &out, 1, error_.out()), error_));
    EXPECT_EQ(y, std::vector<float>(4, 1));
  }

  Error error_;
};

constexpr int64_t kForever = -1;
constexpr int64_t kSecond = 1'000'000'000;

TEST_F(FutureTest, CompilesInTheBackground) {
  const Context context = make_context();
  const Future future = start(context);
  ASSERT_TRUE(is_ok(quartet_future_wait(future.get(), kForever, error_.out()), error_));
  EXPECT_EQ(quartet_future_poll(future.get()), 1);
  EXPECT_EQ(quartet_future_take_error(future.get()), nullptr);
  expect_runs(future);
  expect_runs(future);
  EXPECT_TRUE(is_ok(quartet_context_wait_idle(context.get(), 10 * kSecond, error_.out()), error_));
}

TEST_F(FutureTest, AHostMayRunTasksLate) {
  HostExecutor host;
  const Context context = context_with(host);
  const Future future = start(context);
  EXPECT_EQ(host.kept(), 1U);
  EXPECT_EQ(quartet_future_poll(future.get()), 0);
  quartet_program* none = nullptr;
  EXPECT_TRUE(fails(quartet_future_take_program(future.get(), &none, error_.out()), error_,
                    QUARTET_E_FAILED_PRECONDITION, "not finished"));
  EXPECT_TRUE(fails(quartet_future_wait(future.get(), 0, error_.out()), error_, QUARTET_E_TIMEOUT, ""));
  host.run_late();
  EXPECT_EQ(quartet_future_poll(future.get()), 1);
  expect_runs(future);
}

TEST_F(FutureTest, AHostMayRunTasksAtOnceOrRefuseThem) {
  for (const auto mode : {HostExecutor::Mode::inside_submit, HostExecutor::Mode::refuse}) {
    HostExecutor host(mode);
    const Context context = context_with(host);
    const Future future = start(context);
    ASSERT_TRUE(is_ok(quartet_future_wait(future.get(), kForever, error_.out()), error_));
    EXPECT_GE(host.submitted, 1);
    expect_runs(future);
  }
}

TEST_F(FutureTest, AHostThatNeverRunsATaskStopsNobody) {
  HostExecutor host;
  {
    const Context context = context_with(host);
    const Future waited = start(context);
    ASSERT_TRUE(is_ok(quartet_future_wait(waited.get(), kForever, error_.out()), error_));
    expect_runs(waited);
    const Graph graph = parse_graph(context.get(), kExpGraph);
    quartet_program* raw = nullptr;
    ASSERT_TRUE(is_ok(quartet_compile(context.get(), graph.get(), nullptr, nullptr, &raw, error_.out()), error_));
    quartet_program_release(raw);
    const Future idle = start(context, "neg");
    EXPECT_TRUE(is_ok(quartet_context_wait_idle(context.get(), kForever, error_.out()), error_));
    EXPECT_EQ(quartet_future_poll(idle.get()), 1);
  }
  EXPECT_EQ(host.user_frees, 1);
  EXPECT_GE(host.kept(), 2U);
  host.run_late();  // what the host still has is harmless
}

TEST_F(FutureTest, EndingTheContextCancelsAndCallsBack) {
  HostExecutor host;
  Witness on_poll, any_thread;
  {
    const Context context = context_with(host);
    const Future future = start(context);
    watch(future, on_poll, QUARTET_DONE_ON_POLL);
    watch(future, any_thread, QUARTET_DONE_ANY_THREAD);
  }
  EXPECT_EQ(on_poll.calls, 1);
  EXPECT_EQ(on_poll.frees, 1);
  EXPECT_EQ(on_poll.status, QUARTET_E_CANCELLED);
  EXPECT_EQ(any_thread.calls, 1);
  EXPECT_EQ(any_thread.frees, 1);
  EXPECT_EQ(any_thread.status, QUARTET_E_CANCELLED);
  host.run_late();
  EXPECT_EQ(any_thread.calls, 1);
}

TEST_F(FutureTest, EachFailingAllocationOfAFutureGivesAStatusAndLeavesNothing) {
  if (QUARTET_REPLACES_NEW == 0) GTEST_SKIP() << "this build counts only what is asked for by name";
  for (int64_t n = 0;; ++n) {
    HostHeap heap;
    HostExecutor host;
    Witness witness;
    bool registered = false;
    {
      const quartet_allocator allocator = heap.allocator();
      const quartet_executor executor = host.executor();
      quartet_context_desc desc = context_desc();
      desc.allocator = &allocator;
      desc.executor = &executor;
      const Context context = make_context(&desc);
      const Graph graph = parse_graph(context.get(), kExpGraph);
      heap.fail_at(n);
      quartet_future* raw = nullptr;
      const int32_t status = quartet_compile_async(context.get(), graph.get(), nullptr, nullptr, &raw, nullptr);
      ASSERT_EQ(raw != nullptr, status == QUARTET_OK);
      const Future future(raw);
      if (raw != nullptr) {
        registered = quartet_future_on_done(raw, Witness::done, &witness, Witness::free_user, QUARTET_DONE_ON_POLL,
                                            nullptr) == QUARTET_OK;
      }
    }
    EXPECT_EQ(witness.calls, registered ? 1 : 0);
    EXPECT_EQ(heap.live(), 0U) << "after refusing allocation " << n;
    EXPECT_EQ(heap.frees_of_user(), 1);
    host.run_late();
    if (!heap.refused()) break;
  }
}

TEST_F(FutureTest, CancelledBeforeItBeganItNeverBegins) {
  HostExecutor host;
  const Context context = context_with(host);
  const Future future = start(context);
  Witness witness;
  watch(future, witness, QUARTET_DONE_ANY_THREAD);
  quartet_future_cancel(future.get());
  EXPECT_EQ(quartet_future_poll(future.get()), 1);
  EXPECT_EQ(witness.calls, 1);
  EXPECT_EQ(witness.status, QUARTET_E_CANCELLED);
  quartet_program* program = nullptr;
  EXPECT_TRUE(fails(quartet_future_take_program(future.get(), &program, error_.out()), error_, QUARTET_E_CANCELLED,
                    "cancelled"));
  quartet_future_cancel(future.get());
  host.run_late();
  EXPECT_EQ(witness.calls, 1);
}

TEST_F(FutureTest, OnPollCallbacksRunInsidePollOnly) {
  const Context context = make_context();
  int64_t descriptor = -1;
  ASSERT_TRUE(is_ok(quartet_context_event_handle(context.get(), &descriptor, error_.out()), error_));
  pollfd event{static_cast<int>(descriptor), POLLIN, 0};
  EXPECT_EQ(poll(&event, 1, 0), 0);
  const Future future = start(context);
  Witness witness;
  watch(future, witness, QUARTET_DONE_ON_POLL);
  EXPECT_EQ(poll(&event, 1, 60000), 1);
  EXPECT_EQ(witness.calls, 0);
  uint32_t run = 0;
  ASSERT_TRUE(is_ok(quartet_context_poll(context.get(), -1, &run, error_.out()), error_));
  EXPECT_EQ(run, 1U);
  EXPECT_EQ(witness.calls, 1);
  EXPECT_EQ(witness.frees, 1);
  EXPECT_EQ(witness.status, QUARTET_OK);
  EXPECT_EQ(witness.thread, std::this_thread::get_id());
  EXPECT_EQ(poll(&event, 1, 0), 0) << "nothing is left to do";
  watch(future, witness, QUARTET_DONE_ON_POLL);  // on a finished future too
  EXPECT_EQ(witness.calls, 1);
  EXPECT_EQ(poll(&event, 1, 0), 1);
  ASSERT_TRUE(is_ok(quartet_context_poll(context.get(), 0, nullptr, error_.out()), error_));
  EXPECT_EQ(witness.calls, 2);
}

TEST_F(FutureTest, TheCallbackMayBeTheLastUserOfTheContext) {
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool released = false, finished = false;
    int32_t taken = -1;
  } state;
  quartet_context* context = make_context().release();
  const Graph graph = parse_graph(context, kExpGraph);
  quartet_future* future = nullptr;
  ASSERT_TRUE(is_ok(quartet_compile_async(context, graph.get(), nullptr, nullptr, &future, error_.out()), error_));
  const auto done = [](void* user, quartet_future* finished) {
    auto* shared = static_cast<State*>(user);
    std::unique_lock lock(shared->mutex);
    shared->changed.wait(lock, [&] { return shared->released; });
    quartet_program* program = nullptr;
    shared->taken = quartet_future_take_program(finished, &program, nullptr);
    quartet_program_release(program);
  };
  const auto freed = [](void* user) {
    auto* shared = static_cast<State*>(user);
    const std::lock_guard lock(shared->mutex);
    shared->finished = true;
    shared->changed.notify_all();
  };
  ASSERT_TRUE(
      is_ok(quartet_future_on_done(future, done, &state, freed, QUARTET_DONE_ANY_THREAD, error_.out()), error_));
  // Keep the context alive through the callback's own reference only.
  while (quartet_future_poll(future) == 0) std::this_thread::yield();
  quartet_future_release(future);
  std::thread releaser([&] {
    {
      const std::lock_guard lock(state.mutex);
      state.released = true;
      state.changed.notify_all();
    }
  });
  releaser.join();
  std::unique_lock lock(state.mutex);
  ASSERT_TRUE(state.changed.wait_for(lock, std::chrono::seconds(60), [&] { return state.finished; }));
  EXPECT_EQ(state.taken, QUARTET_OK);
  lock.unlock();
  quartet_context_release(context);
}

TEST_F(FutureTest, TheLastReferenceMayGoInsideACallback) {
  HostExecutor host;
  struct State {
    quartet_context* context = nullptr;
    quartet_graph* graph = nullptr;
    std::atomic<int> calls{0};
  } state;
  state.context = context_with(host).release();
  state.graph = parse_graph(state.context, kExpGraph).release();
  quartet_future* future = nullptr;
  ASSERT_TRUE(
      is_ok(quartet_compile_async(state.context, state.graph, nullptr, nullptr, &future, error_.out()), error_));
  const auto done = [](void* user, quartet_future*) {
    auto* shared = static_cast<State*>(user);
    quartet_graph_release(shared->graph);
    quartet_context_release(shared->context);
    ++shared->calls;
  };
  ASSERT_TRUE(
      is_ok(quartet_future_on_done(future, done, &state, nullptr, QUARTET_DONE_ANY_THREAD, error_.out()), error_));
  quartet_future_release(future);
  host.run_late();
  EXPECT_EQ(state.calls, 1);
  EXPECT_EQ(host.user_frees, 1) << "the context ended";
}

TEST_F(FutureTest, WaitAnyNamesAFinishedOne) {
  HostExecutor host;
  const Context stuck = context_with(host);
  const Future never = start(stuck, "neg");
  uint32_t index = 99;
  quartet_future* only[1] = {never.get()};
  EXPECT_TRUE(fails(quartet_future_wait_any(only, 1, 0, &index, error_.out()), error_, QUARTET_E_TIMEOUT, ""));
  const Future other = start(stuck, "exp");
  quartet_future* both[2] = {never.get(), other.get()};
  ASSERT_TRUE(is_ok(quartet_future_wait_any(both, 2, kForever, &index, error_.out()), error_));
  EXPECT_EQ(quartet_future_poll(both[index]), 1);
  const Context elsewhere = make_context();
  const Future foreign = start(elsewhere);
  quartet_future* mixed[2] = {never.get(), foreign.get()};
  EXPECT_TRUE(fails(quartet_future_wait_any(mixed, 2, 0, &index, error_.out()), error_, QUARTET_E_INVALID_ARGUMENT,
                    "another context"));
}

TEST_F(FutureTest, UnknownModesAreRefusedAndTheirUserDataFreed) {
  const Context context = make_context();
  const Future future = start(context);
  Witness witness;
  EXPECT_TRUE(fails(quartet_future_on_done(future.get(), Witness::done, &witness, Witness::free_user, 5, error_.out()),
                    error_, QUARTET_E_UNSUPPORTED, "mode"));
  EXPECT_TRUE(fails(quartet_future_on_done(future.get(), nullptr, &witness, Witness::free_user, 0, error_.out()),
                    error_, QUARTET_E_INVALID_ARGUMENT, "done"));
  EXPECT_EQ(witness.frees, 2);
  EXPECT_EQ(witness.calls, 0);
}

TEST_F(FutureTest, ManyThreadsManyCompiles) {
  const Context context = make_context();
  std::vector<std::thread> threads;
  std::atomic<int> succeeded{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (const char* op : {"exp", "neg", "sqrt"}) {
        const std::string text = "graph @main(%x: f32[4]) -> (f32[4]) {\n  %y = " + std::string(op) +
                                 " %x : f32[4]\n  return %y as \"y\"\n}\n";
        quartet_graph* graph = nullptr;
        quartet_future* future = nullptr;
        quartet_program* program = nullptr;
        if (quartet_graph_parse(context.get(), text.data(), text.size(), &graph, nullptr) != QUARTET_OK) continue;
        if (quartet_compile_async(context.get(), graph, nullptr, nullptr, &future, nullptr) == QUARTET_OK &&
            quartet_future_wait(future, kForever, nullptr) == QUARTET_OK &&
            quartet_future_take_program(future, &program, nullptr) == QUARTET_OK) {
          ++succeeded;
        }
        quartet_graph_release(graph);
        quartet_program_release(program);
        quartet_future_release(future);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(succeeded, 12);
}

}  // namespace
}  // namespace quartet::capi_test
