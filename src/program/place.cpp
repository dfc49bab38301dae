#include <algorithm>
#include <cmath>

#include "program/program.h"

namespace quartet::program {
namespace {

class Placer {
 public:
  Placer(std::span<const Stage> stages, std::span<const int64_t> tasks, int vEUs)
      : stages_(stages), tasks_(tasks), width_(static_cast<size_t>(std::max(vEUs, 1))) {
    result_.lists.resize(width_);
    result_.cuts.resize(width_);
  }

  Placement run() {
    for (size_t begin = 0; begin < stages_.size();) {
      size_t end = begin + 1;
      while (end < stages_.size() && stages_[end].wave == stages_[begin].wave) ++end;
      wave(begin, end);
      begin = end;
    }
    close_phase();
    return std::move(result_);
  }

 private:
  double cost(size_t stage) const { return static_cast<double>(tasks_[stage]) * stages_[stage].task_cost; }

  void wave(size_t begin, size_t end) {
    double total = 0;
    int64_t count = 0;
    for (size_t s = begin; s < end; ++s)
      if (tasks_[s] > 0) {
        total += cost(s);
        count += std::min<int64_t>(tasks_[s], static_cast<int64_t>(width_));
      }
    if (count == 0) return;
    const double share = std::floor(total / kPlacementGrain);
    const size_t parts = share >= static_cast<double>(width_) ? width_ : static_cast<size_t>(std::max(share, 1.0));
    const size_t used = std::min(parts, static_cast<size_t>(count));
    open_phase(stages_[begin].wave, used > 1, total);
    if (used == 1) {
      for (size_t s = begin; s < end; ++s) append(0, s, 0, tasks_[s]);
    } else {
      split(begin, end, total, used);
    }
  }

  // Cuts the wave's tasks, laid end to end, where the cost reaches 1/used, 2/used ... of the total. Each cut falls on
  // the nearest boundary between two tasks.
  void split(size_t begin, size_t end, double total, size_t used) {
    double before = 0;
    for (size_t s = begin; s < end; ++s) {
      if (tasks_[s] <= 0) continue;
      const double per_task = stages_[s].task_cost;
      int64_t done = 0;
      for (size_t part = 0; part < used && done < tasks_[s]; ++part) {
        int64_t limit = tasks_[s];
        if (part + 1 < used) {
          const double target = total * static_cast<double>(part + 1) / static_cast<double>(used);
          const double here =
              per_task > 0 ? (target - before) / per_task : (target > before ? static_cast<double>(limit) : 0.0);
          limit = here >= static_cast<double>(limit) ? limit : std::llround(std::fmax(here, 0.0));
          limit = std::min(limit, tasks_[s]);
        }
        append(part, s, done, limit);
        done = std::max(done, limit);
      }
      before += cost(s);
    }
  }

  void append(size_t part, size_t stage, int64_t begin, int64_t end) {
    if (begin < end) result_.lists[part].push_back({static_cast<int32_t>(stage), begin, end});
  }

  void open_phase(int32_t wave, bool parallel, double total) {
    if (!parallel && !result_.phases.empty() && !result_.phases.back().parallel) {
      result_.phases.back().last_wave = wave;
      result_.phases.back().cost += total;
      return;
    }
    close_phase();
    result_.phases.push_back({wave, wave, parallel, total});
  }

  // Records where every list stands; called before a phase begins and once at the end.
  void close_phase() {
    for (size_t v = 0; v < width_; ++v) result_.cuts[v].push_back(static_cast<int32_t>(result_.lists[v].size()));
  }

  std::span<const Stage> stages_;
  std::span<const int64_t> tasks_;
  size_t width_;
  Placement result_;
};

}  // namespace

Placement place(std::span<const Stage> stages, std::span<const int64_t> tasks, int vEUs) {
  return Placer(stages, tasks, vEUs).run();
}

}  // namespace quartet::program
