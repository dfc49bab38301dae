// Contractions without a register tile: lanes along one run of the domain, each point with its own chain over k, and a
// few points of another run side by side so that their chains hide each other's latency.
#include "kernel/lowering.h"

namespace quartet::kernel {
namespace {

constexpr int64_t kUnrolled = 16;  // places of the innermost loop over k that are written out

class Chain {
 public:
  Chain(Lowering& lowering, const roller::Plan& plan) : plan_(plan), l_(lowering), b_(l_.builder()) {}

  Result<IntExpr> run() {
    const tile::TensorExpr& e = l_.expr();
    if (plan_.rows < 1 || plan_.rows > kMostRows)
      return make_error(Code::internal, "the plan of '%s' walks %d chains at once", e.name.c_str(), plan_.rows);
    QUARTET_TRY(add_spatial_runs(l_, plan_));
    const size_t spatial = l_.runs().size();
    QUARTET_TRY(add_reduction_runs(l_, plan_));
    reduction_.assign(l_.runs().begin() + static_cast<std::ptrdiff_t>(spatial), l_.runs().end());
    accumulator_ = e.body[static_cast<size_t>(e.element)].dtype;
    std::vector<int32_t> roots = e.outputs;
    roots.push_back(e.element);
    l_.add_inputs(roots, {});
    l_.add_outputs();
    std::vector<TaskAxis> axes;
    for (size_t i = 0; i < spatial; ++i)
      axes.push_back({l_.runs()[i].extent, i < plan_.task_tile.size() ? plan_.task_tile[i] : 0});
    ranges_ = task_ranges(l_, axes);
    const auto is_axis = [&](int32_t axis) { return axis >= 0 && static_cast<size_t>(axis) < spatial; };
    vector_ = is_axis(plan_.vector_axis) ? plan_.vector_axis : -1;
    row_ = is_axis(plan_.row_axis) && plan_.row_axis != vector_ ? plan_.row_axis : -1;
    outer_loops(0);
    return task_count(axes);
  }

 private:
  static constexpr int32_t kMostRows = 16;

  Symbol loop_of(int32_t run) const { return l_.runs()[static_cast<size_t>(run)].loop; }

  void outer_loops(size_t run) {
    if (run == ranges_.size()) return rows();
    const auto number = static_cast<int32_t>(run);
    if (number == vector_ || number == row_) return outer_loops(run + 1);
    b_.loop(LoopKind::serial, ranges_[run].lo, ranges_[run].hi, 1, Runs::always, [&](ValueId i) {
      l_.set_value(loop_of(number), i);
      outer_loops(run + 1);
    });
  }

  // Whole blocks of rows, then the rest one by one.
  void rows() {
    if (row_ < 0) return lanes(kNone, 1);
    const TaskRange& range = ranges_[static_cast<size_t>(row_)];
    const ValueId height = b_.i64(plan_.rows);
    const ValueId blocks = b_.mul(b_.binary(ScalarOp::floor_div, range.count, height), height);
    const ValueId end = b_.add(range.lo, blocks);
    b_.loop(LoopKind::serial, range.lo, end, plan_.rows, Runs::maybe, [&](ValueId i) { lanes(i, plan_.rows); });
    b_.loop(LoopKind::serial, end, range.hi, 1, Runs::maybe, [&](ValueId i) { lanes(i, 1); });
  }

  void lanes(ValueId row, int32_t count) {
    if (vector_ < 0) return points(row, count);
    const TaskRange& range = ranges_[static_cast<size_t>(vector_)];
    b_.loop(LoopKind::vector, range.lo, range.hi, 1, Runs::always, [&](ValueId i) {
      l_.set_value(loop_of(vector_), i);
      points(row, count);
    });
  }

  void stand_at(ValueId row, int32_t number) {
    if (row_ >= 0) l_.set_value(loop_of(row_), b_.add(row, b_.i64(number)));
  }

  // `count` points from `row` on, at the lanes' place.
  void points(ValueId row, int32_t count) {
    Ids sums(static_cast<size_t>(count), b_.constant(accumulator_, 0));
    sums = over_k(0, row, std::move(sums));
    for (int32_t i = 0; i < count; ++i) {
      stand_at(row, i);
      Point point(l_);
      point.set_reduced({sums[static_cast<size_t>(i)]});
      point.store_outputs();
    }
  }

  Ids over_k(size_t run, ValueId row, Ids sums) {
    if (run == reduction_.size()) return step(row, std::move(sums));
    const auto extent = reduction_[run].extent.constant();
    const bool written_out = run + 1 == reduction_.size() && extent && *extent <= kUnrolled;
    return b_.loop(written_out ? LoopKind::unrolled : LoopKind::serial, b_.i64(0), l_.index(reduction_[run].extent), 1,
                   sums, Runs::maybe, [&](ValueId k, std::span<const ValueId> carried) {
                     l_.set_value(reduction_[run].loop, k);
                     return over_k(run + 1, row, Ids(carried.begin(), carried.end()));
                   });
  }

  // One multiply-add of each chain.
  Ids step(ValueId row, Ids sums) {
    const tile::BodyNode& product = l_.expr().body[static_cast<size_t>(l_.expr().element)];
    for (size_t i = 0; i < sums.size(); ++i) {
      stand_at(row, static_cast<int32_t>(i));
      Point point(l_);
      const ValueId x = point.value(product.operands[0]), y = point.value(product.operands[1]);
      sums[i] = is_float(accumulator_) ? b_.scalar(ScalarOp::fma, accumulator_, {{x, y, sums[i]}})
                                       : b_.add(b_.mul(x, y), sums[i]);
    }
    return sums;
  }

  const roller::Plan& plan_;
  Lowering& l_;
  Builder& b_;
  std::vector<AxisRun> reduction_;
  std::vector<TaskRange> ranges_;
  DType accumulator_ = DType::f32;
  int32_t vector_ = -1, row_ = -1;
};

}  // namespace

Result<IntExpr> emit_chain(Lowering& lowering, const roller::Plan& plan) { return Chain(lowering, plan).run(); }

}  // namespace quartet::kernel
