// Arithmetic, comparisons and logic, element by element.
#include <limits>

#include "import/onnx/expr.h"
#include "import/onnx/tensors.h"

namespace quartet::import::onnx {

namespace {

template <OpCode code>
Status unary(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  return c.give(0, c.op(code, {x}));
}

template <OpCode code>
Status binary(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId a, c.in(0));
  QUARTET_ASSIGN(const ValueId b, c.in(1));
  return c.give(0, c.op(code, {a, b}));
}

// Before version 7 the second operand broadcasts only where that is said, and may do so in the middle: its first axis
// is then axis `axis` of the first operand.
template <OpCode code>
Status old_binary(NodeContext& c) {
  Emit e(c);
  const Expr a = e.in(0);
  Expr b = e.in(1);
  QUARTET_TRY(e.status());
  if (c.attr_int("broadcast", 0) != 0 && c.attr("axis")) {
    QUARTET_ASSIGN(const int64_t axis, c.axis(c.attr_int("axis", 0), a.rank()));
    graph::Shape shape = b.shape();
    if (static_cast<size_t>(axis) + shape.size() > a.rank())
      return make_error(Code::invalid_argument, "axis %lld and rank %zu go beyond rank %zu",
                        static_cast<long long>(axis), shape.size(), a.rank());
    shape.resize(a.rank() - static_cast<size_t>(axis), IntExpr(1));
    b = b.reshape(std::move(shape));
  }
  if (code == OpCode::pow) b = b.cast(a.dtype());
  return e.give(0, e.op(code, {a, b}));
}

// Min, Max, Sum: any number of operands, left to right.
template <OpCode code>
Result<ValueId> fold(NodeContext& c) {
  QUARTET_ASSIGN(const std::vector<ValueId> operands, c.all());
  ValueId total = operands[0];
  for (size_t i = 1; i < operands.size(); ++i) {
    QUARTET_ASSIGN(total, c.op(code, {total, operands[i]}));
  }
  if (operands.size() > 1) return total;
  return c.op(OpCode::identity, {total});
}

template <OpCode code>
Status variadic(NodeContext& c) {
  return c.give(0, fold<code>(c));
}

Status mean(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId sum, fold<OpCode::add>(c));
  return c.give(0, c.with_scalar(OpCode::div, sum, static_cast<double>(c.input_count())));
}

// The exponent may have another type; the result has the base's.
Status pow(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId base, c.in(0));
  QUARTET_ASSIGN(const ValueId exponent, c.in(1));
  const DType type = c.type(base).dtype;
  const DType work = is_float(type) ? type : DType::f64;
  QUARTET_ASSIGN(const ValueId a, c.cast(base, work));
  QUARTET_ASSIGN(const ValueId b, c.cast(exponent, work));
  QUARTET_ASSIGN(const ValueId power, c.op(OpCode::pow, {a, b}));
  return c.give(0, c.cast(power, type));
}

Status mod(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId a, c.in(0));
  QUARTET_ASSIGN(const ValueId b, c.in(1));
  return c.give(0, c.op(c.attr_int("fmod", 0) ? OpCode::rem : OpCode::floor_mod, {a, b}));
}

Status bit_shift(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId a, c.in(0));
  QUARTET_ASSIGN(const ValueId b, c.in(1));
  const std::string direction = c.attr_text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    return make_error(Code::invalid_argument, "direction '%s' is neither LEFT nor RIGHT", direction.c_str());
  return c.give(0, c.op(direction == "LEFT" ? OpCode::shift_left : OpCode::shift_right, {a, b}));
}

Status is_inf(NodeContext& c) {
  Emit e(c);
  const Expr x = e.in(0);
  const double infinity = std::numeric_limits<double>::infinity();
  const Expr up = equal(x, infinity), down = equal(x, -infinity);
  const bool positive = c.attr_int("detect_positive", 1) != 0, negative = c.attr_int("detect_negative", 1) != 0;
  if (positive && negative) return e.give(0, either(up, down));
  if (positive) return e.give(0, up);
  return e.give(0, negative ? down : both(up, down));
}

Status where(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId condition, c.in(0));
  QUARTET_ASSIGN(const ValueId yes, c.in(1));
  QUARTET_ASSIGN(const ValueId no, c.in(2));
  return c.give(0, c.op(OpCode::select, {condition, yes, no}));
}

Status cast(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  const int64_t to = c.attr_int("to", 0);
  const auto dtype = dtype_of(static_cast<int32_t>(to));
  if (!dtype) return make_error(Code::unsupported, "to %s", type_name(static_cast<int32_t>(to)).c_str());
  return c.give(0, c.cast(x, *dtype));
}

Status cast_like(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  QUARTET_ASSIGN(const ValueId like, c.in(1));
  return c.give(0, c.cast(x, c.type(like).dtype));
}

constexpr OpRow kRows[] = {
    {"Abs", 1, INT64_MAX, unary<OpCode::abs>},
    {"Add", 1, 7, old_binary<OpCode::add>},
    {"Add", 7, INT64_MAX, binary<OpCode::add>},
    {"And", 1, 7, old_binary<OpCode::bit_and>},
    {"And", 7, INT64_MAX, binary<OpCode::bit_and>},
    {"BitShift", 11, INT64_MAX, bit_shift},
    {"BitwiseAnd", 18, INT64_MAX, binary<OpCode::bit_and>},
    {"BitwiseNot", 18, INT64_MAX, unary<OpCode::bit_not>},
    {"BitwiseOr", 18, INT64_MAX, binary<OpCode::bit_or>},
    {"BitwiseXor", 18, INT64_MAX, binary<OpCode::bit_xor>},
    {"Cast", 6, INT64_MAX, cast},
    {"CastLike", 15, INT64_MAX, cast_like},
    {"Ceil", 1, INT64_MAX, unary<OpCode::ceil>},
    {"Cos", 7, INT64_MAX, unary<OpCode::cos>},
    {"Div", 1, 7, old_binary<OpCode::div>},
    {"Div", 7, INT64_MAX, binary<OpCode::div>},
    {"Equal", 1, 7, old_binary<OpCode::equal>},
    {"Equal", 7, INT64_MAX, binary<OpCode::equal>},
    {"Erf", 9, INT64_MAX, unary<OpCode::erf>},
    {"Exp", 1, INT64_MAX, unary<OpCode::exp>},
    {"Floor", 1, INT64_MAX, unary<OpCode::floor>},
    {"Greater", 1, 7, old_binary<OpCode::greater>},
    {"Greater", 7, INT64_MAX, binary<OpCode::greater>},
    {"GreaterOrEqual", 12, INT64_MAX, binary<OpCode::greater_equal>},
    {"IsInf", 10, INT64_MAX, is_inf},
    {"IsNaN", 9, INT64_MAX, unary<OpCode::is_nan>},
    {"Less", 1, 7, old_binary<OpCode::less>},
    {"Less", 7, INT64_MAX, binary<OpCode::less>},
    {"LessOrEqual", 12, INT64_MAX, binary<OpCode::less_equal>},
    {"Log", 1, INT64_MAX, unary<OpCode::log>},
    {"Max", 1, INT64_MAX, variadic<OpCode::max>},
    {"Mean", 1, INT64_MAX, mean},
    {"Min", 1, INT64_MAX, variadic<OpCode::min>},
    {"Mod", 10, INT64_MAX, mod},
    {"Mul", 1, 7, old_binary<OpCode::mul>},
    {"Mul", 7, INT64_MAX, binary<OpCode::mul>},
    {"Neg", 1, INT64_MAX, unary<OpCode::neg>},
    {"Not", 1, INT64_MAX, unary<OpCode::logical_not>},
    {"Or", 1, 7, old_binary<OpCode::bit_or>},
    {"Or", 7, INT64_MAX, binary<OpCode::bit_or>},
    {"Pow", 1, 7, old_binary<OpCode::pow>},
    {"Pow", 7, INT64_MAX, pow},
    {"Reciprocal", 1, INT64_MAX, unary<OpCode::reciprocal>},
    {"Round", 11, INT64_MAX, unary<OpCode::round>},
    {"Sign", 9, INT64_MAX, unary<OpCode::sign>},
    {"Sin", 7, INT64_MAX, unary<OpCode::sin>},
    {"Sqrt", 1, INT64_MAX, unary<OpCode::sqrt>},
    {"Sub", 1, 7, old_binary<OpCode::sub>},
    {"Sub", 7, INT64_MAX, binary<OpCode::sub>},
    {"Sum", 1, INT64_MAX, variadic<OpCode::add>},
    {"Where", 9, INT64_MAX, where},
    {"Xor", 1, 7, old_binary<OpCode::bit_xor>},
    {"Xor", 7, INT64_MAX, binary<OpCode::bit_xor>},
};

}  // namespace

std::span<const OpRow> math_ops() { return kRows; }

}  // namespace quartet::import::onnx
