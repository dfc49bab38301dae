// Making constant tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "graph/graph.h"

namespace quartet::graph {

// A constant over bytes that `owner` keeps alive. Fails when the type is not static or the bytes are not its size, or
// when a bool is neither 0 nor 1.
Result<Constant> make_constant(TensorType type, std::span<const uint8_t> bytes, std::shared_ptr<const void> owner);
// The same with a copy of the bytes.
Result<Constant> copy_constant(TensorType type, std::span<const uint8_t> bytes);

// The identity of a constant: the digest of its element type, extents and bytes.
Digest constant_digest(const TensorType& type, std::span<const uint8_t> bytes);

inline std::span<const uint8_t> bytes_of(const Constant& constant) { return {constant.data, constant.bytes}; }

// One element as bytes of `type`: a number rounded or cast as the op `cast` does.
Bytes scalar_bytes(DType type, double value);
Bytes scalar_bytes(DType type, int64_t value);

// Reads element `index` of a constant. Floats exactly, integers up to 2^53 and bool as 0 or 1.
double element_as_double(const Constant& constant, size_t index);
// Integers and bool; u64 wraps.
int64_t element_as_int(const Constant& constant, size_t index);
// Whether every element has the same bytes; false for a constant without elements.
bool is_splat(const Constant& constant);

}  // namespace quartet::graph
