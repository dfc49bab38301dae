// The graph: SSA values and ops with regions, typed, in functions. Immutable once finished.
//
// A Graph is the same object whether it was built by calls (builder.h), parsed from text (text.h) or imported. Values
// are dense int32 ids within a function. Ops stand in a block in execution order; an op with regions (if, loop) owns
// blocks whose values live in the same id space, and which may use values of enclosing blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/hash.h"
#include "base/int_expr.h"
#include "base/status.h"
#include "graph/ops.h"

namespace quartet::graph {

using ValueId = int32_t;
inline constexpr ValueId kNoValue = -1;  // an absent optional operand
using Shape = std::vector<IntExpr>;

inline constexpr size_t kMaxRank = 16;
inline constexpr int kMaxRegionDepth = 24;

struct TensorType {
  DType dtype = DType::invalid;
  Shape shape;
  bool operator==(const TensorType&) const = default;
  size_t rank() const { return shape.size(); }
  bool is_static() const;
  // Product of the dims (1 for rank 0).
  IntExpr elements() const;
  // Bytes of a static type; nothing when the type is not static or the size passes 2^62.
  std::optional<size_t> bytes() const;
};

// A symbol of the graph's dims. Entry-known symbols are bound by the inputs' shapes; run-known ones are born inside the
// program and carry an upper bound.
struct DimSymbol {
  enum class Kind : uint8_t { entry = 0, run = 1 };
  std::string name;  // letters, digits, '_' and '.', no digit first; unique in the graph
  Kind kind = Kind::entry;
  int64_t lower = 0;
  std::optional<IntExpr> upper;  // over entry symbols
  int64_t hint = 0;              // a typical value for planning, 0 = none; not part of the meaning
};

// Attribute values. Tensors are constants of the graph (see Constant).
using Attr = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>, DType, Shape>;
using Attrs = std::map<AttrKey, Attr>;

struct Block;

struct Op {
  OpCode code;
  std::vector<ValueId> operands;  // kNoValue for an absent optional one
  std::vector<ValueId> results;
  std::map<AttrKey, Attr> attrs;  // only those that differ from the row's defaults
  std::vector<Block> regions;     // if: then, else; loop: body
  int32_t callee = -1;            // call: index of the function
  int32_t constant = -1;          // constant: index into Graph::constants
  std::string name;               // for messages only; not part of the canonical form
};

struct Block {
  std::vector<ValueId> arguments;  // function inputs, loop's (index, condition, carried..., scanned...)
  std::vector<Op> ops;
  std::vector<ValueId> results;  // what the block yields
};

struct Value {
  TensorType type;
  std::string name;  // for messages and I/O; not part of the canonical form
};

struct Function {
  std::string name;
  std::vector<Value> values;  // by ValueId
  Block body;                 // arguments are the inputs, results the outputs
  // One per result of main, non-empty and unique; an output may be an input or another output under a second name.
  // Other functions have none.
  std::vector<std::string> output_names;
};

// Bytes of a constant tensor, dense row-major. Shared, immutable, identified by the digest of dtype, shape and bytes.
struct Constant {
  TensorType type;                    // static
  std::shared_ptr<const void> owner;  // keeps `data` alive
  const uint8_t* data = nullptr;
  size_t bytes = 0;
  Digest digest;
};

// What an input of main is when a run leaves it out. Where the input's dim is a symbol, the constant's extent binds it.
struct InputDefault {
  int32_t input = 0;     // its place among main's arguments
  int32_t constant = 0;  // index into Graph::constants
  bool operator==(const InputDefault&) const = default;
};

struct Graph {
  std::vector<DimSymbol> symbols;
  std::vector<Constant> constants;
  std::vector<Function> functions;     // [0] is main
  std::vector<InputDefault> defaults;  // ascending by input, each once

  const Function& main() const { return functions.front(); }
};

// Looks for an attribute, falling back to the row's default.
int64_t attr_int(const Op& op, AttrKey key);
double attr_float(const Op& op, AttrKey key);
const std::vector<int64_t>* attr_ints(const Op& op, AttrKey key);  // null when absent
DType attr_dtype(const Op& op, AttrKey key);
const Shape* attr_shape(const Op& op, AttrKey key);

// A symbol that a loop gives birth to for a dim of its carried values: at first, and after an iteration. Of an if: what
// it is if the condition is true, and if it is false.
struct BornDim {
  Symbol symbol = -1;
  IntExpr first, second;
};
// Those of an op's `births`, each once, as the types of operands and regions say; of a verified graph.
std::vector<BornDim> born_dims(const Function& function, const Op& op);

// Visits the run-known symbols that an op may give birth to.
void for_each_birth(std::span<const DimSymbol> symbols, const Op& op, const std::function<void(Symbol)>& visit);
// Visits every symbol in the attributes and the results' types of an op and of those in its regions, maybe repeatedly.
void for_each_symbol(const Function& function, const Op& op, const std::function<void(Symbol)>& visit);

// Checks everything a later stage relies on: ids, dominance, types against each op's rule, regions, functions, symbols.
// Messages name the op: "op 12 'fc1' (matmul): K differs: 128 against 64".
Status verify(const Graph& graph);

// The graph as bytes. `canonical_bytes` has no names or hints and constants by digest only: the key of the cache.
// `serialize` keeps names and constant data and is read back by `deserialize`, which trusts nothing and verifies.
Bytes canonical_bytes(const Graph& graph);
Digest digest(const Graph& graph);
Bytes serialize(const Graph& graph);
void write_attr(const Attr& attr, ByteWriter& out);  // as `serialize` does
Result<std::shared_ptr<const Graph>> deserialize(std::span<const uint8_t> bytes);

// Text form (.qt). `print` writes all a reader needs, constants inline up to `inline_elements` and as digests beyond
// (parse then needs them given by digest through `constants`).
std::string print(const Graph& graph, size_t inline_elements = 64);
Result<std::shared_ptr<const Graph>> parse(std::string_view text);
// Finds the constants that the text gives by digest; null when there is none.
using ConstantSource = std::function<const Constant*(const Digest&)>;
Result<std::shared_ptr<const Graph>> parse(std::string_view text, const ConstantSource& constants);

}  // namespace quartet::graph
