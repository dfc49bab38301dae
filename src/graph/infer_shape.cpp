// Type rules of iota, dims, views and data movement.
#include "graph/infer_rules.h"

namespace quartet::graph {
namespace {

Result<Types> reshape(const InferInput& in) {
  const TensorType& from = *in.operands[0];
  TensorType to{from.dtype, shape_attr(in, AttrKey::shape)};
  const IntExpr before = from.elements(), after = to.elements();
  if (!before.is_valid() || !in.dims.same(before, after))
    return make_error(Code::invalid_argument, "%s has %s elements, %s has %s", in.dims.text(from.shape).c_str(),
                      in.dims.text(before).c_str(), in.dims.text(to.shape).c_str(), in.dims.text(after).c_str());
  return Types{std::move(to)};
}

Result<Types> transpose(const InferInput& in) {
  const TensorType& from = *in.operands[0];
  TensorType to{from.dtype, {}};
  for (const int64_t axis : *ints_attr(in, AttrKey::perm)) to.shape.push_back(from.shape[static_cast<size_t>(axis)]);
  return Types{std::move(to)};
}

Result<Types> expand(const InferInput& in) {
  const TensorType& from = *in.operands[0];
  TensorType to{from.dtype, shape_attr(in, AttrKey::shape)};
  const auto bad = [&] {
    return make_error(Code::invalid_argument, "%s does not expand to %s", in.dims.text(from.shape).c_str(),
                      in.dims.text(to.shape).c_str());
  };
  if (from.rank() > to.rank()) return bad();
  const size_t offset = to.rank() - from.rank();
  for (size_t i = 0; i < from.rank(); ++i)
    if (!from.shape[i].is(1) && !in.dims.same(from.shape[i], to.shape[offset + i])) return bad();
  return Types{std::move(to)};
}

// Which dims are the same is not known; two different numbers never are. What is only known inside a run cannot be
// checked before it.
Result<Types> assume_shape(const InferInput& in) {
  const TensorType& from = *in.operands[0];
  TensorType to{from.dtype, shape_attr(in, AttrKey::shape)};
  bool can_be = from.rank() == to.rank();
  for (size_t i = 0; can_be && i < to.rank(); ++i) {
    if (in.dims.same(from.shape[i], to.shape[i])) continue;
    can_be = !(from.shape[i].is_constant() && to.shape[i].is_constant());
    for (const IntExpr& dim : {from.shape[i], to.shape[i]})
      for (const Symbol s : dim.symbols()) can_be = can_be && in.dims.is_entry_known(s);
  }
  if (can_be) return Types{std::move(to)};
  return make_error(Code::invalid_argument, "%s cannot be assumed to be %s", in.dims.text(from.shape).c_str(),
                    in.dims.text(to.shape).c_str());
}

// Bounds must hold for every value of the symbols: a slice never reads outside its operand.
Result<IntExpr> sliced_extent(const IntExpr& dim, const IntExpr& start, const IntExpr& limit, int64_t step,
                              const Dims& dims) {
  const auto require = [&dims](bool holds, const char* what, const IntExpr& a, const IntExpr& b) -> Status {
    if (holds) return {};
    return make_error(Code::invalid_argument, "%s: %s is not known to be at most %s", what, dims.text(a).c_str(),
                      dims.text(b).c_str());
  };
  IntExpr span;
  if (step > 0) {
    QUARTET_TRY(require(dims.at_least(start, 0), "slice start", 0, start));
    QUARTET_TRY(require(dims.at_least(dim, limit), "slice limit", limit, dim));
    span = limit - start;
  } else {
    QUARTET_TRY(require(dims.at_least(start, -1), "slice start", -1, start));
    QUARTET_TRY(require(dims.at_least(dim - IntExpr(1), start), "slice start", start, dim - IntExpr(1)));
    QUARTET_TRY(require(dims.at_least(limit, -1), "slice limit", -1, limit));
    span = start - limit;
  }
  const IntExpr extent = ceil_div(span, IntExpr(step > 0 ? step : -step));
  return dims.simplify(dims.at_least(span, 0) ? extent : max(extent, IntExpr(0)));
}

Result<Types> slice(const InferInput& in) {
  const TensorType& from = *in.operands[0];
  const Shape &starts = shape_attr(in, AttrKey::starts), &limits = shape_attr(in, AttrKey::limits);
  const auto* steps = ints_attr(in, AttrKey::steps);
  TensorType to{from.dtype, {}};
  for (size_t i = 0; i < from.rank(); ++i) {
    auto extent = sliced_extent(from.shape[i], starts[i], limits[i], steps ? (*steps)[i] : 1, in.dims);
    if (!extent) return extent.status().with_prefix("axis " + std::to_string(i) + ": ");
    to.shape.push_back(extent.take());
  }
  return Types{std::move(to)};
}

Result<Types> concat(const InferInput& in) {
  TensorType to = *in.operands[0];
  const auto axis = static_cast<size_t>(int_attr(in, AttrKey::axis));
  for (size_t k = 1; k < in.operands.size(); ++k) {
    const TensorType& next = *in.operands[k];
    bool agree = next.rank() == to.rank();
    for (size_t i = 0; agree && i < to.rank(); ++i) agree = i == axis || in.dims.same(next.shape[i], to.shape[i]);
    if (!agree)
      return make_error(Code::invalid_argument, "%s does not continue %s along axis %zu",
                        in.dims.text(next.shape).c_str(), in.dims.text(in.operands[0]->shape).c_str(), axis);
    to.shape[axis] = to.shape[axis] + next.shape[axis];
  }
  to.shape[axis] = in.dims.simplify(to.shape[axis]);
  return Types{std::move(to)};
}

Result<Types> pad(const InferInput& in) {
  if (in.operands[1]->rank() != 0)
    return make_error(Code::invalid_argument, "the fill has shape %s, not []",
                      in.dims.text(in.operands[1]->shape).c_str());
  TensorType to = *in.operands[0];
  const Shape &low = shape_attr(in, AttrKey::low), &high = shape_attr(in, AttrKey::high);
  for (size_t i = 0; i < to.rank(); ++i) {
    for (const IntExpr& amount : {low[i], high[i]})
      if (!in.dims.at_least(amount, 0))
        return make_error(Code::invalid_argument, "axis %zu: padding %s may be negative", i,
                          in.dims.text(amount).c_str());
    to.shape[i] = in.dims.simplify(to.shape[i] + low[i] + high[i]);
  }
  return Types{std::move(to)};
}

Result<Types> gather(const InferInput& in) {
  const TensorType &from = *in.operands[0], &indices = *in.operands[1];
  if (!is_int(indices.dtype))
    return make_error(Code::invalid_argument, "the indices are %s, not integers", dtype_name(indices.dtype));
  const auto axis = int_attr(in, AttrKey::axis);
  TensorType to{from.dtype, {from.shape.begin(), from.shape.begin() + axis}};
  to.shape.insert(to.shape.end(), indices.shape.begin(), indices.shape.end());
  to.shape.insert(to.shape.end(), from.shape.begin() + axis + 1, from.shape.end());
  return Types{std::move(to)};
}

Result<Types> scatter(const InferInput& in) {
  const TensorType &x = *in.operands[0], &indices = *in.operands[1], &updates = *in.operands[2];
  if (!is_int(indices.dtype))
    return make_error(Code::invalid_argument, "the indices are %s, not integers", dtype_name(indices.dtype));
  if (x.rank() != 2 || indices.rank() != 1 || updates.rank() != 2)
    return make_error(Code::invalid_argument, "x, indices and updates have ranks %zu, %zu and %zu, not 2, 1 and 2",
                      x.rank(), indices.rank(), updates.rank());
  if (!in.dims.same(updates.shape[0], indices.shape[0]) || !in.dims.same(updates.shape[1], x.shape[1]))
    return make_error(Code::invalid_argument, "updates of %s do not fit x of %s and indices of %s",
                      in.dims.text(updates.shape).c_str(), in.dims.text(x.shape).c_str(),
                      in.dims.text(indices.shape).c_str());
  if (x.dtype == DType::boolean && int_attr(in, AttrKey::combine) != 0)
    return Status(Code::invalid_argument, "bool is neither added nor compared");
  return Types{x};
}

}  // namespace

Result<Types> infer_source(const InferInput& in) {
  if (in.code == OpCode::constant) {
    if (!in.constant) return make_error(Code::invalid_argument, "no constant of that number");
    return Types{*in.constant};
  }
  const Shape& shape = shape_attr(in, AttrKey::shape);
  if (in.code == OpCode::dims) return Types{{DType::i64, {static_cast<int64_t>(shape.size())}}};
  const DType dtype = std::get<DType>(in.attrs.at(AttrKey::dtype));
  if (!contains(TypeSet::number, dtype))
    return make_error(Code::invalid_argument, "dtype: %s counts nothing", dtype_name(dtype));
  return Types{{dtype, shape}};
}

Result<Types> infer_view(const InferInput& in) {
  switch (in.code) {
    case OpCode::identity:
      return Types{*in.operands[0]};
    case OpCode::reshape:
      return reshape(in);
    case OpCode::transpose:
      return transpose(in);
    case OpCode::expand:
      return expand(in);
    case OpCode::assume_shape:
      return assume_shape(in);
    case OpCode::slice:
      return slice(in);
    case OpCode::window: {
      QUARTET_ASSIGN(TensorType to, infer_window(in));
      return Types{std::move(to)};
    }
    default:
      return make_error(Code::internal, "%s has no type rule", op_info(in.code).name);
  }
}

Result<Types> infer_data(const InferInput& in) {
  switch (in.code) {
    case OpCode::concat:
      return concat(in);
    case OpCode::pad:
      return pad(in);
    case OpCode::gather:
      return gather(in);
    case OpCode::scatter:
      return scatter(in);
    default:
      return make_error(Code::internal, "%s has no type rule", op_info(in.code).name);
  }
}

}  // namespace quartet::graph
