// How rewrites are applied. Every op of the source is offered to the rules before it enters the new graph; what a rule
// emits in its place is offered again. A rule looks at the op it is given and at the ops that made its operands, which
// are simple already, so one walk reaches the end.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/builder.h"
#include "simplify/simplify.h"

namespace quartet::simplify {

using graph::AttrKey;
using graph::Attrs;
using graph::Constant;
using graph::Op;
using graph::OpCode;
using graph::Shape;
using graph::TensorType;
using graph::ValueId;

// An op about to be made, not control flow: operands are values of the new graph, attributes are normalised.
struct Candidate {
  Op op;
  std::vector<TensorType> types;  // of its results
};

class Rewriter;

// The values that stand for the op's results, or nothing if the rule does not apply.
using Replacement = Result<std::optional<std::vector<ValueId>>>;
using Rule = Replacement (*)(Rewriter&, const Candidate&);

struct NamedRule {
  const char* name;
  Rule rule;
};

class Rewriter {
 public:
  Rewriter(const graph::Graph& source, const Options& options, std::span<const NamedRule> rules);
  Result<std::shared_ptr<const graph::Graph>> run();

  // For rules: the new graph so far, and adding to it.
  const Options& options() const { return options_; }
  graph::Dims dims() const { return builder_.dims(); }
  const TensorType& type(ValueId id) const { return builder_.type(id); }
  const Constant* constant(ValueId id) const { return builder_.constant_of(id); }
  // The op that made a value, null for inputs; valid until the next emit.
  const Op* definition(ValueId id) const { return builder_.definition(id); }
  // The same if it is an op of this kind.
  const Op* definition(ValueId id, OpCode code) const;
  Result<std::vector<ValueId>> emit(OpCode code, std::vector<ValueId> operands, Attrs attrs = {});
  Result<ValueId> one(OpCode code, std::vector<ValueId> operands, Attrs attrs = {});
  Result<ValueId> emit_constant(Constant constant);
  Result<ValueId> scalar(DType type, double value);

 private:
  using Map = std::unordered_map<ValueId, ValueId>;
  using Key = std::string;

  Status walk_function(const graph::Function& function, bool main);
  Status walk_block(const graph::Block& block);
  Status walk_op(const Op& op);
  Result<std::vector<ValueId>> walk_control(const Op& op, std::vector<ValueId> operands);
  Result<std::vector<ValueId>> make(Candidate candidate);
  Result<std::vector<ValueId>> make_once(Candidate candidate);
  Result<ValueId> mapped(ValueId id) const;
  Result<std::vector<ValueId>> mapped(std::span<const ValueId> ids) const;

  const graph::Graph& source_;
  const Options& options_;
  std::span<const NamedRule> rules_;
  bool merge_equal_;
  graph::Builder builder_;
  const graph::Function* function_ = nullptr;              // being walked
  Map map_;                                                // of its values
  std::vector<std::map<Key, std::vector<ValueId>>> made_;  // ops of each open block
  std::string name_;                                       // of the op being rewritten, for what stands for it
  int depth_ = 0;
};

// The result of a rule: nothing, or one value.
inline Replacement keep() { return std::optional<std::vector<ValueId>>(); }
inline Replacement replace_by(ValueId value) { return std::optional(std::vector<ValueId>{value}); }
inline Replacement replace_by(Result<ValueId> value) {
  if (!value) return value.status();
  return replace_by(*value);
}

// Whether every element of a value is known to be this number.
bool is_all(const Rewriter& rewriter, ValueId id, double number);
// Whether a value has the type, dims the same.
bool has_type(const Rewriter& rewriter, ValueId id, const TensorType& type);

}  // namespace quartet::simplify
