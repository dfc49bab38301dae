#include "roller/spatial.h"

#include <algorithm>
#include <cmath>

#include "roller/construct.h"

namespace quartet::roller {
namespace {

using tile::Fused;
using tile::Reduction;
using tile::TensorExpr;
using tile::TileGraph;

constexpr int32_t kMostRows = 6;     // of a chain kernel
constexpr double kChainLatency = 4;  // cycles from one multiply-add of a chain to the next

int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

class Spatial {
 public:
  Spatial(const TileGraph& graph, const Fused& fused, const CpuModel& device, int32_t rows)
      : graph_(graph),
        fused_(fused),
        expr_(fused.expr),
        device_(device),
        work_(measure(graph, fused, device)),
        accesses_(accesses(graph, fused)),
        runs_(merge_axes(expr_, accesses_, 0, rows)) {
    row_runs_ = runs_.size();
    for (auto& run : merge_axes(expr_, accesses_, rows, expr_.spatial)) runs_.push_back(std::move(run));
    for (const auto& run : runs_) {
      extents_.push_back(run_extent(expr_, run, work_.dims));
    }
    reduction_ = merge_axes(expr_, accesses_, expr_.spatial, static_cast<int32_t>(expr_.axes.size()));
    if (!reduction_.empty()) reduction_run_ = reduction_.back();
  }

  std::vector<Plan> plans() {
    std::vector<Plan> all;
    for (size_t r = row_runs_ == 0 ? 0 : row_runs_ - 1; r < runs_.size(); ++r)
      all.push_back(plan(static_cast<int32_t>(r)));
    // Without an axis to run along: a single point, or the reduction's own elements.
    if (runs_.empty() || (reduces() && !chains())) all.push_back(plan(-1));
    return all;
  }

 private:
  bool reduces() const { return expr_.reduction != Reduction::none; }
  bool chains() const { return expr_.reduction == Reduction::contraction; }

  Plan plan(int32_t vector_axis) {
    Plan p;
    p.kind = chains() ? Plan::Kind::chain : reduces() ? Plan::Kind::reduce : Plan::Kind::map;
    p.merged = runs_;
    p.vector_axis = vector_axis;
    p.reduction = reduction_;
    if (chains()) choose_rows(p);
    const double cycles = chains() ? chain_cycles(p) : reduces() ? reduce_cycles(vector_axis) : map_cycles(vector_axis);
    const int64_t bytes = work_.read_bytes + work_.write_bytes;
    const double compute = cycles / device_.clock_hz,
                 memory = memory_seconds(device_, static_cast<double>(work_.read_bytes),
                                         static_cast<double>(work_.write_bytes));
    p.seconds = overlapped(compute, memory);
    p.compute = compute;
    p.flops = static_cast<double>(work_.flops);
    p.dram_bytes = static_cast<double>(bytes);
    cut(p);
    p.l2_bytes = static_cast<double>(l2_bytes(p));
    p.wall = wall_time(p.seconds * largest_share(p), p.tasks, device_);
    p.reason = reason(p, compute, memory);
    return p;
  }

  double points() const { return static_cast<double>(work_.points); }

  // Vectors that cover the domain when a run is along lanes; tails count whole.
  double vectors(int32_t vector_axis) const {
    if (vector_axis < 0) return points();
    const auto extent = extents_[static_cast<size_t>(vector_axis)];
    return points() / static_cast<double>(extent) * std::ceil(static_cast<double>(extent) / work_.lanes);
  }

  std::vector<int32_t> run_of(int32_t vector_axis) const {
    return vector_axis < 0 ? std::vector<int32_t>() : runs_[static_cast<size_t>(vector_axis)];
  }

  // Stores go to row-major addresses: lanes along any run but the innermost scatter (measured, as gathers are).
  double store_cycles(int32_t vector_axis, int32_t lanes) const {
    if (vector_axis + 1 == static_cast<int32_t>(runs_.size()) || lanes == 1) {
      return static_cast<double>(fused_.outputs.size());
    }
    int64_t inner = 1;
    for (size_t r = static_cast<size_t>(vector_axis) + 1; r < runs_.size(); ++r) inner = product(inner, extents_[r]);
    double cycles = 0;
    for (const tile::TensorId t : fused_.outputs) {
      const auto bytes = static_cast<int64_t>(size_of(graph_.tensors[static_cast<size_t>(t)].type.dtype));
      const Reuse found = reuse(device_, product(inner, bytes), extents_[static_cast<size_t>(vector_axis)]);
      cycles += lanes * (found == Reuse::near ? 1.6 : found == Reuse::far ? 2.2 : 4.7);
    }
    return cycles;
  }

  double map_cycles(int32_t vector_axis) const {
    const int32_t lanes = vector_axis < 0 ? 1 : work_.lanes;
    const double each =
        vector_cycles(graph_, fused_, device_, tile::in_epilogue(expr_), run_of(vector_axis), lanes, work_.dims) +
        store_cycles(vector_axis, lanes);
    return vectors(vector_axis) * each;
  }

  // Points walked side by side hide the latency of each other's chain: those of the innermost other run.
  void choose_rows(Plan& p) const {
    p.rows = 1;
    for (size_t r = runs_.size(); r-- > 0;) {
      if (static_cast<int32_t>(r) == p.vector_axis) continue;
      p.row_axis = static_cast<int32_t>(r);
      p.rows = static_cast<int32_t>(std::min<int64_t>(kMostRows, extents_[r]));
      return;
    }
  }

  double chain_cycles(const Plan& p) const {
    const int32_t lanes = p.vector_axis < 0 ? 1 : work_.lanes;
    const std::vector<bool> element = tile::in_element(expr_), epilogue = epilogue_only(element);
    const std::vector<int32_t> run = run_of(p.vector_axis);
    const double each = vector_cycles(graph_, fused_, device_, element, run, lanes, work_.dims) + 0.5;
    const double end =
        vector_cycles(graph_, fused_, device_, epilogue, run, lanes, work_.dims) + store_cycles(p.vector_axis, lanes);
    return vectors(p.vector_axis) *
           (static_cast<double>(work_.reduced) * std::max(each, kChainLatency / p.rows) + end + 8.0 / p.rows);
  }

  double reduce_cycles(int32_t vector_axis) const {
    const auto reduced = static_cast<double>(work_.reduced);
    const std::vector<bool> element = tile::in_element(expr_), epilogue = epilogue_only(element);
    const double combine = combine_cycles();
    if (vector_axis >= 0) {
      const std::vector<int32_t> run = run_of(vector_axis);
      const double each =
          element_passes() * vector_cycles(graph_, fused_, device_, element, run, work_.lanes, work_.dims) + combine;
      // Partial states of every lane do not fit the registers: each element updates one in L1 (measured).
      const double state = 3.5 + crowded_reads(element) * 8;
      const double end = vector_cycles(graph_, fused_, device_, epilogue, run, work_.lanes, work_.dims) + 20 +
                         store_cycles(vector_axis, work_.lanes);
      return vectors(vector_axis) * (reduced * (each + state) + end);
    }
    const double each =
        element_passes() * vector_cycles(graph_, fused_, device_, element, reduction_run_, work_.lanes, work_.dims) +
        combine;
    const double end = vector_cycles(graph_, fused_, device_, epilogue, {}, 1, work_.dims) + 25 + store_cycles(-1, 1);
    return points() * (std::ceil(reduced / work_.lanes) * each + end);
  }

  // Reads whose steps along the reduction push each other out of L1, so that every vector comes from further away.
  int crowded_reads(const std::vector<bool>& element) const {
    int count = 0;
    for (size_t i = 0; i < expr_.body.size(); ++i) {
      const tile::BodyNode& node = expr_.body[i];
      if (!element[i] || node.kind != tile::BodyNode::Kind::read) continue;
      const tile::Read& read = expr_.reads[static_cast<size_t>(node.read)];
      const tile::TensorId t = fused_.inputs[static_cast<size_t>(read.operand)];
      const graph::TensorType& type = graph_.tensors[static_cast<size_t>(t)].type;
      const auto step = stride(tile::flat_offset(expr_, read, type), reduction_run_);
      if (!step) continue;
      const int64_t bytes = step_bytes(*step, size_of(type.dtype), work_.dims);
      count += reuse(device_, bytes, work_.reduced) == Reuse::crowded ? 1 : 0;
    }
    return count;
  }

  std::vector<bool> epilogue_only(const std::vector<bool>& element) const {
    std::vector<bool> wanted = tile::in_epilogue(expr_);
    for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = wanted[i] && !element[i];
    return wanted;
  }

  // Softmax statistics look at each element for the maximum, then for the sum.
  double element_passes() const { return expr_.reduction == Reduction::softmax_stats ? 2 : 1; }

  double combine_cycles() const {
    const DType type = expr_.body[static_cast<size_t>(expr_.element)].dtype;
    switch (expr_.reduction) {
      case Reduction::softmax_stats:
        return 2 * op_cycles(ScalarOp::max, type, device_) + op_cycles(ScalarOp::exp, type, device_) + 0.5;
      case Reduction::max:
      case Reduction::min:
        return is_float(type) ? 1.5 : 0.5;  // NaN and signed zeros take extra steps
      case Reduction::argmax:
      case Reduction::argmin:
        return 3;
      default:
        return 0.5;
    }
  }

  // Cuts the domain into tasks: whole inner runs while they fit a task, then a piece of one run, then single points.
  void cut(Plan& p) const {
    const int64_t target = task_points(p.seconds, work_.points, device_);
    p.task_tile.assign(runs_.size(), 0);
    p.tasks = 1;
    int64_t inner = 1;
    bool cut_done = false;
    for (size_t r = runs_.size(); r-- > 0;) {
      const int64_t extent = extents_[r];
      if (cut_done) {
        p.task_tile[r] = 1;
        p.tasks = product(p.tasks, extent);
        continue;
      }
      const int64_t grain = static_cast<int32_t>(r) == p.vector_axis || r + 1 == runs_.size() ? granule() : 1;
      const bool fixed = is_static(runs_[r]);
      const int64_t wanted = std::max<int64_t>(1, (target + inner / 2) / inner);
      const int64_t tile = round_up(fixed && r == 0 ? even_piece(extent, wanted) : wanted, grain);
      if (tile >= extent && (fixed || r > 0)) {
        inner = product(inner, extent);
        continue;
      }
      p.task_tile[r] = tile;
      p.tasks = product(p.tasks, (extent + tile - 1) / tile);
      cut_done = true;
    }
  }

  // About `wanted` of `extent`, so that the pieces are equal, and whole rounds of the cores if there is one.
  int64_t even_piece(int64_t extent, int64_t wanted) const {
    int64_t pieces = std::max<int64_t>(1, extent / wanted);
    if (pieces > device_.cores) pieces -= pieces % device_.cores;
    return (extent + pieces - 1) / pieces;
  }

  // The share of the work that the largest task has.
  double largest_share(const Plan& p) const {
    double share = 1;
    for (size_t r = 0; r < runs_.size(); ++r) {
      if (p.task_tile[r] > 0)
        share *= std::min(1.0, static_cast<double>(p.task_tile[r]) / static_cast<double>(extents_[r]));
    }
    return share;
  }

  bool is_static(const std::vector<int32_t>& run) const {
    return std::all_of(run.begin(), run.end(),
                       [&](int32_t a) { return expr_.axes[static_cast<size_t>(a)].is_constant(); });
  }

  // Pieces of the innermost run: whole vectors and whole cache lines of every output, so that no two tasks share a
  // line.
  int64_t granule() const {
    int64_t elements = work_.lanes;
    for (const tile::TensorId t : fused_.outputs) {
      const auto bytes = static_cast<int64_t>(size_of(graph_.tensors[static_cast<size_t>(t)].type.dtype));
      elements = std::max(elements, device_.levels.front().line / bytes);
    }
    return elements;
  }

  int64_t l2_bytes(const Plan& p) const {
    std::vector<int64_t> extents(static_cast<size_t>(expr_.spatial), 0);
    for (size_t r = 0; r < runs_.size(); ++r) {
      if (runs_[r].size() == 1) extents[static_cast<size_t>(runs_[r][0])] = p.task_tile[r];
    }
    return tile::traffic(graph_, fused_, work_.dims, extents, device_.levels.front().line).total();
  }

  std::string reason(const Plan& p, double compute, double memory) const {
    std::string text = memory > compute ? "memory bound" : "compute bound";
    if (p.vector_axis >= 0) {
      text += format(", %d lanes along run %d", work_.lanes, p.vector_axis);
    } else if (reduces()) {
      text += format(", %d lanes along the reduction", work_.lanes);
    } else {
      text += ", one point";
    }
    text +=
        p.tasks > 1 ? format(", %lld tasks", static_cast<long long>(p.tasks)) : ", one task: too little work to split";
    return text;
  }

  const TileGraph& graph_;
  const Fused& fused_;
  const TensorExpr& expr_;
  const CpuModel& device_;
  Work work_;
  Accesses accesses_;
  std::vector<std::vector<int32_t>> runs_;
  size_t row_runs_ = 0;  // how many of them are rows cut by others
  std::vector<int64_t> extents_;
  std::vector<int32_t> reduction_run_;
  std::vector<std::vector<int32_t>> reduction_;
};

}  // namespace

std::vector<Plan> spatial_plans(const TileGraph& graph, const Fused& fused, const CpuModel& device) {
  return Spatial(graph, fused, device, 0).plans();
}

std::vector<Plan> spatial_row_plans(const TileGraph& graph, const Fused& fused, const CpuModel& device, int32_t rows) {
  return Spatial(graph, fused, device, rows).plans();
}

}  // namespace quartet::roller
