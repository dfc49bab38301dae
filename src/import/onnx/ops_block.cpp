// Blocks of the plane and channels into one another, and determinants.
#include "import/onnx/expr.h"

namespace quartet::import::onnx {

namespace {

Result<int64_t> block_size(NodeContext& c, const Expr& x) {
  QUARTET_TRY(x.emit().status());
  if (x.rank() != 4) return make_error(Code::invalid_argument, "the operand has rank %zu, not 4", x.rank());
  const int64_t size = c.attr_int("blocksize", 0);
  if (size < 1 || size > INT32_MAX)
    return make_error(Code::invalid_argument, "blocksize = %lld", static_cast<long long>(size));
  return size;
}

// dim / divisor, which must be whole.
Result<IntExpr> divided(NodeContext& c, const IntExpr& dim, int64_t divisor) {
  if (!c.dims().same(floor_mod(dim, IntExpr(divisor)), IntExpr(0)))
    return make_error(dim.is_constant() ? Code::invalid_argument : Code::unsupported,
                      "dim %s is not known to be a multiple of %lld", c.dims().text(dim).c_str(),
                      static_cast<long long>(divisor));
  return c.simple(floor_div(dim, IntExpr(divisor)));
}

Status depth_to_space(NodeContext& c) {
  Emit e(c);
  const Expr x = e.in(0);
  QUARTET_ASSIGN(const int64_t size, block_size(c, x));
  QUARTET_ASSIGN(const IntExpr depth, divided(c, x.dim(1), size * size));
  const std::string mode = c.attr_text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return make_error(Code::invalid_argument, "mode = '%s'", mode.c_str());
  const bool depth_first = mode == "CRD";
  const IntExpr n = x.dim(0), h = x.dim(2), w = x.dim(3), b = size;
  const Expr apart = depth_first ? x.reshape({n, depth, b, b, h, w}) : x.reshape({n, b, b, depth, h, w});
  const Expr moved = depth_first ? apart.transpose({0, 1, 4, 2, 5, 3}) : apart.transpose({0, 3, 4, 1, 5, 2});
  return e.give(0, moved.reshape({n, depth, h * b, w * b}));
}

Status space_to_depth(NodeContext& c) {
  Emit e(c);
  const Expr x = e.in(0);
  QUARTET_ASSIGN(const int64_t size, block_size(c, x));
  QUARTET_ASSIGN(const IntExpr h, divided(c, x.dim(2), size));
  QUARTET_ASSIGN(const IntExpr w, divided(c, x.dim(3), size));
  const IntExpr n = x.dim(0), depth = x.dim(1), b = size;
  const Expr moved = x.reshape({n, depth, h, b, w, b}).transpose({0, 3, 5, 1, 2, 4});
  return e.give(0, moved.reshape({n, depth * b * b, h, w}));
}

// The determinant of the rows from `row` on, in these columns, by the first row's minors.
Expr minor(const std::vector<std::vector<Expr>>& m, size_t row, const std::vector<size_t>& columns) {
  if (columns.size() == 1) return m[row][columns[0]];
  Expr sum;
  for (size_t i = 0; i < columns.size(); ++i) {
    std::vector<size_t> rest = columns;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
    const Expr term = m[row][columns[i]] * minor(m, row + 1, rest);
    sum = i == 0 ? term : i % 2 == 1 ? sum - term : sum + term;
  }
  return sum;
}

Status det(NodeContext& c) {
  Emit e(c);
  const Expr x = e.in(0);
  QUARTET_TRY(e.status());
  if (x.rank() < 2 || !c.dims().same(x.dim(x.rank() - 1), x.dim(x.rank() - 2)))
    return Status(Code::invalid_argument, "the operand holds no square matrices");
  const auto n = x.dim(x.rank() - 1).constant();
  if (!n || *n < 1 || *n > 4) return Status(Code::unsupported, "matrices other than 1 x 1 to 4 x 4");
  const graph::Shape batch(x.shape().begin(), x.shape().end() - 2);
  std::vector<std::vector<Expr>> m(static_cast<size_t>(*n));
  std::vector<size_t> columns;
  for (int64_t i = 0; i < *n; ++i) {
    columns.push_back(static_cast<size_t>(i));
    for (int64_t j = 0; j < *n; ++j)
      m[static_cast<size_t>(i)].push_back(x.slice(x.rank() - 2, IntExpr(i), IntExpr(i + 1))
                                              .slice(x.rank() - 1, IntExpr(j), IntExpr(j + 1))
                                              .reshape(batch));
  }
  return e.give(0, minor(m, 0, columns));
}

constexpr OpRow kRows[] = {
    {"DepthToSpace", 1, INT64_MAX, depth_to_space},
    {"Det", 11, INT64_MAX, det},
    {"SpaceToDepth", 1, INT64_MAX, space_to_depth},
};

}  // namespace

std::span<const OpRow> block_ops() { return kRows; }

}  // namespace quartet::import::onnx
