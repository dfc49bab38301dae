#include "welder/candidates.h"

#include <algorithm>

#include "roller/construct.h"

namespace quartet::welder {
namespace {

constexpr int32_t kMostViews = 32;  // one through the other
constexpr size_t kMostBody = 256;   // weight of a group's body: beyond, registers and compile time suffer
constexpr size_t kLongWeight = 16;  // of a node that becomes a few hundred instructions; of others: 1
constexpr size_t kMostInputs = 32;  // tensors a kernel reads
constexpr size_t kMostPhases = 12;

void add_unique(std::vector<int32_t>& list, int32_t value) {
  const auto at = std::lower_bound(list.begin(), list.end(), value);
  if (at == list.end() || *at != value) list.insert(at, value);
}

size_t weight(const tile::TensorExpr& expr) {
  size_t sum = 0;
  for (const tile::BodyNode& node : expr.body) {
    const bool is_long = node.kind == tile::BodyNode::Kind::op &&
                         (node.op == ScalarOp::sin || node.op == ScalarOp::cos || node.op == ScalarOp::pow ||
                          (node.op == ScalarOp::rem && is_float(node.dtype)));
    sum += is_long ? kLongWeight : 1;
  }
  return sum;
}

// Kernels do float remainders by a loop, and a contraction's tile is finished without any.
bool loops_in_a_tile(const tile::TensorExpr& expr) {
  return expr.reduction == tile::Reduction::contraction &&
         std::any_of(expr.body.begin(), expr.body.end(), [](const tile::BodyNode& node) {
           return node.kind == tile::BodyNode::Kind::op && node.op == ScalarOp::rem && is_float(node.dtype);
         });
}

}  // namespace

Graph::Graph(const tile::TileGraph& graph, const CpuModel& device) : graph_(&graph), device_(&device) {
  anchored_.assign(graph.nodes.size(), false);
  std::vector<int32_t> depth(graph.nodes.size());  // views in a row
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const tile::Node& node = graph.nodes[n];
    bool anchor = !node.expr.is_view;
    for (const tile::TensorId t : node.results)
      anchor = anchor || !graph.tensors[static_cast<size_t>(t)].outputs.empty();
    for (const tile::TensorId t : node.operands) {
      const int32_t producer = graph.tensors[static_cast<size_t>(t)].producer;
      if (producer >= 0) depth[n] = std::max(depth[n], depth[static_cast<size_t>(producer)]);
    }
    ++depth[n];
    if (depth[n] > kMostViews) anchor = true;
    if (anchor) depth[n] = 0;
    anchored_[n] = anchor;
  }
  derive();
}

void Graph::anchor(int32_t view) {
  anchored_[static_cast<size_t>(view)] = true;
  derive();
}

void Graph::derive() {
  const size_t count = graph_->nodes.size();
  nodes_.clear();
  sources_.assign(count, {});
  readers_.assign(count, {});
  tensor_readers_.assign(graph_->tensors.size(), {});
  // What stands behind a tensor: the anchored node it comes from, or that of the view's operand.
  std::vector<int32_t> behind(graph_->tensors.size(), -1);
  for (size_t n = 0; n < count; ++n) {
    const tile::Node& node = graph_->nodes[n];
    const auto number = static_cast<int32_t>(n);
    if (anchored_[n]) nodes_.push_back(number);
    for (const tile::TensorId t : node.operands) {
      const int32_t source = behind[static_cast<size_t>(t)];
      if (anchored_[n] && source >= 0) {
        add_unique(sources_[n], source);
        add_unique(readers_[static_cast<size_t>(source)], number);
      }
    }
    for (const tile::TensorId t : node.results) {
      behind[static_cast<size_t>(t)] = anchored_[n] ? number : behind[static_cast<size_t>(node.operands[0])];
    }
  }
  for (size_t n = count; n-- > 0;) {
    const tile::Node& node = graph_->nodes[n];
    for (const tile::TensorId t : node.operands) {
      auto& list = tensor_readers_[static_cast<size_t>(t)];
      if (anchored_[n]) {
        add_unique(list, static_cast<int32_t>(n));
      } else {
        for (const int32_t reader : tensor_readers_[static_cast<size_t>(node.results[0])]) add_unique(list, reader);
      }
    }
  }
}

std::vector<int32_t> Graph::views_of(int32_t node) const {
  std::vector<int32_t> views, open = {node};
  while (!open.empty()) {
    const int32_t n = open.back();
    open.pop_back();
    for (const tile::TensorId t : graph_->nodes[static_cast<size_t>(n)].operands) {
      const int32_t producer = graph_->tensors[static_cast<size_t>(t)].producer;
      if (producer < 0 || anchored(producer) || std::binary_search(views.begin(), views.end(), producer)) continue;
      add_unique(views, producer);
      open.push_back(producer);
    }
  }
  return views;
}

std::vector<tile::TensorId> Graph::outputs_of(const std::vector<int32_t>& anchored) const {
  std::vector<tile::TensorId> outputs;
  for (const int32_t n : anchored) {
    for (const tile::TensorId t : graph_->nodes[static_cast<size_t>(n)].results) {
      const auto& readers = tensor_readers_[static_cast<size_t>(t)];
      const bool outside = std::any_of(readers.begin(), readers.end(), [&](int32_t reader) {
        return !std::binary_search(anchored.begin(), anchored.end(), reader);
      });
      if (outside || !graph_->tensors[static_cast<size_t>(t)].outputs.empty()) outputs.push_back(t);
    }
  }
  return outputs;
}

Result<Candidate> Graph::candidate(std::vector<int32_t> anchored) const {
  Candidate made;
  Group& group = made.group;
  group.nodes = anchored;
  for (const int32_t n : anchored) {
    for (const int32_t view : views_of(n)) add_unique(group.nodes, view);
    if (graph_->nodes[static_cast<size_t>(n)].expr.reduction == tile::Reduction::none) continue;
    if (group.core >= 0) return make_error(Code::failed_precondition, "two reductions in one kernel");
    group.core = n;
  }
  group.domain = group.core >= 0 ? group.core : anchored.back();
  group.outputs = outputs_of(anchored);
  // A node nobody reads still has its place; it writes its first result.
  if (group.outputs.empty())
    group.outputs.push_back(graph_->nodes[static_cast<size_t>(anchored.back())].results.front());
  if (group.core >= 0 && group.outputs != graph_->nodes[static_cast<size_t>(group.core)].results &&
      graph_->nodes[static_cast<size_t>(group.core)].expr.reduction == tile::Reduction::scatter)
    return make_error(Code::failed_precondition, "a scatter's kernel gives its result alone");
  QUARTET_ASSIGN(tile::Fused fused, tile::fuse(*graph_, group.nodes, group.core, group.domain, group.outputs));
  if (anchored.size() > 1 && (weight(fused.expr) > kMostBody || fused.inputs.size() > kMostInputs)) {
    return make_error(Code::failed_precondition, "the kernel would grow too large");
  }
  if (loops_in_a_tile(fused.expr)) {
    return make_error(Code::failed_precondition, "a contraction cannot finish with a remainder of floats");
  }
  group.inputs = fused.inputs;
  QUARTET_ASSIGN(auto plans, roller::construct(*graph_, fused, *device_, 1));
  group.plan = std::move(plans.front());
  made.cost = group.plan.wall + roller::kStageSeconds;
  made.anchored = std::move(anchored);
  made.fused = std::make_shared<const tile::Fused>(std::move(fused));
  return made;
}

// Each phase after those whose results it reads; of several the one with the lowest node first.
std::vector<std::shared_ptr<const Candidate>> Graph::in_order(
    std::vector<std::shared_ptr<const Candidate>> phases) const {
  std::sort(phases.begin(), phases.end(),
            [](const auto& a, const auto& b) { return a->anchored.front() < b->anchored.front(); });
  std::vector<std::shared_ptr<const Candidate>> ordered;
  const auto waits = [&](const Candidate& phase) {
    return std::any_of(phase.group.inputs.begin(), phase.group.inputs.end(), [&](tile::TensorId t) {
      return std::any_of(phases.begin(), phases.end(), [&](const auto& other) {
        return other && std::count(other->group.outputs.begin(), other->group.outputs.end(), t) > 0;
      });
    });
  };
  for (bool found = true; found;) {
    found = false;
    for (auto& phase : phases) {
      if (!phase || waits(*phase)) continue;
      ordered.push_back(std::move(phase));
      phase.reset();
      found = true;
      break;
    }
  }
  return ordered;
}

Result<Candidate> Graph::rows(const std::vector<std::shared_ptr<const Candidate>>& parts,
                              roller::RowsMemo& memo) const {
  std::vector<std::shared_ptr<const Candidate>> phases;
  size_t heavy = 0, reductions = 0;
  for (const auto& part : parts) {
    if (part->phases.empty()) phases.push_back(part);
    phases.insert(phases.end(), part->phases.begin(), part->phases.end());
  }
  if (phases.size() > kMostPhases)
    return make_error(Code::failed_precondition, "the kernel would have too many phases");
  for (const auto& phase : phases) {
    const tile::TensorExpr& expr = phase->fused->expr;
    heavy += weight(expr);
    reductions += expr.reduction != tile::Reduction::none && expr.reduction != tile::Reduction::contraction ? 1 : 0;
  }
  if (reductions == 0) return make_error(Code::failed_precondition, "no reduction whose rows could stay near");
  if (heavy > kMostBody) return make_error(Code::failed_precondition, "the kernel would grow too large");
  Candidate made;
  made.phases = in_order(std::move(phases));
  Group& group = made.group;
  for (const auto& phase : made.phases) {
    for (const int32_t n : phase->anchored) add_unique(made.anchored, n);
    for (const int32_t n : phase->group.nodes) add_unique(group.nodes, n);
  }
  group.outputs = outputs_of(made.anchored);
  if (group.outputs.empty()) group.outputs = made.phases.back()->group.outputs;
  group.domain = made.phases.back()->group.domain;
  std::vector<std::shared_ptr<const tile::Fused>> fused;
  for (const auto& phase : made.phases) fused.push_back(phase->fused);
  QUARTET_ASSIGN(group.plan, roller::rows_plan(*graph_, fused, group.outputs, *device_, memo));
  for (size_t i = 0; i < made.phases.size(); ++i) {
    const Group& phase = group.phases.emplace_back(made.phases[i]->group);
    group.phases.back().plan = group.plan.phases[i];
    for (const tile::TensorId t : phase.inputs) {
      const auto& locals = group.plan.locals;
      const bool inside = std::any_of(locals.begin(), locals.end(), [&](const auto& l) { return l.tensor == t; });
      if (!inside && std::count(group.inputs.begin(), group.inputs.end(), t) == 0) group.inputs.push_back(t);
    }
  }
  if (group.inputs.size() > kMostInputs)
    return make_error(Code::failed_precondition, "the kernel would grow too large");
  made.cost = group.plan.wall + roller::kStageSeconds;
  return made;
}

}  // namespace quartet::welder
