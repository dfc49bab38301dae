// Evaluation by family, behind evaluate(). Types are static and checked; each gives the result's bytes, or nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "graph/graph.h"

namespace quartet::graph {

// Extents of a static type.
std::vector<int64_t> extents_of(const TensorType& type);
std::vector<int64_t> dense_strides(std::span<const int64_t> extents);

// Walks a shape in row-major order and keeps the offsets that belong to each point, one per row of strides.
class Walk {
 public:
  Walk(std::vector<int64_t> extents, std::vector<std::vector<int64_t>> strides);
  size_t points() const { return points_; }
  int64_t offset(size_t which) const { return offsets_[which]; }
  const std::vector<int64_t>& index() const { return index_; }
  void next();

 private:
  std::vector<int64_t> extents_, index_;
  std::vector<std::vector<int64_t>> strides_;
  std::vector<int64_t> offsets_;
  size_t points_ = 1;
};

std::optional<Bytes> evaluate_source(const Op& op, const TensorType& result);
std::optional<Bytes> evaluate_movement(const Op& op, std::span<const Constant* const> operands,
                                       const TensorType& result);
std::optional<Bytes> evaluate_elementwise(const Op& op, std::span<const Constant* const> operands,
                                          const TensorType& result);
std::optional<Bytes> evaluate_reduction(const Op& op, const Constant& operand, const TensorType& result);

}  // namespace quartet::graph
