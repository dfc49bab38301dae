// Groups: connected parts of the tile-graph that become one kernel each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/device.h"
#include "roller/plan.h"
#include "tile/expr.h"

namespace quartet::welder {

enum class EdgeLevel : uint8_t { registers = 0, l2 = 1, dram = 2 };

struct Group {
  // Not empty: the group is these, one after the other on a tile of rows they share; what one makes for another stays
  // in the task's scratch (EdgeLevel::l2). A phase's own outputs are whatever is read beside it, and its plan is
  // plan.phases' part for it. Then `nodes` are all of theirs, `core` is none, `domain` is the last phase's, `outputs`
  // and `inputs` are what crosses the border of the whole.
  std::vector<Group> phases;
  // Node numbers of the tile-graph, ascending (topological). A view node may be in several groups; any other node is in
  // exactly one. tile::fuse(graph, nodes, core, domain, outputs) gives them as one tensor expression over `inputs`: it
  // always succeeds on a group of weld, and spares its reader every rule about views and members.
  std::vector<int32_t> nodes;
  // The node whose reduction or contraction the group is built around, or -1 for a map group. Members before it are
  // inlined into its reads; members after it (its epilogue) share its spatial domain point by point.
  int32_t core = -1;
  // The group's domain is the spatial axes of this node (the core if there is one, else the last node).
  int32_t domain = -1;
  // Tensors the group writes. Each is dense row-major and has the domain's elements in the domain's own linear order;
  // its shape differs from the domain's at most by a reshape ([b*t, n] and [b, t, n]).
  std::vector<tile::TensorId> outputs;
  // Tensors read from memory, once each, in order of first use.
  std::vector<tile::TensorId> inputs;
  roller::Plan plan;
  std::string reason;  // one line: why these were fused, or what stopped the next one
};

struct Options {
  bool fusion = true;  // false: every non-view node is its own group (views stay maps)
};

// Chooses groups and their plans for the device. Groups come in topological order.
Result<std::vector<Group>> weld(const tile::TileGraph& graph, const CpuModel& device, const Options& options);

std::string print(const tile::TileGraph& graph, const std::vector<Group>& groups);

}  // namespace quartet::welder
