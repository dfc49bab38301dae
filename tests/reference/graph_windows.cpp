#include "reference/graph_windows.h"

#include "graph/evaluate_rules.h"
#include "reference/graph_ops.h"
#include "reference/scalar.h"

namespace quartet::reference {

namespace {

using graph::AttrKey;
using graph::OpCode;
using graph::Walk;

int64_t attr_at(const graph::Op& op, AttrKey key, size_t i) {
  const std::vector<int64_t>* values = graph::attr_ints(op, key);
  return values ? (*values)[i] : 1;
}

std::vector<long double> numbers_of(const Tensor& tensor) {
  std::vector<long double> numbers;
  numbers.reserve(tensor.elements.size());
  for (const int64_t bits : tensor.elements) numbers.push_back(number_of(tensor.dtype, bits));
  return numbers;
}

// The axes of a convolution, with the strides of each tensor along them.
struct Layout {
  std::vector<int64_t> points;                      // n, group, m, then positions
  std::vector<int64_t> x_points, w_points;          // strides of x and of the filters along them
  std::vector<int64_t> window, x_window, w_window;  // places in a window, then channels
  std::vector<int64_t> out_points;                  // strides of the result
};

Layout layout_of(const graph::Op& op, const Tensor& x, const Tensor& w, const Tensor& out) {
  const auto sx = graph::dense_strides(x.dims), sw = graph::dense_strides(w.dims), so = graph::dense_strides(out.dims);
  const bool first = op.code == OpCode::conv;
  const size_t rank = x.dims.size(), spatial = rank - (first ? 2 : 3), at = first ? 2 : 1, filter = first ? 2 : 0;
  Layout l;
  int64_t channels = 0;
  if (first) {
    const int64_t groups = graph::attr_int(op, AttrKey::groups), m = w.dims[0] / groups;
    channels = w.dims[1];
    l.points = {x.dims[0], groups, m};
    l.x_points = {sx[0], sx[1] * channels, 0};
    l.w_points = {0, sw[0] * m, sw[0]};
    l.out_points = {so[0], so[1] * m, so[1]};
  } else {
    channels = x.dims[rank - 1];
    l.points = {x.dims[0], x.dims[rank - 2], w.dims[rank - 1]};
    l.x_points = {sx[0], sx[rank - 2], 0};
    l.w_points = {0, sw[rank - 2], sw[rank - 1]};
    l.out_points = {so[0], so[rank - 2], so[rank - 1]};
  }
  for (size_t i = 0; i < spatial; ++i) {
    l.points.push_back(out.dims[at + i]);
    l.out_points.push_back(so[at + i]);
    l.x_points.push_back(sx[at + i] * attr_at(op, AttrKey::strides, i));
    l.w_points.push_back(0);
    l.window.push_back(w.dims[filter + i]);
    l.x_window.push_back(sx[at + i] * attr_at(op, AttrKey::dilations, i));
    l.w_window.push_back(sw[filter + i]);
  }
  l.window.push_back(channels);
  l.x_window.push_back(first ? sx[1] : sx[rank - 1]);
  l.w_window.push_back(first ? sw[1] : sw[rank - 3]);
  return l;
}

}  // namespace

Tensor window(const graph::Op& op, const Tensor& x, Tensor out) {
  const std::vector<int64_t>& axes = *graph::attr_ints(op, AttrKey::axes);
  auto strides = graph::dense_strides(x.dims);
  std::vector<int64_t> inner;
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t& stride = strides[static_cast<size_t>(axes[i])];
    inner.push_back(stride * attr_at(op, AttrKey::dilations, i));
    stride *= attr_at(op, AttrKey::strides, i);
  }
  strides.insert(strides.end(), inner.begin(), inner.end());
  Walk walk(out.dims, {std::move(strides)});
  for (int64_t& element : out.elements) {
    element = x.elements[static_cast<size_t>(walk.offset(0))];
    walk.next();
  }
  return out;
}

Tensor convolution(const graph::Op& op, const Tensor& x, const Tensor& w, Tensor out) {
  const Layout l = layout_of(op, x, w, out);
  const bool integers = is_int(x.dtype);
  const std::vector<long double> a = integers ? std::vector<long double>() : numbers_of(x),
                                 b = integers ? std::vector<long double>() : numbers_of(w);
  Walk point(l.points, {l.x_points, l.w_points, l.out_points});
  for (size_t i = 0; i < point.points(); ++i, point.next()) {
    Walk place(l.window, {l.x_window, l.w_window});
    long double sum = 0;
    uint64_t wrapped = 0;
    for (size_t k = 0; k < place.points(); ++k, place.next()) {
      const auto from = static_cast<size_t>(point.offset(0) + place.offset(0)),
                 by = static_cast<size_t>(point.offset(1) + place.offset(1));
      if (integers)
        wrapped += static_cast<uint64_t>(x.elements[from]) * static_cast<uint64_t>(w.elements[by]);
      else
        sum += a[from] * b[by];
    }
    int64_t& element = out.elements[static_cast<size_t>(point.offset(2))];
    const int64_t bits[] = {static_cast<int64_t>(wrapped)};
    element =
        integers ? evaluate(ScalarOp::cast, out.dtype, DType::i64, bits, true).value_or(0) : bits_of(out.dtype, sum);
  }
  return out;
}

}  // namespace quartet::reference
