#include "import/onnx/run_dims.h"

#include <algorithm>

#include "graph/constant.h"
#include "import/onnx/index.h"
#include "import/onnx/regions.h"

namespace quartet::import::onnx {
namespace {

constexpr int kMaxDepth = 24;

// What an element of an integer value is: a number or dim, or an element of a value that nothing more is known of.
struct Source {
  std::optional<IntExpr> known;
  ValueId root = graph::kNoValue;
  int64_t element = 0;
};

std::optional<int64_t> constant_element(const graph::Builder& builder, ValueId id, int64_t element) {
  const graph::Constant* constant = builder.constant_of(id);
  if (!constant || !is_int(constant->type.dtype)) return std::nullopt;
  const size_t size = size_of(constant->type.dtype);
  if (element < 0 || static_cast<size_t>(element) >= constant->bytes / size) return std::nullopt;
  return graph::element_as_int(*constant, static_cast<size_t>(element));
}

// The element that an op hands on, if it hands on one of an operand.
std::optional<Source> handed_on(const graph::Builder& builder, const graph::Op& op, int64_t element) {
  const auto rank = [&](size_t i) { return builder.type(op.operands[i]).rank(); };
  switch (op.code) {
    case OpCode::identity:
    case OpCode::reshape:
      return Source{{}, op.operands[0], element};
    case OpCode::cast: {
      const DType to = graph::attr_dtype(op, AttrKey::to), from = builder.type(op.operands[0]).dtype;
      const bool exact = is_int(from) && (to == DType::i64 || (to == DType::i32 && from == DType::i64));
      return exact ? std::optional(Source{{}, op.operands[0], element}) : std::nullopt;
    }
    case OpCode::concat: {
      if (rank(0) != 1) return std::nullopt;
      int64_t at = element;
      for (const ValueId operand : op.operands) {
        const auto count = builder.type(operand).shape[0].constant();
        if (!count) return std::nullopt;
        if (at < *count) return Source{{}, operand, at};
        at -= *count;
      }
      return std::nullopt;
    }
    case OpCode::gather: {
      const auto index = constant_element(builder, op.operands[1], element);
      const auto count = rank(0) == 1 ? builder.type(op.operands[0]).shape[0].constant() : std::nullopt;
      if (!index || !count || *index < -*count || *index >= *count) return std::nullopt;
      return Source{{}, op.operands[0], *index < 0 ? *index + *count : *index};
    }
    case OpCode::slice: {
      const auto start = (*graph::attr_shape(op, AttrKey::starts))[0].constant();
      const std::vector<int64_t>* steps = graph::attr_ints(op, AttrKey::steps);
      if (rank(0) != 1 || !start) return std::nullopt;
      return Source{{}, op.operands[0], *start + element * (steps ? (*steps)[0] : 1)};
    }
    default:
      return std::nullopt;
  }
}

Source source_of(const graph::Builder& builder, ValueId id, int64_t element) {
  Source source{{}, id, element};
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    if (const auto number = constant_element(builder, source.root, source.element)) {
      source.known = *number;
      return source;
    }
    const graph::Op* op = builder.definition(source.root);
    if (!op) return source;
    if (op->code == OpCode::dims) {
      source.known = (*graph::attr_shape(*op, AttrKey::shape))[static_cast<size_t>(source.element)];
      return source;
    }
    const auto next = handed_on(builder, *op, source.element);
    if (!next) return source;
    source = *next;
  }
  return source;
}

// The dim that a `bind` that is visible here has made of this element.
std::optional<IntExpr> bound_already(const graph::Builder& builder, const Source& source) {
  std::optional<IntExpr> dim;
  builder.find_op([&](const graph::Op& op) {
    if (op.code != OpCode::bind) return false;
    const Source other = source_of(builder, op.operands[0], 0);
    if (other.known || other.root != source.root || other.element != source.element) return false;
    dim = (*graph::attr_shape(op, AttrKey::births))[0];
    return true;
  });
  return dim;
}

Expr scalar_element(Emit& e, ValueId id, int64_t element) {
  const Expr value(e, id);
  if (value.rank() == 0) return value.cast(DType::i64);
  return value.element(element).cast(DType::i64);
}

}  // namespace

bool is_run_known(NodeContext& c, const IntExpr& e) {
  return e.contains_any([&](Symbol s) { return !c.dims().is_entry_known(s); });
}

Result<IntExpr> dim_of(NodeContext& c, const Expr& number, const std::string& what,
                       const std::optional<IntExpr>& most) {
  QUARTET_TRY(number.emit().status());
  const Source source = source_of(c.builder(), number.id(), 0);
  if (source.known && c.dims().at_least(*source.known, IntExpr(0))) return c.simple(*source.known);
  if (const auto dim = bound_already(c.builder(), source)) return *dim;
  std::optional<IntExpr> bound;
  if (most && !is_run_known(c, *most)) bound = c.simple(*most);
  QUARTET_ASSIGN(const IntExpr dim, declare_run_dim(c, "dim", bound));
  graph::OpExtras extras;
  extras.name = c.label();
  QUARTET_TRY(
      c.builder()
          .op(OpCode::bind, {number.id()},
              {{AttrKey::births, graph::Shape{dim}}, {AttrKey::reason, c.label() + ": " + what + " is no extent"}},
              std::move(extras))
          .status());
  return dim;
}

Result<KnownInts> dims_in_run(NodeContext& c, size_t i, const char* what) {
  QUARTET_TRY(c.want(i));
  if (auto known = c.known_ints(i)) return *std::move(known);
  QUARTET_ASSIGN(const ValueId id, c.in(i));
  const graph::TensorType type = c.type(id);
  const auto count = type.elements().constant();
  if (!is_int(type.dtype) || type.rank() > 1 || !count || *count > static_cast<int64_t>(graph::kMaxRank) * 2)
    return make_error(Code::unsupported, "%s (input %zu) is not known when the model is imported, and is %s", what, i,
                      c.dims().text(type).c_str());
  KnownInts made{{}, type.rank() == 0, type.dtype};
  Emit e(c);
  for (int64_t k = 0; k < *count; ++k) {
    const Source source = source_of(c.builder(), id, k);
    if (source.known) {
      made.values.push_back(*source.known);
      continue;
    }
    QUARTET_ASSIGN(const IntExpr dim,
                   dim_of(c, scalar_element(e, id, k),
                          what + (" (input " + std::to_string(i) + "), element ") + std::to_string(k)));
    made.values.push_back(dim);
  }
  return made;
}

Expr reshaped_in_run(const Expr& x, const graph::Shape& shape) {
  if (!x.ok()) return x;
  Emit& e = x.emit();
  NodeContext& c = e.context();
  IntExpr all = 1;
  for (const IntExpr& dim : shape) all *= dim;
  const IntExpr elements = x.type().elements();
  if (c.dims().same(all, elements) || !(is_run_known(c, all) || is_run_known(c, elements))) return x.reshape(shape);
  const Expr flat = required(equal(e.dim(all, DType::i64), e.dim(elements, DType::i64)), x.reshape({elements}),
                             "the operand has not as many elements as the shape says");
  return flat.gather(e.iota({all}, 0, DType::i64), 0).reshape(shape);
}

// Sums within blocks are a product with a triangle of ones; the blocks' own sums are added up in the same way, and what
// few are left then by all pairs.
Expr prefix_sums(Emit& e, const Expr& x) {
  constexpr int64_t kBlock = 64, kFew = 256;
  if (!x.ok()) return x;
  const auto number = x.dim(0).constant();
  const int levels = number && *number <= kFew ? 1 : 2;
  const Expr row = e.iota({IntExpr(1), IntExpr(kBlock)}, 1, DType::i32);
  const Expr column = e.iota({IntExpr(kBlock), IntExpr(1)}, 0, DType::i32);
  const Expr triangle = less_equal(column, row).cast(DType::i32);
  const auto last = [&](const Expr& blocks) {
    return blocks.slice(1, IntExpr(kBlock - 1), IntExpr(kBlock)).reshape({blocks.dim(0)});
  };
  std::vector<Expr> inside;  // [blocks, kBlock], by level
  std::vector<IntExpr> counts;
  Expr sums = x;
  for (int level = 0; level < levels; ++level) {
    counts.push_back(sums.dim(0));
    const Expr longer =
        e.op(OpCode::pad, {sums, e.number(DType::i32, int64_t{0})},
             {{AttrKey::low, graph::Shape{IntExpr(0)}}, {AttrKey::high, graph::Shape{IntExpr(kBlock - 1)}}});
    const std::vector<int64_t> block{kBlock};
    const Expr blocks =
        e.op(OpCode::window, {longer},
             {{AttrKey::axes, std::vector<int64_t>{0}}, {AttrKey::sizes, block}, {AttrKey::strides, block}});
    inside.push_back(e.op(OpCode::matmul, {blocks, triangle}));
    sums = last(inside.back());
  }
  const IntExpr few = sums.dim(0);
  const Expr here = e.iota({few, IntExpr(1)}, 0, DType::i64), there = e.iota({IntExpr(1), few}, 1, DType::i64);
  Expr before = select(less(there, here), sums.reshape({IntExpr(1), few}).cast(DType::i64), 0)
                    .reduce(OpCode::reduce_sum, {1}, false);
  Expr up_to;
  for (int level = levels; level-- > 0;) {
    const auto l = static_cast<size_t>(level);
    const Expr whole = inside[l].cast(DType::i64) + before.reshape({before.dim(0), IntExpr(1)});
    up_to = flat(whole).gather(e.iota({counts[l]}, 0, DType::i64), 0);
    if (level > 0) before = up_to - last(inside[l - 1]).cast(DType::i64);
  }
  return up_to;
}

Result<Expr> places_of(NodeContext& c, const Expr& mask) {
  Emit& e = mask.emit();
  QUARTET_TRY(e.status());
  const IntExpr all = mask.dim(0);
  const Expr sums = prefix_sums(e, mask.cast(DType::i32));
  const Expr total = mask.cast(DType::i64).reduce(OpCode::reduce_sum, {0}, false);
  QUARTET_ASSIGN(const IntExpr count, dim_of(c, total, "the count", all));
  // Every true element at its place; the others at one that is not there.
  const Expr at = select(mask, sums - 1, e.dim(all, DType::i64));
  const Expr empty = e.number(DType::i64, int64_t{0}).expand({count, IntExpr(1)});
  const Expr numbers = e.iota({all, IntExpr(1)}, 0, DType::i64);
  const Expr places = e.op(OpCode::scatter, {empty, at, numbers}, {{AttrKey::combine, int64_t{0}}}).reshape({count});
  QUARTET_TRY(e.status());
  return places;
}

}  // namespace quartet::import::onnx
