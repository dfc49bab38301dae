// Plans that walk a group point by point: maps, reductions, and contractions as chains.
#pragma once

#include <vector>

#include "roller/plan.h"
#include "roller/work.h"

namespace quartet::roller {

// Every sensible choice of the axis along lanes as a plan, unsorted; at least one.
std::vector<Plan> spatial_plans(const tile::TileGraph& graph, const tile::Fused& fused, const CpuModel& device);
// The same where the first `rows` axes are cut by others (Plan::Kind::rows): no run crosses from them to the rest, and
// of their runs only the last may be along lanes.
std::vector<Plan> spatial_row_plans(const tile::TileGraph& graph, const tile::Fused& fused, const CpuModel& device,
                                    int32_t rows);

}  // namespace quartet::roller
