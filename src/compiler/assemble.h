// From lowered groups to a program: stages, buffers and the kernels to generate.
#pragma once

#include <vector>

#include "kernel/lower.h"
#include "program/program.h"
#include "rammer/waves.h"
#include "tile/expr.h"
#include "welder/group.h"

namespace quartet::compiler {

struct Assembly {
  program::Program program;             // KernelInfo::blob and entry not yet set
  std::vector<kernel::Kernel> kernels;  // distinct ones; Program::kernels[i] runs kernels[code[i]]
  std::vector<int32_t> code;
  // Constants that must travel in the artifact: simplification made them, so no caller could give them by digest.
  std::vector<const graph::Constant*> carried;
};

// Constants of up to this many bytes stand in the program itself.
inline constexpr size_t kInlineBytes = 256;

// `graph` is the simplified graph of `tiles`, `given` the request's own, whose constants the caller has; `lowered[g]`
// belongs to `groups[g]`.
Result<Assembly> assemble(const graph::Graph& graph, const graph::Graph& given, const tile::TileGraph& tiles,
                          const std::vector<welder::Group>& groups, const rammer::Schedule& schedule,
                          std::vector<kernel::LoweredGroup> lowered);

}  // namespace quartet::compiler
