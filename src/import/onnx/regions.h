// What the importers of ops with graphs inside share: If, Loop and Scan.
#pragma once

#include <optional>
#include <vector>

#include "import/onnx/node.h"

namespace quartet::import::onnx {

Result<const Graph*> graph_attr(NodeContext& c, const char* name);
bool any_failed(const std::vector<Value>& values);
// Exporters give scalars as tensors of one element, too.
Result<ValueId> scalar_of(NodeContext& c, ValueId id, DType dtype, const char* what);
std::optional<bool> known_flag(NodeContext& c, const Value& value);
Value constant_flag(bool value);
std::vector<graph::TensorType> types_of(NodeContext& c, const std::vector<ValueId>& ids);

// A run-known dim with a name of its own that begins with `kind`. `most`: a bound, if it is known before the run; one
// that says no more than that there is none is left out.
Result<IntExpr> declare_run_dim(NodeContext& c, const char* kind, std::optional<IntExpr> most, int64_t least = 0);

// A loop being written: the region is open between `begin` and `end`.
struct LoopWriter {
  explicit LoopWriter(NodeContext& context) : c(context) {}

  NodeContext& c;
  int32_t region = -1;
  ValueId iteration = graph::kNoValue;
  std::vector<ValueId> carried;

  // The types of carried values inside.
  Status begin(const std::vector<graph::TensorType>& types);
  // `yields`: the condition, the carried values, the stacked ones. `births`: dims of carried values that change.
  Result<std::vector<ValueId>> end(ValueId trip, ValueId condition, const std::vector<ValueId>& initial,
                                   const std::vector<ValueId>& yields, const std::optional<IntExpr>& count,
                                   const graph::Shape& births = {});
};

}  // namespace quartet::import::onnx
