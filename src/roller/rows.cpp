#include "roller/rows.h"

#include <algorithm>
#include <map>
#include <optional>

#include "roller/construct.h"
#include "roller/contract.h"
#include "roller/spatial.h"
#include "tile/remap.h"

namespace quartet::roller {
namespace {

using tile::Fused;
using tile::Reduction;
using tile::TensorExpr;
using tile::TensorId;
using tile::TileGraph;

constexpr double kNearShare = 0.5;  // of L1 or L2 for the rows of a task
constexpr int64_t kMostInner = 1 << 24;

struct Phase {
  std::shared_ptr<const Fused> fused;
  int32_t prefix = 0;         // spatial axes that are rows
  std::vector<IntExpr> runs;  // extents of the runs of the prefix
  std::vector<Plan> choices;  // of a contraction: one a tile; its runs are the same in all
  Plan plan;
  bool contracts() const { return fused->expr.reduction == Reduction::contraction; }
};

class Rows {
 public:
  Rows(const TileGraph& graph, const std::vector<std::shared_ptr<const Fused>>& phases,
       const std::vector<TensorId>& outputs, const CpuModel& device, RowsMemo& memo)
      : graph_(graph), outputs_(outputs), device_(device), memo_(memo), dims_(tile::dim_values(graph.symbols)) {
    for (const auto& fused : phases) phases_.push_back({fused, 0, {}, {}, {}});
  }

  Result<Plan> run() {
    QUARTET_TRY(find_locals());
    QUARTET_TRY(find_rows());
    QUARTET_TRY(plan_phases());
    QUARTET_TRY(find_row_axes());
    measure_rows();
    QUARTET_TRY(choose_tile());
    return finish();
  }

 private:
  Status refuse(const std::string& why) const { return make_error(Code::failed_precondition, "%s", why.c_str()); }
  const graph::TensorType& type(TensorId t) const { return graph_.tensors[static_cast<size_t>(t)].type; }
  int64_t bytes_of(TensorId t) const { return static_cast<int64_t>(size_of(type(t).dtype)); }
  bool is_local(TensorId t) const { return locals_.count(t) != 0; }

  Status find_locals() {
    std::map<TensorId, size_t> maker;
    for (size_t i = 0; i < phases_.size(); ++i) {
      const Fused& fused = *phases_[i].fused;
      if (fused.expr.reduction == Reduction::scatter) return refuse("a scatter has no rows");
      const auto& axes = fused.expr.axes;
      if (std::any_of(axes.begin(), axes.begin() + fused.expr.spatial, [](const IntExpr& e) { return e.is(0); }))
        return refuse("a phase without elements");
      for (const TensorId t : fused.inputs) {
        if (const auto found = maker.find(t); found != maker.end()) locals_[t] = 0;
      }
      for (const TensorId t : fused.outputs) maker[t] = i;
    }
    return {};
  }

  // ---- Rows: the longest run of leading axes that all phases share and of which each reads only its own. ----

  Status find_rows() {
    const TensorExpr& first = phases_.front().fused->expr;
    std::string why = "no rows in common";
    for (int32_t count = first.spatial; count >= 0; --count) {
      if (count > 0 && first.axes[static_cast<size_t>(count) - 1].is(1)) continue;
      if (const Status status = share(leading(first, count)); status.ok())
        return {};
      else if (count == first.spatial || why.empty())
        why = status.message();
    }
    return refuse(why);
  }

  static IntExpr leading(const TensorExpr& expr, int32_t count) {
    IntExpr extent(1);
    for (int32_t i = 0; i < count; ++i) extent *= expr.axes[static_cast<size_t>(i)];
    return extent;
  }

  Status share(const IntExpr& rows) {
    for (Phase& phase : phases_) {
      const TensorExpr& expr = phase.fused->expr;
      const auto ranges = graph_.ranges(expr);
      phase.prefix = -1;
      for (int32_t count = 0; count <= expr.spatial && phase.prefix < 0; ++count)
        if (tile::provably_equal(leading(expr, count), rows, ranges)) phase.prefix = count;
      if (phase.prefix < 0) return refuse("'" + expr.name + "' has other rows");
    }
    for (auto& [tensor, inner] : locals_) QUARTET_TRY(row_of(tensor, rows, inner));
    for (const Phase& phase : phases_) QUARTET_TRY(own_rows(phase));
    rows_ = rows;
    return {};
  }

  // Elements a row of a tensor that phases hand on.
  Status row_of(TensorId tensor, const IntExpr& rows, int64_t& inner) const {
    for (const Phase& phase : phases_) {
      const Fused& fused = *phase.fused;
      if (std::find(fused.outputs.begin(), fused.outputs.end(), tensor) == fused.outputs.end()) continue;
      IntExpr extent(1);
      for (int32_t i = phase.prefix; i < fused.expr.spatial; ++i) extent *= fused.expr.axes[static_cast<size_t>(i)];
      const auto known = extent.constant();
      if (!known || *known < 1 || *known > kMostInner)
        return refuse("rows of " + extent.to_text() + " elements, known only in the run");
      inner = *known;
      return {};
    }
    return refuse("nothing makes the rows " + rows.to_text());
  }

  Status own_rows(const Phase& phase) const {
    const TensorExpr& expr = phase.fused->expr;
    const auto ranges = graph_.ranges(expr);
    IntExpr row;
    for (int32_t i = 0; i < phase.prefix; ++i) {
      const IntExpr& extent = expr.axes[static_cast<size_t>(i)];
      row = row * extent + (extent.is(1) ? IntExpr(0) : IntExpr::axis(i));
    }
    for (const tile::Read& read : expr.reads) {
      const TensorId tensor = phase.fused->inputs[static_cast<size_t>(read.operand)];
      if (!is_local(tensor)) continue;
      const IntExpr offset = tile::flat_offset(expr, read, type(tensor));
      if (offset.contains_any(is_value_symbol))
        return refuse("'" + expr.name + "' reads rows at indices from a tensor");
      const int64_t inner = locals_.at(tensor);
      const IntExpr within = (offset - row * IntExpr(inner)).simplify(ranges);
      if (!within.provably_nonnegative(ranges) || !(IntExpr(inner - 1) - within).provably_nonnegative(ranges))
        return refuse("'" + expr.name + "' reads other rows than its own");
    }
    return {};
  }

  // ---- Plans of the phases, and the axes that cut all of them ----

  Status plan_phases() {
    for (Phase& phase : phases_) {
      phase.choices.clear();
      const TensorExpr& expr = phase.fused->expr;
      if (phase.contracts()) {
        QUARTET_ASSIGN(phase.choices, contractions(phase, 0));
        QUARTET_TRY(cut_contraction(phase));
        continue;
      }
      const std::vector<Plan>& plans = walks(phase);
      const auto best = std::min_element(plans.begin(), plans.end(),
                                         [](const Plan& a, const Plan& b) { return a.seconds < b.seconds; });
      phase.plan = *best;
      phase.runs.clear();
      for (const auto& run : phase.plan.merged)
        if (run.front() < phase.prefix) phase.runs.push_back(extent_of(expr, run));
    }
    return {};
  }

  const std::vector<Plan>& walks(const Phase& phase) {
    const auto [at, fresh] = memo_.plans.try_emplace({phase.fused, phase.prefix, -1});
    if (fresh) at->second = spatial_row_plans(graph_, *phase.fused, device_, phase.prefix);
    return at->second;
  }

  Result<std::vector<Plan>> contractions(const Phase& phase, int64_t rows) {
    const std::tuple key(phase.fused, int32_t{-1}, rows);
    if (const auto found = memo_.plans.find(key); found != memo_.plans.end()) return found->second;
    QUARTET_ASSIGN(std::vector<Plan> plans, contract_row_plans(graph_, *phase.fused, device_, rows));
    memo_.plans[key] = plans;
    return plans;
  }

  static IntExpr extent_of(const TensorExpr& expr, const std::vector<int32_t>& run) {
    IntExpr extent(1);
    for (const int32_t axis : run) extent *= expr.axes[static_cast<size_t>(axis)];
    return extent;
  }

  // The runs of a contraction are its outer points, its rows and its columns; outer points are tasks of their own.
  Status cut_contraction(Phase& phase) const {
    const TensorExpr& expr = phase.fused->expr;
    if (phase.choices.empty()) return refuse("no tile for '" + expr.name + "'");
    const auto& merged = phase.choices.front().merged;
    phase.runs.clear();
    int32_t end = 0;  // axes before this one are in the runs so far
    for (size_t i = 0; i + 1 < merged.size(); ++i) {
      const auto& run = merged[i];
      const bool is_row = i + 2 == merged.size();
      if (run.empty()) {
        if (is_row) continue;
        return refuse("'" + expr.name + "' has an outer run of no axis");
      }
      if (run.front() < end || (run.front() < phase.prefix && run.back() >= phase.prefix) ||
          (!is_row && run.front() >= phase.prefix))
        return refuse("the rows of '" + expr.name + "' are not those of the group");
      end = run.back() + 1;
      if (run.front() < phase.prefix) phase.runs.push_back(extent_of(expr, run));
    }
    const auto& columns = merged.back();
    if (!columns.empty() && (columns.front() < phase.prefix || columns.front() < end))
      return refuse("the rows of '" + expr.name + "' are its columns");
    if (phase.runs.empty()) return refuse("'" + expr.name + "' would be one task");
    return {};
  }

  // The finest runs of any phase; the others' must be made of them.
  Status find_row_axes() {
    const Phase* finest = &phases_.front();
    for (const Phase& phase : phases_)
      if (phase.runs.size() > finest->runs.size()) finest = &phase;
    axes_ = finest->runs;
    for (Phase& phase : phases_) {
      const auto ranges = graph_.ranges(phase.fused->expr);
      std::vector<int32_t> covers;
      size_t axis = 0;
      for (const IntExpr& run : phase.runs) {
        IntExpr extent(1);
        int32_t count = 0;
        while (axis < axes_.size() && (count == 0 || !tile::provably_equal(extent, run, ranges))) {
          extent *= axes_[axis++];
          ++count;
        }
        if (!tile::provably_equal(extent, run, ranges)) return refuse("rows that are cut in different ways");
        covers.push_back(count);
      }
      if (axis != axes_.size()) return refuse("rows that are cut in different ways");
      phase.plan.row_runs = covers;
      for (Plan& choice : phase.choices) choice.row_runs = covers;
    }
    for (const IntExpr& axis : axes_) extents_.push_back(std::max<int64_t>(1, tile::value_at(axis, dims_)));
    return {};
  }

  // ---- The tile ----

  // Bytes that a row brings with it, and those that all rows of a task share.
  void measure_rows() {
    for (const auto& [tensor, inner] : locals_) row_bytes_ += static_cast<double>(inner * bytes_of(tensor));
    std::map<TensorId, double> once;
    int64_t points = 1;
    for (const int64_t extent : extents_) points = product(points, extent);
    points_ = static_cast<double>(points);
    for (const Phase& phase : phases_) {
      const TensorExpr& expr = phase.fused->expr;
      const tile::Tile whole = tile::whole_tile(expr, dims_);
      tile::Tile one = whole;
      for (int32_t i = 0; i < phase.prefix; ++i) one[static_cast<size_t>(i)] = {0, 0};
      for (const tile::Read& read : expr.reads) {
        const TensorId t = phase.fused->inputs[static_cast<size_t>(read.operand)];
        const auto size = [&](const tile::Tile& tile) {
          return static_cast<double>(tile::box_bytes(tile::propagate(read, type(t), tile, dims_), type(t), dims_, 1));
        };
        if (is_local(t)) {
          near_bytes_ += static_cast<double>(locals_.at(t) * bytes_of(t)) * points_;
          continue;
        }
        const double all = size(whole), row = size(one);
        const auto [found, fresh] = once.try_emplace(t, all);
        if (!fresh) near_bytes_ += std::min(all, row * points_);
        const bool moves = !axes_.empty() && moves_with_rows(phase, read);
        if (moves && fresh) row_bytes_ += row;
        if (!moves && fresh) shared_bytes_ += row;
      }
      for (const TensorId t : phase.fused->outputs) {
        const double all = static_cast<double>(tile::spatial_points(expr, dims_) * bytes_of(t));
        if (is_local(t)) near_bytes_ += all;
        if (std::find(outputs_.begin(), outputs_.end(), t) == outputs_.end()) continue;
        far_written_ += all;
        row_bytes_ += is_local(t) ? 0 : all / points_;
      }
    }
    for (const auto& [tensor, bytes] : once) far_read_ += bytes;
  }

  // Whether the rows of one task, which follow one another, read different parts.
  bool moves_with_rows(const Phase& phase, const tile::Read& read) const {
    const TensorExpr& expr = phase.fused->expr;
    int32_t last = phase.prefix - 1;
    while (last >= 0 && expr.axes[static_cast<size_t>(last)].is(1)) --last;
    if (last < 0) return true;
    return std::any_of(read.index.begin(), read.index.end(),
                       [&](const IntExpr& e) { return e.contains(axis_symbol(last)); });
  }

  double footprint(int64_t rows) const { return shared_bytes_ + row_bytes_ * static_cast<double>(rows); }

  double capacity(const char* level) const {
    const MemoryLevel* found = device_.level(level);
    return found == nullptr ? 0 : kNearShare * static_cast<double>(found->capacity);
  }

  Status choose_tile() {
    const double l2 = std::max(capacity("L2"), capacity("L1"));
    if (row_bytes_ > l2) return refuse(format("a row of %.0f bytes does not fit the core's own cache", row_bytes_));
    const auto most = static_cast<int64_t>(std::min(l2 / std::max(row_bytes_, 1.0), 1e9));
    const bool contracts = std::any_of(phases_.begin(), phases_.end(), [](const Phase& p) { return p.contracts(); });
    if (axes_.empty()) {
      tile_ = 1;  // no contraction among them, see cut_contraction
      return {};
    }
    if (contracts) {
      std::optional<double> best;
      int64_t chosen = 0;
      for (const int64_t wanted : {8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512}) {
        const int64_t pieces = std::max<int64_t>(1, (extents_.back() + wanted - 1) / wanted);
        tile_ = (extents_.back() + pieces - 1) / pieces;
        if (!axes_.back().is_constant()) tile_ = wanted;
        if (tile_ > most || tile_ == chosen || !tile_contractions().ok()) continue;
        const double time = wall();
        if (!best || time < *best * 0.99) best = time, chosen = tile_;
      }
      if (!best) return refuse("no tile of rows that suits every contraction");
      tile_ = chosen;
      return tile_contractions();
    }
    const bool lanes_along_rows = std::any_of(phases_.begin(), phases_.end(), [](const Phase& p) {
      return p.plan.vector_axis >= 0 && static_cast<size_t>(p.plan.vector_axis) < p.runs.size();
    });
    const int64_t grain = lanes_along_rows ? device_.levels.front().line / 4 : 1;
    // As many rows as stay in L1 from phase to phase. A core takes many such tasks at once, so they may be short.
    const auto near = static_cast<int64_t>(capacity("L1") / std::max(row_bytes_, 1.0));
    const int64_t worth = task_points(seconds(1), static_cast<int64_t>(points_), device_);
    tile_ = std::min(even_tile(std::clamp<int64_t>(near, 1, worth), grain), std::max<int64_t>(most, 1));
    return {};
  }

  // At most `wanted` rows of the last axis, whole runs of lanes if they are that many, so that the pieces are equal,
  // and whole rounds of the cores if it is the only one.
  int64_t even_tile(int64_t wanted, int64_t grain) const {
    const auto rounded = [&](int64_t rows) { return rows >= grain ? rows / grain * grain : rows; };
    const int64_t extent = extents_.back();
    if (!axes_.back().is_constant()) return rounded(wanted);
    int64_t pieces = (extent + wanted - 1) / wanted;
    if (pieces > device_.cores && extents_.size() == 1)
      pieces = (pieces + device_.cores - 1) / device_.cores * device_.cores;
    return rounded((extent + pieces - 1) / pieces);
  }

  // Picks the tile of every contraction for tasks of tile_ rows of the last row axis.
  Status tile_contractions() {
    for (Phase& phase : phases_) {
      if (!phase.contracts()) continue;
      const Plan& any = phase.choices.front();
      const size_t outer = any.merged.size() - 2;
      const bool has_rows = phase.runs.size() == outer + 1;  // the contraction's own rows are rows of the group
      if (!has_rows && !axes_.empty() && (phase.runs.size() != outer || tile_ != 1))
        return refuse("an outer point of a contraction is a task");
      if (has_rows && any.row_runs.back() > 1) {
        const auto last = axes_.back().constant();
        if (!last || *last % tile_ != 0) return refuse("a tile that cuts a contraction's rows unevenly");
      }
      QUARTET_ASSIGN(std::vector<Plan> plans, contractions(phase, has_rows ? tile_ : 0));
      for (Plan& p : plans) p.row_runs = any.row_runs;
      plans.erase(std::remove_if(plans.begin(), plans.end(), [&](const Plan& p) { return !readable(phase, p); }),
                  plans.end());
      if (plans.empty()) return refuse("a contraction packs what another phase makes");
      phase.plan = *std::min_element(plans.begin(), plans.end(),
                                     [](const Plan& a, const Plan& b) { return a.seconds < b.seconds; });
    }
    return {};
  }

  // Panels come from memory outside the group, and one form of each tensor is enough.
  bool readable(const Phase& phase, const Plan& plan) const {
    if (plan.b == OperandForm::in_place) return true;
    const auto operand = [](const Fused& fused) {
      const tile::Read& read = fused.expr.reads[static_cast<size_t>(fused.expr.contraction.read_b)];
      return fused.inputs[static_cast<size_t>(read.operand)];
    };
    const TensorId t = operand(*phase.fused);
    if (is_local(t)) return false;
    return std::none_of(phases_.begin(), phases_.end(), [&](const Phase& other) {
      return &other != &phase && other.contracts() && operand(*other.fused) == t;
    });
  }

  // ---- The model ----

  double seconds(int64_t rows) const {
    const double near = bandwidth_for(device_, static_cast<int64_t>(footprint(rows)));
    double compute = 0, moved = near_bytes_ / near;
    for (const Phase& phase : phases_) {
      compute += phase.plan.compute;
      // Operands that each tile of a contraction fetches anew.
      if (phase.contracts()) moved += std::max(0.0, phase.plan.l2_bytes - phase.plan.dram_bytes) / near;
    }
    moved += memory_seconds(device_, far_read_, far_written_);
    return overlapped(compute, moved);
  }

  int64_t tasks() const {
    int64_t count = 1;
    for (size_t i = 0; i + 1 < extents_.size(); ++i) count = product(count, extents_[i]);
    return extents_.empty() ? 1 : product(count, (extents_.back() + tile_ - 1) / tile_);
  }

  // Tasks that a core takes together count as one, and cores share them evenly.
  double wall() const {
    const double all = seconds(tile_);
    const auto points = static_cast<int64_t>(points_);
    int64_t parts = std::clamp<int64_t>(points / task_points(all, points, device_), 1, tasks());
    if (parts > device_.cores) parts -= parts % device_.cores;
    return wall_time(all / static_cast<double>(parts), parts, device_);
  }

  Result<Plan> finish() {
    Plan plan;
    plan.kind = Plan::Kind::rows;
    plan.row_extents = axes_;
    plan.task_tile.assign(axes_.size(), 1);
    if (!axes_.empty()) {
      const auto last = axes_.back().constant();
      if (last) tile_ = std::min(tile_, std::max<int64_t>(1, *last));
      plan.task_tile.back() = tile_;
    }
    plan.seconds = seconds(tile_);
    plan.wall = wall();
    plan.tasks = tasks();
    for (const Phase& phase : phases_) {
      plan.compute += phase.plan.compute;
      plan.flops += phase.plan.flops;
      plan.phases.push_back(phase.plan);
    }
    plan.dram_bytes = far_read_ + far_written_;
    plan.l2_bytes = near_bytes_;
    for (const auto& [tensor, inner] : locals_) plan.locals.push_back({tensor, inner});
    plan.reason = format("%zu phases on tiles of %lld rows, %.0f bytes near", phases_.size(),
                         static_cast<long long>(tile_), footprint(tile_));
    return plan;
  }

  const TileGraph& graph_;
  const std::vector<TensorId>& outputs_;
  const CpuModel& device_;
  RowsMemo& memo_;
  std::vector<int64_t> dims_;
  std::vector<Phase> phases_;
  std::map<TensorId, int64_t> locals_;  // elements a row
  IntExpr rows_;
  std::vector<IntExpr> axes_;  // row axes
  std::vector<int64_t> extents_;
  double points_ = 1;  // rows in all
  double row_bytes_ = 0, shared_bytes_ = 0, near_bytes_ = 0, far_read_ = 0, far_written_ = 0;
  int64_t tile_ = 1;
};

}  // namespace

Result<Plan> rows_plan(const TileGraph& graph, const std::vector<std::shared_ptr<const Fused>>& phases,
                       const std::vector<TensorId>& outputs, const CpuModel& device, RowsMemo& memo) {
  return Rows(graph, phases, outputs, device, memo).run();
}

}  // namespace quartet::roller
