// The graph handle.
#pragma once

#include <memory>
#include <vector>

#include "capi/context.h"
#include "capi/tensor_info.h"
#include "graph/graph.h"

struct quartet_graph : quartet::capi::SharedHandle<quartet::capi::HandleKind::graph> {
  quartet::capi::ContextRef context;
  std::shared_ptr<const quartet::graph::Graph> graph;
  std::vector<quartet::capi::TensorInfo> inputs, outputs;
  std::vector<std::string> symbols;  // entry-known dims
};

namespace quartet::capi {

// Owned by the caller; throws bad_alloc.
quartet_graph* make_graph(quartet_context& context, std::shared_ptr<const graph::Graph> graph);
// Ok for a live graph of this process.
Status check_graph(const quartet_graph* graph);
HostMemory* memory_of(const quartet_graph* graph);

}  // namespace quartet::capi
