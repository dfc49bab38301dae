// Work behind futures: run by the host's executor or by private threads, claimed exactly once, and never waited for
// where nobody has begun it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "capi/call.h"
#include "quartet_c.h"
#include "runtime/host_jobs.h"

namespace quartet::capi {

// Of this size are private threads' stacks; a host's executor with less gets no compile tasks.
inline constexpr uint64_t kDeepStack = uint64_t{8} << 20;

class Job {
 public:
  virtual ~Job() = default;
  virtual void run() noexcept = 0;
  // Instead of run, when it can no longer be run.
  virtual void abandon() noexcept = 0;
};

// Time points for timeouts in nanoseconds; negative and too distant ones mean forever.
class Deadline {
 public:
  explicit Deadline(int64_t timeout_ns);
  using Clock = std::chrono::steady_clock;
  const std::optional<Clock::time_point>& at() const { return at_; }
  bool passed() const { return at_ && Clock::now() >= *at_; }

 private:
  std::optional<Clock::time_point> at_;
};

// What a group of jobs shares: one lock, one condition, who is running. Outlives the context where a host keeps tasks.
class JobMonitor {
 public:
  std::mutex mutex;
  std::condition_variable changed;  // something started, finished or was given up

  // Waits under `lock` until `ready` or the deadline; false for the latter.
  template <class Ready>
  bool wait(std::unique_lock<std::mutex>& lock, const Deadline& deadline, Ready&& ready) {
    if (!deadline.at()) {
      changed.wait(lock, ready);
      return true;
    }
    return changed.wait_until(lock, *deadline.at(), ready);
  }

 private:
  friend class JobSystem;
  friend class JobLink;
  std::vector<class JobLink*> unstarted_;
  int running_ = 0;
  bool closed_ = false;
};

// The way to an unstarted job. Whoever takes the job runs it; the others find nothing. All that remains when a host
// drops a task.
class JobLink : public std::enable_shared_from_this<JobLink> {
 public:
  JobLink(std::shared_ptr<JobMonitor> monitor, std::shared_ptr<Job> job);
  ~JobLink();
  // Runs the job on this thread unless somebody else has or will.
  void run() noexcept;
  // Gives the job up unless somebody has begun it.
  void abandon() noexcept;
  bool started() const { return job_ == nullptr; }  // under the monitor's lock

 private:
  friend class JobSystem;
  std::shared_ptr<Job> take_locked();

  std::shared_ptr<JobMonitor> monitor_;
  std::shared_ptr<Job> job_;
};

// The host's job system. Its user data is freed with the last reference.
class HostExecutor final : public runtime::HostJobs {
 public:
  HostExecutor(const quartet_executor& executor, UserData user) : executor_(executor), user_(std::move(user)) {}
  bool submit(void (*task)(void*), void* argument, int32_t priority) override {
    return executor_.submit(user_.get(), task, argument, priority) == QUARTET_OK;
  }
  int concurrency() override { return executor_.concurrency(user_.get()); }
  bool has_deep_stacks() const { return executor_.stack_bytes >= kDeepStack; }

 private:
  quartet_executor executor_;
  UserData user_;
};

class JobSystem {
 public:
  // `executor` may be null.
  JobSystem(std::shared_ptr<HostExecutor> executor, unsigned private_threads);
  ~JobSystem();

  const std::shared_ptr<JobMonitor>& monitor() const { return monitor_; }
  // Has the job run by somebody, at the worst by this thread now.
  std::shared_ptr<JobLink> submit(std::shared_ptr<Job> job);
  // A job that the host has not begun after a short while is taken to a private thread.
  void hasten(const std::shared_ptr<JobLink>& link);
  static constexpr std::chrono::milliseconds kPatience{5};

  // Counts work on the calling thread as running until destroyed.
  class Busy {
   public:
    explicit Busy(JobSystem& system);
    ~Busy();

   private:
    std::shared_ptr<JobMonitor> monitor_;
  };
  // Waits until nothing is queued or running, but for what this thread is in; false when the deadline passes first.
  bool wait_idle(const Deadline& deadline);
  // Gives up unstarted jobs, waits for running ones (but for the one this thread is in), ends the private threads.
  void shut_down() noexcept;

 private:
  struct Pool;
  static void QUARTET_CALL run_ticket(void* ticket);
  static void* thread_main(void* pool);
  bool submit_to_host(const std::shared_ptr<JobLink>& link) noexcept;
  bool submit_to_pool(const std::shared_ptr<JobLink>& link);
  static bool start_thread(const std::shared_ptr<Pool>& pool) noexcept;

  std::shared_ptr<JobMonitor> monitor_;
  std::shared_ptr<Pool> pool_;
  std::shared_ptr<HostExecutor> executor_;
};

}  // namespace quartet::capi
