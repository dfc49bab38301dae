// Reduction kernels: per point of the domain, the element reduced over the linearised reduction axes in the order of
// tile/reduction_order.h, then the epilogue.
#include <cmath>

#include "kernel/lowering.h"
#include "tile/reduction_order.h"

namespace quartet::kernel {
namespace {

Result<ReduceOp> reduce_op(tile::Reduction reduction, const std::string& name) {
  switch (reduction) {
    case tile::Reduction::sum:
      return ReduceOp::sum;
    case tile::Reduction::product:
      return ReduceOp::product;
    case tile::Reduction::max:
      return ReduceOp::max;
    case tile::Reduction::min:
      return ReduceOp::min;
    case tile::Reduction::all:
      return ReduceOp::all;
    case tile::Reduction::any:
      return ReduceOp::any;
    case tile::Reduction::argmax:
      return ReduceOp::argmax;
    case tile::Reduction::argmin:
      return ReduceOp::argmin;
    case tile::Reduction::none:
    case tile::Reduction::contraction:
    case tile::Reduction::softmax_stats:
    case tile::Reduction::scatter:
      break;
  }
  return make_error(Code::internal, "'%s' is no plain reduction", name.c_str());
}

// The reduction of one point; `run` is the loop over the reduction axes.
class Reducer {
 public:
  Reducer(Lowering& lowering, const AxisRun& run, Isa isa)
      : l_(lowering), b_(lowering.builder()), run_(run), element_(lowering.expr().element) {
    dtype_ = l_.expr().body[static_cast<size_t>(element_)].dtype;
    order_ = tile::reduction_order(dtype_, isa);
  }

  Result<Ids> state() {
    const ValueId extent = l_.index(run_.extent);
    if (l_.expr().reduction == tile::Reduction::softmax_stats) return softmax(extent);
    QUARTET_ASSIGN(const ReduceOp op, reduce_op(l_.expr().reduction, l_.expr().name));
    return reduce(op, b_.i64(0), extent, [](ValueId x) { return x; });
  }

 private:
  Ids reduce(ReduceOp op, ValueId lo, ValueId hi, const std::function<ValueId(ValueId)>& map) {
    return b_.reduce({op, dtype_, order_.interleave, order_.chunk}, lo, hi, [&](ValueId r) {
      l_.set_value(run_.loop, r);
      return map(Point(l_).value(element_));
    });
  }

  // What is subtracted before exp: the maximum, or 0 where it is -inf, so that a block of -inf adds 0 and not NaN.
  ValueId shift(ValueId maximum) {
    const ValueId lowest = b_.real(dtype_, -HUGE_VAL);
    return b_.select(b_.binary(ScalarOp::eq, maximum, lowest), b_.real(dtype_, 0.0), maximum);
  }

  ValueId exp_of(ValueId x, ValueId shifted) { return b_.unary(ScalarOp::exp, b_.sub(x, shifted)); }

  Ids block(ValueId lo, ValueId hi) {
    const ValueId maximum = reduce(ReduceOp::max, lo, hi, [](ValueId x) { return x; })[0];
    const ValueId shifted = shift(maximum);
    const ValueId sum = reduce(ReduceOp::sum, lo, hi, [&](ValueId x) { return exp_of(x, shifted); })[0];
    return {maximum, sum};
  }

  Ids softmax(ValueId extent) {
    const ValueId size = b_.i64(tile::kSoftmaxBlock);
    Ids first = block(b_.i64(0), b_.min(size, extent));
    if (const auto known = b_.constant_of(extent); known && *known <= tile::kSoftmaxBlock) return first;
    return b_.loop(LoopKind::serial, size, extent, tile::kSoftmaxBlock, first, Runs::maybe,
                   [&](ValueId lo, std::span<const ValueId> before) {
                     const Ids next = block(lo, b_.min(b_.add(lo, size), extent));
                     const ValueId maximum = b_.max(before[0], next[0]);
                     const ValueId shifted = shift(maximum);
                     const ValueId old_part = b_.mul(before[1], exp_of(before[0], shifted));
                     const ValueId new_part = b_.mul(next[1], exp_of(next[0], shifted));
                     return Ids{maximum, b_.add(old_part, new_part)};
                   });
  }

  Lowering& l_;
  Builder& b_;
  const AxisRun run_;
  int32_t element_;
  DType dtype_;
  tile::ReductionOrder order_;
};

}  // namespace

Result<IntExpr> emit_reduce(Lowering& lowering, const roller::Plan& plan, Isa isa) {
  QUARTET_TRY(add_spatial_runs(lowering, plan));
  const tile::TensorExpr& expr = lowering.expr();
  std::vector<int32_t> reduced;
  for (size_t i = static_cast<size_t>(expr.spatial); i < expr.axes.size(); ++i)
    if (!expr.axes[i].is(1)) reduced.push_back(static_cast<int32_t>(i));
  const AxisRun run = lowering.add_run(reduced);
  std::vector<int32_t> roots = expr.outputs;
  roots.push_back(expr.element);
  lowering.add_inputs(roots, {});
  lowering.add_outputs();
  Status failure;
  const IntExpr tasks = spatial_loops(lowering, plan, [&] {
    auto state = Reducer(lowering, run, isa).state();
    if (!state.ok()) {
      failure = state.status();
      return;
    }
    Point point(lowering);
    point.set_reduced(state.take());
    point.store_outputs();
  });
  QUARTET_TRY(failure);
  return tasks;
}

}  // namespace quartet::kernel
