#include "capi/jobs.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>

namespace quartet::capi {

namespace {

// The monitor whose job this thread is running, if any.
thread_local JobMonitor* inside = nullptr;

}  // namespace

Deadline::Deadline(int64_t timeout_ns) {
  constexpr int64_t kForever = int64_t{1} << 60;  // 36 years
  if (timeout_ns >= 0 && timeout_ns < kForever) at_ = Clock::now() + std::chrono::nanoseconds(timeout_ns);
}

// ---- Links

JobLink::JobLink(std::shared_ptr<JobMonitor> monitor, std::shared_ptr<Job> job)
    : monitor_(std::move(monitor)), job_(std::move(job)) {
  const std::lock_guard lock(monitor_->mutex);
  monitor_->unstarted_.push_back(this);
}

JobLink::~JobLink() {
  const std::lock_guard lock(monitor_->mutex);
  std::erase(monitor_->unstarted_, this);
}

std::shared_ptr<Job> JobLink::take_locked() {
  if (job_ == nullptr) return nullptr;
  std::erase(monitor_->unstarted_, this);
  ++monitor_->running_;
  return std::move(job_);
}

namespace {

// Runs or gives up a job that was taken, then counts it as done. Nothing of the context may be touched after the job.
template <class Action>
void perform(const std::shared_ptr<JobMonitor>& monitor, int& running, Action&& action) noexcept {
  JobMonitor* const outer = std::exchange(inside, monitor.get());
  action();
  inside = outer;
  const std::lock_guard lock(monitor->mutex);
  --running;
  monitor->changed.notify_all();
}

}  // namespace

void JobLink::run() noexcept {
  std::shared_ptr<Job> job;
  const std::shared_ptr<JobMonitor> monitor = monitor_;
  {
    const std::lock_guard lock(monitor->mutex);
    job = take_locked();
    monitor->changed.notify_all();
  }
  if (job == nullptr) return;
  perform(monitor, monitor->running_, [&] {
    job->run();
    job.reset();
  });
}

void JobLink::abandon() noexcept {
  std::shared_ptr<Job> job;
  const std::shared_ptr<JobMonitor> monitor = monitor_;
  {
    const std::lock_guard lock(monitor->mutex);
    job = take_locked();
  }
  if (job == nullptr) return;
  perform(monitor, monitor->running_, [&] {
    job->abandon();
    job.reset();
  });
}

// ---- The private threads

struct JobSystem::Pool {
  std::mutex mutex;
  std::condition_variable work;
  std::deque<std::shared_ptr<JobLink>> queue;
  std::vector<pthread_t> threads;
  size_t idle = 0;
  size_t most_threads = 1;
  bool stopping = false;
};

void* JobSystem::thread_main(void* argument) {
  const auto* given = static_cast<std::shared_ptr<Pool>*>(argument);
  const std::shared_ptr<Pool> pool = *given;
  delete given;
  std::unique_lock lock(pool->mutex);
  while (true) {
    ++pool->idle;
    pool->work.wait(lock, [&] { return pool->stopping || !pool->queue.empty(); });
    --pool->idle;
    if (pool->queue.empty()) return nullptr;
    std::shared_ptr<JobLink> link = std::move(pool->queue.front());
    pool->queue.pop_front();
    lock.unlock();
    link->run();
    link.reset();
    lock.lock();
  }
}

// Called with the pool's lock held.
bool JobSystem::start_thread(const std::shared_ptr<Pool>& pool) noexcept {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  sigset_t all, before;
  sigfillset(&all);
  bool started = false;
  auto* argument = new (std::nothrow) std::shared_ptr<Pool>(pool);
  pthread_t thread{};
  if (argument != nullptr && pthread_attr_setstacksize(&attributes, kDeepStack) == 0 &&
      pthread_sigmask(SIG_SETMASK, &all, &before) == 0) {  // the host's signals are not for our threads
    started = pthread_create(&thread, &attributes, thread_main, argument) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  pthread_attr_destroy(&attributes);
  if (!started) delete argument;
  if (started) pool->threads.push_back(thread);  // reserved by the constructor
  return started;
}

// ---- The system

JobSystem::JobSystem(std::shared_ptr<HostExecutor> executor, unsigned private_threads)
    : executor_(std::move(executor)) {
  {
    const MemoryScope nobody(nullptr);  // may outlive the context
    monitor_ = std::make_shared<JobMonitor>();
  }
  pool_ = std::make_shared<Pool>();
  pool_->most_threads = std::max(1U, private_threads);
  pool_->threads.reserve(pool_->most_threads);
}

JobSystem::~JobSystem() { shut_down(); }

void QUARTET_CALL JobSystem::run_ticket(void* ticket) {
  const std::unique_ptr<std::shared_ptr<JobLink>> link(static_cast<std::shared_ptr<JobLink>*>(ticket));
  (*link)->run();
}

bool JobSystem::submit_to_host(const std::shared_ptr<JobLink>& link) noexcept {
  if (executor_ == nullptr || !executor_->has_deep_stacks()) return false;
  const MemoryScope nobody(nullptr);
  auto* ticket = new (std::nothrow) std::shared_ptr<JobLink>(link);
  if (ticket == nullptr) return false;
  if (executor_->submit(run_ticket, ticket, 0)) return true;
  delete ticket;
  return false;
}

bool JobSystem::submit_to_pool(const std::shared_ptr<JobLink>& link) {
  const std::lock_guard lock(pool_->mutex);
  if (pool_->stopping) return false;
  pool_->queue.push_back(link);
  const bool busy = pool_->queue.size() > pool_->idle;
  if (busy && pool_->threads.size() < pool_->most_threads && !start_thread(pool_) && pool_->threads.empty()) {
    pool_->queue.pop_back();
    return false;
  }
  pool_->work.notify_one();
  return true;
}

std::shared_ptr<JobLink> JobSystem::submit(std::shared_ptr<Job> job) {
  std::shared_ptr<JobLink> link;
  {
    const MemoryScope nobody(nullptr);
    link = std::make_shared<JobLink>(monitor_, std::move(job));
  }
  if (!submit_to_host(link) && !submit_to_pool(link)) link->run();
  return link;
}

void JobSystem::hasten(const std::shared_ptr<JobLink>& link) {
  if (executor_ == nullptr) return;
  {
    std::unique_lock lock(monitor_->mutex);
    if (monitor_->changed.wait_for(lock, kPatience, [&] { return link->started(); })) return;
  }
  if (!submit_to_pool(link)) link->run();
}

JobSystem::Busy::Busy(JobSystem& system) : monitor_(system.monitor_) {
  const std::lock_guard lock(monitor_->mutex);
  ++monitor_->running_;
}

JobSystem::Busy::~Busy() {
  const std::lock_guard lock(monitor_->mutex);
  --monitor_->running_;
  monitor_->changed.notify_all();
}

bool JobSystem::wait_idle(const Deadline& deadline) {
  std::vector<std::shared_ptr<JobLink>> waiting;
  {
    const std::lock_guard lock(monitor_->mutex);
    for (JobLink* link : monitor_->unstarted_) {
      if (auto shared = link->weak_from_this().lock()) waiting.push_back(std::move(shared));
    }
  }
  for (const auto& link : waiting) {
    if (deadline.passed()) break;
    hasten(link);
  }
  std::unique_lock lock(monitor_->mutex);
  const int own = inside == monitor_.get() ? 1 : 0;
  return monitor_->wait(lock, deadline, [&] { return monitor_->unstarted_.empty() && monitor_->running_ <= own; });
}

void JobSystem::shut_down() noexcept {
  if (pool_ == nullptr) return;
  while (true) {
    std::shared_ptr<Job> job;
    {
      const std::lock_guard lock(monitor_->mutex);
      monitor_->closed_ = true;
      if (monitor_->unstarted_.empty()) break;
      job = monitor_->unstarted_.back()->take_locked();
    }
    perform(monitor_, monitor_->running_, [&] {
      job->abandon();
      job.reset();
    });
  }
  {
    std::unique_lock lock(monitor_->mutex);
    const int own = inside == monitor_.get() ? 1 : 0;
    monitor_->changed.wait(lock, [&] { return monitor_->running_ <= own; });
  }
  std::vector<pthread_t> threads;
  {
    const std::lock_guard lock(pool_->mutex);
    pool_->stopping = true;
    pool_->queue.clear();
    threads.swap(pool_->threads);
    pool_->work.notify_all();
  }
  for (const pthread_t thread : threads) {
    if (pthread_equal(thread, pthread_self()) != 0) {
      pthread_detach(thread);  // it ends by itself, touching the pool alone
    } else {
      pthread_join(thread, nullptr);
    }
  }
  pool_.reset();
  executor_.reset();
}

}  // namespace quartet::capi
