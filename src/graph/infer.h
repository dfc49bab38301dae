// The type rule of every op.
//
// Broadcasting aligns trailing axes; two dims agree when their expressions are the same under the symbols' ranges, or
// one is the number 1. Anything else is an error that names both, never an assumption left to run time.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "graph/dims.h"
#include "graph/graph.h"

namespace quartet::graph {

// The types at the ends of a region or function.
struct Signature {
  std::vector<TensorType> arguments, results;
  bool operator==(const Signature&) const = default;
};

struct InferInput {
  OpCode code = OpCode::invalid;
  std::span<const TensorType* const> operands;  // null for an absent optional one
  const Attrs& attrs;
  const Dims& dims;
  const TensorType* constant = nullptr;     // the type of a constant
  std::span<const Signature> regions = {};  // of if and loop
  const Signature* callee = nullptr;        // of call
};

// Checks the operands' count and types and the attributes, which must be in the form normalize_attrs gives, and returns
// the types of the results. Messages do not name the op: the caller knows which one it is.
Result<std::vector<TensorType>> infer(const InferInput& in);

// Brings attributes into their one form: dims given as integers become dim expressions and the other way round,
// negative axes count from the end of the first operand (iota: of the shape), axes ascend, defaults are left out. What
// it does not understand it leaves to infer.
void normalize_attrs(OpCode code, std::span<const TensorType* const> operands, Attrs& attrs);

// Keys, kinds, ranges; part of infer. `rank`: of the first operand, or of the result for iota; 0 without one.
Status check_attrs(OpCode code, size_t rank, const Attrs& attrs, const Dims& dims);

// The shape two shapes broadcast to.
Result<Shape> broadcast(const Shape& a, const Shape& b, const Dims& dims);

// A type is well formed: a valid element type, at most kMaxRank well formed dims, and not more than 2^62 bytes if
// static.
Status check_type(const TensorType& type, const Dims& dims);
// Whether a constant can stand for an input that is left out: of its element type and rank, and of its extents where
// those are numbers.
Status check_default(const TensorType& input, const TensorType& constant, const Dims& dims);

}  // namespace quartet::graph
