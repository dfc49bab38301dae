// Type rules of reductions and of matmul.
#include <algorithm>

#include "graph/infer_rules.h"

namespace quartet::graph {
namespace {

bool gives_index(OpCode code) { return code == OpCode::argmax || code == OpCode::argmin; }

// Whether the result keeps the operand's shape.
bool keeps_shape(OpCode code) { return code == OpCode::softmax || code == OpCode::log_softmax; }

}  // namespace

Result<Types> infer_reduction(const InferInput& in) {
  const TensorType& from = *in.operands[0];
  if (keeps_shape(in.code)) return Types{from};
  const auto* axes = ints_attr(in, AttrKey::axes);
  const std::vector<int64_t> reduced = axes ? *axes : std::vector<int64_t>{int_attr(in, AttrKey::axis)};
  const bool keep = in.code == OpCode::softmax_stats || int_attr(in, AttrKey::keepdims) != 0;
  TensorType to{gives_index(in.code) ? DType::i64 : from.dtype, {}};
  for (size_t i = 0; i < from.rank(); ++i) {
    const bool gone = std::find(reduced.begin(), reduced.end(), static_cast<int64_t>(i)) != reduced.end();
    if (gone && keep) to.shape.push_back(1);
    if (!gone) to.shape.push_back(from.shape[i]);
  }
  if (in.code != OpCode::softmax_stats) return Types{std::move(to)};
  return Types{to, to};
}

Result<Types> infer_matmul(const InferInput& in) {
  const TensorType &a = *in.operands[0], &b = *in.operands[1];
  const bool transpose_a = int_attr(in, AttrKey::transpose_a) != 0,
             transpose_b = int_attr(in, AttrKey::transpose_b) != 0;
  if (a.rank() == 0 || b.rank() == 0) return make_error(Code::invalid_argument, "an operand of rank 0");
  if ((transpose_a && a.rank() == 1) || (transpose_b && b.rank() == 1))
    return make_error(Code::invalid_argument, "a transposed operand of rank 1");
  Shape left = a.shape, right = b.shape;
  if (a.rank() == 1) left.insert(left.begin(), IntExpr(1));
  if (b.rank() == 1) right.push_back(1);
  if (transpose_a) std::swap(left.end()[-1], left.end()[-2]);
  if (transpose_b) std::swap(right.end()[-1], right.end()[-2]);
  const IntExpr rows = left.end()[-2], k = left.end()[-1], columns = right.end()[-1];
  if (!in.dims.same(k, right.end()[-2]))
    return make_error(Code::invalid_argument, "K differs: %s against %s", in.dims.text(k).c_str(),
                      in.dims.text(right.end()[-2]).c_str());
  left.resize(left.size() - 2);
  right.resize(right.size() - 2);
  TensorType to{a.dtype, {}};
  QUARTET_ASSIGN(to.shape, broadcast(left, right, in.dims));
  if (a.rank() > 1) to.shape.push_back(rows);
  if (b.rank() > 1) to.shape.push_back(columns);
  return Types{std::move(to)};
}

}  // namespace quartet::graph
