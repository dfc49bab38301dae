// Activation functions and softmax. Composites are written as their definitions say, each step rounding to the type.
#include <cmath>

#include "import/onnx/expr.h"

namespace quartet::import::onnx {

namespace {

template <OpCode code>
Status unary(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  return c.give(0, c.op(code, {x}));
}

// x < 0 ? negative : positive
Result<ValueId> by_sign(NodeContext& c, ValueId x, ValueId negative, ValueId positive) {
  QUARTET_ASSIGN(const ValueId below, c.with_scalar(OpCode::less, x, 0));
  return c.op(OpCode::select, {below, negative, positive});
}

Status leaky_relu(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  QUARTET_ASSIGN(const ValueId scaled, c.with_scalar(OpCode::mul, x, c.attr_float("alpha", 0.01f)));
  return c.give(0, by_sign(c, x, scaled, x));
}

// The slope broadcasts to x.
Status prelu(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  QUARTET_ASSIGN(const ValueId slope, c.in(1));
  QUARTET_ASSIGN(const ValueId scaled, c.op(OpCode::mul, {x, slope}));
  return c.give(0, by_sign(c, x, scaled, x));
}

// Before version 7: one slope, or one for each channel.
Status old_prelu(NodeContext& c) {
  Emit e(c);
  const Expr x = e.in(0);
  Expr slope = e.in(1);
  if (slope.rank() == 1 && !slope.dim(0).is(1)) slope = slope.along(1, x.rank());
  return e.give(0, select(less(x, 0), x * slope, x));
}

// alpha * (e^(x * inner) - 1)
Result<ValueId> exponential(NodeContext& c, ValueId x, double alpha, double inner) {
  ValueId y = x;
  if (inner != 1) {
    QUARTET_ASSIGN(y, c.with_scalar(OpCode::mul, y, inner));
  }
  QUARTET_ASSIGN(y, c.op(OpCode::exp, {y}));
  QUARTET_ASSIGN(y, c.with_scalar(OpCode::sub, y, 1));
  return c.with_scalar(OpCode::mul, y, alpha);
}

Status elu(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  QUARTET_ASSIGN(const ValueId below, exponential(c, x, c.attr_float("alpha", 1), 1));
  return c.give(0, by_sign(c, x, below, x));
}

Status celu(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  const double alpha = c.attr_float("alpha", 1);
  QUARTET_ASSIGN(const ValueId below, exponential(c, x, alpha, 1 / alpha));
  return c.give(0, by_sign(c, x, below, x));
}

Status selu(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  const double gamma = c.attr_float("gamma", 1.05070098735548049342f);
  QUARTET_ASSIGN(const ValueId below, exponential(c, x, c.attr_float("alpha", 1.67326324235437728481f), 1));
  QUARTET_ASSIGN(const ValueId y, by_sign(c, x, below, x));
  return c.give(0, c.with_scalar(OpCode::mul, y, gamma));
}

// max(0, min(1, alpha * x + beta))
Result<ValueId> hard_sigmoid_of(NodeContext& c, ValueId x, double alpha, double beta) {
  QUARTET_ASSIGN(const ValueId scaled, c.with_scalar(OpCode::mul, x, alpha));
  QUARTET_ASSIGN(const ValueId moved, c.with_scalar(OpCode::add, scaled, beta));
  QUARTET_ASSIGN(const ValueId high, c.with_scalar(OpCode::min, moved, 1));
  return c.with_scalar(OpCode::max, high, 0);
}

Status hard_sigmoid(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  return c.give(0, hard_sigmoid_of(c, x, c.attr_float("alpha", 0.2f), c.attr_float("beta", 0.5f)));
}

Status hard_swish(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  QUARTET_ASSIGN(const ValueId gate, hard_sigmoid_of(c, x, 1.0 / 6, 0.5));
  return c.give(0, c.op(OpCode::mul, {x, gate}));
}

// log(1 + e^x) as max(x, 0) + log(1 + e^-|x|), which does not overflow. log(1 + u) is log w * u / (w - 1) with w = 1 +
// u, whose rounding error stands in both places and cancels.
Expr softplus_of(const Expr& x) {
  const Expr u = unary(OpCode::exp, -unary(OpCode::abs, x));
  const Expr w = u + 1;
  const Expr rest = select(equal(w, 1), u, unary(OpCode::log, w) * (u / (w - 1)));
  return max(x, 0) + rest;
}

Status softplus(NodeContext& c) {
  Emit e(c);
  return e.give(0, softplus_of(e.in(0)));
}

// x * tanh(softplus(x))
Status mish(NodeContext& c) {
  Emit e(c);
  const Expr x = e.in(0);
  return e.give(0, x * unary(OpCode::tanh, softplus_of(x)));
}

// x + bias below -lambd, x - bias above lambd, else 0; integers through f32.
Status shrink(NodeContext& c) {
  Emit e(c);
  const Expr given = e.in(0);
  const Expr x = is_float(given.dtype()) ? given : given.cast(DType::f32);
  const double lambd = c.attr_float("lambd", 0.5f), bias = c.attr_float("bias", 0);
  const Expr above = select(less(lambd, x), x - bias, 0);
  return e.give(0, select(less(x, -lambd), x + bias, above).cast(given.dtype()));
}

// 1 at the first maximum along the axis, else 0.
Expr hardmax_of(Emit& e, const Expr& x, size_t axis) {
  const Expr best =
      e.op(OpCode::argmax, {x}, {{AttrKey::axis, static_cast<int64_t>(axis)}, {AttrKey::keepdims, int64_t{1}}});
  return equal(e.iota({x.dim(axis)}, 0, DType::i64).along(axis, x.rank()), best).cast(x.dtype());
}

// Before version 13 the axes from `axis` on count as one.
Status hardmax(NodeContext& c) {
  Emit e(c);
  const Expr x = e.in(0);
  QUARTET_TRY(e.status());
  const bool flat = c.version() < 13;
  QUARTET_ASSIGN(const int64_t axis, c.axis(c.attr_int("axis", flat ? 1 : -1), x.rank()));
  if (!flat) return e.give(0, hardmax_of(e, x, static_cast<size_t>(axis)));
  IntExpr outer = 1, inner = 1;
  for (size_t d = 0; d < x.rank(); ++d) (d < static_cast<size_t>(axis) ? outer : inner) *= x.dim(d);
  return e.give(0, hardmax_of(e, x.reshape({outer, inner}), 1).reshape(x.shape()));
}

Status softsign(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  QUARTET_ASSIGN(const ValueId magnitude, c.op(OpCode::abs, {x}));
  QUARTET_ASSIGN(const ValueId sum, c.with_scalar(OpCode::add, magnitude, 1));
  return c.give(0, c.op(OpCode::div, {x, sum}));
}

// x > alpha ? x : 0
Status thresholded_relu(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  QUARTET_ASSIGN(const ValueId above, c.with_scalar(OpCode::greater, x, c.attr_float("alpha", 1)));
  QUARTET_ASSIGN(const ValueId zero, c.scalar(c.type(x).dtype, 0.0));
  return c.give(0, c.op(OpCode::select, {above, x, zero}));
}

// x / 2 * (1 + erf(x / sqrt 2)), or its approximation by tanh
Status gelu(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  const std::string form = c.attr_text("approximate", "none");
  ValueId inner = x;
  if (form == "tanh") {
    QUARTET_ASSIGN(const ValueId square, c.op(OpCode::mul, {x, x}));
    QUARTET_ASSIGN(const ValueId cube, c.op(OpCode::mul, {square, x}));
    QUARTET_ASSIGN(const ValueId small, c.with_scalar(OpCode::mul, cube, 0.044715));
    QUARTET_ASSIGN(const ValueId sum, c.op(OpCode::add, {x, small}));
    QUARTET_ASSIGN(const ValueId scaled, c.with_scalar(OpCode::mul, sum, std::sqrt(2 / 3.14159265358979323846)));
    QUARTET_ASSIGN(inner, c.op(OpCode::tanh, {scaled}));
  } else if (form == "none") {
    QUARTET_ASSIGN(const ValueId scaled, c.with_scalar(OpCode::mul, x, std::sqrt(0.5)));
    QUARTET_ASSIGN(inner, c.op(OpCode::erf, {scaled}));
  } else {
    return make_error(Code::unsupported, "approximate = '%s'", form.c_str());
  }
  QUARTET_ASSIGN(const ValueId gate, c.with_scalar(OpCode::add, inner, 1));
  QUARTET_ASSIGN(const ValueId half, c.with_scalar(OpCode::mul, x, 0.5));
  return c.give(0, c.op(OpCode::mul, {half, gate}));
}

// x with the bound of an attribute (before version 11) or input; x itself without one.
Result<ValueId> bounded(NodeContext& c, ValueId x, OpCode code, size_t input, const char* attribute) {
  if (c.version() < 11) {
    const Attribute* bound = c.attr(attribute);
    return bound ? c.with_scalar(code, x, bound->f) : Result<ValueId>(x);
  }
  if (!c.has(input)) return x;
  QUARTET_ASSIGN(ValueId bound, c.in(input));
  QUARTET_ASSIGN(bound, c.reshape(bound, {}));  // a tensor of one element counts, too
  return c.op(code, {x, bound});
}

Status clip(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  QUARTET_ASSIGN(const ValueId low, bounded(c, x, OpCode::max, 1, "min"));
  QUARTET_ASSIGN(const ValueId both, bounded(c, low, OpCode::min, 2, "max"));
  return both == x ? c.give(0, c.op(OpCode::identity, {x})) : c.give(0, both);
}

template <OpCode code>
Status softmax(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  QUARTET_ASSIGN(const int64_t axis, c.axis(c.attr_int("axis", -1), c.type(x).rank()));
  return c.give(0, c.op(code, {x}, {{AttrKey::axis, axis}}));
}

// Before version 13 the axes from `axis` on count as one.
template <OpCode code>
Status flat_softmax(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  const graph::Shape shape = c.type(x).shape;
  if (shape.empty()) return Status(Code::invalid_argument, "the operand has rank 0");
  QUARTET_ASSIGN(const int64_t axis, c.axis(c.attr_int("axis", 1), shape.size()));
  if (static_cast<size_t>(axis) + 1 == shape.size()) return c.give(0, c.op(code, {x}, {{AttrKey::axis, axis}}));
  IntExpr outer = 1, inner = 1;
  for (size_t d = 0; d < shape.size(); ++d) (d < static_cast<size_t>(axis) ? outer : inner) *= shape[d];
  QUARTET_ASSIGN(const ValueId flat, c.reshape(x, {outer, inner}));
  QUARTET_ASSIGN(const ValueId y, c.op(code, {flat}, {{AttrKey::axis, int64_t{1}}}));
  return c.give(0, c.reshape(y, shape));
}

constexpr OpRow kRows[] = {
    {"Celu", 12, INT64_MAX, celu},
    {"Clip", 1, INT64_MAX, clip},
    {"Elu", 1, INT64_MAX, elu},
    {"Gelu", 20, INT64_MAX, gelu},
    {"HardSigmoid", 1, INT64_MAX, hard_sigmoid},
    {"Hardmax", 1, INT64_MAX, hardmax},
    {"HardSwish", 14, INT64_MAX, hard_swish},
    {"LeakyRelu", 1, INT64_MAX, leaky_relu},
    {"LogSoftmax", 1, 13, flat_softmax<OpCode::log_softmax>},
    {"LogSoftmax", 13, INT64_MAX, softmax<OpCode::log_softmax>},
    {"Mish", 18, INT64_MAX, mish},
    {"PRelu", 1, 7, old_prelu},
    {"PRelu", 7, INT64_MAX, prelu},
    {"Relu", 1, INT64_MAX, unary<OpCode::relu>},
    {"Selu", 6, INT64_MAX, selu},
    {"Shrink", 9, INT64_MAX, shrink},
    {"Sigmoid", 1, INT64_MAX, unary<OpCode::sigmoid>},
    {"Softmax", 1, 13, flat_softmax<OpCode::softmax>},
    {"Softmax", 13, INT64_MAX, softmax<OpCode::softmax>},
    {"Softplus", 1, INT64_MAX, softplus},
    {"Softsign", 1, INT64_MAX, softsign},
    {"Tanh", 1, INT64_MAX, unary<OpCode::tanh>},
    {"ThresholdedRelu", 10, INT64_MAX, thresholded_relu},
};

}  // namespace

std::span<const OpRow> activation_ops() { return kRows; }

}  // namespace quartet::import::onnx
