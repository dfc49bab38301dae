// From lowered segments to a program: stages, control, where every value lives, and the kernels to generate.
#pragma once

#include <vector>

#include "grinder/place.h"
#include "kernel/lower.h"
#include "program/program.h"
#include "rammer/waves.h"
#include "tile/expr.h"
#include "welder/group.h"

namespace quartet::compiler {

// What the stages made of one segment; `lowered[g]` belongs to `groups[g]`.
struct Piece {
  tile::TileGraph tiles;
  std::vector<welder::Group> groups;
  rammer::Schedule schedule;
  std::vector<kernel::LoweredGroup> lowered;
};

struct Assembly {
  program::Program program;             // KernelInfo::blob and entry not yet set
  std::vector<kernel::Kernel> kernels;  // distinct ones; Program::kernels[i] runs kernels[code[i]]
  std::vector<int32_t> code;
  // Constants that must travel in the artifact: simplification made them, so no caller could give them by digest. They
  // belong to the placed graphs.
  std::vector<const graph::Constant*> carried;
};

// Constants of up to this many bytes stand in the program itself.
inline constexpr size_t kInlineBytes = 256;

// `given` is the request's own graph, whose constants the caller has; `pieces[i]` belongs to `placed.segments[i]`.
Result<Assembly> assemble(const grinder::Placed& placed, const graph::Graph& given, const std::vector<Piece>& pieces);

}  // namespace quartet::compiler
