#include "roller/contract.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "roller/construct.h"

namespace quartet::roller {
namespace {

using tile::Fused;
using tile::TensorExpr;
using tile::TileGraph;

constexpr double kFmaLatency = 4;     // cycles from one multiply-add of a chain to the next
constexpr double kVectorLoad = 0.15;  // cycles a step that loading a vector of B costs beside all else
constexpr double kBroadcast = 0.08;   // the same for an element of A
constexpr double kEvicted = 1.5;      // how much longer a step takes when rows of A push each other out of L1
constexpr int32_t kMostVectors = 8;   // of a row of the micro-tile
constexpr int64_t kPagePitch = 2048;  // bytes; from here on, steps along a column leave the page too soon
constexpr double kCacheShare = 0.75;  // of L2 for the blocks of a task

int64_t ceil_div_i64(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div_i64(a, b) * b; }

// One operand: the tensor behind it and how its offset moves.
struct Side {
  tile::TensorId tensor = -1;
  bool constant = false;
  bool linear = false;  // along rows (or columns) and k
  bool unit = false;    // stride 1 along columns
  int64_t pitch = 0;    // A: bytes from row to row; B: bytes from k to k; at the hints
  size_t bytes = 4;     // of an element
};

class Contract {
 public:
  Contract(const TileGraph& graph, const Fused& fused, const CpuModel& device)
      : graph_(graph),
        fused_(fused),
        expr_(fused.expr),
        device_(device),
        work_(measure(graph, fused, device)),
        accesses_(accesses(graph, fused)) {}

  Result<std::vector<Plan>> plans() {
    split_axes();
    look_at_sides();
    QUARTET_TRY(choose_forms());
    std::vector<Plan> all;
    const int64_t vectors_of_n = ceil_div_i64(n_, lanes_);
    for (int32_t vectors = 1; vectors <= kMostVectors; ++vectors) {
      if (vectors > 1 && vectors > vectors_of_n) break;
      const int32_t most = most_rows(device_, vectors);
      if (most < 1) break;
      const int32_t rows = balanced_rows(most);
      for (const OperandForm form : forms_of_a(rows)) {
        a_form_ = form;
        for (const auto& [task_m, task_n] : task_sizes(rows, vectors)) {
          all.push_back(plan(rows, vectors, task_m, task_n));
        }
      }
    }
    return all;
  }

  Result<std::vector<Plan>> row_plans(int64_t task_m) {
    split_axes();
    look_at_sides();
    QUARTET_TRY(choose_forms());
    const int64_t tile = task_m > 0 ? task_m : m_;
    std::vector<Plan> all;
    for (int32_t vectors = 1; vectors <= kMostVectors; ++vectors) {
      if (vectors > 1 && vectors > ceil_div_i64(n_, lanes_)) break;
      const int32_t most = most_rows(device_, vectors);
      if (most < 1) break;
      const auto rows = static_cast<int32_t>(ceil_div_i64(tile, ceil_div_i64(tile, most)));
      for (const OperandForm form : forms_of_a(rows)) {
        a_form_ = form;
        all.push_back(plan(rows, vectors, tile, round_up(n_, int64_t{vectors} * lanes_)));
        all.back().task_m = task_m, all.back().task_n = 0;
      }
    }
    return all;
  }

 private:
  // The last M axes that act as one are the rows, the last N axes the columns; the others are outer.
  void split_axes() {
    const tile::Contraction& c = expr_.contraction;
    const auto tail = [&](const std::vector<int32_t>& axes) {
      std::vector<int32_t> run;
      for (size_t i = axes.size(); i-- > 0;) {
        if (expr_.axes[static_cast<size_t>(axes[i])].is(1)) continue;
        if (!run.empty() && !adjacent(axes[i], run.front())) break;
        run.insert(run.begin(), axes[i]);
        if (!mergeable(expr_, accesses_, run)) {
          run.erase(run.begin());
          break;
        }
      }
      return run;
    };
    rows_ = tail(c.m), columns_ = tail(c.n);
    for (int32_t axis = 0; axis < expr_.spatial; ++axis) {
      const auto in = [&](const std::vector<int32_t>& run) {
        return std::find(run.begin(), run.end(), axis) != run.end();
      };
      if (in(rows_) || in(columns_) || expr_.axes[static_cast<size_t>(axis)].is(1)) continue;
      std::vector<int32_t> longer = outer_.empty() ? std::vector<int32_t>() : outer_.back();
      longer.push_back(axis);
      const bool next = longer.size() == 1 || adjacent(longer[longer.size() - 2], axis);
      if (!outer_.empty() && next && mergeable(expr_, accesses_, longer)) {
        outer_.back() = std::move(longer);
      } else {
        outer_.push_back({axis});
      }
    }
    reduction_ = merge_axes(expr_, accesses_, expr_.spatial, static_cast<int32_t>(expr_.axes.size()));
    for (const auto& run : reduction_) inner_.insert(inner_.end(), run.begin(), run.end());
    m_ = run_extent(expr_, rows_, work_.dims);
    n_ = run_extent(expr_, columns_, work_.dims);
    k_ = std::max<int64_t>(1, std::min(work_.reduced, kMostPoints));
    for (const auto& run : outer_) outer_points_ = product(outer_points_, run_extent(expr_, run, work_.dims));
    const DType accumulator = expr_.body[static_cast<size_t>(expr_.element)].dtype;
    bytes_ = size_of(accumulator);
    lanes_ = std::max(1, device_.lanes(bytes_));
  }

  // Only axes of extent 1 between them.
  bool adjacent(int32_t a, int32_t b) const {
    for (int32_t axis = a + 1; axis < b; ++axis) {
      if (!expr_.axes[static_cast<size_t>(axis)].is(1)) return false;
    }
    return true;
  }

  bool fixed(const std::vector<int32_t>& run) const {
    return std::all_of(run.begin(), run.end(),
                       [&](int32_t a) { return expr_.axes[static_cast<size_t>(a)].is_constant(); });
  }

  void look_at_sides() {
    a_ = look(expr_.contraction.read_a, rows_, true);
    b_ = look(expr_.contraction.read_b, columns_, false);
  }

  Side look(int32_t number, const std::vector<int32_t>& run, bool is_a) const {
    const tile::Read& read = expr_.reads[static_cast<size_t>(number)];
    Side side;
    side.tensor = fused_.inputs[static_cast<size_t>(read.operand)];
    const tile::Tensor& tensor = graph_.tensors[static_cast<size_t>(side.tensor)];
    side.constant = tensor.constant >= 0;
    side.bytes = size_of(tensor.type.dtype);
    const IntExpr offset = tile::flat_offset(expr_, read, tensor.type).simplify(accesses_.ranges);
    const auto along_run = stride(offset, run);
    const auto along_k = stride(offset, reduction_.empty() ? std::vector<int32_t>() : reduction_.back());
    // Linear in all, with no product of two: the strides hold for every point.
    side.linear = along_run && std::all_of(reduction_.begin(), reduction_.end(),
                                           [&](const auto& r) { return stride(offset, r).has_value(); });
    side.unit = side.linear && (run.empty() || along_run->is(1));
    const auto& pitch = is_a ? along_run : along_k;
    const auto element = static_cast<int64_t>(side.bytes);
    if (pitch) side.pitch = product(std::max<int64_t>(0, tile::value_at(*pitch, work_.dims)), element);
    return side;
  }

  Status choose_forms() {
    const int64_t row_tiles = ceil_div_i64(m_, most_rows(device_, 2));
    const bool one_row_tile = fixed(rows_) && row_tiles <= 1;
    if (b_.constant) {
      // Streamed once and walked in short steps, a constant is as good where it lies.
      b_form_ = b_.unit && one_row_tile && b_.pitch < kPagePitch ? OperandForm::in_place : OperandForm::prepared;
    } else if (!b_.unit) {
      b_form_ = OperandForm::packed;
    } else {
      const int64_t source = product(product(k_, n_), static_cast<int64_t>(b_.bytes));
      const MemoryLevel* l1 = device_.level("L1");
      const bool reused = row_tiles >= 8 && l1 != nullptr && source > l1->capacity;
      b_form_ = reused && b_.pitch >= kPagePitch ? OperandForm::packed : OperandForm::in_place;
    }
    const int64_t least_block = product(product(k_, most_rows(device_, 1)), static_cast<int64_t>(bytes_));
    a_packable_ = fixed(inner_) && least_block <= l2() / 2;
    if (a_.linear || a_packable_) return {};
    return make_error(Code::failed_precondition,
                      "'%s': its left operand is not laid out in rows, and packing it needs a constant, short K",
                      expr_.name.c_str());
  }

  // Whether the rows of a tile, walked side by side, push each other out of L1, of which half is left to B.
  bool conflicts(int32_t rows) const { return rows > lines_held(device_, a_.pitch) / 2; }

  // How A may reach a tile of so many rows.
  std::vector<OperandForm> forms_of_a(int32_t rows) const {
    std::vector<OperandForm> forms;
    if (a_.linear) forms.push_back(OperandForm::in_place);
    if (a_packable_ && (!a_.linear || conflicts(rows))) forms.push_back(OperandForm::packed);
    return forms;
  }

  int64_t l2() const {
    const MemoryLevel* level = device_.level("L2");
    return level != nullptr ? level->capacity : 256 << 10;
  }

  // As many row tiles as the most rows need, all about equally high.
  int32_t balanced_rows(int32_t most) const {
    if (!fixed(rows_)) return static_cast<int32_t>(std::min<int64_t>(most, std::max<int64_t>(m_, 4)));
    return static_cast<int32_t>(ceil_div_i64(m_, ceil_div_i64(m_, most)));
  }

  // Elements of one task: rows and columns.
  std::vector<std::pair<int64_t, int64_t>> task_sizes(int32_t rows, int32_t vectors) const {
    const int64_t columns = int64_t{vectors} * lanes_;
    const auto element = static_cast<int64_t>(bytes_);
    const int64_t panel = product(product(k_, columns), element), row = std::max<int64_t>(1, product(k_, element));
    const int64_t share = static_cast<int64_t>(kCacheShare * static_cast<double>(l2()));
    int64_t most_m = std::max<int64_t>(rows, (share - std::min(panel, share)) / row / rows * rows);
    if (a_form_ == OperandForm::packed)
      most_m = std::max<int64_t>(rows, std::min(most_m, l2() / 2 / row / rows * rows));
    if (fixed(rows_)) most_m = std::min(most_m, round_up(m_, rows));
    // How many tasks is the same question for every tile: a slow tile must not win by being worth splitting.
    const double seconds = least_seconds();
    const int64_t wanted = std::clamp<int64_t>(static_cast<int64_t>(seconds / kMinTaskSeconds), 1, 4 * device_.cores);
    std::vector<std::pair<int64_t, int64_t>> sizes;
    for (int64_t parts_n = 1; parts_n <= wanted; parts_n *= 2) {
      const int64_t task_n = round_up(ceil_div_i64(n_, parts_n), columns);
      const int64_t real_n = product(ceil_div_i64(n_, task_n), outer_points_);
      for (const int64_t total : totals(wanted)) {
        const int64_t parts_m = std::max<int64_t>(1, ceil_div_i64(total, real_n));
        int64_t task_m = std::clamp<int64_t>(round_up(ceil_div_i64(m_, parts_m), rows), rows, most_m);
        if (!fixed(rows_)) task_m = symbolic_task_m(rows, seconds, most_m);
        const std::pair<int64_t, int64_t> size(task_m, task_n);
        if (std::find(sizes.begin(), sizes.end(), size) == sizes.end()) sizes.push_back(size);
      }
    }
    return sizes;
  }

  // Task counts to aim at: whole rounds of the cores where there is work for one, so that none idles in the last.
  std::vector<int64_t> totals(int64_t wanted) const {
    if (wanted < device_.cores) return {wanted};
    std::vector<int64_t> all;
    for (int64_t total = device_.cores; total <= wanted; total += device_.cores) all.push_back(total);
    return all;
  }

  // Of an unknown number of rows: as many as make a task worth while, whatever the hint.
  int64_t symbolic_task_m(int32_t rows, double seconds, int64_t most_m) const {
    const double per_row = std::max(seconds / static_cast<double>(product(m_, outer_points_)), 1e-12);
    const auto worth = static_cast<int64_t>(std::min(kMinTaskSeconds / per_row, 1e12));
    const int64_t share = ceil_div_i64(m_, 4 * device_.cores);
    return std::clamp<int64_t>(round_up(std::max({worth, share, int64_t{1}}), rows), rows,
                               std::max<int64_t>(most_m, rows));
  }

  // At the peak of the units, or of memory.
  double least_seconds() const {
    const int64_t bytes = work_.read_bytes + work_.write_bytes;
    const double products = static_cast<double>(outer_points_) * static_cast<double>(m_) * static_cast<double>(n_) *
                            static_cast<double>(k_);
    const double compute = products / (device_.fma_per_cycle * lanes_ * device_.clock_hz);
    return std::max(compute, static_cast<double>(bytes) / bandwidth_for(device_, bytes));
  }

  double tiles(int32_t rows, int32_t vectors) const {
    return static_cast<double>(outer_points_) * static_cast<double>(ceil_div_i64(m_, rows)) *
           static_cast<double>(ceil_div_i64(n_, int64_t{vectors} * lanes_));
  }

  double compute_seconds(int32_t rows, int32_t vectors) const {
    // The last row tile is as high as it must be, so rows count as they are.
    const double full = static_cast<double>(m_) / static_cast<double>(round_up(m_, rows));
    const bool evicted = a_form_ == OperandForm::in_place && conflicts(rows);
    const double narrow = step_cycles(device_, rows, vectors) * (evicted ? kEvicted : 1);
    const double chain = kFmaLatency;
    const double step = std::max(narrow * full, std::min(narrow, chain));
    return tiles(rows, vectors) * (static_cast<double>(k_) * step + tile_overhead(rows, vectors)) / device_.clock_hz;
  }

  // Start and end of a micro-tile: the epilogue on every vector, and a few cycles to begin.
  double tile_overhead(int32_t rows, int32_t vectors) const {
    std::vector<bool> wanted = tile::in_epilogue(expr_);
    const std::vector<bool> element = tile::in_element(expr_);
    for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = wanted[i] && !element[i];
    const double each = vector_cycles(graph_, fused_, device_, wanted, columns_, lanes_, work_.dims) + 1;
    return 12 + rows * vectors * each;
  }

  Plan plan(int32_t rows, int32_t vectors, int64_t task_m, int64_t task_n) const {
    Plan p;
    p.kind = Plan::Kind::contract;
    p.merged = outer_;
    p.merged.push_back(rows_);
    p.merged.push_back(columns_);
    p.reduction = reduction_;
    p.rows = rows;
    p.columns = vectors * lanes_;
    p.unroll = k_ < 4 && fixed(inner_) ? 1 : rows * vectors <= 8 ? 4 : 2;
    p.task_m = task_m, p.task_n = task_n;
    p.a = a_form_, p.b = b_form_;
    const int64_t tasks_m = ceil_div_i64(m_, task_m), tasks_n = ceil_div_i64(n_, task_n);
    p.tasks = product(outer_points_, product(tasks_m, tasks_n));
    p.flops = static_cast<double>(work_.flops);
    const int64_t bytes = work_.read_bytes + work_.write_bytes;
    p.dram_bytes = static_cast<double>(bytes);
    // Each task fetches its rows of A and its columns of B.
    const double a_bytes = static_cast<double>(m_) * static_cast<double>(k_) *
                           static_cast<double>(a_.bytes * static_cast<size_t>(tasks_n));
    const double b_bytes = static_cast<double>(n_) * static_cast<double>(k_) *
                           static_cast<double>(b_.bytes * static_cast<size_t>(tasks_m));
    p.l2_bytes = static_cast<double>(outer_points_) * (a_bytes + b_bytes) + static_cast<double>(work_.write_bytes);
    const double compute = compute_seconds(rows, vectors) + packing_seconds(tasks_n);
    // What is fetched again comes from no further than the whole.
    const double memory =
        memory_seconds(device_, static_cast<double>(work_.read_bytes), static_cast<double>(work_.write_bytes)) +
        std::max(0.0, p.l2_bytes - p.dram_bytes) / bandwidth_for(device_, bytes);
    p.seconds = overlapped(compute, memory);
    p.compute = compute;
    const double share = static_cast<double>(std::min(task_m, m_)) / static_cast<double>(m_) *
                         static_cast<double>(std::min(task_n, n_)) / static_cast<double>(n_) /
                         static_cast<double>(outer_points_);
    p.wall = wall_time(p.seconds * share, p.tasks, device_);
    p.reason = reason(p, compute, memory);
    return p;
  }

  // About two cycles for each vector moved, one for each element where lanes must be gathered; A once a column task.
  double packing_seconds(int64_t tasks_n) const {
    const auto elements = [&](int64_t extent) {
      return static_cast<double>(outer_points_) * static_cast<double>(extent) * static_cast<double>(k_);
    };
    double cycles = 0;
    if (b_form_ == OperandForm::packed) cycles += elements(n_) * (b_.unit ? 2.0 / lanes_ : 1.2);
    if (a_form_ == OperandForm::packed) cycles += elements(m_) * static_cast<double>(tasks_n);
    const double stage = b_form_ == OperandForm::packed ? kStageSeconds : 0;
    return cycles / device_.clock_hz + stage;
  }

  std::string reason(const Plan& p, double compute, double memory) const {
    const int32_t vectors = p.columns / lanes_;
    std::string text = memory > compute ? "memory bound" : "compute bound";
    text += format(", %dx%d tile: %d of %d registers", p.rows, p.columns, p.rows * vectors + vectors + 1,
                   device_.vector_registers);
    text += format(", a %s, b %s", form_name(p.a), form_name(p.b));
    text +=
        p.tasks > 1 ? format(", %lld tasks", static_cast<long long>(p.tasks)) : ", one task: too little work to split";
    return text;
  }

  const TileGraph& graph_;
  const Fused& fused_;
  const TensorExpr& expr_;
  const CpuModel& device_;
  Work work_;
  Accesses accesses_;
  std::vector<std::vector<int32_t>> outer_;
  std::vector<int32_t> rows_, columns_, inner_;
  std::vector<std::vector<int32_t>> reduction_;
  int64_t m_ = 1, n_ = 1, k_ = 1, outer_points_ = 1;
  size_t bytes_ = 4;
  int32_t lanes_ = 1;
  Side a_, b_;
  OperandForm a_form_ = OperandForm::in_place, b_form_ = OperandForm::in_place;
  bool a_packable_ = false;
};

}  // namespace

int32_t most_rows(const CpuModel& device, int32_t vectors) {
  const int32_t with_fma = (device.vector_registers - 1 - vectors) / vectors;
  if (device.fma) return with_fma;
  return std::min(with_fma, device.vector_registers / 2 / vectors);
}

double step_cycles(const CpuModel& device, int32_t rows, int32_t vectors) {
  const double products = static_cast<double>(rows) * vectors / device.fma_per_cycle;
  const double l1 = device.levels.front().bandwidth / device.clock_hz;  // bytes a cycle
  // A broadcast takes a load slot whatever its width.
  const double slots = std::max(1.0, l1 / device.vector_bytes);
  const double loads =
      static_cast<double>(vectors) * device.vector_bytes / l1 + static_cast<double>(rows) / std::max(slots, 2.0);
  // Loads never hide quite: of tiles with as many products a step the one with fewer loads is faster (measured).
  return std::max({products, loads, kFmaLatency}) + kVectorLoad * vectors + kBroadcast * rows;
}

bool shares_little(const Fused& fused, const CpuModel& device) {
  const TensorExpr& expr = fused.expr;
  IntExpr columns = 1;
  for (const int32_t axis : expr.contraction.n) columns *= expr.axes[static_cast<size_t>(axis)];
  const auto known = columns.constant();
  return known && *known < device.lanes(size_of(expr.body[static_cast<size_t>(expr.element)].dtype));
}

Result<std::vector<Plan>> contract_plans(const TileGraph& graph, const Fused& fused, const CpuModel& device) {
  return Contract(graph, fused, device).plans();
}

Result<std::vector<Plan>> contract_row_plans(const TileGraph& graph, const Fused& fused, const CpuModel& device,
                                             int64_t task_m) {
  return Contract(graph, fused, device).row_plans(task_m);
}

}  // namespace quartet::roller
