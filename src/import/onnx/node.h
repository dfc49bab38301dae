// One node as an op family sees it: operands, attributes, version, and helpers to emit ops.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/builder.h"
#include "import/onnx/proto.h"

namespace quartet::import::onnx {

using graph::AttrKey;
using graph::Attrs;
using graph::OpCode;
using graph::ValueId;

// The content of a small integer tensor of rank 0 or 1 that is known at import.
struct KnownInts {
  std::vector<IntExpr> values;
  bool is_scalar = false;  // rank 0
  DType dtype = DType::i64;
};

// What is known of a small float tensor: its elements are these integers over the divisor, as near as f32 tells.
struct KnownFloats {
  std::vector<IntExpr> values;
  int64_t divisor = 1;
  bool is_scalar = false;
};

// A value of the model: a tensor of the graph, or integers known so far without one, or a constant not yet asked for.
struct Value {
  ValueId id = graph::kNoValue;
  std::optional<KnownInts> ints;
  std::optional<graph::Constant> constant;
  std::optional<KnownFloats> floats;  // beside the tensor
  bool failed = false;                // it comes from a node that is not supported
  bool is_input = false;              // an input of the model
};

// That a dim is a number, in a branch that is right only then. Whoever relies on it makes the run hold it to that.
struct Assumption {
  IntExpr dim;
  int64_t number = 0;
  ValueId condition = graph::kNoValue;  // bool, true where it holds
  bool used = false;
};

// Walks the graphs inside nodes: what control flow needs of the importer.
class GraphWalker {
 public:
  // The values of the graph's outputs for its inputs, built where the builder stands. One that `failed` came from a
  // node that is not supported, which has been noted.
  virtual Result<std::vector<Value>> walk(const Graph& graph, std::vector<Value> arguments) = 0;
  // What is not supported has been noted so many times; notes beyond a number can be taken back.
  virtual size_t notes() const = 0;
  virtual void take_back(size_t notes) = 0;
  // What may be assumed of dims where the builder stands, innermost last.
  virtual std::vector<Assumption>& assumptions() = 0;

 protected:
  ~GraphWalker() = default;
};

class NodeContext {
 public:
  NodeContext(const Node& node, int64_t version, graph::Builder& builder, std::vector<Value*> inputs, std::string label,
              GraphWalker& graphs)
      : node_(node),
        version_(version),
        builder_(builder),
        inputs_(std::move(inputs)),
        label_(std::move(label)),
        graphs_(graphs) {
    outputs_.resize(node.outputs.size());
  }

  const Node& node() const { return node_; }
  int64_t version() const { return version_; }
  graph::Builder& builder() { return builder_; }
  GraphWalker& graphs() { return graphs_; }
  size_t output_count() const { return outputs_.size(); }
  std::vector<Value>& outputs() { return outputs_; }
  const Value& value(size_t i) const { return *inputs_[i]; }  // of an operand that is there
  const std::string& label() const { return label_; }

  // Operands. An operand may be left out at the end or by an empty name.
  size_t input_count() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i]; }
  Status want(size_t i) const;  // invalid_argument unless has(i)
  // The operand as a tensor of the graph; known integers become a constant or a `dims` op here.
  Result<ValueId> in(size_t i);
  Result<std::vector<ValueId>> all();
  // The operand's content if it is known: known integers, or a small integer constant of rank 0 or 1.
  std::optional<KnownInts> known_ints(size_t i) const;
  // The same, or unsupported: "input 1 must be known when the model is imported".
  Result<KnownInts> ints(size_t i, const char* what) const;
  // The same for plain numbers.
  Result<std::vector<int64_t>> numbers(size_t i, const char* what) const;
  const graph::Constant* constant(size_t i) const;
  const KnownFloats* known_floats(size_t i) const {
    return has(i) && inputs_[i]->floats ? &*inputs_[i]->floats : nullptr;
  }
  // The elements of a constant of floating type.
  std::optional<std::vector<double>> floats(size_t i) const;
  // What the model declares of a result's shape, if every dim is a number or a symbol of the inputs.
  void declare(size_t output, graph::Shape shape) { declared_[output] = std::move(shape); }
  // The same, where operand `i`, which decides the shape, is given by the caller: the model's declaration is then what
  // the caller must keep to. Unsupported for any other operand that is not known, and without a declaration.
  Result<graph::Shape> declared_shape(size_t output, size_t i, const char* what) const;
  // Whether there is such a declaration.
  bool declares(size_t output, size_t i) const { return from_caller(i) && declared_.contains(output); }
  // Whether an operand is an input of the model whose content only the run knows.
  bool from_caller(size_t i) const { return has(i) && inputs_[i]->is_input; }
  const graph::TensorType& type(ValueId id) const { return builder_.type(id); }
  graph::Dims dims() const { return builder_.dims(); }
  // Simplified under the symbols' ranges.
  IntExpr simple(const IntExpr& e) const { return builder_.dims().simplify(e); }

  // An axis of the operand whose extent is assumed to be 1, gone; nothing if that is not assumed.
  Result<std::optional<ValueId>> without_assumed_axis(ValueId x, size_t axis);

  // Attributes.
  const Attribute* attr(std::string_view name) const;
  int64_t attr_int(std::string_view name, int64_t otherwise) const;
  float attr_float(std::string_view name, float otherwise) const;
  std::string attr_text(std::string_view name, std::string_view otherwise) const;
  std::optional<std::vector<int64_t>> attr_ints(std::string_view name) const;
  // An axis in [-rank, rank) as one in [0, rank).
  Result<int64_t> axis(int64_t value, size_t rank) const;

  // Emitting. One result; `name` of the op is the node's. What small constants alone decide becomes a constant at once,
  // so that later nodes may ask for it.
  Result<ValueId> op(OpCode code, std::vector<ValueId> operands, Attrs attrs = {});
  Result<ValueId> scalar(DType dtype, double value) { return builder_.scalar(dtype, value); }
  // The op with the scalar as second operand, cast to the first one's type.
  Result<ValueId> with_scalar(OpCode code, ValueId a, double value);
  Result<ValueId> reshape(ValueId x, graph::Shape shape);
  Result<ValueId> cast(ValueId x, DType to);  // x itself if it has the type
  // x, which the node takes to have this shape: dims that are not known to be equal are assumed to be. `what` names x
  // where they can never be.
  Result<ValueId> assumed(ValueId x, graph::Shape shape, const char* what);

  // Results.
  void give_value(size_t output, Value value) { outputs_[output] = std::move(value); }
  // No output is there, for a reason that has been noted.
  void fail() {
    for (Value& output : outputs_) output.failed = true;
  }
  Status give(size_t output, ValueId id);
  Status give(size_t output, Result<ValueId> id);
  void give_ints(size_t output, KnownInts ints) { outputs_[output].ints = std::move(ints); }

 private:
  Result<ValueId> held_to(ValueId x, size_t axis, const IntExpr& dim);
  Result<std::vector<ValueId>> aligned(OpCode code, std::vector<ValueId> operands, const Attrs& attrs);

  const Node& node_;
  int64_t version_;
  graph::Builder& builder_;
  std::vector<Value*> inputs_;
  std::string label_;
  GraphWalker& graphs_;
  std::vector<Value> outputs_;
  std::map<size_t, graph::Shape> declared_;
};

// Makes a value a tensor of the graph.
Result<ValueId> materialise(graph::Builder& builder, Value& value);

// The content of a small value that follows from constants alone.
std::optional<graph::Constant> constant_value(const graph::Builder& builder, const Value& value);

// A row of an op family's table: node functions by op and version.
struct OpRow {
  std::string_view op;
  int64_t since = 1;  // versions [since, until)
  int64_t until = INT64_MAX;
  Status (*import)(NodeContext&) = nullptr;
};

std::span<const OpRow> math_ops();
std::span<const OpRow> activation_ops();
std::span<const OpRow> matmul_ops();
std::span<const OpRow> reduce_ops();
std::span<const OpRow> shape_ops();
std::span<const OpRow> slice_ops();
std::span<const OpRow> constant_ops();
std::span<const OpRow> control_ops();
std::span<const OpRow> scan_ops();
std::span<const OpRow> nonzero_ops();
std::span<const OpRow> rnn_ops();
std::span<const OpRow> conv_ops();
std::span<const OpRow> pool_ops();
std::span<const OpRow> norm_ops();
std::span<const OpRow> resize_ops();
std::span<const OpRow> trig_ops();
std::span<const OpRow> quantize_ops();
std::span<const OpRow> index_ops();
std::span<const OpRow> block_ops();
std::span<const OpRow> einsum_ops();
std::span<const OpRow> loss_ops();
std::span<const OpRow> sort_ops();
std::span<const OpRow> roi_ops();
std::span<const OpRow> fourier_ops();
std::span<const OpRow> sample_ops();
std::span<const OpRow> scatter_ops();
std::span<const OpRow> window_ops();

// Shape arithmetic: the result of a node whose operands are known integers, if it is one that keeps them known.
std::optional<KnownInts> fold_known(NodeContext& context);
// The same for floats, of a node that has been imported.
std::optional<KnownFloats> fold_known_floats(NodeContext& context);

// times / divisor, with a divisor up to 1024: the simplest fraction that is this number in f32.
struct Fraction {
  int64_t times = 0, divisor = 1;
};
std::optional<Fraction> small_fraction(double value);

}  // namespace quartet::import::onnx
