#include "graph/evaluate.h"

#include <cfenv>

#include "base/checked.h"
#include "graph/constant.h"
#include "graph/evaluate_rules.h"

namespace quartet::graph {
namespace {

// IEEE defaults inside, the caller's floating-point environment after.
class DefaultFloats {
 public:
  DefaultFloats() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloats() { std::fesetenv(&saved_); }
  DefaultFloats(const DefaultFloats&) = delete;
  DefaultFloats& operator=(const DefaultFloats&) = delete;

 private:
  std::fenv_t saved_;
};

std::optional<Bytes> evaluate_one(const Op& op, std::span<const Constant* const> operands, const TensorType& result) {
  switch (op_info(op.code).op_class) {
    case OpClass::constant:
      return evaluate_source(op, result);
    case OpClass::elementwise:
      return evaluate_elementwise(op, operands, result);
    case OpClass::view:
    case OpClass::data:
      return evaluate_movement(op, operands, result);
    case OpClass::reduction:
      return evaluate_reduction(op, *operands[0], result);
    case OpClass::contraction:
    case OpClass::composite:
    case OpClass::control:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::vector<Constant>> evaluate(const Op& op, std::span<const Constant* const> operands,
                                              std::span<const TensorType> results, size_t max_bytes) {
  if (op.code == OpCode::constant || results.size() != 1) return std::nullopt;
  const auto size = results[0].is_static() ? results[0].bytes() : std::nullopt;
  if (!size || *size > max_bytes) return std::nullopt;
  const DefaultFloats guard;
  // Nothing is nothing, whatever the op; the extents beside the empty one may be of any size.
  const std::optional<Bytes> bytes = *size == 0 ? Bytes{} : evaluate_one(op, operands, results[0]);
  if (!bytes) return std::nullopt;
  auto constant = copy_constant(results[0], *bytes);
  if (!constant) return std::nullopt;
  return std::vector<Constant>{constant.take()};
}

std::vector<int64_t> extents_of(const TensorType& type) {
  std::vector<int64_t> extents;
  for (const IntExpr& dim : type.shape) extents.push_back(dim.constant().value_or(0));
  return extents;
}

std::vector<int64_t> dense_strides(std::span<const int64_t> extents) {
  std::vector<int64_t> strides(extents.size(), 1);
  for (size_t i = extents.size(); i-- > 1;) strides[i - 1] = strides[i] * extents[i];
  return strides;
}

Walk::Walk(std::vector<int64_t> extents, std::vector<std::vector<int64_t>> strides)
    : extents_(std::move(extents)),
      index_(extents_.size(), 0),
      strides_(std::move(strides)),
      offsets_(strides_.size(), 0) {
  for (const int64_t extent : extents_) points_ *= static_cast<size_t>(extent);
}

void Walk::next() {
  for (size_t axis = extents_.size(); axis-- > 0;) {
    const bool carry = ++index_[axis] == extents_[axis];
    for (size_t k = 0; k < offsets_.size(); ++k)
      offsets_[k] += carry ? -strides_[k][axis] * (extents_[axis] - 1) : strides_[k][axis];
    if (!carry) return;
    index_[axis] = 0;
  }
}

}  // namespace quartet::graph
