// The ops of a graph and their attributes, generated from ops.def.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/dtype.h"
#include "base/scalar_ops.h"

namespace quartet::graph {

enum class OpCode : uint16_t {
  invalid = 0,
#define QUARTET_OP(code, ...) code,
#include "graph/ops.def"
#undef QUARTET_OP
};
inline constexpr int kOpCount = 1  // including invalid
#define QUARTET_OP(code, ...) +1
#include "graph/ops.def"
#undef QUARTET_OP
    ;

enum class AttrKey : uint8_t {
  invalid = 0,
#define QUARTET_ATTR_KEY(key, doc) key,
#include "graph/ops.def"
#undef QUARTET_ATTR_KEY
};
inline constexpr int kAttrKeyCount = 1  // including invalid
#define QUARTET_ATTR_KEY(key, doc) +1
#include "graph/ops.def"
#undef QUARTET_ATTR_KEY
    ;

// Elements of a block of softmax_stats. A row of one block is what a maximum and a sum of exponentials give, so that a
// kernel may keep the exponentials of such a row and use them again. A block is walked twice, so it stays in L1.
inline constexpr int64_t kSoftmaxBlock = 4096;

// The alternatives of graph::Attr, in its order.
enum class AttrKind : uint8_t { i64 = 0, f64 = 1, text = 2, ints = 3, floats = 4, dtype = 5, shape = 6 };

enum class OpClass : uint8_t {
  constant,     // no data operand
  elementwise,  // OpInfo::scalar at every point, operands broadcast
  view,         // the operand's elements under other indices, no arithmetic
  data,         // concat, pad, gather
  reduction,
  contraction,
  composite,  // gone after simplify
  control,    // if, loop, call, require
};

enum class TypeSet : uint8_t {
  any,
  number,
  floating,
  integer,
  bits,
  boolean
};  // number: int or float; bits: int or bool
bool contains(TypeSet set, DType type);

struct AttrSpec {
  AttrKey key = AttrKey::invalid;
  AttrKind kind = AttrKind::i64;
  bool required = false;
  int64_t default_int = 0;  // of an optional i64
};

struct OpInfo {
  OpCode code = OpCode::invalid;
  const char* name = "";
  int min_operands = 0;
  int max_operands = 0;  // -1: any number
  int results = 0;       // -1: depends on the regions or the callee
  int regions = 0;
  OpClass op_class = OpClass::constant;
  std::optional<ScalarOp> scalar;  // of an elementwise op
  TypeSet types = TypeSet::any;
  const char* doc = "";
  std::span<const AttrSpec> attrs;

  const AttrSpec* attr(AttrKey key) const;  // null if the op has no such attribute
};

// The row of an op; that of `invalid`, named "invalid", for any number that is none.
const OpInfo& op_info(OpCode code);
std::optional<OpCode> op_from_name(std::string_view name);
// Every op, in the order of their numbers, without invalid.
std::span<const OpInfo> all_ops();

const char* attr_key_name(AttrKey key);
const char* attr_key_doc(AttrKey key);
std::optional<AttrKey> attr_key_from_name(std::string_view name);
const char* attr_kind_name(AttrKind kind);

}  // namespace quartet::graph
