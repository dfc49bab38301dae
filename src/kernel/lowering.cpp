#include "kernel/lowering.h"

#include <algorithm>

namespace quartet::kernel {

using tile::BodyNode;
using Kind = BodyNode::Kind;

Lowering::Lowering(const tile::TileGraph& graph, const tile::Fused& fused, std::string name)
    : graph_(graph),
      fused_(fused),
      own_(std::make_unique<Emission>(std::move(name))),
      emission_(*own_),
      first_loop_(axis_symbol(static_cast<int>(fused.expr.axes.size()))) {
  set_ranges();
}

Lowering::Lowering(const tile::TileGraph& graph, const tile::Fused& fused, Emission& emission)
    : graph_(graph),
      fused_(fused),
      emission_(emission),
      first_loop_(axis_symbol(static_cast<int>(fused.expr.axes.size()))) {
  set_ranges();
  if (emission_.row_lo == kNone) return;
  row_lo_ = add_loop(emission_.rows);
  set_value(row_lo_, emission_.row_lo);
}

void Lowering::set_ranges() {
  ranges_ = [this](Symbol s) -> IntExpr::Range {
    if (is_dim_symbol(s)) {
      if (static_cast<size_t>(s) >= graph_.symbols.size()) return {};
      return {IntExpr(graph_.symbols[static_cast<size_t>(s)].lower), graph_.symbols[static_cast<size_t>(s)].upper};
    }
    if (!is_axis_symbol(s)) return {};
    if (is_loop(s)) return {IntExpr(0), loops_[static_cast<size_t>(s - first_loop_)].extent - IntExpr(1)};
    return {IntExpr(0), expr().axes[static_cast<size_t>(s - kAxisSymbols)] - IntExpr(1)};
  };
}

// ---- Loops ----

Symbol Lowering::add_loop(const IntExpr& extent) {
  loops_.push_back({extent, kNone, IntExpr::invalid()});
  return first_loop_ + static_cast<Symbol>(loops_.size()) - 1;
}

const AxisRun& Lowering::add_run(std::vector<int32_t> axes) {
  AxisRun run;
  run.extent = IntExpr(1);
  for (const int32_t axis : axes) run.extent *= expr().axes[static_cast<size_t>(axis)];
  run.axes = std::move(axes);
  run.loop = add_loop(run.extent);
  runs_.push_back(std::move(run));
  return runs_.back();
}

IntExpr Lowering::collapse(const IntExpr& e, const AxisRun& run) const {
  const auto number = [](Symbol s) { return static_cast<int32_t>(s - kAxisSymbols); };
  const auto mine = [&](Symbol s) {
    return is_axis_symbol(s) && std::find(run.axes.begin(), run.axes.end(), number(s)) != run.axes.end();
  };
  if (!e.contains_any(mine)) return e;
  const IntExpr loop = IntExpr::symbol(run.loop);
  IntExpr last_only = e.substitute([&](Symbol s) -> std::optional<IntExpr> {
    if (!mine(s)) return std::nullopt;
    return number(s) == run.axes.back() ? loop : IntExpr(0);
  });
  if (run.axes.size() == 1) return last_only;
  // The point's row-major number in the run, and back.
  IntExpr linear, stride(1);
  std::map<int32_t, IntExpr> divided;
  for (size_t i = run.axes.size(); i-- > 0;) {
    const int32_t axis = run.axes[i];
    // An axis without elements has no points to tell apart.
    const IntExpr& size = expr().axes[static_cast<size_t>(axis)];
    const IntExpr extent = size.is(0) ? IntExpr(1) : size;
    linear += IntExpr::axis(axis) * stride;
    const IntExpr quotient = floor_div(loop, stride);
    divided[axis] = i == 0 ? quotient : floor_mod(quotient, extent);
    stride *= extent;
  }
  const IntExpr back =
      last_only.substitute([&](Symbol s) { return s == run.loop ? std::optional(linear) : std::nullopt; });
  if (back == e || back.simplify(ranges_) == e.simplify(ranges_)) return last_only;
  return e.substitute([&](Symbol s) { return mine(s) ? std::optional(divided[number(s)]) : std::nullopt; });
}

IntExpr Lowering::at(const IntExpr& over_axes) const {
  IntExpr e = over_axes;
  for (const AxisRun& run : runs_) e = collapse(e, run);
  // Axes in no run have extent 1.
  e = e.substitute(
      [&](Symbol s) { return is_axis_symbol(s) && !is_loop(s) ? std::optional(IntExpr(0)) : std::nullopt; });
  return e.simplify(ranges_);
}

IntExpr Lowering::in_task(tile::TensorId tensor, IntExpr offset) const {
  const auto found = emission_.locals.find(tensor);
  if (found == emission_.locals.end()) return offset;
  return offset - IntExpr::symbol(row_lo_) * found->second.inner;
}

IntExpr Lowering::offset(int32_t read) const {
  const tile::TensorId tensor = read_tensor(read);
  return in_task(tensor, at(tile::flat_offset(expr(), expr().reads[static_cast<size_t>(read)], type(tensor))));
}

// ---- Values ----

int32_t Lowering::dim_number(Symbol symbol) {
  std::vector<Symbol>& dims = emission_.dims;
  const auto found = std::find(dims.begin(), dims.end(), symbol);
  if (found != dims.end()) return static_cast<int32_t>(found - dims.begin());
  dims.push_back(symbol);
  return static_cast<int32_t>(dims.size()) - 1;
}

ValueId Lowering::dim(Symbol symbol) { return builder().dim(dim_number(symbol)); }

IntExpr Lowering::over_kernel_dims(const IntExpr& e) {
  return e.substitute([this](Symbol s) { return std::optional(IntExpr::symbol(dim_number(s))); });
}

ValueId Lowering::index(const IntExpr& e, const std::function<ValueId(int32_t)>& body_value) {
  const auto parts = [this](Symbol s) -> std::optional<IntExpr> {
    if (!is_loop(s) || !loop_of(s).parts.is_valid()) return std::nullopt;
    return loop_of(s).parts;
  };
  return builder().index(e.substitute(parts), [&](Symbol s) -> ValueId {
    if (is_dim_symbol(s)) return dim(s);
    if (is_value_symbol(s)) return body_value ? body_value(s - kValueSymbols) : kNone;
    return is_loop(s) ? loop_of(s).value : kNone;
  });
}

// ---- Buffers ----

BufferId Lowering::add_argument(Argument argument, Buffer buffer) {
  buffer.elements = over_kernel_dims(buffer.elements);
  emission_.arguments.push_back(argument);
  return builder().buffer(std::move(buffer));
}

BufferId Lowering::add_tensor(tile::TensorId tensor, Scope scope) {
  if (const auto found = emission_.tensors.find(tensor); found != emission_.tensors.end()) return found->second;
  const bool in = scope == Scope::argument_in;
  const std::string name = (in ? "in" : "out") + std::to_string(emission_.arguments.size());
  // The host's tensors stand at any element-aligned address, and one kernel serves them and the program's own.
  const DType dtype = type(tensor).dtype;
  const BufferId id = add_argument({Argument::Kind::tensor, tensor},
                                   {name, dtype, scope, type(tensor).elements(), static_cast<int32_t>(size_of(dtype))});
  emission_.tensors[tensor] = id;
  return id;
}

BufferId Lowering::add_panels(tile::TensorId tensor, Scope scope, const IntExpr& elements) {
  return add_argument({Argument::Kind::panels, tensor}, {"panels", type(tensor).dtype, scope, elements, 64});
}

BufferId Lowering::add_scratch(DType dtype, IntExpr elements) {
  return builder().buffer({"scratch", dtype, Scope::task, std::move(elements), 64});
}

std::vector<bool> Lowering::needed(const std::vector<int32_t>& roots) const {
  std::vector<bool> mark(expr().body.size(), false);
  for (const int32_t root : roots)
    if (root >= 0) mark[static_cast<size_t>(root)] = true;
  const auto mark_values = [&](const IntExpr& e) {
    for (const Symbol s : e.symbols())
      if (is_value_symbol(s)) mark[static_cast<size_t>(s - kValueSymbols)] = true;
  };
  for (size_t i = mark.size(); i-- > 0;) {
    if (!mark[i]) continue;
    const BodyNode& node = expr().body[i];
    for (const int32_t operand : node.operands) mark[static_cast<size_t>(operand)] = true;
    if (node.kind != Kind::read) continue;
    const tile::Read& read = expr().reads[static_cast<size_t>(node.read)];
    if (read.fill >= 0) mark[static_cast<size_t>(read.fill)] = true;
    for (const IntExpr& e : read.index) mark_values(e);
    for (const tile::Guard& guard : read.guards) mark_values(guard.value), mark_values(guard.extent);
  }
  return mark;
}

tile::TensorId Lowering::read_tensor(int32_t read) const {
  return fused_.inputs[static_cast<size_t>(expr().reads[static_cast<size_t>(read)].operand)];
}

void Lowering::add_inputs(const std::vector<int32_t>& roots, const std::vector<int32_t>& more) {
  const std::vector<bool> mark = needed(roots);
  std::vector<bool> used(fused_.inputs.size(), false);
  const auto use = [&](int32_t read) {
    used[static_cast<size_t>(expr().reads[static_cast<size_t>(read)].operand)] = true;
  };
  for (size_t i = 0; i < mark.size(); ++i)
    if (mark[i] && expr().body[i].kind == Kind::read) use(expr().body[i].read);
  for (const int32_t read : more) use(read);
  for (size_t i = 0; i < used.size(); ++i)
    if (used[i] && emission_.locals.count(fused_.inputs[i]) == 0) add_tensor(fused_.inputs[i], Scope::argument_in);
}

void Lowering::add_outputs() {
  for (const tile::TensorId tensor : fused_.outputs)
    if (emission_.inside.count(tensor) == 0) add_tensor(tensor, Scope::argument_out);
}

BufferId Lowering::tensor_buffer(tile::TensorId tensor) const {
  if (const auto local = emission_.locals.find(tensor); local != emission_.locals.end()) return local->second.buffer;
  const auto found = emission_.tensors.find(tensor);
  return found == emission_.tensors.end() ? kNone : found->second;
}

void Lowering::store(const IntExpr& at, const Ids& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    const tile::TensorId tensor = fused_.outputs[i];
    if (const auto local = emission_.locals.find(tensor); local != emission_.locals.end())
      builder().store(local->second.buffer, index(in_task(tensor, at)), values[i]);
    if (emission_.inside.count(tensor) == 0) builder().store(emission_.tensors.at(tensor), index(at), values[i]);
  }
}

Result<Lowered> Lowering::finish(const IntExpr& tasks) {
  const IntExpr count = over_kernel_dims(tasks);
  std::vector<IntExpr> bounds;
  for (const Symbol s : emission_.dims) {
    const auto& upper = graph_.symbols[static_cast<size_t>(s)].upper;
    bounds.push_back(upper && upper->is_constant() ? *upper : IntExpr::invalid());
  }
  builder().set_dims(static_cast<int32_t>(emission_.dims.size()), std::move(bounds));
  auto kernel = builder().finish(count);
  if (!kernel.ok()) return kernel.status().with_prefix("lowering '" + expr().name + "': ");
  Lowered lowered;
  lowered.kernel = kernel.take();
  lowered.arguments = std::move(emission_.arguments);
  lowered.dims = std::move(emission_.dims);
  return lowered;
}

// ---- Tasks ----

IntExpr task_count(const std::vector<TaskAxis>& axes) {
  IntExpr count(1);
  for (const TaskAxis& axis : axes)
    count *= axis.tile > 0 ? ceil_div(axis.extent, IntExpr(axis.tile)) : min(axis.extent, IntExpr(1));
  return count;
}

std::vector<TaskRange> task_ranges(Lowering& lowering, const std::vector<TaskAxis>& axes) {
  Builder& b = lowering.builder();
  std::vector<TaskRange> ranges(axes.size());
  if (lowering.rows() != nullptr) {
    for (size_t i = 0; i < axes.size(); ++i) {
      const ValueId extent = lowering.index(axes[i].extent);
      ranges[i] = i < lowering.rows()->size() ? (*lowering.rows())[i] : TaskRange{b.i64(0), b.i64(0), extent, extent};
    }
    return ranges;
  }
  ValueId rest = b.task();
  size_t first = 0;  // outermost axis of more than one tile: what is left of the number is its tile
  const auto single = [&](size_t i) {
    const auto extent = axes[i].extent.constant();
    return axes[i].tile == 0 || (extent && *extent <= axes[i].tile);
  };
  while (first < axes.size() && single(first)) ++first;
  for (size_t i = axes.size(); i-- > 0;) {
    TaskRange& range = ranges[i];
    const ValueId extent = lowering.index(axes[i].extent);
    if (single(i)) {
      range = {b.i64(0), b.i64(0), extent, extent};
      continue;
    }
    range.tile = rest;
    if (i != first) {
      const ValueId count = lowering.index(ceil_div(axes[i].extent, IntExpr(axes[i].tile)));
      range.tile = b.binary(ScalarOp::floor_mod, rest, count);
      rest = b.binary(ScalarOp::floor_div, rest, count);
    }
    range.lo = b.mul(range.tile, b.i64(axes[i].tile));
    range.hi = b.add(range.lo, b.i64(axes[i].tile));
    const bool whole = floor_mod(axes[i].extent, IntExpr(axes[i].tile)).is(0);
    if (!whole) range.hi = b.min(range.hi, extent);
    range.count = whole ? b.i64(axes[i].tile) : b.sub(range.hi, range.lo);
  }
  return ranges;
}

namespace {

// Adds the runs, whose axes are in [begin, end), once each; what they leave out has extent 1.
Status add_runs(Lowering& lowering, const std::vector<std::vector<int32_t>>& runs, int32_t begin, int32_t end) {
  const tile::TensorExpr& e = lowering.expr();
  std::vector<bool> covered(e.axes.size(), false);
  for (const auto& run : runs) {
    for (const int32_t axis : run) {
      if (axis < begin || axis >= end || covered[static_cast<size_t>(axis)])
        return make_error(Code::internal, "the plan of '%s' merges axis %d wrongly", e.name.c_str(), axis);
      covered[static_cast<size_t>(axis)] = true;
    }
    lowering.add_run(run);
  }
  for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
    if (!covered[i] && !e.axes[i].is(1))
      return make_error(Code::internal, "the plan of '%s' leaves out axis %zu", e.name.c_str(), i);
  return {};
}

}  // namespace

Status add_spatial_runs(Lowering& lowering, const roller::Plan& plan) {
  return add_runs(lowering, plan.merged, 0, lowering.expr().spatial);
}

Status add_reduction_runs(Lowering& lowering, const roller::Plan& plan) {
  QUARTET_TRY(
      add_runs(lowering, plan.reduction, lowering.expr().spatial, static_cast<int32_t>(lowering.expr().axes.size())));
  if (plan.reduction.empty()) lowering.add_run({});
  return {};
}

IntExpr spatial_loops(Lowering& lowering, const roller::Plan& plan, const std::function<void()>& body) {
  Builder& b = lowering.builder();
  const size_t count = plan.merged.size();
  std::vector<TaskAxis> axes;
  axes.reserve(count);
  for (size_t i = 0; i < count; ++i)
    axes.push_back({lowering.runs()[i].extent, i < plan.task_tile.size() ? plan.task_tile[i] : 0});
  const std::vector<TaskRange> ranges = task_ranges(lowering, axes);
  std::vector<size_t> order;
  for (size_t i = 0; i < count; ++i)
    if (static_cast<int32_t>(i) != plan.vector_axis) order.push_back(i);
  const bool vector = plan.vector_axis >= 0 && static_cast<size_t>(plan.vector_axis) < count;
  if (vector) order.push_back(static_cast<size_t>(plan.vector_axis));
  const std::function<void(size_t)> open = [&](size_t level) {
    if (level == order.size()) return body();
    const size_t axis = order[level];
    const LoopKind kind = vector && level + 1 == order.size() ? LoopKind::vector : LoopKind::serial;
    b.loop(kind, ranges[axis].lo, ranges[axis].hi, 1, Runs::always, [&](ValueId i) {
      lowering.set_value(lowering.runs()[axis].loop, i);
      open(level + 1);
    });
  };
  open(0);
  return task_count(axes);
}

}  // namespace quartet::kernel
