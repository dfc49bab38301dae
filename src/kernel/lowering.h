// What every kind of lowering shares: a fused tensor expression, the loops that stand for its axes, and the kernel
// being built. Internal to the folder.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernel/builder.h"
#include "kernel/lower.h"
#include "tile/fuse.h"

namespace quartet::kernel {

// Consecutive axes of the expression that one loop runs over, in row-major order.
struct AxisRun {
  std::vector<int32_t> axes;
  IntExpr extent;    // their product
  Symbol loop = -1;  // the loop's variable in index expressions
};

class Lowering {
 public:
  Lowering(const tile::TileGraph& graph, const tile::Fused& fused, std::string name);

  Builder& builder() { return builder_; }
  const tile::TensorExpr& expr() const { return fused_.expr; }
  const tile::TileGraph& graph() const { return graph_; }
  const graph::TensorType& type(tile::TensorId tensor) const {
    return graph_.tensors[static_cast<size_t>(tensor)].type;
  }

  // ---- Loops. A loop is a symbol with an extent; what it is at run time is said when the loop is opened: a value, or
  // an expression over other loops. ----
  Symbol add_loop(const IntExpr& extent);
  void set_value(Symbol loop, ValueId value) { loop_of(loop).value = value, loop_of(loop).parts = IntExpr::invalid(); }
  void set_parts(Symbol loop, IntExpr parts) { loop_of(loop).parts = std::move(parts); }
  // A run of axes with a loop of its own. Every expression that `at` is given later is in terms of it.
  const AxisRun& add_run(std::vector<int32_t> axes);
  const std::vector<AxisRun>& runs() const { return runs_; }

  // An expression over the axes in terms of the runs' loops. Where replacing a run by its last axis alone does not keep
  // the value, the axes are divided out of the loop's variable.
  IntExpr at(const IntExpr& over_axes) const;
  // The flat offset of a read, in terms of loops.
  IntExpr offset(int32_t read) const;
  IntExpr simplify(const IntExpr& e) const { return e.simplify(ranges_); }
  bool nonnegative(const IntExpr& e) const { return e.provably_nonnegative(ranges_); }

  // ---- Values ----
  // i64 of an expression over dims and loops; `body_value` gives the body nodes it mentions, if it may.
  ValueId index(const IntExpr& e, const std::function<ValueId(int32_t)>& body_value = {});
  ValueId dim(Symbol symbol);

  // ---- Buffers ----
  BufferId add_tensor(tile::TensorId tensor, Scope scope);
  BufferId add_panels(tile::TensorId tensor, Scope scope, const IntExpr& elements);
  BufferId add_scratch(DType dtype, IntExpr elements);
  // Arguments for every tensor the body nodes in `roots` read, and for `more` reads.
  void add_inputs(const std::vector<int32_t>& roots, const std::vector<int32_t>& more);
  void add_outputs();
  BufferId tensor_buffer(tile::TensorId tensor) const;
  BufferId output_buffer(size_t output) const { return outputs_[output]; }
  tile::TensorId read_tensor(int32_t read) const;

  // Body nodes that `roots` depend on, by number.
  std::vector<bool> needed(const std::vector<int32_t>& roots) const;

  Result<Lowered> finish(const IntExpr& tasks);

 private:
  struct Loop {
    IntExpr extent;
    ValueId value = kNone;
    IntExpr parts = IntExpr::invalid();
  };
  Loop& loop_of(Symbol loop) { return loops_[static_cast<size_t>(loop - first_loop_)]; }
  bool is_loop(Symbol s) const { return is_axis_symbol(s) && s >= first_loop_; }
  IntExpr collapse(const IntExpr& e, const AxisRun& run) const;
  int32_t dim_number(Symbol symbol);
  IntExpr over_kernel_dims(const IntExpr& e);
  BufferId add_argument(Argument argument, Buffer buffer);

  const tile::TileGraph& graph_;
  const tile::Fused& fused_;
  Builder builder_;
  Symbol first_loop_;
  std::vector<Loop> loops_;
  std::vector<AxisRun> runs_;
  IntExpr::RangeOf ranges_;
  std::vector<Symbol> dims_;
  std::vector<Argument> arguments_;
  std::map<tile::TensorId, BufferId> tensors_;
  std::vector<BufferId> outputs_;
};

// The body of the expression at the point where the loops stand. Values may be used in the region in which they were
// first asked for, and inside it.
class Point {
 public:
  explicit Point(Lowering& lowering) : lowering_(lowering), values_(lowering.expr().body.size(), kNone) {}

  void set_reduced(Ids reduced) { reduced_ = std::move(reduced); }
  ValueId value(int32_t node);
  // Stores every output of the expression at element `offset` of the domain.
  void store_outputs();

 private:
  ValueId emit(const tile::BodyNode& node);
  ValueId read(const tile::BodyNode& node);
  ValueId guard(const tile::Read& read);
  ValueId index(const IntExpr& e);

  Lowering& lowering_;
  Ids values_;  // by body node
  Ids reduced_;
};

// The tasks of a kernel: a row-major grid of tiles of loops.
struct TaskAxis {
  IntExpr extent;
  int64_t tile = 0;  // elements; 0: the whole extent
};
struct TaskRange {
  ValueId tile = kNone;            // number of the tile along the axis
  ValueId lo = kNone, hi = kNone;  // elements
  ValueId count = kNone;           // hi - lo; a constant where every tile is whole
};
// Number of tasks; none if an extent is 0.
IntExpr task_count(const std::vector<TaskAxis>& axes);
// Where the current task stands.
std::vector<TaskRange> task_ranges(Lowering& lowering, const std::vector<TaskAxis>& axes);

Result<Lowered> lower_map(const tile::TileGraph& graph, const tile::Fused& fused, const roller::Plan& plan);
Result<Lowered> lower_reduce(const tile::TileGraph& graph, const tile::Fused& fused, const roller::Plan& plan, Isa isa);
Result<Lowered> lower_chain(const tile::TileGraph& graph, const tile::Fused& fused, const roller::Plan& plan);
Result<Lowered> lower_scatter(const tile::TileGraph& graph, const tile::Fused& fused, const roller::Plan& plan);
Result<LoweredGroup> lower_contract(const tile::TileGraph& graph, const tile::Fused& fused, const roller::Plan& plan,
                                    const CpuModel& device);

// Shared by map and reduce: opens the loops of the task over the plan's merged axes, the vector axis innermost, and
// calls `body` there. Gives the task count.
IntExpr spatial_loops(Lowering& lowering, const roller::Plan& plan, const std::function<void()>& body);
// Checks what the lowerings rely on of a plan's runs; adds them to the lowering.
Status add_spatial_runs(Lowering& lowering, const roller::Plan& plan);
// The same for the reduction axes; at least one run, which may be of no axis.
Status add_reduction_runs(Lowering& lowering, const roller::Plan& plan);

}  // namespace quartet::kernel
