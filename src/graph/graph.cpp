#include "graph/graph.h"

#include "base/checked.h"

namespace quartet::graph {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 62;

const Attr* find(const Op& op, AttrKey key) {
  const auto it = op.attrs.find(key);
  return it == op.attrs.end() ? nullptr : &it->second;
}

template <class T>
const T* find_as(const Op& op, AttrKey key) {
  const Attr* attr = find(op, key);
  return attr ? std::get_if<T>(attr) : nullptr;
}

}  // namespace

bool TensorType::is_static() const {
  for (const IntExpr& dim : shape)
    if (!dim.is_constant()) return false;
  return true;
}

IntExpr TensorType::elements() const {
  IntExpr product = 1;
  for (const IntExpr& dim : shape)
    if (dim.is(0)) return 0;  // however large the others
  for (const IntExpr& dim : shape) product = product * dim;
  return product;
}

std::optional<size_t> TensorType::bytes() const {
  size_t size = size_of(dtype);
  bool empty = false;
  for (const IntExpr& dim : shape) {
    const auto extent = dim.constant();
    if (!extent || *extent < 0) return std::nullopt;
    if (*extent == 0) {
      empty = true;
      continue;
    }
    const auto product = checked_mul(size, static_cast<size_t>(*extent));
    if (!product || *product > kMaxBytes) return std::nullopt;
    size = *product;
  }
  return empty ? 0 : size;
}

int64_t attr_int(const Op& op, AttrKey key) {
  if (const auto* value = find_as<int64_t>(op, key)) return *value;
  const AttrSpec* spec = op_info(op.code).attr(key);
  return spec ? spec->default_int : 0;
}

double attr_float(const Op& op, AttrKey key) {
  const auto* value = find_as<double>(op, key);
  return value ? *value : 0.0;
}

const std::vector<int64_t>* attr_ints(const Op& op, AttrKey key) { return find_as<std::vector<int64_t>>(op, key); }

DType attr_dtype(const Op& op, AttrKey key) {
  const auto* value = find_as<DType>(op, key);
  return value ? *value : DType::invalid;
}

const Shape* attr_shape(const Op& op, AttrKey key) { return find_as<Shape>(op, key); }

}  // namespace quartet::graph
