// Arithmetic on values of the graph, written as on paper: for nodes that are compositions of many ops.
//
// An Emit belongs to one node. The first failure sticks: what is emitted after it is nothing, and `give` reports it. So
// a composition is read from top to bottom without a check on every line; but what failed has rank 0, and whoever
// counts on the rank of something emitted asks `status` first. Each operation rounds to its operands' type.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "import/onnx/node.h"

namespace quartet::import::onnx {

class Emit;

// A value with the Emit it was made by. Operands of an operator must have the same type; a number takes the other's.
class Expr {
 public:
  Expr() = default;
  Expr(Emit& emit, ValueId id) : emit_(&emit), id_(id) {}

  Emit& emit() const { return *emit_; }
  ValueId id() const { return id_; }
  bool ok() const { return id_ != graph::kNoValue; }
  // Valid until the next operation. Of something that failed: f32, rank 0.
  const graph::TensorType& type() const;
  DType dtype() const { return type().dtype; }
  const graph::Shape& shape() const { return type().shape; }
  size_t rank() const { return type().rank(); }
  IntExpr dim(size_t axis) const { return axis < rank() ? shape()[axis] : IntExpr(1); }

  Expr cast(DType to) const;
  Expr reshape(graph::Shape shape) const;
  Expr expand(graph::Shape shape) const;
  Expr transpose(std::vector<int64_t> perm) const;
  // Elements [start, limit) along an axis, all of the other axes.
  Expr slice(size_t axis, const IntExpr& start, const IntExpr& limit) const;
  // Rank 0 and rank 1 operands: one element as rank 0.
  Expr element(int64_t at) const;
  Expr gather(const Expr& indices, size_t axis) const;
  Expr reduce(OpCode code, std::vector<int64_t> axes, bool keepdims) const;
  // A value of rank 1 along `axis` of something of rank `rank`.
  Expr along(size_t axis, size_t rank) const;

 private:
  Emit* emit_ = nullptr;
  ValueId id_ = graph::kNoValue;
};

class Emit {
 public:
  explicit Emit(NodeContext& context) : c_(context) {}
  Emit(const Emit&) = delete;
  Emit& operator=(const Emit&) = delete;

  NodeContext& context() { return c_; }
  const Status& status() const { return status_; }
  // Records a failure unless there is one already.
  void fail(Status status);

  Expr in(size_t i);  // an operand of the node
  Expr value(Result<ValueId> id);
  Expr number(DType type, double value);
  Expr number(DType type, int64_t value);
  // A dim as a scalar of a type.
  Expr dim(const IntExpr& dim, DType type);
  Expr iota(graph::Shape shape, size_t axis, DType type);
  Expr concat(const std::vector<Expr>& parts, size_t axis);
  Expr op(OpCode code, std::initializer_list<Expr> operands, Attrs attrs = {});
  Expr op(OpCode code, const std::vector<Expr>& operands, Attrs attrs = {});

  Status give(size_t output, const Expr& e);

 private:
  NodeContext& c_;
  Status status_;
};

Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator/(const Expr& a, const Expr& b);
Expr operator-(const Expr& a);
Expr operator+(const Expr& a, double b);
Expr operator-(const Expr& a, double b);
Expr operator*(const Expr& a, double b);
Expr operator/(const Expr& a, double b);
Expr operator-(double a, const Expr& b);
Expr operator/(double a, const Expr& b);

// Comparisons give bool, as the ops of the same names.
Expr less(const Expr& a, const Expr& b);
Expr less_equal(const Expr& a, const Expr& b);
Expr equal(const Expr& a, const Expr& b);
Expr less(const Expr& a, double b);
Expr less(double a, const Expr& b);
Expr less_equal(const Expr& a, double b);
Expr less_equal(double a, const Expr& b);
Expr equal(const Expr& a, double b);
Expr both(const Expr& a, const Expr& b);
Expr either(const Expr& a, const Expr& b);
Expr negated(const Expr& a);

Expr select(const Expr& condition, const Expr& a, const Expr& b);
Expr select(const Expr& condition, const Expr& a, double b);
Expr select(const Expr& condition, double a, const Expr& b);
Expr min(const Expr& a, const Expr& b);
Expr max(const Expr& a, const Expr& b);
Expr min(const Expr& a, double b);
Expr max(const Expr& a, double b);
Expr unary(OpCode code, const Expr& a);  // exp, log, sqrt, floor ...
// Remainder with the divisor's sign, for integers.
Expr floor_mod(const Expr& a, const Expr& b);

// Indices counted from the end where negative.
Expr from_front(const Expr& indices, const Expr& extent);

// The value, in a run in which every element of the condition holds; any other run fails with "label: reason".
Expr required(const Expr& condition, const Expr& value, const std::string& reason);
// Dims as i64[count].
Expr dims_of(Emit& e, graph::Shape dims);
// The value, in a run whose operand `i`, which decides a shape that only the caller knows, has these elements; any
// other contradicts what the model declares.
Expr as_declared(const Expr& value, size_t i, const graph::Shape& dims);
// Why such a run fails.
std::string contradiction(size_t i);
// Whether the axes given, i64 counted from the front, are one of these choices. bool, rank 0.
Expr is_one_of(const Expr& axes, const std::vector<std::vector<int64_t>>& choices);

// f16 and bf16 compute in f32.
DType working_type(DType type);

}  // namespace quartet::import::onnx
