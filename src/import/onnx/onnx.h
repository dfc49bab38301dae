// ONNX models as graphs. Opsets 1 to 21 of the default domain; of an op that changed before version 7 not every old
// form.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/os.h"
#include "base/status.h"
#include "graph/graph.h"

namespace quartet::import {

struct ImportOptions {
  // An initializer that the model lists among its inputs too, from IR version 4 on, where that says that it may be
  // overridden: an input with a default, else a constant.
  bool initializer_inputs = false;
};

// The graph of a model in memory, which may come from anywhere; `bytes` need not outlive the call. Failures: corrupt
// (the bytes are not a model), unsupported (one error that lists every node that is, with the reason), invalid_argument
// (the model contradicts itself). Tensors in external files are refused.
Result<std::shared_ptr<const graph::Graph>> import_onnx(std::span<const uint8_t> bytes,
                                                        const ImportOptions& options = {});

// The same from a file; external files are read from its folder, never from outside it.
Result<std::shared_ptr<const graph::Graph>> import_onnx_file(const std::string& path, Os& os,
                                                             const ImportOptions& options = {});

}  // namespace quartet::import
