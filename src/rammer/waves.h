// Waves: which groups are independent and may run together.
#pragma once

#include <cstdint>
#include <vector>

#include "device/device.h"
#include "tile/expr.h"
#include "welder/group.h"

namespace quartet::rammer {

struct Schedule {
  std::vector<int32_t> wave;                // per group, ascending along dependencies
  std::vector<int32_t> order;               // group numbers in stage order: by wave, then as given
  std::vector<std::vector<int32_t>> after;  // per group, the groups it must wait for (direct, reduced)
};

// First form: as-soon-as-possible levels; groups of one level share a wave.
Schedule schedule(const tile::TileGraph& graph, const std::vector<welder::Group>& groups, const CpuModel& device);

}  // namespace quartet::rammer
