#include "kernel/contraction.h"

namespace quartet::kernel {

Result<ContractionLoops> contraction_loops(Lowering& lowering, const roller::Plan& plan) {
  const tile::TensorExpr& expr = lowering.expr();
  if (plan.merged.size() < 2 || plan.rows < 1 || plan.columns < 1)
    return make_error(Code::internal, "the plan of '%s' has no rows and columns", expr.name.c_str());
  QUARTET_TRY(add_spatial_runs(lowering, plan));
  const size_t first = lowering.runs().size();
  QUARTET_TRY(add_reduction_runs(lowering, plan));
  const std::vector<AxisRun>& runs = lowering.runs();
  const size_t outer = plan.merged.size() - 2;
  ContractionLoops loops;
  for (size_t i = 0; i < outer; ++i) {
    loops.outer.push_back(runs[i].loop);
    loops.outer_extents.push_back(runs[i].extent);
  }
  loops.row = runs[outer].loop, loops.rows = runs[outer].extent;
  loops.column = runs[outer + 1].loop, loops.columns = runs[outer + 1].extent;
  loops.depth = IntExpr(1);
  for (size_t i = first; i < runs.size(); ++i) {
    loops.k_number = loops.k_number * runs[i].extent + IntExpr::symbol(runs[i].loop);
    loops.depth *= runs[i].extent;
    if (i + 1 < runs.size()) loops.around.push_back(runs[i]);
  }
  loops.k = runs.back().loop, loops.inner_depth = runs.back().extent;
  return loops;
}

PanelLayout panel_layout(Lowering& lowering, const ContractionLoops& loops, const roller::Plan& plan) {
  PanelLayout layout;
  layout.columns = plan.columns;
  layout.panels = ceil_div(loops.columns, IntExpr(plan.columns));
  layout.elements = layout.panels * loops.depth * IntExpr(plan.columns);
  const IntExpr offset = lowering.offset(lowering.expr().contraction.read_b);
  for (size_t i = 0; i < loops.outer.size(); ++i) {
    if (!offset.contains(loops.outer[i])) continue;
    layout.outer.push_back(i);
    layout.elements *= loops.outer_extents[i];
  }
  return layout;
}

void around_k(Lowering& l, const ContractionLoops& loops, const std::function<void()>& body) {
  const std::function<void(size_t)> open = [&](size_t i) {
    if (i == loops.around.size()) return body();
    l.builder().loop(LoopKind::serial, l.builder().i64(0), l.index(loops.around[i].extent), 1, Runs::maybe,
                     [&](ValueId k) {
                       l.set_value(loops.around[i].loop, k);
                       open(i + 1);
                     });
  };
  open(0);
}

RowSplit balanced_rows(int64_t count, int64_t most) {
  RowSplit split;
  if (count <= 0) return split;
  split.tiles = (count + most - 1) / most;
  split.height = count / split.tiles;
  split.tall = count % split.tiles;
  return split;
}

namespace {

// One panel at one outer point: elements (k, j) for j in [0, columns), 0 beyond the last column.
void pack_panel(Lowering& l, const ContractionLoops& loops, const PanelLayout& layout, BufferId from, BufferId to,
                const IntExpr& panel_base, ValueId panel_column) {
  Builder& b = l.builder();
  const int32_t read = l.expr().contraction.read_b;
  const IntExpr offset = l.offset(read);
  const auto along_k = offset.linear_in(loops.k);
  const bool k_contiguous = along_k && along_k->coefficient.is(1);
  const DType dtype = b.buffer(from).dtype;
  const ValueId zero = b.constant(dtype, 0);
  const ValueId columns = l.index(loops.columns);
  const bool whole = floor_mod(loops.columns, IntExpr(layout.columns)).is(0);
  const Symbol j_loop = l.add_loop(IntExpr(layout.columns));
  const IntExpr target = panel_base + loops.k_number * IntExpr(layout.columns) + IntExpr::symbol(j_loop);
  const auto element = [&](ValueId k, ValueId j) {
    l.set_value(loops.k, k);
    l.set_value(j_loop, j);
    const ValueId column = b.add(panel_column, j);
    l.set_value(loops.column, column);
    const ValueId guard = whole ? kNone : b.less(column, columns);
    b.store(to, l.index(target), b.load(from, l.index(offset), guard, zero));
  };
  const ValueId depth = l.index(loops.inner_depth), width = b.i64(layout.columns);
  // Lanes run where the source is contiguous.
  around_k(l, loops, [&] {
    if (k_contiguous) {
      b.loop(LoopKind::serial, b.i64(0), width, 1, Runs::always, [&](ValueId j) {
        b.loop(LoopKind::vector, b.i64(0), depth, 1, Runs::maybe, [&](ValueId k) { element(k, j); });
      });
    } else {
      b.loop(LoopKind::serial, b.i64(0), depth, 1, Runs::maybe, [&](ValueId k) {
        b.loop(LoopKind::vector, b.i64(0), width, 1, Runs::always, [&](ValueId j) { element(k, j); });
      });
    }
  });
}

}  // namespace

Result<Packing> lower_packing(const tile::TileGraph& graph, const tile::Fused& fused, const roller::Plan& plan) {
  Lowering l(graph, fused, "pack");
  QUARTET_ASSIGN(const ContractionLoops loops, contraction_loops(l, plan));
  const PanelLayout layout = panel_layout(l, loops, plan);
  const tile::TensorId tensor = l.read_tensor(fused.expr.contraction.read_b);
  const BufferId from = l.add_tensor(tensor, Scope::argument_in);
  const BufferId to = l.add_panels(tensor, Scope::argument_out, layout.elements);
  std::vector<TaskAxis> axes;
  axes.reserve(layout.outer.size() + 1);
  for (const size_t i : layout.outer) axes.push_back({loops.outer_extents[i], 1});
  axes.push_back({layout.panels, 1});
  const std::vector<TaskRange> ranges = task_ranges(l, axes);
  for (size_t i = 0; i < layout.outer.size(); ++i) l.set_value(loops.outer[layout.outer[i]], ranges[i].lo);
  // Tasks are the panels in order.
  const Symbol panel = l.add_loop(task_count(axes));
  l.set_value(panel, l.builder().task());
  const IntExpr base = IntExpr::symbol(panel) * loops.depth * IntExpr(layout.columns);
  const ValueId column = l.builder().mul(ranges.back().lo, l.builder().i64(layout.columns));
  pack_panel(l, loops, layout, from, to, base, column);
  Packing packing;
  packing.prepare = plan.b == roller::OperandForm::prepared;
  packing.bytes = layout.elements * IntExpr(static_cast<int64_t>(size_of(l.type(tensor).dtype)));
  QUARTET_ASSIGN(packing.lowered, l.finish(task_count(axes)));
  return packing;
}

}  // namespace quartet::kernel
