// Where control flow runs: in the program. The graph's blocks become straight-line segments, each compiled as a graph
// of its own, with the ifs and loops between them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "graph/graph.h"

namespace quartet::grinder {

// Ops of one block that run without control in between.
struct Segment {
  // Straight-line. Input and output numbers are those of the lists below; symbols have the placed graph's numbers, and
  // need not be bound by an input.
  std::shared_ptr<const graph::Graph> graph;
  std::vector<graph::ValueId> inputs, outputs;  // values of the placed graph's main
};

// One thing after the other: a segment, a requirement, or an if or loop with the steps of its regions.
struct Step {
  int32_t segment = -1;
  const graph::Op* control = nullptr;  // of the placed graph's main
  std::vector<std::vector<Step>> regions;
};

// A value that is a part of another: row `first + iteration * step` along the first axis, certainly inside. Nothing
// computes it.
struct Window {
  graph::ValueId value = graph::kNoValue, base = graph::kNoValue;
  const graph::Op* loop = nullptr;
  IntExpr first;
  int64_t step = 1;
};

// How a value of main comes about.
struct Origin {
  enum class Kind : uint8_t {
    argument,  // of main or a region
    constant,
    segment,
    result,   // of an if, or a stacked result of a loop
    carried,  // last carried value of a loop
    window,
    same,  // handed on by a requirement: it lives where the operand does
  };
  Kind kind = Kind::argument;
  const graph::Block* block = nullptr;  // in which it is defined
  int32_t constant = -1;                // number of the graph's constant
  int32_t uses = 0;                     // how often operands and results of blocks name it
};

struct Placed {
  std::shared_ptr<const graph::Graph> graph;
  std::vector<Segment> segments;
  std::vector<Step> steps;  // of main
  std::vector<Window> windows;
  std::vector<Origin> origins;  // by value of main

  // The one segment is the whole graph.
  bool is_straight() const { return segments.size() == 1 && segments[0].graph == graph; }
};

// The number of iterations of a loop as far as it is known at entry; an upper bound if it has a condition.
std::optional<IntExpr> known_count(const graph::Graph& graph, const graph::Function& function, const graph::Op& loop);

// The run-known symbol that a loop gives its value, the trip count, if there is one.
std::optional<Symbol> born_symbol(const graph::Graph& graph, const graph::Function& function, const graph::Op& loop);

// `graph` is simplified and ground. What cannot run in a program is unsupported, naming the op.
Result<Placed> place(std::shared_ptr<const graph::Graph> graph);

}  // namespace quartet::grinder
