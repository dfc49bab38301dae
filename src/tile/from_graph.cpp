// A straight-line graph as a tile-graph.
#include <cstring>

#include "tile/build.h"

namespace quartet::tile {
namespace {

using graph::OpClass;
using graph::OpCode;

int64_t element_bits(DType dtype, const uint8_t* data) {
  uint64_t raw = 0;
  std::memcpy(&raw, data, size_of(dtype));
  if (!is_signed_int(dtype)) return static_cast<int64_t>(raw);
  const int shift = 64 - 8 * static_cast<int>(size_of(dtype));
  return static_cast<int64_t>(raw << shift) >> shift;
}

Result<TensorExpr> expression(const OpView& view) {
  switch (graph::op_info(view.op.code).op_class) {
    case OpClass::constant:
      return source_expr(view);
    case OpClass::elementwise:
      return elementwise_expr(view);
    case OpClass::view:
      return view_expr(view);
    case OpClass::data:
      return data_expr(view);
    case OpClass::reduction:
      return reduction_expr(view);
    case OpClass::contraction:
      return view.op.code == OpCode::convolve ? convolve_expr(view) : matmul_expr(view);
    case OpClass::composite:
      return make_error(Code::unsupported, "a composite op reached the tile stage");
    case OpClass::control:
      return make_error(Code::unsupported, "control flow is not executed by this version");
  }
  return make_error(Code::unsupported, "an op of an unknown class");
}

bool is_view(const TensorExpr& expr) {
  if (expr.reduction != Reduction::none || expr.outputs.size() != 1 || expr.reads.size() != 1) return false;
  if (expr.body[static_cast<size_t>(expr.outputs[0])].kind != BodyNode::Kind::read) return false;
  const Read& read = expr.reads[0];
  for (const IntExpr& index : read.index) {
    if (index.contains_any(is_value_symbol)) return false;
  }
  return read.guards.empty();
}

class Converter {
 public:
  explicit Converter(const graph::Graph& source) : source_(source), main_(source.main()) {}

  Result<TileGraph> run() {
    out_.symbols = source_.symbols;
    tensor_of_.assign(main_.values.size(), -1);
    for (size_t i = 0; i < main_.body.arguments.size(); ++i) {
      const TensorId id = add_tensor(main_.body.arguments[i]);
      out_.tensors.back().input = static_cast<int32_t>(i);
      out_.inputs.push_back(id);
    }
    for (size_t i = 0; i < main_.body.ops.size(); ++i) {
      if (const Status status = add_op(main_.body.ops[i]); !status.ok()) {
        return status.with_prefix(describe(i)).with_node(static_cast<int64_t>(i)).with_stage("tile");
      }
    }
    for (size_t i = 0; i < main_.body.results.size(); ++i) add_output(main_.body.results[i], static_cast<int32_t>(i));
    return std::move(out_);
  }

 private:
  std::string describe(size_t op) const {
    const graph::Op& o = main_.body.ops[op];
    std::string text = "op " + std::to_string(op);
    if (!o.name.empty()) text += " '" + o.name + "'";
    return text + " (" + graph::op_info(o.code).name + "): ";
  }

  TensorId add_tensor(graph::ValueId value) {
    Tensor tensor;
    tensor.type = main_.values[static_cast<size_t>(value)].type;
    tensor.name = main_.values[static_cast<size_t>(value)].name;
    out_.tensors.push_back(std::move(tensor));
    const auto id = static_cast<TensorId>(out_.tensors.size()) - 1;
    tensor_of_[static_cast<size_t>(value)] = id;
    return id;
  }

  Status add_op(const graph::Op& op) {
    if (op.code == OpCode::constant) return add_constant(op);
    OpView view{op, out_, {}, {}};
    for (const graph::ValueId operand : op.operands) {
      if (operand == graph::kNoValue) return make_error(Code::unsupported, "an absent operand");
      const TensorId id = tensor_of_[static_cast<size_t>(operand)];
      if (id < 0) return make_error(Code::internal, "an operand that is not made yet");
      view.operands.push_back(id);
    }
    for (const graph::ValueId r : op.results) view.results.push_back(main_.values[static_cast<size_t>(r)].type);
    QUARTET_ASSIGN(TensorExpr expr, expression(view));
    add_node(std::move(expr), view.operands, op.name.empty() ? graph::op_info(op.code).name : op.name);
    for (const graph::ValueId r : op.results) add_result(add_tensor(r));
    return {};
  }

  void add_node(TensorExpr expr, std::vector<TensorId> operands, std::string name) {
    expr.name = std::move(name);
    expr.is_view = is_view(expr);
    Node node;
    node.expr = std::move(expr);
    node.operands = std::move(operands);
    out_.nodes.push_back(std::move(node));
  }

  // Makes `tensor` the next result of the last node.
  void add_result(TensorId tensor) {
    Node& node = out_.nodes.back();
    out_.tensors[static_cast<size_t>(tensor)].producer = static_cast<int32_t>(out_.nodes.size()) - 1;
    out_.tensors[static_cast<size_t>(tensor)].result = static_cast<int32_t>(node.results.size());
    node.results.push_back(tensor);
  }

  Status add_constant(const graph::Op& op) {
    add_tensor(op.results[0]);
    Tensor& tensor = out_.tensors.back();
    tensor.constant = op.constant;
    const graph::Constant& data = source_.constants[static_cast<size_t>(op.constant)];
    if (tensor.name.empty()) tensor.name = op.name;
    if (data.data != nullptr && tensor.type.elements().is(1) && data.bytes == size_of(tensor.type.dtype)) {
      tensor.scalar = element_bits(tensor.type.dtype, data.data);
    }
    return {};
  }

  // A graph output is a tensor of its own, made by a node: what is an input, a constant or an output already is copied.
  void add_output(graph::ValueId value, int32_t number) {
    TensorId id = tensor_of_[static_cast<size_t>(value)];
    const Tensor& tensor = out_.tensors[static_cast<size_t>(id)];
    if (tensor.producer < 0 || !tensor.outputs.empty()) {
      const graph::TensorType type = tensor.type;
      graph::Op copy;
      copy.code = OpCode::identity;
      OpView view{copy, out_, {id}, {type}};
      add_node(view_expr(view).take(), {id}, "copy");
      Tensor result;
      result.type = type;
      out_.tensors.push_back(std::move(result));
      id = static_cast<TensorId>(out_.tensors.size()) - 1;
      add_result(id);
    }
    out_.tensors[static_cast<size_t>(id)].outputs.push_back(number);
    out_.outputs.push_back(id);
  }

  const graph::Graph& source_;
  const graph::Function& main_;
  TileGraph out_;
  std::vector<TensorId> tensor_of_;  // by graph value
};

}  // namespace

Result<TileGraph> from_graph(const graph::Graph& graph) { return Converter(graph).run(); }

}  // namespace quartet::tile
