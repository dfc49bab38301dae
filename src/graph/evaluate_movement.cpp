// iota, dims, views, concat, pad and gather on constants.
#include <algorithm>
#include <cstring>

#include "graph/constant.h"
#include "graph/evaluate_rules.h"

namespace quartet::graph {
namespace {

// The values of dim expressions that are all numbers.
std::optional<std::vector<int64_t>> numbers(const Shape& shape) {
  std::vector<int64_t> out;
  for (const IntExpr& e : shape) {
    if (!e.is_constant()) return std::nullopt;
    out.push_back(*e.constant());
  }
  return out;
}

// Result elements from an operand at `start` along `strides` (in elements).
Bytes copy_strided(const Constant& from, const TensorType& result, int64_t start, std::vector<int64_t> strides) {
  const size_t size = size_of(result.dtype);
  Walk walk(extents_of(result), {std::move(strides)});
  Bytes out(walk.points() * size);
  for (size_t i = 0; i < walk.points(); ++i, walk.next())
    std::memcpy(out.data() + i * size, from.data + static_cast<size_t>(start + walk.offset(0)) * size, size);
  return out;
}

Bytes transpose(const Op& op, const Constant& from, const TensorType& result) {
  const auto dense = dense_strides(extents_of(from.type));
  std::vector<int64_t> strides;
  for (const int64_t axis : *attr_ints(op, AttrKey::perm)) strides.push_back(dense[static_cast<size_t>(axis)]);
  return copy_strided(from, result, 0, std::move(strides));
}

Bytes expand(const Constant& from, const TensorType& result) {
  const auto extents = extents_of(from.type);
  const auto dense = dense_strides(extents);
  std::vector<int64_t> strides(result.rank(), 0);
  const size_t offset = result.rank() - extents.size();
  for (size_t i = 0; i < extents.size(); ++i)
    if (extents[i] != 1) strides[offset + i] = dense[i];
  return copy_strided(from, result, 0, std::move(strides));
}

std::optional<Bytes> slice(const Op& op, const Constant& from, const TensorType& result) {
  const auto starts = numbers(*attr_shape(op, AttrKey::starts));
  if (!starts) return std::nullopt;
  const auto* steps = attr_ints(op, AttrKey::steps);
  auto strides = dense_strides(extents_of(from.type));
  int64_t start = 0;
  for (size_t i = 0; i < strides.size(); ++i) {
    start += (*starts)[i] * strides[i];
    if (steps) strides[i] *= (*steps)[i];
  }
  return copy_strided(from, result, start, std::move(strides));
}

Bytes window(const Op& op, const Constant& from, const TensorType& result) {
  const std::vector<int64_t>&axes = *attr_ints(op, AttrKey::axes), *moves = attr_ints(op, AttrKey::strides),
        *spread = attr_ints(op, AttrKey::dilations);
  auto strides = dense_strides(extents_of(from.type));
  std::vector<int64_t> inner;
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t& stride = strides[static_cast<size_t>(axes[i])];
    inner.push_back(stride * (spread ? (*spread)[i] : 1));
    stride *= moves ? (*moves)[i] : 1;
  }
  strides.insert(strides.end(), inner.begin(), inner.end());
  return copy_strided(from, result, 0, std::move(strides));
}

Bytes concat(const Op& op, std::span<const Constant* const> operands, const TensorType& result) {
  const auto axis = static_cast<size_t>(attr_int(op, AttrKey::axis));
  const auto extents = extents_of(result);
  size_t rows = 1;
  for (size_t i = 0; i < axis; ++i) rows *= static_cast<size_t>(extents[i]);
  Bytes out;
  for (size_t row = 0; row < rows; ++row)
    for (const Constant* from : operands) {
      const size_t size = from->bytes / rows;
      out.insert(out.end(), from->data + row * size, from->data + (row + 1) * size);
    }
  return out;
}

std::optional<Bytes> pad(const Op& op, const Constant& from, const Constant& fill, const TensorType& result) {
  const auto low = numbers(*attr_shape(op, AttrKey::low));
  if (!low) return std::nullopt;
  const size_t size = size_of(result.dtype);
  const auto strides = dense_strides(extents_of(result));
  Walk all(extents_of(result), {});
  Bytes out(all.points() * size);
  for (size_t i = 0; i < all.points(); ++i) std::memcpy(out.data() + i * size, fill.data, size);
  int64_t start = 0;
  for (size_t i = 0; i < strides.size(); ++i) start += (*low)[i] * strides[i];
  Walk walk(extents_of(from.type), {strides});
  for (size_t i = 0; i < walk.points(); ++i, walk.next())
    std::memcpy(out.data() + static_cast<size_t>(start + walk.offset(0)) * size, from.data + i * size, size);
  return out;
}

Bytes gather(const Op& op, const Constant& from, const Constant& indices, const TensorType& result) {
  const auto axis = static_cast<size_t>(attr_int(op, AttrKey::axis));
  const auto extents = extents_of(from.type);
  const int64_t extent = extents[axis];
  size_t outer = 1, inner = size_of(from.type.dtype);
  for (size_t i = 0; i < axis; ++i) outer *= static_cast<size_t>(extents[i]);
  for (size_t i = axis + 1; i < extents.size(); ++i) inner *= static_cast<size_t>(extents[i]);
  const size_t count = indices.bytes / size_of(indices.type.dtype);
  const bool unsigned_index = is_unsigned_int(indices.type.dtype);
  Bytes out;
  if (extent == 0) {
    out.resize(result.bytes().value_or(0));
    return out;
  }
  out.reserve(result.bytes().value_or(0));
  for (size_t o = 0; o < outer; ++o)
    for (size_t k = 0; k < count; ++k) {
      int64_t index = element_as_int(indices, k);
      if (index < 0) index = unsigned_index ? extent - 1 : index + extent;
      index = std::clamp<int64_t>(index, 0, extent - 1);
      const uint8_t* at = from.data + (o * static_cast<size_t>(extent) + static_cast<size_t>(index)) * inner;
      out.insert(out.end(), at, at + inner);
    }
  return out;
}

// Of those that replace alone.
std::optional<Bytes> scatter(const Op& op, const Constant& from, const Constant& indices, const Constant& updates) {
  if (attr_int(op, AttrKey::combine) != 0) return std::nullopt;
  const auto extents = extents_of(from.type);
  const size_t row = static_cast<size_t>(extents[1]) * size_of(from.type.dtype);
  const bool unsigned_index = is_unsigned_int(indices.type.dtype);
  Bytes out(from.data, from.data + from.bytes);
  for (size_t k = 0; k < indices.bytes / size_of(indices.type.dtype); ++k) {
    int64_t index = element_as_int(indices, k);
    if (index < 0 && !unsigned_index) index += extents[0];
    if (index < 0 || index >= extents[0]) continue;
    std::memcpy(out.data() + static_cast<size_t>(index) * row, updates.data + k * row, row);
  }
  return out;
}

}  // namespace

std::optional<Bytes> evaluate_source(const Op& op, const TensorType& result) {
  if (op.code == OpCode::dims) {
    const auto values = numbers(*attr_shape(op, AttrKey::shape));
    if (!values) return std::nullopt;
    ByteWriter out;
    for (const int64_t value : *values) out.i64(value);
    return out.take();
  }
  const auto axis = static_cast<size_t>(attr_int(op, AttrKey::axis));
  Walk walk(extents_of(result), {});
  Bytes out;
  for (size_t i = 0; i < walk.points(); ++i, walk.next()) {
    const Bytes element = scalar_bytes(result.dtype, walk.index()[axis]);
    out.insert(out.end(), element.begin(), element.end());
  }
  return out;
}

std::optional<Bytes> evaluate_movement(const Op& op, std::span<const Constant* const> operands,
                                       const TensorType& result) {
  const Constant& from = *operands[0];
  switch (op.code) {
    case OpCode::identity:
    case OpCode::reshape:
    case OpCode::assume_shape:
      return Bytes(from.data, from.data + from.bytes);
    case OpCode::transpose:
      return transpose(op, from, result);
    case OpCode::expand:
      return expand(from, result);
    case OpCode::slice:
      return slice(op, from, result);
    case OpCode::window:
      return window(op, from, result);
    case OpCode::concat:
      return concat(op, operands, result);
    case OpCode::pad:
      return pad(op, from, *operands[1], result);
    case OpCode::gather:
      return gather(op, from, *operands[1], result);
    case OpCode::scatter:
      return scatter(op, from, *operands[1], *operands[2]);
    default:
      return std::nullopt;
  }
}

}  // namespace quartet::graph
