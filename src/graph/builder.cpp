#include "graph/builder.h"

#include <algorithm>

#include "base/utf8.h"
#include "graph/verify_built.h"

namespace quartet::graph {
namespace {

constexpr size_t kMaxValues = size_t{1} << 24;
constexpr size_t kMaxSymbols = size_t{1} << 16;

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

}  // namespace

Builder::Builder() : Builder(std::vector<DimSymbol>{}) {}

Builder::Builder(std::vector<DimSymbol> symbols) : symbols_(std::move(symbols)) {
  headers_.push_back({"main", {}, true, true});
  frames_.emplace_back();
  frame().function.name = "main";
  frame().open.emplace_back();
}

Status Builder::usable() const {
  if (!spent_) return {};
  return make_error(Code::failed_precondition, "the builder is spent");
}

// ---- Dims -----------------------------------------------------------------------------------------------------------

Result<IntExpr> Builder::symbol(std::string_view name) {
  for (size_t i = 0; i < symbols_.size(); ++i)
    if (symbols_[i].name == name) return IntExpr::symbol(static_cast<Symbol>(i));
  DimSymbol symbol;
  symbol.name = name;
  return declare_symbol(std::move(symbol));
}

Result<IntExpr> Builder::declare_symbol(DimSymbol symbol) {
  QUARTET_TRY(usable());
  if (!is_symbol_name(symbol.name))
    return make_error(Code::invalid_argument, "%s is no name for a dim", quoted(symbol.name).c_str());
  for (const DimSymbol& other : symbols_)
    if (other.name == symbol.name)
      return make_error(Code::invalid_argument, "the dim %s is declared twice", symbol.name.c_str());
  if (symbol.upper && !dims().well_formed(*symbol.upper))
    return make_error(Code::invalid_argument, "the dim %s: '%s' is no bound", symbol.name.c_str(),
                      dims().text(*symbol.upper).c_str());
  if (symbol.lower < 0)
    return make_error(Code::invalid_argument, "the dim %s: a lower bound of %lld", symbol.name.c_str(),
                      static_cast<long long>(symbol.lower));
  if (symbols_.size() >= kMaxSymbols) return make_error(Code::resource_exhausted, "more than %zu dims", kMaxSymbols);
  symbols_.push_back(std::move(symbol));
  return IntExpr::symbol(static_cast<Symbol>(symbols_.size() - 1));
}

Result<IntExpr> Builder::dim(std::string_view text) const {
  return IntExpr::parse(text, [this](std::string_view name) -> std::optional<Symbol> {
    for (size_t i = 0; i < symbols_.size(); ++i)
      if (symbols_[i].name == name) return static_cast<Symbol>(i);
    return std::nullopt;
  });
}

// ---- Values ---------------------------------------------------------------------------------------------------------

const Value* Builder::value(ValueId id) const {
  const auto& values = frame().function.values;
  return id >= 0 && static_cast<size_t>(id) < values.size() ? &values[static_cast<size_t>(id)] : nullptr;
}

const Constant* Builder::constant_of(ValueId id) const {
  const auto it = frame().constants.find(id);
  return it == frame().constants.end() ? nullptr : &constants_[static_cast<size_t>(it->second)];
}

const Op* Builder::definition(ValueId id) const {
  if (!value(id) || !frame().visible[static_cast<size_t>(id)]) return nullptr;
  const auto [block, op] = frame().defined_by[static_cast<size_t>(id)];
  return op < 0 ? nullptr : &frame().open[static_cast<size_t>(block)].block.ops[static_cast<size_t>(op)];
}

bool Builder::find_op(const std::function<bool(const Op&)>& visit) const {
  for (const OpenBlock& open : frame().open)
    for (const Op& op : open.block.ops)
      if (visit(op)) return true;
  return false;
}

Status Builder::check_visible(ValueId id, const char* role) const {
  if (!value(id)) return make_error(Code::invalid_argument, "%s: no value %d", role, id);
  if (frame().visible[static_cast<size_t>(id)]) return {};
  return make_error(Code::invalid_argument, "%s: value %d belongs to a region that has ended", role, id);
}

ValueId Builder::add_value(TensorType type, std::string name) {
  const auto id = static_cast<ValueId>(frame().function.values.size());
  frame().function.values.push_back({std::move(type), std::move(name)});
  frame().visible.push_back(true);
  frame().defined_by.emplace_back(static_cast<int32_t>(frame().open.size() - 1), -1);
  frame().open.back().values.push_back(id);
  return id;
}

Result<ValueId> Builder::input(std::string name, TensorType type) {
  QUARTET_TRY(usable());
  if (frames_.size() != 1 || frame().open.size() != 1)
    return make_error(Code::failed_precondition, "input %s inside a region or function", quoted(name).c_str());
  if (name.empty()) return make_error(Code::invalid_argument, "an input without a name");
  if (!is_utf8(name))
    return make_error(Code::invalid_argument, "the input's name %s is not UTF-8", quoted(name).c_str());
  for (const ValueId id : frame().open[0].block.arguments)
    if (value(id)->name == name) return make_error(Code::invalid_argument, "two inputs named %s", quoted(name).c_str());
  return parameter(std::move(type), std::move(name));
}

Result<ValueId> Builder::parameter(TensorType type, std::string name) {
  QUARTET_TRY(usable());
  if (const Status bad = check_type(type, dims()); !bad) return bad.with_prefix("input " + quoted(name) + ": ");
  if (frame().function.values.size() >= kMaxValues)
    return make_error(Code::resource_exhausted, "more than %zu values", kMaxValues);
  const ValueId id = add_value(std::move(type), std::move(name));
  frame().open.back().block.arguments.push_back(id);
  return id;
}

Result<ValueId> Builder::constant(Constant constant, std::string name) {
  QUARTET_TRY(usable());
  Op op;
  op.code = OpCode::constant;
  op.name = name;
  std::vector<TensorType> types{constant.type};
  const int32_t number = op.constant = constant_number(std::move(constant));
  QUARTET_TRY(append(std::move(op), std::move(types)));
  const ValueId id = frame().open.back().block.ops.back().results[0];
  frame().constants.emplace(id, number);
  return id;
}

// Of equal constants one is kept.
int32_t Builder::constant_number(Constant constant) {
  const auto [it, fresh] = constant_index_.try_emplace(constant.digest, static_cast<int32_t>(constants_.size()));
  if (fresh) constants_.push_back(std::move(constant));
  return it->second;
}

Status Builder::set_default(ValueId input, Constant constant) {
  QUARTET_TRY(usable());
  const auto& inputs = frame().open.front().block.arguments;
  const auto at = std::find(inputs.begin(), inputs.end(), input);
  if (frames_.size() != 1 || at == inputs.end())
    return make_error(Code::invalid_argument, "a default for value %d, which is no input of the graph", input);
  const std::string who = "the default of input " + quoted(value(input)->name);
  QUARTET_TRY(check_default(type(input), constant.type, dims()).with_prefix(who + ": "));
  const auto place = static_cast<int32_t>(at - inputs.begin());
  if (defaults_.count(place) != 0) return Status(Code::invalid_argument, who + " is set twice");
  defaults_.emplace(place, constant_number(std::move(constant)));
  return {};
}

Status Builder::copy_defaults(const Graph& source) {
  for (const InputDefault& given : source.defaults) {
    const ValueId input = frame().open.front().block.arguments[static_cast<size_t>(given.input)];
    QUARTET_TRY(set_default(input, source.constants[static_cast<size_t>(given.constant)]));
  }
  return {};
}

Result<ValueId> Builder::scalar(DType type, double value) {
  QUARTET_ASSIGN(Constant made, copy_constant({type, {}}, scalar_bytes(type, value)));
  return constant(std::move(made));
}

Result<ValueId> Builder::scalar(DType type, int64_t value) {
  QUARTET_ASSIGN(Constant made, copy_constant({type, {}}, scalar_bytes(type, value)));
  return constant(std::move(made));
}

std::string Builder::describe(OpCode code, const std::string& name) const {
  return "op " + std::to_string(op_count_) + (name.empty() ? "" : " " + quoted(name)) + " (" + op_info(code).name +
         "): ";
}

Status Builder::check_regions(const OpExtras& extras, std::vector<Signature>& signatures) const {
  for (size_t i = 0; i < extras.regions.size(); ++i) {
    const auto it = frame().closed.find(extras.regions[i]);
    if (it == frame().closed.end() || std::count(extras.regions.begin(), extras.regions.end(), extras.regions[i]) != 1)
      return make_error(Code::invalid_argument, "region %d is not closed or already used", extras.regions[i]);
    Signature signature;
    for (const ValueId id : it->second.arguments) signature.arguments.push_back(value(id)->type);
    for (const ValueId id : it->second.results) signature.results.push_back(value(id)->type);
    signatures.push_back(std::move(signature));
  }
  return {};
}

Result<std::vector<ValueId>> Builder::op(OpCode code, std::vector<ValueId> operands, Attrs attrs, OpExtras extras) {
  QUARTET_TRY(usable());
  const auto fail = [&](const Status& status) {
    return status.with_prefix(describe(code, extras.name)).with_node(static_cast<int64_t>(op_count_));
  };
  if (code == OpCode::constant)
    return fail(make_error(Code::invalid_argument, "constants are made by Builder::constant"));
  std::vector<const TensorType*> types;
  for (size_t i = 0; i < operands.size(); ++i) {
    types.push_back(nullptr);
    if (operands[i] == kNoValue) continue;
    if (const Status bad = check_visible(operands[i], "operand"); !bad) return fail(bad);
    types.back() = &value(operands[i])->type;
  }
  std::vector<Signature> regions;
  if (const Status bad = check_regions(extras, regions); !bad) return fail(bad);
  const Signature* callee = nullptr;
  if (extras.callee > 0 && static_cast<size_t>(extras.callee) < headers_.size()) {
    const Header& header = headers_[static_cast<size_t>(extras.callee)];
    if (!header.results_known)
      return fail(
          make_error(Code::failed_precondition, "the results of %s are not declared yet", quoted(header.name).c_str()));
    callee = &header.signature;
  }
  normalize_attrs(code, types, attrs);
  auto inferred = infer({code, types, attrs, dims(), nullptr, regions, callee});
  if (!inferred) return fail(inferred.status());
  Op made;
  made.code = code;
  made.operands = std::move(operands);
  made.attrs = std::move(attrs);
  made.name = extras.name;
  made.callee = extras.callee;
  for (const int32_t region : extras.regions)
    made.regions.push_back(std::move(frame().closed.extract(region).mapped()));
  QUARTET_TRY(append(std::move(made), inferred.take()));
  return frame().open.back().block.ops.back().results;
}

Result<ValueId> Builder::one(OpCode code, std::vector<ValueId> operands, Attrs attrs, std::string name) {
  OpExtras extras;
  extras.name = std::move(name);
  QUARTET_ASSIGN(const std::vector<ValueId> results,
                 op(code, std::move(operands), std::move(attrs), std::move(extras)));
  if (results.size() != 1) return make_error(Code::internal, "%s has %zu results", op_info(code).name, results.size());
  return results[0];
}

Status Builder::append(Op op, std::vector<TensorType> types) {
  if (frame().function.values.size() + types.size() > kMaxValues)
    return make_error(Code::resource_exhausted, "more than %zu values", kMaxValues);
  for (TensorType& type : types) {
    op.results.push_back(add_value(std::move(type), {}));
    frame().defined_by.back().second = static_cast<int32_t>(frame().open.back().block.ops.size());
  }
  frame().open.back().block.ops.push_back(std::move(op));
  ++op_count_;
  return {};
}

Status Builder::set_name(ValueId id, std::string name) {
  QUARTET_TRY(usable());
  QUARTET_TRY(check_visible(id, "set_name"));
  const auto& inputs = frame().open.front().block.arguments;
  if (frames_.size() == 1 && std::find(inputs.begin(), inputs.end(), id) != inputs.end())
    return make_error(Code::invalid_argument, "input %s cannot be renamed", quoted(value(id)->name).c_str());
  frame().function.values[static_cast<size_t>(id)].name = std::move(name);
  return {};
}

Status Builder::output(ValueId id, std::string name) {
  QUARTET_TRY(usable());
  if (frames_.size() != 1 || frame().open.size() != 1)
    return make_error(Code::failed_precondition, "output %s inside a region or function", quoted(name).c_str());
  QUARTET_TRY(check_visible(id, "output"));
  if (name.empty()) return make_error(Code::invalid_argument, "an output without a name");
  if (!is_utf8(name))
    return make_error(Code::invalid_argument, "the output's name %s is not UTF-8", quoted(name).c_str());
  if (!frame().output_names.insert(name).second)
    return make_error(Code::invalid_argument, "two outputs named %s", quoted(name).c_str());
  frame().open[0].block.results.push_back(id);
  frame().function.output_names.push_back(std::move(name));
  return {};
}

// ---- Regions and functions ------------------------------------------------------------------------------------------

Result<int32_t> Builder::region_begin() {
  QUARTET_TRY(usable());
  if (frame().open.size() > static_cast<size_t>(kMaxRegionDepth))
    return make_error(Code::resource_exhausted, "regions nested deeper than %d", kMaxRegionDepth);
  frame().open.emplace_back();
  frame().open.back().region = next_region_;
  return next_region_++;
}

Status Builder::close(std::span<const ValueId> results) {
  for (const ValueId id : results) QUARTET_TRY(check_visible(id, "result"));
  OpenBlock& block = frame().open.back();
  block.block.results.assign(results.begin(), results.end());
  for (const ValueId id : block.values) frame().visible[static_cast<size_t>(id)] = false;
  return {};
}

Status Builder::region_end(std::span<const ValueId> results) {
  QUARTET_TRY(usable());
  if (frame().open.size() < 2) return make_error(Code::failed_precondition, "no region is open");
  QUARTET_TRY(close(results));
  OpenBlock& block = frame().open.back();
  frame().closed.emplace(block.region, std::move(block.block));
  frame().open.pop_back();
  return {};
}

void Builder::unwind(const Mark& mark) {
  Frame& f = frame();
  f.open.resize(mark.open);
  f.function.values.resize(mark.values);
  f.visible.resize(mark.values);
  f.defined_by.resize(mark.values);
  std::erase_if(f.constants, [&](const auto& known) { return static_cast<size_t>(known.first) >= mark.values; });
  std::erase_if(f.closed, [&](const auto& closed) { return closed.first >= mark.region; });
}

Result<int32_t> Builder::function_declare(std::string name, Signature signature) {
  QUARTET_TRY(usable());
  if (name.empty() || find_function(name))
    return make_error(Code::invalid_argument, "%s is no name for a new function", quoted(name).c_str());
  for (const auto* types : {&signature.arguments, &signature.results})
    for (const TensorType& type : *types)
      if (const Status bad = check_type(type, dims()); !bad) return bad.with_prefix("function " + quoted(name) + ": ");
  headers_.push_back({std::move(name), std::move(signature), true, false});
  return static_cast<int32_t>(headers_.size() - 1);
}

Result<int32_t> Builder::function_begin(std::string name) {
  QUARTET_TRY(usable());
  if (frames_.size() > 1 || frame().open.size() > 1)
    return make_error(Code::failed_precondition, "function %s inside a region or function", quoted(name).c_str());
  auto index = find_function(name);
  if (name.empty() || (index && headers_[static_cast<size_t>(*index)].begun))
    return make_error(Code::invalid_argument, "%s is no name for a new function", quoted(name).c_str());
  if (!index) {
    index = static_cast<int32_t>(headers_.size());
    headers_.push_back({name, {}, false, false});
  }
  headers_[static_cast<size_t>(*index)].begun = true;
  frames_.emplace_back();
  frame().index = *index;
  frame().function.name = std::move(name);
  frame().open.emplace_back();
  return *index;
}

Status Builder::function_result(TensorType type) {
  QUARTET_TRY(usable());
  if (frames_.size() != 2) return make_error(Code::failed_precondition, "no function is open");
  QUARTET_TRY(check_type(type, dims()));
  Header& header = headers_[static_cast<size_t>(frame().index)];
  // A call from its own body needs the parameters too, which come first.
  if (!header.results_known)
    for (const ValueId id : frame().open[0].block.arguments) header.signature.arguments.push_back(value(id)->type);
  header.results_known = true;
  header.signature.results.push_back(std::move(type));
  return {};
}

Status Builder::function_end(std::span<const ValueId> results) {
  QUARTET_TRY(usable());
  if (frames_.size() != 2) return make_error(Code::failed_precondition, "no function is open");
  const std::string where = "function " + quoted(frame().function.name) + ": ";
  if (frame().open.size() != 1) return make_error(Code::failed_precondition, "%sa region is open", where.c_str());
  if (!frame().closed.empty())
    return make_error(Code::failed_precondition, "%sregion %d was given to no op", where.c_str(),
                      frame().closed.begin()->first);
  for (const ValueId id : results)
    if (const Status bad = check_visible(id, "result"); !bad) return bad.with_prefix(where);
  Signature signature;
  for (const ValueId id : frame().open[0].block.arguments) signature.arguments.push_back(value(id)->type);
  for (const ValueId id : results) signature.results.push_back(value(id)->type);
  Header& header = headers_[static_cast<size_t>(frame().index)];
  if (header.results_known && header.signature != signature)
    return make_error(Code::invalid_argument, "%sthe types of its ends are not those declared", where.c_str());
  QUARTET_TRY(close(results));
  header.signature = std::move(signature);
  header.results_known = true;
  frame().function.body = std::move(frame().open.back().block);
  finished_.emplace(frame().index, std::move(frame().function));
  frames_.pop_back();
  return {};
}

std::optional<int32_t> Builder::find_function(std::string_view name) const {
  for (size_t i = 0; i < headers_.size(); ++i)
    if (headers_[i].name == name) return static_cast<int32_t>(i);
  return std::nullopt;
}

Result<std::shared_ptr<const Graph>> Builder::finish() {
  QUARTET_TRY(usable());
  spent_ = true;
  if (frames_.size() != 1 || frame().open.size() != 1)
    return make_error(Code::failed_precondition, "a region or function is still open");
  if (!frame().closed.empty())
    return make_error(Code::failed_precondition, "region %d was given to no op", frame().closed.begin()->first);
  for (const Header& header : headers_)
    if (!header.begun)
      return make_error(Code::failed_precondition, "function %s is declared and not built",
                        quoted(header.name).c_str());
  auto graph = std::make_shared<Graph>();
  frame().function.body = std::move(frame().open[0].block);
  graph->symbols = std::move(symbols_);
  graph->constants = std::move(constants_);
  for (const auto& [input, constant] : defaults_) graph->defaults.push_back({input, constant});
  graph->functions.push_back(std::move(frame().function));
  for (auto& [index, function] : finished_) graph->functions.push_back(std::move(function));
  QUARTET_TRY(verify_built(*graph));
  return std::shared_ptr<const Graph>(std::move(graph));
}

}  // namespace quartet::graph
