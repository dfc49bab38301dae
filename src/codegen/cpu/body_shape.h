// What a loop's body is like: decides how many lanes a run has and how often it is repeated.
#pragma once

#include <vector>

#include "codegen/cpu/target.h"
#include "kernel/ir.h"

namespace quartet::codegen {

struct BodyShape {
  int lanes = 1;          // of a run, so that the main type fills whole registers
  bool masks = true;      // a run's tail can be masked by instructions, else it goes lane by lane
  size_t statements = 0;  // in all regions
  bool nested = false;    // has loops, reduces or branches
};

// `also`: a type that counts besides those of the body (a reduction's states), or invalid.
BodyShape body_shape(const kernel::Kernel& kernel, const kernel::Region& body, const std::vector<bool>& varying,
                     const Target& target, DType also = DType::invalid);

// About how many statements the code of a kernel repeats in all, saturating: unrolled loops, runs of lanes and tails,
// partial states, rows of a tile.
uint64_t emitted_statements(const kernel::Kernel& kernel, const Target& target);

}  // namespace quartet::codegen
