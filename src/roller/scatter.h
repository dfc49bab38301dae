// The plan of a scatter.
#pragma once

#include "roller/plan.h"
#include "roller/work.h"

namespace quartet::roller {

// Rows are cut first, so that a task's rows are whole; each task walks all updates, so there are few tasks.
Plan scatter_plan(const tile::TileGraph& graph, const tile::Fused& fused, const CpuModel& device);

}  // namespace quartet::roller
