#include "graph/infer.h"

#include "graph/infer_rules.h"

namespace quartet::graph {
namespace {

const char* set_name(TypeSet set) {
  switch (set) {
    case TypeSet::any:
      return "any type";
    case TypeSet::number:
      return "numbers";
    case TypeSet::floating:
      return "floats";
    case TypeSet::integer:
      return "integers";
    case TypeSet::bits:
      return "integers or bool";
    case TypeSet::boolean:
      return "bool";
  }
  return "";
}

Status check_operand_count(const InferInput& in, const OpInfo& info) {
  const size_t count = in.operands.size();
  const auto least = static_cast<size_t>(info.min_operands);
  if (count < least || (info.max_operands >= 0 && count > static_cast<size_t>(info.max_operands)))
    return make_error(Code::invalid_argument, "%zu operands, wanted %s%d", count,
                      info.max_operands < 0 ? "at least " : "", info.min_operands);
  for (size_t i = 0; i < count; ++i)
    if (!in.operands[i] && !(in.code == OpCode::loop && i < 2))
      return make_error(Code::invalid_argument, "operand %zu is absent", i);
  return {};
}

// The element type that data operands share: of select's branches, of gather's source alone, of all but scatter's
// indices, of the rest all.
Status check_operand_types(const InferInput& in, const OpInfo& info) {
  if (info.op_class == OpClass::control) return {};
  size_t begin = 0, end = in.operands.size();
  if (in.code == OpCode::select) {
    begin = 1;
    if (in.operands[0]->dtype != DType::boolean)
      return make_error(Code::invalid_argument, "the condition is %s, not bool", dtype_name(in.operands[0]->dtype));
  }
  if (in.code == OpCode::gather) end = 1;
  for (size_t i = begin; i < end; ++i) {
    if (in.code == OpCode::scatter && i == 1) continue;
    const DType type = in.operands[i]->dtype;
    if (!contains(info.types, type))
      return make_error(Code::invalid_argument, "operand %zu is %s, wanted %s", i, dtype_name(type),
                        set_name(info.types));
    if (type != in.operands[begin]->dtype)
      return make_error(Code::invalid_argument, "element types differ: %s and %s",
                        dtype_name(in.operands[begin]->dtype), dtype_name(type));
  }
  return {};
}

bool gives_bool(OpCode code) {
  switch (code) {
    case OpCode::equal:
    case OpCode::not_equal:
    case OpCode::less:
    case OpCode::less_equal:
    case OpCode::greater:
    case OpCode::greater_equal:
    case OpCode::is_nan:
      return true;
    default:
      return false;
  }
}

// Elementwise ops and the composites that are.
Result<Types> infer_pointwise(const InferInput& in) {
  TensorType type = *in.operands.back();
  if (gives_bool(in.code)) type.dtype = DType::boolean;
  if (const auto it = in.attrs.find(AttrKey::to); it != in.attrs.end()) type.dtype = std::get<DType>(it->second);
  for (size_t i = 0; i + 1 < in.operands.size(); ++i) {
    QUARTET_ASSIGN(type.shape, broadcast(in.operands[i]->shape, type.shape, in.dims));
  }
  return Types{std::move(type)};
}

Result<Types> infer_composite(const InferInput& in) {
  if (in.code == OpCode::conv) return infer_conv(in);
  const OpInfo& info = op_info(in.code);
  const bool reduces = info.attr(AttrKey::axes) || info.attr(AttrKey::axis);
  return reduces ? infer_reduction(in) : infer_pointwise(in);
}

Result<Types> infer_by_class(const InferInput& in, const OpInfo& info) {
  switch (info.op_class) {
    case OpClass::constant:
      return infer_source(in);
    case OpClass::elementwise:
      return infer_pointwise(in);
    case OpClass::view:
      return infer_view(in);
    case OpClass::data:
      return infer_data(in);
    case OpClass::reduction:
      return infer_reduction(in);
    case OpClass::contraction:
      return in.code == OpCode::convolve ? infer_convolve(in) : infer_matmul(in);
    case OpClass::composite:
      return infer_composite(in);
    case OpClass::control:
      return infer_control(in);
  }
  return make_error(Code::internal, "%s has no type rule", info.name);
}

}  // namespace

const Shape& shape_attr(const InferInput& in, AttrKey key) { return std::get<Shape>(in.attrs.at(key)); }

int64_t int_attr(const InferInput& in, AttrKey key) {
  const auto it = in.attrs.find(key);
  if (it != in.attrs.end()) return std::get<int64_t>(it->second);
  const AttrSpec* spec = op_info(in.code).attr(key);
  return spec ? spec->default_int : 0;
}

const std::vector<int64_t>* ints_attr(const InferInput& in, AttrKey key) {
  const auto it = in.attrs.find(key);
  return it == in.attrs.end() ? nullptr : &std::get<std::vector<int64_t>>(it->second);
}

Result<Shape> broadcast(const Shape& a, const Shape& b, const Dims& dims) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape out = longer;
  const size_t offset = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    IntExpr& dim = out[offset + i];
    const IntExpr& other = shorter[i];
    if (other.is(1) || dims.same(dim, other)) continue;
    if (!dim.is(1))
      return make_error(Code::invalid_argument, "%s and %s do not broadcast: %s against %s in axis %zu",
                        dims.text(a).c_str(), dims.text(b).c_str(),
                        dims.text(a.size() >= b.size() ? dim : other).c_str(),
                        dims.text(a.size() >= b.size() ? other : dim).c_str(), offset + i);
    dim = other;
  }
  return out;
}

Status check_type(const TensorType& type, const Dims& dims) {
  if (!is_valid(type.dtype)) return make_error(Code::invalid_argument, "no element type");
  if (type.rank() > kMaxRank)
    return make_error(Code::invalid_argument, "rank %zu, more than %zu", type.rank(), kMaxRank);
  for (size_t d = 0; d < type.rank(); ++d)
    if (!dims.well_formed(type.shape[d]))
      return dims.no_extent(type.shape[d]).with_prefix(format("%s, dim %zu: ", dtype_name(type.dtype), d));
  if (type.is_static() && !type.bytes())
    return make_error(Code::resource_exhausted, "%s is larger than 2^62 bytes", dims.text(type).c_str());
  return {};
}

Status check_default(const TensorType& input, const TensorType& constant, const Dims& dims) {
  bool agree = input.dtype == constant.dtype && input.rank() == constant.rank();
  for (size_t axis = 0; agree && axis < input.rank(); ++axis)
    agree = !input.shape[axis].is_constant() || input.shape[axis] == constant.shape[axis];
  if (agree) return {};
  return make_error(Code::invalid_argument, "%s for %s", dims.text(constant).c_str(), dims.text(input).c_str());
}

Result<std::vector<TensorType>> infer(const InferInput& in) {
  const OpInfo& info = op_info(in.code);
  if (info.code == OpCode::invalid)
    return make_error(Code::invalid_argument, "op number %u is none", static_cast<unsigned>(in.code));
  QUARTET_TRY(check_operand_count(in, info));
  QUARTET_TRY(check_operand_types(in, info));
  size_t rank = in.operands.empty() || !in.operands[0] ? 0 : in.operands[0]->rank();
  if (const auto it = in.attrs.find(AttrKey::shape); in.code == OpCode::iota && it != in.attrs.end())
    if (const auto* shape = std::get_if<Shape>(&it->second)) rank = shape->size();
  QUARTET_TRY(check_attrs(in.code, rank, in.attrs, in.dims));
  QUARTET_ASSIGN(Types types, infer_by_class(in, info));
  for (const TensorType& type : types) QUARTET_TRY(check_type(type, in.dims));
  return types;
}

}  // namespace quartet::graph
