// Scatter kernels: a task copies its tile of the start, then walks the updates in order and applies those for its rows.
// So the order in which updates of one row meet is theirs, whatever the tiles.
#include "kernel/lowering.h"

namespace quartet::kernel {
namespace {

class Scattering {
 public:
  Scattering(Lowering& lowering, const roller::Plan& plan) : l_(lowering), b_(lowering.builder()), plan_(plan) {}

  // The number of tasks.
  IntExpr run() {
    const AxisRun updates = l_.add_run({2});
    const size_t count = plan_.merged.size();
    std::vector<TaskAxis> axes;
    for (size_t i = 0; i < count; ++i) axes.push_back({l_.runs()[i].extent, plan_.task_tile[i]});
    const std::vector<TaskRange> ranges = task_ranges(l_, axes);
    for (size_t i = 0; i < count; ++i) (plan_.merged[i][0] == 0 ? rows_ : columns_) = static_cast<int32_t>(i);
    over(rows_, ranges, [&] { over(columns_, ranges, [&] { copy(); }); });
    b_.loop(LoopKind::serial, b_.i64(0), l_.index(updates.extent), 1, Runs::maybe, [&](ValueId k) {
      l_.set_value(updates.loop, k);
      const ValueId row = Point(l_).value(l_.expr().scatter.row);
      b_.branch(
          mine(row, ranges),
          [&] {
            if (rows_ >= 0) l_.set_value(loop(rows_), row);
            over(columns_, ranges, [&] { update(); });
            return Ids();
          },
          [] { return Ids(); });
    });
    return task_count(axes);
  }

 private:
  Symbol loop(int32_t run) const { return l_.runs()[static_cast<size_t>(run)].loop; }

  // A loop over a task's part of a run, the last run along lanes; once if there is no such run.
  void over(int32_t run, const std::vector<TaskRange>& ranges, const std::function<void()>& body) {
    if (run < 0) return body();
    const TaskRange& range = ranges[static_cast<size_t>(run)];
    const LoopKind kind = run == plan_.vector_axis ? LoopKind::vector : LoopKind::serial;
    b_.loop(kind, range.lo, range.hi, 1, Runs::maybe, [&](ValueId i) {
      l_.set_value(loop(run), i);
      body();
    });
  }

  ValueId mine(ValueId row, const std::vector<TaskRange>& ranges) {
    const ValueId zero = b_.i64(0);
    if (rows_ < 0) return b_.binary(ScalarOp::eq, row, zero);
    const TaskRange& range = ranges[static_cast<size_t>(rows_)];
    return b_.scalar(ScalarOp::bit_and, DType::boolean,
                     {{b_.binary(ScalarOp::le, range.lo, row), b_.less(row, range.hi)}});
  }

  ValueId place() { return l_.index(l_.at(tile::linear_point(l_.expr()))); }

  void copy() { b_.store(l_.output_buffer(0), place(), Point(l_).value(l_.expr().scatter.start)); }

  void update() {
    ValueId value = Point(l_).value(l_.expr().element);
    const ValueId at = place();
    if (const auto& combine = l_.expr().scatter.combine)
      value = b_.binary(*combine, b_.load(l_.output_buffer(0), at), value);
    b_.store(l_.output_buffer(0), at, value);
  }

  Lowering& l_;
  Builder& b_;
  const roller::Plan& plan_;
  int32_t rows_ = -1, columns_ = -1;
};

}  // namespace

Result<Lowered> lower_scatter(const tile::TileGraph& graph, const tile::Fused& fused, const roller::Plan& plan) {
  Lowering lowering(graph, fused, "scatter");
  QUARTET_TRY(add_spatial_runs(lowering, plan));
  const tile::TensorExpr& expr = fused.expr;
  if (expr.outputs.size() != 1 || expr.body[static_cast<size_t>(expr.outputs[0])].kind != tile::BodyNode::Kind::reduced)
    return make_error(Code::internal, "something is computed after the scatter '%s'", expr.name.c_str());
  lowering.add_inputs({expr.scatter.start, expr.scatter.row, expr.element}, {});
  lowering.add_outputs();
  const IntExpr tasks = Scattering(lowering, plan).run();
  return lowering.finish(tasks);
}

}  // namespace quartet::kernel
