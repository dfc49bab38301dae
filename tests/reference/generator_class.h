// What the generator of random graphs is made of.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "graph/builder.h"
#include "reference/chains.h"
#include "reference/generator.h"
#include "reference/graph_ops.h"
#include "reference/random.h"

namespace quartet::reference {
using graph::AttrKey;
using graph::Attrs;
using graph::OpCode;
using graph::Shape;
using graph::TensorType;
using graph::ValueId;

// Sizes around vector widths and tiles, odd and prime ones, 1, and now and then 0.
inline const std::vector<int64_t> kExtents = {1,  1,  2,  3,  4,  5,  7,  8,  13,  15, 16,
                                              17, 31, 32, 33, 48, 63, 64, 65, 100, 129};
inline constexpr int64_t kMaxElements = 1 << 15;

class Generator {
 public:
  Generator(uint64_t seed, const GeneratorOptions& options) : random_(seed), options_(options) {}

  Result<RandomGraph> run() {
    QUARTET_TRY(make_symbols());
    QUARTET_TRY(make_inputs());
    const int64_t ops = options_.min_ops + random_.below(options_.max_ops - options_.min_ops + 1);
    for (int64_t tries = 0; made_ < ops && tries < 20 * ops; ++tries) QUARTET_TRY(grow());
    QUARTET_TRY(make_outputs());
    QUARTET_ASSIGN(result_.symbolic, builder_.finish());
    QUARTET_ASSIGN(result_.fixed, specialise(*result_.symbolic, extents_));
    return std::move(result_);
  }

 private:
  struct Known {
    ValueId id;
    bool exact = true;
    bool used = false;
  };

  Status make_symbols() {
    const int64_t count = 1 + random_.below(3);
    for (int64_t i = 0; i < count; ++i) {
      QUARTET_ASSIGN(const IntExpr symbol, builder_.symbol(std::string(1, static_cast<char>('a' + i))));
      extents_[*symbol.as_symbol()] = random_.chance(40) ? 0 : random_.pick(kExtents);
      dims_.push_back(symbol);
    }
    for (int i = 0; i < 3; ++i) dims_.emplace_back(random_.pick(kExtents));
    return {};
  }

  DType random_type() {
    if (!options_.other_types || !random_.chance(3)) return DType::f32;
    static const std::vector<DType> kTypes = {DType::f64, DType::f16, DType::bf16, DType::i64,
                                              DType::i32, DType::i16, DType::i8,   DType::u64,
                                              DType::u32, DType::u16, DType::u8,   DType::boolean};
    return random_.pick(kTypes);
  }

  Status make_inputs() {
    const int64_t count = 1 + random_.below(3);
    for (int64_t i = 0; i < count; ++i) {
      TensorType type{random_type(), {}};
      for (int64_t rank = random_.below(5); rank > 0; --rank) {
        type.shape.push_back(random_.chance(6) ? IntExpr(1) : random_.pick(dims_));
        if (count_of(type.shape) > kMaxElements) type.shape.back() = 1;
      }
      // Every symbol must be bound: the first input mentions them all.
      if (i == 0)
        for (const auto& [symbol, extent] : extents_)
          if (!contains(type.shape, symbol)) type.shape.push_back(IntExpr::symbol(symbol));
      while (count_of(type.shape) > kMaxElements) shrink(type.shape);
      QUARTET_ASSIGN(const ValueId id, builder_.input("input" + std::to_string(i), type));
      known_.push_back({id});
      result_.inputs.push_back(random_tensor(type));
    }
    return options_.control ? make_deciders() : Status();
  }

  // What runs decide ifs and loops by.
  Status make_deciders() {
    QUARTET_ASSIGN(count_, builder_.input("count", {DType::i64, {}}));
    QUARTET_ASSIGN(flag_, builder_.input("flag", {DType::boolean, {}}));
    Tensor count = Tensor::zeros(DType::i64, {}), flag = Tensor::zeros(DType::boolean, {});
    count.elements[0] = count_value_ = random_.below(10) - 1;
    flag.elements[0] = flag_value_ = random_.below(2);
    result_.inputs.push_back(std::move(count));
    result_.inputs.push_back(std::move(flag));
    known_.push_back({count_});
    known_.push_back({flag_});
    return {};
  }

  static bool contains(const Shape& shape, Symbol symbol) {
    return std::any_of(shape.begin(), shape.end(), [&](const IntExpr& e) { return e.as_symbol() == symbol; });
  }

  // Makes a constant dim 1, or if there is none a symbol's value small.
  void shrink(Shape& shape) {
    for (IntExpr& e : shape)
      if (e.is_constant() && !e.is(1)) {
        e = 1;
        return;
      }
    for (auto& [symbol, extent] : extents_)
      if (extent > 8) {
        extent = 5;
        return;
      }
  }

  int64_t value_of(const IntExpr& e) const {
    const auto value = [&](Symbol s) {
      const auto born = run_extents_.find(s);
      return std::optional<int64_t>(born != run_extents_.end() ? born->second : extents_.at(s));
    };
    return e.evaluate(value).value_or(0);
  }
  int64_t count_of(const Shape& shape) const {
    int64_t count = 1;
    for (const IntExpr& e : shape) count *= std::max<int64_t>(value_of(e), 1);
    return count;
  }

  // Small multiples of 1/8, and now and then zero, a larger number or a negative zero.
  Tensor random_tensor(const TensorType& type) {
    std::vector<int64_t> dims;
    for (const IntExpr& e : type.shape) dims.push_back(value_of(e));
    Tensor tensor = Tensor::zeros(type.dtype, dims);
    for (int64_t& element : tensor.elements) {
      const int64_t n = random_.below(64) - 32;
      if (type.dtype == DType::boolean)
        element = n & 1;
      else if (is_float(type.dtype))
        element = bits_of(type.dtype, random_.chance(50) ? -0.0L : static_cast<long double>(n) / 8);
      else
        element = bits_of(type.dtype, static_cast<long double>(is_unsigned_int(type.dtype) ? n + 32 : n));
    }
    return tensor;
  }

  Result<ValueId> random_constant(const TensorType& type) {
    const Tensor tensor = random_tensor(type);
    const Bytes bytes = tensor.to_memory();
    QUARTET_ASSIGN(graph::Constant constant, graph::copy_constant(type, bytes));
    return builder_.constant(std::move(constant));
  }

  const TensorType& type(const Known& value) const { return builder_.type(value.id); }

  // An existing value, the newer the likelier.
  Known& any() {
    const auto count = static_cast<int64_t>(known_.size());
    return known_[static_cast<size_t>(std::max(random_.below(count), random_.below(count)))];
  }

  // Adds an op; one that does not fit (too large, a rule not met) is no failure: another is tried.
  Status add(OpCode code, std::vector<ValueId> operands, Attrs attrs, bool exact) {
    auto results = builder_.op(code, operands, std::move(attrs));
    if (!results.ok()) return results.status().code() == Code::invalid_argument ? Status() : results.status();
    for (Known& value : known_)
      if (std::find(operands.begin(), operands.end(), value.id) != operands.end()) value.used = true;
    for (const ValueId id : *results) known_.push_back({id, exact, false});
    ++made_;
    return {};
  }

  Status grow() {
    const Known x = any();
    if (count_of(type(x).shape) > 4 * kMaxElements) return {};
    if (options_.control && depth_ < 3 && random_.chance(8)) return control();
    switch (random_.below(16)) {
      case 0:
      case 1:
        return unary(x);
      case 2:
      case 3:
      case 4:
        return binary(x);
      case 5:
        return choose(x);
      case 6:
        return add(OpCode::cast, {x.id}, {{AttrKey::to, cast_target(x)}}, x.exact);
      case 7:
        return change_shape(x);
      case 8:
        return cut(x);
      case 9:
        return join(x);
      case 10:
        return look_up(x);
      case 11:
        return reduce(x);
      case 12:
        return normalise(x);
      case 13:
        return slide(x);
      case 14:
        return convolve(x);
      default:
        return multiply(x);
    }
  }

  // An inexact float must not be cast to an integer: the last bit would decide.
  DType cast_target(const Known& x) {
    const DType to = random_type();
    return x.exact || is_float(to) ? to : DType::f64;
  }

  Status unary(const Known& x) {
    const DType dtype = type(x).dtype;
    if (dtype == DType::boolean) return add(OpCode::logical_not, {x.id}, {}, x.exact);
    if (!is_float(dtype)) {
      static const std::vector<OpCode> kOps = {OpCode::neg, OpCode::abs, OpCode::bit_not, OpCode::sign, OpCode::relu};
      return add(random_.pick(kOps), {x.id}, {}, x.exact);
    }
    static const std::vector<OpCode> kSafe = {OpCode::neg, OpCode::abs, OpCode::relu};
    static const std::vector<OpCode> kExact = {OpCode::sqrt,  OpCode::floor, OpCode::ceil,       OpCode::round,
                                               OpCode::trunc, OpCode::sign,  OpCode::reciprocal, OpCode::is_nan};
    static const std::vector<OpCode> kSmooth = {OpCode::tanh, OpCode::sigmoid, OpCode::erf, OpCode::sin, OpCode::cos};
    static const std::vector<OpCode> kSteep = {OpCode::exp, OpCode::log};
    if (random_.chance(3)) return add(random_.pick(kSafe), {x.id}, {}, x.exact);
    if (!x.exact) return add(random_.pick(kSmooth), {x.id}, {}, false);
    if (random_.chance(2)) return add(random_.pick(kExact), {x.id}, {}, true);
    return add(random_.chance(2) ? random_.pick(kSteep) : random_.pick(kSmooth), {x.id}, {}, false);
  }

  // A value of x's element type that broadcasts with it.
  Result<Known> partner(const Known& x) {
    const TensorType& wanted = type(x);
    std::vector<Known> fitting;
    for (const Known& candidate : known_)
      if (type(candidate).dtype == wanted.dtype &&
          graph::broadcast(type(candidate).shape, wanted.shape, builder_.dims()).ok())
        fitting.push_back(candidate);
    if (fitting.size() > 1 && !random_.chance(3)) return random_.pick(fitting);
    TensorType constant{wanted.dtype, {}};
    const auto rank = static_cast<int64_t>(wanted.rank());
    for (int64_t d = rank - random_.below(rank + 1); d < rank; ++d) {
      const IntExpr& e = wanted.shape[static_cast<size_t>(d)];
      constant.shape.push_back(e.is_constant() && !random_.chance(3) ? e : IntExpr(1));
    }
    QUARTET_ASSIGN(const ValueId id, random_constant(constant));
    return Known{id};
  }

  Status binary(const Known& x) {
    const DType dtype = type(x).dtype;
    QUARTET_ASSIGN(const Known y, partner(x));
    const bool exact = x.exact && y.exact;
    static const std::vector<OpCode> kBool = {OpCode::bit_and, OpCode::bit_or, OpCode::bit_xor, OpCode::equal};
    static const std::vector<OpCode> kFloat = {OpCode::add, OpCode::sub, OpCode::mul, OpCode::min, OpCode::max};
    static const std::vector<OpCode> kExactFloat = {OpCode::div,        OpCode::rem,      OpCode::less,
                                                    OpCode::less_equal, OpCode::greater,  OpCode::floor_mod,
                                                    OpCode::equal,      OpCode::not_equal};
    static const std::vector<OpCode> kInteger = {
        OpCode::add,         OpCode::sub,  OpCode::mul,     OpCode::div,          OpCode::rem,     OpCode::floor_mod,
        OpCode::min,         OpCode::max,  OpCode::bit_and, OpCode::bit_or,       OpCode::bit_xor, OpCode::shift_left,
        OpCode::shift_right, OpCode::less, OpCode::equal,   OpCode::greater_equal};
    if (dtype == DType::boolean) return add(random_.pick(kBool), {x.id, y.id}, {}, exact);
    if (!is_float(dtype)) return add(random_.pick(kInteger), {x.id, y.id}, {}, exact);
    if (exact && random_.chance(3)) return add(random_.pick(kExactFloat), {x.id, y.id}, {}, true);
    return add(random_.pick(kFloat), {x.id, y.id}, {}, exact);
  }

  Status choose(const Known& x) {
    QUARTET_ASSIGN(const Known y, partner(x));
    std::vector<Known> conditions;
    for (const Known& candidate : known_)
      if (type(candidate).dtype == DType::boolean &&
          graph::broadcast(type(candidate).shape, type(x).shape, builder_.dims()).ok())
        conditions.push_back(candidate);
    if (conditions.empty()) {
      if (!x.exact) return {};
      return add(OpCode::less, {x.id, y.id}, {}, y.exact);
    }
    return add(OpCode::select, {random_.pick(conditions).id, x.id, y.id}, {}, x.exact && y.exact);
  }

  Status change_shape(const Known& x) {
    const Shape& shape = type(x).shape;
    const auto rank = static_cast<int64_t>(shape.size());
    if (rank > 1 && random_.chance(2)) {
      std::vector<int64_t> perm(shape.size());
      for (size_t d = 0; d < perm.size(); ++d) perm[d] = static_cast<int64_t>(d);
      for (size_t d = perm.size(); d-- > 1;) std::swap(perm[d], perm[static_cast<size_t>(random_.below(rank))]);
      return add(OpCode::transpose, {x.id}, {{AttrKey::perm, perm}}, x.exact);
    }
    Shape wanted = shape;
    if (random_.chance(3)) {  // broadcast
      for (IntExpr& e : wanted)
        if (e.is(1)) e = random_.pick(dims_);
      if (wanted.size() < 4) wanted.insert(wanted.begin(), random_.pick(dims_));
      if (count_of(wanted) > kMaxElements) return {};
      return add(OpCode::expand, {x.id}, {{AttrKey::shape, wanted}}, x.exact);
    }
    if (rank > 1 && random_.chance(2)) {  // merge two axes
      const auto d = static_cast<size_t>(random_.below(rank - 1));
      wanted[d] = wanted[d] * wanted[d + 1];
      wanted.erase(wanted.begin() + static_cast<std::ptrdiff_t>(d) + 1);
    } else if (rank < 5) {  // split an axis, or add one
      const auto d = static_cast<size_t>(random_.below(rank + 1));
      int64_t part = 1;
      if (d < wanted.size() && wanted[d].is_constant())
        for (const int64_t candidate : {7, 5, 4, 3, 2})
          if (*wanted[d].constant() % candidate == 0) part = candidate;
      if (d < wanted.size() && part > 1) wanted[d] = floor_div(wanted[d], IntExpr(part));
      wanted.insert(wanted.begin() + static_cast<std::ptrdiff_t>(d), IntExpr(part));
    }
    return add(OpCode::reshape, {x.id}, {{AttrKey::shape, wanted}}, x.exact);
  }

  Status cut(const Known& x) {
    const Shape& shape = type(x).shape;
    if (shape.empty()) return {};
    Shape starts(shape.size(), IntExpr(0)), limits = shape;
    std::vector<int64_t> steps(shape.size(), 1);
    const auto d = static_cast<size_t>(random_.below(static_cast<int64_t>(shape.size())));
    if (shape[d].is_constant() && *shape[d].constant() > 1) {
      const int64_t extent = *shape[d].constant();
      const int64_t start = random_.below(extent);
      starts[d] = start;
      limits[d] = start + random_.below(extent - start + 1);
      steps[d] = 1 + random_.below(3);
    } else {
      steps[d] = 1 + random_.below(2);
    }
    if (random_.chance(3)) {
      starts[d] = shape[d] - IntExpr(1);
      limits[d] = IntExpr(-1);
      steps[d] = -1;
    }
    return add(OpCode::slice, {x.id}, {{AttrKey::starts, starts}, {AttrKey::limits, limits}, {AttrKey::steps, steps}},
               x.exact);
  }

  Status join(const Known& x) {
    const TensorType& t = type(x);
    if (t.rank() == 0) return {};
    const int64_t axis = random_.below(static_cast<int64_t>(t.rank()));
    if (random_.chance(2)) {
      Shape low(t.rank(), IntExpr(0)), high = low;
      low[static_cast<size_t>(axis)] = random_.below(4);
      high[static_cast<size_t>(axis)] = random_.below(4);
      QUARTET_ASSIGN(const ValueId fill, random_constant({t.dtype, {}}));
      return add(OpCode::pad, {x.id, fill}, {{AttrKey::low, low}, {AttrKey::high, high}}, x.exact);
    }
    std::vector<ValueId> parts = {x.id};
    bool exact = x.exact;
    for (const Known& candidate : known_)
      if (type(candidate) == t && random_.chance(2) && parts.size() < 4) {
        parts.push_back(candidate.id);
        exact = exact && candidate.exact;
      }
    return add(OpCode::concat, parts, {{AttrKey::axis, axis}}, exact);
  }

  // Rows put where some of them meet, and some point nowhere.
  Status scatter(const Known& x) {
    const TensorType t = type(x);
    if (t.rank() != 2) return {};
    const int64_t rows = value_of(t.shape[0]), count = random_.below(6);
    TensorType indices{random_.chance(2) ? DType::i64 : DType::i32, {IntExpr(count)}};
    QUARTET_ASSIGN(const ValueId id, random_constant(indices));
    QUARTET_ASSIGN(const ValueId extent, builder_.scalar(indices.dtype, rows + 2));
    QUARTET_ASSIGN(const ValueId near, builder_.one(OpCode::rem, {id, extent}));
    QUARTET_ASSIGN(const ValueId row, random_constant({t.dtype, {IntExpr(count), IntExpr(1)}}));
    QUARTET_ASSIGN(const ValueId updates,
                   builder_.one(OpCode::expand, {row}, {{AttrKey::shape, Shape{count, t.shape[1]}}}));
    const int64_t combine = t.dtype == DType::boolean ? 0 : random_.below(5);
    return add(OpCode::scatter, {x.id, near, updates}, {{AttrKey::combine, combine}}, x.exact);
  }

  Status look_up(const Known& x) {
    const TensorType& t = type(x);
    if (t.rank() == 0) return {};
    if (t.rank() == 2 && random_.chance(3)) return scatter(x);
    const int64_t axis = random_.below(static_cast<int64_t>(t.rank()));
    if (value_of(t.shape[static_cast<size_t>(axis)]) == 0) return {};
    TensorType indices{random_.chance(2) ? DType::i64 : DType::i32, {}};
    for (int64_t rank = random_.below(3); rank > 0; --rank) indices.shape.emplace_back(1 + random_.below(5));
    QUARTET_ASSIGN(const ValueId id, random_constant(indices));
    return add(OpCode::gather, {x.id, id}, {{AttrKey::axis, axis}}, x.exact);
  }

  Status reduce(const Known& x) {
    const TensorType& t = type(x);
    if (t.rank() == 0) return {};
    const int64_t keepdims = random_.below(2);
    if (x.exact && t.dtype != DType::boolean && random_.chance(4)) {
      const OpCode code = random_.chance(2) ? OpCode::argmax : OpCode::argmin;
      return add(code, {x.id},
                 {{AttrKey::axis, random_.below(static_cast<int64_t>(t.rank()))},
                  {AttrKey::keepdims, keepdims},
                  {AttrKey::select_last_index, random_.below(2)}},
                 true);
    }
    std::vector<int64_t> axes;
    for (int64_t d = 0; d < static_cast<int64_t>(t.rank()); ++d)
      if (random_.chance(2)) axes.push_back(d);
    if (axes.empty()) axes.push_back(random_.below(static_cast<int64_t>(t.rank())));
    const Attrs attrs = {{AttrKey::axes, axes}, {AttrKey::keepdims, keepdims}};
    if (t.dtype == DType::boolean)
      return add(random_.chance(2) ? OpCode::reduce_all : OpCode::reduce_any, {x.id}, attrs, x.exact);
    static const std::vector<OpCode> kExtremes = {OpCode::reduce_max, OpCode::reduce_min};
    if (random_.chance(3)) return add(random_.pick(kExtremes), {x.id}, attrs, x.exact);
    static const std::vector<OpCode> kIntegers = {OpCode::reduce_sum, OpCode::reduce_prod, OpCode::reduce_sum_square};
    if (is_int(t.dtype)) return add(random_.pick(kIntegers), {x.id}, attrs, x.exact);
    static const std::vector<OpCode> kFloats = {OpCode::reduce_sum, OpCode::reduce_mean, OpCode::reduce_l1};
    static const std::vector<OpCode> kSteep = {OpCode::reduce_sum_square, OpCode::reduce_l2,
                                               OpCode::reduce_log_sum_exp};
    return add(x.exact && random_.chance(2) ? random_.pick(kSteep) : random_.pick(kFloats), {x.id}, attrs, false);
  }

  Status normalise(const Known& x) {
    const TensorType& t = type(x);
    if (t.rank() == 0 || !is_float(t.dtype)) return {};
    const int64_t axis = random_.below(static_cast<int64_t>(t.rank()));
    if (value_of(t.shape[static_cast<size_t>(axis)]) == 0) return {};
    const OpCode code = random_.chance(3) ? OpCode::log_softmax : OpCode::softmax;
    if (random_.chance(2)) return add(code, {x.id}, {{AttrKey::axis, axis}}, false);
    QUARTET_ASSIGN(const std::vector<ValueId> parts, standardise(builder_, x.id, axis, random_.chance(2)));
    return add(OpCode::div, parts, {}, false);
  }

  // Windows along some axes.
  Status slide(const Known& x) {
    const TensorType& t = type(x);
    std::vector<int64_t> axes, sizes, strides, dilations;
    for (int64_t d = 0; d < static_cast<int64_t>(t.rank()); ++d) {
      if (!random_.chance(2)) continue;
      axes.push_back(d);
      sizes.push_back(1 + random_.below(3));
      strides.push_back(1 + random_.below(2));
      dilations.push_back(1 + random_.below(2));
    }
    if (axes.empty() || t.rank() + axes.size() > 6) return {};
    return add(
        OpCode::window, {x.id},
        {{AttrKey::axes, axes}, {AttrKey::sizes, sizes}, {AttrKey::strides, strides}, {AttrKey::dilations, dilations}},
        x.exact);
  }

  // x as channels first by random filters, in groups now and then.
  Status convolve(const Known& x) {
    const TensorType t = type(x);
    if (t.rank() < 3 || t.rank() > 5 || t.dtype == DType::boolean || !t.shape[1].is_constant()) return {};
    const int64_t channels = *t.shape[1].constant();
    const int64_t groups = channels > 0 && random_.chance(2) ? (random_.chance(2) ? channels : 1 + channels % 2) : 1;
    if (channels % groups != 0) return {};
    TensorType filters{t.dtype, {IntExpr(groups * (1 + random_.below(4))), IntExpr(channels / groups)}};
    std::vector<int64_t> strides, dilations;
    for (size_t d = 2; d < t.rank(); ++d) {
      filters.shape.emplace_back(1 + random_.below(3));
      strides.push_back(1 + random_.below(2));
      dilations.push_back(1 + random_.below(2));
    }
    if (count_of(t.shape) * count_of(filters.shape) > 64 * kMaxElements) return {};
    QUARTET_ASSIGN(const ValueId id, random_constant(filters));
    return add(OpCode::conv, {x.id, id},
               {{AttrKey::strides, strides}, {AttrKey::dilations, dilations}, {AttrKey::groups, groups}},
               x.exact && is_int(t.dtype));
  }

  Status multiply(const Known& x) {
    const TensorType t = type(x);
    if (t.rank() == 0 || t.rank() > 4 || t.dtype == DType::boolean) return {};
    const bool exact = x.exact && is_int(t.dtype);
    const int64_t transpose_a = t.rank() > 1 ? random_.below(2) : 0;
    const IntExpr& k = t.shape[t.rank() - (transpose_a ? 2 : 1)];
    if (t.rank() > 1 && (!k.is_constant() || random_.chance(3))) {  // with its own transpose
      Shape square = t.shape;
      const IntExpr& m = t.shape[t.rank() - (transpose_a ? 1 : 2)];
      square[t.rank() - 1] = square[t.rank() - 2] = m;
      if (count_of(square) * std::max<int64_t>(value_of(k), 1) > 8 * kMaxElements) return {};
      return add(OpCode::matmul, {x.id, x.id},
                 {{AttrKey::transpose_a, transpose_a}, {AttrKey::transpose_b, 1 - transpose_a}}, exact);
    }
    if (!k.is_constant()) return {};
    const IntExpr n = random_.chance(4) ? IntExpr(1) : IntExpr(random_.pick(kExtents));
    if (count_of(t.shape) * *n.constant() > 16 * kMaxElements) return {};
    const int64_t transpose_b = random_.below(2);
    TensorType weights{t.dtype, transpose_b ? Shape{n, k} : Shape{k, n}};
    if (!transpose_b && random_.chance(6)) weights.shape = {k};
    QUARTET_ASSIGN(const ValueId id, random_constant(weights));
    return add(OpCode::matmul, {x.id, id}, {{AttrKey::transpose_a, transpose_a}, {AttrKey::transpose_b, transpose_b}},
               exact);
  }

  // ---- Control. What regions yield is exact, so that the interpreter's bits are the only right ones. ----
  // A condition that both evaluations agree on.
  Result<ValueId> condition();
  // Values that a region may hand on.
  std::vector<Known> exact_values(int64_t most_elements);
  // Grows ops in the open region, then picks a value of each type: a new one if there is one.
  Result<std::vector<ValueId>> fill_region(const std::vector<TensorType>& types, const std::vector<ValueId>& otherwise);
  Status control();
  Status branch();
  // A dim that is born in the run, with the value that it will have.
  Result<IntExpr> new_dim(int64_t value, std::optional<IntExpr> upper);
  // Whether a dim is of a symbol that was declared after so many others: inside a region.
  static bool has_symbol_from(const Shape& shape, Symbol first);
  // A value whose first axis is longer by a few of its elements' kind: the same rows once more, or others.
  Result<ValueId> lengthened(ValueId id);
  // An if whose sides differ in a dim.
  Status branch_of_dims();
  // A loop that makes a carried value longer in each iteration, or shorter.
  Status lengthen();
  // What is of a dim that a number in the run says.
  Status number_as_dim();
  // How often a loop runs: a number, a symbol, or what a run says.
  struct Trip {
    ValueId id = graph::kNoValue;
    std::optional<IntExpr> known;
    int64_t most = 9;
  };
  Result<Trip> random_trip();
  Status repeat();
  // Rows of something from outside, from the first or from the last.
  Status look_up_row(ValueId iteration);

  // Every value nobody used, and now and then one that somebody did.
  Status make_outputs() {
    int64_t count = 0;
    for (const Known& value : known_)
      if (!value.used || random_.chance(8)) {
        QUARTET_TRY(builder_.output(value.id, "output" + std::to_string(count++)));
        result_.exact.push_back(value.exact);
      }
    return {};
  }

  Random random_;
  GeneratorOptions options_;
  graph::Builder builder_;
  std::map<Symbol, int64_t> extents_;
  std::map<Symbol, int64_t> run_extents_;  // of dims born in the run
  std::vector<IntExpr> dims_;
  std::vector<Known> known_;
  RandomGraph result_;
  int64_t made_ = 0;
  ValueId count_ = graph::kNoValue, flag_ = graph::kNoValue;
  int64_t count_value_ = 0, flag_value_ = 0;
  int depth_ = 0;
};

}  // namespace quartet::reference
