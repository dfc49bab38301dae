// From kernels to what was asked for: text, assembly, or a closed image.
#pragma once

#include "codegen/cpu/target.h"
#include "codegen/request.h"

namespace quartet::codegen {

// Compiles all kernels of a request. Deterministic: the same request gives the same response.
Result<Response> compile(const Request& request);

}  // namespace quartet::codegen
