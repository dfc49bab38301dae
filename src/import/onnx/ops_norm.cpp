// Normalisation. f16 and bf16 compute in f32 and round once at the end; every other step rounds to the type.
#include <numeric>

#include "import/onnx/expr.h"

namespace quartet::import::onnx {

namespace {

std::vector<int64_t> axes_between(size_t from, size_t to) {
  std::vector<int64_t> axes(to > from ? to - from : 0);
  std::iota(axes.begin(), axes.end(), static_cast<int64_t>(from));
  return axes;
}

struct Moments {
  Expr mean, variance;  // axes kept
};

// The variance as the mean of squared differences, which does not cancel.
Moments moments(const Expr& x, const std::vector<int64_t>& axes) {
  const Expr mean = x.reduce(OpCode::reduce_mean, axes, true);
  const Expr difference = x - mean;
  return {mean, (difference * difference).reduce(OpCode::reduce_mean, axes, true)};
}

Expr inverse_deviation(const Expr& variance, float epsilon) { return 1.0 / unary(OpCode::sqrt, variance + epsilon); }

// (x - mean) / sqrt(variance + epsilon) * scale + bias as x * a + b with a and b per channel, so that both are
// constants where the parameters are.
Expr per_channel(const Expr& x, const Moments& m, const Expr& scale, const Expr& bias, float epsilon) {
  const Expr a = scale / unary(OpCode::sqrt, m.variance + epsilon);
  return x * a + (bias - m.mean * a);
}

Status batch_normalization(NodeContext& c) {
  Emit e(c);
  const Expr given = e.in(0);
  QUARTET_TRY(e.status());
  if (c.attr_int("spatial", 1) == 0) return Status(Code::unsupported, "spatial = 0");
  const DType result = given.dtype(), work = working_type(result);
  const Expr x = given.cast(work);
  const size_t rank = x.rank();
  const size_t channel = rank > 1 ? 1 : 0;
  const auto parameter = [&](size_t i) { return e.in(i).cast(work).along(channel, rank); };
  const Expr scale = parameter(1), bias = parameter(2);
  const float epsilon = c.attr_float("epsilon", 1e-5f);
  Moments m{parameter(3), parameter(4)};
  if (c.attr_int("training_mode", 0) != 0) {
    std::vector<int64_t> axes = axes_between(0, rank);
    if (rank > 0) axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(channel));
    const Moments now = moments(x, axes);
    const double momentum = c.attr_float("momentum", 0.9f);
    const auto running = [&](size_t output, const Expr& before, const Expr& current) -> Status {
      if (c.output_count() <= output) return {};
      const Expr next = before * momentum + current * (1 - momentum);
      return e.give(output, next.reshape({next.dim(channel)}).cast(e.in(output + 2).dtype()));
    };
    QUARTET_TRY(running(1, m.mean, now.mean));
    QUARTET_TRY(running(2, m.variance, now.variance));
    m = now;
  }
  return e.give(0, per_channel(x, m, scale, bias, epsilon).cast(result));
}

// Before version 7 training was the default.
Status old_batch_normalization(NodeContext& c) {
  if (c.attr_int("is_test", 0) == 0) return Status(Code::unsupported, "is_test = 0: training");
  return batch_normalization(c);
}

Status instance_normalization(NodeContext& c) {
  Emit e(c);
  const Expr given = e.in(0);
  QUARTET_TRY(e.status());
  const Expr x = given.cast(working_type(given.dtype()));
  if (x.rank() < 2) return make_error(Code::invalid_argument, "the operand has rank %zu", x.rank());
  const auto parameter = [&](size_t i) { return e.in(i).cast(x.dtype()).along(1, x.rank()); };
  const Moments m = moments(x, axes_between(2, x.rank()));
  const Expr normal = (x - m.mean) * inverse_deviation(m.variance, c.attr_float("epsilon", 1e-5f));
  return e.give(0, (normal * parameter(1) + parameter(2)).cast(given.dtype()));
}

Status layer_normalization(NodeContext& c) {
  Emit e(c);
  const Expr given = e.in(0);
  QUARTET_TRY(e.status());
  if (const int64_t stash = c.attr_int("stash_type", 1); stash != 1)
    return make_error(Code::unsupported, "stash_type = %lld", static_cast<long long>(stash));
  const DType result = given.dtype(), work = result == DType::f64 ? result : DType::f32;
  QUARTET_ASSIGN(const int64_t axis, c.axis(c.attr_int("axis", -1), given.rank()));
  const Expr x = given.cast(work);
  const Moments m = moments(x, axes_between(static_cast<size_t>(axis), x.rank()));
  const Expr inverse = inverse_deviation(m.variance, c.attr_float("epsilon", 1e-5f));
  Expr y = (x - m.mean) * inverse * e.in(1).cast(work);
  if (c.has(2)) y = y + e.in(2).cast(work);
  QUARTET_TRY(e.give(0, y.cast(result)));
  if (c.output_count() > 1) QUARTET_TRY(e.give(1, m.mean));
  if (c.output_count() > 2) QUARTET_TRY(e.give(2, inverse));
  return e.status();
}

// Scale and bias per group (version 18) or per channel (from 21).
Status group_normalization(NodeContext& c) {
  Emit e(c);
  const Expr given = e.in(0);
  QUARTET_TRY(e.status());
  const int64_t groups = c.attr_int("num_groups", 0);
  const IntExpr channels = given.dim(1);
  if (given.rank() < 2) return make_error(Code::invalid_argument, "the operand has rank %zu", given.rank());
  if (groups < 1 || !c.dims().same(floor_mod(channels, IntExpr(groups)), IntExpr(0)))
    return make_error(Code::invalid_argument, "%lld groups do not divide the channels", static_cast<long long>(groups));
  if (const int64_t stash = c.attr_int("stash_type", 1); stash != 1)
    return make_error(Code::unsupported, "stash_type = %lld", static_cast<long long>(stash));
  const DType work = working_type(given.dtype());
  graph::Shape split = given.shape();
  split[1] = c.simple(floor_div(channels, IntExpr(groups)));
  split.insert(split.begin() + 1, IntExpr(groups));
  const Expr x = given.cast(work).reshape(split);
  const Moments m = moments(x, axes_between(2, split.size()));
  Expr y = (x - m.mean) * inverse_deviation(m.variance, c.attr_float("epsilon", 1e-5f));
  const bool per_group = c.version() < 21;
  if (!per_group) y = y.reshape(given.shape());
  const auto parameter = [&](size_t i) { return e.in(i).cast(work).along(1, y.rank()); };
  y = y * parameter(1) + parameter(2);
  return e.give(0, y.reshape(given.shape()).cast(given.dtype()));
}

// x / (bias + alpha / size * sum of the squares of `size` neighbouring channels)^beta
Status lrn(NodeContext& c) {
  Emit e(c);
  const Expr given = e.in(0);
  QUARTET_TRY(e.status());
  const int64_t size = c.attr_int("size", 0);
  if (given.rank() < 2) return make_error(Code::invalid_argument, "the operand has rank %zu", given.rank());
  if (size < 1 || size > 1024) return make_error(Code::unsupported, "size = %lld", static_cast<long long>(size));
  const Expr x = given.cast(working_type(given.dtype()));
  const Expr square = x * x;
  graph::Shape low(x.rank(), IntExpr(0)), high = low;
  if (x.rank() > 1) {
    low[1] = (size - 1) / 2;
    high[1] = size - 1 - (size - 1) / 2;
  }
  const Expr padded =
      e.op(OpCode::pad, {square, e.number(x.dtype(), 0.0)}, {{AttrKey::low, low}, {AttrKey::high, high}});
  Expr sum = padded.slice(1, IntExpr(0), x.dim(1));
  for (int64_t i = 1; i < size; ++i) sum = sum + padded.slice(1, IntExpr(i), x.dim(1) + IntExpr(i));
  const double alpha = c.attr_float("alpha", 1e-4f), beta = c.attr_float("beta", 0.75f), bias = c.attr_float("bias", 1);
  const Expr base = sum * (alpha / static_cast<double>(size)) + bias;
  return e.give(0, (x / e.op(OpCode::pow, {base, e.number(x.dtype(), beta)})).cast(given.dtype()));
}

Status mean_variance_normalization(NodeContext& c) {
  Emit e(c);
  const Expr given = e.in(0);
  QUARTET_TRY(e.status());
  const Expr x = given.cast(working_type(given.dtype()));
  std::vector<int64_t> axes;
  for (const int64_t each : c.attr_ints("axes").value_or(std::vector<int64_t>{0, 2, 3})) {
    QUARTET_ASSIGN(const int64_t axis, c.axis(each, x.rank()));
    axes.push_back(axis);
  }
  const Moments m = moments(x, axes);
  return e.give(0, ((x - m.mean) / (unary(OpCode::sqrt, m.variance) + 1e-9)).cast(given.dtype()));
}

// x / norm, and x where the norm is 0.
Status lp_normalization(NodeContext& c) {
  Emit e(c);
  const Expr given = e.in(0);
  QUARTET_TRY(e.status());
  const Expr x = given.cast(working_type(given.dtype()));
  QUARTET_ASSIGN(const int64_t axis, c.axis(c.attr_int("axis", -1), x.rank()));
  const int64_t p = c.attr_int("p", 2);
  if (p != 1 && p != 2) return make_error(Code::invalid_argument, "p = %lld", static_cast<long long>(p));
  const Expr norm = x.reduce(p == 1 ? OpCode::reduce_l1 : OpCode::reduce_l2, {axis}, true);
  return e.give(0, (x / select(equal(norm, 0), 1.0, norm)).cast(given.dtype()));
}

constexpr OpRow kRows[] = {
    {"BatchNormalization", 1, 7, old_batch_normalization},
    {"BatchNormalization", 7, INT64_MAX, batch_normalization},
    {"GroupNormalization", 18, INT64_MAX, group_normalization},
    {"InstanceNormalization", 1, INT64_MAX, instance_normalization},
    {"LRN", 1, INT64_MAX, lrn},
    {"LayerNormalization", 17, INT64_MAX, layer_normalization},
    {"LpNormalization", 1, INT64_MAX, lp_normalization},
    {"MeanVarianceNormalization", 9, INT64_MAX, mean_variance_normalization},
};

}  // namespace

std::span<const OpRow> norm_ops() { return kRows; }

}  // namespace quartet::import::onnx
