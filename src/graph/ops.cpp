#include "graph/ops.h"

#include <array>
#include <string_view>

namespace quartet::graph {
namespace {

constexpr AttrSpec required_int(AttrKey key) { return {key, AttrKind::i64, true, 0}; }
constexpr AttrSpec defaulted_int(AttrKey key, int64_t value) { return {key, AttrKind::i64, false, value}; }
constexpr AttrSpec required_ints(AttrKey key) { return {key, AttrKind::ints, true, 0}; }
constexpr AttrSpec optional_ints(AttrKey key) { return {key, AttrKind::ints, false, 0}; }
constexpr AttrSpec required_text(AttrKey key) { return {key, AttrKind::text, true, 0}; }
constexpr AttrSpec required_dtype(AttrKey key) { return {key, AttrKind::dtype, true, 0}; }
constexpr AttrSpec optional_shape(AttrKey key) { return {key, AttrKind::shape, false, 0}; }
constexpr AttrSpec required_shape(AttrKey key) { return {key, AttrKind::shape, true, 0}; }

// if is a keyword of C++, so its code has an underscore.
constexpr const char* text_name(const char* code) { return std::string_view(code) == "if_" ? "if" : code; }

// The attribute rows of each op; a leading empty one so that no array is empty.
#define QUARTET_OP(code, min, max, results, regions, op_class, types, doc, ...) \
  constexpr AttrSpec code##_attrs[] = {AttrSpec{} __VA_OPT__(, ) __VA_ARGS__};
#include "graph/ops.def"
#undef QUARTET_OP

template <size_t N>
constexpr std::span<const AttrSpec> specs(const AttrSpec (&rows)[N]) {
  return std::span<const AttrSpec>(rows).subspan(1);
}

constexpr OpInfo kOps[] = {
    OpInfo{OpCode::invalid, "invalid", 0, 0, 0, 0, OpClass::constant, std::nullopt, TypeSet::any, "", {}},
#define QUARTET_OP(code, min, max, results, regions, op_class, types, doc, ...)                                      \
  OpInfo{                                                                                                            \
      OpCode::code, text_name(#code),   min, max, results, regions, OpClass::op_class, std::nullopt, TypeSet::types, \
      doc,          specs(code##_attrs)},
#define QUARTET_ELEMENTWISE_OP(code, operands, scalar, types, doc, ...)                                \
  OpInfo{OpCode::code,     text_name(#code), operands, operands,           1, 0, OpClass::elementwise, \
         ScalarOp::scalar, TypeSet::types,   doc,      specs(code##_attrs)},
#include "graph/ops.def"
#undef QUARTET_ELEMENTWISE_OP
#undef QUARTET_OP
};
static_assert(std::size(kOps) == kOpCount);

struct KeyRow {
  const char* name;
  const char* doc;
};
constexpr KeyRow kKeys[] = {
    {"invalid", ""},
#define QUARTET_ATTR_KEY(key, doc) {#key, doc},
#include "graph/ops.def"
#undef QUARTET_ATTR_KEY
};
static_assert(std::size(kKeys) == kAttrKeyCount);

constexpr const char* kKindNames[] = {"an integer", "a number",        "a text", "integers",
                                      "numbers",    "an element type", "dims"};

}  // namespace

bool contains(TypeSet set, DType type) {
  switch (set) {
    case TypeSet::any:
      return is_valid(type);
    case TypeSet::number:
      return is_int(type) || is_float(type);
    case TypeSet::floating:
      return is_float(type);
    case TypeSet::integer:
      return is_int(type);
    case TypeSet::bits:
      return is_int(type) || type == DType::boolean;
    case TypeSet::boolean:
      return type == DType::boolean;
  }
  return false;
}

const AttrSpec* OpInfo::attr(AttrKey key) const {
  for (const AttrSpec& spec : attrs)
    if (spec.key == key) return &spec;
  return nullptr;
}

const OpInfo& op_info(OpCode code) {
  const auto index = static_cast<size_t>(code);
  return kOps[index < std::size(kOps) ? index : 0];
}

std::optional<OpCode> op_from_name(std::string_view name) {
  for (const OpInfo& info : all_ops())
    if (name == info.name) return info.code;
  return std::nullopt;
}

std::span<const OpInfo> all_ops() { return std::span<const OpInfo>(kOps).subspan(1); }

const char* attr_key_name(AttrKey key) {
  const auto index = static_cast<size_t>(key);
  return kKeys[index < std::size(kKeys) ? index : 0].name;
}

const char* attr_key_doc(AttrKey key) {
  const auto index = static_cast<size_t>(key);
  return kKeys[index < std::size(kKeys) ? index : 0].doc;
}

std::optional<AttrKey> attr_key_from_name(std::string_view name) {
  for (size_t i = 1; i < std::size(kKeys); ++i)
    if (name == kKeys[i].name) return static_cast<AttrKey>(i);
  return std::nullopt;
}

const char* attr_kind_name(AttrKind kind) {
  const auto index = static_cast<size_t>(kind);
  return index < std::size(kKindNames) ? kKindNames[index] : "an unknown kind";
}

}  // namespace quartet::graph
