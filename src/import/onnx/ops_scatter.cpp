// Updates written into a tensor. Where two meet, the later one wins, or joins what is there.
#include "import/onnx/expr.h"
#include "import/onnx/index.h"

namespace quartet::import::onnx {

namespace {

Result<int64_t> combination(NodeContext& c) {
  const std::string reduction = c.attr_text("reduction", "none");
  constexpr std::string_view kNames[] = {"none", "add", "mul", "min", "max"};
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (reduction == kNames[i]) return static_cast<int64_t>(i);
  return make_error(Code::unsupported, "reduction = '%s'", reduction.c_str());
}

// x, seen as [rows, width], with row i of the updates, seen as [count, width], at the row that positions[i] names.
Expr scattered(Emit& e, const Expr& x, const Expr& positions, const Expr& updates, const IntExpr& rows,
               const IntExpr& width, int64_t combine) {
  const Expr y =
      e.op(OpCode::scatter, {x.reshape({rows, width}), positions, updates.reshape({positions.dim(0), width})},
           {{AttrKey::combine, combine}});
  return y.reshape(x.shape());
}

Status scatter_elements(NodeContext& c) {
  Emit e(c);
  const Expr x = e.in(0), indices = e.in(1), given = e.in(2);
  QUARTET_TRY(e.status());
  if (x.rank() != indices.rank() || x.rank() == 0)
    return make_error(Code::invalid_argument, "data of rank %zu, indices of rank %zu", x.rank(), indices.rank());
  QUARTET_ASSIGN(const int64_t combine, combination(c));
  QUARTET_ASSIGN(const int64_t axis, c.axis(c.attr_int("axis", 0), x.rank()));
  const Expr updates = e.value(c.assumed(given.id(), indices.shape(), "updates"));
  const Expr positions = flat(element_positions(e, indices, static_cast<size_t>(axis), x.shape()));
  return e.give(0, scattered(e, x, positions, updates, x.type().elements(), IntExpr(1), combine));
}

Status scatter_nd(NodeContext& c) {
  Emit e(c);
  const Expr x = e.in(0), indices = e.in(1).cast(DType::i64), given = e.in(2);
  QUARTET_TRY(e.status());
  const auto depth = indices.rank() > 0 ? indices.shape().back().constant() : std::nullopt;
  if (!depth || *depth > static_cast<int64_t>(x.rank()))
    return make_error(Code::invalid_argument, "indices do not fit data of rank %zu", x.rank());
  QUARTET_ASSIGN(const int64_t combine, combination(c));
  const auto first = static_cast<size_t>(*depth);
  IntExpr count = 1, rows = 1, width = 1;
  for (size_t d = 0; d < first; ++d) rows *= x.dim(d);
  for (size_t d = 0; d + 1 < indices.rank(); ++d) count *= indices.dim(d);
  for (size_t d = first; d < x.rank(); ++d) width *= x.dim(d);
  graph::Shape shape(indices.shape().begin(), indices.shape().end() - 1);
  shape.insert(shape.end(), x.shape().begin() + *depth, x.shape().end());
  const Expr updates = e.value(c.assumed(given.id(), std::move(shape), "updates"));
  const Expr table = indices.reshape({count, IntExpr(*depth)});
  std::vector<Expr> at;
  for (size_t d = 0; d < first; ++d) {
    const auto column = static_cast<int64_t>(d);
    at.push_back(
        from_front(table.slice(1, IntExpr(column), IntExpr(column + 1)).reshape({count}), e.dim(x.dim(d), DType::i64)));
  }
  const graph::Shape outer(x.shape().begin(), x.shape().begin() + *depth);
  const Expr positions = row_major(e, at, outer).expand({count});
  return e.give(0, scattered(e, x, positions, updates, rows, width, combine));
}

constexpr OpRow kRows[] = {
    {"Scatter", 9, INT64_MAX, scatter_elements},
    {"ScatterElements", 11, INT64_MAX, scatter_elements},
    {"ScatterND", 11, INT64_MAX, scatter_nd},
};

}  // namespace

std::span<const OpRow> scatter_ops() { return kRows; }

}  // namespace quartet::import::onnx
