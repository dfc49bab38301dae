// Constants, and arithmetic on what is known of shapes.
#include <algorithm>
#include <cmath>

#include "graph/constant.h"
#include "import/onnx/node.h"
#include "import/onnx/tensors.h"

namespace quartet::import::onnx {

namespace {

template <class T>
Result<graph::Constant> numbers(DType dtype, const std::vector<T>& values, bool scalar) {
  Bytes bytes;
  for (const T value : values) {
    const Bytes element = graph::scalar_bytes(dtype, value);
    bytes.insert(bytes.end(), element.begin(), element.end());
  }
  graph::Shape shape;
  if (!scalar) shape.emplace_back(static_cast<int64_t>(values.size()));
  return graph::copy_constant({dtype, std::move(shape)}, bytes);
}

Result<graph::Constant> constant_from(NodeContext& c) {
  ExternalFiles none;
  if (const Attribute* value = c.attr("value"); value && value->tensor)
    return constant_of(*value->tensor, none, nullptr);
  if (const Attribute* value = c.attr("value_float"))
    return numbers<double>(DType::f32, {static_cast<double>(value->f)}, true);
  if (const Attribute* value = c.attr("value_floats"))
    return numbers(DType::f32, std::vector<double>(value->floats.begin(), value->floats.end()), false);
  if (const Attribute* value = c.attr("value_int")) return numbers<int64_t>(DType::i64, {value->i}, true);
  if (const Attribute* value = c.attr("value_ints")) return numbers<int64_t>(DType::i64, value->ints, false);
  return Status(Code::unsupported, "a constant of strings, or a sparse one");
}

Status constant(NodeContext& c) {
  QUARTET_ASSIGN(c.outputs()[0].constant, constant_from(c));
  return {};
}

// A tensor of one number.
Status constant_of_shape(NodeContext& c) {
  graph::Shape shape;
  if (c.from_caller(0)) {
    QUARTET_ASSIGN(shape, c.declared_shape(0, 0, "the shape"));
  } else {
    QUARTET_ASSIGN(const KnownInts known, c.ints(0, "the shape"));
    shape = known.values;
  }
  Result<graph::Constant> value = numbers<double>(DType::f32, {0.0}, false);
  if (const Attribute* given = c.attr("value"); given && given->tensor) {
    ExternalFiles none;
    value = constant_of(*given->tensor, none, nullptr);
  }
  if (!value.ok()) return value.status();
  if (value->bytes != size_of(value->type.dtype)) return Status(Code::invalid_argument, "value has not one element");
  QUARTET_ASSIGN(const ValueId element, c.builder().constant(value.take()));
  QUARTET_ASSIGN(const ValueId scalar, c.reshape(element, {}));
  return c.give(0, c.op(OpCode::expand, {scalar}, {{AttrKey::shape, shape}}));
}

double number_of(const graph::Constant& constant) {
  return is_int(constant.type.dtype) ? static_cast<double>(graph::element_as_int(constant, 0))
                                     : graph::element_as_double(constant, 0);
}

// start + i * delta; the count must be known.
Status range(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId start, c.in(0));
  const DType dtype = c.type(start).dtype;
  const graph::Constant *from = c.constant(0), *to = c.constant(1), *by = c.constant(2);
  IntExpr count;
  if (from && to && by && from->bytes && to->bytes && by->bytes) {
    const double steps = std::ceil((number_of(*to) - number_of(*from)) / number_of(*by));
    if (!(steps <= 1e12)) return Status(Code::invalid_argument, "the range has no end");
    count = static_cast<int64_t>(std::max(steps, 0.0));
  } else if (c.from_caller(0) || c.from_caller(1) || c.from_caller(2)) {
    const size_t unknown = c.from_caller(1) ? 1 : c.from_caller(0) ? 0 : 2;
    QUARTET_ASSIGN(const graph::Shape declared, c.declared_shape(0, unknown, "the length"));
    if (declared.size() != 1) return Status(Code::invalid_argument, "the declared result has another rank");
    count = declared[0];
  } else {
    QUARTET_ASSIGN(const KnownInts first, c.ints(0, "the start"));
    QUARTET_ASSIGN(const KnownInts limit, c.ints(1, "the limit"));
    QUARTET_ASSIGN(const KnownInts delta, c.ints(2, "the delta"));
    if (first.values.size() != 1 || limit.values.size() != 1 || delta.values.size() != 1)
      return Status(Code::invalid_argument, "start, limit and delta must have one element each");
    if (!delta.values[0].is(1)) return Status(Code::unsupported, "a symbolic range with a delta other than 1");
    count = c.simple(max(limit.values[0] - first.values[0], IntExpr(0)));
  }
  QUARTET_ASSIGN(const ValueId index,
                 c.op(OpCode::iota, {},
                      {{AttrKey::shape, graph::Shape{count}}, {AttrKey::axis, int64_t{0}}, {AttrKey::dtype, dtype}}));
  QUARTET_ASSIGN(const ValueId delta, c.in(2));
  QUARTET_ASSIGN(const ValueId step, c.reshape(delta, {}));
  QUARTET_ASSIGN(const ValueId base, c.reshape(start, {}));
  QUARTET_ASSIGN(const ValueId moved, c.op(OpCode::mul, {index, step}));
  return c.give(0, c.op(OpCode::add, {moved, base}));
}

// ---- Known integers
// ---------------------------------------------------------------------------------------------------

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

Known fold_cast(NodeContext& c, KnownInts data) {
  const auto to = dtype_of(static_cast<int32_t>(c.attr_int("to", 0)));
  if (to != DType::i64 && to != DType::i32) return std::nullopt;
  data.dtype = *to;
  return data;
}

Known fold_reduce_prod(NodeContext& c, const KnownInts& data) {
  if (data.is_scalar || c.has(1) || c.attr("axes")) return std::nullopt;
  KnownInts result{{IntExpr(1)}, c.attr_int("keepdims", 1) == 0, data.dtype};
  for (const IntExpr& e : data.values) result.values[0] *= e;
  return result;
}

constexpr OpRow kRows[] = {
    {"Constant", 1, INT64_MAX, constant},
    {"ConstantOfShape", 9, INT64_MAX, constant_of_shape},
    {"Range", 11, INT64_MAX, range},
};

}  // namespace

std::span<const OpRow> constant_ops() { return kRows; }

std::optional<KnownInts> fold_known(NodeContext& c) {
  const std::string_view op = c.node().op;
  if (c.input_count() == 0) return std::nullopt;
  if (op == "Concat") return fold_concat(c);
  const Known first = c.known_ints(0);
  if (!first || (first->dtype != DType::i64 && first->dtype != DType::i32)) return std::nullopt;
  if (op == "Slice") return fold_slice(c, *first);
  if (op == "Squeeze" || op == "Unsqueeze") return fold_rank(c, *first);
  if (op == "Identity") return first;
  if (op == "Cast") return fold_cast(c, *first);
  if (op == "ReduceProd") return fold_reduce_prod(c, *first);
  if (c.input_count() != 2) return std::nullopt;
  const Known second = c.known_ints(1);
  if (!second) return std::nullopt;
  return op == "Gather" ? fold_gather(c, *first, *second) : arithmetic(c, *first, *second);
}

}  // namespace quartet::import::onnx
