// The way of a graph, from a request to an artifact: a table of contents of the stages.
#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/backend.h"
#include "compiler/request.h"

namespace quartet::compiler {

struct StageTime {
  std::string stage;
  double seconds = 0;
};

struct Compiled {
  Bytes artifact;
  std::vector<StageTime> times;
};

// Runs every stage. `cancelled`, if given, is looked at between stages. Failures name the stage. Deterministic: the
// same request gives the same bytes.
Result<Compiled> compile(const Request& request, CodeGenerator& generator,
                         const std::atomic<bool>* cancelled = nullptr);

// The names `dump` understands: graph, simplified, ground (after grinder), tiles, groups, program, kernel, llvm, asm.
std::vector<std::string> dump_stages();
// The text of a stage's result.
Result<std::string> dump(const Request& request, std::string_view stage, CodeGenerator& generator);

}  // namespace quartet::compiler
