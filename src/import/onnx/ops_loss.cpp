// Losses. f16 and bf16 compute in f32 and round once at the end.
#include <numeric>

#include "import/onnx/expr.h"

namespace quartet::import::onnx {

namespace {

// What each target picks from axis 1, weighted, reduced. `log_probability`: [n, c, d...], target [n, d...].
Result<Expr> picked_loss(NodeContext& c, Emit& e, const Expr& log_probability, const Expr& target) {
  QUARTET_TRY(e.status());
  const size_t rank = log_probability.rank();
  if (rank < 2 || target.rank() + 1 != rank)
    return make_error(Code::invalid_argument, "scores of rank %zu, targets of rank %zu", rank, target.rank());
  const DType type = log_probability.dtype();
  graph::Shape shape = target.shape();
  shape.insert(shape.begin() + 1, IntExpr(1));
  const Expr wanted = target.cast(DType::i64);
  const Expr hit = equal(e.iota({log_probability.dim(1)}, 0, DType::i64).along(1, rank), wanted.reshape(shape));
  Expr loss = -select(hit, log_probability, 0).reduce(OpCode::reduce_sum, {1}, false);
  Expr weight = e.number(type, 1.0).expand(target.shape());
  if (c.has(2)) weight = e.in(2).cast(type).gather(wanted, 0);
  if (c.attr("ignore_index"))
    weight = select(equal(wanted, static_cast<double>(c.attr_int("ignore_index", 0))), 0, weight);
  loss = select(equal(weight, 0), 0, loss * weight);
  const std::string reduction = c.attr_text("reduction", "mean");
  if (reduction == "none") return loss;
  std::vector<int64_t> axes(target.rank());
  std::iota(axes.begin(), axes.end(), 0);
  const Expr sum = loss.reduce(OpCode::reduce_sum, axes, false);
  if (reduction == "sum") return sum;
  if (reduction != "mean") return make_error(Code::invalid_argument, "reduction = '%s'", reduction.c_str());
  return sum / weight.reduce(OpCode::reduce_sum, axes, false);
}

Status negative_log_likelihood(NodeContext& c) {
  Emit e(c);
  const Expr given = e.in(0);
  QUARTET_ASSIGN(const Expr loss, picked_loss(c, e, given.cast(working_type(given.dtype())), e.in(1)));
  return e.give(0, loss.cast(given.dtype()));
}

Status softmax_cross_entropy(NodeContext& c) {
  Emit e(c);
  const Expr given = e.in(0);
  QUARTET_TRY(e.status());
  if (given.rank() < 2) return make_error(Code::invalid_argument, "scores of rank %zu", given.rank());
  const Expr scores =
      e.op(OpCode::log_softmax, {given.cast(working_type(given.dtype()))}, {{AttrKey::axis, int64_t{1}}});
  QUARTET_ASSIGN(const Expr loss, picked_loss(c, e, scores, e.in(1)));
  if (c.output_count() > 1) QUARTET_TRY(e.give(1, scores.cast(given.dtype())));
  return e.give(0, loss.cast(given.dtype()));
}

constexpr OpRow kRows[] = {
    {"NegativeLogLikelihoodLoss", 12, INT64_MAX, negative_log_likelihood},
    {"SoftmaxCrossEntropyLoss", 12, INT64_MAX, softmax_cross_entropy},
};

}  // namespace

std::span<const OpRow> loss_ops() { return kRows; }

}  // namespace quartet::import::onnx
