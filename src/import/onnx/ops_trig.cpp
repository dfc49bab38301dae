// Trigonometric and hyperbolic functions without an op of their own. They are computed in f64 whatever the type, by
// formulas good to a few units of f64's last place, and rounded once to the type.
#include <cmath>

#include "import/onnx/expr.h"

namespace quartet::import::onnx {

namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kLog2 = 0.69314718055994530942;

template <Expr (*function)(const Expr&)>
Status in_f64(NodeContext& c) {
  Emit e(c);
  const Expr x = e.in(0);
  if (x.ok() && !is_float(x.dtype()))
    return make_error(Code::invalid_argument, "the operand is %s, not of a floating type", dtype_name(x.dtype()));
  return e.give(0, function(x.cast(DType::f64)).cast(x.dtype()));
}

// x where it is not negative, else the function's value mirrored: f(-x) = -f(x). Zeros keep their sign.
Expr with_sign_of(const Expr& x, const Expr& magnitude) {
  const Expr zero_or_nan = either(equal(x, 0), negated(equal(x, x)));
  return select(zero_or_nan, x, select(less(x, 0), -magnitude, magnitude));
}

// The odd power series sum of coefficients[k] * t^(2k+1) by Horner's rule.
template <class Coefficient>
Expr odd_series(const Expr& t, int terms, Coefficient coefficient) {
  const Expr square = t * t;
  Expr sum = t.emit().number(DType::f64, coefficient(terms - 1));
  for (int k = terms - 2; k >= 0; --k) sum = sum * square + coefficient(k);
  return sum * t;
}

Expr tan(const Expr& x) { return unary(OpCode::sin, x) / unary(OpCode::cos, x); }

// Two reductions bring the argument below tan(pi/16): atan a = pi/2 - atan 1/a, atan a = atan c + atan((a-c)/(1+a c)).
// There 13 terms of the series are enough for f64: tan(pi/16)^26 / 27 < 2^-65.
Expr atan(const Expr& x) {
  const Expr magnitude = unary(OpCode::abs, x);
  const Expr beyond = less(1.0, magnitude);
  Expr a = select(beyond, 1.0 / magnitude, magnitude);
  Expr turned = x.emit().number(DType::f64, 0.0);
  for (const double angle : {kPi / 8, kPi / 16}) {
    const double tangent = std::tan(angle);
    const Expr over = less(tangent, a);
    turned = select(over, turned + angle, turned);
    a = select(over, (a - tangent) / (a * tangent + 1), a);
  }
  const Expr rest = odd_series(a, 13, [](int k) { return (k % 2 ? -1.0 : 1.0) / (2 * k + 1); });
  const Expr sum = turned + rest;
  return with_sign_of(x, select(beyond, kPi / 2 - sum, sum));
}

Expr asin(const Expr& x) { return atan(x / unary(OpCode::sqrt, (1.0 - x) * (x + 1))); }

Expr acos(const Expr& x) { return atan(unary(OpCode::sqrt, (1.0 - x) / (x + 1))) * 2; }

// e^a as the product of two equal factors, neither of which overflows where the result does not.
Expr half_exponential(const Expr& a) { return unary(OpCode::exp, a * 0.5); }

Expr sinh(const Expr& x) {
  const Expr magnitude = unary(OpCode::abs, x);
  const Expr root = half_exponential(magnitude);
  const Expr large = root * 0.5 * root - 0.5 / root / root;
  const Expr small = odd_series(min(magnitude, 1), 11, [](int k) { return 1 / std::tgamma(2 * k + 2); });
  return with_sign_of(x, select(less(magnitude, 1), small, large));
}

Expr cosh(const Expr& x) {
  const Expr root = half_exponential(unary(OpCode::abs, x));
  return root * 0.5 * root + 0.5 / root / root;
}

// log(1 + u) for u >= 0: log w * u / (w - 1), where w = 1 + u has the same rounding error in both places.
Expr log1p(const Expr& u) {
  const Expr w = u + 1;
  const Expr precise = unary(OpCode::log, w) * (u / (w - 1));
  const Expr tiny = equal(w, 1), large = less(1e300, u);
  return select(tiny, u, select(large, unary(OpCode::log, w), precise));
}

Expr asinh(const Expr& x) {
  const Expr a = unary(OpCode::abs, x);
  const Expr square = a * a;
  const Expr direct = log1p(a + square / (unary(OpCode::sqrt, square + 1) + 1));
  const Expr large = unary(OpCode::log, a) + kLog2;
  return with_sign_of(x, select(less(1e150, a), large, direct));
}

Expr acosh(const Expr& x) {
  const Expr above = x - 1;
  const Expr direct = log1p(above + unary(OpCode::sqrt, above * 2 + above * above));
  const Expr value = select(less(1e150, x), unary(OpCode::log, x) + kLog2, direct);
  return select(less(x, 1), unary(OpCode::sqrt, above), value);  // NaN below 1
}

Expr atanh(const Expr& x) {
  const Expr a = unary(OpCode::abs, x);
  const Expr beyond = less(1.0, a);
  const Expr value = log1p(a * 2 / (1.0 - a)) * 0.5;
  return with_sign_of(x, select(beyond, unary(OpCode::sqrt, -a), value));  // NaN beyond 1
}

constexpr OpRow kRows[] = {
    {"Acos", 7, INT64_MAX, in_f64<acos>}, {"Acosh", 9, INT64_MAX, in_f64<acosh>},
    {"Asin", 7, INT64_MAX, in_f64<asin>}, {"Asinh", 9, INT64_MAX, in_f64<asinh>},
    {"Atan", 7, INT64_MAX, in_f64<atan>}, {"Atanh", 9, INT64_MAX, in_f64<atanh>},
    {"Cosh", 9, INT64_MAX, in_f64<cosh>}, {"Sinh", 9, INT64_MAX, in_f64<sinh>},
    {"Tan", 7, INT64_MAX, in_f64<tan>},
};

}  // namespace

std::span<const OpRow> trig_ops() { return kRows; }

}  // namespace quartet::import::onnx
