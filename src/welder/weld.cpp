// Topological connecting: every edge of the tile-graph is tried at register level, in order.
#include <algorithm>
#include <optional>

#include "welder/candidates.h"

namespace quartet::welder {
namespace {

class Welder {
 public:
  Welder(const tile::TileGraph& graph, const CpuModel& device, const Options& options)
      : graph_(graph, device), options_(options) {}

  Result<std::vector<Group>> run() {
    QUARTET_TRY(start());
    if (options_.fusion) {
      for (const int32_t node : graph_.anchored_nodes()) {
        for (const int32_t source : graph_.sources(node)) connect(source, node);
      }
    }
    return in_order();
  }

 private:
  // Every anchored node as its own group. A view that no plan can read through is written out after all.
  Status start() {
    owner_.assign(graph_.tiles().nodes.size(), -1);
    for (size_t i = 0; i < graph_.anchored_nodes().size();) {
      const int32_t node = graph_.anchored_nodes()[i];
      auto alone = graph_.candidate({node});
      if (!alone.ok()) {
        const std::vector<int32_t> views = graph_.views_of(node);
        if (alone.status().code() != Code::failed_precondition || views.empty()) {
          return alone.status().with_prefix("node " + std::to_string(node) + ": ");
        }
        // The walk begins again: what was read through the view reads its copy now.
        written_.push_back(views.back());
        graph_.anchor(views.back());
        groups_.clear();
        owner_.assign(owner_.size(), -1);
        i = 0;
        continue;
      }
      const bool written = std::find(written_.begin(), written_.end(), node) != written_.end();
      alone->group.reason = written ? "a view no plan reads through" : "alone";
      owner_[static_cast<size_t>(node)] = static_cast<int32_t>(groups_.size());
      groups_.push_back(std::move(*alone));
      ++i;
    }
    return {};
  }

  Candidate& group_of(int32_t node) { return *groups_[static_cast<size_t>(owner_[static_cast<size_t>(node)])]; }
  const std::string& name(int32_t node) const { return graph_.tiles().nodes[static_cast<size_t>(node)].expr.name; }

  // Tries the edge between two groups at register level.
  void connect(int32_t source, int32_t reader) {
    const int32_t from = owner_[static_cast<size_t>(source)], into = owner_[static_cast<size_t>(reader)];
    if (from == into) return;
    Candidate &producer = group_of(source), &consumer = group_of(reader);
    const std::string edge = "'" + name(source) + "'";
    if (path_around(from, into)) {
      consumer.group.reason += "; apart from " + edge + ": another group stands between";
      return;
    }
    std::vector<int32_t> both;
    std::merge(producer.anchored.begin(), producer.anchored.end(), consumer.anchored.begin(), consumer.anchored.end(),
               std::back_inserter(both));
    auto fused = graph_.candidate(std::move(both));
    if (!fused.ok()) {
      consumer.group.reason += "; apart from " + edge + ": " + fused.status().message();
      return;
    }
    const double apart = producer.cost + consumer.cost;
    if (fused->cost >= apart) {
      consumer.group.reason +=
          format("; apart from %s: %.2f us in one, %.2f us in two", edge.c_str(), fused->cost * 1e6, apart * 1e6);
      return;
    }
    fused->group.reason = joined(producer.group.reason, consumer.group.reason);
    fused->group.reason += format("; with %s: saves %.2f us", edge.c_str(), (apart - fused->cost) * 1e6);
    for (const int32_t node : fused->anchored) owner_[static_cast<size_t>(node)] = into;
    groups_[static_cast<size_t>(into)] = std::move(*fused);
    groups_[static_cast<size_t>(from)].reset();
  }

  static std::string joined(const std::string& a, const std::string& b) {
    if (a == "alone") return b == "alone" ? std::string("one kernel") : b;
    if (b == "alone") return a;
    return a + "; " + b;
  }

  // Whether group `into` depends on group `from` by way of a third. Groups further on than `into`'s last node cannot.
  bool path_around(int32_t from, int32_t into) const {
    const int32_t last = groups_[static_cast<size_t>(into)]->anchored.back();
    std::vector<bool> seen(groups_.size());
    std::vector<int32_t> open;
    const auto visit_readers = [&](int32_t group, bool first) {
      for (const int32_t node : groups_[static_cast<size_t>(group)]->anchored) {
        for (const int32_t reader : graph_.readers(node)) {
          const int32_t next = owner_[static_cast<size_t>(reader)];
          if (next == group || seen[static_cast<size_t>(next)]) continue;
          if (next == into) {
            if (!first) return true;
            continue;
          }
          if (groups_[static_cast<size_t>(next)]->anchored.front() > last) continue;
          seen[static_cast<size_t>(next)] = true;
          open.push_back(next);
        }
      }
      return false;
    };
    if (visit_readers(from, true)) return true;
    while (!open.empty()) {
      const int32_t group = open.back();
      open.pop_back();
      if (visit_readers(group, false)) return true;
    }
    return false;
  }

  // Groups after those they read; of several that are ready the one with the lowest node first.
  Result<std::vector<Group>> in_order() {
    std::vector<int32_t> waiting(groups_.size());
    const auto edges = [&](int32_t group, auto&& visit) {
      std::vector<int32_t> seen;
      for (const int32_t node : groups_[static_cast<size_t>(group)]->anchored) {
        for (const int32_t reader : graph_.readers(node)) {
          const int32_t next = owner_[static_cast<size_t>(reader)];
          if (next == group || std::find(seen.begin(), seen.end(), next) != seen.end()) continue;
          seen.push_back(next);
          visit(next);
        }
      }
    };
    const auto later = [&](int32_t a, int32_t b) {
      return groups_[static_cast<size_t>(a)]->anchored.front() > groups_[static_cast<size_t>(b)]->anchored.front();
    };
    size_t count = 0;
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (!groups_[g]) continue;
      ++count;
      edges(static_cast<int32_t>(g), [&](int32_t next) { ++waiting[static_cast<size_t>(next)]; });
    }
    std::vector<int32_t> ready;
    const auto push = [&](int32_t g) {
      ready.push_back(g);
      std::push_heap(ready.begin(), ready.end(), later);
    };
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g] && waiting[g] == 0) push(static_cast<int32_t>(g));
    }
    std::vector<int32_t> order;
    while (!ready.empty()) {
      std::pop_heap(ready.begin(), ready.end(), later);
      const int32_t g = ready.back();
      ready.pop_back();
      order.push_back(g);
      edges(g, [&](int32_t next) {
        if (--waiting[static_cast<size_t>(next)] == 0) push(next);
      });
    }
    if (order.size() != count)
      return make_error(Code::internal, "the groups of the welder depend on each other in a cycle");
    std::vector<Group> result;
    for (const int32_t g : order) result.push_back(std::move(groups_[static_cast<size_t>(g)]->group));
    return result;
  }

  Graph graph_;
  Options options_;
  std::vector<std::optional<Candidate>> groups_;
  std::vector<int32_t> owner_;    // group of each anchored node
  std::vector<int32_t> written_;  // views anchored because no plan reads through them
};

}  // namespace

Result<std::vector<Group>> weld(const tile::TileGraph& graph, const CpuModel& device, const Options& options) {
  auto groups = Welder(graph, device, options).run();
  if (!groups.ok()) return groups.status().with_stage("weld");
  return groups;
}

}  // namespace quartet::welder
