// Constants.
#include <algorithm>
#include <cmath>

#include "graph/constant.h"
#include "import/onnx/run_dims.h"
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
  const bool declared = c.declares(0, 0);
  if (declared) {
    QUARTET_ASSIGN(shape, c.declared_shape(0, 0, "the shape"));
  } else {
    QUARTET_ASSIGN(const KnownInts known, dims_in_run(c, 0, "the shape"));
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
  QUARTET_ASSIGN(const ValueId filled, c.op(OpCode::expand, {scalar}, {{AttrKey::shape, shape}}));
  if (!declared) return c.give(0, filled);
  Emit e(c);
  return e.give(0, as_declared(Expr(e, filled), 0, shape));
}

double number_of(const graph::Constant& constant) {
  return is_int(constant.type.dtype) ? static_cast<double>(graph::element_as_int(constant, 0))
                                     : graph::element_as_double(constant, 0);
}

// How many numbers there are, in the run.
Result<IntExpr> count_in_run(NodeContext& c, DType dtype) {
  Emit e(c);
  const bool whole = is_int(dtype);
  const auto number = [&](size_t i) { return e.in(i).reshape({}).cast(whole ? DType::i64 : DType::f64); };
  const Expr from = number(0), to = number(1), by = number(2);
  Expr count;
  if (whole) {
    // Towards the end of the range by whole steps.
    const Expr way = select(less(by, 0), from - to, to - from), step = max(unary(OpCode::abs, by), 1);
    count = max((way + (step - 1)) / step, 0);
  } else {
    count = max(unary(OpCode::ceil, (to - from) / by), 0).cast(DType::i64);
  }
  return dim_of(c, count, "the length");
}

// start + i * delta.
Status range(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId start, c.in(0));
  const DType dtype = c.type(start).dtype;
  const graph::Constant *from = c.constant(0), *to = c.constant(1), *by = c.constant(2);
  IntExpr count;
  bool declared = false;
  if (from && to && by && from->bytes && to->bytes && by->bytes) {
    const double steps = std::ceil((number_of(*to) - number_of(*from)) / number_of(*by));
    if (!(steps <= 1e12)) return Status(Code::invalid_argument, "the range has no end");
    count = static_cast<int64_t>(std::max(steps, 0.0));
  } else if (c.declares(0, 0) || c.declares(0, 1) || c.declares(0, 2)) {
    const size_t unknown = c.from_caller(1) ? 1 : c.from_caller(0) ? 0 : 2;
    QUARTET_ASSIGN(const graph::Shape result, c.declared_shape(0, unknown, "the length"));
    if (result.size() != 1) return Status(Code::invalid_argument, "the declared result has another rank");
    count = result[0];
    declared = true;
  } else {
    for (size_t i = 0; i < 3; ++i) {
      QUARTET_ASSIGN(const ValueId id, c.in(i));
      if (!c.type(id).elements().is(1))
        return Status(Code::invalid_argument, "start, limit and delta must have one element each");
    }
    const auto first = c.known_ints(0), limit = c.known_ints(1), delta = c.known_ints(2);
    if (first && limit && delta && delta->values[0].is(1)) {
      count = c.simple(max(limit->values[0] - first->values[0], IntExpr(0)));
    } else {
      QUARTET_ASSIGN(count, count_in_run(c, dtype));
    }
  }
  QUARTET_ASSIGN(const ValueId index,
                 c.op(OpCode::iota, {},
                      {{AttrKey::shape, graph::Shape{count}}, {AttrKey::axis, int64_t{0}}, {AttrKey::dtype, dtype}}));
  QUARTET_ASSIGN(const ValueId delta, c.in(2));
  QUARTET_ASSIGN(const ValueId step, c.reshape(delta, {}));
  QUARTET_ASSIGN(const ValueId base, c.reshape(start, {}));
  QUARTET_ASSIGN(const ValueId moved, c.op(OpCode::mul, {index, step}));
  QUARTET_ASSIGN(const ValueId sum, c.op(OpCode::add, {moved, base}));
  if (!declared) return c.give(0, sum);
  Emit e(c);
  const auto number = [&](size_t i) { return e.in(i).reshape({}).cast(DType::f64); };
  const Expr steps = max(unary(OpCode::ceil, (number(1) - number(0)) / number(2)), 0);
  return e.give(0, required(equal(steps, e.dim(count, DType::f64)), Expr(e, sum),
                            "the numbers are not as many as the model declares"));
}

constexpr OpRow kRows[] = {
    {"Constant", 1, INT64_MAX, constant},
    {"ConstantOfShape", 9, INT64_MAX, constant_of_shape},
    {"Range", 11, INT64_MAX, range},
};

}  // namespace

std::span<const OpRow> constant_ops() { return kRows; }

}  // namespace quartet::import::onnx
