// Window functions of signal processing.
#include "import/onnx/expr.h"
#include "import/onnx/tensors.h"

namespace quartet::import::onnx {

namespace {

constexpr double kTwoPi = 6.28318530717958647692;

// a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n), n the size, or one less for a symmetric window; in f64, rounded once.
Status cosine_window(NodeContext& c, double a0, double a1, double a2) {
  Emit e(c);
  const auto to = dtype_of(static_cast<int32_t>(c.attr_int("output_datatype", 1)));
  if (!to) return Status(Code::unsupported, "output_datatype");
  IntExpr size;
  if (const auto known = c.known_ints(0)) {
    if (known->values.size() != 1) return Status(Code::invalid_argument, "the size has not one element");
    size = known->values[0];
  } else {
    QUARTET_ASSIGN(const graph::Shape declared, c.declared_shape(0, 0, "the size"));
    if (declared.size() != 1) return Status(Code::invalid_argument, "the declared result has another rank");
    size = declared[0];
  }
  const Expr i = e.iota({size}, 0, DType::f64);
  const bool periodic = c.attr_int("periodic", 1) != 0;
  const Expr period = e.dim(periodic ? size : size - IntExpr(1), DType::f64);
  const Expr angle = i * kTwoPi / period;
  const Expr y = a0 - unary(OpCode::cos, angle) * a1 + unary(OpCode::cos, angle * 2) * a2;
  return e.give(0, c.from_caller(0) ? as_declared(y.cast(*to), 0, {size}) : y.cast(*to));
}

Status blackman(NodeContext& c) { return cosine_window(c, 0.42, 0.5, 0.08); }
Status hann(NodeContext& c) { return cosine_window(c, 0.5, 0.5, 0); }
Status hamming(NodeContext& c) { return cosine_window(c, 25.0 / 46, 21.0 / 46, 0); }

constexpr OpRow kRows[] = {
    {"BlackmanWindow", 17, INT64_MAX, blackman},
    {"HammingWindow", 17, INT64_MAX, hamming},
    {"HannWindow", 17, INT64_MAX, hann},
};

}  // namespace

std::span<const OpRow> window_ops() { return kRows; }

}  // namespace quartet::import::onnx
