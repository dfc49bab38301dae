#include "import/onnx/node.h"

#include <algorithm>

#include "graph/constant.h"
#include "graph/evaluate.h"

namespace quartet::import::onnx {

namespace {

constexpr size_t kMaxKnown = 256;
constexpr size_t kMaxEvaluatedBytes = 4096;

std::optional<KnownInts> ints_of(const graph::Constant& constant) {
  const graph::TensorType& type = constant.type;
  if (!is_int(type.dtype) || type.rank() > 1) return std::nullopt;
  const size_t count = constant.bytes / size_of(type.dtype);
  if (count > kMaxKnown) return std::nullopt;
  KnownInts known{{}, type.rank() == 0, type.dtype};
  for (size_t i = 0; i < count; ++i) known.values.emplace_back(graph::element_as_int(constant, i));
  return known;
}

}  // namespace

Result<ValueId> materialise(graph::Builder& builder, Value& value) {
  if (value.id != graph::kNoValue) return value.id;
  if (value.constant) {
    QUARTET_ASSIGN(value.id, builder.constant(*value.constant));
    return value.id;
  }
  if (!value.ints) return Status(Code::internal, "a value of the model is neither a tensor nor known");
  const KnownInts& known = *value.ints;
  bool numbers = true;
  Bytes bytes;
  for (const IntExpr& e : known.values) {
    numbers = numbers && e.is_constant();
    if (!numbers) break;
    const Bytes element = graph::scalar_bytes(known.dtype, *e.constant());
    bytes.insert(bytes.end(), element.begin(), element.end());
  }
  graph::Shape shape;
  if (!known.is_scalar) shape.emplace_back(static_cast<int64_t>(known.values.size()));
  if (numbers) {
    QUARTET_ASSIGN(graph::Constant constant, graph::copy_constant({known.dtype, shape}, bytes));
    QUARTET_ASSIGN(value.id, builder.constant(std::move(constant)));
    return value.id;
  }
  QUARTET_ASSIGN(ValueId id, builder.one(OpCode::dims, {}, {{AttrKey::shape, known.values}}));
  if (known.is_scalar) {
    QUARTET_ASSIGN(id, builder.one(OpCode::reshape, {id}, {{AttrKey::shape, graph::Shape{}}}));
  }
  if (known.dtype != DType::i64) {
    QUARTET_ASSIGN(id, builder.one(OpCode::cast, {id}, {{AttrKey::to, known.dtype}}));
  }
  value.id = id;
  return id;
}

Status NodeContext::want(size_t i) const {
  if (has(i)) return {};
  return make_error(Code::invalid_argument, "input %zu is missing", i);
}

Result<ValueId> NodeContext::in(size_t i) {
  QUARTET_TRY(want(i));
  return materialise(builder_, *inputs_[i]);
}

Result<std::vector<ValueId>> NodeContext::all() {
  std::vector<ValueId> ids;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    QUARTET_ASSIGN(const ValueId id, in(i));
    ids.push_back(id);
  }
  if (ids.empty()) return Status(Code::invalid_argument, "it has no input");
  return ids;
}

std::optional<KnownInts> NodeContext::known_ints(size_t i) const {
  if (!has(i)) return std::nullopt;
  if (inputs_[i]->ints) return inputs_[i]->ints;
  const graph::Constant* known = constant(i);
  return known ? ints_of(*known) : std::nullopt;
}

Result<KnownInts> NodeContext::ints(size_t i, const char* what) const {
  QUARTET_TRY(want(i));
  if (auto known = known_ints(i)) return *std::move(known);
  return make_error(Code::unsupported, "%s (input %zu) is not known when the model is imported", what, i);
}

Result<std::vector<int64_t>> NodeContext::numbers(size_t i, const char* what) const {
  QUARTET_ASSIGN(const KnownInts known, ints(i, what));
  std::vector<int64_t> numbers;
  for (const IntExpr& e : known.values) {
    const auto number = e.constant();
    if (!number) return make_error(Code::unsupported, "%s (input %zu) depends on symbolic dims", what, i);
    numbers.push_back(*number);
  }
  return numbers;
}

const graph::Constant* NodeContext::constant(size_t i) const {
  if (!has(i)) return nullptr;
  const Value& value = *inputs_[i];
  if (value.constant) return &*value.constant;
  return value.id == graph::kNoValue ? nullptr : builder_.constant_of(value.id);
}

std::optional<std::vector<double>> NodeContext::floats(size_t i) const {
  const graph::Constant* known = constant(i);
  if (!known || !is_float(known->type.dtype)) return std::nullopt;
  std::vector<double> values;
  for (size_t e = 0; e < known->bytes / size_of(known->type.dtype); ++e)
    values.push_back(graph::element_as_double(*known, e));
  return values;
}

Result<graph::Shape> NodeContext::declared_shape(size_t output, size_t i, const char* what) const {
  QUARTET_TRY(want(i));
  const auto found = declared_.find(output);
  if (from_caller(i) && found != declared_.end()) return found->second;
  return make_error(Code::unsupported, "%s (input %zu) is not known when the model is imported%s", what, i,
                    from_caller(i) ? ", and the model does not declare the result's shape" : "");
}

const Attribute* NodeContext::attr(std::string_view name) const {
  for (const Attribute& attribute : node_.attributes)
    if (attribute.name == name) return &attribute;
  return nullptr;
}

int64_t NodeContext::attr_int(std::string_view name, int64_t otherwise) const {
  const Attribute* found = attr(name);
  return found ? found->i : otherwise;
}

float NodeContext::attr_float(std::string_view name, float otherwise) const {
  const Attribute* found = attr(name);
  return found ? found->f : otherwise;
}

std::string NodeContext::attr_text(std::string_view name, std::string_view otherwise) const {
  const Attribute* found = attr(name);
  return std::string(found ? found->s : otherwise);
}

std::optional<std::vector<int64_t>> NodeContext::attr_ints(std::string_view name) const {
  const Attribute* found = attr(name);
  return found ? std::optional(found->ints) : std::nullopt;
}

Result<int64_t> NodeContext::axis(int64_t value, size_t rank) const {
  const auto r = static_cast<int64_t>(rank);
  if (value < -r || value >= r)
    return make_error(Code::invalid_argument, "axis %lld is not in [-%zu, %zu)", static_cast<long long>(value), rank,
                      rank);
  return value < 0 ? value + r : value;
}

// The value with another dim along an axis, of which only the run knows whether it is the same: a run in which it is
// not fails.
Result<ValueId> NodeContext::held_to(ValueId x, size_t axis, const IntExpr& dim) {
  const graph::TensorType before = type(x);
  ValueId both[2];
  for (size_t i = 0; i < 2; ++i) {
    QUARTET_ASSIGN(const ValueId list,
                   op(OpCode::dims, {}, {{AttrKey::shape, graph::Shape{i == 0 ? before.shape[axis] : dim}}}));
    QUARTET_ASSIGN(both[i], reshape(list, {}));
  }
  QUARTET_ASSIGN(const ValueId same, op(OpCode::equal, {both[0], both[1]}));
  QUARTET_ASSIGN(
      const ValueId checked,
      op(OpCode::require, {same, x},
         {{AttrKey::reason, label_ + ": its operands' dims do not go together in axis " + std::to_string(axis)}}));
  QUARTET_ASSIGN(const ValueId index,
                 op(OpCode::iota, {},
                    {{AttrKey::shape, graph::Shape{dim}}, {AttrKey::axis, int64_t{0}}, {AttrKey::dtype, DType::i64}}));
  return op(OpCode::gather, {checked, index}, {{AttrKey::axis, static_cast<int64_t>(axis)}});
}

// Dims that must be equal, or 1 where they broadcast, and are not known to be are assumed to be equal: the first that
// is a number, else the first that is not 1, stands for all. What can never be equal is left to the type rule.
Result<std::vector<ValueId>> NodeContext::aligned(OpCode code, std::vector<ValueId> operands, const Attrs& attrs) {
  const graph::OpInfo& info = graph::op_info(code);
  const bool concat = code == OpCode::concat;
  const bool pointwise = info.op_class == graph::OpClass::elementwise ||
                         (info.op_class == graph::OpClass::composite && info.attrs.empty());
  if (operands.size() < 2 || (!pointwise && !concat)) return operands;
  size_t rank = 0;
  for (const ValueId id : operands) rank = std::max(rank, type(id).rank());
  std::vector<graph::Shape> shapes;
  for (const ValueId id : operands) shapes.push_back(type(id).shape);
  std::optional<size_t> skipped;
  if (concat) skipped = static_cast<size_t>(std::get<int64_t>(attrs.at(AttrKey::axis)));
  for (size_t from_end = 1; from_end <= rank; ++from_end) {
    if (skipped && rank - from_end == *skipped) continue;
    const auto dim_of = [&](graph::Shape& shape) {
      return from_end <= shape.size() ? &shape[shape.size() - from_end] : nullptr;
    };
    const IntExpr* leader = nullptr;
    for (graph::Shape& shape : shapes) {
      const IntExpr* dim = dim_of(shape);
      if (!dim || (!concat && dim->is(1))) continue;
      if (!leader || (dim->is_constant() && !leader->is_constant())) leader = dim;
    }
    if (!leader) continue;
    const IntExpr common = *leader;
    for (graph::Shape& shape : shapes) {
      IntExpr* dim = dim_of(shape);
      if (dim && !(dim->is(1) && !concat) && !dims().same(*dim, common)) *dim = common;
    }
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    if (shapes[i] == type(operands[i]).shape) continue;
    for (size_t axis = 0; axis < shapes[i].size(); ++axis) {
      const IntExpr &wanted = shapes[i][axis], from = type(operands[i]).shape[axis];
      const auto run_known = [this](Symbol s) { return !dims().is_entry_known(s); };
      if (wanted == from || !(wanted.contains_any(run_known) || from.contains_any(run_known))) continue;
      QUARTET_ASSIGN(operands[i], held_to(operands[i], axis, wanted));
    }
    if (shapes[i] == type(operands[i]).shape) continue;
    auto assumed = builder_.one(OpCode::assume_shape, {operands[i]}, {{AttrKey::shape, shapes[i]}}, label_);
    if (assumed.ok()) operands[i] = *assumed;
  }
  return operands;
}

Result<ValueId> NodeContext::op(OpCode code, std::vector<ValueId> operands, Attrs attrs) {
  QUARTET_ASSIGN(operands, aligned(code, std::move(operands), attrs));
  const bool constants = std::all_of(operands.begin(), operands.end(), [this](ValueId id) {
    const graph::Constant* known = id == graph::kNoValue ? nullptr : builder_.constant_of(id);
    return known && known->bytes <= kMaxEvaluatedBytes;
  });
  std::vector<const graph::Constant*> known;
  QUARTET_ASSIGN(const ValueId id, builder_.one(code, operands, std::move(attrs), label_));
  if (!constants) return id;
  for (const ValueId operand : operands) known.push_back(builder_.constant_of(operand));
  const graph::Op* made = builder_.definition(id);
  if (!made || code == OpCode::constant) return id;
  const graph::TensorType type = builder_.type(id);
  auto evaluated = graph::evaluate(*made, known, {&type, 1}, kMaxEvaluatedBytes);
  return evaluated ? builder_.constant(std::move(evaluated->front())) : Result<ValueId>(id);
}

Result<ValueId> NodeContext::with_scalar(OpCode code, ValueId a, double value) {
  QUARTET_ASSIGN(const ValueId b, scalar(type(a).dtype, value));
  return op(code, {a, b});
}

Result<ValueId> NodeContext::reshape(ValueId x, graph::Shape shape) {
  return op(OpCode::reshape, {x}, {{AttrKey::shape, std::move(shape)}});
}

Result<ValueId> NodeContext::cast(ValueId x, DType to) {
  if (type(x).dtype == to) return x;
  return op(OpCode::cast, {x}, {{AttrKey::to, to}});
}

Result<ValueId> NodeContext::assumed(ValueId x, graph::Shape shape, const char* what) {
  const graph::Shape given = type(x).shape;
  bool same = given.size() == shape.size();
  for (size_t i = 0; same && i < shape.size(); ++i) same = dims().same(given[i], shape[i]);
  if (same) return x;
  auto made = builder_.one(OpCode::assume_shape, {x}, {{AttrKey::shape, shape}}, label_);
  if (made.ok()) return *made;
  return make_error(Code::invalid_argument, "%s is of shape %s, wanted %s", what, dims().text(given).c_str(),
                    dims().text(shape).c_str());
}

Result<std::optional<ValueId>> NodeContext::without_assumed_axis(ValueId x, size_t axis) {
  for (Assumption& assumption : graphs_.assumptions()) {
    if (assumption.number != 1 || !dims().same(type(x).shape[axis], assumption.dim)) continue;
    assumption.used = true;
    QUARTET_ASSIGN(const ValueId checked,
                   op(OpCode::require, {assumption.condition, x},
                      {{AttrKey::reason, label_ + ": axis " + std::to_string(axis) + " of extent " +
                                             dims().text(assumption.dim) + " does not have extent 1"}}));
    QUARTET_ASSIGN(const ValueId zero, builder_.scalar(DType::i64, int64_t{0}));
    QUARTET_ASSIGN(const ValueId row,
                   op(OpCode::gather, {checked, zero}, {{AttrKey::axis, static_cast<int64_t>(axis)}}));
    return std::optional<ValueId>(row);
  }
  return std::optional<ValueId>();
}

Status NodeContext::give(size_t output, ValueId id) {
  if (output >= outputs_.size()) return make_error(Code::invalid_argument, "it has no output %zu", output);
  outputs_[output].id = id;
  return {};
}

Status NodeContext::give(size_t output, Result<ValueId> id) {
  if (!id.ok()) return id.status();
  return give(output, *id);
}

}  // namespace quartet::import::onnx
