// The reduction-order rule: the one place that says in which order numbers are combined (design section 12).
//
// Results depend on the graph, options, instruction-set class and shapes, never on fusion, plan, placement or threads.
// So the order of every reduction is fixed here, by op, element type, class and extent alone, and every plan realises
// it:
//
// * A contraction (matmul, later convolution) is ONE chain per output element, acc = fma(a_k, b_k, acc) from acc = +0,
// in
//   the order of its linearised reduction axes (convolution: kernel position major, channel minor). Blocking over K
//   continues the chain from memory. It is never cut: `contraction_chunk` is 0 for every shape of this version.
// * Any other reduction runs over its linearised reduction axes r = 0 .. R-1 (row-major in the operand's axis order). R
// is
//   cut into chunks of `chunk` elements; in a chunk element r goes to partial state (r mod P), P = `interleave`, each
//   partial state a chain in ascending r; the P states merge by halving: for h = P/2, P/4 ... 1, state p becomes
//   merge(state p, state p+h) for p < h. Chunks merge left to right.
// * Identities are exact (-0 for sums, 1, -inf, +inf), so a partial state that saw no element may be skipped or merged
// with
//   the same result. A sum over nothing is -0 + 0 = +0 after the reduction's final `add +0`, which every plan applies.
// * Softmax and log-softmax keep blocks of `kSoftmaxBlock` elements along the axis: per block the maximum m_b and the
// sum
//   of exp(x - m_b), each reduced as above within the block; blocks merge left to right by
//   m = max(m, m_b), s = s * exp(m_old - m) + s_b * exp(m_b - m), starting from the first block.
//   Where a maximum is -inf, 0 stands in for it in these differences, so that a block of -inf adds 0 and not NaN.
//
// f16 and bf16 sums accumulate in f32 and round once at the end; integer reductions wrap and have any order.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "device/device.h"
#include "graph/ops.h"

namespace quartet::tile {

struct ReductionOrder {
  int32_t interleave = 1;  // P, a power of two
  int64_t chunk = 0;       // elements; the same for every extent, so that symbolic and static shapes agree
};

// `accumulator`: the type the partial states are kept in.
ReductionOrder reduction_order(DType accumulator, Isa isa);
// 0: the chain is never cut.
int64_t contraction_chunk(DType accumulator, Isa isa);
using graph::kSoftmaxBlock;
// The type in which a reduction or contraction of `element` accumulates: f32 for f16 and bf16, i32/i64-like for
// integers (their own type), else the type itself.
DType accumulator_type(DType element);

}  // namespace quartet::tile
