// A segment's groups as stages of the program.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/assemble.h"

namespace quartet::compiler {

class StageBuilder {
 public:
  // Adds to `result`. `given`: the graph whose constants the caller has.
  StageBuilder(Assembly& result, const graph::Graph& given);

  // Stages [first, first + count) of the program.
  struct Range {
    int32_t first = 0, count = 0;
  };
  // `graph` is the segment's; `inputs` and `outputs` say where its inputs and outputs live, by number.
  Result<Range> add(const Piece& piece, const graph::Graph& graph, std::span<const program::BufferRef> inputs,
                    std::span<const program::BufferRef> outputs);

  program::BufferRef constant(const graph::Constant& source);
  // A slot; in a region if it has to be, or if it shall be.
  program::BufferRef workspace(IntExpr bytes, bool grows = false);

 private:
  void place_tensors(const graph::Graph& graph, std::span<const program::BufferRef> inputs,
                     std::span<const program::BufferRef> outputs);
  int32_t add_kernel(const kernel::Lowered& lowered);
  Result<program::Stage> make_stage(const kernel::Lowered& lowered, double seconds);
  Status add_group(int32_t g);
  void sort_stages();

  Assembly& result_;
  program::Program& program_;
  std::unordered_set<Digest> given_;
  std::unordered_map<Digest, int32_t> constants_;   // number in the program
  std::unordered_map<Digest, int32_t> kernel_ids_;  // number among the distinct kernels

  // Of the segment at hand.
  const Piece* piece_ = nullptr;
  std::vector<program::Stage> stages_;
  std::vector<std::optional<program::BufferRef>> home_;  // per tensor
  std::vector<int32_t> stage_of_group_;
  std::vector<IntExpr> tasks_;
  std::map<tile::TensorId, program::BufferRef> panels_;  // of the group at hand
  std::vector<int32_t> packing_stages_;                  // of the group at hand
};

}  // namespace quartet::compiler
