// Shapes: views, joining, looking up, and what a shape is.
#include <algorithm>

#include "graph/infer.h"
#include "import/onnx/run_dims.h"

namespace quartet::import::onnx {

namespace {

// A shape that the caller gives: what the model declares, which the caller must keep to.
Status reshape_by_caller(NodeContext& c) {
  Emit e(c);
  QUARTET_ASSIGN(const graph::Shape declared, c.declared_shape(0, 1, "the shape"));
  const Expr x = e.in(0);
  const Expr given = e.in(1).cast(DType::i64).reshape({IntExpr(static_cast<int64_t>(declared.size()))});
  Expr fits = either(equal(given, dims_of(e, declared)), equal(given, -1));
  if (c.attr_int("allowzero", 0) == 0) {
    graph::Shape copied = x.shape();
    copied.resize(declared.size(), IntExpr(-1));
    fits = either(fits, both(equal(given, 0), equal(dims_of(e, copied), dims_of(e, declared))));
  }
  return e.give(0, required(fits, x.reshape(declared), contradiction(1)));
}

// Axes of extent 1 that the caller gives: `longer` without them is `shorter`; the result has the declared shape.
Status move_axes_by_caller(NodeContext& c, bool inserts) {
  Emit e(c);
  QUARTET_ASSIGN(const graph::Shape declared, c.declared_shape(0, 1, "axes"));
  const Expr x = e.in(0), given = e.in(1).cast(DType::i64);
  QUARTET_TRY(e.status());
  const graph::Shape longer = inserts ? declared : x.shape(), shorter = inserts ? x.shape() : declared;
  if (longer.size() > 8 || longer.size() < shorter.size())
    return Status(Code::unsupported, "axes of the caller that do not fit the declared result, or of a rank beyond 8");
  std::vector<std::vector<int64_t>> choices;
  for (size_t bits = 0; bits < size_t{1} << longer.size(); ++bits) {
    std::vector<int64_t> axes;
    graph::Shape rest;
    bool fits = true;
    for (size_t axis = 0; axis < longer.size(); ++axis) {
      if ((bits >> axis & 1) == 0) {
        rest.push_back(longer[axis]);
        continue;
      }
      axes.push_back(static_cast<int64_t>(axis));
      fits = fits && longer[axis].is(1);
    }
    fits = fits && rest.size() == shorter.size();
    for (size_t i = 0; fits && i < rest.size(); ++i) fits = c.dims().same(rest[i], shorter[i]);
    if (fits) choices.push_back(std::move(axes));
  }
  const Expr axes = from_front(given, e.number(DType::i64, static_cast<int64_t>(longer.size())));
  return e.give(0, required(is_one_of(axes, choices), x.reshape(declared), contradiction(1)));
}

// The dims of the shape that are not 1 are the result's, or 1 where the operand's are.
Status expand_by_caller(NodeContext& c) {
  Emit e(c);
  QUARTET_ASSIGN(const graph::Shape declared, c.declared_shape(0, 1, "the shape"));
  const Expr x = e.in(0), given = e.in(1).cast(DType::i64);
  QUARTET_TRY(e.status());
  const auto count = given.rank() == 1 ? given.dim(0).constant() : std::nullopt;
  const size_t rank = declared.size();
  if (!count || static_cast<size_t>(*count) > rank || x.rank() > rank)
    return Status(Code::invalid_argument, "the shape does not fit the declared result");
  graph::Shape own(rank - x.rank(), IntExpr(1)), result(declared.end() - *count, declared.end());
  for (const IntExpr& dim : x.shape()) own.push_back(dim);
  own.erase(own.begin(), own.end() - *count);
  const Expr wanted = dims_of(e, result);
  const Expr fits = either(equal(given, wanted), both(equal(given, 1), equal(dims_of(e, own), wanted)));
  return e.give(0, required(fits, x.expand(declared), contradiction(1)));
}

// 0 copies the operand's dim (unless allowzero), -1 takes what is left.
Status reshape(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  if (c.declares(0, 1)) return reshape_by_caller(c);
  KnownInts wanted;
  if (c.version() < 5) {
    for (const int64_t v : c.attr_ints("shape").value_or(std::vector<int64_t>())) wanted.values.emplace_back(v);
  } else {
    QUARTET_ASSIGN(wanted, dims_in_run(c, 1, "the shape"));
  }
  const graph::Shape from = c.type(x).shape;
  const bool zero_copies = c.attr_int("allowzero", 0) == 0;
  graph::Shape shape;
  IntExpr known = 1;
  size_t open = SIZE_MAX;
  for (size_t d = 0; d < wanted.values.size(); ++d) {
    IntExpr dim = wanted.values[d];
    if (dim.is(0) && zero_copies) {
      if (d >= from.size())
        return make_error(Code::invalid_argument, "dim %zu is copied from an axis that is not there", d);
      dim = from[d];
    }
    if (dim.is(-1)) {
      if (open != SIZE_MAX) return Status(Code::invalid_argument, "two dims are -1");
      open = d;
      shape.emplace_back(1);
      continue;
    }
    known = known * dim;
    shape.push_back(std::move(dim));
  }
  if (open != SIZE_MAX) {
    IntExpr all = 1;
    for (const IntExpr& dim : from) all = all * dim;
    shape[open] = known.is(0) ? IntExpr(0) : c.simple(floor_div(all, known));
  }
  Emit e(c);
  return e.give(0, reshaped_in_run(Expr(e, x), shape));
}

Status flatten(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  const graph::Shape shape = c.type(x).shape;
  int64_t axis = c.attr_int("axis", 1);
  if (axis != static_cast<int64_t>(shape.size())) {
    QUARTET_ASSIGN(axis, c.axis(axis, shape.size()));
  }
  IntExpr outer = 1, inner = 1;
  for (size_t d = 0; d < shape.size(); ++d) (d < static_cast<size_t>(axis) ? outer : inner) *= shape[d];
  return c.give(0, c.reshape(x, {outer, inner}));
}

// The axes of Squeeze and Unsqueeze, ascending, from an attribute or (from version 13) an input.
Result<std::optional<std::vector<int64_t>>> axes_of(NodeContext& c, size_t rank) {
  std::optional<std::vector<int64_t>> given = c.attr_ints("axes");
  if (c.version() >= 13 && c.has(1)) {
    QUARTET_ASSIGN(given, c.numbers(1, "axes"));
  }
  if (!given) return std::optional<std::vector<int64_t>>();
  for (int64_t& value : *given) {
    QUARTET_ASSIGN(value, c.axis(value, rank));
  }
  std::sort(given->begin(), given->end());
  return given;
}

Status squeeze(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  if (c.version() >= 13 && c.from_caller(1)) return move_axes_by_caller(c, false);
  const graph::Shape from = c.type(x).shape;
  QUARTET_ASSIGN(const auto axes, axes_of(c, from.size()));
  if (axes && axes->size() == 1 && !from[static_cast<size_t>((*axes)[0])].is(1)) {
    QUARTET_ASSIGN(const auto row, c.without_assumed_axis(x, static_cast<size_t>((*axes)[0])));
    if (row) return c.give(0, *row);
  }
  graph::Shape shape;
  for (size_t d = 0; d < from.size(); ++d) {
    const bool named = axes && std::binary_search(axes->begin(), axes->end(), static_cast<int64_t>(d));
    if (named && !from[d].is(1)) return make_error(Code::invalid_argument, "axis %zu does not have extent 1", d);
    if (!axes && !from[d].is_constant())
      return make_error(Code::unsupported, "without axes the dims must be numbers, axis %zu is symbolic", d);
    if (!(axes ? named : from[d].is(1))) shape.push_back(from[d]);
  }
  return c.give(0, c.reshape(x, std::move(shape)));
}

Status unsqueeze(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  if (c.version() >= 13 && c.from_caller(1)) return move_axes_by_caller(c, true);
  graph::Shape shape = c.type(x).shape;
  size_t count = c.attr_ints("axes") ? c.attr_ints("axes")->size() : 0;
  if (c.version() >= 13) {
    QUARTET_ASSIGN(const auto given, c.numbers(1, "axes"));
    count = given.size();
  }
  QUARTET_ASSIGN(const auto axes, axes_of(c, shape.size() + count));
  if (!axes) return Status(Code::invalid_argument, "no axes are given");
  if (std::adjacent_find(axes->begin(), axes->end()) != axes->end())
    return Status(Code::invalid_argument, "an axis is given twice");
  for (const int64_t axis : *axes) shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), IntExpr(1));
  return c.give(0, c.reshape(x, std::move(shape)));
}

Status transpose(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  std::vector<int64_t> perm;
  for (size_t d = c.type(x).rank(); d-- > 0;) perm.push_back(static_cast<int64_t>(d));
  if (auto given = c.attr_ints("perm")) perm = *std::move(given);
  return c.give(0, c.op(OpCode::transpose, {x}, {{AttrKey::perm, std::move(perm)}}));
}

// A symbolic dim of the operand where the shape has a number that is not 1 is assumed to be that.
Status expand(NodeContext& c) {
  QUARTET_ASSIGN(ValueId x, c.in(0));
  if (c.declares(0, 1)) return expand_by_caller(c);
  QUARTET_ASSIGN(const KnownInts wanted, dims_in_run(c, 1, "the shape"));
  graph::Shape own = c.type(x).shape;
  for (size_t i = 1; i <= std::min(own.size(), wanted.values.size()); ++i) {
    IntExpr& dim = own[own.size() - i];
    const IntExpr& to = wanted.values[wanted.values.size() - i];
    if (!dim.is_constant() && to.is_constant() && !to.is(1)) dim = to;
  }
  QUARTET_ASSIGN(x, c.assumed(x, std::move(own), "the operand"));
  QUARTET_ASSIGN(const graph::Shape shape, graph::broadcast(c.type(x).shape, wanted.values, c.builder().dims()));
  return c.give(0, c.op(OpCode::expand, {x}, {{AttrKey::shape, shape}}));
}

// Each axis [d] becomes [1, d], is broadcast to [repeat, d] and merged again.
Status tile(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  const graph::Shape from = c.type(x).shape;
  KnownInts repeats;
  const bool declares = c.declares(0, 1);
  if (declares) {
    QUARTET_ASSIGN(const graph::Shape declared, c.declared_shape(0, 1, "the repeats"));
    for (size_t d = 0; d < std::min(from.size(), declared.size()); ++d)
      repeats.values.push_back(from[d].is(0) ? IntExpr(1) : c.simple(floor_div(declared[d], from[d])));
  } else {
    QUARTET_ASSIGN(repeats, dims_in_run(c, 1, "the repeats"));
  }
  if (repeats.values.size() != from.size())
    return make_error(Code::invalid_argument, "%zu repeats for rank %zu", repeats.values.size(), from.size());
  graph::Shape split, wide, merged;
  for (size_t d = 0; d < from.size(); ++d) {
    split.insert(split.end(), {IntExpr(1), from[d]});
    wide.insert(wide.end(), {repeats.values[d], from[d]});
    merged.push_back(repeats.values[d] * from[d]);
  }
  QUARTET_ASSIGN(const ValueId parted, c.reshape(x, split));
  QUARTET_ASSIGN(const ValueId repeated, c.op(OpCode::expand, {parted}, {{AttrKey::shape, wide}}));
  QUARTET_ASSIGN(const ValueId y, c.reshape(repeated, merged));
  if (!declares) return c.give(0, y);
  Emit e(c);
  return e.give(0, as_declared(Expr(e, y), 1, repeats.values));
}

Status concat(NodeContext& c) {
  QUARTET_ASSIGN(std::vector<ValueId> operands, c.all());
  QUARTET_ASSIGN(const int64_t axis, c.axis(c.attr_int("axis", 1), c.type(operands[0]).rank()));
  if (operands.size() == 1) return c.give(0, c.op(OpCode::identity, {operands[0]}));
  return c.give(0, c.op(OpCode::concat, std::move(operands), {{AttrKey::axis, axis}}));
}

Status gather(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  QUARTET_ASSIGN(const ValueId indices, c.in(1));
  QUARTET_ASSIGN(const int64_t axis, c.axis(c.attr_int("axis", 0), c.type(x).rank()));
  return c.give(0, c.op(OpCode::gather, {x, indices}, {{AttrKey::axis, axis}}));
}

Status shape(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  const graph::Shape& dims = c.type(x).shape;
  const auto rank = static_cast<int64_t>(dims.size());
  const auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t begin = clamp(c.attr_int("start", 0)), end = clamp(c.attr_int("end", rank));
  KnownInts known;
  for (int64_t d = begin; d < end; ++d) known.values.push_back(dims[static_cast<size_t>(d)]);
  c.give_ints(0, std::move(known));
  return {};
}

Status size(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  c.give_ints(0, {{c.type(x).elements()}, true, DType::i64});
  return {};
}

Status identity(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  return c.give(0, c.op(OpCode::identity, {x}));
}

// When running, dropout passes its operand; the mask says that all was kept.
Status dropout(NodeContext& c) {
  if (c.has(2)) {
    const graph::Constant* training = c.constant(2);
    if (!training || training->bytes != 1 || training->data[0] != 0) return Status(Code::unsupported, "training mode");
  }
  QUARTET_TRY(identity(c));
  if (c.output_count() < 2) return {};
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  const DType mask = c.version() < 10 ? c.type(x).dtype : DType::boolean;
  QUARTET_ASSIGN(const ValueId kept, c.scalar(mask, 1.0));
  return c.give(1, c.op(OpCode::expand, {kept}, {{AttrKey::shape, c.type(x).shape}}));
}

// Before version 7 training was the default.
Status old_dropout(NodeContext& c) {
  if (c.attr_int("is_test", 0) == 0) return Status(Code::unsupported, "is_test = 0: training");
  return dropout(c);
}

constexpr OpRow kRows[] = {
    {"Concat", 1, INT64_MAX, concat},       {"Dropout", 1, 7, old_dropout},         {"Dropout", 7, INT64_MAX, dropout},
    {"Expand", 8, INT64_MAX, expand},       {"Flatten", 1, INT64_MAX, flatten},     {"Gather", 1, INT64_MAX, gather},
    {"Identity", 1, INT64_MAX, identity},   {"Reshape", 1, INT64_MAX, reshape},     {"Shape", 1, INT64_MAX, shape},
    {"Size", 1, INT64_MAX, size},           {"Squeeze", 1, INT64_MAX, squeeze},     {"Tile", 6, INT64_MAX, tile},
    {"Transpose", 1, INT64_MAX, transpose}, {"Unsqueeze", 1, INT64_MAX, unsqueeze},
};

}  // namespace

std::span<const OpRow> shape_ops() { return kRows; }

}  // namespace quartet::import::onnx
