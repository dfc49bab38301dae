// Sampling at places that a tensor gives, and the inverse of max pooling.
#include "import/onnx/expr.h"
#include "import/onnx/index.h"

namespace quartet::import::onnx {

namespace {

enum class Border { zeros, border, reflection };

struct Grid {
  std::string interpolation;  // linear, nearest, cubic
  Border border = Border::zeros;
  bool align_corners = false;
};

Result<Grid> grid_of(NodeContext& c) {
  Grid grid;
  grid.align_corners = c.attr_int("align_corners", 0) != 0;
  grid.interpolation = c.attr_text("mode", "linear");
  if (grid.interpolation == "bilinear") grid.interpolation = "linear";
  if (grid.interpolation == "bicubic") grid.interpolation = "cubic";
  if (grid.interpolation != "linear" && grid.interpolation != "nearest" && grid.interpolation != "cubic")
    return make_error(Code::unsupported, "mode = '%s'", grid.interpolation.c_str());
  const std::string border = c.attr_text("padding_mode", "zeros");
  if (border == "border")
    grid.border = Border::border;
  else if (border == "reflection")
    grid.border = Border::reflection;
  else if (border != "zeros")
    return make_error(Code::unsupported, "padding_mode = '%s'", border.c_str());
  return grid;
}

// One tap along one axis: a place (whole numbers) and its weight.
struct Tap {
  Expr place, weight;
};

// One spatial axis of the operand.
struct Axis {
  IntExpr extent;
  std::vector<Tap> taps;
};

// Places mirrored at both ends until they are inside.
Expr reflected(const Expr& at, const Expr& low, const Expr& high) {
  const Expr range = max(high - low, 1e-6), away = unary(OpCode::abs, at - low);
  const Expr turns = unary(OpCode::floor, away / range);
  const Expr rest = away - turns * range;
  const Expr odd = equal(turns - unary(OpCode::floor, turns * 0.5) * 2, 1);
  return select(odd, high - rest, low + rest);
}

// A place brought inside as the border says; outside of `zeros` it stays.
Expr bordered(Emit& e, const Grid& grid, const Expr& at, const IntExpr& extent) {
  const Expr last = e.dim(extent - IntExpr(1), at.dtype());
  const Expr outside = either(less(at, 0), less(last, at));
  if (grid.border == Border::border) return max(min(at, last), 0);
  if (grid.border == Border::zeros) return at;
  const double edge = grid.align_corners ? 0 : 0.5;
  const Expr low = e.number(at.dtype(), -edge), high = last + edge;
  const Expr beyond = edge > 0 ? either(less(at, low), less(high, at)) : outside;
  return select(beyond, reflected(at, low, high), at);
}

std::vector<Tap> cubic(const Expr& below, const Expr& t) {
  constexpr double a = -0.75;
  const Expr u = 1.0 - t;
  const auto near = [&](const Expr& d) { return (d * (a + 2) - (a + 3)) * d * d + 1; };
  const auto far = [&](const Expr& d) { return ((d * a - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {{below - 1, far(t + 1)}, {below, near(t)}, {below + 1, near(u)}, {below + 2, far(u + 1)}};
}

// `at`: the grid's coordinate in [-1, 1].
std::vector<Tap> taps_of(Emit& e, const Grid& grid, const Expr& at, const IntExpr& extent) {
  const Expr size = e.dim(extent, at.dtype());
  const Expr place = grid.align_corners ? (at + 1) / 2 * (size - 1) : ((at + 1) * size - 1) / 2;
  const Expr one = e.number(at.dtype(), 1.0);
  if (grid.interpolation == "nearest") return {{unary(OpCode::round, place), one}};
  const Expr below = unary(OpCode::floor, place);
  const Expr rest = place - below;
  if (grid.interpolation == "cubic") return cubic(below, rest);
  return {{below, 1.0 - rest}, {below + 1, rest}};
}

class Sampler {
 public:
  // x [n, c, spatial...] as rows [n * spatial..., c].
  Sampler(Emit& e, const Grid& grid, const Expr& x, std::vector<Axis> axes, size_t rank)
      : e_(e), grid_(grid), axes_(std::move(axes)) {
    std::vector<int64_t> perm = {0};
    for (size_t d = 2; d < x.rank(); ++d) perm.push_back(static_cast<int64_t>(d));
    perm.push_back(1);
    const Expr last = x.transpose(perm);
    shape_ = {x.dim(0)};
    for (size_t d = 2; d < x.rank(); ++d) shape_.push_back(x.dim(d));
    IntExpr rows = 1;
    for (const IntExpr& dim : shape_) rows *= dim;
    table_ = last.reshape({rows, x.dim(1)});
    batch_ = e.iota({x.dim(0)}, 0, DType::i64).along(0, rank);
  }

  // The sum over all taps: [n, out..., c].
  Expr run() {
    std::vector<Expr> at = {batch_};
    add(0, at, {});
    return total_;
  }

 private:
  void add(size_t axis, std::vector<Expr>& at, const Expr& weight) {
    if (axis == axes_.size()) return look_up(at, weight);
    for (const Tap& tap : axes_[axis].taps) {
      const IntExpr& extent = axes_[axis].extent;
      Expr w = tap.weight;
      if (grid_.border == Border::zeros) {
        const Expr last = e_.dim(extent - IntExpr(1), w.dtype());
        w = select(either(less(tap.place, 0), less(last, tap.place)), 0, w);
      }
      const Expr inside = bordered(e_, grid_, tap.place, extent);
      const Expr last = e_.dim(extent - IntExpr(1), DType::i64);
      at.push_back(max(min(inside.cast(DType::i64), last), 0));
      add(axis + 1, at, weight.ok() ? weight * w : w);
      at.pop_back();
    }
  }

  void look_up(const std::vector<Expr>& at, const Expr& weight) {
    const Expr found = table_.gather(row_major(e_, at, shape_), 0);
    graph::Shape wide = weight.shape();
    wide.push_back(1);
    const Expr part = select(equal(weight, 0).reshape(wide), 0, found * weight.reshape(wide));
    total_ = total_.ok() ? total_ + part : part;
  }

  Emit& e_;
  const Grid& grid_;
  std::vector<Axis> axes_;
  graph::Shape shape_;
  Expr table_, batch_, total_;
};

Status grid_sample(NodeContext& c) {
  Emit e(c);
  const Expr given = e.in(0);
  const Expr x = is_float(given.dtype()) ? given.cast(working_type(given.dtype())) : given.cast(DType::f32);
  const Expr places = e.in(1).cast(x.dtype());
  QUARTET_TRY(e.status());
  if (x.rank() < 3 || places.rank() != x.rank() || !places.shape().back().is(static_cast<int64_t>(x.rank()) - 2))
    return Status(Code::invalid_argument, "the grid does not fit the operand");
  QUARTET_ASSIGN(const Grid grid, grid_of(c));
  const size_t last = places.rank() - 1, spatial = x.rank() - 2;
  if (grid.interpolation == "cubic" && spatial > 2)
    return Status(Code::unsupported, "cubic in more than two dimensions");
  const graph::Shape points(places.shape().begin(), places.shape().end() - 1);
  std::vector<Axis> axes;
  for (size_t d = 0; d < spatial; ++d) {
    const auto from = static_cast<int64_t>(spatial - 1 - d);  // the grid names the last axis first
    const Expr at = places.slice(last, IntExpr(from), IntExpr(from + 1)).reshape(points);
    axes.push_back({x.dim(d + 2), taps_of(e, grid, at, x.dim(d + 2))});
  }
  const Expr y = Sampler(e, grid, x, std::move(axes), points.size()).run();
  std::vector<int64_t> perm = {0, static_cast<int64_t>(last)};
  for (size_t d = 1; d < last; ++d) perm.push_back(static_cast<int64_t>(d));
  return e.give(0, y.transpose(perm).cast(given.dtype()));
}

// The values at the flat places that pooling found, zeros elsewhere.
Status max_unpool(NodeContext& c) {
  Emit e(c);
  const Expr x = e.in(0), places = e.in(1);
  QUARTET_TRY(e.status());
  const size_t spatial = x.rank() < 2 ? 0 : x.rank() - 2;
  const auto ints = [&](const char* name, size_t count, int64_t otherwise) {
    return c.attr_ints(name).value_or(std::vector<int64_t>(count, otherwise));
  };
  const auto sizes = ints("kernel_shape", 0, 1), strides = ints("strides", spatial, 1),
             pads = ints("pads", 2 * spatial, 0);
  if (spatial == 0 || sizes.size() != spatial || strides.size() != spatial || pads.size() != 2 * spatial)
    return Status(Code::invalid_argument, "kernel_shape, strides or pads of another rank");
  graph::Shape inferred = x.shape();
  for (size_t d = 0; d < spatial; ++d)
    inferred[d + 2] = (x.dim(d + 2) - IntExpr(1)) * IntExpr(strides[d]) + IntExpr(sizes[d]) - IntExpr(pads[d]) -
                      IntExpr(pads[spatial + d]);
  graph::Shape shape = inferred;
  if (c.has(2)) {
    if (const auto known = c.known_ints(2)) {
      shape = known->values;
    } else {
      QUARTET_ASSIGN(shape, c.declared_shape(0, 2, "the output's shape"));
    }
  }
  if (shape.size() != x.rank()) return Status(Code::invalid_argument, "the output's shape has another rank");
  // The places are those of the inferred shape; in a larger one they move.
  Expr at = flat(places).cast(DType::i64);
  IntExpr all = 1;
  for (const IntExpr& dim : shape) all *= dim;
  std::vector<Expr> point(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    const Expr extent = e.dim(inferred[d], DType::i64);
    point[d] = d == 0 ? at : at - at / extent * extent;
    at = at / extent;
  }
  const Expr zeros = e.number(x.dtype(), 0.0).expand({all, IntExpr(1)});
  const Expr y =
      e.op(OpCode::scatter, {zeros, row_major(e, point, shape), x.reshape({x.type().elements(), IntExpr(1)})});
  return e.give(0, c.from_caller(2) ? as_declared(y.reshape(shape), 2, shape) : y.reshape(shape));
}

constexpr OpRow kRows[] = {
    {"GridSample", 16, INT64_MAX, grid_sample},
    {"MaxUnpool", 9, INT64_MAX, max_unpool},
};

}  // namespace

std::span<const OpRow> sample_ops() { return kRows; }

}  // namespace quartet::import::onnx
