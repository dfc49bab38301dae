#include "grinder/place.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "graph/constant.h"
#include "graph/dims.h"

namespace quartet::grinder {
namespace {

using graph::AttrKey;
using graph::Block;
using graph::kNoValue;
using graph::Op;
using graph::OpCode;
using graph::ValueId;
using Kind = Origin::Kind;

bool is_control(const Op& op) { return graph::op_info(op.code).op_class == graph::OpClass::control; }

// Every value that the op or its regions name, those defined inside them too.
template <class Visit>
void for_each_use(const Op& op, const Visit& visit) {
  for (const ValueId id : op.operands)
    if (id != kNoValue) visit(id);
  for (const Block& region : op.regions) {
    for (const Op& inner : region.ops) for_each_use(inner, visit);
    for (const ValueId id : region.results) visit(id);
  }
}

class Placer {
 public:
  explicit Placer(std::shared_ptr<const graph::Graph> graph) : graph_(std::move(graph)), main_(graph_->main()) {
    placed_.graph = graph_;
    placed_.origins.resize(main_.values.size());
    defining_.resize(main_.values.size());
    users_.resize(main_.values.size());
    homes_.resize(main_.values.size());
  }

  Result<Placed> run() {
    QUARTET_TRY(describe(main_.body));
    for (const ValueId index : indices_) release(index);
    if (std::none_of(main_.body.ops.begin(), main_.body.ops.end(), is_control)) {
      placed_.segments.push_back({graph_, main_.body.arguments, main_.body.results});
      placed_.steps.push_back({0, nullptr, {}});
    } else {
      placed_.steps = split(main_.body);
    }
    return std::move(placed_);
  }

 private:
  Origin& origin(ValueId id) { return placed_.origins[static_cast<size_t>(id)]; }

  // ---- What every value is ----

  Status describe(const Block& block) {
    for (const ValueId id : block.arguments) origin(id).block = &block;
    for (const Op& op : block.ops) {
      if (op.code == OpCode::call)
        return make_error(Code::unsupported, "op '%s': a call of the recursive function '%s'", op.name.c_str(),
                          graph_->functions[static_cast<size_t>(op.callee)].name.c_str());
      for (const ValueId id : op.operands) {
        if (id == kNoValue) continue;
        ++origin(id).uses;
        users_[static_cast<size_t>(id)].push_back(&op);
        if (is_control(op)) homes_[static_cast<size_t>(id)] = true;
      }
      for (size_t i = 0; i < op.results.size(); ++i) {
        Origin& made = origin(op.results[i]);
        made.block = &block;
        made.kind = kind_of(op, i);
        made.constant = op.constant;
        defining_[static_cast<size_t>(op.results[i])] = &op;
      }
      if (op.code == OpCode::loop) loops_.push_back(&op);
      for (const Block& region : op.regions) QUARTET_TRY(describe(region));
      if (op.code == OpCode::loop) loops_.pop_back();
      note_window(op);
    }
    for (const ValueId id : block.results) {
      ++origin(id).uses;
      homes_[static_cast<size_t>(id)] = true;
    }
    return {};
  }

  static Kind kind_of(const Op& op, size_t result) {
    switch (op.code) {
      case OpCode::constant:
        return Kind::constant;
      case OpCode::if_:
        return Kind::result;
      case OpCode::require:
        return Kind::same;
      case OpCode::loop:
        return result + 2 < op.operands.size() ? Kind::carried : Kind::result;
      default:
        return Kind::segment;
    }
  }

  // ---- Windows ----

  // The index as `first + step * iteration` of the loop around, if it is that.
  struct Affine {
    IntExpr first;
    int64_t step = 0;
  };
  std::optional<Affine> affine(ValueId id, int depth = 0) const {
    const Block& body = loops_.back()->regions[0];
    if (id == body.arguments[0]) return Affine{IntExpr(0), 1};
    const Op* op = defining_[static_cast<size_t>(id)];
    if (!op || depth == 4 || main_.values[static_cast<size_t>(id)].type.rank() != 0) return std::nullopt;
    if (op->code == OpCode::constant)
      return Affine{IntExpr(graph::element_as_int(graph_->constants[static_cast<size_t>(op->constant)], 0)), 0};
    if (op->code != OpCode::add && op->code != OpCode::sub) return std::nullopt;
    const auto a = affine(op->operands[0], depth + 1), b = affine(op->operands[1], depth + 1);
    if (!a || !b) return std::nullopt;
    return op->code == OpCode::add ? Affine{a->first + b->first, a->step + b->step}
                                   : Affine{a->first - b->first, a->step - b->step};
  }

  // A row of something made outside the loop, by the iteration's number.
  void note_window(const Op& op) {
    if (op.code != OpCode::gather || loops_.empty() || graph::attr_int(op, AttrKey::axis) != 0) return;
    const Op& loop = *loops_.back();
    const ValueId base = op.operands[0];
    if (is_inside(loop.regions[0], base)) return;
    if (main_.values[static_cast<size_t>(op.operands[1])].type.rank() != 0) return;
    const auto count = known_count(*graph_, main_, loop);
    const auto index = affine(op.operands[1]);
    if (!count || !index || (index->step != 1 && index->step != -1)) return;
    const graph::Dims dims(graph_->symbols);
    const IntExpr last = index->first + IntExpr(index->step) * (*count - IntExpr(1));
    const IntExpr& extent = main_.values[static_cast<size_t>(base)].type.shape[0];
    const IntExpr &low = index->step > 0 ? index->first : last, &high = index->step > 0 ? last : index->first;
    if (!dims.at_least(low, IntExpr(0)) || !dims.at_least(extent, high + IntExpr(1))) return;
    placed_.windows.push_back({op.results[0], base, &loop, index->first, index->step});
    origin(op.results[0]).kind = Kind::window;
    homes_[static_cast<size_t>(base)] = true;
    std::erase(users_[static_cast<size_t>(op.operands[1])], &op);
    indices_.push_back(op.operands[1]);
  }

  // One use less; what then has none is not computed.
  void release(ValueId id) {
    if (--origin(id).uses > 0 || origin(id).kind != Kind::segment) return;
    const Op& op = *defining_[static_cast<size_t>(id)];
    if (std::any_of(op.results.begin(), op.results.end(), [&](ValueId other) { return origin(other).uses > 0; }))
      return;
    for (const ValueId operand : op.operands)
      if (operand != kNoValue) release(operand);
  }

  // Whether a value is defined in a loop's body or deeper. What is defined is described already.
  bool is_inside(const Block& body, ValueId id) const {
    const Block* block = placed_.origins[static_cast<size_t>(id)].block;
    const auto contains = [&](const Block& outer, const auto& self) -> bool {
      if (&outer == block) return true;
      for (const Op& op : outer.ops)
        for (const Block& region : op.regions)
          if (self(region, self)) return true;
      return false;
    };
    return contains(body, contains);
  }

  // ---- Segments ----

  // A view is written anew in every segment that reads through it, so that it never stands in memory by itself; unless
  // control or a block's result needs it there.
  bool is_transparent(const Op& op) const {
    return graph::op_info(op.code).op_class == graph::OpClass::view && !homes_[static_cast<size_t>(op.results[0])] &&
           placed_.origins[static_cast<size_t>(op.results[0])].kind == Kind::segment;
  }

  bool in_segment(const Op& op) {
    return !is_control(op) && origin(op.results[0]).kind == Kind::segment &&
           std::any_of(op.results.begin(), op.results.end(), [&](ValueId id) { return origin(id).uses > 0; });
  }

  // Level k holds segment k and the control after it: an op goes to the first level at which everything it needs is
  // there.
  std::vector<int32_t> levels(const Block& block) {
    std::unordered_map<ValueId, std::pair<int32_t, bool>> made;  // of this block: level, by control
    std::unordered_map<Symbol, int32_t> born;                    // of this block: level, all by control
    std::vector<int32_t> levels;
    for (const Op& op : block.ops) {
      int32_t level = 0;
      const bool control = is_control(op);
      for_each_use(op, [&](ValueId id) {
        if (const auto it = made.find(id); it != made.end())
          level = std::max(level, it->second.first + (it->second.second && !control ? 1 : 0));
      });
      if (!born.empty())
        graph::for_each_symbol(main_, op, [&](Symbol s) {
          if (const auto it = born.find(s); it != born.end()) level = std::max(level, it->second + (control ? 0 : 1));
        });
      graph::for_each_birth(graph_->symbols, op, [&](Symbol s) { born.try_emplace(s, level); });
      for (const ValueId id : op.results)
        if (control || in_segment(op)) made[id] = {level, control};
      levels.push_back(level);
    }
    return levels;
  }

  std::vector<Step> split(const Block& block) {
    const std::vector<int32_t> level = levels(block);
    const int32_t last = level.empty() ? -1 : *std::max_element(level.begin(), level.end());
    std::vector<Step> steps;
    for (int32_t k = 0; k <= last; ++k) {
      std::vector<const Op*> ops;
      for (size_t i = 0; i < block.ops.size(); ++i)
        if (level[i] == k && in_segment(block.ops[i]) && !is_transparent(block.ops[i])) ops.push_back(&block.ops[i]);
      if (!ops.empty()) {
        steps.push_back({static_cast<int32_t>(placed_.segments.size()), nullptr, {}});
        placed_.segments.push_back(segment(ops));
      }
      for (size_t i = 0; i < block.ops.size(); ++i) {
        if (level[i] != k || !is_control(block.ops[i])) continue;
        Step step{-1, &block.ops[i], {}};
        for (const Block& region : block.ops[i].regions) step.regions.push_back(split(region));
        steps.push_back(std::move(step));
      }
    }
    return steps;
  }

  Segment segment(const std::vector<const Op*>& ops) {
    Segment made;
    auto graph = std::make_shared<graph::Graph>();
    graph->symbols = graph_->symbols;
    graph->functions.resize(1);
    graph::Function& function = graph->functions[0];
    function.name = "main";
    std::unordered_map<ValueId, ValueId> table;
    const auto add = [&](ValueId old) {
      const auto id = static_cast<ValueId>(function.values.size());
      function.values.push_back(main_.values[static_cast<size_t>(old)]);
      table[old] = id;
      return id;
    };
    std::map<int32_t, int32_t> constants;
    const auto known = [&](ValueId old, const auto& self) -> ValueId {
      if (const auto it = table.find(old); it != table.end()) return it->second;
      const Op* view = defining_[static_cast<size_t>(old)];
      if (view && is_transparent(*view)) {
        Op op = *view;
        for (ValueId& operand : op.operands) operand = self(operand, self);
        op.results = {add(old)};
        function.body.ops.push_back(std::move(op));
        return table.at(old);
      }
      const ValueId id = add(old);
      if (const Origin& from = origin(old); from.kind == Kind::constant) {
        const auto [at, fresh] = constants.try_emplace(from.constant, static_cast<int32_t>(graph->constants.size()));
        if (fresh) graph->constants.push_back(graph_->constants[static_cast<size_t>(from.constant)]);
        Op op = *defining_[static_cast<size_t>(old)];
        op.constant = at->second;
        op.results = {id};
        function.body.ops.push_back(std::move(op));
      } else {
        function.body.arguments.push_back(id);
        made.inputs.push_back(old);
      }
      return id;
    };
    for (const Op* source : ops) {
      Op op = *source;
      for (ValueId& id : op.operands)
        if (id != kNoValue) id = known(id, known);
      for (ValueId& id : op.results) id = add(id);
      function.body.ops.push_back(std::move(op));
    }
    for (const ValueId id : needed_outside(ops)) {
      made.outputs.push_back(id);
      function.body.results.push_back(table.at(id));
      function.output_names.push_back("out" + std::to_string(function.output_names.size()));
    }
    made.graph = std::move(graph);
    return made;
  }

  // Results of the ops that anything else reads, through views or not.
  std::vector<ValueId> needed_outside(const std::vector<const Op*>& ops) const {
    const std::unordered_set<const Op*> inside(ops.begin(), ops.end());
    const auto read_outside = [&](ValueId id, const auto& self) -> bool {
      if (homes_[static_cast<size_t>(id)]) return true;
      const auto& users = users_[static_cast<size_t>(id)];
      return std::any_of(users.begin(), users.end(), [&](const Op* user) {
        return is_transparent(*user) ? self(user->results[0], self) : !inside.contains(user);
      });
    };
    std::vector<ValueId> needed;
    for (const Op* op : ops)
      for (const ValueId id : op->results)
        if (read_outside(id, read_outside)) needed.push_back(id);
    return needed;
  }

  std::shared_ptr<const graph::Graph> graph_;
  const graph::Function& main_;
  Placed placed_;
  std::vector<const Op*> defining_;            // by value; null for arguments
  std::vector<const Op*> loops_;               // around what is being described
  std::vector<ValueId> indices_;               // of windows
  std::vector<std::vector<const Op*>> users_;  // by value: ops that read it
  std::vector<bool> homes_;                    // by value: needed in memory by control, a window or as a block's result
};

}  // namespace

namespace {

// The value of a scalar that a constant or a dim gives, through a reshape.
std::optional<IntExpr> scalar_value(const graph::Graph& graph, const graph::Function& function, ValueId scalar) {
  const auto find = [&](const Block& block, ValueId id, const auto& self) -> const Op* {
    for (const Op& op : block.ops) {
      if (std::find(op.results.begin(), op.results.end(), id) != op.results.end()) return &op;
      for (const Block& region : op.regions)
        if (const Op* found = self(region, id, self)) return found;
    }
    return nullptr;
  };
  if (scalar == kNoValue) return std::nullopt;
  const Op* op = find(function.body, scalar, find);
  if (op && op->code == OpCode::reshape) op = find(function.body, op->operands[0], find);
  if (!op) return std::nullopt;
  if (op->code == OpCode::dims) return max((*graph::attr_shape(*op, AttrKey::shape))[0], IntExpr(0));
  if (op->code != OpCode::constant) return std::nullopt;
  return IntExpr(std::max<int64_t>(graph::element_as_int(graph.constants[static_cast<size_t>(op->constant)], 0), 0));
}

}  // namespace

std::optional<Symbol> born_symbol(const graph::Graph& graph, const graph::Function& function, const Op& loop) {
  const graph::Shape* trip = graph::attr_shape(loop, AttrKey::trip);
  const auto symbol = trip ? (*trip)[0].as_symbol() : std::nullopt;
  if (!symbol || graph.symbols[static_cast<size_t>(*symbol)].kind != graph::DimSymbol::Kind::run) return std::nullopt;
  // A trip count that alone decides may be a dim of something before.
  if (loop.operands[1] == kNoValue && scalar_value(graph, function, loop.operands[0])) return std::nullopt;
  return symbol;
}

std::optional<IntExpr> known_count(const graph::Graph& graph, const graph::Function& function, const Op& loop) {
  if (loop.operands[0] == kNoValue) return std::nullopt;
  const graph::Shape* trip = graph::attr_shape(loop, AttrKey::trip);
  if (trip && !born_symbol(graph, function, loop)) return (*trip)[0];
  return scalar_value(graph, function, loop.operands[0]);
}

Result<Placed> place(std::shared_ptr<const graph::Graph> graph) { return Placer(std::move(graph)).run(); }

}  // namespace quartet::grinder
