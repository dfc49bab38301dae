#include "import/onnx/expr.h"

#include <numeric>

namespace quartet::import::onnx {

namespace {

// What a value that failed is taken for.
const graph::TensorType& no_type() {
  static const graph::TensorType type{DType::f32, {}};
  return type;
}

Expr binary(OpCode code, const Expr& a, const Expr& b) { return a.emit().op(code, {a, b}); }
Expr like(const Expr& a, double value) { return a.emit().number(a.dtype(), value); }

}  // namespace

// ---- Emit ----

void Emit::fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

Expr Emit::value(Result<ValueId> id) {
  if (!id.ok()) fail(id.status());
  return {*this, status_.ok() ? *id : graph::kNoValue};
}

Expr Emit::in(size_t i) { return value(c_.in(i)); }
Expr Emit::number(DType type, double value) { return this->value(c_.builder().scalar(type, value)); }
Expr Emit::number(DType type, int64_t value) { return this->value(c_.builder().scalar(type, value)); }

Expr Emit::dim(const IntExpr& dim, DType type) {
  if (const auto known = dim.constant()) return number(type, *known);
  return op(OpCode::dims, {}, {{AttrKey::shape, graph::Shape{dim}}}).reshape({}).cast(type);
}

Expr Emit::iota(graph::Shape shape, size_t axis, DType type) {
  return op(OpCode::iota, {},
            {{AttrKey::shape, std::move(shape)}, {AttrKey::axis, static_cast<int64_t>(axis)}, {AttrKey::dtype, type}});
}

Expr Emit::concat(const std::vector<Expr>& parts, size_t axis) {
  if (parts.size() == 1) return parts[0];
  return op(OpCode::concat, parts, {{AttrKey::axis, static_cast<int64_t>(axis)}});
}

Expr Emit::op(OpCode code, std::initializer_list<Expr> operands, Attrs attrs) {
  return op(code, std::vector<Expr>(operands), std::move(attrs));
}

Expr Emit::op(OpCode code, const std::vector<Expr>& operands, Attrs attrs) {
  if (!status_.ok()) return {*this, graph::kNoValue};
  std::vector<ValueId> ids;
  for (const Expr& operand : operands) ids.push_back(operand.id());
  return value(c_.op(code, std::move(ids), std::move(attrs)));
}

Status Emit::give(size_t output, const Expr& e) {
  QUARTET_TRY(status_);
  return c_.give(output, e.id());
}

// ---- Expr ----

const graph::TensorType& Expr::type() const { return ok() ? emit_->context().type(id_) : no_type(); }

Expr Expr::cast(DType to) const {
  if (!ok() || dtype() == to) return *this;
  return emit_->op(OpCode::cast, {*this}, {{AttrKey::to, to}});
}

Expr Expr::reshape(graph::Shape shape) const {
  if (ok() && this->shape() == shape) return *this;
  return emit_->op(OpCode::reshape, {*this}, {{AttrKey::shape, std::move(shape)}});
}

Expr Expr::expand(graph::Shape shape) const {
  if (ok() && this->shape() == shape) return *this;
  return emit_->op(OpCode::expand, {*this}, {{AttrKey::shape, std::move(shape)}});
}

Expr Expr::transpose(std::vector<int64_t> perm) const {
  bool moves = false;
  for (size_t i = 0; i < perm.size(); ++i) moves = moves || perm[i] != static_cast<int64_t>(i);
  if (!moves) return *this;
  return emit_->op(OpCode::transpose, {*this}, {{AttrKey::perm, std::move(perm)}});
}

Expr Expr::slice(size_t axis, const IntExpr& start, const IntExpr& limit) const {
  if (!ok()) return *this;
  graph::Shape starts(rank(), IntExpr(0)), limits = shape();
  starts[axis] = start;
  limits[axis] = limit;
  return emit_->op(OpCode::slice, {*this},
                   {{AttrKey::starts, std::move(starts)}, {AttrKey::limits, std::move(limits)}});
}

Expr Expr::element(int64_t at) const {
  if (!ok() || rank() == 0) return *this;
  return slice(0, IntExpr(at), IntExpr(at + 1)).reshape({});
}

Expr Expr::gather(const Expr& indices, size_t axis) const {
  return emit_->op(OpCode::gather, {*this, indices}, {{AttrKey::axis, static_cast<int64_t>(axis)}});
}

Expr Expr::reduce(OpCode code, std::vector<int64_t> axes, bool keepdims) const {
  return emit_->op(code, {*this}, {{AttrKey::axes, std::move(axes)}, {AttrKey::keepdims, int64_t{keepdims}}});
}

Expr Expr::along(size_t axis, size_t rank) const {
  graph::Shape shape(rank, IntExpr(1));
  if (axis < rank) shape[axis] = dim(0);
  return reshape(std::move(shape));
}

// ---- Operators ----

Expr operator+(const Expr& a, const Expr& b) { return binary(OpCode::add, a, b); }
Expr operator-(const Expr& a, const Expr& b) { return binary(OpCode::sub, a, b); }
Expr operator*(const Expr& a, const Expr& b) { return binary(OpCode::mul, a, b); }
Expr operator/(const Expr& a, const Expr& b) { return binary(OpCode::div, a, b); }
Expr operator-(const Expr& a) { return unary(OpCode::neg, a); }
Expr operator+(const Expr& a, double b) { return a + like(a, b); }
Expr operator-(const Expr& a, double b) { return a - like(a, b); }
Expr operator*(const Expr& a, double b) { return a * like(a, b); }
Expr operator/(const Expr& a, double b) { return a / like(a, b); }
Expr operator-(double a, const Expr& b) { return like(b, a) - b; }
Expr operator/(double a, const Expr& b) { return like(b, a) / b; }

Expr less(const Expr& a, const Expr& b) { return binary(OpCode::less, a, b); }
Expr less_equal(const Expr& a, const Expr& b) { return binary(OpCode::less_equal, a, b); }
Expr equal(const Expr& a, const Expr& b) { return binary(OpCode::equal, a, b); }
Expr less(const Expr& a, double b) { return less(a, like(a, b)); }
Expr less(double a, const Expr& b) { return less(like(b, a), b); }
Expr less_equal(const Expr& a, double b) { return less_equal(a, like(a, b)); }
Expr less_equal(double a, const Expr& b) { return less_equal(like(b, a), b); }
Expr equal(const Expr& a, double b) { return equal(a, like(a, b)); }
Expr both(const Expr& a, const Expr& b) { return binary(OpCode::bit_and, a, b); }
Expr either(const Expr& a, const Expr& b) { return binary(OpCode::bit_or, a, b); }
Expr negated(const Expr& a) { return unary(OpCode::logical_not, a); }

Expr select(const Expr& condition, const Expr& a, const Expr& b) {
  return condition.emit().op(OpCode::select, {condition, a, b});
}
Expr select(const Expr& condition, const Expr& a, double b) { return select(condition, a, like(a, b)); }
Expr select(const Expr& condition, double a, const Expr& b) { return select(condition, like(b, a), b); }
Expr min(const Expr& a, const Expr& b) { return binary(OpCode::min, a, b); }
Expr max(const Expr& a, const Expr& b) { return binary(OpCode::max, a, b); }
Expr min(const Expr& a, double b) { return min(a, like(a, b)); }
Expr max(const Expr& a, double b) { return max(a, like(a, b)); }
Expr unary(OpCode code, const Expr& a) { return a.emit().op(code, {a}); }
Expr floor_mod(const Expr& a, const Expr& b) { return binary(OpCode::floor_mod, a, b); }

Expr from_front(const Expr& indices, const Expr& extent) {
  if (!is_signed_int(indices.dtype())) return indices;
  return select(less(indices, 0.0), indices + extent, indices);
}

Expr required(const Expr& condition, const Expr& value, const std::string& reason) {
  Emit& e = value.emit();
  if (!e.status().ok()) return value;
  std::vector<int64_t> axes(condition.rank());
  std::iota(axes.begin(), axes.end(), 0);
  const Expr all = axes.empty() ? condition : condition.reduce(OpCode::reduce_all, axes, false);
  if (!e.status().ok()) return all;
  NodeContext& c = e.context();
  auto checked = c.builder().op(OpCode::require, {all.id(), value.id()}, {{AttrKey::reason, c.label() + ": " + reason}},
                                {{}, -1, c.label()});
  return e.value(checked.ok() ? Result<ValueId>(checked->front()) : Result<ValueId>(checked.status()));
}

Expr dims_of(Emit& e, graph::Shape dims) { return e.op(OpCode::dims, {}, {{AttrKey::shape, std::move(dims)}}); }

std::string contradiction(size_t i) {
  return "input " + std::to_string(i) + " does not give the shape that the model declares for the result";
}

Expr as_declared(const Expr& value, size_t i, const graph::Shape& dims) {
  Emit& e = value.emit();
  const Expr given = e.in(i).cast(DType::i64).reshape({IntExpr(static_cast<int64_t>(dims.size()))});
  return required(equal(given, dims_of(e, dims)), value, contradiction(i));
}

Expr is_one_of(const Expr& axes, const std::vector<std::vector<int64_t>>& choices) {
  Emit& e = axes.emit();
  Expr found = e.number(DType::boolean, 0.0);
  for (const std::vector<int64_t>& choice : choices) {
    Expr named = e.number(DType::boolean, 1.0);
    for (const int64_t axis : choice)
      named = both(named, equal(axes, static_cast<double>(axis)).reduce(OpCode::reduce_any, {0}, false));
    found = either(found, named);
  }
  return found;
}

DType working_type(DType type) { return type == DType::f16 || type == DType::bf16 ? DType::f32 : type; }

}  // namespace quartet::import::onnx
