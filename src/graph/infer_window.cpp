// Type rules of windows and convolutions.
#include "graph/infer_rules.h"

namespace quartet::graph {
namespace {

// The attribute's values for `count` windowed axes; absent: all 1.
Result<std::vector<int64_t>> per_window(const InferInput& in, AttrKey key, size_t count) {
  const auto* values = ints_attr(in, key);
  if (values == nullptr) return std::vector<int64_t>(count, 1);
  if (values->size() != count)
    return make_error(Code::invalid_argument, "%zu %s for %zu windowed axes", values->size(), attr_key_name(key),
                      count);
  return *values;
}

// How many windows an axis has.
IntExpr windows(const IntExpr& dim, const IntExpr& size, int64_t stride, int64_t dilation, const Dims& dims) {
  const IntExpr count =
      floor_div(dim - (size - IntExpr(1)) * IntExpr(dilation) - IntExpr(1), IntExpr(stride)) + IntExpr(1);
  return dims.simplify(dims.at_least(count, 0) ? count : max(count, IntExpr(0)));
}

// The windows of the axes x[at...] with the filter axes w[from...].
Result<Shape> convolved(const InferInput& in, size_t at, size_t from, size_t count) {
  const TensorType &x = *in.operands[0], &w = *in.operands[1];
  QUARTET_ASSIGN(const auto strides, per_window(in, AttrKey::strides, count));
  QUARTET_ASSIGN(const auto dilations, per_window(in, AttrKey::dilations, count));
  Shape shape;
  for (size_t i = 0; i < count; ++i)
    shape.push_back(windows(x.shape[at + i], w.shape[from + i], strides[i], dilations[i], in.dims));
  return shape;
}

Status channels_differ(const InferInput& in, const IntExpr& a, const IntExpr& b) {
  return make_error(Code::invalid_argument, "the channels differ: %s in the operand, %s in the filters",
                    in.dims.text(a).c_str(), in.dims.text(b).c_str());
}

}  // namespace

Result<TensorType> infer_window(const InferInput& in) {
  TensorType to = *in.operands[0];
  const std::vector<int64_t>& axes = *ints_attr(in, AttrKey::axes);
  QUARTET_ASSIGN(const auto sizes, per_window(in, AttrKey::sizes, axes.size()));
  QUARTET_ASSIGN(const auto strides, per_window(in, AttrKey::strides, axes.size()));
  QUARTET_ASSIGN(const auto dilations, per_window(in, AttrKey::dilations, axes.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    IntExpr& dim = to.shape[static_cast<size_t>(axes[i])];
    dim = windows(dim, IntExpr(sizes[i]), strides[i], dilations[i], in.dims);
  }
  to.shape.insert(to.shape.end(), sizes.begin(), sizes.end());
  return to;
}

Result<Types> infer_convolve(const InferInput& in) {
  const TensorType &x = *in.operands[0], &w = *in.operands[1];
  if (x.rank() < 3 || w.rank() != x.rank())
    return make_error(Code::invalid_argument, "x of rank %zu by filters of rank %zu; wanted the same rank, at least 3",
                      x.rank(), w.rank());
  const size_t rank = x.rank(), spatial = rank - 3;
  if (!in.dims.same(x.shape[rank - 2], w.shape[rank - 2]))
    return make_error(Code::invalid_argument, "%s groups in the operand, %s in the filters",
                      in.dims.text(x.shape[rank - 2]).c_str(), in.dims.text(w.shape[rank - 2]).c_str());
  if (!in.dims.same(x.shape[rank - 1], w.shape[rank - 3]))
    return channels_differ(in, x.shape[rank - 1], w.shape[rank - 3]);
  QUARTET_ASSIGN(const Shape windows, convolved(in, 1, 0, spatial));
  TensorType to{x.dtype, {x.shape[0]}};
  to.shape.insert(to.shape.end(), windows.begin(), windows.end());
  to.shape.push_back(w.shape[rank - 2]);
  to.shape.push_back(w.shape[rank - 1]);
  return Types{std::move(to)};
}

Result<Types> infer_conv(const InferInput& in) {
  const TensorType &x = *in.operands[0], &w = *in.operands[1];
  if (x.rank() < 2 || w.rank() != x.rank() || x.rank() >= kMaxRank)
    return make_error(Code::invalid_argument, "x of rank %zu by filters of rank %zu; wanted the same rank, 2 to %zu",
                      x.rank(), w.rank(), kMaxRank - 1);
  const int64_t groups = int_attr(in, AttrKey::groups);
  const auto filters = w.shape[0].constant();
  if (groups != 1 && (!filters || *filters % groups != 0))
    return make_error(Code::invalid_argument, "%s filters in %lld groups", in.dims.text(w.shape[0]).c_str(),
                      static_cast<long long>(groups));
  const IntExpr channels = w.shape[1] * IntExpr(groups);
  if (!in.dims.same(x.shape[1], channels)) return channels_differ(in, x.shape[1], channels);
  QUARTET_ASSIGN(const Shape windows, convolved(in, 2, 2, x.rank() - 2));
  TensorType to{x.dtype, {x.shape[0], w.shape[0]}};
  to.shape.insert(to.shape.end(), windows.begin(), windows.end());
  return Types{std::move(to)};
}

}  // namespace quartet::graph
