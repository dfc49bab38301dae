#include "tile/reduction_order.h"

namespace quartet::tile {
namespace {

constexpr int32_t kVectors = 4;    // enough independent chains to hide an addition's latency at two a cycle
constexpr int64_t kChunk = 65536;  // elements; a multiple of every interleave

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

}  // namespace quartet::tile
