// Groups of phases: on its rows a task runs one phase after the other, each by the lowering of its own kind over the
// rows' part of its domain. What a phase leaves to another stays in the task's scratch.
#include <algorithm>

#include "kernel/contraction.h"
#include "kernel/lowering.h"

namespace quartet::kernel {
namespace {

using roller::Plan;

class Rows {
 public:
  Rows(const tile::TileGraph& graph, const welder::Group& group, const std::vector<tile::Fused>& fused,
       const CpuModel& device)
      : graph_(graph), group_(group), plan_(group.plan), fused_(fused), device_(device) {}

  Result<LoweredGroup> run() {
    QUARTET_TRY(check());
    Lowering grid(graph_, fused_.front(), emission_);
    std::vector<TaskAxis> axes;
    for (size_t i = 0; i < plan_.row_extents.size(); ++i) axes.push_back({plan_.row_extents[i], plan_.task_tile[i]});
    ranges_ = task_ranges(grid, axes);
    const TaskRange all = together(grid, 0, axes.size());
    emission_.rows = extent_of(0, axes.size());
    QUARTET_TRY(hold(grid));
    emission_.row_lo = all.lo;
    LoweredGroup lowered;
    for (size_t i = 0; i < fused_.size(); ++i) {
      const Plan& plan = plan_.phases[i];
      if (plan.kind == Plan::Kind::contract && plan.b != roller::OperandForm::in_place) {
        QUARTET_ASSIGN(Packing packing, lower_packing(graph_, fused_[i], plan));
        lowered.packings.push_back(std::move(packing));
      }
      Lowering phase(graph_, fused_[i], emission_);
      QUARTET_TRY(stand(phase, plan));
      QUARTET_TRY(emit(phase, plan, device_).status());
    }
    QUARTET_ASSIGN(lowered.main, grid.finish(task_count(axes)));
    return lowered;
  }

 private:
  Status check() const {
    const bool sound = plan_.kind == Plan::Kind::rows && !fused_.empty() && plan_.phases.size() == fused_.size() &&
                       plan_.task_tile.size() == plan_.row_extents.size();
    if (sound) return {};
    return make_error(Code::internal, "the plan of a group of %zu phases has %zu", fused_.size(), plan_.phases.size());
  }

  IntExpr extent_of(size_t first, size_t last) const {
    IntExpr extent(1);
    for (size_t i = first; i < last; ++i) extent *= plan_.row_extents[i];
    return extent;
  }

  // The range of row axes [first, last) as one: its points follow one another.
  TaskRange together(Lowering& l, size_t first, size_t last) {
    Builder& b = l.builder();
    if (last == first + 1) return ranges_[first];
    TaskRange range{b.i64(0), b.i64(0), b.i64(1), b.i64(1)};
    for (size_t i = first; i < last; ++i) {
      const ValueId stride = l.index(extent_of(i + 1, last));
      range.lo = b.add(range.lo, b.mul(ranges_[i].lo, stride));
      range.count = b.mul(range.count, ranges_[i].count);
    }
    range.hi = b.add(range.lo, range.count);
    return range;
  }

  // Scratch for what phases hand on.
  Status hold(Lowering& l) {
    IntExpr most(1);
    for (size_t i = 0; i < ranges_.size(); ++i) {
      const IntExpr& extent = plan_.row_extents[i];
      most *= plan_.task_tile[i] == 0 ? extent
              : extent.is_constant()  ? min(extent, IntExpr(plan_.task_tile[i]))
                                      : IntExpr(plan_.task_tile[i]);
    }
    if (!most.is_constant())
      return make_error(Code::internal, "a task of unknown size: %s rows", most.to_text().c_str());
    for (const Plan::Local& local : plan_.locals) {
      const BufferId buffer = l.add_scratch(l.type(local.tensor).dtype, most * IntExpr(local.inner));
      emission_.locals[local.tensor] = {buffer, IntExpr(local.inner)};
    }
    for (const tile::Fused& fused : fused_) emission_.inside.insert(fused.outputs.begin(), fused.outputs.end());
    for (const tile::TensorId tensor : group_.outputs) emission_.inside.erase(tensor);
    return {};
  }

  Status stand(Lowering& phase, const Plan& plan) {
    std::vector<TaskRange> rows;
    size_t first = 0;
    for (const int32_t count : plan.row_runs) {
      const size_t last = first + static_cast<size_t>(count);
      if (count < 1 || last > ranges_.size()) break;
      rows.push_back(together(phase, first, last));
      first = last;
    }
    if (first != ranges_.size())
      return make_error(Code::internal, "the plan of '%s' stands on %zu of %zu row axes", phase.expr().name.c_str(),
                        first, ranges_.size());
    phase.set_rows(std::move(rows));
    return {};
  }

  const tile::TileGraph& graph_;
  const welder::Group& group_;
  const Plan& plan_;
  const std::vector<tile::Fused>& fused_;
  const CpuModel& device_;
  Emission emission_{"rows"};
  std::vector<TaskRange> ranges_;  // by row axis
};

}  // namespace

Result<LoweredGroup> lower_rows(const tile::TileGraph& graph, const welder::Group& group,
                                const std::vector<tile::Fused>& fused, const CpuModel& device) {
  return Rows(graph, group, fused, device).run();
}

}  // namespace quartet::kernel
