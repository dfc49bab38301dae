// What no output needs is left out; ops have no effect but their results and the dims they give birth to.
#include <algorithm>

#include "simplify/rules.h"

namespace quartet::simplify {
namespace {

using graph::Block;
using graph::Function;
using graph::Graph;

void mark(const std::vector<ValueId>& ids, std::vector<bool>& needed) {
  for (const ValueId id : ids)
    if (id != graph::kNoValue) needed[static_cast<size_t>(id)] = true;
}

class Sweeper {
 public:
  Sweeper(const Graph& graph, const Function& function)
      : symbols_(graph.symbols), function_(function), needed_(function.values.size()), dims_(graph.symbols.size()) {
    for (const graph::DimSymbol& symbol : symbols_) any_run_known_ |= symbol.kind == graph::DimSymbol::Kind::run;
  }

  // Drops dead ops from the end to the beginning. A region of a living op yields all its results.
  void sweep(Block& block) {
    mark(block.results, needed_);
    std::vector<Op> alive;
    for (size_t i = block.ops.size(); i-- > 0;) {
      Op& op = block.ops[i];
      if (!is_used(op)) continue;
      mark(op.results, needed_);
      if (any_run_known_)
        graph::for_each_symbol(function_, op, [&](Symbol s) { dims_[static_cast<size_t>(s)] = true; });
      for (Block& region : op.regions) {
        mark(region.arguments, needed_);
        sweep(region);
      }
      mark(op.operands, needed_);
      alive.push_back(std::move(op));
    }
    std::reverse(alive.begin(), alive.end());
    block.ops = std::move(alive);
  }

  std::vector<bool>& needed() { return needed_; }

 private:
  bool is_used(const Op& op) const {
    bool used =
        std::any_of(op.results.begin(), op.results.end(), [&](ValueId id) { return needed_[static_cast<size_t>(id)]; });
    if (!used && any_run_known_)
      graph::for_each_birth(symbols_, op, [&](Symbol s) { used |= dims_[static_cast<size_t>(s)]; });
    return used;
  }

  const std::vector<graph::DimSymbol>& symbols_;
  const Function& function_;
  std::vector<bool> needed_;  // by value
  std::vector<bool> dims_;    // by symbol: a living op uses it
  bool any_run_known_ = false;
};

// Renumbers through a table of old to new.
void renumber(std::vector<ValueId>& ids, const std::vector<ValueId>& table) {
  for (ValueId& id : ids)
    if (id != graph::kNoValue) id = table[static_cast<size_t>(id)];
}

void renumber(Block& block, const std::vector<ValueId>& table) {
  renumber(block.arguments, table);
  for (Op& op : block.ops) {
    renumber(op.operands, table);
    renumber(op.results, table);
    for (Block& region : op.regions) renumber(region, table);
  }
  renumber(block.results, table);
}

void compact(Function& function, const std::vector<bool>& needed) {
  std::vector<ValueId> table(needed.size(), graph::kNoValue);
  std::vector<graph::Value> values;
  for (size_t i = 0; i < needed.size(); ++i) {
    if (!needed[i]) continue;
    table[i] = static_cast<ValueId>(values.size());
    values.push_back(std::move(function.values[i]));
  }
  function.values = std::move(values);
  renumber(function.body, table);
}

template <class Visit>
void for_each_op(Block& block, const Visit& visit) {
  for (Op& op : block.ops) {
    visit(op);
    for (Block& region : op.regions) for_each_op(region, visit);
  }
}

// Functions that main reaches, main first, in their old order.
void drop_functions(Graph& graph) {
  std::vector<bool> reached(graph.functions.size(), false);
  std::vector<size_t> pending{0};
  while (!pending.empty()) {
    const size_t index = pending.back();
    pending.pop_back();
    if (reached[index]) continue;
    reached[index] = true;
    for_each_op(graph.functions[index].body, [&](Op& op) {
      if (op.callee >= 0) pending.push_back(static_cast<size_t>(op.callee));
    });
  }
  std::vector<int32_t> table(reached.size(), -1);
  std::vector<Function> kept;
  for (size_t i = 0; i < reached.size(); ++i) {
    if (!reached[i]) continue;
    table[i] = static_cast<int32_t>(kept.size());
    kept.push_back(std::move(graph.functions[i]));
  }
  graph.functions = std::move(kept);
  for (Function& function : graph.functions)
    for_each_op(function.body, [&](Op& op) {
      if (op.callee >= 0) op.callee = table[static_cast<size_t>(op.callee)];
    });
}

// Constants that are used, in the order of their first use; then those of defaults.
void drop_constants(Graph& graph) {
  std::vector<int32_t> table(graph.constants.size(), -1);
  std::vector<Constant> kept;
  const auto keep = [&](int32_t& constant) {
    int32_t& number = table[static_cast<size_t>(constant)];
    if (number < 0) {
      number = static_cast<int32_t>(kept.size());
      kept.push_back(graph.constants[static_cast<size_t>(constant)]);
    }
    constant = number;
  };
  for (Function& function : graph.functions)
    for_each_op(function.body, [&](Op& op) {
      if (op.constant >= 0) keep(op.constant);
    });
  for (graph::InputDefault& given : graph.defaults) keep(given.constant);
  graph.constants = std::move(kept);
}

}  // namespace

Graph remove_dead(const Graph& graph) {
  Graph result = graph;
  for (Function& function : result.functions) {
    Sweeper sweeper(result, function);
    mark(function.body.arguments, sweeper.needed());
    sweeper.sweep(function.body);
    compact(function, sweeper.needed());
  }
  drop_functions(result);
  drop_constants(result);
  return result;
}

}  // namespace quartet::simplify
