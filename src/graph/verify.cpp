// The verifier: everything a later stage relies on.
#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>

#include "base/utf8.h"
#include "graph/constant.h"
#include "graph/dims.h"
#include "graph/graph.h"
#include "graph/infer.h"
#include "graph/verify_built.h"

namespace quartet::graph {
namespace {

Status verify_symbols(const Graph& graph) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < graph.symbols.size(); ++i) {
    const DimSymbol& symbol = graph.symbols[i];
    if (!is_symbol_name(symbol.name) || !names.insert(symbol.name).second)
      return make_error(Code::invalid_argument, "dim %zu: '%s' is no new name", i, symbol.name.c_str());
    if (symbol.kind != DimSymbol::Kind::entry && symbol.kind != DimSymbol::Kind::run)
      return make_error(Code::invalid_argument, "dim %s is of no kind", symbol.name.c_str());
    if (symbol.lower < 0) return make_error(Code::invalid_argument, "dim %s may be negative", symbol.name.c_str());
    // Bounds speak of earlier symbols only, so that reasoning ends.
    const Dims earlier(std::span<const DimSymbol>(graph.symbols).first(i));
    if (symbol.upper && !earlier.well_formed(*symbol.upper))
      return make_error(Code::invalid_argument, "dim %s: its bound is no expression over earlier dims",
                        symbol.name.c_str());
  }
  return {};
}

Status verify_constants(const Graph& graph) {
  for (size_t i = 0; i < graph.constants.size(); ++i) {
    const Constant& constant = graph.constants[i];
    const auto size = constant.type.is_static() ? constant.type.bytes() : std::nullopt;
    if (!is_valid(constant.type.dtype) || !size || *size != constant.bytes || constant.type.rank() > kMaxRank ||
        (constant.bytes > 0 && !constant.data))
      return make_error(Code::invalid_argument, "constant %zu is not the bytes of a static type", i);
  }
  return {};
}

// Checks one function, in execution order.
class FunctionVerifier {
 public:
  FunctionVerifier(const Graph& graph, bool inferred, const std::vector<Signature>& signatures, size_t index,
                   std::unordered_map<Symbol, bool>& born)
      : graph_(graph),
        inferred_(inferred),
        has_run_known_(std::any_of(graph.symbols.begin(), graph.symbols.end(),
                                   [](const DimSymbol& symbol) { return symbol.kind == DimSymbol::Kind::run; })),
        signatures_(signatures),
        function_(graph.functions[index]),
        index_(index),
        dims_(graph.symbols, &facts_),
        born_(born) {}

  Status run() {
    state_.assign(function_.values.size(), State::undefined);
    definition_.assign(function_.values.size(), nullptr);
    for (size_t i = 0; !inferred_ && i < function_.values.size(); ++i)
      if (const Status bad = check_type(function_.values[i].type, dims_); !bad)
        return bad.with_prefix(where() + "value " + std::to_string(i) + ": ");
    QUARTET_TRY(check_block(function_.body, 0, nullptr));
    for (size_t i = 0; i < state_.size(); ++i)
      if (state_[i] == State::undefined)
        return make_error(Code::invalid_argument, "%svalue %zu is defined nowhere", where().c_str(), i);
    return {};
  }

 private:
  enum class State : uint8_t { undefined, visible, gone };
  // What a block defines, gone at its end.
  struct Scope {
    std::vector<ValueId> values;
    std::vector<Symbol> births;
  };

  std::string where() const { return index_ == 0 ? "" : "function '" + function_.name + "': "; }

  const TensorType& type(ValueId id) const { return function_.values[static_cast<size_t>(id)].type; }

  bool known(ValueId id) const { return id >= 0 && static_cast<size_t>(id) < state_.size(); }

  Status use(ValueId id, const char* role) const {
    if (!known(id)) return make_error(Code::invalid_argument, "%s: no value %d", role, id);
    const State state = state_[static_cast<size_t>(id)];
    if (state == State::visible) return {};
    return make_error(Code::invalid_argument, "%s: value %d is %s", role, id,
                      state == State::gone ? "of a region that has ended" : "used before it is defined");
  }

  Status define(ValueId id, Scope& scope) {
    if (!known(id)) return make_error(Code::invalid_argument, "result: no value %d", id);
    State& state = state_[static_cast<size_t>(id)];
    if (state != State::undefined) return make_error(Code::invalid_argument, "value %d is defined twice", id);
    QUARTET_TRY(check_symbols(type(id).shape));
    state = State::visible;
    scope.values.push_back(id);
    return {};
  }

  // Run-known symbols are used after their birth, in the block of it or inside that.
  Status check_symbols(const Shape& shape) const {
    if (!has_run_known_) return {};
    for (const IntExpr& dim : shape)
      for (const Symbol s : dim.symbols()) {
        if (!is_run_known(s)) continue;
        const auto it = born_.find(s);
        if (it == born_.end() || !it->second)
          return make_error(Code::invalid_argument, "the run-known dim %s is used where it is not known",
                            graph_.symbols[static_cast<size_t>(s)].name.c_str());
      }
    return {};
  }

  bool is_run_known(Symbol s) const { return graph_.symbols[static_cast<size_t>(s)].kind == DimSymbol::Kind::run; }

  // The value of an i64 scalar as an expression, if it is a constant or a dim.
  std::optional<IntExpr> scalar_value(ValueId id) const {
    const Op* op = id == kNoValue ? nullptr : definition_[static_cast<size_t>(id)];
    if (op && op->code == OpCode::reshape) op = definition_[static_cast<size_t>(op->operands[0])];
    if (op && op->code == OpCode::constant)
      return IntExpr(element_as_int(graph_.constants[static_cast<size_t>(op->constant)], 0));
    if (op && op->code == OpCode::dims) return (*attr_shape(*op, AttrKey::shape))[0];
    return std::nullopt;
  }

  // A loop whose trip count alone decides runs that often; any other gives birth to the dim.
  Status check_trip(const Op& op, std::vector<Symbol>& births) {
    const Shape* shape = attr_shape(op, AttrKey::trip);
    if (!shape) return {};
    const IntExpr& trip = (*shape)[0];
    const auto count = op.operands[1] == kNoValue ? scalar_value(op.operands[0]) : std::nullopt;
    if (count && dims_.same(trip, max(*count, IntExpr(0)))) return check_symbols(*shape);
    const auto s = trip.as_symbol();
    if (count || !s || !is_run_known(*s))
      return make_error(Code::invalid_argument, "trip is %s, wanted %s", dims_.text(trip).c_str(),
                        count ? dims_.text(max(*count, IntExpr(0))).c_str() : "a run-known dim born here");
    return give_birth(*s, births);
  }

  Status give_birth(Symbol s, std::vector<Symbol>& births) {
    if (!born_.try_emplace(s, true).second)
      return make_error(Code::invalid_argument, "the run-known dim %s is born twice",
                        graph_.symbols[static_cast<size_t>(s)].name.c_str());
    births.push_back(s);
    return {};
  }

  // A loop's are known inside it, too.
  Status check_births(const Op& op, std::vector<Symbol>& births) {
    const Shape* shape = attr_shape(op, AttrKey::births);
    if (!shape) return {};
    const size_t before = births.size();
    for (const IntExpr& dim : *shape) {
      const auto s = dim.as_symbol();
      if (!s || *s < 0 || static_cast<size_t>(*s) >= graph_.symbols.size() || !is_run_known(*s))
        return make_error(Code::invalid_argument, "births: %s is no run-known dim", dims_.text(dim).c_str());
      const bool again =
          std::find(births.begin() + static_cast<std::ptrdiff_t>(before), births.end(), *s) != births.end();
      if (!again || op.code != OpCode::if_) QUARTET_TRY(give_birth(*s, births));
    }
    return {};
  }

  Status check_block(const Block& block, int depth, Signature* signature) {
    if (depth > kMaxRegionDepth)
      return make_error(Code::resource_exhausted, "%sregions nested deeper than %d", where().c_str(), kMaxRegionDepth);
    Scope scope;
    for (const ValueId id : block.arguments)
      if (const Status bad = define(id, scope); !bad) return bad.with_prefix(where());
    for (const Op& op : block.ops) {
      const int64_t number = op_number_++;
      if (Status bad = check_op(op, depth, scope); !bad) {
        if (bad.error()->node >= 0) return bad;  // already says where, from inside a region
        const std::string name = op.name.empty() ? "" : " '" + op.name + "'";
        return bad.with_prefix(where() + "op " + std::to_string(number) + name + " (" + op_info(op.code).name + "): ")
            .with_node(number);
      }
    }
    for (const ValueId id : block.results)
      if (const Status bad = use(id, "a block's result"); !bad) return bad.with_prefix(where());
    if (signature) {
      for (const ValueId id : block.arguments) signature->arguments.push_back(type(id));
      for (const ValueId id : block.results) signature->results.push_back(type(id));
    }
    for (const ValueId id : scope.values) state_[static_cast<size_t>(id)] = State::gone;
    for (const Symbol s : scope.births) born_[s] = false;
    return {};
  }

  Status check_op(const Op& op, int depth, Scope& scope) {
    std::vector<const TensorType*> operands;
    for (const ValueId id : op.operands) {
      operands.push_back(nullptr);
      if (id == kNoValue) continue;
      QUARTET_TRY(use(id, "operand"));
      operands.back() = &type(id);
    }
    std::vector<Signature> regions(op.regions.size());
    if (op.regions.size() != static_cast<size_t>(op_info(op.code).regions))
      return make_error(Code::invalid_argument, "%zu regions, wanted %d", op.regions.size(), op_info(op.code).regions);
    if (op.code == OpCode::loop) QUARTET_TRY(check_births(op, scope.births));
    for (size_t i = 0; i < op.regions.size(); ++i) QUARTET_TRY(check_block(op.regions[i], depth + 1, &regions[i]));
    if (op.code != OpCode::loop) QUARTET_TRY(check_births(op, scope.births));

    const TensorType* constant = nullptr;
    if (op.code == OpCode::constant && op.constant >= 0 && static_cast<size_t>(op.constant) < graph_.constants.size())
      constant = &graph_.constants[static_cast<size_t>(op.constant)].type;
    const Signature* callee = nullptr;
    if (op.code == OpCode::call && op.callee > 0 && static_cast<size_t>(op.callee) < signatures_.size())
      callee = &signatures_[static_cast<size_t>(op.callee)];
    if ((op.constant >= 0) != (op.code == OpCode::constant) || (op.callee >= 0) != (op.code == OpCode::call))
      return make_error(Code::invalid_argument, "a constant or callee where none belongs, or none where one does");

    std::vector<TensorType> types;
    const bool known = inferred_ && follows_from_operands(op);
    if (!known) {
      QUARTET_ASSIGN(types, infer({op.code, operands, op.attrs, dims_, constant, regions, callee}));
    }
    for (const auto& [key, attr] : op.attrs)
      if (const auto* shape = std::get_if<Shape>(&attr); shape && key != AttrKey::trip && key != AttrKey::births)
        QUARTET_TRY(check_symbols(*shape));
    QUARTET_TRY(check_trip(op, scope.births));
    if (!known && types.size() != op.results.size())
      return make_error(Code::invalid_argument, "%zu results, wanted %zu", op.results.size(), types.size());
    for (size_t i = 0; i < op.results.size(); ++i) {
      QUARTET_TRY(define(op.results[i], scope));
      const TensorType& recorded = type(op.results[i]);
      if (!known && recorded != types[i])
        return make_error(Code::invalid_argument, "result %zu is recorded as %s, its type is %s", i,
                          dims_.text(recorded).c_str(), dims_.text(types[i]).c_str());
      definition_[static_cast<size_t>(op.results[i])] = &op;
    }
    return {};
  }

  // What a control op gives is said by blocks and functions, which may have been filled after the op was made.
  static bool follows_from_operands(const Op& op) {
    const OpClass kind = op_info(op.code).op_class;
    return kind != OpClass::control && kind != OpClass::constant;
  }

  const Graph& graph_;
  const bool inferred_;       // by the builder: what follows from operands alone
  const bool has_run_known_;  // any symbol
  const std::vector<Signature>& signatures_;
  const Function& function_;
  size_t index_;
  DimFacts facts_;
  Dims dims_;
  std::unordered_map<Symbol, bool>& born_;
  std::vector<State> state_;           // by value
  std::vector<const Op*> definition_;  // by value; null for arguments
  int64_t op_number_ = 0;
};

// Types at a function's ends, if the ids are good.
Status collect_signature(const Function& function, Signature& signature) {
  for (const auto* ids : {&function.body.arguments, &function.body.results})
    for (const ValueId id : *ids) {
      if (id < 0 || static_cast<size_t>(id) >= function.values.size())
        return make_error(Code::invalid_argument, "function '%s': no value %d", function.name.c_str(), id);
      auto& types = ids == &function.body.arguments ? signature.arguments : signature.results;
      types.push_back(function.values[static_cast<size_t>(id)].type);
    }
  return {};
}

Status verify_interface(const Graph& graph) {
  const Function& main = graph.main();
  std::set<std::string_view> names;
  for (const ValueId id : main.body.arguments) {
    const std::string& name = main.values[static_cast<size_t>(id)].name;
    if (name.empty() || !is_utf8(name) || !names.insert(name).second)
      return make_error(Code::invalid_argument, "input '%s' has no name of its own", name.c_str());
  }
  if (main.output_names.size() != main.body.results.size())
    return make_error(Code::invalid_argument, "%zu outputs and %zu names for them", main.body.results.size(),
                      main.output_names.size());
  names.clear();
  for (const std::string& name : main.output_names)
    if (name.empty() || !names.insert(name).second)
      return make_error(Code::invalid_argument, "output '%s' has no name of its own", name.c_str());
  return {};
}

Status verify_defaults(const Graph& graph) {
  const Function& main = graph.main();
  const Dims dims(graph.symbols);
  int32_t last = -1;
  for (const InputDefault& given : graph.defaults) {
    const auto input = static_cast<size_t>(given.input);
    if (given.input <= last || input >= main.body.arguments.size() || given.constant < 0 ||
        static_cast<size_t>(given.constant) >= graph.constants.size())
      return make_error(Code::invalid_argument, "constant %d as the default of input %d", given.constant, given.input);
    last = given.input;
    const Value& value = main.values[static_cast<size_t>(main.body.arguments[input])];
    const Constant& constant = graph.constants[static_cast<size_t>(given.constant)];
    QUARTET_TRY(
        check_default(value.type, constant.type, dims).with_prefix("the default of input '" + value.name + "': "));
  }
  return {};
}

void add_symbols(const Shape& shape, std::set<Symbol>& used) {
  for (const IntExpr& dim : shape)
    if (!dim.is_constant())
      dim.contains_any([&used](Symbol s) {
        used.insert(s);
        return false;
      });
}

void add_symbols(const Block& block, std::set<Symbol>& used) {
  for (const Op& op : block.ops) {
    for (const auto& [key, attr] : op.attrs)
      if (const auto* shape = std::get_if<Shape>(&attr)) add_symbols(*shape, used);
    for (const Block& region : op.regions) add_symbols(region, used);
  }
}

// Every entry-known symbol that is used stands alone as a dim of an input, which binds it.
Status verify_bindings(const Graph& graph) {
  std::set<Symbol> bound, used;
  const Function& main = graph.main();
  for (const ValueId id : main.body.arguments)
    for (const IntExpr& dim : main.values[static_cast<size_t>(id)].type.shape)
      if (const auto s = dim.as_symbol()) bound.insert(*s);
  for (const Function& function : graph.functions) {
    for (const Value& value : function.values) add_symbols(value.type.shape, used);
    add_symbols(function.body, used);
  }
  for (const Symbol s : used) {
    const DimSymbol& symbol = graph.symbols[static_cast<size_t>(s)];
    if (symbol.kind == DimSymbol::Kind::entry && !bound.contains(s))
      return make_error(Code::invalid_argument, "no input has the dim %s alone, so nothing tells its value",
                        symbol.name.c_str());
  }
  return {};
}

Status verify_whole(const Graph& graph, bool inferred) {
  const auto check = [&]() -> Status {
    if (graph.functions.empty()) return make_error(Code::invalid_argument, "no main function");
    QUARTET_TRY(verify_symbols(graph));
    QUARTET_TRY(verify_constants(graph));
    std::set<std::string_view> names;
    std::vector<Signature> signatures(graph.functions.size());
    for (size_t i = 0; i < graph.functions.size(); ++i) {
      if (graph.functions[i].name.empty() || !names.insert(graph.functions[i].name).second)
        return make_error(Code::invalid_argument, "function '%s' has no name of its own",
                          graph.functions[i].name.c_str());
      QUARTET_TRY(collect_signature(graph.functions[i], signatures[i]));
    }
    std::unordered_map<Symbol, bool> born;
    for (size_t i = 0; i < graph.functions.size(); ++i)
      QUARTET_TRY(FunctionVerifier(graph, inferred, signatures, i, born).run());
    QUARTET_TRY(verify_interface(graph));
    QUARTET_TRY(verify_defaults(graph));
    return verify_bindings(graph);
  };
  return check().with_stage("graph");
}

}  // namespace

Status verify(const Graph& graph) { return verify_whole(graph, false); }
Status verify_built(const Graph& graph) { return verify_whole(graph, true); }

}  // namespace quartet::graph
