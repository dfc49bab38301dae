// Building a graph by calls. Every call checks at once: an op's operands, attributes and types, a region's shape. After
// a failed call the builder is as it was before, and can go on.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graph/constant.h"
#include "graph/dims.h"
#include "graph/graph.h"
#include "graph/infer.h"

namespace quartet::graph {

// What an op has beside operands and attributes. Regions are those of region_end, each used once.
struct OpExtras {
  std::vector<int32_t> regions;
  int32_t callee = -1;
  std::string name;
};

class Builder {
 public:
  Builder();
  // Starts with the symbols of another graph, under the same numbers.
  explicit Builder(std::vector<DimSymbol> symbols);

  // Dims.
  // The entry-known symbol of that name, declared if it is new.
  Result<IntExpr> symbol(std::string_view name);
  // Declares a symbol; its name must be new.
  Result<IntExpr> declare_symbol(DimSymbol symbol);
  // Parses an expression over declared symbols, "2*n + 1".
  Result<IntExpr> dim(std::string_view text) const;
  std::span<const DimSymbol> symbols() const { return symbols_; }
  Dims dims() const { return Dims(symbols_, &facts_); }

  // Values. Inputs are those of main and have unique names.
  Result<ValueId> input(std::string name, TensorType type);
  // What an input is when a run leaves it out: of its element type and rank, and of its extents where they are numbers.
  Status set_default(ValueId input, Constant constant);
  // Those of another graph, whose inputs are the first ones here.
  Status copy_defaults(const Graph& source);
  Result<ValueId> constant(Constant constant, std::string name = {});
  // A rank-0 constant, the number cast to `type`.
  Result<ValueId> scalar(DType type, double value);
  Result<ValueId> scalar(DType type, int64_t value);
  // The results of an op, in order. Attributes may be in any form that normalize_attrs understands.
  Result<std::vector<ValueId>> op(OpCode code, std::vector<ValueId> operands, Attrs attrs = {}, OpExtras extras = {});
  // An op with one result.
  Result<ValueId> one(OpCode code, std::vector<ValueId> operands, Attrs attrs = {}, std::string name = {});
  // Null for an id that is none in the function being built.
  const Value* value(ValueId id) const;
  const TensorType& type(ValueId id) const { return value(id)->type; }  // of a valid id
  // The constant of a value that a constant op of this function gives, else null.
  const Constant* constant_of(ValueId id) const;
  // The op that gives a value, as long as the value is visible; null for inputs and parameters. Valid until the next
  // call.
  const Op* definition(ValueId id) const;
  // The ops of the open blocks that are visible here, outermost first, until `visit` says true.
  bool find_op(const std::function<bool(const Op&)>& visit) const;
  Status set_name(ValueId id, std::string name);
  // The next output of main. Names are unique and not empty; a value may be several outputs.
  Status output(ValueId id, std::string name);

  // Regions: opened, filled, closed, then given to an op. Inside, values of the blocks around are visible.
  Result<int32_t> region_begin();
  Result<ValueId> parameter(TensorType type, std::string name = {});  // of the innermost open region or function
  Status region_end(std::span<const ValueId> results);
  // To give up regions that were begun after a mark, open or closed, with all that is in them. Nothing but regions may
  // have been made since.
  struct Mark {
    size_t open = 0, values = 0;
    int32_t region = 0;
  };
  Mark mark() const { return {frame().open.size(), frame().function.values.size(), next_region_}; }
  void unwind(const Mark& mark);

  // Functions: main is set aside until the end. A call that comes before the function's end needs its types declared:
  // its results by `function_result`, or, before its beginning, all by `function_declare`. The end holds the body to
  // it.
  Result<int32_t> function_declare(std::string name, Signature signature);
  Result<int32_t> function_begin(std::string name);
  Status function_result(TensorType type);
  Status function_end(std::span<const ValueId> results);
  std::optional<int32_t> find_function(std::string_view name) const;

  // The graph, verified. The builder is spent.
  Result<std::shared_ptr<const Graph>> finish();

 private:
  struct OpenBlock {
    Block block;
    int32_t region = -1;          // its number, -1 for a function's body
    std::vector<ValueId> values;  // defined here, out of scope at the end
  };
  // A function being built.
  struct Frame {
    int32_t index = 0;
    Function function;
    std::vector<OpenBlock> open;  // innermost last
    std::vector<bool> visible;    // by value
    std::unordered_map<ValueId, int32_t> constants;
    std::vector<std::pair<int32_t, int32_t>> defined_by;  // by value: open block and op, op -1 for none
    std::map<int32_t, Block> closed;                      // regions not yet given to an op
    std::unordered_set<std::string> output_names;
  };
  // What is known of a function from outside.
  struct Header {
    std::string name;
    Signature signature;
    bool results_known = false;  // declared or built
    bool begun = false;
  };

  Frame& frame() { return frames_.back(); }
  const Frame& frame() const { return frames_.back(); }
  Status usable() const;
  Status check_visible(ValueId id, const char* role) const;
  ValueId add_value(TensorType type, std::string name);
  Status check_regions(const OpExtras& extras, std::vector<Signature>& signatures) const;
  Status append(Op op, std::vector<TensorType> types);
  int32_t constant_number(Constant constant);
  std::string describe(OpCode code, const std::string& name) const;
  Status close(std::span<const ValueId> results);

  std::vector<DimSymbol> symbols_;
  mutable DimFacts facts_;
  std::vector<Constant> constants_;
  std::unordered_map<Digest, int32_t> constant_index_;
  std::map<int32_t, int32_t> defaults_;   // by input, its constant
  std::vector<Header> headers_;           // of every function, [0] main
  std::map<int32_t, Function> finished_;  // by index
  std::vector<Frame> frames_;             // main and, while one is open, a function
  int32_t next_region_ = 0;
  size_t op_count_ = 0;
  bool spent_ = false;
};

}  // namespace quartet::graph
