// Tile plans: what Roller constructs for a group and the kernel stage realises.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/int_expr.h"

namespace quartet::roller {

// How an operand of a contraction reaches the micro-tile.
enum class OperandForm : uint8_t {
  in_place = 0,  // offsets are base(outer point) + row * stride + each run of k * its stride; B: column stride 1
  prepared = 1,  // constant, packed once at load into panels [ceil(N/columns)][K][columns], zero-filled
  packed = 2,  // packed in the program: B by a stage of its own into workspace, in the same panels; A by each task into
               // scratch panels [ceil(task_m/rows)][K][rows]
  // Panels of B come once per point of the outer axes that B's offset mentions, row-major before the panels. A source
  // that is packed or prepared may have any offset expression.
};

struct Plan {
  enum class Kind : uint8_t { map = 0, reduce = 1, contract = 2, chain = 3, scatter = 4, rows = 5 };
  Kind kind = Kind::map;

  // The spatial axes are merged where every access allows it; `merged` lists the runs of axes (of the group's domain)
  // outermost first. A run's axes follow one another in the domain. What merging promises: every flat offset of a read,
  // guard and index expression of the fused group stays the same when, in each run, all axes but the last are replaced
  // by 0 and the last by the row-major number of the run's point. So a merged axis needs one loop and no division. Axes
  // of constant extent 1 are always 0 and belong to no run.
  //
  // map, reduce and chain: all other axes are in some run. Each merged axis is cut into tiles of task_tile; the tiles
  // of all merged axes enumerate the tasks, row-major.
  //
  // chain: a contraction without a register tile, for operands that share too little: each point walks its own chain,
  // `rows` points of the run `row_axis` side by side.
  //
  // contract: the last two runs are the rows and the columns (either may be empty: extent 1); runs before them are
  // outer axes, each point of which is a product of its own. Tasks are, row-major, outer points x row tiles of task_m x
  // column tiles of task_n. In a task, panels of `columns` are the outer loop, so that a panel of B stays near while
  // the task's rows pass over it.
  //
  // rows: phases one after the other on a tile of rows that they share; what one leaves to another stays in the task.
  // The axes of `row_extents` (outermost first, none: a single row) are cut into tiles of task_tile, all but one of
  // which are a single row (before it) or the whole extent (after it), so a task's rows follow one another. In each
  // phase the first runs are these axes.
  //
  // scatter: each axis of an extent other than 1 is a run of its own, cut into tiles as for map. A task copies its tile
  // of the start, then walks all updates and applies those for its rows.
  std::vector<std::vector<int32_t>> merged;
  std::vector<int64_t> task_tile;  // map, reduce, chain: per merged axis, elements of one task; 0: the whole extent
  int32_t vector_axis = -1;        // merged axis that runs along lanes, or -1: the reduction does (or nothing)
  // contract, chain: the same for the reduction axes: one loop a run, the last one innermost. Their points stay in the
  // order of the axes. A reduce plan's reduction is one loop whatever this says.
  std::vector<std::vector<int32_t>> reduction;

  int32_t row_axis = -1;  // chain: merged axis whose points are walked side by side, or -1
  // contract (rows: chain, too)
  int32_t rows = 0, columns = 0, unroll = 1;  // register micro-tile MR x NR and unrolling of K
  int64_t task_m = 0, task_n = 0;             // elements of one task
  OperandForm a = OperandForm::in_place, b = OperandForm::in_place;

  // rows
  std::vector<IntExpr> row_extents;
  std::vector<Plan> phases;
  // A tensor that one phase makes and another reads; it holds `inner` elements a row.
  struct Local {
    int32_t tensor = -1;
    int64_t inner = 0;
  };
  std::vector<Local> locals;
  // Of a phase: its first runs are rows, and how many of the axes of row_extents each one covers, in order.
  std::vector<int32_t> row_runs;

  // What the model says of it.
  double seconds = 0;  // predicted, one core, whole group
  double compute = 0;  // of seconds: the work alone, were memory free
  double wall = 0;     // predicted on all cores of the device
  int64_t tasks = 0;   // at the hints of symbolic dims
  double flops = 0;    // per whole group (hints for symbolic dims)
  double dram_bytes = 0;
  double l2_bytes = 0;
  std::string reason;  // one line: why this tile
};

}  // namespace quartet::roller
