// The tile-graph as the welder walks it, and sets of nodes as groups to be.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "roller/rows.h"
#include "tile/fuse.h"
#include "welder/group.h"

namespace quartet::welder {

// A set of anchored nodes with all that making it one kernel decides.
struct Candidate {
  std::vector<int32_t> anchored;                         // ascending
  Group group;                                           // with its plan; the reason is written at the end
  double cost = 0;                                       // seconds on the device, the stage's own cost included
  std::shared_ptr<const tile::Fused> fused;              // nothing if the group has phases
  std::vector<std::shared_ptr<const Candidate>> phases;  // of a group of phases, in order
};

// Anchored nodes need a group of their own or a place in another's: all but views that somebody reads through. A view
// is anchored when its result is a graph output, when a chain of views grows too long, or when `anchor` says so.
class Graph {
 public:
  Graph(const tile::TileGraph& graph, const CpuModel& device);

  bool anchored(int32_t node) const { return anchored_[static_cast<size_t>(node)]; }
  // Makes a view anchored; the walk's relations are derived anew.
  void anchor(int32_t view);
  const std::vector<int32_t>& anchored_nodes() const { return nodes_; }
  // Anchored nodes that the node reads, directly or through views; ascending, once each.
  const std::vector<int32_t>& sources(int32_t node) const { return sources_[static_cast<size_t>(node)]; }
  // Anchored nodes that read any result of the node.
  const std::vector<int32_t>& readers(int32_t node) const { return readers_[static_cast<size_t>(node)]; }

  // Anchored nodes that read a view's result, directly or through other views.
  const std::vector<int32_t>& readers_of_view(int32_t view) const {
    return tensor_readers_[static_cast<size_t>(graph_->nodes[static_cast<size_t>(view)].results[0])];
  }

  // The set as one group with its best plan. Fails with failed_precondition, saying why, when it cannot be one.
  Result<Candidate> candidate(std::vector<int32_t> anchored) const;
  // Groups one after the other on tiles of rows they share. Fails like `candidate`. Phases of phases are taken apart.
  Result<Candidate> rows(const std::vector<std::shared_ptr<const Candidate>>& parts, roller::RowsMemo& memo) const;
  // Views that are not anchored and whose values the node reads directly, through other views or not.
  std::vector<int32_t> views_of(int32_t node) const;

  const tile::TileGraph& tiles() const { return *graph_; }

 private:
  void derive();
  std::vector<std::shared_ptr<const Candidate>> in_order(std::vector<std::shared_ptr<const Candidate>> phases) const;
  std::vector<tile::TensorId> outputs_of(const std::vector<int32_t>& anchored) const;

  // Not references: a trial is a copy that may be kept.
  const tile::TileGraph* graph_;
  const CpuModel* device_;
  std::vector<bool> anchored_;
  std::vector<int32_t> nodes_;
  std::vector<std::vector<int32_t>> sources_, readers_;
  std::vector<std::vector<int32_t>> tensor_readers_;  // anchored nodes that read the tensor, by tensor
};

}  // namespace quartet::welder
