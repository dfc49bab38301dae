// Values that follow from constants alone, found by evaluating what made them.
#include "graph/constant.h"
#include "graph/evaluate.h"
#include "import/onnx/node.h"

namespace quartet::import::onnx {
namespace {

constexpr int kMaxDepth = 32;
constexpr size_t kMaxBytes = 4096;

// Composites whose primitive is exact.
graph::Op primitive(const graph::Op& op) {
  graph::Op made;
  made.code = op.code;
  made.operands = op.operands;
  made.attrs = op.attrs;
  if (op.code == OpCode::logical_not) made.code = OpCode::bit_not;
  if (op.code == OpCode::greater || op.code == OpCode::greater_equal) {
    made.code = op.code == OpCode::greater ? OpCode::less : OpCode::less_equal;
    std::swap(made.operands[0], made.operands[1]);
  }
  return made;
}

std::optional<graph::Constant> evaluate(const graph::Builder& builder, ValueId id, int depth) {
  if (const graph::Constant* constant = builder.constant_of(id)) return *constant;
  const graph::Op* definition = builder.definition(id);
  if (!definition || depth == kMaxDepth || definition->results.size() != 1) return std::nullopt;
  const graph::Op op = primitive(*definition);
  std::vector<graph::Constant> operands;
  for (const ValueId operand : op.operands) {
    if (operand == graph::kNoValue) return std::nullopt;
    auto value = evaluate(builder, operand, depth + 1);
    if (!value) return std::nullopt;
    operands.push_back(*std::move(value));
  }
  std::vector<const graph::Constant*> pointers;
  for (const graph::Constant& operand : operands) pointers.push_back(&operand);
  auto results = graph::evaluate(op, pointers, std::span(&builder.type(id), 1), kMaxBytes);
  if (!results) return std::nullopt;
  return std::move(results->front());
}

}  // namespace

std::optional<graph::Constant> constant_value(const graph::Builder& builder, const Value& value) {
  if (value.constant) return value.constant;
  if (value.ints) {
    Bytes bytes;
    for (const IntExpr& e : value.ints->values) {
      const auto number = e.constant();
      if (!number) return std::nullopt;
      const Bytes element = graph::scalar_bytes(value.ints->dtype, *number);
      bytes.insert(bytes.end(), element.begin(), element.end());
    }
    graph::Shape shape;
    if (!value.ints->is_scalar) shape.emplace_back(static_cast<int64_t>(value.ints->values.size()));
    auto constant = graph::copy_constant({value.ints->dtype, shape}, bytes);
    if (!constant.ok()) return std::nullopt;
    return constant.take();
  }
  if (value.id == graph::kNoValue) return std::nullopt;
  return evaluate(builder, value.id, 0);
}

}  // namespace quartet::import::onnx
