// The threads that help a run. A pool belongs to a context, never to the process.
//
// A run is a row of phases; a parallel phase has one segment for each vEU. The calling thread is vEU 0. Idle workers
// join as the other vEUs; each runs its own segment of a phase, and whoever has nothing to do takes segments that
// nobody has started, so the caller alone always finishes, whatever the workers or the host's job system do. Several
// runs at once share the workers. Waiting spins for a bounded time, then parks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "runtime/host_jobs.h"

namespace quartet::runtime {

// What a run executes. Segments of one phase are independent; phases follow one another.
class TeamWork {
 public:
  struct Phase {
    bool parallel = false;  // false: only segment 0 exists
    double cost = 0;        // predicted seconds of the phase on one vEU
  };
  virtual ~TeamWork() = default;
  // Called exactly once for each segment, on any participating thread. Must not throw.
  virtual void run_segment(int32_t phase, int32_t vEU) = 0;

  std::span<const Phase> phases() const { return phases_; }
  int32_t vEUs() const { return vEUs_; }
  // Predicted seconds of all parallel phases on one vEU.
  double parallel_cost() const { return parallel_cost_; }

 protected:
  // `phases` must outlive the work.
  void set_phases(std::span<const Phase> phases, int32_t vEUs) {
    phases_ = phases;
    vEUs_ = vEUs;
    parallel_cost_ = 0;
    for (const Phase& phase : phases) parallel_cost_ += phase.parallel ? phase.cost : 0;
  }

 private:
  std::span<const Phase> phases_;
  int32_t vEUs_ = 1;
  double parallel_cost_ = 0;
};

class WorkerPool {
 public:
  static constexpr int kMaxVEUs = 256;

  struct Options {
    int threads = 0;                 // workers beside the caller; started when first needed; ignored with `jobs`
    std::shared_ptr<HostJobs> jobs;  // the host's job system instead of own threads
    int64_t spin_ns = 80'000;        // how long a waiter spins before it parks
  };
  explicit WorkerPool(Options options);
  // Ends the threads; no run may be in progress. Tasks still with the host become harmless.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Largest useful number of vEUs: the workers and the caller.
  int vEUs() const;
  // Starts the threads if that has not happened; otherwise the first run does. Fewer threads than asked for is no
  // error.
  void start();
  // Runs all segments of all phases and returns. Any number of threads may call it at once. Once the pool has started
  // it allocates nothing and takes no lock.
  void run(TeamWork& work);

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace quartet::runtime
