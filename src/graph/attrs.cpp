// Attributes: their one form, and the checks of it.
#include <algorithm>

#include "graph/infer.h"

namespace quartet::graph {
namespace {

// The rank that axes refer to.
size_t rank_of(OpCode code, std::span<const TensorType* const> operands, const Attrs& attrs) {
  if (code == OpCode::iota) {
    const auto it = attrs.find(AttrKey::shape);
    const Shape* shape = it == attrs.end() ? nullptr : std::get_if<Shape>(&it->second);
    return shape ? shape->size() : 0;
  }
  return operands.empty() || !operands[0] ? 0 : operands[0]->rank();
}

void convert_kind(AttrKind wanted, Attr& attr) {
  if (wanted == AttrKind::shape) {
    if (const auto* ints = std::get_if<std::vector<int64_t>>(&attr)) attr = Shape(ints->begin(), ints->end());
  } else if (wanted == AttrKind::ints) {
    const auto* shape = std::get_if<Shape>(&attr);
    if (!shape) return;
    std::vector<int64_t> ints;
    for (const IntExpr& e : *shape) {
      if (!e.is_constant()) return;
      ints.push_back(*e.constant());
    }
    attr = std::move(ints);
  }
}

bool is_default(const AttrSpec& spec, const Attr& attr) {
  if (spec.required) return false;
  if (const auto* value = std::get_if<int64_t>(&attr)) return *value == spec.default_int;
  const bool ones = spec.key == AttrKey::steps || spec.key == AttrKey::strides || spec.key == AttrKey::dilations;
  if (const auto* ints = std::get_if<std::vector<int64_t>>(&attr); ints && ones)
    return std::all_of(ints->begin(), ints->end(), [](int64_t step) { return step == 1; });
  return false;
}

Status check_axes(AttrKey key, size_t rank, const std::vector<int64_t>& axes) {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] < 0 || axes[i] >= static_cast<int64_t>(rank))
      return make_error(Code::invalid_argument, "%s: %lld is outside rank %zu", attr_key_name(key),
                        static_cast<long long>(axes[i]), rank);
    if (i > 0 && axes[i] <= axes[i - 1])
      return make_error(Code::invalid_argument, "%s: %lld after %lld; axes ascend without repeats", attr_key_name(key),
                        static_cast<long long>(axes[i]), static_cast<long long>(axes[i - 1]));
  }
  return {};
}

Status check_perm(size_t rank, const std::vector<int64_t>& perm) {
  std::vector<bool> seen(rank, false);
  bool good = perm.size() == rank;
  for (size_t i = 0; good && i < rank; ++i) {
    good = perm[i] >= 0 && perm[i] < static_cast<int64_t>(rank) && !seen[static_cast<size_t>(perm[i])];
    if (good) seen[static_cast<size_t>(perm[i])] = true;
  }
  if (good) return {};
  return make_error(Code::invalid_argument, "perm is not a permutation of the %zu axes", rank);
}

Status check_ints(AttrKey key, size_t rank, const std::vector<int64_t>& ints) {
  if (key == AttrKey::axes) return check_axes(key, rank, ints);
  if (key == AttrKey::perm) return check_perm(rank, ints);
  if (key == AttrKey::steps) {
    if (ints.size() != rank) return make_error(Code::invalid_argument, "%zu steps for rank %zu", ints.size(), rank);
    for (const int64_t step : ints)
      if (step == 0 || step == INT64_MIN)
        return make_error(Code::invalid_argument, "a step of %lld", static_cast<long long>(step));
  }
  if (key == AttrKey::sizes || key == AttrKey::strides || key == AttrKey::dilations)
    for (const int64_t value : ints)
      if (value < 1 || value > INT32_MAX)
        return make_error(Code::invalid_argument, "%s: %lld is outside 1 to 2^31 - 1", attr_key_name(key),
                          static_cast<long long>(value));
  return {};
}

// Whether the dims of this attribute are one per axis of the operand, and whether each must be an extent by itself.
bool is_per_axis(AttrKey key) {
  return key == AttrKey::starts || key == AttrKey::limits || key == AttrKey::low || key == AttrKey::high;
}

Status check_shape(OpCode code, AttrKey key, size_t rank, const Shape& shape, const Dims& dims) {
  if (is_per_axis(key) && shape.size() != rank)
    return make_error(Code::invalid_argument, "%s has %zu dims for rank %zu", attr_key_name(key), shape.size(), rank);
  if (!is_per_axis(key) && key != AttrKey::births && code != OpCode::dims && shape.size() > kMaxRank)
    return make_error(Code::invalid_argument, "%s has %zu dims, more than %zu", attr_key_name(key), shape.size(),
                      kMaxRank);
  if (key == AttrKey::trip && shape.size() != 1)
    return make_error(Code::invalid_argument, "trip is one dim, not %zu", shape.size());
  const bool signed_values = code == OpCode::dims || key == AttrKey::starts || key == AttrKey::limits;
  for (const IntExpr& e : shape) {
    if (e.is_constant() && signed_values) continue;
    if (!dims.well_formed(e)) return dims.no_extent(e).with_prefix(std::string(attr_key_name(key)) + ": ");
  }
  return {};
}

Status check_value(OpCode code, const AttrSpec& spec, size_t rank, const Attr& attr, const Dims& dims) {
  const char* name = attr_key_name(spec.key);
  if (attr.index() != static_cast<size_t>(spec.kind))
    return make_error(Code::invalid_argument, "%s is %s, not %s", name, attr_kind_name(spec.kind),
                      attr_kind_name(static_cast<AttrKind>(attr.index())));
  switch (spec.kind) {
    case AttrKind::i64: {
      const int64_t value = std::get<int64_t>(attr);
      if (spec.key == AttrKey::groups) {
        if (value >= 1) return {};
        return make_error(Code::invalid_argument, "%s: %lld is less than 1", name, static_cast<long long>(value));
      }
      if (spec.key == AttrKey::combine) {
        if (value >= 0 && value <= 4) return {};
        return make_error(Code::invalid_argument, "%s: %lld is outside 0 to 4", name, static_cast<long long>(value));
      }
      if (spec.key == AttrKey::axis ? value < 0 || value >= static_cast<int64_t>(rank) : value != 0 && value != 1)
        return make_error(Code::invalid_argument, "%s: %lld is outside %s %zu", name, static_cast<long long>(value),
                          spec.key == AttrKey::axis ? "rank" : "0 to", spec.key == AttrKey::axis ? rank : size_t{1});
      return {};
    }
    case AttrKind::ints:
      return check_ints(spec.key, rank, std::get<std::vector<int64_t>>(attr));
    case AttrKind::dtype:
      if (is_valid(std::get<DType>(attr))) return {};
      return make_error(Code::invalid_argument, "%s: not an element type", name);
    case AttrKind::shape:
      return check_shape(code, spec.key, rank, std::get<Shape>(attr), dims);
    case AttrKind::f64:
    case AttrKind::text:
    case AttrKind::floats:
      return {};
  }
  return {};
}

}  // namespace

void normalize_attrs(OpCode code, std::span<const TensorType* const> operands, Attrs& attrs) {
  for (const AttrSpec& spec : op_info(code).attrs)
    if (const auto it = attrs.find(spec.key); it != attrs.end()) convert_kind(spec.kind, it->second);
  const auto rank = static_cast<int64_t>(rank_of(code, operands, attrs));
  const auto from_end = [rank](int64_t axis) { return axis < 0 && axis >= -rank ? axis + rank : axis; };
  for (const AttrSpec& spec : op_info(code).attrs) {
    const auto it = attrs.find(spec.key);
    if (it == attrs.end()) continue;
    if (auto* value = std::get_if<int64_t>(&it->second); value && spec.key == AttrKey::axis) *value = from_end(*value);
    auto* ints = std::get_if<std::vector<int64_t>>(&it->second);
    if (ints && (spec.key == AttrKey::axes || spec.key == AttrKey::perm))
      std::transform(ints->begin(), ints->end(), ints->begin(), from_end);
    if (ints && spec.key == AttrKey::axes) std::sort(ints->begin(), ints->end());
    if (is_default(spec, it->second)) attrs.erase(it);
  }
}

Status check_attrs(OpCode code, size_t rank, const Attrs& attrs, const Dims& dims) {
  const OpInfo& info = op_info(code);
  for (const auto& [key, attr] : attrs) {
    const AttrSpec* spec = info.attr(key);
    if (!spec) return make_error(Code::invalid_argument, "%s has no attribute %s", info.name, attr_key_name(key));
    QUARTET_TRY(check_value(code, *spec, rank, attr, dims));
    if (is_default(*spec, attr))
      return make_error(Code::invalid_argument, "attribute %s is written though it is the default", attr_key_name(key));
  }
  for (const AttrSpec& spec : info.attrs)
    if (spec.required && !attrs.contains(spec.key))
      return make_error(Code::invalid_argument, "%s needs the attribute %s", info.name, attr_key_name(spec.key));
  return {};
}

}  // namespace quartet::graph
