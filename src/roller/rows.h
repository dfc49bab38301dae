// Plans for groups of phases that share rows: successive reductions over a row with what stands between them, kept in
// the core's own cache from the first read to the last write.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "base/status.h"
#include "device/device.h"
#include "roller/plan.h"
#include "tile/fuse.h"

namespace quartet::roller {

// Plans of single phases, which the same phase needs in many a group that is tried. For one graph and one device.
struct RowsMemo {
  // By phase, how many of its axes are rows, and rows of a task.
  std::map<std::tuple<std::shared_ptr<const tile::Fused>, int32_t, int64_t>, std::vector<Plan>> plans;
};

// `phases` in an order in which each reads only what earlier ones or others outside made; `outputs`: tensors that leave
// the group. Fails with failed_precondition, saying why, when the phases share no rows, or when the rows of the
// smallest tile do not fit the core's own cache.
Result<Plan> rows_plan(const tile::TileGraph& graph, const std::vector<std::shared_ptr<const tile::Fused>>& phases,
                       const std::vector<tile::TensorId>& outputs, const CpuModel& device, RowsMemo& memo);

}  // namespace quartet::roller
