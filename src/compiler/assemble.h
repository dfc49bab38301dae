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
};

// `lowered[g]` belongs to `groups[g]`. Constants of up to kInlineBytes travel inside the program, as do those that
// simplification made, which no caller could give by digest; `given` are the constants of the request's own graph.
inline constexpr size_t kInlineBytes = 256;
Result<Assembly> assemble(const graph::Graph& graph, const graph::Graph& given, const tile::TileGraph& tiles,
                          const std::vector<welder::Group>& groups, const rammer::Schedule& schedule,
                          std::vector<kernel::LoweredGroup> lowered);

}  // namespace quartet::compiler
