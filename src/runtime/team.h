// The meeting place of one run: who has claimed which segment, and when a phase is over.
//
// A team outlives its runs; each run is an epoch. Everything a late or slow helper touches belongs to the team, except
// the work itself, which it touches only after it has claimed a segment of the running epoch: a run cannot end before
// its claimed segments do. So nobody ever waits for helpers to leave.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "runtime/worker_pool.h"

namespace quartet::runtime {

class Team {
 public:
  explicit Team(int64_t spin_ns) : spin_ns_(spin_ns), seats_(new Seat[WorkerPool::kMaxVEUs]) {}

  // For the one caller that leads the team at a time.
  bool try_reserve() {
    return !busy_.load(std::memory_order_relaxed) && !busy_.exchange(true, std::memory_order_acquire);
  }
  void release() { busy_.store(false, std::memory_order_release); }
  // Opens a new epoch with `work`; helpers may start at once.
  void begin(TeamWork& work);
  // Takes part as vEU 0 until the epoch is over. `recruit(context)` is called when a phase begins that is worth waking
  // helpers for and seats are empty.
  void lead(void (*recruit)(void* context, Team& team), void* context);

  // For helpers. A seat is taken from 0 to 1 by compare-exchange, by its helper or on its behalf.
  bool take_seat(int32_t seat) {
    uint32_t empty = 0;
    return seat_at(seat).manned.load(std::memory_order_seq_cst) == 0 &&
           seat_at(seat).manned.compare_exchange_strong(empty, 1, std::memory_order_seq_cst);
  }
  void leave_seat(int32_t seat) { seat_at(seat).manned.store(0, std::memory_order_seq_cst); }
  // Takes part from a seat that was taken, and leaves it when there was nothing to do for the spinning time, or with
  // `one_epoch` as soon as no run is in progress.
  void help(int32_t seat, bool one_epoch);
  // A run is in progress, with this many seats.
  bool running() const { return !is_over(current_.load(std::memory_order_seq_cst)); }
  int32_t width() const { return width_.load(std::memory_order_relaxed); }

  // When the last epoch ended; for the leader.
  int64_t last_end_ns = 0;

 private:
  struct alignas(64) Seat {
    // High word: epoch; low word: how many phases of it have had this seat's segment claimed or passed.
    std::atomic<uint64_t> claimed{0};
    std::atomic<uint32_t> manned{0};   // a helper sits here
    std::atomic<uint32_t> present{0};  // the epoch in which somebody has begun to work from here
  };
  // `current_`: epoch (32 bits), phase (31 bits), parallel (1 bit); phase kOver: no run in progress.
  static constexpr uint32_t kOver = 0x7fffffff;
  static uint64_t pack(uint32_t epoch, uint32_t phase, bool parallel) {
    return uint64_t{epoch} << 32 | uint64_t{phase} << 1 | (parallel ? 1 : 0);
  }
  static uint32_t epoch_of(uint64_t now) { return static_cast<uint32_t>(now >> 32); }
  static uint32_t phase_of(uint64_t now) { return static_cast<uint32_t>(now) >> 1; }
  static bool is_parallel(uint64_t now) { return (now & 1) != 0; }
  static bool is_over(uint64_t now) { return phase_of(now) == kOver; }

  enum class Steal : uint8_t { absent, everyone };
  Seat& seat_at(int32_t seat) const { return seats_[static_cast<size_t>(seat)]; }
  bool run_claimed(uint64_t now, int32_t seat);
  bool run_own(uint64_t now, int32_t seat);
  bool run_others(uint64_t now, int32_t seat, Steal which);
  void publish(uint64_t next);
  // Spins until `current_` is no longer `now`, or for the spinning time, taking segments nobody starts. True if it
  // changed or there was something to do.
  bool wait_while(uint64_t now, int32_t seat);
  void sleep_while(uint64_t now);
  bool has_empty_seat() const;

  const int64_t spin_ns_;
  const std::unique_ptr<Seat[]> seats_;
  std::atomic<bool> busy_{false};
  std::atomic<TeamWork*> work_{nullptr};
  std::atomic<int32_t> width_{0};
  uint32_t epoch_ = 0;  // the leader's
  alignas(64) std::atomic<uint64_t> current_{pack(0, kOver, false)};
  std::atomic<uint32_t> parked_{0};                // the leader sleeps or is about to
  std::atomic<uint32_t> beat_{0};                  // changes when a sleeping leader has to look again
  alignas(64) std::atomic<int32_t> remaining_{0};  // unfinished segments of the phase
};

}  // namespace quartet::runtime
