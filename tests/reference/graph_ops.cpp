#include "reference/graph_ops.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "reference/graph_windows.h"
#include "reference/scalar.h"

namespace quartet::reference {

namespace {

using graph::AttrKey;
using graph::OpCode;

// Row-major walk over an index space.
class Indices {
 public:
  explicit Indices(std::span<const int64_t> dims) : dims_(dims), index_(dims.size()) {}
  const std::vector<int64_t>& operator*() const { return index_; }
  void next() {
    for (size_t d = dims_.size(); d-- > 0;) {
      if (++index_[d] < dims_[d]) return;
      index_[d] = 0;
    }
  }

 private:
  std::span<const int64_t> dims_;
  std::vector<int64_t> index_;
};

size_t linear(std::span<const int64_t> dims, std::span<const int64_t> index) {
  int64_t at = 0;
  for (size_t d = 0; d < dims.size(); ++d) at = at * dims[d] + index[d];
  return static_cast<size_t>(at);
}

// Position in a tensor that broadcasts to `index`'s space.
size_t broadcast_position(const Tensor& tensor, std::span<const int64_t> index) {
  int64_t at = 0;
  const size_t skip = index.size() - tensor.dims.size();
  for (size_t d = 0; d < tensor.dims.size(); ++d)
    at = at * tensor.dims[d] + (tensor.dims[d] == 1 ? 0 : index[d + skip]);
  return static_cast<size_t>(at);
}

std::optional<long double> transcendental(ScalarOp op, std::span<const long double> x) {
  const auto a = static_cast<double>(x[0]);
  switch (op) {
    case ScalarOp::exp:
      return std::exp(a);
    case ScalarOp::log:
      return std::log(a);
    case ScalarOp::tanh:
      return std::tanh(a);
    case ScalarOp::erf:
      return std::erf(a);
    case ScalarOp::sigmoid:
      return a >= 0 ? 1 / (1 + std::exp(-a)) : std::exp(a) / (1 + std::exp(a));
    case ScalarOp::sin:
      return std::sin(a);
    case ScalarOp::cos:
      return std::cos(a);
    case ScalarOp::pow:
      return std::pow(a, static_cast<double>(x[1]));
    default:
      return std::nullopt;
  }
}

Result<Tensor> elementwise(ScalarOp op, std::span<const Tensor* const> operands, Tensor out) {
  Indices at(out.dims);
  std::vector<int64_t> bits(operands.size());
  std::vector<long double> numbers(operands.size());
  const DType operand_type = operands.back()->dtype;
  for (int64_t& element : out.elements) {
    for (size_t i = 0; i < operands.size(); ++i) {
      bits[i] = operands[i]->elements[broadcast_position(*operands[i], *at)];
      numbers[i] = number_of(operands[i]->dtype, bits[i]);
    }
    if (const auto value = transcendental(op, numbers)) {
      element = bits_of(out.dtype, *value);
    } else {
      const auto exact = evaluate(op, out.dtype, operand_type, bits, true);
      if (!exact) return make_error(Code::internal, "no meaning for scalar op %s", scalar_op_name(op));
      element = *exact;
    }
    at.next();
  }
  return out;
}

// Applies the map from result index to operand position.
Tensor remap(const Tensor& x, Tensor out, const std::function<size_t(const std::vector<int64_t>&)>& position) {
  Indices at(out.dims);
  for (int64_t& element : out.elements) {
    element = x.elements[position(*at)];
    at.next();
  }
  return out;
}

std::vector<bool> axis_mask(const graph::Op& op, size_t rank) {
  std::vector<bool> reduced(rank);
  if (const auto* axes = graph::attr_ints(op, AttrKey::axes))
    for (const int64_t axis : *axes) reduced[static_cast<size_t>(axis)] = true;
  else
    reduced[static_cast<size_t>(graph::attr_int(op, AttrKey::axis))] = true;
  return reduced;
}

// The operand's elements that go into each result element, in order.
std::vector<std::vector<int64_t>> gather_reduced(const Tensor& x, const std::vector<bool>& reduced, size_t results) {
  std::vector<std::vector<int64_t>> lists(results);
  Indices at(x.dims);
  for (const int64_t element : x.elements) {
    int64_t to = 0;
    for (size_t d = 0; d < x.dims.size(); ++d)
      if (!reduced[d]) to = to * x.dims[d] + (*at)[d];
    lists[static_cast<size_t>(to)].push_back(element);
    at.next();
  }
  return lists;
}

int64_t wrap(DType dtype, int64_t value) {
  const int64_t bits[] = {value};
  return evaluate(ScalarOp::cast, dtype, DType::i64, bits, true).value_or(0);
}

int64_t fold_integers(OpCode code, DType dtype, const std::vector<int64_t>& list) {
  uint64_t total = code == OpCode::reduce_prod ? 1 : 0;
  for (const int64_t element : list) {
    const auto value = static_cast<uint64_t>(element);
    if (code == OpCode::reduce_prod)
      total *= value;
    else if (code == OpCode::reduce_sum_square)
      total += value * value;
    else
      total += code == OpCode::reduce_l1 && is_signed_int(dtype) && element < 0 ? uint64_t{0} - value : value;
  }
  return wrap(dtype, static_cast<int64_t>(total));
}

int64_t extreme(DType dtype, const std::vector<int64_t>& list, bool smallest) {
  const ScalarOp op = smallest ? ScalarOp::min : ScalarOp::max;
  long double start = smallest ? INFINITY : -INFINITY;
  int64_t best = bits_of(dtype, start);
  for (const int64_t element : list) {
    const int64_t pair[] = {best, element};
    best = evaluate(op, dtype, dtype, pair, true).value_or(0);
  }
  return best;
}

int64_t reduce_list(OpCode code, DType dtype, const std::vector<int64_t>& list) {
  if (code == OpCode::reduce_max || code == OpCode::reduce_min) return extreme(dtype, list, code == OpCode::reduce_min);
  if (code == OpCode::reduce_all) return std::all_of(list.begin(), list.end(), [](int64_t b) { return b != 0; });
  if (code == OpCode::reduce_any) return std::any_of(list.begin(), list.end(), [](int64_t b) { return b != 0; });
  if (is_int(dtype) && code != OpCode::reduce_mean) return fold_integers(code, dtype, list);
  const bool product = code == OpCode::reduce_prod;
  long double total = product ? 1 : 0, highest = -INFINITY;
  for (const int64_t element : list) highest = std::fmax(highest, number_of(dtype, element));
  if (!std::isfinite(highest)) highest = 0;
  for (const int64_t element : list) {
    const long double v = number_of(dtype, element);
    switch (code) {
      case OpCode::reduce_prod:
        total *= v;
        break;
      case OpCode::reduce_sum_square:
      case OpCode::reduce_l2:
        total += v * v;
        break;
      case OpCode::reduce_l1:
        total += std::fabs(v);
        break;
      case OpCode::reduce_log_sum_exp:
        total += std::exp(v - highest);
        break;
      default:
        total += v;
    }
  }
  if (code == OpCode::reduce_mean) {
    if (is_int(dtype)) {
      const int64_t pair[] = {fold_integers(OpCode::reduce_sum, dtype, list),
                              wrap(dtype, static_cast<int64_t>(list.size()))};
      return evaluate(ScalarOp::div, dtype, dtype, pair, true).value_or(0);
    }
    total /= static_cast<long double>(list.size());
  }
  if (code == OpCode::reduce_l2) total = std::sqrt(total);
  if (code == OpCode::reduce_log_sum) total = std::log(total);
  if (code == OpCode::reduce_log_sum_exp) total = std::log(total) + highest;
  return bits_of(dtype, total);
}

Tensor reduce(const graph::Op& op, const Tensor& x, Tensor out) {
  const auto lists = gather_reduced(x, axis_mask(op, x.dims.size()), out.elements.size());
  const bool argmax = op.code == OpCode::argmax, argmin = op.code == OpCode::argmin;
  for (size_t i = 0; i < lists.size(); ++i) {
    if (!argmax && !argmin) {
      out.elements[i] = reduce_list(op.code, x.dtype, lists[i]);
      continue;
    }
    const bool last = graph::attr_int(op, AttrKey::select_last_index) != 0;
    int64_t best = -1;
    for (size_t j = 0; j < lists[i].size(); ++j) {
      const int order = best < 0 ? 1 : compare_best(x.dtype, lists[i][j], lists[i][static_cast<size_t>(best)], argmin);
      if (order > 0 || (order == 0 && last)) best = static_cast<int64_t>(j);
    }
    out.elements[i] = best;
  }
  return out;
}

// Maximum and sum of exp(x - maximum) of a line.
struct Stats {
  long double maximum = -INFINITY, sum = 0;
};
Stats softmax_stats(DType dtype, const std::vector<int64_t>& list) {
  Stats stats;
  bool nan = false;
  for (const int64_t element : list) {
    const long double v = number_of(dtype, element);
    nan = nan || std::isnan(v);
    stats.maximum = std::fmax(stats.maximum, v);
  }
  if (nan) return {NAN, NAN};
  for (const int64_t element : list) stats.sum += std::exp(number_of(dtype, element) - stats.maximum);
  return stats;
}

Tensor softmax(const graph::Op& op, const Tensor& x, Tensor out) {
  const auto axis = static_cast<size_t>(graph::attr_int(op, AttrKey::axis));
  std::vector<bool> reduced(x.dims.size());
  reduced[axis] = true;
  const int64_t lines = x.dims[axis] ? element_count(x.dims) / x.dims[axis] : 0;
  const auto lists = gather_reduced(x, reduced, static_cast<size_t>(lines));
  std::vector<Stats> stats;
  for (const auto& list : lists) stats.push_back(softmax_stats(x.dtype, list));
  Indices at(x.dims);
  for (size_t i = 0; i < x.elements.size(); ++i, at.next()) {
    int64_t line = 0;
    for (size_t d = 0; d < x.dims.size(); ++d)
      if (d != axis) line = line * x.dims[d] + (*at)[d];
    const Stats& s = stats[static_cast<size_t>(line)];
    const long double shifted = number_of(x.dtype, x.elements[i]) - s.maximum;
    out.elements[i] =
        bits_of(out.dtype, op.code == OpCode::softmax ? std::exp(shifted) / s.sum : shifted - std::log(s.sum));
  }
  return out;
}

// A matrix operand: strides of its rows and columns and where a batch begins.
struct MatrixView {
  const Tensor& tensor;
  bool transposed, is_row, is_column;
  int64_t rows, columns;

  MatrixView(const Tensor& t, bool swap, bool left) : tensor(t), transposed(swap) {
    const size_t rank = t.dims.size();
    is_row = rank == 1 && left;
    is_column = rank == 1 && !left;
    rows = is_row ? 1 : is_column ? t.dims[0] : t.dims[rank - (swap ? 1 : 2)];
    columns = is_column ? 1 : is_row ? t.dims[0] : t.dims[rank - (swap ? 2 : 1)];
  }
  int64_t at(int64_t base, int64_t row, int64_t column) const {
    const int64_t stored_columns = transposed ? rows : columns;
    const int64_t position = transposed ? column * stored_columns + row : row * stored_columns + column;
    return tensor.elements[static_cast<size_t>(base + position)];
  }
  int64_t base(std::span<const int64_t> batch) const {
    if (tensor.dims.size() <= 2) return 0;
    const size_t own = tensor.dims.size() - 2;
    int64_t index = 0;
    for (size_t d = 0; d < own; ++d)
      index = index * tensor.dims[d] + (tensor.dims[d] == 1 ? 0 : batch[batch.size() - own + d]);
    return index * rows * columns;
  }
};

Tensor matmul(const graph::Op& op, const Tensor& a, const Tensor& b, Tensor out) {
  const MatrixView left(a, graph::attr_int(op, AttrKey::transpose_a) != 0, true);
  const MatrixView right(b, graph::attr_int(op, AttrKey::transpose_b) != 0, false);
  const size_t batch_rank = out.dims.size() - (left.is_row ? 0 : 1) - (right.is_column ? 0 : 1);
  const std::span<const int64_t> batch_dims(out.dims.data(), batch_rank);
  Indices batch(batch_dims);
  size_t next = 0;
  for (int64_t n = element_count(batch_dims); n-- > 0; batch.next()) {
    const int64_t base_a = left.base(*batch), base_b = right.base(*batch);
    for (int64_t i = 0; i < left.rows; ++i)
      for (int64_t j = 0; j < right.columns; ++j) {
        long double sum = 0;
        uint64_t wrapped = 0;
        for (int64_t k = 0; k < left.columns; ++k) {
          const int64_t x = left.at(base_a, i, k), y = right.at(base_b, k, j);
          if (is_int(a.dtype))
            wrapped += static_cast<uint64_t>(x) * static_cast<uint64_t>(y);
          else
            sum += number_of(a.dtype, x) * number_of(b.dtype, y);
        }
        out.elements[next++] =
            is_int(a.dtype) ? wrap(out.dtype, static_cast<int64_t>(wrapped)) : bits_of(out.dtype, sum);
      }
  }
  return out;
}

Tensor concat(const graph::Op& op, std::span<const Tensor* const> operands, Tensor out) {
  const auto axis = static_cast<size_t>(graph::attr_int(op, AttrKey::axis));
  Indices at(out.dims);
  for (int64_t& element : out.elements) {
    std::vector<int64_t> index = *at;
    size_t part = 0;
    while (index[axis] >= operands[part]->dims[axis]) index[axis] -= operands[part++]->dims[axis];
    element = operands[part]->elements[linear(operands[part]->dims, index)];
    at.next();
  }
  return out;
}

Tensor gather(const graph::Op& op, const Tensor& x, const Tensor& indices, Tensor out) {
  const auto axis = static_cast<size_t>(graph::attr_int(op, AttrKey::axis));
  const int64_t extent = x.dims[axis];
  if (extent == 0) return out;
  return remap(x, std::move(out), [&](const std::vector<int64_t>& at) {
    std::vector<int64_t> index(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(axis));
    const std::span<const int64_t> inner(at.data() + axis, indices.dims.size());
    int64_t chosen = indices.elements[linear(indices.dims, inner)];
    if (indices.dtype == DType::u64 && chosen < 0) chosen = extent;  // beyond every extent
    if (chosen < 0) chosen += extent;
    index.push_back(std::clamp<int64_t>(chosen, 0, extent - 1));
    index.insert(index.end(), at.begin() + static_cast<std::ptrdiff_t>(axis + indices.dims.size()), at.end());
    return linear(x.dims, index);
  });
}

ScalarOp combine_op(int64_t combine) {
  constexpr ScalarOp kOps[] = {ScalarOp::add, ScalarOp::mul, ScalarOp::min, ScalarOp::max};
  return kOps[combine - 1];
}

Tensor scatter(const graph::Op& op, const Tensor& x, const Tensor& indices, const Tensor& updates, Tensor out) {
  const int64_t combine = graph::attr_int(op, AttrKey::combine);
  out.elements = x.elements;
  for (int64_t k = 0; k < indices.dims[0]; ++k) {
    int64_t row = indices.elements[static_cast<size_t>(k)];
    if (indices.dtype == DType::u64 && row < 0) continue;  // beyond every extent
    if (row < 0) row += x.dims[0];
    if (row < 0 || row >= x.dims[0]) continue;
    for (int64_t c = 0; c < x.dims[1]; ++c) {
      int64_t& there = out.elements[static_cast<size_t>(row * x.dims[1] + c)];
      const int64_t update = updates.elements[static_cast<size_t>(k * x.dims[1] + c)];
      const int64_t pair[] = {there, update};
      there = combine == 0 ? update : evaluate(combine_op(combine), x.dtype, x.dtype, pair, true).value_or(0);
    }
  }
  return out;
}

Result<std::vector<int64_t>> extents(const graph::Shape& shape, const ExtentOf& extent_of) {
  std::vector<int64_t> values;
  for (const IntExpr& e : shape) {
    QUARTET_ASSIGN(const int64_t value, extent_of(e));
    values.push_back(value);
  }
  return values;
}

Result<Tensor> view(const graph::Op& op, const Tensor& x, Tensor out, const ExtentOf& extent_of) {
  switch (op.code) {
    case OpCode::assume_shape:
      if (x.dims != out.dims) return make_error(Code::invalid_argument, "the dims are not as assumed");
      out.elements = x.elements;
      return out;
    case OpCode::identity:
    case OpCode::reshape:
      out.elements = x.elements;
      return out;
    case OpCode::transpose: {
      const std::vector<int64_t>& perm = *graph::attr_ints(op, AttrKey::perm);
      return remap(x, std::move(out), [&](const std::vector<int64_t>& at) {
        std::vector<int64_t> index(at.size());
        for (size_t d = 0; d < at.size(); ++d) index[static_cast<size_t>(perm[d])] = at[d];
        return linear(x.dims, index);
      });
    }
    case OpCode::window:
      return window(op, x, std::move(out));
    case OpCode::expand:
      return remap(x, std::move(out), [&](const std::vector<int64_t>& at) { return broadcast_position(x, at); });
    default: {
      QUARTET_ASSIGN(const std::vector<int64_t> starts, extents(*graph::attr_shape(op, AttrKey::starts), extent_of));
      const std::vector<int64_t>* steps = graph::attr_ints(op, AttrKey::steps);
      return remap(x, std::move(out), [&](const std::vector<int64_t>& at) {
        std::vector<int64_t> index(at.size());
        for (size_t d = 0; d < at.size(); ++d) index[d] = starts[d] + at[d] * (steps ? (*steps)[d] : 1);
        return linear(x.dims, index);
      });
    }
  }
}

Result<Tensor> pad(const graph::Op& op, const Tensor& x, const Tensor& fill, Tensor out, const ExtentOf& extent_of) {
  QUARTET_ASSIGN(const std::vector<int64_t> low, extents(*graph::attr_shape(op, AttrKey::low), extent_of));
  Indices at(out.dims);
  for (int64_t& element : out.elements) {
    std::vector<int64_t> index = *at;
    bool inside = true;
    for (size_t d = 0; d < index.size(); ++d) {
      index[d] -= low[d];
      inside = inside && index[d] >= 0 && index[d] < x.dims[d];
    }
    element = inside ? x.elements[linear(x.dims, index)] : fill.elements[0];
    at.next();
  }
  return out;
}

Result<Tensor> source(const graph::Graph& graph, const graph::Op& op, Tensor out, const ExtentOf& extent_of) {
  if (op.code == OpCode::constant) {
    const graph::Constant& constant = graph.constants[static_cast<size_t>(op.constant)];
    return Tensor::from_memory(constant.type.dtype, out.dims, constant.data);
  }
  if (op.code == OpCode::dims) {
    QUARTET_ASSIGN(out.elements, extents(*graph::attr_shape(op, AttrKey::shape), extent_of));
    return out;
  }
  const auto axis = static_cast<size_t>(graph::attr_int(op, AttrKey::axis));
  Indices at(out.dims);
  for (int64_t& element : out.elements) {
    const int64_t bits[] = {(*at)[axis]};
    element = evaluate(ScalarOp::cast, out.dtype, DType::i64, bits, true).value_or(0);
    at.next();
  }
  return out;
}

Tensor composite(OpCode code, std::span<const Tensor* const> operands, Tensor out) {
  Indices at(out.dims);
  const DType type = operands[0]->dtype;
  for (int64_t& element : out.elements) {
    const int64_t a = operands[0]->elements[broadcast_position(*operands[0], *at)];
    const int64_t b = operands.size() > 1 ? operands[1]->elements[broadcast_position(*operands[1], *at)] : 0;
    const long double x = number_of(type, a);
    const int64_t pair[] = {a, b}, swapped[] = {b, a};
    switch (code) {
      case OpCode::sign:
        element = std::isnan(x) || x == 0 ? a : bits_of(type, x > 0 ? 1 : -1);
        break;
      case OpCode::reciprocal:
        element = bits_of(type, 1 / x);
        break;
      case OpCode::relu:
        element = std::isnan(x) ? a : x > 0 ? a : 0;
        break;
      case OpCode::is_nan:
        element = std::isnan(x);
        break;
      case OpCode::greater:
        element = evaluate(ScalarOp::lt, DType::boolean, type, swapped, true).value_or(0);
        break;
      case OpCode::greater_equal:
        element = evaluate(ScalarOp::le, DType::boolean, type, swapped, true).value_or(0);
        break;
      default: {  // floor_mod
        const int64_t r = evaluate(ScalarOp::rem, type, type, pair, true).value_or(0);
        const long double rest = number_of(type, r), y = number_of(type, b);
        const int64_t sum[] = {r, b};
        element = rest != 0 && (rest < 0) != (y < 0) ? evaluate(ScalarOp::add, type, type, sum, true).value_or(0) : r;
      }
    }
    at.next();
  }
  return out;
}

}  // namespace

int64_t element_count(std::span<const int64_t> dims) {
  int64_t count = 1;
  for (const int64_t d : dims) count *= d;
  return count;
}

long double number_of(DType dtype, int64_t bits) {
  switch (dtype) {
    case DType::f64:
      return std::bit_cast<double>(bits);
    case DType::f32:
      return std::bit_cast<float>(static_cast<uint32_t>(bits));
    case DType::u64:
      return static_cast<long double>(static_cast<uint64_t>(bits));
    case DType::f16:
    case DType::bf16: {
      const int64_t operand[] = {bits};
      const int64_t wide = evaluate(ScalarOp::cast, DType::f32, dtype, operand, true).value_or(0);
      return std::bit_cast<float>(static_cast<uint32_t>(wide));
    }
    default:
      return static_cast<long double>(bits);
  }
}

int64_t bits_of(DType dtype, long double value) {
  if (dtype == DType::f32) return static_cast<int64_t>(std::bit_cast<uint32_t>(static_cast<float>(value)));
  const int64_t wide[] = {std::bit_cast<int64_t>(static_cast<double>(value))};
  return evaluate(ScalarOp::cast, dtype, DType::f64, wide, true).value_or(0);
}

Result<std::vector<Tensor>> run_op(const graph::Graph& graph, const graph::Op& op,
                                   std::span<const Tensor* const> operands,
                                   std::span<const graph::TensorType* const> types, const ExtentOf& extent_of) {
  std::vector<Tensor> out;
  for (const graph::TensorType* type : types) {
    QUARTET_ASSIGN(std::vector<int64_t> dims, extents(type->shape, extent_of));
    out.push_back(Tensor::zeros(type->dtype, std::move(dims)));
  }
  const graph::OpInfo& info = graph::op_info(op.code);
  const auto one = [&](Result<Tensor> result) -> Result<std::vector<Tensor>> {
    if (!result.ok()) return result.status();
    return std::vector<Tensor>{result.take()};
  };
  if (op.code == OpCode::convolve || op.code == OpCode::conv)
    return one(convolution(op, *operands[0], *operands[1], std::move(out[0])));
  if (info.scalar) return one(elementwise(*info.scalar, operands, std::move(out[0])));
  switch (info.op_class) {
    case graph::OpClass::constant:
      return one(source(graph, op, std::move(out[0]), extent_of));
    case graph::OpClass::view:
      return one(view(op, *operands[0], std::move(out[0]), extent_of));
    case graph::OpClass::contraction:
      return one(matmul(op, *operands[0], *operands[1], std::move(out[0])));
    case graph::OpClass::data:
      if (op.code == OpCode::concat) return one(concat(op, operands, std::move(out[0])));
      if (op.code == OpCode::scatter)
        return one(scatter(op, *operands[0], *operands[1], *operands[2], std::move(out[0])));
      if (op.code == OpCode::gather) return one(gather(op, *operands[0], *operands[1], std::move(out[0])));
      return one(pad(op, *operands[0], *operands[1], std::move(out[0]), extent_of));
    default:
      break;
  }
  if (op.code == OpCode::softmax_stats) {
    const auto lists = gather_reduced(*operands[0], axis_mask(op, operands[0]->dims.size()), out[0].elements.size());
    for (size_t i = 0; i < lists.size(); ++i) {
      const Stats stats = softmax_stats(operands[0]->dtype, lists[i]);
      out[0].elements[i] = bits_of(out[0].dtype, stats.maximum);
      out[1].elements[i] = bits_of(out[1].dtype, stats.sum);
    }
    return out;
  }
  if (op.code == OpCode::softmax || op.code == OpCode::log_softmax)
    return one(softmax(op, *operands[0], std::move(out[0])));
  if (graph::attr_ints(op, AttrKey::axes) || op.code == OpCode::argmax || op.code == OpCode::argmin)
    return one(reduce(op, *operands[0], std::move(out[0])));
  return one(composite(op.code, operands, std::move(out[0])));
}

}  // namespace quartet::reference
