// Contraction kernels: tasks over outer points x row tiles x column tiles; in a task panels of columns are the outer
// loop and register tiles of rows the inner one. Each output element is one chain over k, whatever the tiles.
#include <bit>

#include "kernel/contraction.h"

namespace quartet::kernel {
namespace {

// Operations an element of the epilogue costs, and beyond how many it goes through memory: what stands for each vector
// of a register tile must stay small in code.
constexpr int64_t kTranscendentalCost = 40, kHalfCost = 6, kLongEpilogue = 24;

using roller::OperandForm;
using roller::Plan;

// An operand's offset as base + major * coefficient + each loop over k * its coefficient; base is over the outer loops.
struct Affine {
  IntExpr base, major, k;
  std::vector<IntExpr> around;  // of the loops around k
};

Result<Affine> affine(const Lowering& l, int32_t read, Symbol major, const ContractionLoops& loops, const char* side) {
  const IntExpr offset = l.offset(read);
  Affine result;
  result.base = offset;
  const auto take = [&](Symbol loop) -> std::optional<IntExpr> {
    const auto part = result.base.linear_in(loop);
    if (!part || part->coefficient.contains_any([](Symbol s) { return is_axis_symbol(s); })) return std::nullopt;
    result.base = part->rest;
    return part->coefficient;
  };
  std::vector<Symbol> order = {loops.k, major};
  for (const AxisRun& run : loops.around) order.push_back(run.loop);
  std::vector<IntExpr> found;
  for (const Symbol loop : order) {
    const auto coefficient = take(loop);
    if (!coefficient)
      return make_error(Code::failed_precondition,
                        "the plan of '%s' reads operand %s in place, but its offset %s has no strides",
                        l.expr().name.c_str(), side, offset.to_text().c_str());
    found.push_back(*coefficient);
  }
  result.k = found[0], result.major = found[1];
  result.around.assign(found.begin() + 2, found.end());
  return result;
}

class Contract {
 public:
  Contract(Lowering& lowering, const Plan& plan, const CpuModel& device)
      : plan_(plan), device_(device), l_(lowering), b_(l_.builder()) {}

  Result<IntExpr> run() {
    QUARTET_ASSIGN(loops_, contraction_loops(l_, plan_));
    QUARTET_TRY(check());
    QUARTET_TRY(operands());
    task();
    return task_count(axes_);
  }

 private:
  const tile::TensorExpr& expr() const { return l_.expr(); }
  bool panels() const { return plan_.b != OperandForm::in_place; }
  bool packs_a() const { return plan_.a == OperandForm::packed; }
  ValueId value(const IntExpr& e) { return l_.index(e); }

  Status check() {
    accumulator_ = expr().body[static_cast<size_t>(expr().element)].dtype;
    task_m_ = plan_.task_m, task_n_ = plan_.task_n;
    if (panels() && task_n_ > 0 && task_n_ % plan_.columns != 0)
      return make_error(Code::internal, "the plan of '%s' cuts panels of %d columns into tasks of %lld",
                        expr().name.c_str(), plan_.columns, static_cast<long long>(task_n_));
    if (plan_.a == OperandForm::prepared)
      return make_error(Code::unsupported, "'%s': operand A cannot be prepared", expr().name.c_str());
    if (packs_a() && (!loops_.depth.is_constant() || (task_m_ <= 0 && !loops_.rows.is_constant())))
      return make_error(Code::failed_precondition, "the plan of '%s' packs A into scratch of unknown size",
                        expr().name.c_str());
    for (size_t i = 0; i < loops_.outer.size(); ++i) axes_.push_back({loops_.outer_extents[i], 1});
    axes_.push_back({loops_.rows, task_m_});
    axes_.push_back({loops_.columns, task_n_});
    return {};
  }

  Status operands() {
    const tile::Contraction& c = expr().contraction;
    std::vector<int32_t> reads{c.read_a};
    if (!panels()) reads.push_back(c.read_b);
    l_.add_inputs(expr().outputs, reads);
    a_ = l_.tensor_buffer(l_.read_tensor(c.read_a));
    b_rows_ = Affine{};
    if (panels()) {
      layout_ = panel_layout(l_, loops_, plan_);
      panel_buffer_ = l_.add_panels(l_.read_tensor(c.read_b), Scope::argument_in, layout_.elements);
    } else {
      panel_buffer_ = l_.tensor_buffer(l_.read_tensor(c.read_b));
      QUARTET_ASSIGN(b_rows_, affine(l_, c.read_b, loops_.column, loops_, "B"));
      if (!b_rows_.major.is(1) && !loops_.columns.is(1))
        return make_error(Code::failed_precondition, "the plan of '%s' reads B in place, but its columns are %s apart",
                          expr().name.c_str(), b_rows_.major.to_text().c_str());
    }
    l_.add_outputs();
    if (epilogue_cost() > kLongEpilogue) finished_ = l_.add_scratch(accumulator_, IntExpr(plan_.rows * plan_.columns));
    if (!packs_a()) {
      QUARTET_ASSIGN(a_rows_, affine(l_, c.read_a, loops_.row, loops_, "A"));
      return {};
    }
    // A product of extents too large to count makes an invalid expression, which the verifier refuses.
    IntExpr rows = task_m_ > 0 ? IntExpr(task_m_) : loops_.rows;
    if (loops_.rows.is_constant()) rows = min(rows, loops_.rows);
    const IntExpr panels = ceil_div(rows, IntExpr(plan_.rows));
    scratch_ = l_.add_scratch(b_.buffer(a_).dtype, panels * loops_.depth * IntExpr(plan_.rows));
    return {};
  }

  void task() {
    const std::vector<TaskRange> ranges = task_ranges(l_, axes_);
    for (size_t i = 0; i < loops_.outer.size(); ++i) l_.set_value(loops_.outer[i], ranges[i].lo);
    rows_ = ranges[ranges.size() - 2];
    columns_ = ranges.back();
    k_count_ = value(loops_.inner_depth);
    column_lo_ = l_.add_loop(loops_.columns);
    row_lo_ = l_.add_loop(loops_.rows);
    panel_ = l_.add_loop(IntExpr(1));
    // The number of rows of a task is one constant, or one for all but the last, or known at run time.
    const auto m = loops_.rows.constant();
    if (!m) return rows_at_run_time();
    const int64_t usual = task_m_ > 0 ? std::min(task_m_, *m) : *m;
    const int64_t last = usual > 0 ? (*m - 1) % usual + 1 : 0;
    if (last == usual || *m == 0) return rows_of(usual);
    b_.branch(
        b_.less(rows_.tile, b_.i64(*m / usual)), [&] { return rows_of(usual), Ids{}; },
        [&] { return rows_of(last), Ids{}; });
  }

  // ---- Rows ----

  // `count` rows from rows_.lo, in tiles whose heights are constants.
  void rows_of(int64_t count) {
    const RowSplit split = balanced_rows(count, plan_.rows);
    const int64_t tall_end = split.tall * (split.height + 1);
    const auto each_tile = [&](const std::function<void(ValueId lo, ValueId tile, int32_t height)>& body) {
      tile_loop(0, 0, split.tall, split.height + 1, body);
      tile_loop(tall_end, split.tall, split.tiles - split.tall, split.height, body);
    };
    if (packs_a()) each_tile([&](ValueId lo, ValueId tile, int32_t height) { pack_a(lo, tile, b_.i64(height)); });
    each_panel([&](const Panel& panel) {
      each_tile([&](ValueId lo, ValueId tile, int32_t height) { contract(panel, lo, tile, height); });
    });
  }

  // `tiles` tiles of `height` rows from row `first` of the task on; they are the tiles `number`, `number` + 1 ...
  void tile_loop(int64_t first, int64_t number, int64_t tiles, int64_t height,
                 const std::function<void(ValueId, ValueId, int32_t)>& body) {
    if (tiles <= 0 || height <= 0) return;
    const auto one = [&](ValueId i) {
      const ValueId lo = b_.add(b_.add(rows_.lo, b_.i64(first)), b_.mul(i, b_.i64(height)));
      body(lo, b_.add(b_.i64(number), i), static_cast<int32_t>(height));
    };
    if (tiles == 1) return one(b_.i64(0));
    b_.loop(LoopKind::serial, b_.i64(0), b_.i64(tiles), 1, Runs::always, one);
  }

  // Full tiles, then the rest by tiles of descending powers of two.
  void rows_at_run_time() {
    const ValueId height = b_.i64(plan_.rows);
    const ValueId count = rows_.count;
    const ValueId full = b_.binary(ScalarOp::floor_div, count, height);
    const ValueId rest = b_.sub(count, b_.mul(full, height));
    const ValueId rest_lo = b_.add(rows_.lo, b_.mul(full, height));
    const auto row_of = [&](ValueId tile) { return b_.add(rows_.lo, b_.mul(tile, height)); };
    if (packs_a()) {
      b_.loop(LoopKind::serial, b_.i64(0), full, 1, Runs::maybe,
              [&](ValueId tile) { pack_a(row_of(tile), tile, height); });
      pack_a(rest_lo, full, rest);
    }
    each_panel([&](const Panel& panel) {
      b_.loop(LoopKind::serial, b_.i64(0), full, 1, Runs::maybe,
              [&](ValueId tile) { contract(panel, row_of(tile), tile, plan_.rows); });
      for (int32_t part = static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(plan_.rows)) / 2); part > 0;
           part /= 2) {
        const ValueId has = b_.binary(ScalarOp::ne, b_.binary(ScalarOp::bit_and, rest, b_.i64(part)), b_.i64(0));
        const ValueId before = b_.binary(ScalarOp::bit_and, rest, b_.i64(-2 * static_cast<int64_t>(part)));
        b_.branch(
            has, [&] { return contract(panel, b_.add(rest_lo, before), full, part, before), Ids{}; },
            [] { return Ids{}; });
      }
    });
  }

  // Rows lo .. lo + count - 1 into panel `tile` of the scratch: [K][rows].
  void pack_a(ValueId lo, ValueId tile, ValueId count) {
    const IntExpr offset = l_.offset(expr().contraction.read_a);
    const auto along_k = offset.linear_in(loops_.k);
    const Symbol i_loop = l_.add_loop(IntExpr(plan_.rows)), tile_loop = l_.add_loop(IntExpr(1));
    l_.set_value(tile_loop, tile);
    const IntExpr target =
        (IntExpr::symbol(tile_loop) * loops_.depth + loops_.k_number) * IntExpr(plan_.rows) + IntExpr::symbol(i_loop);
    const auto element = [&](ValueId k, ValueId i) {
      l_.set_value(loops_.k, k);
      l_.set_value(i_loop, i);
      l_.set_value(loops_.row, b_.add(lo, i));
      b_.store(scratch_, l_.index(target), b_.load(a_, l_.index(offset)));
    };
    const ValueId zero = b_.i64(0);
    around_k(l_, loops_, [&] {
      if (along_k && along_k->coefficient.is(1)) {
        b_.loop(LoopKind::serial, zero, count, 1, Runs::maybe, [&](ValueId i) {
          b_.loop(LoopKind::vector, zero, k_count_, 1, Runs::maybe, [&](ValueId k) { element(k, i); });
        });
      } else {
        b_.loop(LoopKind::serial, zero, k_count_, 1, Runs::maybe, [&](ValueId k) {
          b_.loop(LoopKind::vector, zero, count, 1, Runs::maybe, [&](ValueId i) { element(k, i); });
        });
      }
    });
  }

  // ---- Columns ----

  struct Panel {
    ValueId lo = kNone;  // first column
    ValueId limit = kNone;
    int32_t columns = 0;
  };

  // Full panels, then what is left in one of as few vectors as it needs.
  void each_panel(const std::function<void(const Panel&)>& body) {
    const int32_t width = plan_.columns;
    const auto n = loops_.columns.constant();
    const ValueId count = columns_.count;
    const ValueId full = b_.binary(ScalarOp::floor_div, count, b_.i64(width));
    const ValueId full_end = b_.add(columns_.lo, b_.mul(full, b_.i64(width)));
    const auto one = [&](ValueId lo) { body({lo, b_.i64(width), width}); };
    const auto panels = b_.constant_of(full);
    if (panels == 1)
      one(columns_.lo);
    else if (panels != 0)
      b_.loop(LoopKind::serial, columns_.lo, full_end, width, Runs::maybe, one);
    if (n) {
      tail_of_constant(*n, full_end, body);
      return;
    }
    b_.branch(
        b_.less(full_end, columns_.hi), [&] { return body({full_end, b_.sub(columns_.hi, full_end), width}), Ids{}; },
        [] { return Ids{}; });
  }

  // Only the tasks that end at the last column, and those that whole tasks leave in every task, have a tail.
  void tail_of_constant(int64_t n, ValueId full_end, const std::function<void(const Panel&)>& body) {
    const int64_t usual = task_n_ > 0 ? std::min(task_n_, n) : n;
    if (usual <= 0) return;
    const int64_t usual_tail = usual % plan_.columns, last_tail = ((n - 1) % usual + 1) % plan_.columns;
    const auto tail = [&](int64_t columns) {
      if (columns > 0) body({full_end, b_.i64(columns), tail_width(columns)});
      return Ids{};
    };
    if (usual_tail == last_tail) {
      tail(usual_tail);
      return;
    }
    const ValueId last = b_.binary(ScalarOp::eq, columns_.hi, b_.i64(n));
    b_.branch(last, [&] { return tail(last_tail); }, [&] { return tail(usual_tail); });
  }

  int32_t tail_width(int64_t columns) const {
    const int64_t lanes = std::max<int64_t>(1, device_.lanes(std::max<size_t>(1, size_of(accumulator_))));
    return static_cast<int32_t>(std::min<int64_t>(plan_.columns, (columns + lanes - 1) / lanes * lanes));
  }

  // ---- The register tile ----

  // Where panel `lo` of B starts, and how far apart its rows are.
  std::pair<ValueId, ValueId> b_base(const Panel& panel) {
    if (!panels()) {
      l_.set_value(loops_.column, panel.lo);
      const IntExpr base = b_rows_.base + (loops_.columns.is(1) ? IntExpr(0) : IntExpr::symbol(loops_.column));
      return {value(base), value(b_rows_.k)};
    }
    IntExpr number;
    for (const size_t i : layout_.outer) number = number * loops_.outer_extents[i] + IntExpr::symbol(loops_.outer[i]);
    l_.set_value(panel_, b_.binary(ScalarOp::floor_div, panel.lo, b_.i64(layout_.columns)));
    const IntExpr base = (number * layout_.panels + IntExpr::symbol(panel_)) * loops_.depth * IntExpr(layout_.columns);
    return {value(base), b_.i64(layout_.columns)};
  }

  // `tile`: the panel of packed A; `within`: rows before `lo` in it.
  void contract(const Panel& panel, ValueId lo, ValueId tile, int32_t height, ValueId within = kNone) {
    ContractTile t;
    t.accumulator = accumulator_;
    t.a = packs_a() ? scratch_ : a_;
    t.b = panel_buffer_;
    t.rows = height;
    t.columns = panel.columns;
    t.unroll = std::max(1, plan_.unroll);
    t.k_count = k_count_;
    if (packs_a()) {
      const ValueId panel_size = b_.mul(value(loops_.depth), b_.i64(plan_.rows));
      t.a_base = b_.mul(tile, panel_size);
      if (within != kNone) t.a_base = b_.add(t.a_base, within);
      t.a_row_stride = b_.i64(1);
      t.a_k_stride = b_.i64(plan_.rows);
    } else {
      l_.set_value(loops_.row, lo);
      t.a_base = value(a_rows_.base + a_rows_.major * IntExpr::symbol(loops_.row));
      t.a_row_stride = value(a_rows_.major);
      t.a_k_stride = value(a_rows_.k);
    }
    std::tie(t.b_base, t.b_k_stride) = b_base(panel);
    add_around(t);
    t.column_limit = panel.limit;
    t.runs = Runs::always;
    l_.set_value(row_lo_, lo);
    l_.set_value(column_lo_, panel.lo);
    const Symbol row_in = l_.add_loop(IntExpr(height)), column_in = l_.add_loop(IntExpr(panel.columns));
    const auto finish = [&](ValueId row, ValueId column, ValueId acc) {
      l_.set_value(row_in, row);
      l_.set_value(column_in, column);
      l_.set_parts(loops_.row, IntExpr::symbol(row_lo_) + IntExpr::symbol(row_in));
      l_.set_parts(loops_.column, IntExpr::symbol(column_lo_) + IntExpr::symbol(column_in));
      Point point(l_);
      point.set_reduced({acc});
      point.store_outputs();
    };
    if (finished_ == kNone)
      b_.contract(t, finish);
    else
      contract_by_memory(t, finish);
    l_.set_value(loops_.row, kNone);
    l_.set_value(loops_.column, kNone);
  }

  // The loops around k: strides of operands in place are their own, panels hold all of k in a row.
  void add_around(ContractTile& t) {
    IntExpr inside = loops_.inner_depth;
    t.around.resize(loops_.around.size());
    for (size_t i = loops_.around.size(); i-- > 0;) {
      const ValueId a = packs_a() ? value(inside * IntExpr(plan_.rows)) : value(a_rows_.around[i]);
      const ValueId b = panels() ? value(inside * IntExpr(layout_.columns)) : value(b_rows_.around[i]);
      t.around[i] = {value(loops_.around[i].extent), a, b};
      inside *= loops_.around[i].extent;
    }
  }

  // The epilogue of a tile stands once in a loop instead of once for every vector of registers: the sums go through
  // scratch that stays in L1.
  void contract_by_memory(const ContractTile& t,
                          const std::function<void(ValueId row, ValueId column, ValueId acc)>& finish) {
    const ValueId width = b_.i64(t.columns);
    b_.contract(t, [&](ValueId row, ValueId column, ValueId acc) {
      b_.store(finished_, b_.add(b_.mul(row, width), column), acc);
    });
    b_.loop(LoopKind::serial, b_.i64(0), b_.i64(t.rows), 1, Runs::always, [&](ValueId row) {
      const ValueId begin = b_.mul(row, width);
      b_.loop(LoopKind::vector, b_.i64(0), b_.min(t.column_limit, width), 1, Runs::maybe,
              [&](ValueId column) { finish(row, column, b_.load(finished_, b_.add(begin, column))); });
    });
  }

  // About how many operations an element of the epilogue takes once kernel/expand.h has been through it.
  int64_t epilogue_cost() const {
    const std::vector<bool> needed = l_.needed(expr().outputs);
    int64_t cost = 0;
    for (size_t i = 0; i < needed.size(); ++i) {
      const tile::BodyNode& node = expr().body[i];
      if (!needed[i] || node.kind != tile::BodyNode::Kind::op) continue;
      const bool transcendental = node.op >= ScalarOp::exp && node.op <= ScalarOp::pow;
      const bool half = node.dtype == DType::f16 || node.dtype == DType::bf16;
      cost += transcendental ? kTranscendentalCost : half ? kHalfCost : 1;
    }
    return cost;
  }

  const Plan& plan_;
  const CpuModel& device_;
  Lowering& l_;
  Builder& b_;
  ContractionLoops loops_;
  DType accumulator_ = DType::f32;
  int64_t task_m_ = 0, task_n_ = 0;
  std::vector<TaskAxis> axes_;
  BufferId a_ = kNone, panel_buffer_ = kNone, scratch_ = kNone;
  BufferId finished_ = kNone;  // a tile of sums before a long epilogue
  Affine a_rows_, b_rows_;
  PanelLayout layout_;
  TaskRange rows_, columns_;
  ValueId k_count_ = kNone;
  Symbol column_lo_ = -1, row_lo_ = -1, panel_ = -1;
};

}  // namespace

Result<IntExpr> emit_contract(Lowering& lowering, const Plan& plan, const CpuModel& device) {
  return Contract(lowering, plan, device).run();
}

}  // namespace quartet::kernel
