#include "simplify/rewriter.h"

#include <cmath>

namespace quartet::simplify {
namespace {

constexpr int kMaxRewriteDepth = 64;

std::string key_of(const Op& op) {
  ByteWriter out;
  out.u16(static_cast<uint16_t>(op.code));
  for (const ValueId id : op.operands) out.i32(id);
  for (const auto& [key, attr] : op.attrs) {
    out.u8(static_cast<uint8_t>(key));
    graph::write_attr(attr, out);
  }
  const Bytes& bytes = out.data();
  return {bytes.begin(), bytes.end()};
}

}  // namespace

Rewriter::Rewriter(const graph::Graph& source, const Options& options, std::span<const NamedRule> rules)
    : source_(source),
      options_(options),
      rules_(rules),
      merge_equal_(!options.disabled.contains("merge_equal")),
      builder_(source.symbols) {}

Result<std::shared_ptr<const graph::Graph>> Rewriter::run() {
  for (size_t i = 1; i < source_.functions.size(); ++i) {
    const graph::Function& function = source_.functions[i];
    graph::Signature signature;
    for (const ValueId id : function.body.arguments)
      signature.arguments.push_back(function.values[static_cast<size_t>(id)].type);
    for (const ValueId id : function.body.results)
      signature.results.push_back(function.values[static_cast<size_t>(id)].type);
    QUARTET_TRY(builder_.function_declare(function.name, std::move(signature)).status());
  }
  for (size_t i = 1; i < source_.functions.size(); ++i) QUARTET_TRY(walk_function(source_.functions[i], false));
  QUARTET_TRY(walk_function(source_.main(), true));
  return builder_.finish();
}

Status Rewriter::walk_function(const graph::Function& function, bool main) {
  function_ = &function;
  map_.clear();
  made_.assign(1, {});
  if (!main) QUARTET_TRY(builder_.function_begin(function.name).status());
  for (const ValueId id : function.body.arguments) {
    const graph::Value& value = function.values[static_cast<size_t>(id)];
    QUARTET_ASSIGN(map_[id],
                   main ? builder_.input(value.name, value.type) : builder_.parameter(value.type, value.name));
  }
  if (main) QUARTET_TRY(builder_.copy_defaults(source_));
  QUARTET_TRY(walk_block(function.body));
  QUARTET_ASSIGN(const std::vector<ValueId> results, mapped(function.body.results));
  if (!main) return builder_.function_end(results);
  for (size_t i = 0; i < results.size(); ++i) QUARTET_TRY(builder_.output(results[i], function.output_names[i]));
  return {};
}

Status Rewriter::walk_block(const graph::Block& block) {
  for (const Op& op : block.ops) QUARTET_TRY(walk_op(op));
  return {};
}

Status Rewriter::walk_op(const Op& op) {
  name_ = op.name;
  QUARTET_ASSIGN(std::vector<ValueId> operands, mapped(op.operands));
  std::vector<ValueId> results;
  if (op.code == OpCode::constant) {
    QUARTET_ASSIGN(const ValueId id, emit_constant(source_.constants[static_cast<size_t>(op.constant)]));
    results.push_back(id);
  } else if (graph::op_info(op.code).op_class == graph::OpClass::control) {
    QUARTET_ASSIGN(results, walk_control(op, std::move(operands)));
  } else {
    QUARTET_ASSIGN(results, emit(op.code, std::move(operands), op.attrs));
  }
  if (results.size() != op.results.size())
    return make_error(Code::internal, "a rewrite of %s gave %zu values for %zu", graph::op_info(op.code).name,
                      results.size(), op.results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    const graph::Value& old = function_->values[static_cast<size_t>(op.results[i])];
    // The same extents may be written in another way; what follows expects the old one.
    if (type(results[i]) != old.type) {
      QUARTET_ASSIGN(results[i], one(OpCode::reshape, {results[i]}, {{AttrKey::shape, old.type.shape}}));
    }
    if (type(results[i]) != old.type)
      return make_error(Code::internal, "a rewrite of %s made %s of %s", graph::op_info(op.code).name,
                        dims().text(type(results[i])).c_str(), dims().text(old.type).c_str());
    map_[op.results[i]] = results[i];
    if (!old.name.empty() && builder_.value(results[i])->name.empty())
      QUARTET_TRY(builder_.set_name(results[i], old.name));
  }
  return {};
}

Result<std::vector<ValueId>> Rewriter::walk_control(const Op& op, std::vector<ValueId> operands) {
  const std::string name = name_;
  // An if that gives birth to dims is left to the grinder, which can put others in their place.
  const bool births = op.attrs.contains(AttrKey::births);
  if (const Constant* condition = op.code == OpCode::if_ && !births ? constant(operands[0]) : nullptr) {
    const graph::Block& taken = op.regions[condition->data[0] != 0 ? 0 : 1];
    QUARTET_TRY(walk_block(taken));
    return mapped(taken.results);
  }
  if (const Constant* condition = op.code == OpCode::require ? constant(operands[0]) : nullptr)
    if (condition->data[0] != 0) return std::vector<ValueId>(operands.begin() + 1, operands.end());
  graph::OpExtras extras{{}, op.callee, name};
  for (const graph::Block& region : op.regions) {
    QUARTET_ASSIGN(const int32_t id, builder_.region_begin());
    made_.emplace_back();
    for (const ValueId argument : region.arguments) {
      const graph::Value& value = function_->values[static_cast<size_t>(argument)];
      QUARTET_ASSIGN(map_[argument], builder_.parameter(value.type, value.name));
    }
    QUARTET_TRY(walk_block(region));
    QUARTET_ASSIGN(const std::vector<ValueId> results, mapped(region.results));
    QUARTET_TRY(builder_.region_end(results));
    made_.pop_back();
    extras.regions.push_back(id);
  }
  return builder_.op(op.code, std::move(operands), op.attrs, std::move(extras));
}

Result<ValueId> Rewriter::mapped(ValueId id) const {
  if (id == graph::kNoValue) return id;
  const auto it = map_.find(id);
  if (it == map_.end()) return make_error(Code::internal, "value %d has no counterpart", id);
  return it->second;
}

Result<std::vector<ValueId>> Rewriter::mapped(std::span<const ValueId> ids) const {
  std::vector<ValueId> out;
  for (const ValueId id : ids) {
    QUARTET_ASSIGN(const ValueId other, mapped(id));
    out.push_back(other);
  }
  return out;
}

const Op* Rewriter::definition(ValueId id, OpCode code) const {
  const Op* op = definition(id);
  return op && op->code == code ? op : nullptr;
}

Result<std::vector<ValueId>> Rewriter::emit(OpCode code, std::vector<ValueId> operands, Attrs attrs) {
  std::vector<const TensorType*> types;
  types.reserve(operands.size());
  for (const ValueId id : operands) types.push_back(id == graph::kNoValue ? nullptr : &type(id));
  graph::normalize_attrs(code, types, attrs);
  auto inferred = graph::infer({code, types, attrs, dims()});
  if (!inferred) return inferred.status().with_prefix(std::string("simplify: ") + graph::op_info(code).name + ": ");
  Candidate candidate;
  candidate.op.code = code;
  candidate.op.operands = std::move(operands);
  candidate.op.attrs = std::move(attrs);
  candidate.types = inferred.take();
  return make(std::move(candidate));
}

Result<std::vector<ValueId>> Rewriter::make(Candidate candidate) {
  if (depth_ == kMaxRewriteDepth)
    return make_error(Code::internal, "rewrites of %s do not end", graph::op_info(candidate.op.code).name);
  ++depth_;
  for (const NamedRule& rule : rules_) {
    auto replacement = rule.rule(*this, candidate);
    if (replacement && !*replacement) continue;
    --depth_;
    if (!replacement) return replacement.status();
    return **replacement;
  }
  --depth_;
  return make_once(std::move(candidate));
}

// Equal ops on equal operands are one op; those of the blocks around count too.
Result<std::vector<ValueId>> Rewriter::make_once(Candidate candidate) {
  std::string key = merge_equal_ ? key_of(candidate.op) : "";
  if (merge_equal_)
    for (const auto& block : made_)
      if (const auto it = block.find(key); it != block.end()) return it->second;
  graph::OpExtras extras;
  extras.name = name_;
  QUARTET_ASSIGN(std::vector<ValueId> results, builder_.op(candidate.op.code, std::move(candidate.op.operands),
                                                           std::move(candidate.op.attrs), std::move(extras)));
  if (merge_equal_) made_.back().emplace(std::move(key), results);
  return results;
}

Result<ValueId> Rewriter::one(OpCode code, std::vector<ValueId> operands, Attrs attrs) {
  QUARTET_ASSIGN(const std::vector<ValueId> results, emit(code, std::move(operands), std::move(attrs)));
  return results[0];
}

Result<ValueId> Rewriter::emit_constant(Constant constant) {
  const std::string key = merge_equal_ ? "constant " + constant.digest.hex() : "";
  if (merge_equal_)
    for (const auto& block : made_)
      if (const auto it = block.find(key); it != block.end()) return it->second[0];
  QUARTET_ASSIGN(const ValueId id, builder_.constant(std::move(constant), name_));
  if (merge_equal_) made_.back().emplace(key, std::vector<ValueId>{id});
  return id;
}

Result<ValueId> Rewriter::scalar(DType type, double value) {
  QUARTET_ASSIGN(Constant made, graph::copy_constant({type, {}}, graph::scalar_bytes(type, value)));
  return emit_constant(std::move(made));
}

bool is_all(const Rewriter& rewriter, ValueId id, double number) {
  const Constant* constant = rewriter.constant(id);
  if (!constant || !graph::is_splat(*constant)) return false;
  const double value = graph::element_as_double(*constant, 0);
  return value == number && std::signbit(value) == std::signbit(number);
}

bool has_type(const Rewriter& rewriter, ValueId id, const TensorType& type) { return rewriter.type(id) == type; }

}  // namespace quartet::simplify
