// Plans that walk a group point by point: maps, reductions, and contractions as chains.
#pragma once

#include <vector>

#include "roller/plan.h"
#include "roller/work.h"

namespace quartet::roller {

// Every sensible choice of the axis along lanes as a plan, unsorted; at least one.
std::vector<Plan> spatial_plans(const tile::TileGraph& graph, const tile::Fused& fused, const CpuModel& device);

}  // namespace quartet::roller
