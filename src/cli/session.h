// A model made ready to run, and inputs for it.
#pragma once

#include <string>
#include <vector>

#include "common.h"

namespace cli {

struct Session {
  quartet::Graph graph;
  quartet::Program program;
  double import_ms = 0;  // file to graph
  double ready_ms = 0;   // graph to program: the compile, or the look-up and load
};
Session open_session(const quartet::Context& context, const Common& common, const std::string& model);

// One tensor for each input of the program: from `assignments` (NAME=FILE), else random with `extents` for symbols, the
// given files' shapes counting too.
std::vector<quartet::Tensor> gather_inputs(const quartet::Program& program, const std::vector<std::string>& assignments,
                                           Extents extents, uint64_t seed);

}  // namespace cli
