// LLVM as a guest in somebody's process: set up once, silent, and unable to end the process.
#pragma once

#include <functional>

#include "base/status.h"

namespace quartet::codegen {

// Runs `work` with LLVM ready. What LLVM calls a fatal error ends the work (its memory is lost) and becomes a failure.
// Any number of threads may be inside at once.
Status with_llvm(const std::function<Status()>& work);

}  // namespace quartet::codegen
