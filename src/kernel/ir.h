// Kernel IR: what one group computes, as structured SSA over buffers. The last form that knows no backend.
//
// A kernel runs its tasks [begin, end): each task is one independent piece of the group's work. Statements stand in
// regions; a statement may define values, each of one scalar type. Values are *per lane*: inside a vector loop every
// statement is meant for one value of the loop variable, and a backend runs many at once (SIMD lanes, GPU threads). So
// the same text serves every width. Index arithmetic is i64.
//
// Arithmetic is exact and closed: each operation rounds once to its type, nothing is contracted or reassociated, fma is
// fused only where `fma` stands. Float min and max give NaN if either side is NaN, and order -0 below +0. Integer
// arithmetic wraps. f16 and bf16 operations compute in f32 and round to the type.
//
// The order of a reduction is part of the meaning (tile/reduction_order.h): `reduce` keeps P interleaved partial states
// per chunk and merges them by a fixed tree, however a backend realises it; `contract` is one chain per element.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/int_expr.h"
#include "base/status.h"

namespace quartet::kernel {

using ValueId = int32_t;
using BufferId = int32_t;
inline constexpr int32_t kNone = -1;

// Rows of ops.def: QUARTET_KERNEL_OP(name, operands, results, doc). Kinds with regions are described below.
enum class Op : uint8_t {
#define QUARTET_KERNEL_OP(name, operands, results, doc) name,
#include "kernel/ops.def"
#undef QUARTET_KERNEL_OP
};
const char* op_name(Op op);

enum class Scope : uint8_t {
  argument_in = 0,   // read-only memory passed by the caller
  argument_out = 1,  // written by the kernel, each element by one task; never aliases another argument
  argument_inout = 2,
  task = 3,  // scratch private to the running task: L1/L2 of its core, shared memory of its block
};

// A flat, typed array. Multi-dimensional layouts are the index arithmetic's business.
struct Buffer {
  std::string name;  // for people
  DType dtype = DType::f32;
  Scope scope = Scope::argument_in;
  IntExpr elements;        // over the kernel's dims (symbols 0..dims-1)
  int32_t alignment = 64;  // of element 0, in bytes; a power of two the caller guarantees
};

enum class LoopKind : uint8_t {
  serial = 0,
  unrolled = 1,  // constant trip count, at most 64
  vector = 2,    // iterations are independent and may run as lanes; step 1; not nested in another vector loop
};

enum class ReduceOp : uint8_t { sum = 0, product = 1, max = 2, min = 3, all = 4, any = 5, argmax = 6, argmin = 7 };

// Operands of a contract before those of the loops around k.
inline constexpr size_t kContractOperands = 7;

struct Region;

struct Statement {
  Op op;
  // Type of the results; for comparisons and loads of bool: boolean. No meaning for store, loop, branch and yield,
  // whose types are their values'.
  DType dtype = DType::i64;
  std::vector<ValueId> operands;  // see ops.def for each op's operands
  std::vector<ValueId> results;
  // constant: the bits of the value, signed integers sign-extended, all else zero-extended (f32 as its 32 bits, bool 0
  // or 1); dim: its number; others: 0.
  int64_t immediate = 0;
  BufferId buffer = kNone;  // load, store
  LoopKind loop = LoopKind::serial;
  // reduce: the operation and its order, as tile/reduction_order.h gave it for the shape and class. Element r of a
  // chunk goes to partial state (r mod interleave), a power of two; the partial states of a chunk merge by halving
  // (state p with p + h for h = interleave/2 ... 1, p < h); chunks of `chunk` elements (0: all in one) merge left to
  // right.
  ReduceOp reduce = ReduceOp::sum;
  int32_t interleave = 1;
  int64_t chunk = 0;
  // contract: rows x columns elements of a register tile, all rows valid, columns at and beyond the column_limit
  // operand masked; k is unrolled by `unroll`. Rows and columns given to the regions count from 0 in the tile.
  int32_t rows = 0, columns = 0;
  int32_t unroll = 1;
  BufferId buffer_b = kNone;  // contract: B; `buffer` is A
  std::vector<Region> regions;
};

struct Region {
  std::vector<ValueId> arguments;
  std::vector<Statement> body;  // ends with `yield`
};

struct Kernel {
  std::string name;
  int32_t dims = 0;                 // number of i64 dim values passed
  std::vector<IntExpr> dim_bounds;  // inclusive upper bound of each dim if known, else invalid; for index-width choices
  std::vector<Buffer> buffers;      // arguments first, in call order, then task scratch
  std::vector<DType> value_types;   // by ValueId
  IntExpr tasks;                    // number of tasks, over dims
  Region body;                      // one argument: the task number

  int32_t argument_count() const;
};

// Constants are kept as bits; these translate.
int64_t float_bits(DType dtype, double value);  // rounds to dtype
double float_value(DType dtype, int64_t bits);

// What every later reader relies on: ids defined before use and in scope, types agree, buffers and dims in range, loop
// and reduce regions well formed, vector loops not nested, stores only to writable buffers.
Status verify(const Kernel& kernel);

// Text form; parse(print(k)) gives k back.
std::string print(const Kernel& kernel);
Result<Kernel> parse(std::string_view text);

// Bytes, for keys, the code generators and isolation workers. `read` trusts nothing and verifies.
Bytes serialize(const Kernel& kernel);
Result<Kernel> deserialize(std::span<const uint8_t> bytes);

}  // namespace quartet::kernel
