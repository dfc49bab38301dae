// What every kind of lowering shares: a fused tensor expression, the loops that stand for its axes, and the kernel
// being built. Internal to the folder.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
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
// The kernel being built. One expression fills it, or the phases of a group one after the other.
struct Emission {
  explicit Emission(std::string name) : builder(std::move(name)) {}

  // A tensor of which each task holds the rows it works on: element e of the tensor is element e - row_lo * inner of
  // the buffer.
  struct Local {
    BufferId buffer = kNone;
    IntExpr inner;  // elements of a row
  };

  Builder builder;
  std::vector<Symbol> dims;
  std::vector<Argument> arguments;
  std::map<tile::TensorId, BufferId> tensors;
  std::map<tile::TensorId, Local> locals;
  std::set<tile::TensorId> inside;  // made here, and nothing outside the kernel reads them
  IntExpr rows;                     // how many there are in all
  ValueId row_lo = kNone;           // the task's first
};

class Lowering {
 public:
  Lowering(const tile::TileGraph& graph, const tile::Fused& fused, std::string name);
  // A phase of a larger kernel, which outlives it.
  Lowering(const tile::TileGraph& graph, const tile::Fused& fused, Emission& emission);

  Builder& builder() { return emission_.builder; }
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
  BufferId output_buffer(size_t output) const { return tensor_buffer(fused_.outputs[output]); }
  // Stores values of the outputs at element `at` of the domain, wherever each output lives.
  void store(const IntExpr& at, const Ids& values);
  tile::TensorId read_tensor(int32_t read) const;

  // Body nodes that `roots` depend on, by number.
  std::vector<bool> needed(const std::vector<int32_t>& roots) const;

  // ---- Tasks ----
  // For a phase: where the task stands along the first task axes; along the others it covers everything.
  void set_rows(std::vector<TaskRange> rows) { rows_ = std::move(rows); }
  const std::vector<TaskRange>* rows() const { return rows_ ? &*rows_ : nullptr; }

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
  void set_ranges();
  int32_t dim_number(Symbol symbol);
  IntExpr over_kernel_dims(const IntExpr& e);
  BufferId add_argument(Argument argument, Buffer buffer);
  // An offset in a tensor as an offset in the task's part of it, if that is what the task holds.
  IntExpr in_task(tile::TensorId tensor, IntExpr offset) const;

  const tile::TileGraph& graph_;
  const tile::Fused& fused_;
  std::unique_ptr<Emission> own_;
  Emission& emission_;
  Symbol first_loop_;
  std::vector<Loop> loops_;
  std::vector<AxisRun> runs_;
  IntExpr::RangeOf ranges_;
  std::optional<std::vector<TaskRange>> rows_;
  Symbol row_lo_ = -1;  // of a phase: the loop symbol that stands at the task's first row
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

// Number of tasks; none if an extent is 0.
IntExpr task_count(const std::vector<TaskAxis>& axes);
// Where the current task stands.
std::vector<TaskRange> task_ranges(Lowering& lowering, const std::vector<TaskAxis>& axes);

// What a group's kernel does, each giving the number of its tasks.
Result<IntExpr> emit_map(Lowering& lowering, const roller::Plan& plan);
Result<IntExpr> emit_reduce(Lowering& lowering, const roller::Plan& plan, Isa isa);
Result<IntExpr> emit_chain(Lowering& lowering, const roller::Plan& plan);
Result<IntExpr> emit_contract(Lowering& lowering, const roller::Plan& plan, const CpuModel& device);
// The one of these that the plan is for.
Result<IntExpr> emit(Lowering& lowering, const roller::Plan& plan, const CpuModel& device);
// A group of phases; fused[i] is phase i.
Result<LoweredGroup> lower_rows(const tile::TileGraph& graph, const welder::Group& group,
                                const std::vector<tile::Fused>& fused, const CpuModel& device);
Result<Lowered> lower_scatter(const tile::TileGraph& graph, const tile::Fused& fused, const roller::Plan& plan);
// Shared by map and reduce: opens the loops of the task over the plan's merged axes, the vector axis innermost, and
// calls `body` there. Gives the task count.
IntExpr spatial_loops(Lowering& lowering, const roller::Plan& plan, const std::function<void()>& body);
// Checks what the lowerings rely on of a plan's runs; adds them to the lowering.
Status add_spatial_runs(Lowering& lowering, const roller::Plan& plan);
// The same for the reduction axes; at least one run, which may be of no axis.
Status add_reduction_runs(Lowering& lowering, const roller::Plan& plan);

}  // namespace quartet::kernel
