#include "reference/chains.h"

namespace quartet::reference {

using graph::AttrKey;
using graph::OpCode;
using graph::ValueId;

Result<std::vector<ValueId>> standardise(graph::Builder& builder, ValueId x, int64_t axis, bool and_after) {
  std::vector<int64_t> axes = {axis};
  const auto rank = static_cast<int64_t>(builder.type(x).rank());
  while (and_after && axes.back() + 1 < rank) axes.push_back(axes.back() + 1);
  const DType dtype = builder.type(x).dtype;
  const graph::Attrs rows = {{AttrKey::axes, axes}, {AttrKey::keepdims, int64_t{1}}};
  QUARTET_ASSIGN(const ValueId mean, builder.one(OpCode::reduce_mean, {x}, rows));
  QUARTET_ASSIGN(const ValueId centred, builder.one(OpCode::sub, {x, mean}));
  QUARTET_ASSIGN(const ValueId square, builder.one(OpCode::mul, {centred, centred}));
  QUARTET_ASSIGN(const ValueId variance, builder.one(OpCode::reduce_mean, {square}, rows));
  QUARTET_ASSIGN(const ValueId one, builder.scalar(dtype, 1.0));
  QUARTET_ASSIGN(const ValueId sum, builder.one(OpCode::add, {variance, one}));
  QUARTET_ASSIGN(const ValueId deviation, builder.one(OpCode::sqrt, {sum}));
  return std::vector<ValueId>{centred, deviation};
}

}  // namespace quartet::reference
