// Discrete Fourier transforms as products with tables of cosines and sines. The tables are made here, in f64, for a
// length that is known, and rounded to the type.
#include <cmath>

#include "graph/constant.h"
#include "import/onnx/expr.h"

namespace quartet::import::onnx {

namespace {

constexpr double kTwoPi = 6.28318530717958647692;
constexpr int64_t kMostLength = 1 << 12;  // tables of 2^24 elements

struct Transform {
  int64_t length = 0, bins = 0;
  bool inverse = false;
  double scale = 1;
};

// [rows, bins]: f(2 pi row * bin / length), the angle's turns taken off exactly.
Expr table(Emit& e, const Transform& t, int64_t rows, DType type, double (*function)(double), double sign) {
  Bytes bytes;
  bytes.reserve(static_cast<size_t>(rows * t.bins) * size_of(type));
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t bin = 0; bin < t.bins; ++bin) {
      const double turn = static_cast<double>(row * bin % t.length) / static_cast<double>(t.length);
      const Bytes element = graph::scalar_bytes(type, sign * t.scale * function(kTwoPi * turn));
      bytes.insert(bytes.end(), element.begin(), element.end());
    }
  auto constant = graph::copy_constant({type, {IntExpr(rows), IntExpr(t.bins)}}, bytes);
  if (!constant.ok()) return e.value(constant.status());
  return e.value(e.context().builder().constant(constant.take()));
}

double cosine(double x) { return std::cos(x); }
double sine(double x) { return std::sin(x); }

// Signals [..., n, 1 or 2] as spectra [..., bins, 2], of n at most the length: what is missing is zero.
Result<Expr> transformed(Emit& e, const Expr& x, const Transform& t) {
  QUARTET_TRY(e.status());
  const size_t parts = x.rank() - 1, along = x.rank() - 2;
  const auto given = x.dim(along).constant(), kinds = x.dim(parts).constant();
  if (!given || !kinds || (*kinds != 1 && *kinds != 2))
    return Status(Code::unsupported, "a signal of unknown length, or neither real nor complex");
  const int64_t used = std::min(*given, t.length);
  const graph::Shape flat(x.shape().begin(), x.shape().end() - 1);
  const auto part = [&](int64_t i) {
    graph::Shape shape = flat;
    shape[along] = used;
    return x.slice(along, IntExpr(0), IntExpr(used)).slice(parts, IntExpr(i), IntExpr(i + 1)).reshape(shape);
  };
  const auto product = [&](const Expr& a, const Expr& b) { return e.op(OpCode::matmul, {a, b}); };
  const double sign = t.inverse ? 1 : -1;
  const Expr cosines = table(e, t, used, x.dtype(), cosine, 1), sines = table(e, t, used, x.dtype(), sine, sign);
  Expr real = product(part(0), cosines), imaginary = product(part(0), sines);
  if (*kinds == 2) {
    real = real - product(part(1), sines);
    imaginary = imaginary + product(part(1), cosines);
  }
  graph::Shape shape = flat;
  shape[along] = t.bins;
  shape.push_back(1);
  return e.concat({real.reshape(shape), imaginary.reshape(shape)}, parts);
}

Result<Transform> transform_of(int64_t length, bool onesided, bool inverse) {
  if (length < 1 || length > kMostLength)
    return make_error(Code::unsupported, "a transform of length %lld; 1 to %lld are understood",
                      static_cast<long long>(length), static_cast<long long>(kMostLength));
  if (onesided && inverse) return Status(Code::unsupported, "onesided and inverse");
  Transform t{length, onesided ? length / 2 + 1 : length, inverse, 1};
  if (inverse) t.scale = 1 / static_cast<double>(length);
  return t;
}

Status dft(NodeContext& c) {
  Emit e(c);
  const Expr given = e.in(0);
  QUARTET_TRY(e.status());
  if (given.rank() < 2) return make_error(Code::invalid_argument, "a signal of rank %zu", given.rank());
  int64_t number = c.attr_int("axis", 1);
  if (c.version() >= 20) {
    number = -2;
    if (c.has(2)) {
      QUARTET_ASSIGN(const auto numbers, c.numbers(2, "the axis"));
      if (numbers.size() != 1) return Status(Code::invalid_argument, "the axis has not one element");
      number = numbers[0];
    }
  }
  QUARTET_ASSIGN(const int64_t axis, c.axis(number, given.rank()));
  if (static_cast<size_t>(axis) + 1 == given.rank())
    return Status(Code::invalid_argument, "the axis is that of the parts");
  std::optional<int64_t> length = given.dim(static_cast<size_t>(axis)).constant();
  if (c.has(1)) {
    QUARTET_ASSIGN(const auto numbers, c.numbers(1, "dft_length"));
    length = numbers.size() == 1 ? std::optional(numbers[0]) : std::nullopt;
  }
  if (!length) return Status(Code::unsupported, "a transform along a symbolic axis");
  QUARTET_ASSIGN(const Transform t,
                 transform_of(*length, c.attr_int("onesided", 0) != 0, c.attr_int("inverse", 0) != 0));
  std::vector<int64_t> perm;
  for (size_t d = 0; d < given.rank(); ++d) perm.push_back(static_cast<int64_t>(d));
  std::swap(perm[static_cast<size_t>(axis)], perm[given.rank() - 2]);
  const Expr x = given.cast(working_type(given.dtype())).transpose(perm);
  QUARTET_ASSIGN(const Expr y, transformed(e, x, t));
  return e.give(0, y.transpose(perm).cast(given.dtype()));
}

// Frames `step` apart, times the window, each transformed: [batch, frames, bins, 2].
Status stft(NodeContext& c) {
  Emit e(c);
  const Expr given = e.in(0);
  QUARTET_ASSIGN(const auto steps, c.numbers(1, "frame_step"));
  QUARTET_TRY(e.status());
  std::optional<int64_t> length;
  if (c.has(3)) {
    QUARTET_ASSIGN(const auto numbers, c.numbers(3, "frame_length"));
    if (numbers.size() == 1) length = numbers[0];
  } else if (c.has(2)) {
    length = e.in(2).dim(0).constant();
  }
  if (steps.size() != 1 || steps[0] < 1 || !length || given.rank() < 2 || given.rank() > 3)
    return Status(Code::invalid_argument, "frame_step, frame_length and the signal do not fit");
  QUARTET_ASSIGN(const Transform t, transform_of(*length, c.attr_int("onesided", 1) != 0, false));
  const DType work = working_type(given.dtype());
  const Expr x = given.cast(work);
  // [batch, frames, (parts,) length]
  Expr frames = e.op(OpCode::window, {x},
                     {{AttrKey::axes, std::vector<int64_t>{1}},
                      {AttrKey::sizes, std::vector<int64_t>{*length}},
                      {AttrKey::strides, std::vector<int64_t>{steps[0]}}});
  if (c.has(2)) frames = frames * e.in(2).cast(work);
  if (x.rank() == 3) {
    frames = frames.transpose({0, 1, 3, 2});
  } else {
    graph::Shape shape = frames.shape();
    shape.push_back(1);
    frames = frames.reshape(shape);
  }
  QUARTET_ASSIGN(const Expr y, transformed(e, frames, t));
  return e.give(0, y.cast(given.dtype()));
}

constexpr OpRow kRows[] = {
    {"DFT", 17, INT64_MAX, dft},
    {"STFT", 17, INT64_MAX, stft},
};

}  // namespace

std::span<const OpRow> fourier_ops() { return kRows; }

}  // namespace quartet::import::onnx
