// The program handle.
#pragma once

#include <memory>
#include <vector>

#include "capi/context.h"
#include "capi/tensor_info.h"
#include "compiler/engine.h"

struct quartet_program : quartet::capi::SharedHandle<quartet::capi::HandleKind::program> {
  const quartet::runtime::LoadedProgram& loaded() const { return *compiled->program; }

  quartet::capi::ContextRef context;
  std::shared_ptr<const quartet::compiler::CompiledProgram> compiled;
  std::vector<quartet::capi::TensorInfo> inputs, outputs;
  int vEUs = 1;  // a run's
};

namespace quartet::capi {

// Owned by the caller; throws bad_alloc.
quartet_program* make_program(quartet_context& context, compiler::ProgramPtr compiled, int vEUs);
// Ok for a live program of this process.
Status check_program(const quartet_program* program);
HostMemory* memory_of(const quartet_program* program);
// How many vEUs run a program under these options.
int veus_of(const quartet_context& context, const Options& options);

}  // namespace quartet::capi
