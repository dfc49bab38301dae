// The cost model's view of a group: how much there is to do, at the hints of symbolic dims.
#pragma once

#include <cstdint>
#include <vector>

#include "device/device.h"
#include "roller/merge.h"
#include "tile/analysis.h"

namespace quartet::roller {

struct Work {
  std::vector<int64_t> dims;  // value of each graph dim
  int64_t points = 1;         // of the domain
  int64_t reduced = 1;        // reduction points for each of them
  int64_t read_bytes = 0;     // every input once
  int64_t write_bytes = 0;
  int64_t flops = 0;
  int32_t lanes = 1;  // of a vector of the widest type the body computes in
};

// The number of points of a run, at least 1 and cut off at kMostPoints, as are products: planning needs no more.
inline constexpr int64_t kMostPoints = int64_t{1} << 50;
int64_t run_extent(const tile::TensorExpr& expr, const std::vector<int32_t>& run, const std::vector<int64_t>& dims);
int64_t product(int64_t a, int64_t b);

Work measure(const tile::TileGraph& graph, const tile::Fused& fused, const CpuModel& device);

// Cycles of one vector of an operation on a core, at full throughput.
double op_cycles(ScalarOp op, DType dtype, const CpuModel& device);

// Cycles for one vector of points when `run` runs along lanes: operations and accesses of the body nodes for which
// `wanted` holds. Accesses cost by their stride along the run: none, one, or a gather.
double vector_cycles(const tile::TileGraph& graph, const tile::Fused& fused, const CpuModel& device,
                     const std::vector<bool>& wanted, const std::vector<int32_t>& run, int32_t lanes,
                     const std::vector<int64_t>& dims);

// A stride of elements in bytes, its direction aside, cut off at kMostPoints.
int64_t step_bytes(const IntExpr& step, size_t element_bytes, const std::vector<int64_t>& dims);

// How many lines of L1 can hold elements that lie `step` bytes apart: all of it, unless steps of a large power of two
// put them into few sets.
int64_t lines_held(const CpuModel& device, int64_t step);

// How a walk of `points` elements, `step` bytes apart, finds what the walk beside it touched: near, in L1; far, in L2;
// crowded, in L2 because few sets of L1 take all.
enum class Reuse : uint8_t { near, far, crowded };
Reuse reuse(const CpuModel& device, int64_t step, int64_t points);

// Bytes a second one core gets from where a working set of that many bytes lives.
double bandwidth_for(const CpuModel& device, int64_t bytes);

// Time one core takes to move so many bytes in and out. What is written beyond the core's own cache is fetched first.
double memory_seconds(const CpuModel& device, double read, double written);

// Time of computing and moving data at once: the longer of the two hides most of the shorter.
double overlapped(double compute, double memory);

// Time on all cores of so many tasks, the largest of which takes `task_seconds`.
double wall_time(double task_seconds, int64_t tasks, const CpuModel& device);

// How many points of work make a task worth handing out.
int64_t task_points(double seconds, int64_t points, const CpuModel& device);

}  // namespace quartet::roller
