// Pooling of regions: RoiAlign with a fixed number of samples in each bin.
#include "import/onnx/expr.h"
#include "import/onnx/index.h"

namespace quartet::import::onnx {

namespace {

// Samples along one axis of every region, [regions, bins * samples]: the two elements beside each and their weights.
struct Samples {
  Expr below, above;  // i64
  Expr weight_below, weight_above;
};

// `start` and `size`: of each region along the axis, [regions, 1].
Samples samples_of(Emit& e, const Expr& start, const Expr& size, int64_t bins, int64_t count, const IntExpr& extent) {
  const DType type = start.dtype();
  const Expr i = e.iota({IntExpr(1), IntExpr(bins * count)}, 1, type);
  const Expr at = start + (i + 0.5) * size / static_cast<double>(bins * count);
  const Expr length = e.dim(extent, type), last = length - 1;
  const Expr outside = either(less(at, -1), less(length, at));
  const Expr place = max(min(at, last), 0);
  const Expr below = unary(OpCode::floor, place), above = min(below + 1, last);
  const Expr rest = place - below;
  return {below.cast(DType::i64), above.cast(DType::i64), select(outside, 0, 1.0 - rest), select(outside, 0, rest)};
}

Status roi_align(NodeContext& c) {
  Emit e(c);
  const Expr given = e.in(0);
  const Expr x = given.cast(working_type(given.dtype())), regions = e.in(1).cast(x.dtype());
  QUARTET_TRY(e.status());
  if (x.rank() != 4 || regions.rank() != 2)
    return make_error(Code::invalid_argument, "x of rank %zu, rois of rank %zu", x.rank(), regions.rank());
  const int64_t height = c.attr_int("output_height", 1), width = c.attr_int("output_width", 1),
                count = c.attr_int("sampling_ratio", 0);
  if (const std::string mode = c.attr_text("mode", "avg"); mode != "avg")
    return make_error(Code::unsupported, "mode = '%s'", mode.c_str());
  if (height < 1 || width < 1 || count < 0 || height > (1 << 12) || width > (1 << 12) || count > 64)
    return Status(Code::invalid_argument, "output_height, output_width or sampling_ratio out of range");
  if (count == 0) return Status(Code::unsupported, "sampling_ratio = 0: as many samples as the region asks for");
  const std::string transform =
      c.attr_text("coordinate_transformation_mode", c.version() < 16 ? "output_half_pixel" : "half_pixel");
  if (transform != "half_pixel" && transform != "output_half_pixel")
    return make_error(Code::unsupported, "coordinate_transformation_mode = '%s'", transform.c_str());
  const bool half_pixel = transform == "half_pixel";
  const double scale = c.attr_float("spatial_scale", 1);
  const auto edge = [&](int64_t i) {
    return regions.slice(1, IntExpr(i), IntExpr(i + 1)) * scale - (half_pixel ? 0.5 : 0.0);
  };
  const auto length = [&](const Expr& from, const Expr& to) { return half_pixel ? to - from : max(to - from, 1); };
  const Expr left = edge(0), top = edge(1), right = edge(2), bottom = edge(3);
  const Samples down = samples_of(e, top, length(top, bottom), height, count, x.dim(2));
  const Samples across = samples_of(e, left, length(left, right), width, count, x.dim(3));
  // x as rows [n * h * w, c]; samples as [regions, down, across].
  const IntExpr n = regions.dim(0), rows(height * count), columns(width * count);
  const graph::Shape plane = {x.dim(0), x.dim(2), x.dim(3)};
  const Expr table = x.transpose({0, 2, 3, 1}).reshape({x.dim(0) * x.dim(2) * x.dim(3), x.dim(1)});
  const Expr batch = e.in(2).cast(DType::i64).along(0, 3);
  Expr sum;
  for (const bool lower : {false, true})
    for (const bool right_side : {false, true}) {
      const Expr y = (lower ? down.above : down.below).reshape({n, rows, IntExpr(1)});
      const Expr z = (right_side ? across.above : across.below).reshape({n, IntExpr(1), columns});
      const Expr weight =
          (lower ? down.weight_above : down.weight_below).reshape({n, rows, IntExpr(1), IntExpr(1)}) *
          (right_side ? across.weight_above : across.weight_below).reshape({n, IntExpr(1), columns, IntExpr(1)});
      const Expr part = table.gather(row_major(e, {batch, y, z}, plane), 0) * weight;
      sum = sum.ok() ? sum + part : part;
    }
  const Expr bins = sum.reshape({n, IntExpr(height), IntExpr(count), IntExpr(width), IntExpr(count), x.dim(1)});
  const Expr mean = bins.reduce(OpCode::reduce_mean, {2, 4}, false);
  return e.give(0, mean.transpose({0, 3, 1, 2}).cast(given.dtype()));
}

constexpr OpRow kRows[] = {{"RoiAlign", 10, INT64_MAX, roi_align}};

}  // namespace

std::span<const OpRow> roi_ops() { return kRows; }

}  // namespace quartet::import::onnx
