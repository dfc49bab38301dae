#include "roller/work.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "base/checked.h"
#include "roller/construct.h"

namespace quartet::roller {

using tile::BodyNode;
using tile::Fused;
using tile::TileGraph;
using Kind = tile::BodyNode::Kind;

namespace {

int64_t tensor_bytes(const TileGraph& graph, tile::TensorId t, const std::vector<int64_t>& dims) {
  const graph::TensorType& type = graph.tensors[static_cast<size_t>(t)].type;
  return checked_mul(tile::value_at(type.elements(), dims), static_cast<int64_t>(size_of(type.dtype)))
      .value_or(INT64_MAX);
}

int64_t saturated_add(int64_t a, int64_t b) { return checked_add(a, b).value_or(INT64_MAX); }

}  // namespace

int64_t product(int64_t a, int64_t b) { return std::min(checked_mul(a, b).value_or(kMostPoints), kMostPoints); }

int64_t run_extent(const tile::TensorExpr& expr, const std::vector<int32_t>& run, const std::vector<int64_t>& dims) {
  int64_t extent = 1;
  for (const int32_t axis : run) extent = product(extent, tile::value_at(expr.axes[static_cast<size_t>(axis)], dims));
  return std::max<int64_t>(extent, 1);
}

int64_t step_bytes(const IntExpr& step, size_t element_bytes, const std::vector<int64_t>& dims) {
  const int64_t elements = std::clamp(tile::value_at(step, dims), -kMostPoints, kMostPoints);
  return product(std::abs(elements), static_cast<int64_t>(element_bytes));
}

Work measure(const TileGraph& graph, const Fused& fused, const CpuModel& device) {
  Work work;
  work.dims = tile::dim_values(graph.symbols);
  work.points = tile::spatial_points(fused.expr, work.dims);
  work.reduced = tile::reduction_points(fused.expr, work.dims);
  // Of an input only what is read counts: a slice reads a part.
  const tile::Tile whole = tile::whole_tile(fused.expr, work.dims);
  for (size_t i = 0; i < fused.inputs.size(); ++i) {
    const graph::TensorType& type = graph.tensors[static_cast<size_t>(fused.inputs[i])].type;
    int64_t bytes = 0;
    for (const tile::Read& read : fused.expr.reads) {
      if (static_cast<size_t>(read.operand) != i) continue;
      bytes = saturated_add(bytes, tile::box_bytes(tile::propagate(read, type, whole, work.dims), type, work.dims, 1));
    }
    work.read_bytes = saturated_add(work.read_bytes, std::min(bytes, tensor_bytes(graph, fused.inputs[i], work.dims)));
  }
  for (const tile::TensorId t : fused.outputs) {
    work.write_bytes = saturated_add(work.write_bytes, tensor_bytes(graph, t, work.dims));
  }
  work.flops = tile::flops(fused.expr, work.dims);
  size_t widest = 1;
  for (const BodyNode& node : fused.expr.body) {
    if (node.kind == Kind::op || node.kind == Kind::reduced || node.kind == Kind::read) {
      widest = std::max(widest, size_of(node.dtype));
    }
  }
  work.lanes = std::max(1, device.lanes(widest));
  return work;
}

double op_cycles(ScalarOp op, DType dtype, const CpuModel& device) {
  const double simple = 0.5;
  const bool narrow_float = dtype == DType::f16 || dtype == DType::bf16;
  const double rounding = narrow_float ? 3 : 0;  // to f32 and back
  const bool floating = is_float(dtype);
  // A vector divider works through wide vectors in halves.
  const double divider = device.vector_bytes / 16.0 * (dtype == DType::f64 ? 4 : 2);
  switch (op) {
    case ScalarOp::div:
      return (floating ? divider : 20.0 * device.lanes(size_of(dtype))) + rounding;
    case ScalarOp::rem:
    case ScalarOp::floor_div:
    case ScalarOp::floor_mod:
      return floating ? 20 + divider : 20.0 * device.lanes(size_of(dtype));
    case ScalarOp::sqrt:
      return divider * 1.2 + rounding;
    case ScalarOp::exp:
      return 13 + rounding;
    case ScalarOp::log:
      return 14 + rounding;
    case ScalarOp::tanh:
      return 16 + rounding;
    case ScalarOp::erf:
      return 20 + rounding;
    case ScalarOp::sigmoid:
      return 14 + divider + rounding;
    case ScalarOp::sin:
    case ScalarOp::cos:
      return 20 + rounding;
    case ScalarOp::pow:
      return 40 + rounding;
    case ScalarOp::mul:
      return is_int(dtype) && size_of(dtype) == 8 ? 1.5 : simple + rounding;
    case ScalarOp::cast:
      return 1;
    default:
      return simple + rounding;
  }
}

namespace {

// One element of a gather (measured).
double element_cycles(Reuse reuse) { return reuse == Reuse::near ? 1.3 : reuse == Reuse::far ? 2 : 7; }

double access_cycles(const TileGraph& graph, const Fused& fused, const CpuModel& device, const tile::Read& read,
                     const std::vector<int32_t>& run, int32_t lanes, const std::vector<int64_t>& dims) {
  const tile::TensorId t = fused.inputs[static_cast<size_t>(read.operand)];
  const graph::TensorType& type = graph.tensors[static_cast<size_t>(t)].type;
  const IntExpr offset = tile::flat_offset(fused.expr, read, type);
  const auto step = stride(offset, run);
  const double guarded = read.guards.empty() ? 0 : 1.0 * static_cast<double>(read.guards.size());
  const bool indirect = offset.contains_any(is_value_symbol);
  if (!indirect && step && step->is(0)) return 0.25 + guarded;
  const double wide = static_cast<double>(size_of(type.dtype)) * lanes / device.vector_bytes;
  if (!indirect && step && step->is(1)) return 0.5 * std::max(1.0, wide) + guarded;
  const int64_t bytes = indirect || !step ? 0 : step_bytes(*step, size_of(type.dtype), dims);
  return element_cycles(reuse(device, bytes, run_extent(fused.expr, run, dims))) * lanes + guarded;
}

}  // namespace

double vector_cycles(const TileGraph& graph, const Fused& fused, const CpuModel& device,
                     const std::vector<bool>& wanted, const std::vector<int32_t>& run, int32_t lanes,
                     const std::vector<int64_t>& dims) {
  double cycles = 0;
  for (size_t i = 0; i < fused.expr.body.size(); ++i) {
    const BodyNode& node = fused.expr.body[i];
    if (!wanted[i]) continue;
    if (node.kind == Kind::op) {
      const double vectors = std::max(1.0, static_cast<double>(size_of(node.dtype)) * lanes / device.vector_bytes);
      cycles += op_cycles(node.op, node.dtype, device) * vectors;
    } else if (node.kind == Kind::read) {
      cycles += access_cycles(graph, fused, device, fused.expr.reads[static_cast<size_t>(node.read)], run, lanes, dims);
    } else if (node.kind == Kind::index) {
      cycles += 1;
    }
  }
  return cycles;
}

int64_t lines_held(const CpuModel& device, int64_t step) {
  constexpr int64_t kWayBytes = 4096;  // of L1: sets times line
  const MemoryLevel& l1 = device.levels.front();
  const int64_t lines = std::max<int64_t>(1, l1.capacity / l1.line);
  if (step <= 0) return lines;
  const int64_t places = kWayBytes / std::gcd(step, kWayBytes);
  return std::min(lines, places * std::max<int64_t>(1, l1.capacity / kWayBytes));
}

Reuse reuse(const CpuModel& device, int64_t step, int64_t points) {
  const MemoryLevel& l1 = device.levels.front();
  const int64_t held = lines_held(device, step);
  if (step < l1.line || points <= held) return Reuse::near;
  return held <= l1.capacity / l1.line / 32 ? Reuse::crowded : Reuse::far;
}

double bandwidth_for(const CpuModel& device, int64_t bytes) {
  for (const MemoryLevel& level : device.levels) {
    if (level.capacity == 0 || static_cast<double>(bytes) <= 0.75 * static_cast<double>(level.capacity)) {
      return level.bandwidth;
    }
  }
  return device.levels.back().bandwidth;
}

double memory_seconds(const CpuModel& device, double read, double written) {
  const auto set = static_cast<int64_t>(std::min(read + written, 1e15));
  bool beyond = true;
  for (const MemoryLevel& level : device.levels)
    if (!level.shared && level.capacity > 0 && 4 * set <= 3 * level.capacity) beyond = false;
  return (read + (beyond ? 2 : 1) * written) / bandwidth_for(device, set);
}

double overlapped(double compute, double memory) {
  return std::max(compute, memory) + 0.15 * std::min(compute, memory);
}

double wall_time(double task_seconds, int64_t tasks, const CpuModel& device) {
  const int64_t rounds = (std::max<int64_t>(tasks, 1) + device.cores - 1) / device.cores;
  return (task_seconds + kTaskSeconds) * static_cast<double>(rounds);
}

int64_t task_points(double seconds, int64_t points, const CpuModel& device) {
  if (points <= 0) return 1;
  const double each = std::max(seconds / static_cast<double>(points), 1e-15);
  const double worth = std::ceil(kMinTaskSeconds / each);
  // Enough tasks for every core to have a few, so that uneven cores even out; more would only cost.
  const double share = std::ceil(static_cast<double>(points) / (4.0 * device.cores));
  return static_cast<int64_t>(std::min(std::max({worth, share, 1.0}), 1e15));
}

}  // namespace quartet::roller
