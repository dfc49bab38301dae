// Arithmetic on what is known of shapes: integers, and floats that are fractions of them.
#include <algorithm>
#include <cmath>

#include "import/onnx/node.h"
#include "import/onnx/tensors.h"

namespace quartet::import::onnx {

std::optional<Fraction> small_fraction(double value) {
  for (int64_t divisor = 1; divisor <= 1024; ++divisor) {
    const double times = std::round(value * static_cast<double>(divisor));
    if (!(std::fabs(times) < 1e6)) return std::nullopt;
    if (static_cast<float>(times / static_cast<double>(divisor)) == static_cast<float>(value))
      return Fraction{static_cast<int64_t>(times), divisor};
  }
  return std::nullopt;
}

namespace {

using Known = std::optional<KnownInts>;

// Element by element with NumPy broadcasting of rank 0, extent 1 and equal extents.
Known combine(const KnownInts& a, const KnownInts& b,
              const std::function<std::optional<IntExpr>(const IntExpr&, const IntExpr&)>& f) {
  const size_t n = a.values.size(), m = b.values.size();
  if ((n != m && n != 1 && m != 1) || a.dtype != b.dtype) return std::nullopt;
  KnownInts result{{}, a.is_scalar && b.is_scalar, a.dtype};
  const size_t count = n == 1 ? m : n;
  for (size_t i = 0; i < count; ++i) {
    const auto value = f(a.values[n == 1 ? 0 : i], b.values[m == 1 ? 0 : i]);
    if (!value || !value->is_valid()) return std::nullopt;
    result.values.push_back(*value);
  }
  return result;
}

Known arithmetic(NodeContext& c, const KnownInts& a, const KnownInts& b) {
  using Operand = const IntExpr&;
  const std::string_view op = c.node().op;
  if (op == "Add") return combine(a, b, [](Operand x, Operand y) { return x + y; });
  if (op == "Sub") return combine(a, b, [](Operand x, Operand y) { return x - y; });
  if (op == "Mul") return combine(a, b, [](Operand x, Operand y) { return x * y; });
  if (op == "Div")  // towards zero, which is the floor where nothing is negative
    return combine(a, b, [&](Operand x, Operand y) -> std::optional<IntExpr> {
      if (!c.dims().at_least(x, IntExpr(0)) || !c.dims().at_least(y, IntExpr(1))) return std::nullopt;
      return c.simple(floor_div(x, y));
    });
  if (op == "Min") return combine(a, b, [&](Operand x, Operand y) { return c.simple(min(x, y)); });
  if (op == "Max") return combine(a, b, [&](Operand x, Operand y) { return c.simple(max(x, y)); });
  return std::nullopt;
}

Known fold_gather(NodeContext& c, const KnownInts& data, const KnownInts& indices) {
  if (data.is_scalar || c.attr_int("axis", 0) != 0) return std::nullopt;
  KnownInts result{{}, indices.is_scalar, data.dtype};
  const auto count = static_cast<int64_t>(data.values.size());
  for (const IntExpr& e : indices.values) {
    const auto index = e.constant();
    if (!index || *index < -count || *index >= count) return std::nullopt;
    result.values.push_back(data.values[static_cast<size_t>(*index < 0 ? *index + count : *index)]);
  }
  return result;
}

Known fold_concat(NodeContext& c) {
  KnownInts result;
  for (size_t i = 0; i < c.input_count(); ++i) {
    const Known part = c.known_ints(i);
    if (!part || part->is_scalar || (i > 0 && part->dtype != result.dtype)) return std::nullopt;
    result.dtype = part->dtype;
    result.values.insert(result.values.end(), part->values.begin(), part->values.end());
  }
  return result;
}

// A one-dimensional slice by numbers.
Known fold_slice(NodeContext& c, const KnownInts& data) {
  const auto single = [&](size_t input, const char* attribute, int64_t otherwise) -> std::optional<int64_t> {
    if (const auto given = c.attr_ints(attribute); given && c.version() < 10)
      return given->size() == 1 ? std::optional((*given)[0]) : std::nullopt;
    if (!c.has(input)) return otherwise;
    const Known known = c.known_ints(input);
    return known && known->values.size() == 1 ? known->values[0].constant() : std::nullopt;
  };
  const auto start = single(1, "starts", 0), end = single(2, "ends", INT64_MAX), axis = single(3, "axes", 0),
             step = single(4, "steps", 1);
  if (data.is_scalar || !start || !end || !axis || !step || *step <= 0 || (*axis != 0 && *axis != -1))
    return std::nullopt;
  const auto count = static_cast<int64_t>(data.values.size());
  const auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + count : at, 0, count); };
  KnownInts result{{}, false, data.dtype};
  for (int64_t i = clamp(*start); i < clamp(*end); i += *step)
    result.values.push_back(data.values[static_cast<size_t>(i)]);
  return result;
}

// One element under another rank.
Known fold_rank(NodeContext& c, const KnownInts& data) {
  const bool down = c.node().op == "Squeeze";
  if (data.values.size() != 1 || data.is_scalar == down) return std::nullopt;
  KnownInts result = data;
  result.is_scalar = down;
  return result;
}

// A float that is a fraction of dims, cut off: towards zero, which is the floor where nothing is negative.
Known fold_float_cast(NodeContext& c, const KnownFloats& data, DType to) {
  KnownInts result{{}, data.is_scalar, to};
  for (const IntExpr& e : data.values) {
    if (!c.dims().at_least(e, IntExpr(0))) return std::nullopt;
    result.values.push_back(c.simple(floor_div(e, IntExpr(data.divisor))));
  }
  return result;
}

Known fold_cast(NodeContext& c, KnownInts data) {
  const auto to = dtype_of(static_cast<int32_t>(c.attr_int("to", 0)));
  if (to != DType::i64 && to != DType::i32) return std::nullopt;
  data.dtype = *to;
  return data;
}

// 1 where it is certain that x equals y, 0 where it is that they differ.
std::optional<IntExpr> equality(const NodeContext& c, const IntExpr& x, const IntExpr& y) {
  if (c.dims().same(x, y)) return IntExpr(1);
  const bool less = c.dims().at_least(y, x + IntExpr(1)), greater = c.dims().at_least(x, y + IntExpr(1));
  return less || greater ? std::optional<IntExpr>(0) : std::nullopt;
}

Known fold_equal(NodeContext& c, const KnownInts& a, const KnownInts& b) {
  Known result = combine(a, b, [&](const IntExpr& x, const IntExpr& y) { return equality(c, x, y); });
  if (result) result->dtype = DType::boolean;
  return result;
}

Known fold_where(NodeContext& c, const KnownInts& condition) {
  const Known yes = c.known_ints(1), no = c.known_ints(2);
  if (!yes || !no) return std::nullopt;
  const size_t count = std::max({condition.values.size(), yes->values.size(), no->values.size()});
  KnownInts result{{}, condition.is_scalar && yes->is_scalar && no->is_scalar, yes->dtype};
  const auto at = [&](const KnownInts& k, size_t i) -> const IntExpr* {
    if (k.values.size() != count && k.values.size() != 1) return nullptr;
    return &k.values[k.values.size() == 1 ? 0 : i];
  };
  for (size_t i = 0; i < count; ++i) {
    const IntExpr *which = at(condition, i), *a = at(*yes, i), *b = at(*no, i);
    if (!which || !a || !b || !which->is_constant()) return std::nullopt;
    result.values.push_back(which->is(0) ? *b : *a);
  }
  return result;
}

// One-dimensional to one-dimensional.
Known fold_reshape(NodeContext& c, const KnownInts& data) {
  const Known shape = c.known_ints(1);
  if (!shape || shape->values.size() != 1) return std::nullopt;
  const auto count = static_cast<int64_t>(data.values.size());
  if (!shape->values[0].is(-1) && !shape->values[0].is(count)) return std::nullopt;
  KnownInts result = data;
  result.is_scalar = false;
  return result;
}

Known fold_reduce_prod(NodeContext& c, const KnownInts& data) {
  if (data.is_scalar || c.has(1)) return std::nullopt;
  if (const auto axes = c.attr_ints("axes");
      axes && *axes != std::vector<int64_t>{0} && *axes != std::vector<int64_t>{-1})
    return std::nullopt;
  KnownInts result{{IntExpr(1)}, c.attr_int("keepdims", 1) == 0, data.dtype};
  for (const IntExpr& e : data.values) result.values[0] *= e;
  return result;
}

}  // namespace

std::optional<KnownInts> fold_known(NodeContext& c) {
  const std::string_view op = c.node().op;
  if (c.input_count() == 0) return std::nullopt;
  if (op == "Concat") return fold_concat(c);
  if (op == "Cast" && c.known_floats(0)) {
    const auto to = dtype_of(static_cast<int32_t>(c.attr_int("to", 0)));
    return to == DType::i64 || to == DType::i32 ? fold_float_cast(c, *c.known_floats(0), *to) : std::nullopt;
  }
  Known first = c.known_ints(0);
  if (!first) return std::nullopt;
  if (op == "Where") return fold_where(c, *first);
  if (first->dtype != DType::i64 && first->dtype != DType::i32) return std::nullopt;
  if (op == "Slice") return fold_slice(c, *first);
  if (op == "Squeeze" || op == "Unsqueeze") return fold_rank(c, *first);
  if (op == "Reshape") return fold_reshape(c, *first);
  if (op == "Identity") return first;
  if (op == "Cast") return fold_cast(c, *first);
  if (op == "ReduceProd") return fold_reduce_prod(c, *first);
  if (c.input_count() != 2) return std::nullopt;
  const Known second = c.known_ints(1);
  if (!second) return std::nullopt;
  if (op == "Equal") return fold_equal(c, *first, *second);
  return op == "Gather" ? fold_gather(c, *first, *second) : arithmetic(c, *first, *second);
}

namespace {

std::optional<KnownFloats> scaled_by(const KnownFloats& data, const std::vector<double>& factor, bool divide) {
  if (factor.size() != 1) return std::nullopt;
  const auto fraction = small_fraction(factor[0]);
  if (!fraction || fraction->times <= 0) return std::nullopt;
  const int64_t times = divide ? fraction->divisor : fraction->times, by = divide ? fraction->times : fraction->divisor;
  if (by > (1 << 20) / data.divisor) return std::nullopt;
  KnownFloats result = data;
  result.divisor *= by;
  for (IntExpr& e : result.values) e *= IntExpr(times);
  return result;
}

}  // namespace

std::optional<KnownFloats> fold_known_floats(NodeContext& c) {
  const std::string_view op = c.node().op;
  if (c.input_count() == 0) return std::nullopt;
  if (op == "Cast") {
    const auto to = dtype_of(static_cast<int32_t>(c.attr_int("to", 0)));
    if (to != DType::f32 && to != DType::f64) return std::nullopt;
    if (const Known ints = c.known_ints(0); ints && ints->dtype != DType::boolean)
      return KnownFloats{ints->values, 1, ints->is_scalar};
    return c.known_floats(0) ? std::optional(*c.known_floats(0)) : std::nullopt;
  }
  const KnownFloats* first = c.known_floats(0);
  if (op == "Mul" && !first && c.known_floats(1) && c.floats(0))
    return scaled_by(*c.known_floats(1), *c.floats(0), false);
  if (!first) return std::nullopt;
  if (op == "Identity") return *first;
  if ((op == "Mul" || op == "Div") && c.floats(1)) return scaled_by(*first, *c.floats(1), op == "Div");
  KnownFloats result = *first;
  if (op == "Squeeze" || op == "Unsqueeze") {
    if (result.values.size() != 1 || result.is_scalar != (op == "Unsqueeze")) return std::nullopt;
    result.is_scalar = op == "Squeeze";
    return result;
  }
  if (op != "Floor" && op != "Ceil") return std::nullopt;
  for (IntExpr& e : result.values)
    e = c.simple(op == "Floor" ? floor_div(e, IntExpr(result.divisor)) : ceil_div(e, IntExpr(result.divisor)));
  result.divisor = 1;
  return result;
}

}  // namespace quartet::import::onnx
