#include "grinder/grind.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "graph/builder.h"
#include "graph/constant.h"

namespace quartet::grinder {
namespace {

using graph::AttrKey;
using graph::Block;
using graph::kNoValue;
using graph::Op;
using graph::OpClass;
using graph::OpCode;
using graph::ValueId;

// A loop of one iteration is always unrolled; others up to these many iterations and ops in all of them.
constexpr int64_t kMaxUnrolledTrips = 8;
constexpr int64_t kMaxUnrolledOps = 96;
// Both sides of an if are computed if each has at most so many ops and elements in all: about what a branch costs.
constexpr int64_t kMaxSelectedOps = 8;
constexpr int64_t kMaxSelectedElements = 1024;

OpClass class_of(const Op& op) { return graph::op_info(op.code).op_class; }

int64_t count_ops(const Block& block) {
  int64_t count = 0;
  for (const Op& op : block.ops) {
    count += op.code == OpCode::constant ? 0 : 1;
    for (const Block& region : op.regions) count += count_ops(region);
  }
  return count;
}

// Functions that can come back to themselves.
std::vector<bool> recursive_functions(const graph::Graph& graph) {
  const size_t count = graph.functions.size();
  std::vector<std::vector<int32_t>> calls(count);
  for (size_t f = 0; f < count; ++f) {
    const auto collect = [&](const Block& block, const auto& self) -> void {
      for (const Op& op : block.ops) {
        if (op.callee >= 0) calls[f].push_back(op.callee);
        for (const Block& region : op.regions) self(region, self);
      }
    };
    collect(graph.functions[f].body, collect);
  }
  std::vector<bool> recursive(count);
  for (size_t f = 0; f < count; ++f) {
    std::vector<int32_t> pending = calls[f];
    std::vector<bool> seen(count);
    while (!pending.empty()) {
      const auto next = static_cast<size_t>(pending.back());
      pending.pop_back();
      if (next == f) recursive[f] = true;
      if (seen[next]) continue;
      seen[next] = true;
      pending.insert(pending.end(), calls[next].begin(), calls[next].end());
    }
  }
  return recursive;
}

class Grinder {
 public:
  explicit Grinder(const graph::Graph& source)
      : source_(source), recursive_(recursive_functions(source)), builder_(source.symbols) {}

  Result<Ground> run() {
    callee_.assign(source_.functions.size(), -1);
    for (size_t f = 1; f < source_.functions.size(); ++f) {
      if (!recursive_[f]) continue;
      const graph::Function& function = source_.functions[f];
      graph::Signature signature;
      for (const ValueId id : function.body.arguments) signature.arguments.push_back(type_in(function, id));
      for (const ValueId id : function.body.results) signature.results.push_back(type_in(function, id));
      QUARTET_ASSIGN(callee_[f], builder_.function_declare(function.name, std::move(signature)));
    }
    for (size_t f = 1; f < source_.functions.size(); ++f)
      if (recursive_[f]) QUARTET_TRY(add_function(source_.functions[f]));
    QUARTET_TRY(add_main());
    QUARTET_ASSIGN(auto graph, builder_.finish());
    return Ground{std::move(graph), changed_};
  }

 private:
  using Map = std::unordered_map<ValueId, ValueId>;

  static const graph::TensorType& type_in(const graph::Function& function, ValueId id) {
    return function.values[static_cast<size_t>(id)].type;
  }

  Status add_main() {
    const graph::Function& main = source_.main();
    function_ = &main;
    map_.clear();
    for (const ValueId id : main.body.arguments) {
      QUARTET_ASSIGN(map_[id], builder_.input(main.values[static_cast<size_t>(id)].name, type_in(main, id)));
    }
    QUARTET_TRY(builder_.copy_defaults(source_));
    QUARTET_TRY(walk(main.body));
    QUARTET_ASSIGN(const std::vector<ValueId> results, mapped(main.body.results));
    for (size_t i = 0; i < results.size(); ++i) QUARTET_TRY(builder_.output(results[i], main.output_names[i]));
    return {};
  }

  Status add_function(const graph::Function& function) {
    function_ = &function;
    map_.clear();
    QUARTET_TRY(builder_.function_begin(function.name).status());
    for (const ValueId id : function.body.arguments) {
      QUARTET_ASSIGN(map_[id], builder_.parameter(type_in(function, id)));
    }
    QUARTET_TRY(walk(function.body));
    QUARTET_ASSIGN(const std::vector<ValueId> results, mapped(function.body.results));
    return builder_.function_end(results);
  }

  Result<std::vector<ValueId>> mapped(const std::vector<ValueId>& ids) const {
    std::vector<ValueId> out;
    for (const ValueId id : ids) {
      const auto it = id == kNoValue ? map_.end() : map_.find(id);
      if (id != kNoValue && it == map_.end()) return make_error(Code::internal, "value %d has no counterpart", id);
      out.push_back(id == kNoValue ? id : it->second);
    }
    return out;
  }

  Status walk(const Block& block) {
    for (const Op& op : block.ops) {
      if (hoisted_.contains(&op)) continue;
      QUARTET_ASSIGN(std::vector<ValueId> operands, mapped(op.operands));
      std::vector<ValueId> results;
      switch (op.code) {
        case OpCode::if_: {
          QUARTET_ASSIGN(results, walk_if(op, operands[0]));
          break;
        }
        case OpCode::loop: {
          QUARTET_ASSIGN(results, walk_loop(op, std::move(operands)));
          break;
        }
        case OpCode::bind: {
          QUARTET_TRY(rename_births(op));
          QUARTET_ASSIGN(results, plain(op, std::move(operands)));
          break;
        }
        case OpCode::call: {
          QUARTET_ASSIGN(results, walk_call(op, std::move(operands)));
          break;
        }
        default: {
          QUARTET_ASSIGN(results, plain(op, std::move(operands)));
        }
      }
      define(op, results);
    }
    return {};
  }

  void define(const Op& op, const std::vector<ValueId>& results) {
    for (size_t i = 0; i < results.size(); ++i) {
      map_[op.results[i]] = results[i];
      const std::string& name = function_->values[static_cast<size_t>(op.results[i])].name;
      // What became an input keeps that name.
      if (!name.empty() && builder_.value(results[i])->name.empty()) (void)builder_.set_name(results[i], name);
    }
  }

  Result<std::vector<ValueId>> plain(const Op& op, std::vector<ValueId> operands) {
    if (op.code == OpCode::constant) {
      QUARTET_ASSIGN(const ValueId id, builder_.constant(source_.constants[static_cast<size_t>(op.constant)], op.name));
      return std::vector<ValueId>{id};
    }
    graph::OpExtras extras;
    extras.name = op.name;
    return builder_.op(op.code, std::move(operands), renamed(op.attrs), std::move(extras));
  }

  // ---- Dims born in the run: a body that is walked twice gives birth to two. ----

  IntExpr renamed(const IntExpr& e) const {
    if (renamed_.empty() || e.is_constant()) return e;
    return e.substitute([&](Symbol s) -> std::optional<IntExpr> {
      const auto it = renamed_.find(s);
      return it == renamed_.end() ? std::nullopt : std::optional(it->second);
    });
  }
  graph::TensorType renamed(graph::TensorType type) const {
    for (IntExpr& e : type.shape) e = renamed(e);
    return type;
  }
  graph::Attrs renamed(graph::Attrs attrs) const {
    if (renamed_.empty()) return attrs;
    for (auto& [key, attr] : attrs)
      if (auto* shape = std::get_if<graph::Shape>(&attr))
        for (IntExpr& e : *shape) e = renamed(e);
    return attrs;
  }

  // Before an op is made that may give birth to dims.
  Status rename_births(const Op& op) {
    Status status;
    graph::for_each_birth(source_.symbols, op, [&](Symbol s) {
      if (!status.ok() || !may_be_born(op, s)) return;
      renamed_.erase(s);
      if (born_.insert(s).second) return;
      graph::DimSymbol symbol = source_.symbols[static_cast<size_t>(s)];
      symbol.name += "." + std::to_string(builder_.symbols().size());
      if (symbol.upper) symbol.upper = renamed(*symbol.upper);
      auto made = builder_.declare_symbol(std::move(symbol));
      status = made.status();
      if (made.ok()) renamed_[s] = made.take();
    });
    return status;
  }

  // A trip count that alone decides is no birth.
  bool may_be_born(const Op& op, Symbol s) const {
    const graph::Shape* births = graph::attr_shape(op, AttrKey::births);
    if (births && std::find(births->begin(), births->end(), IntExpr::symbol(s)) != births->end()) return true;
    return op.code != OpCode::loop || op.operands[1] != kNoValue || !is_dim_or_constant(op.operands[0]);
  }

  // A region as it is.
  Result<int32_t> region(const Block& block) {
    QUARTET_ASSIGN(const int32_t id, builder_.region_begin());
    for (const ValueId argument : block.arguments) {
      QUARTET_ASSIGN(const ValueId made, builder_.parameter(renamed(type_in(*function_, argument))));
      map_.try_emplace(argument, made);  // a loop's condition stands for true already
    }
    QUARTET_TRY(walk(block));
    QUARTET_ASSIGN(const std::vector<ValueId> results, mapped(block.results));
    QUARTET_TRY(builder_.region_end(results));
    return id;
  }

  Result<ValueId> truth(bool value) {
    const uint8_t byte = value ? 1 : 0;
    QUARTET_ASSIGN(graph::Constant made, graph::copy_constant({DType::boolean, {}}, {&byte, 1}));
    return builder_.constant(std::move(made));
  }

  // ---- Calls: the body in place of the call. ----

  Result<std::vector<ValueId>> walk_call(const Op& op, std::vector<ValueId> operands) {
    const auto index = static_cast<size_t>(op.callee);
    if (recursive_[index]) {
      graph::OpExtras extras{{}, callee_[index], op.name};
      return builder_.op(OpCode::call, std::move(operands), op.attrs, std::move(extras));
    }
    changed_ = true;
    const graph::Function& callee = source_.functions[index];
    const graph::Function* const caller = std::exchange(function_, &callee);
    Map outer = std::exchange(map_, {});
    const auto hoisted = std::exchange(hoisted_, {});
    for (size_t i = 0; i < operands.size(); ++i) map_[callee.body.arguments[i]] = operands[i];
    QUARTET_TRY(walk(callee.body));
    auto results = mapped(callee.body.results);
    function_ = caller;
    map_ = std::move(outer);
    hoisted_ = hoisted;
    return results;
  }

  // ---- Ifs ----

  Result<std::vector<ValueId>> walk_if(const Op& op, ValueId condition) {
    for (const Block& side : op.regions) forget(side);
    if (const graph::Constant* known = builder_.constant_of(condition)) {
      const Block& taken = op.regions[known->data[0] != 0 ? 0 : 1];
      changed_ = true;
      QUARTET_TRY(walk(taken));
      QUARTET_ASSIGN(std::vector<ValueId> results, mapped(taken.results));
      for (size_t i = 0; i < results.size(); ++i) replace_births(op, op.results[i], results[i]);
      return results;
    }
    if (!op.attrs.contains(AttrKey::births) && is_cheap(op.regions[0]) && is_cheap(op.regions[1]))
      return select(op, condition);
    graph::OpExtras extras{{}, -1, op.name};
    for (const Block& side : op.regions) {
      QUARTET_ASSIGN(const int32_t id, region(side));
      extras.regions.push_back(id);
    }
    QUARTET_TRY(rename_births(op));
    return builder_.op(OpCode::if_, {condition}, renamed(op.attrs), std::move(extras));
  }

  // The dims that a value has in the new graph, in the place of those that an op gives birth to.
  void replace_births(const Op& op, ValueId old, ValueId made) {
    const graph::Shape* births = graph::attr_shape(op, AttrKey::births);
    if (!births) return;
    const graph::Shape &before = type_in(*function_, old).shape, &after = builder_.type(made).shape;
    for (size_t axis = 0; axis < before.size(); ++axis)
      if (std::find(births->begin(), births->end(), before[axis]) != births->end())
        renamed_[*before[axis].as_symbol()] = after[axis];
  }

  // Cheap enough to be computed whether it is needed or not, and without effect if not.
  bool is_cheap(const Block& side) const {
    int64_t ops = 0, elements = 0;
    const auto add = [&](ValueId id) {
      const auto bytes = type_in(*function_, id).is_static() ? type_in(*function_, id).bytes() : std::nullopt;
      if (!bytes || *bytes > static_cast<size_t>(8 * kMaxSelectedElements)) return false;
      elements += *type_in(*function_, id).elements().constant();
      return elements <= kMaxSelectedElements;
    };
    for (const Op& op : side.ops) {
      if (op.code == OpCode::constant) continue;
      if (class_of(op) != OpClass::elementwise && class_of(op) != OpClass::view) return false;
      if (++ops > kMaxSelectedOps || !add(op.results[0])) return false;
    }
    return std::all_of(side.results.begin(), side.results.end(), add);
  }

  Result<std::vector<ValueId>> select(const Op& op, ValueId condition) {
    changed_ = true;
    std::vector<std::vector<ValueId>> sides;
    for (const Block& side : op.regions) {
      QUARTET_TRY(walk(side));
      QUARTET_ASSIGN(std::vector<ValueId> results, mapped(side.results));
      sides.push_back(std::move(results));
    }
    std::vector<ValueId> results;
    for (size_t i = 0; i < op.results.size(); ++i) {
      QUARTET_ASSIGN(const ValueId id,
                     builder_.one(OpCode::select, {condition, sides[0][i], sides[1][i]}, {}, op.name));
      results.push_back(id);
    }
    return results;
  }

  // ---- Loops ----

  Result<std::vector<ValueId>> walk_loop(const Op& op, std::vector<ValueId> operands) {
    const Block& body = op.regions[0];
    forget(body);
    QUARTET_ASSIGN(map_[body.arguments[1]], truth(true));
    if (const auto trips = unrollable(op, operands)) return unroll(op, operands, *trips);
    // A condition that is always true is none; but where the body ends the loop, its stacked results say so by having
    // it.
    const graph::Constant* known = operands[1] == kNoValue ? nullptr : builder_.constant_of(operands[1]);
    if (known && known->data[0] != 0 && !op.attrs.contains(AttrKey::trip)) operands[1] = kNoValue;
    QUARTET_TRY(hoist(op));
    graph::OpExtras extras{{}, -1, op.name};
    QUARTET_TRY(rename_births(op));
    QUARTET_ASSIGN(const int32_t id, region(body));
    extras.regions.push_back(id);
    return builder_.op(OpCode::loop, std::move(operands), renamed(op.attrs), std::move(extras));
  }

  // The op of the source that defines a value.
  const Op* defining(ValueId id) const {
    const auto find = [id](const Block& block, const auto& self) -> const Op* {
      for (const Op& op : block.ops) {
        if (std::find(op.results.begin(), op.results.end(), id) != op.results.end()) return &op;
        for (const Block& region : op.regions)
          if (const Op* found = self(region, self)) return found;
      }
      return nullptr;
    };
    return find(function_->body, find);
  }

  bool is_dim_or_constant(ValueId id) const {
    if (id == kNoValue) return false;
    const Op* op = defining(id);
    if (op && op->code == OpCode::reshape) op = defining(op->operands[0]);
    return op && (op->code == OpCode::constant || op->code == OpCode::dims);
  }

  // Whether a value of the source is a constant true.
  bool is_true(ValueId id) const {
    const Op* op = defining(id);
    return op && op->code == OpCode::constant &&
           graph::element_as_int(source_.constants[static_cast<size_t>(op->constant)], 0) != 0;
  }

  // The number of iterations, if it is a constant, small, and nothing ends the loop earlier.
  std::optional<int64_t> unrollable(const Op& op, const std::vector<ValueId>& operands) const {
    const Block& body = op.regions[0];
    const graph::Constant* trip = operands[0] == kNoValue ? nullptr : builder_.constant_of(operands[0]);
    if (!trip) return std::nullopt;
    if (operands[1] != kNoValue) {
      const graph::Constant* condition = builder_.constant_of(operands[1]);
      if (!condition || condition->data[0] == 0) return std::nullopt;
    }
    if (body.results[0] != body.arguments[1] && !is_true(body.results[0])) return std::nullopt;
    const int64_t trips = std::max<int64_t>(graph::element_as_int(*trip, 0), 0);
    const bool stacks = body.results.size() + 1 > op.operands.size();
    if (stacks && op.attrs.contains(AttrKey::trip) && !renamed((*graph::attr_shape(op, AttrKey::trip))[0]).is(trips))
      return std::nullopt;  // what follows is written in terms of the loop's own dim
    if (trips == 0 && stacks) return std::nullopt;
    if (trips > 1 && (trips > kMaxUnrolledTrips || trips * count_ops(body) > kMaxUnrolledOps)) return std::nullopt;
    return trips;
  }

  Result<std::vector<ValueId>> unroll(const Op& op, const std::vector<ValueId>& operands, int64_t trips) {
    changed_ = true;
    const Block& body = op.regions[0];
    std::vector<ValueId> carried(operands.begin() + 2, operands.end());
    std::vector<std::vector<ValueId>> rows(op.results.size() - carried.size());
    const ValueId always = map_.at(body.arguments[1]);
    for (int64_t i = 0; i < trips; ++i) {
      forget(body);
      map_[body.arguments[1]] = always;
      QUARTET_ASSIGN(map_[body.arguments[0]], builder_.scalar(DType::i64, i));
      for (size_t c = 0; c < carried.size(); ++c) {
        map_[body.arguments[c + 2]] = carried[c];
        replace_births(op, body.arguments[c + 2], carried[c]);
      }
      QUARTET_TRY(walk(body));
      QUARTET_ASSIGN(const std::vector<ValueId> results, mapped(body.results));
      for (size_t c = 0; c < carried.size(); ++c) carried[c] = results[c + 1];
      for (size_t r = 0; r < rows.size(); ++r) {
        graph::Shape shape = builder_.type(results[carried.size() + 1 + r]).shape;
        shape.insert(shape.begin(), IntExpr(1));
        QUARTET_ASSIGN(const ValueId row, builder_.one(OpCode::reshape, {results[carried.size() + 1 + r]},
                                                       {{AttrKey::shape, shape}}, op.name));
        rows[r].push_back(row);
      }
    }
    for (size_t c = 0; c < carried.size(); ++c) replace_births(op, op.results[c], carried[c]);
    for (const std::vector<ValueId>& parts : rows) {
      QUARTET_ASSIGN(const ValueId stacked,
                     builder_.one(OpCode::concat, parts, {{AttrKey::axis, int64_t{0}}}, op.name));
      carried.push_back(stacked);
    }
    return carried;
  }

  // What is left of a block's last walk; the block is about to be walked again.
  void forget(const Block& block) {
    for (const ValueId id : block.arguments) map_.erase(id);
    for (const Op& op : block.ops) {
      hoisted_.erase(&op);
      for (const ValueId id : op.results) map_.erase(id);
      for (const Block& region : op.regions) forget(region);
    }
  }

  // Emits, before the loop, what is the same in every iteration. Views stay inside too: they cost nothing there, and
  // outside they would be in memory.
  Status hoist(const Op& loop) {
    const Block& body = loop.regions[0];
    Map views;
    std::unordered_set<Symbol> born;
    graph::for_each_birth(source_.symbols, loop, [&](Symbol s) { born.insert(s); });
    const auto collect = [&](const Block& block, const auto& self) -> void {
      for (const Op& op : block.ops) {
        graph::for_each_birth(source_.symbols, op, [&](Symbol s) { born.insert(s); });
        for (const Block& region : op.regions) self(region, self);
      }
    };
    collect(body, collect);
    std::swap(born_inside_, born);
    const Status status = hoist(body, views);
    std::swap(born_inside_, born);
    return status;
  }
  Status hoist(const Block& block, Map& views) {
    const auto find = [&](ValueId id) -> std::optional<ValueId> {
      if (const auto it = map_.find(id); it != map_.end()) return it->second;
      if (const auto it = views.find(id); it != views.end()) return it->second;
      return std::nullopt;
    };
    for (const Op& op : block.ops) {
      if (op.code == OpCode::loop) {
        // The condition argument stands for true; a nested loop sets it itself.
        QUARTET_TRY(hoist(op.regions[0], views));
        continue;
      }
      if (class_of(op) == OpClass::control || !is_total(op)) continue;
      std::vector<ValueId> operands;
      bool invariant = true;
      if (!born_inside_.empty())
        graph::for_each_symbol(*function_, op, [&](Symbol s) { invariant &= !born_inside_.contains(s); });
      for (const ValueId id : op.operands) {
        if (!invariant) break;
        const auto outside = id == kNoValue ? std::optional<ValueId>(id) : find(id);
        if (!outside) {
          invariant = false;
          break;
        }
        operands.push_back(*outside);
      }
      if (!invariant) continue;
      const bool free = class_of(op) == OpClass::view || class_of(op) == OpClass::constant;
      QUARTET_ASSIGN(const std::vector<ValueId> results, plain(op, std::move(operands)));
      if (free) {
        for (size_t i = 0; i < results.size(); ++i) views[op.results[i]] = results[i];
        continue;
      }
      changed_ = true;
      define(op, results);
      hoisted_.insert(&op);
    }
    return {};
  }

  // May be computed although nothing needs it: a gather from an empty axis may not.
  bool is_total(const Op& op) const {
    if (op.code != OpCode::gather) return true;
    const auto axis = static_cast<size_t>(graph::attr_int(op, AttrKey::axis));
    return builder_.dims().at_least(type_in(*function_, op.operands[0]).shape[axis], IntExpr(1));
  }

  const graph::Graph& source_;
  const std::vector<bool> recursive_;
  graph::Builder builder_;
  std::vector<int32_t> callee_;                // by function: its number in the new graph
  const graph::Function* function_ = nullptr;  // being walked
  Map map_;                                    // of its values
  std::unordered_set<const Op*> hoisted_;      // emitted before their loop
  std::unordered_map<Symbol, IntExpr> renamed_;
  std::unordered_set<Symbol> born_;         // in the new graph, under their own names
  std::unordered_set<Symbol> born_inside_;  // the loop being hoisted from
  bool changed_ = false;
};

}  // namespace

Result<Ground> grind(const std::shared_ptr<const graph::Graph>& graph) { return Grinder(*graph).run(); }

}  // namespace quartet::grinder
