// Resize and Upsample: per axis the coordinates as f32 arithmetic in the graph, then gathers and weighted sums. So
// static sizes fold to tables, and symbolic ones, or scales that only the run knows, are computed.
#include <algorithm>
#include <cmath>

#include "import/onnx/expr.h"

namespace quartet::import::onnx {

namespace {

// What holds for every axis.
struct Mode {
  std::string interpolation;  // nearest, linear, cubic
  std::string coordinates;    // coordinate_transformation_mode
  std::string nearest;        // nearest_mode; "simple" before version 11
  double cubic_coeff_a = -0.75;
  double extrapolation_value = 0;
  bool exclude_outside = false;
};

// One axis: its extents, the scale as a scalar f32, and the part of it that is cropped (tf_crop_and_resize).
struct Axis {
  size_t axis = 0;
  IntExpr from, to;
  Expr scale;
  std::optional<double> known_scale;
  Expr start, end;
};

// floor(dim * scale). For a symbol the scale is taken as the fraction of a small divisor that it is in f32, which
// has no 0.7.
Result<IntExpr> scaled(const IntExpr& dim, double scale) {
  if (!(scale > 0) || scale > 1e6) return make_error(Code::invalid_argument, "a scale of %g", scale);
  if (const auto number = dim.constant()) {
    const float extent = std::floor(static_cast<float>(*number) * static_cast<float>(scale));
    if (!(extent < 0x1p52f)) return Status(Code::resource_exhausted, "the result is too large");
    return IntExpr(static_cast<int64_t>(extent));
  }
  if (const auto fraction = small_fraction(scale); fraction && fraction->times > 0)
    return floor_div(dim * IntExpr(fraction->times), IntExpr(fraction->divisor));
  return make_error(Code::unsupported, "a scale of %.9g of a symbolic dim", scale);
}

// The place in the operand of each element of the result, f32[to].
Expr coordinates(Emit& e, const Mode& mode, const Axis& a) {
  const DType f32 = DType::f32;
  const Expr i = e.iota({a.to}, 0, f32), from = e.dim(a.from, f32), to = e.dim(a.to, f32);
  const Expr half_pixel = (i + 0.5) / a.scale - 0.5;
  const Expr several = less(1.0, to);
  // Where there is one element the divisor is not used.
  const Expr last = max(to - 1, 1);
  if (mode.coordinates == "asymmetric") return i / a.scale;
  if (mode.coordinates == "half_pixel") return half_pixel;
  if (mode.coordinates == "pytorch_half_pixel") return select(several, half_pixel, 0);
  if (mode.coordinates == "tf_half_pixel_for_nn") return (i + 0.5) / a.scale;
  if (mode.coordinates == "align_corners") return select(several, i * (from - 1) / last, 0);
  if (mode.coordinates == "half_pixel_symmetric") {
    const Expr adjustment = to / (a.scale * from);
    return from / 2 * (1.0 - adjustment) + (i + 0.5) / a.scale - 0.5;
  }
  if (mode.coordinates == "tf_crop_and_resize") {
    const Expr spread = a.start * (from - 1) + i * (a.end - a.start) * (from - 1) / last;
    return select(several, spread, (a.start + a.end) * 0.5 * (from - 1));
  }
  e.fail(make_error(Code::unsupported, "coordinate_transformation_mode = '%s'", mode.coordinates.c_str()));
  return i;
}

Expr clamped_index(Emit& e, const Expr& place, const IntExpr& extent) {
  return max(min(place.cast(DType::i64), e.dim(extent - IntExpr(1), DType::i64)), 0);
}

Expr nearest(Emit& e, const Mode& mode, const Axis& a, const Expr& at) {
  if (mode.nearest == "round_prefer_floor") return unary(OpCode::ceil, at - 0.5);
  if (mode.nearest == "round_prefer_ceil") return unary(OpCode::floor, at + 0.5);
  if (mode.nearest == "floor") return unary(OpCode::floor, at);
  if (mode.nearest == "ceil") return unary(OpCode::ceil, at);
  if (mode.nearest == "simple") return select(less(a.scale, 1), unary(OpCode::ceil, at), unary(OpCode::floor, at));
  e.fail(make_error(Code::unsupported, "nearest_mode = '%s'", mode.nearest.c_str()));
  return at;
}

struct Tap {
  Expr place;   // f32, whole numbers, perhaps outside
  Expr weight;  // f32
};

std::vector<Tap> linear_taps(const Expr& at) {
  const Expr below = unary(OpCode::floor, at);
  const Expr rest = at - below;
  return {{below, 1.0 - rest}, {below + 1, rest}};
}

// Keys' cubic convolution with parameter a.
std::vector<Tap> cubic_taps(const Expr& at, double a) {
  const Expr below = unary(OpCode::floor, at);
  const Expr t = at - below, u = 1.0 - t;
  const auto near = [&](const Expr& d) { return (d * (a + 2) - (a + 3)) * d * d + 1; };
  const auto far = [&](const Expr& d) { return ((d * a - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {{below - 1, far(t + 1)}, {below, near(t)}, {below + 1, near(u)}, {below + 2, far(u + 1)}};
}

// Elements outside have no weight, the others' add up to 1 again.
void exclude_outside(Emit& e, const IntExpr& extent, std::vector<Tap>& taps) {
  const Expr last = e.dim(extent - IntExpr(1), DType::f32);
  Expr total;
  for (Tap& tap : taps) {
    const Expr outside = either(less(tap.place, 0), less(last, tap.place));
    tap.weight = select(outside, 0, tap.weight);
    total = total.ok() ? total + tap.weight : tap.weight;
  }
  for (Tap& tap : taps) tap.weight = tap.weight / total;
}

// One axis resized; x is of the working type.
Expr resize_axis(Emit& e, const Mode& mode, const Axis& a, const Expr& x) {
  const Expr at = coordinates(e, mode, a);
  Expr y;
  if (mode.interpolation == "nearest") {
    y = x.gather(clamped_index(e, nearest(e, mode, a, at), a.from), a.axis);
  } else {
    std::vector<Tap> taps = mode.interpolation == "cubic" ? cubic_taps(at, mode.cubic_coeff_a) : linear_taps(at);
    if (mode.exclude_outside) exclude_outside(e, a.from, taps);
    for (const Tap& tap : taps) {
      const Expr weight = tap.weight.cast(x.dtype()).along(a.axis, x.rank());
      const Expr part = x.gather(clamped_index(e, tap.place, a.from), a.axis) * weight;
      y = y.ok() ? y + part : part;
    }
  }
  if (mode.coordinates != "tf_crop_and_resize") return y;
  const Expr last = e.dim(a.from - IntExpr(1), DType::f32);
  const Expr outside = either(less(at, 0), less(last, at)).along(a.axis, x.rank());
  return select(outside, mode.extrapolation_value, y);
}

Result<Mode> mode_of(NodeContext& c) {
  Mode mode;
  mode.interpolation = c.attr_text("mode", "nearest");
  if (mode.interpolation == "bilinear") mode.interpolation = "linear";
  const bool old = c.version() < 11;
  mode.coordinates = c.attr_text("coordinate_transformation_mode", old ? "asymmetric" : "half_pixel");
  mode.nearest = c.attr_text("nearest_mode", old ? "simple" : "round_prefer_floor");
  mode.cubic_coeff_a = c.attr_float("cubic_coeff_a", -0.75f);
  mode.extrapolation_value = c.attr_float("extrapolation_value", 0);
  mode.exclude_outside = c.attr_int("exclude_outside", 0) != 0;
  if (mode.interpolation != "nearest" && mode.interpolation != "linear" && mode.interpolation != "cubic")
    return make_error(Code::unsupported, "mode = '%s'", mode.interpolation.c_str());
  if (c.attr_int("antialias", 0) != 0 && mode.interpolation != "nearest") return Status(Code::unsupported, "antialias");
  return mode;
}

// Whether an operand is there and has elements: an empty one counts as absent.
bool present(NodeContext& c, size_t i) {
  if (!c.has(i)) return false;
  const graph::Constant* known = c.constant(i);
  return !known || known->bytes > 0;
}

// The scales, from an attribute or an input: as numbers where they are known, else the operand.
Status read_scales(NodeContext& c, Emit& e, size_t input, std::vector<Axis>& axes) {
  std::optional<std::vector<double>> known;
  if (const Attribute* given = c.attr("scales"); given && c.version() < 9) {
    known.emplace(given->floats.begin(), given->floats.end());
  } else {
    QUARTET_TRY(c.want(input));
    known = c.floats(input);
  }
  if (known && known->size() != axes.size())
    return make_error(Code::invalid_argument, "%zu scales for %zu axes", known->size(), axes.size());
  std::optional<graph::Shape> declared;
  if (!known) {
    QUARTET_ASSIGN(declared, c.declared_shape(0, input, "the scales"));
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    Axis& a = axes[i];
    if (known) {
      a.known_scale = (*known)[i];
      a.scale = e.number(DType::f32, (*known)[i]);
      QUARTET_ASSIGN(a.to, scaled(a.from, (*known)[i]));
    } else {
      if (a.axis >= declared->size()) return Status(Code::invalid_argument, "the declared result has another rank");
      a.scale = e.in(input).element(static_cast<int64_t>(i)).cast(DType::f32);
      a.to = (*declared)[a.axis];
    }
  }
  return e.status();
}

// One scale for all axes that keeps the result inside the sizes, or around them.
Status keep_aspect_ratio(Emit& e, bool inside, std::vector<Axis>& axes) {
  std::optional<float> scale;
  for (const Axis& a : axes) {
    const auto from = a.from.constant(), to = a.to.constant();
    if (from && *from < 1) return Status(Code::invalid_argument, "an empty axis has no ratio to keep");
    if (!from || !to) return Status(Code::unsupported, "keep_aspect_ratio_policy with symbolic dims");
    const float ratio = static_cast<float>(*to) / static_cast<float>(*from);
    scale = !scale ? ratio : inside ? std::min(*scale, ratio) : std::max(*scale, ratio);
  }
  for (Axis& a : axes) {
    const double extent = std::floor(static_cast<double>(*scale * static_cast<float>(*a.from.constant())) + 0.5);
    if (!(extent < 0x1p52)) return Status(Code::resource_exhausted, "the result is too large");
    a.to = static_cast<int64_t>(extent);
    a.known_scale = *scale;
    a.scale = e.number(DType::f32, static_cast<double>(*scale));
  }
  return {};
}

Status read_sizes(NodeContext& c, Emit& e, std::vector<Axis>& axes) {
  const auto known = c.known_ints(3);
  std::vector<IntExpr> sizes;
  if (known) {
    sizes = known->values;
  } else {
    QUARTET_ASSIGN(const graph::Shape declared, c.declared_shape(0, 3, "the sizes"));
    for (const Axis& a : axes) sizes.push_back(a.axis < declared.size() ? declared[a.axis] : IntExpr::invalid());
  }
  if (sizes.size() != axes.size())
    return make_error(Code::invalid_argument, "%zu sizes for %zu axes", sizes.size(), axes.size());
  for (size_t i = 0; i < axes.size(); ++i) axes[i].to = sizes[i];
  const std::string policy = c.attr_text("keep_aspect_ratio_policy", "stretch");
  if (policy == "not_larger" || policy == "not_smaller") return keep_aspect_ratio(e, policy == "not_larger", axes);
  if (policy != "stretch") return make_error(Code::unsupported, "keep_aspect_ratio_policy = '%s'", policy.c_str());
  for (Axis& a : axes) {
    a.scale = e.dim(a.to, DType::f32) / e.dim(a.from, DType::f32);
    if (c.dims().same(a.from, a.to)) a.known_scale = 1;
  }
  return e.status();
}

Result<std::vector<Axis>> axes_of(NodeContext& c, Emit& e, const Expr& x) {
  std::vector<int64_t> numbers;
  for (size_t d = 0; d < x.rank(); ++d) numbers.push_back(static_cast<int64_t>(d));
  if (const auto given = c.attr_ints("axes"); given && c.version() >= 18) numbers = *given;
  std::vector<Axis> axes;
  for (const int64_t each : numbers) {
    QUARTET_ASSIGN(const int64_t axis, c.axis(each, x.rank()));
    axes.push_back({});
    axes.back().axis = static_cast<size_t>(axis);
    axes.back().from = x.dim(static_cast<size_t>(axis));
  }
  if (c.version() < 11) {
    QUARTET_TRY(read_scales(c, e, 1, axes));
  } else if (present(c, 3)) {
    QUARTET_TRY(read_sizes(c, e, axes));
  } else {
    QUARTET_TRY(read_scales(c, e, 2, axes));
  }
  return axes;
}

// Scales or sizes that the caller gives must make the declared shape.
Expr checked(NodeContext& c, Emit& e, const std::vector<Axis>& axes, Expr y) {
  const size_t scales = c.version() < 11 ? 1 : 2;
  if (c.version() >= 11 && present(c, 3)) {
    graph::Shape sizes;
    for (const Axis& a : axes) sizes.push_back(a.to);
    return c.from_caller(3) ? as_declared(y, 3, sizes) : y;
  }
  if (!c.from_caller(scales)) return y;
  for (const Axis& a : axes) {
    const Expr extent = unary(OpCode::floor, e.dim(a.from, DType::f32) * a.scale);
    y = required(equal(extent, e.dim(a.to, DType::f32)), y, contradiction(scales));
  }
  return y;
}

Status resize(NodeContext& c) {
  Emit e(c);
  const Expr given = e.in(0);
  QUARTET_TRY(e.status());
  QUARTET_ASSIGN(const Mode mode, mode_of(c));
  QUARTET_ASSIGN(std::vector<Axis> axes, axes_of(c, e, given));
  const bool crops = mode.coordinates == "tf_crop_and_resize";
  if (crops) {
    if (!present(c, 1)) return Status(Code::invalid_argument, "tf_crop_and_resize without roi");
    const Expr roi = e.in(1).cast(DType::f32);
    for (size_t i = 0; i < axes.size(); ++i) {
      axes[i].start = roi.element(static_cast<int64_t>(i));
      axes[i].end = roi.element(static_cast<int64_t>(i + axes.size()));
    }
  }
  const bool whole = mode.interpolation == "nearest";
  Expr y = whole || given.dtype() == DType::f64 ? given : given.cast(DType::f32);
  y = checked(c, e, axes, y);
  for (const Axis& a : axes) {
    const bool unchanged = !crops && a.known_scale == 1.0 && c.dims().same(a.from, a.to);
    if (!unchanged) y = resize_axis(e, mode, a, y);
  }
  return e.give(0, y.id() == given.id() ? e.op(OpCode::identity, {given}) : y.cast(given.dtype()));
}

constexpr OpRow kRows[] = {
    {"Resize", 10, INT64_MAX, resize},
    {"Upsample", 7, 10, resize},
};

}  // namespace

std::span<const OpRow> resize_ops() { return kRows; }

}  // namespace quartet::import::onnx
