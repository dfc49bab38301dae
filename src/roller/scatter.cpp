#include "roller/scatter.h"

#include <algorithm>

namespace quartet::roller {
namespace {

constexpr int64_t kTaskElements = 65536;  // of the result: what is copied outweighs the walk over the updates
constexpr double kUpdateCycles = 4;       // to look at an update and pass it by
constexpr double kRowCycles = 6;          // to apply one, beside its elements

}  // namespace

Plan scatter_plan(const tile::TileGraph& graph, const tile::Fused& fused, const CpuModel& device) {
  const tile::TensorExpr& expr = fused.expr;
  const Work work = measure(graph, fused, device);
  const int64_t rows = run_extent(expr, {0}, work.dims), columns = run_extent(expr, {1}, work.dims);
  Plan p;
  p.kind = Plan::Kind::scatter;
  p.tasks = 1;
  const auto add = [&](int32_t axis, int64_t extent, int64_t tile) {
    if (expr.axes[static_cast<size_t>(axis)].is(1)) return;
    p.merged.push_back({axis});
    const bool whole = expr.axes[static_cast<size_t>(axis)].is_constant() && tile >= extent;
    p.task_tile.push_back(whole ? 0 : tile);
    p.tasks = product(p.tasks, (extent + tile - 1) / tile);
  };
  add(0, rows, std::max<int64_t>(1, kTaskElements / columns));
  add(1, columns, kTaskElements);
  if (!p.merged.empty()) p.vector_axis = static_cast<int32_t>(p.merged.size()) - 1;
  const double lanes = work.lanes, points = static_cast<double>(work.points);
  const auto updates = static_cast<double>(work.reduced);
  const double updated = updates * (kRowCycles + static_cast<double>(columns) / lanes);
  const double cycles = points / lanes + updated + updates * kUpdateCycles * static_cast<double>(p.tasks);
  const int64_t bytes = work.read_bytes + work.write_bytes;
  const double compute = cycles / device.clock_hz, memory = static_cast<double>(bytes) / bandwidth_for(device, bytes);
  p.seconds = overlapped(compute, memory);
  p.wall = wall_time(p.seconds / static_cast<double>(p.tasks), p.tasks, device);
  p.flops = static_cast<double>(work.flops);
  p.dram_bytes = static_cast<double>(bytes);
  p.l2_bytes = p.dram_bytes;
  p.reason = format("scatter into %lld tiles, each walks all updates", static_cast<long long>(p.tasks));
  return p;
}

}  // namespace quartet::roller
