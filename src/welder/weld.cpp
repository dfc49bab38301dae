// Connecting: every edge of the tile-graph is tried at register level, the most profitable first.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <queue>

#include "welder/candidates.h"

namespace quartet::welder {
namespace {

// What stays near needs no place in memory: of costs that are as good as equal the one kernel wins.
constexpr double kNear = 1.01;

// An edge between two groups: what they would be as one, and what that would save.
struct Edge {
  double gain = 0;                   // seconds
  int32_t source = -1, reader = -1;  // anchored nodes
  int32_t from = -1, into = -1;      // the groups they are in
  std::shared_ptr<const Candidate> one;
  // The greatest gain first, to the nanosecond; of equal ones the smaller groups, so that a long chain joins in pairs
  // and not one by one; then topological order.
  bool operator<(const Edge& other) const {
    const int64_t a = std::llround(gain * 1e9), b = std::llround(other.gain * 1e9);
    if (a != b) return a < b;
    const size_t size = one->anchored.size(), other_size = other.one->anchored.size();
    if (size != other_size) return size > other_size;
    return reader != other.reader ? reader > other.reader : source > other.source;
  }
};

class Welder {
 public:
  Welder(const tile::TileGraph& graph, const CpuModel& device, const Options& options)
      : graph_(graph, device), options_(options) {}

  Result<std::vector<Group>> run() {
    QUARTET_TRY(start());
    if (options_.fusion) {
      QUARTET_TRY(write_shared_views());
      connect(EdgeLevel::registers);
      connect(EdgeLevel::l2);
    }
    return in_order();
  }

 private:
  struct Part {
    std::shared_ptr<const Candidate> candidate;
    std::vector<std::string> joined;  // edges that became registers, with what they save
  };

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
        written_[views.back()] = "a view no plan reads through";
        graph_.anchor(views.back());
        parts_.clear();
        owner_.assign(owner_.size(), -1);
        i = 0;
        continue;
      }
      owner_[static_cast<size_t>(node)] = static_cast<int32_t>(parts_.size());
      parts_.push_back(Part{std::make_shared<const Candidate>(std::move(*alone)), {}});
      ++i;
    }
    return {};
  }

  // A view with several readers, each walking it in long steps, may be cheaper written out once.
  Status write_shared_views() {
    const size_t count = graph_.tiles().nodes.size();
    bool changed = false;
    for (size_t n = 0; n < count; ++n) {
      const auto view = static_cast<int32_t>(n);
      if (graph_.anchored(view)) continue;
      const std::vector<int32_t> readers = graph_.readers_of_view(view);
      if (readers.size() < 2) continue;
      Graph trial = graph_;
      trial.anchor(view);
      const auto apart = cost_of(graph_, readers), written = cost_of(trial, readers), copy = cost_of(trial, {view});
      if (!apart || !written || !copy || *written + *copy >= *apart) continue;
      written_[view] = format("a view with %zu readers, written once: saves %.2f us", readers.size(),
                              (*apart - *written - *copy) * 1e6);
      graph_ = std::move(trial);
      changed = true;
    }
    if (!changed) return {};
    parts_.clear();
    return start();
  }

  static std::optional<double> cost_of(const Graph& graph, const std::vector<int32_t>& nodes) {
    double sum = 0;
    for (const int32_t node : nodes) {
      const auto alone = graph.candidate({node});
      if (!alone.ok()) return std::nullopt;
      sum += alone->cost;
    }
    return sum;
  }

  Part& part(int32_t group) { return *parts_[static_cast<size_t>(group)]; }
  const Part& part(int32_t group) const { return *parts_[static_cast<size_t>(group)]; }
  int32_t owner(int32_t node) const { return owner_[static_cast<size_t>(node)]; }
  const std::string& name(int32_t node) const { return graph_.tiles().nodes[static_cast<size_t>(node)].expr.name; }

  // Every edge between groups is tried at the level.
  void connect(EdgeLevel level) {
    level_ = level;
    for (const int32_t node : graph_.anchored_nodes()) {
      for (const int32_t source : graph_.sources(node)) consider(source, node);
    }
    while (!edges_.empty()) {
      const Edge edge = edges_.top();
      edges_.pop();
      // A group that has grown since has a new number, and its edges were considered anew.
      if (owner(edge.source) != edge.from || owner(edge.reader) != edge.into) continue;
      if (path_around(edge.from, edge.into)) {
        refused_[{edge.source, edge.reader}] = "another group stands between";
        continue;
      }
      merge(edge);
    }
  }

  // Puts the edge in the queue if its two groups can be one and gain by it; else says why not.
  void consider(int32_t source, int32_t reader) {
    Edge edge;
    edge.source = source, edge.reader = reader;
    edge.from = owner(source), edge.into = owner(reader);
    if (edge.from == edge.into) return;
    const Candidate &producer = *part(edge.from).candidate, &consumer = *part(edge.into).candidate;
    std::string& why = refused_[{source, reader}];
    auto one = joined(edge.from, edge.into);
    if (!one.ok()) {
      if (level_ == EdgeLevel::registers)
        why = one.status().message();
      else
        why += ", rows: " + one.status().message();
      return;
    }
    const double apart = producer.cost + consumer.cost;
    edge.gain = apart * (level_ == EdgeLevel::l2 ? kNear : 1) - one->cost;
    if (edge.gain <= 0) {
      why = format("%.2f us in one, %.2f us in two", one->cost * 1e6, apart * 1e6);
      return;
    }
    edge.one = std::make_shared<const Candidate>(std::move(*one));
    edges_.push(std::move(edge));
  }

  // The two as one group, at the level at hand.
  Result<Candidate> joined(int32_t from, int32_t into) {
    const auto &producer = part(from).candidate, &consumer = part(into).candidate;
    if (level_ == EdgeLevel::l2) return graph_.rows({producer, consumer}, memo_);
    std::vector<int32_t> both;
    std::merge(producer->anchored.begin(), producer->anchored.end(), consumer->anchored.begin(),
               consumer->anchored.end(), std::back_inserter(both));
    return graph_.candidate(std::move(both));
  }

  void merge(const Edge& edge) {
    Part made{edge.one, std::move(part(edge.from).joined)};
    auto& other = part(edge.into).joined;
    made.joined.insert(made.joined.end(), other.begin(), other.end());
    made.joined.push_back(format("'%s' in '%s'%s saves %.2f us", name(edge.source).c_str(), name(edge.reader).c_str(),
                                 level_ == EdgeLevel::l2 ? ", row by row," : "", edge.gain * 1e6));
    parts_[static_cast<size_t>(edge.from)].reset();
    parts_[static_cast<size_t>(edge.into)].reset();
    const auto number = static_cast<int32_t>(parts_.size());
    parts_.push_back(std::move(made));
    const std::vector<int32_t> nodes = part(number).candidate->anchored;
    for (const int32_t node : nodes) owner_[static_cast<size_t>(node)] = number;
    // One edge to every group around stands for all between the two.
    std::vector<int32_t> seen;
    const auto fresh = [&](int32_t neighbour) {
      const int32_t group = owner(neighbour);
      if (group == number || std::find(seen.begin(), seen.end(), group) != seen.end()) return false;
      seen.push_back(group);
      return true;
    };
    for (const int32_t node : nodes) {
      for (const int32_t source : graph_.sources(node)) {
        if (fresh(source)) consider(source, node);
      }
      for (const int32_t reader : graph_.readers(node)) {
        if (fresh(reader)) consider(node, reader);
      }
    }
  }

  // Whether group `into` depends on group `from` by way of a third.
  bool path_around(int32_t from, int32_t into) const {
    std::vector<bool> seen(parts_.size());
    std::vector<int32_t> open;
    const auto visit_readers = [&](int32_t group, bool first) {
      for (const int32_t node : part(group).candidate->anchored) {
        for (const int32_t reader : graph_.readers(node)) {
          const int32_t next = owner_[static_cast<size_t>(reader)];
          if (next == group || seen[static_cast<size_t>(next)]) continue;
          if (next == into) {
            if (!first) return true;
            continue;
          }
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

  // What was joined, and for the first edges that come from other groups why they were not.
  std::string reason(const Part& p) const {
    constexpr size_t kMostRefusals = 3;
    const std::vector<int32_t>& nodes = p.candidate->anchored;
    std::string text;
    for (const std::string& joined : p.joined) text += (text.empty() ? "" : "; ") + joined;
    if (text.empty()) {
      const auto written = written_.find(nodes.front());
      text = written != written_.end() ? written->second : options_.fusion ? "alone" : "alone: fusion is off";
    }
    size_t refusals = 0;
    for (const auto& [edge, why] : refused_) {
      const bool inside = std::binary_search(nodes.begin(), nodes.end(), edge.first);
      if (why.empty() || inside || !std::binary_search(nodes.begin(), nodes.end(), edge.second)) continue;
      if (refusals++ == kMostRefusals) break;
      text += "; '" + name(edge.first) + "' apart: " + why;
    }
    return text;
  }

  // Groups after those they read; of several that are ready the one with the lowest node first.
  Result<std::vector<Group>> in_order() {
    std::vector<int32_t> waiting(parts_.size());
    const auto edges = [&](int32_t group, auto&& visit) {
      std::vector<int32_t> seen;
      for (const int32_t node : part(group).candidate->anchored) {
        for (const int32_t reader : graph_.readers(node)) {
          const int32_t next = owner_[static_cast<size_t>(reader)];
          if (next == group || std::find(seen.begin(), seen.end(), next) != seen.end()) continue;
          seen.push_back(next);
          visit(next);
        }
      }
    };
    const auto later = [&](int32_t a, int32_t b) {
      return part(a).candidate->anchored.front() > part(b).candidate->anchored.front();
    };
    size_t count = 0;
    for (size_t g = 0; g < parts_.size(); ++g) {
      if (!parts_[g]) continue;
      ++count;
      edges(static_cast<int32_t>(g), [&](int32_t next) { ++waiting[static_cast<size_t>(next)]; });
    }
    std::vector<int32_t> ready;
    const auto push = [&](int32_t g) {
      ready.push_back(g);
      std::push_heap(ready.begin(), ready.end(), later);
    };
    for (size_t g = 0; g < parts_.size(); ++g) {
      if (parts_[g] && waiting[g] == 0) push(static_cast<int32_t>(g));
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
    for (const int32_t g : order) {
      result.push_back(part(g).candidate->group);
      result.back().reason = reason(part(g));
    }
    return result;
  }

  Graph graph_;
  Options options_;
  std::vector<std::optional<Part>> parts_;  // groups by number; merged ones are gone
  std::vector<int32_t> owner_;              // group of each anchored node
  EdgeLevel level_ = EdgeLevel::registers;  // of the edges being tried
  roller::RowsMemo memo_;
  std::priority_queue<Edge> edges_;
  std::map<std::pair<int32_t, int32_t>, std::string> refused_;  // by source and reader
  std::map<int32_t, std::string> written_;                      // views anchored here, and why
};

}  // namespace

Result<std::vector<Group>> weld(const tile::TileGraph& graph, const CpuModel& device, const Options& options) {
  auto groups = Welder(graph, device, options).run();
  if (!groups.ok()) return groups.status().with_stage("weld");
  return groups;
}

}  // namespace quartet::welder
