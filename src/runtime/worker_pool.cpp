#include "runtime/worker_pool.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "base/os.h"
#include "runtime/park.h"
#include "runtime/team.h"

namespace quartet::runtime {
namespace {

// More runs at once than this are led without helpers.
constexpr size_t kMaxTeams = 8;
// Kernels need little stack; this leaves room for a sanitizer's frames.
constexpr size_t kStackBytes = size_t{1} << 20;
constexpr int32_t kRunPriority = 1;
// Sleeping helpers are woken for a run that is long enough (seconds), or if runs follow one another closely.
constexpr double kWorthWaking = 40e-6;
constexpr int64_t kCloseNs = 200'000;

// A worker's mailbox: 0 asleep, kStop, or 1 + team * kMaxVEUs + seat.
constexpr uint32_t kStop = ~uint32_t{0};

}  // namespace

class WorkerPool::State : public std::enable_shared_from_this<WorkerPool::State> {
 public:
  explicit State(Options options) : options_(std::move(options)), process_(real_os().process_id()) {
    const int most = WorkerPool::kMaxVEUs - 1;
    helpers_ = std::clamp(options_.jobs ? options_.jobs->concurrency() : options_.threads, 0, most);
    for (size_t i = 0; i < std::min(static_cast<size_t>(helpers_), kMaxTeams); ++i)
      teams_.push_back(std::make_unique<Team>(options_.spin_ns));
    if (options_.jobs)
      tokens_ = std::vector<Token>(static_cast<size_t>(helpers_));
    else
      workers_ = std::vector<Worker>(static_cast<size_t>(helpers_));
  }

  int helpers() const { return helpers_; }
  void start();
  void stop();
  void run(TeamWork& work);

 private:
  struct alignas(64) Worker {
    std::atomic<uint32_t> mail{0};
    State* state = nullptr;
    pthread_t thread{};
    bool started = false;
  };
  // A task lent to the host. While it is out, it keeps the state alive, so that it may come at any time or never.
  struct Token {
    std::atomic<bool> out{false};
    std::shared_ptr<State> state;
  };

  static void* worker_main(void* argument);
  static void token_main(void* argument);
  void recruit(Team& team);
  void recruit_workers(Team& team);
  void recruit_host(Team& team);
  Team* reserve_team();
  static void run_alone(TeamWork& work);

  Options options_;
  const int64_t process_;
  int helpers_ = 0;
  std::vector<std::unique_ptr<Team>> teams_;
  std::vector<Worker> workers_;
  std::vector<Token> tokens_;
  std::mutex start_mutex_;
  std::atomic<bool> started_{false};
};

void WorkerPool::State::start() {
  if (started_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(start_mutex_);
  if (started_.load(std::memory_order_relaxed)) return;
  // Workers inherit this thread's mask: no signal of the host's is handled on them.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, kStackBytes);
  for (Worker& worker : workers_) {
    worker.state = this;
    worker.started = ::pthread_create(&worker.thread, &attributes, worker_main, &worker) == 0;
    if (!worker.started) break;
  }
  ::pthread_attr_destroy(&attributes);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  started_.store(true, std::memory_order_release);
}

void WorkerPool::State::stop() {
  options_.jobs.reset();
  for (Worker& worker : workers_) {
    if (!worker.started) continue;
    worker.mail.store(kStop, std::memory_order_release);
    unpark(worker.mail);
    // In a forked child the threads do not exist.
    if (real_os().process_id() == process_) ::pthread_join(worker.thread, nullptr);
  }
}

void* WorkerPool::State::worker_main(void* argument) {
  Worker& worker = *static_cast<Worker*>(argument);
  State& state = *worker.state;
#if defined(__linux__)
  ::pthread_setname_np(::pthread_self(), "quartet-run");
#endif
  for (;;) {
    uint32_t mail;
    while ((mail = worker.mail.load(std::memory_order_acquire)) == 0) park(worker.mail, 0);
    if (mail == kStop) return nullptr;
    const uint32_t place = mail - 1;
    state.teams_[place / WorkerPool::kMaxVEUs]->help(static_cast<int32_t>(place % WorkerPool::kMaxVEUs), false);
    worker.mail.compare_exchange_strong(mail, 0, std::memory_order_release, std::memory_order_relaxed);
  }
}

void WorkerPool::State::token_main(void* argument) {
  Token& token = *static_cast<Token*>(argument);
  const std::shared_ptr<State> state = std::move(token.state);
  token.out.store(false, std::memory_order_release);
  for (const auto& team : state->teams_) {
    if (!team->running()) continue;
    const int32_t width = team->width();
    for (int32_t seat = 1; seat < width; ++seat)
      if (team->take_seat(seat)) return team->help(seat, true);
  }
}

void WorkerPool::State::recruit(Team& team) {
  if (options_.jobs)
    recruit_host(team);
  else
    recruit_workers(team);
}

void WorkerPool::State::recruit_workers(Team& team) {
  size_t team_index = 0;
  while (teams_[team_index].get() != &team) ++team_index;
  const int32_t seats = std::min(team.width(), helpers_ + 1);
  for (int32_t seat = 1; seat < seats; ++seat) {
    if (!team.take_seat(seat)) continue;
    const uint32_t mail = 1 + static_cast<uint32_t>(team_index) * WorkerPool::kMaxVEUs + static_cast<uint32_t>(seat);
    bool found = false;
    // The worker that had the seat before, by preference: its caches know the seat's share.
    for (size_t step = 0; step < workers_.size() && !found; ++step) {
      Worker& worker = workers_[(static_cast<size_t>(seat) - 1 + step) % workers_.size()];
      uint32_t asleep = 0;
      found = worker.started && worker.mail.load(std::memory_order_relaxed) == 0 &&
              worker.mail.compare_exchange_strong(asleep, mail, std::memory_order_release, std::memory_order_relaxed);
      if (found) unpark(worker.mail);
    }
    if (!found) return team.leave_seat(seat);
  }
}

void WorkerPool::State::recruit_host(Team& team) {
  int32_t wanted = std::min(team.width(), helpers_ + 1) - 1;
  for (Token& token : tokens_) {
    if (wanted <= 0 || !team.running()) return;
    --wanted;
    // A token still with the host will come to whatever runs then.
    if (token.out.load(std::memory_order_relaxed) || token.out.exchange(true, std::memory_order_acquire)) continue;
    token.state = shared_from_this();
    if (options_.jobs->submit(token_main, &token, kRunPriority)) continue;
    token.state.reset();
    token.out.store(false, std::memory_order_release);
    return;
  }
}

Team* WorkerPool::State::reserve_team() {
  for (const auto& team : teams_)
    if (team->try_reserve()) return team.get();
  return nullptr;
}

void WorkerPool::State::run_alone(TeamWork& work) {
  const auto phases = work.phases();
  for (size_t p = 0; p < phases.size(); ++p)
    for (int32_t vEU = 0; vEU < (phases[p].parallel ? work.vEUs() : 1); ++vEU)
      work.run_segment(static_cast<int32_t>(p), vEU);
}

void WorkerPool::State::run(TeamWork& work) {
  const bool parallel = std::ranges::any_of(work.phases(), [](const TeamWork::Phase& phase) { return phase.parallel; });
  Team* const team = parallel && helpers_ > 0 && work.vEUs() <= WorkerPool::kMaxVEUs ? reserve_team() : nullptr;
  if (team == nullptr) return run_alone(work);
  start();
  Os& os = real_os();
  team->begin(work);
  if (work.parallel_cost() > kWorthWaking || os.monotonic_ns() - team->last_end_ns < kCloseNs) recruit(*team);
  team->lead([](void* state, Team& own) { static_cast<State*>(state)->recruit(own); }, this);
  team->last_end_ns = os.monotonic_ns();
  team->release();
}

WorkerPool::WorkerPool(Options options) : state_(std::make_shared<State>(std::move(options))) {}
WorkerPool::~WorkerPool() { state_->stop(); }
int WorkerPool::vEUs() const { return state_->helpers() + 1; }
void WorkerPool::start() { state_->start(); }
void WorkerPool::run(TeamWork& work) { state_->run(work); }

}  // namespace quartet::runtime
