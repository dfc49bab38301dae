// From a group and its plan to kernel IR: the kernel that computes the group, and the kernels that pack its operands.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/device.h"
#include "kernel/ir.h"
#include "tile/expr.h"
#include "tile/fuse.h"
#include "welder/group.h"

namespace quartet::kernel {

// One argument of a lowered kernel.
struct Argument {
  enum class Kind : uint8_t {
    tensor = 0,  // a tensor of the tile-graph, dense row-major
    panels = 1,  // the packed form of operand tensor `tensor` (see roller::OperandForm)
  };
  Kind kind = Kind::tensor;
  tile::TensorId tensor = -1;
};

struct Lowered {
  Kernel kernel;
  std::vector<Argument> arguments;  // in buffer order
  std::vector<Symbol> dims;         // kernel dim i is this symbol of the graph
};

// A packing kernel: reads a tensor, writes its panels.
struct Packing {
  Lowered lowered;       // arguments: the tensor, then its panels
  bool prepare = false;  // run once at load (the tensor is a constant), else a stage before the group
  IntExpr bytes;         // of the panels, over the graph's dims
};

struct LoweredGroup {
  Lowered main;
  std::vector<Packing> packings;
};

Result<LoweredGroup> lower(const tile::TileGraph& graph, const welder::Group& group, const CpuModel& device);
// The same for a group that is fused already: `graph` gives the tensors' types and the symbols.
Result<LoweredGroup> lower(const tile::TileGraph& graph, const tile::Fused& fused, const roller::Plan& plan,
                           const CpuModel& device);

}  // namespace quartet::kernel
