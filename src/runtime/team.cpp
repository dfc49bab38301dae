#include "runtime/team.h"

#include <sched.h>

#include "base/os.h"
#include "runtime/park.h"

namespace quartet::runtime {
namespace {

// How long a seat's own helper is given to start its segment before others take it.
constexpr int64_t kGraceNs = 2'000;
// Spinning beyond this gives the core to other threads between looks.
constexpr int64_t kYieldNs = 10'000;
// Waking helpers in the middle of a run takes tens of microseconds; a phase must be worth that (seconds).
constexpr double kWorthWaking = 30e-6;
constexpr int kLooksPerClock = 48;

int64_t now_ns() { return real_os().monotonic_ns(); }

}  // namespace

void Team::begin(TeamWork& work) {
  const uint32_t epoch = ++epoch_;
  const int32_t width = work.vEUs();
  work_.store(&work, std::memory_order_relaxed);
  width_.store(width, std::memory_order_relaxed);
  for (int32_t seat = 0; seat < width; ++seat)
    seat_at(seat).claimed.store(uint64_t{epoch} << 32, std::memory_order_release);
  const bool parallel = work.phases().front().parallel;
  remaining_.store(parallel ? width : 1, std::memory_order_relaxed);
  current_.store(pack(epoch, 0, parallel), std::memory_order_seq_cst);
}

// Claims the seat's segment of the phase and runs it. False if somebody else has, or the phase is over.
bool Team::run_claimed(uint64_t now, int32_t seat) {
  const uint32_t epoch = epoch_of(now), phase = phase_of(now);
  std::atomic<uint64_t>& claimed = seat_at(seat).claimed;
  uint64_t before = claimed.load(std::memory_order_relaxed);
  if (before >> 32 != epoch || static_cast<uint32_t>(before) > phase) return false;
  if (!claimed.compare_exchange_strong(before, uint64_t{epoch} << 32 | (phase + 1), std::memory_order_acq_rel))
    return false;
  // From here to the end of the segment the epoch cannot end, and the work stands.
  TeamWork& work = *work_.load(std::memory_order_relaxed);
  work.run_segment(static_cast<int32_t>(phase), seat);
  if (remaining_.fetch_sub(1, std::memory_order_acq_rel) != 1) return true;
  // The last segment: nobody else moves the epoch on, so the work still stands.
  const auto phases = work.phases();
  if (phase + 1 == phases.size()) {
    publish(pack(epoch, kOver, false));
  } else {
    const bool parallel = phases[phase + 1].parallel;
    remaining_.store(parallel ? work.vEUs() : 1, std::memory_order_relaxed);
    publish(pack(epoch, phase + 1, parallel));
  }
  return true;
}

void Team::publish(uint64_t next) {
  current_.store(next, std::memory_order_seq_cst);
  if (parked_.load(std::memory_order_seq_cst) != 0) {
    beat_.fetch_add(1, std::memory_order_seq_cst);
    unpark(beat_);
  }
}

bool Team::run_own(uint64_t now, int32_t seat) {
  if (seat_at(seat).present.load(std::memory_order_relaxed) != epoch_of(now))
    seat_at(seat).present.store(epoch_of(now), std::memory_order_relaxed);
  if (!is_parallel(now)) return seat == 0 && run_claimed(now, 0);
  return seat < width() && run_claimed(now, seat);
}

bool Team::run_others(uint64_t now, int32_t seat, Steal which) {
  if (!is_parallel(now)) return which == Steal::everyone && run_claimed(now, 0);
  bool any = false;
  const int32_t seats = width();
  for (int32_t step = 1; step <= seats; ++step) {
    const int32_t other = (seat + step) % seats;
    if (which == Steal::absent && seat_at(other).present.load(std::memory_order_relaxed) == epoch_of(now)) continue;
    any |= run_claimed(now, other);
  }
  return any;
}

bool Team::wait_while(uint64_t now, int32_t seat) {
  int64_t started = 0;
  for (int looks = 0;; ++looks) {
    if (current_.load(std::memory_order_acquire) != now) return true;
    relax();
    if (looks % kLooksPerClock != kLooksPerClock - 1) continue;
    const int64_t time = now_ns();
    if (started == 0) started = time;
    const int64_t waited = time - started;
    if (waited > kGraceNs && !is_over(now) && run_others(now, seat, Steal::everyone)) return true;
    if (waited > kYieldNs) ::sched_yield();
    if (waited > spin_ns_) return false;
  }
}

void Team::sleep_while(uint64_t now) {
  const uint32_t beat = beat_.load(std::memory_order_seq_cst);
  parked_.store(1, std::memory_order_seq_cst);
  if (current_.load(std::memory_order_seq_cst) == now) park(beat_, beat);
  parked_.store(0, std::memory_order_relaxed);
}

bool Team::has_empty_seat() const {
  for (int32_t seat = 1; seat < width(); ++seat)
    if (seat_at(seat).manned.load(std::memory_order_seq_cst) == 0) return true;
  return false;
}

void Team::lead(void (*recruit)(void* context, Team& team), void* context) {
  const TeamWork& work = *work_.load(std::memory_order_relaxed);
  bool first = true;
  for (;;) {
    const uint64_t now = current_.load(std::memory_order_seq_cst);
    if (is_over(now)) return;
    const TeamWork::Phase& phase = work.phases()[phase_of(now)];
    if (phase.parallel && !first && phase.cost > kWorthWaking && has_empty_seat()) recruit(context, *this);
    if (phase.parallel) first = false;
    bool worked = run_own(now, 0);
    worked |= run_others(now, 0, Steal::absent);
    // What is left of the phase is in somebody's hands; only then is sleeping right.
    if (!worked && !wait_while(now, 0) && !run_others(now, 0, Steal::everyone)) sleep_while(now);
  }
}

void Team::help(int32_t seat, bool one_epoch) {
  for (;;) {
    const uint64_t now = current_.load(std::memory_order_seq_cst);
    bool stay = true;
    if (is_over(now)) {
      stay = !one_epoch && wait_while(now, seat);
    } else {
      bool worked = run_own(now, seat);
      worked |= run_others(now, seat, Steal::absent);
      if (!worked) stay = wait_while(now, seat);
    }
    if (stay) continue;
    leave_seat(seat);
    // A leader who saw the seat taken counts on it: look once more after leaving.
    const uint64_t later = current_.load(std::memory_order_seq_cst);
    if (later == now || is_over(later) || !take_seat(seat)) return;
  }
}

}  // namespace quartet::runtime
