// Plans for contractions: register micro-tile, tasks, and how operands reach it.
#pragma once

#include <vector>

#include "base/status.h"
#include "roller/plan.h"
#include "roller/work.h"

namespace quartet::roller {

// The most rows a micro-tile of `vectors` vectors a row may have. The accumulators, a row of B and one broadcast
// element of A must be in registers at once, or the loop spills and runs at a third: rows * vectors + vectors + 1 <=
// registers. A class without fused multiply-add needs a register more for every product in flight; then accumulators
// get half the file.
int32_t most_rows(const CpuModel& device, int32_t vectors);

// Cycles of one step of K in a micro-tile: the greatest of multiply-adds, loads from L1, and the latency of the chain.
double step_cycles(const CpuModel& device, int32_t rows, int32_t vectors);

// Whether a register tile would leave lanes idle, because the columns of the product are fewer: a depthwise convolution
// has one.
bool shares_little(const tile::Fused& fused, const CpuModel& device);

Result<std::vector<Plan>> contract_plans(const tile::TileGraph& graph, const tile::Fused& fused,
                                         const CpuModel& device);
// Plans whose tasks are `task_m` rows (0: all) of one outer point and every column, unsorted; at least one.
Result<std::vector<Plan>> contract_row_plans(const tile::TileGraph& graph, const tile::Fused& fused,
                                             const CpuModel& device, int64_t task_m);

}  // namespace quartet::roller
