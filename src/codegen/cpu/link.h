// Links an object into one closed, position-independent image with JITLink. Nothing is mapped or run.
#pragma once

#include <string>
#include <vector>

#include <llvm/Support/MemoryBuffer.h>

#include "codegen/request.h"

namespace quartet::codegen {

// `symbols`: the functions whose offsets are wanted, `names`: what messages call them. An object that refers to
// anything outside itself, or whose code depends on where it lies, is refused.
Result<Blob> link_closed(llvm::MemoryBufferRef object, const std::vector<std::string>& symbols,
                         const std::vector<std::string>& names);

}  // namespace quartet::codegen
