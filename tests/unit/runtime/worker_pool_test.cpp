#include "runtime/worker_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <random>
#include <thread>

#include "unit/runtime/fixture.h"

#if !defined(__has_feature)
#define __has_feature(feature) 0
#endif

namespace quartet::runtime {
namespace {

using testing::Arguments;
using testing::Data;
using testing::load;
using testing::RandomProgram;

// Work that notes what ran when, and fails on anything run twice, early or late.
class Recorder final : public TeamWork {
 public:
  Recorder(std::vector<Phase> phases, int32_t vEUs)
      : list_(std::move(phases)), counts_(list_.size() * static_cast<size_t>(vEUs)) {
    set_phases(list_, vEUs);
  }
  void run_segment(int32_t phase, int32_t vEU) override {
    if (phase_.load() != phase) ++wrong_;
    if (counts_[static_cast<size_t>(phase) * static_cast<size_t>(vEUs()) + static_cast<size_t>(vEU)].fetch_add(1) !=
        runs_)
      ++wrong_;
    if (std::this_thread::get_id() != caller_) ++helped_;
    const int spins = static_cast<int>(hash(phase, vEU) % 200);
    for (int i = 0; i < spins; ++i) sink_.fetch_add(1, std::memory_order_relaxed);
    if (slow_seat == vEU && phase == slow_phase) std::this_thread::sleep_for(std::chrono::milliseconds(slow_ms));
    const int32_t segments = list_[static_cast<size_t>(phase)].parallel ? vEUs() : 1;
    if (done_.fetch_add(1) + 1 == segments) {
      done_ = 0;
      ++phase_;
    }
  }
  template <class Run>
  void check(const Run& run) {
    caller_ = std::this_thread::get_id();
    phase_ = 0;
    run(*this);
    ++runs_;
    EXPECT_EQ(phase_.load(), static_cast<int32_t>(list_.size()));
    EXPECT_EQ(wrong_.load(), 0);
    for (size_t p = 0; p < list_.size(); ++p)
      for (int32_t v = 0; v < vEUs(); ++v)
        EXPECT_EQ(counts_[p * static_cast<size_t>(vEUs()) + static_cast<size_t>(v)].load(),
                  list_[p].parallel || v == 0 ? runs_ : 0);
  }
  int helped() const { return helped_; }
  int32_t slow_seat = -1, slow_phase = -1, slow_ms = 0;

 private:
  static uint32_t hash(int32_t a, int32_t b) {
    return (static_cast<uint32_t>(a) * 2654435761u + static_cast<uint32_t>(b)) * 2246822519u >> 8;
  }
  std::vector<Phase> list_;
  std::vector<std::atomic<int>> counts_;
  std::atomic<int32_t> phase_{0}, done_{0};
  std::atomic<int> wrong_{0}, helped_{0}, sink_{0};
  int runs_ = 0;
  std::thread::id caller_;
};

std::vector<TeamWork::Phase> random_phases(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<TeamWork::Phase> phases(1 + random() % 20);
  for (TeamWork::Phase& phase : phases) phase = {random() % 3 != 0, random() % 2 == 0 ? 1e-5 : 1e-4};
  return phases;
}

TEST(WorkerPool, EverySegmentOnceAndPhasesInOrder) {
  for (const int threads : {0, 1, 3, 7}) {
    WorkerPool pool({.threads = threads, .jobs = nullptr});
    for (uint64_t seed = 0; seed < 12; ++seed) {
      Recorder work(random_phases(seed), 1 + static_cast<int32_t>(seed * 5 % 9));
      for (int round = 0; round < 20; ++round) work.check([&](TeamWork& w) { pool.run(w); });
    }
  }
}

// Most seats have nobody of their own, so caller and worker reach for the same segments all the time.
TEST(WorkerPool, ContestedSegmentsRunOnce) {
  constexpr int32_t kSeats = 12;
  class Counter final : public TeamWork {
   public:
    explicit Counter(size_t phases) : list_(phases, Phase{true, 1}), counts_(phases * kSeats) {
      set_phases(list_, kSeats);
    }
    void run_segment(int32_t phase, int32_t vEU) override {
      counts_[static_cast<size_t>(phase) * kSeats + static_cast<size_t>(vEU)].fetch_add(1, std::memory_order_relaxed);
      if (std::this_thread::get_id() != caller_) helped_.fetch_add(1, std::memory_order_relaxed);
    }
    bool each_ran(int times) const {
      return std::ranges::all_of(counts_, [&](const std::atomic<int>& count) { return count.load() == times; });
    }
    int helped() const { return helped_; }

   private:
    std::vector<Phase> list_;
    std::vector<std::atomic<int>> counts_;
    std::thread::id caller_ = std::this_thread::get_id();
    std::atomic<int> helped_{0};
  };
  WorkerPool pool({.threads = 2, .jobs = nullptr});
  Counter work(3000);
  int runs = 0;
  // Until the workers had a good share, on a machine that is free; a bounded time on one that is not.
  const auto begin = std::chrono::steady_clock::now();
  while (work.helped() < 200'000 && std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(500)) {
    pool.run(work);
    ASSERT_TRUE(work.each_ran(++runs));
  }
}

TEST(WorkerPool, WorkersDoHelp) {
  WorkerPool pool({.threads = 1, .jobs = nullptr});
  Recorder work({{true, 1}, {false, 1e-6}, {true, 1}}, 2);
  // The caller sleeps in its first segment: somebody else must come for the others in the meantime.
  work.slow_seat = 0;
  work.slow_phase = 0;
  work.slow_ms = 50;
  for (int round = 0; round < 20 && work.helped() == 0; ++round) work.check([&](TeamWork& w) { pool.run(w); });
  EXPECT_GT(work.helped(), 0);
}

TEST(WorkerPool, TheCallerSleepsWhileAWorkerIsSlow) {
  WorkerPool pool({.threads = 1, .jobs = nullptr, .spin_ns = 1000});
  Recorder work({{true, 1}, {true, 1}}, 2);
  work.slow_seat = 1;
  work.slow_phase = 1;
  work.slow_ms = 20;
  for (int round = 0; round < 3; ++round) work.check([&](TeamWork& w) { pool.run(w); });
}

TEST(WorkerPool, SeveralRunsAtOnce) {
  WorkerPool pool({.threads = 2, .jobs = nullptr, .spin_ns = 20'000});
  std::vector<std::thread> callers;
  callers.reserve(4);
  for (uint64_t c = 0; c < 4; ++c)
    callers.emplace_back([&pool, c] {
      for (uint64_t seed = 0; seed < 10; ++seed) {
        Recorder work(random_phases(c * 100 + seed), 3);
        for (int round = 0; round < 10; ++round) work.check([&](TeamWork& w) { pool.run(w); });
      }
    });
  for (std::thread& caller : callers) caller.join();
}

TEST(WorkerPool, PoolsComeAndGo) {
  for (int round = 0; round < 20; ++round) {
    WorkerPool pool({.threads = 3, .jobs = nullptr});
    if (round % 3 == 0) continue;
    if (round % 3 == 1) pool.start();
    Recorder work(random_phases(static_cast<uint64_t>(round)), 4);
    work.check([&](TeamWork& w) { pool.run(w); });
  }
}

#if !defined(__SANITIZE_THREAD__) && !__has_feature(thread_sanitizer)
TEST(WorkerPool, AForkedChildCanStillRun) {
  auto pool = std::make_unique<WorkerPool>(WorkerPool::Options{.threads = 2, .jobs = nullptr});
  Recorder work(random_phases(3), 3);
  work.check([&](TeamWork& w) { pool->run(w); });
  const pid_t child = ::fork();
  if (child == 0) {
    Recorder again(random_phases(4), 3);
    again.check([&](TeamWork& w) { pool->run(w); });
    pool.reset();
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}
#endif

// A host that keeps tasks and runs them when told, or never.
class KeepingJobs : public HostJobs {
 public:
  explicit KeepingJobs(int concurrency) : concurrency_(concurrency) {}
  bool submit(void (*task)(void*), void* argument, int32_t) override {
    const std::lock_guard lock(mutex_);
    tasks_.emplace_back(task, argument);
    ++submitted_;
    return true;
  }
  int concurrency() override { return concurrency_; }
  // Newest first.
  void run_all() {
    for (;;) {
      std::pair<void (*)(void*), void*> task;
      {
        const std::lock_guard lock(mutex_);
        if (tasks_.empty()) return;
        task = tasks_.back();
        tasks_.pop_back();
      }
      task.first(task.second);
    }
  }
  int submitted() {
    const std::lock_guard lock(mutex_);
    return submitted_;
  }

 private:
  int concurrency_;
  std::mutex mutex_;
  std::deque<std::pair<void (*)(void*), void*>> tasks_;
  int submitted_ = 0;
};

TEST(HostJobs, LateTasksAreHarmlessAndBounded) {
  const auto jobs = std::make_shared<KeepingJobs>(3);
  auto pool = std::make_unique<WorkerPool>(WorkerPool::Options{.threads = 0, .jobs = jobs});
  EXPECT_EQ(pool->vEUs(), 4);
  Recorder work(random_phases(1), 4);
  for (int round = 0; round < 50; ++round) work.check([&](TeamWork& w) { pool->run(w); });
  // No task came, so no further ones were given out.
  EXPECT_LE(jobs->submitted(), 3);
  EXPECT_GT(jobs->submitted(), 0);
  jobs->run_all();
  work.check([&](TeamWork& w) { pool->run(w); });
  pool.reset();
  jobs->run_all();
  EXPECT_EQ(work.helped(), 0);
}

class InlineJobs final : public HostJobs {
 public:
  bool submit(void (*task)(void*), void* argument, int32_t) override {
    task(argument);
    return true;
  }
  int concurrency() override { return 2; }
};

TEST(HostJobs, TasksRunInsideSubmit) {
  WorkerPool pool({.threads = 0, .jobs = std::make_shared<InlineJobs>()});
  for (uint64_t seed = 0; seed < 10; ++seed) {
    Recorder work(random_phases(seed), 3);
    for (int round = 0; round < 5; ++round) work.check([&](TeamWork& w) { pool.run(w); });
  }
}

class RefusingJobs final : public HostJobs {
 public:
  bool submit(void (*)(void*), void*, int32_t) override { return false; }
  int concurrency() override { return 5; }
};

TEST(HostJobs, RefusedTasksAreDoneWithout) {
  WorkerPool pool({.threads = 0, .jobs = std::make_shared<RefusingJobs>()});
  Recorder work(random_phases(2), 6);
  for (int round = 0; round < 5; ++round) work.check([&](TeamWork& w) { pool.run(w); });
}

// One thread runs whatever is kept, over and over, in the wrong order.
TEST(HostJobs, OneThreadServesSeveralRuns) {
  const auto jobs = std::make_shared<KeepingJobs>(2);
  std::atomic<bool> stop{false};
  std::thread server([&] {
    while (!stop.load()) {
      jobs->run_all();
      std::this_thread::yield();
    }
    jobs->run_all();
  });
  {
    WorkerPool pool({.threads = 0, .jobs = jobs, .spin_ns = 20'000});
    std::vector<std::thread> callers;
    callers.reserve(4);
    for (uint64_t c = 0; c < 2; ++c)
      callers.emplace_back([&pool, c] {
        for (uint64_t seed = 0; seed < 10; ++seed) {
          Recorder work(random_phases(c * 50 + seed), 3);
          for (int round = 0; round < 10; ++round) work.check([&](TeamWork& w) { pool.run(w); });
        }
      });
    for (std::thread& caller : callers) caller.join();
  }
  stop = true;
  server.join();
}

TEST(ParallelRun, RandomProgramsComputeTheSame) {
  const auto pool = std::make_shared<WorkerPool>(WorkerPool::Options{.threads = 3, .jobs = nullptr, .spin_ns = 20'000});
  for (uint64_t seed = 0; seed < 30; ++seed) {
    RandomProgram random(seed,
                         {.stages = 1 + static_cast<int>(seed % 25), .symbolic = seed % 2 == 1, .task_cost = 1e-5});
    LoadOptions options;
    options.pool = pool;
    options.vEUs = 2;
    const auto program = load(random, options);
    ASSERT_TRUE(program.ok()) << program.status().message();
    for (const int vEUs : {2, 8}) {
      const Data inputs = random.random_inputs(90), expected = random.expected(inputs, 90);
      Arguments arguments(**program, inputs, 90);
      auto binding = Binding::create(*program, {.vEUs = vEUs, .pool = pool});
      ASSERT_TRUE(binding.ok());
      const auto in = arguments.inputs();
      const auto out = arguments.outputs();
      for (size_t i = 0; i < in.size(); ++i) ASSERT_TRUE((*binding)->set_input(static_cast<int>(i), in[i]).ok());
      for (size_t i = 0; i < out.size(); ++i) ASSERT_TRUE((*binding)->set_output(static_cast<int>(i), out[i]).ok());
      for (int round = 0; round < 10; ++round) {
        ASSERT_TRUE((*binding)->run().ok());
        ASSERT_EQ(arguments.take(), expected) << "seed " << seed << ", vEUs " << vEUs;
      }
      std::vector<RangeTime> times;
      ASSERT_TRUE(
          run(**program, arguments.inputs(), arguments.outputs(), {.vEUs = vEUs, .pool = pool.get(), .times = &times})
              .ok());
      ASSERT_EQ(arguments.take(), expected);
      EXPECT_FALSE(times.empty());
    }
  }
}

TEST(ParallelRun, OneProgramFromManyThreads) {
  const auto pool = std::make_shared<WorkerPool>(WorkerPool::Options{.threads = 2, .jobs = nullptr, .spin_ns = 20'000});
  RandomProgram random(11, {.stages = 15, .symbolic = true, .task_cost = 1e-5});
  const auto program = load(random);
  ASSERT_TRUE(program.ok());
  std::vector<Data> inputs, expected;
  for (int64_t n = 1; n <= 4; ++n) {
    inputs.push_back(random.random_inputs(n * 20));
    expected.push_back(random.expected(inputs.back(), n * 20));
  }
  std::vector<std::thread> callers;
  callers.reserve(4);
  for (size_t c = 0; c < 4; ++c)
    callers.emplace_back([&, c] {
      Arguments arguments(**program, inputs[c], static_cast<int64_t>(c + 1) * 20);
      for (int round = 0; round < 40; ++round) {
        ASSERT_TRUE(
            run(**program, arguments.inputs(), arguments.outputs(), {.vEUs = 1 + round % 3, .pool = pool.get()}).ok());
        ASSERT_EQ(arguments.take(), expected[c]);
      }
    });
  for (std::thread& caller : callers) caller.join();
}

}  // namespace
}  // namespace quartet::runtime
