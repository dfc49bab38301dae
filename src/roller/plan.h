// Tile plans: what Roller constructs for a group and the kernel stage realises.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/int_expr.h"

namespace quartet::roller {

// How an operand of a contraction reaches the micro-tile.
enum class OperandForm : uint8_t {
  in_place = 0,  // B: unit stride along N; A: element by element
  prepared = 1,  // constant, packed once at load into panels [ceil(N/columns)][K][columns], zero-filled
  packed = 2,  // packed in the program: B by a stage of its own into workspace, in the same panels; A by each task into
               // scratch panels [ceil(task_m/rows)][K][rows]
};

struct Plan {
  enum class Kind : uint8_t { map = 0, reduce = 1, contract = 2 };
  Kind kind = Kind::map;

  // map and reduce. The spatial axes are merged where every access allows it; `merged` lists the runs of axes (of the
  // group's domain) outermost first. Each merged axis is cut into tiles; the tiles of all merged axes enumerate the
  // tasks, row-major.
  std::vector<std::vector<int32_t>> merged;
  std::vector<int64_t> task_tile;  // per merged axis, elements of one task; 0: the whole extent
  int32_t vector_axis = -1;        // merged axis that runs along lanes, or -1: the reduction does (or nothing)

  // contract
  int32_t rows = 0, columns = 0, unroll = 1;  // register micro-tile MR x NR and unrolling of K
  int64_t task_m = 0, task_n = 0;             // elements of one task
  OperandForm a = OperandForm::in_place, b = OperandForm::in_place;

  // What the model says of it.
  double seconds = 0;  // predicted, one core, whole group
  double flops = 0;    // per whole group (hints for symbolic dims)
  double dram_bytes = 0;
  double l2_bytes = 0;
  std::string reason;  // one line: why this tile
};

}  // namespace quartet::roller
