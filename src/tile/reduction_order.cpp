#include "tile/reduction_order.h"

namespace quartet::tile {
namespace {

constexpr int32_t kVectors = 4;         // enough independent chains to hide an addition's latency at two a cycle
constexpr int64_t kChunk = 65536;       // elements; a multiple of every interleave
constexpr int64_t kSoftmaxBlock = 512;  // elements; see softmax_block

int32_t vector_bytes(Isa isa) {
  switch (isa) {
    case Isa::sse2:
      return 16;
    case Isa::avx2:
      return 32;
    case Isa::avx512:
      break;
  }
  return 64;
}

}  // namespace

DType accumulator_type(DType element) { return element == DType::f16 || element == DType::bf16 ? DType::f32 : element; }

ReductionOrder reduction_order(DType accumulator, Isa isa) {
  const auto bytes = static_cast<int32_t>(size_of(accumulator));
  ReductionOrder order;
  order.interleave = bytes == 0 ? 1 : kVectors * vector_bytes(isa) / bytes;
  order.chunk = kChunk;
  return order;
}

int64_t contraction_chunk(DType /*accumulator*/, Isa /*isa*/) { return 0; }

// A block is read twice (its maximum, then the sum of its exponentials), so it must stay in L1 beside whatever else the
// loop touches: 512 elements are 2 KiB of f32 or 4 KiB of f64. It is a multiple of every interleave, so a block is
// whole rounds of the partial states, and long enough that the merge by halving and the two rescaling exponentials at
// its end are a small part of it.
int64_t softmax_block(DType /*accumulator*/, Isa /*isa*/) { return kSoftmaxBlock; }

}  // namespace quartet::tile
