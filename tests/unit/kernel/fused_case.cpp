#include "unit/kernel/fused_case.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernel/builder.h"
#include "kernel/expand.h"
#include "reference/kernel_interpreter.h"
#include "reference/scalar.h"
#include "tile/reduction_order.h"

namespace quartet::kernel {

using tile::BodyNode;
using Kind = BodyNode::Kind;

// ---- Building ----

IntExpr FusedCase::dim(int64_t value, bool symbolic) {
  if (!symbolic) return value;
  graph::DimSymbol symbol;
  symbol.name = "d" + std::to_string(graph.symbols.size());
  graph.symbols.push_back(symbol);
  dims.push_back(value);
  return IntExpr::symbol(static_cast<Symbol>(dims.size()) - 1);
}

tile::TensorId FusedCase::tensor(DType dtype, std::vector<IntExpr> shape, int32_t constant) {
  tile::Tensor t;
  t.type = {dtype, std::move(shape)};
  t.constant = constant;
  graph.tensors.push_back(std::move(t));
  return static_cast<tile::TensorId>(graph.tensors.size()) - 1;
}

int64_t FusedCase::evaluate(const IntExpr& e) const {
  return e.evaluate([this](Symbol s) { return std::optional(dims[static_cast<size_t>(s)]); }).value();
}

int64_t FusedCase::elements(tile::TensorId t) const {
  return evaluate(graph.tensors[static_cast<size_t>(t)].type.elements());
}

int32_t FusedCase::add(BodyNode node) {
  fused.expr.body.push_back(std::move(node));
  return static_cast<int32_t>(fused.expr.body.size()) - 1;
}

int32_t FusedCase::read(tile::TensorId tensor, std::vector<IntExpr> index, std::vector<tile::Guard> guards,
                        int32_t fill) {
  auto at = std::find(fused.inputs.begin(), fused.inputs.end(), tensor);
  if (at == fused.inputs.end()) at = fused.inputs.insert(fused.inputs.end(), tensor);
  tile::Read r;
  r.operand = static_cast<int32_t>(at - fused.inputs.begin());
  r.index = std::move(index);
  r.guards = std::move(guards);
  r.fill = fill;
  fused.expr.reads.push_back(std::move(r));
  BodyNode node;
  node.kind = Kind::read;
  node.dtype = graph.tensors[static_cast<size_t>(tensor)].type.dtype;
  node.read = static_cast<int32_t>(fused.expr.reads.size()) - 1;
  return add(std::move(node));
}

int32_t FusedCase::op(ScalarOp op, DType dtype, std::vector<int32_t> operands) {
  BodyNode node;
  node.op = op;
  node.dtype = dtype;
  node.operands = std::move(operands);
  return add(std::move(node));
}

int32_t FusedCase::constant(DType dtype, double value) {
  BodyNode node;
  node.kind = Kind::constant;
  node.dtype = dtype;
  node.bits = is_float(dtype) ? float_bits(dtype, value) : static_cast<int64_t>(value);
  return add(std::move(node));
}

int32_t FusedCase::index(IntExpr e) {
  BodyNode node;
  node.kind = Kind::index;
  node.dtype = DType::i64;
  node.index = std::move(e);
  return add(std::move(node));
}

int32_t FusedCase::reduced(DType dtype, int32_t number) {
  BodyNode node;
  node.kind = Kind::reduced;
  node.dtype = dtype;
  node.read = number;
  return add(std::move(node));
}

int32_t FusedCase::cast(DType to, int32_t node) { return dtype(node) == to ? node : op(ScalarOp::cast, to, {node}); }

void FusedCase::output(int32_t node) {
  const auto& axes = fused.expr.axes;
  fused.expr.outputs.push_back(node);
  fused.outputs.push_back(tensor(dtype(node), {axes.begin(), axes.begin() + fused.expr.spatial}));
}

Memory random_inputs(const FusedCase& c, uint64_t seed) {
  std::mt19937_64 random(seed);
  Memory memory;
  for (const tile::TensorId t : c.fused.inputs) {
    const DType dtype = c.graph.tensors[static_cast<size_t>(t)].type.dtype;
    const size_t size = size_of(dtype);
    auto& bytes = memory[t];
    bytes.resize(static_cast<size_t>(c.elements(t)) * size);
    for (size_t at = 0; at < bytes.size(); at += size) {
      const auto number = static_cast<int64_t>(random() % 2001) - 1000;
      int64_t bits = is_float(dtype) ? float_bits(dtype, static_cast<double>(number) / 300.0) : number;
      if (dtype == DType::boolean) bits = number > -800;
      std::memcpy(&bytes[at], &bits, size);
    }
  }
  return memory;
}

namespace {

// ---- Plain evaluation ----

// A scalar operation that only expansion defines, as a kernel of one element.
Kernel one_op(ScalarOp op, DType dtype, size_t operands, Isa isa) {
  Builder b("one");
  Ids values;
  for (size_t i = 0; i < operands; ++i)
    values.push_back(b.load(b.buffer({"x", dtype, Scope::argument_in, IntExpr(1), 64}), b.i64(0)));
  b.store(b.buffer({"y", dtype, Scope::argument_out, IntExpr(1), 64}), b.i64(0), b.scalar(op, dtype, values));
  return expand(b.finish(IntExpr(1)).value(), isa).value();
}

int64_t expanded_op(ScalarOp op, DType dtype, const std::vector<int64_t>& operands, Isa isa) {
  static std::map<std::tuple<ScalarOp, DType, Isa>, Kernel> known;
  const auto key = std::tuple(op, dtype, isa);
  if (!known.contains(key)) known.emplace(key, one_op(op, dtype, operands.size(), isa));
  std::vector<int64_t> memory = operands;
  memory.push_back(0);
  std::vector<std::span<uint8_t>> spans;
  for (int64_t& cell : memory) spans.emplace_back(reinterpret_cast<uint8_t*>(&cell), sizeof cell);
  EXPECT_TRUE(reference::interpret(known.at(key), isa, spans, {}).ok());
  return memory.back();
}

int64_t apply(ScalarOp op, DType result, DType operand, const std::vector<int64_t>& operands, Isa isa) {
  if (op >= ScalarOp::exp && op <= ScalarOp::pow) return expanded_op(op, result, operands, isa);
  return *reference::evaluate(op, result, operand, operands, isa != Isa::sse2);
}

class Plain {
 public:
  Plain(const FusedCase& c, const Memory& inputs, Isa isa) : c_(c), e_(c.fused.expr), memory_(inputs), isa_(isa) {
    for (const IntExpr& axis : e_.axes) extents_.push_back(c.evaluate(axis));
  }

  Memory run() {
    Memory outputs;
    std::vector<int64_t> spatial(extents_.begin(), extents_.begin() + e_.spatial);
    int64_t points = 1;
    for (const int64_t extent : spatial) points *= extent;
    for (const tile::TensorId t : c_.fused.outputs)
      outputs[t].resize(static_cast<size_t>(points) * size_of(c_.graph.tensors[static_cast<size_t>(t)].type.dtype));
    for (int64_t p = 0; p < points; ++p) {
      point_.assign(e_.axes.size(), 0);
      unravel(p, 0, static_cast<size_t>(e_.spatial));
      reduced_.clear();
      if (e_.reduction != tile::Reduction::none) reduce();
      values_.clear();
      for (size_t i = 0; i < e_.outputs.size(); ++i) {
        auto& bytes = outputs[c_.fused.outputs[i]];
        const size_t size = size_of(c_.dtype(e_.outputs[i]));
        const int64_t bits = node(e_.outputs[i]);
        std::memcpy(&bytes[static_cast<size_t>(p) * size], &bits, size);
      }
    }
    return outputs;
  }

 private:
  void unravel(int64_t number, size_t begin, size_t end) {
    for (size_t i = end; i-- > begin;) {
      point_[i] = number % extents_[i];
      number /= extents_[i];
    }
  }

  int64_t expression(const IntExpr& e) {
    return e
        .evaluate([this](Symbol s) -> std::optional<int64_t> {
          if (is_dim_symbol(s)) return c_.dims[static_cast<size_t>(s)];
          if (is_axis_symbol(s)) return point_[static_cast<size_t>(s - kAxisSymbols)];
          return node(s - kValueSymbols);
        })
        .value();
  }

  int64_t node(int32_t number) {
    if (const auto found = values_.find(number); found != values_.end()) return found->second;
    const BodyNode& n = e_.body[static_cast<size_t>(number)];
    int64_t value = 0;
    switch (n.kind) {
      case Kind::constant:
        value = n.bits;
        break;
      case Kind::index:
        value = expression(n.index);
        break;
      case Kind::reduced:
        value = reduced_[static_cast<size_t>(n.read)];
        break;
      case Kind::read:
        value = read(n);
        break;
      case Kind::op: {
        std::vector<int64_t> operands;
        for (const int32_t o : n.operands) operands.push_back(node(o));
        value = apply(n.op, n.dtype, c_.dtype(n.operands.back()), operands, isa_);
        break;
      }
    }
    return values_[number] = value;
  }

  int64_t read(const BodyNode& n) {
    const tile::Read& r = e_.reads[static_cast<size_t>(n.read)];
    for (const tile::Guard& g : r.guards) {
      const int64_t value = expression(g.value);
      if (value < 0 || value >= expression(g.extent)) return node(r.fill);
    }
    const tile::TensorId t = c_.fused.inputs[static_cast<size_t>(r.operand)];
    const auto& shape = c_.graph.tensors[static_cast<size_t>(t)].type.shape;
    int64_t offset = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      const int64_t at = expression(r.index[d]), extent = c_.evaluate(shape[d]);
      EXPECT_TRUE(at >= 0 && at < extent) << "the case reads outside its tensor";
      offset = offset * extent + at;
    }
    return element(t, n.dtype, offset);
  }

  int64_t element(tile::TensorId t, DType dtype, int64_t offset) const {
    uint64_t raw = 0;
    std::memcpy(&raw, &memory_.at(t)[static_cast<size_t>(offset) * size_of(dtype)], size_of(dtype));
    const int64_t bits[] = {static_cast<int64_t>(raw)};
    if (is_float(dtype) || dtype == DType::boolean) return bits[0];
    return *reference::evaluate(ScalarOp::cast, dtype, DType::i64, bits, false);
  }

  // ---- Reductions ----

  int64_t count() const {
    int64_t n = 1;
    for (size_t i = static_cast<size_t>(e_.spatial); i < extents_.size(); ++i) n *= extents_[i];
    return n;
  }

  int64_t at(int64_t r) {
    unravel(r, static_cast<size_t>(e_.spatial), extents_.size());
    values_.clear();
    return node(e_.element);
  }

  struct State {
    int64_t value, index;
  };

  State merge(const State& a, const State& b) const {
    const DType type = c_.dtype(e_.element);
    using tile::Reduction;
    const auto both = [&](ScalarOp op) { return State{apply(op, type, type, {a.value, b.value}, isa_), -1}; };
    switch (kind_) {
      case Reduction::sum:
        return both(ScalarOp::add);
      case Reduction::product:
        return both(ScalarOp::mul);
      case Reduction::max:
        return both(ScalarOp::max);
      case Reduction::min:
        return both(ScalarOp::min);
      case Reduction::all:
        return both(ScalarOp::bit_and);
      case Reduction::any:
        return both(ScalarOp::bit_or);
      default:
        break;
    }
    if (a.index < 0) return b;
    if (b.index < 0) return a;
    const int order = reference::compare_best(type, a.value, b.value, kind_ == Reduction::argmin);
    return order > 0 || (order == 0 && a.index < b.index) ? a : b;
  }

  // Elements [lo, hi) by `value`, in the order of the rule; nothing for an empty range.
  std::optional<State> chunks(int64_t lo, int64_t hi, const std::function<int64_t(int64_t)>& value) {
    const tile::ReductionOrder order = tile::reduction_order(c_.dtype(e_.element), isa_);
    std::optional<State> total;
    for (int64_t begin = lo; begin < hi; begin += order.chunk) {
      std::vector<std::optional<State>> states(static_cast<size_t>(order.interleave));
      for (int64_t r = begin; r < std::min(hi, begin + order.chunk); ++r) {
        auto& s = states[static_cast<size_t>((r - begin) % order.interleave)];
        const State x{value(r), r - lo};
        s = s ? merge(*s, x) : x;
      }
      for (size_t h = states.size() / 2; h > 0; h /= 2)
        for (size_t i = 0; i < h; ++i)
          if (states[i + h]) states[i] = states[i] ? merge(*states[i], *states[i + h]) : states[i + h];
      total = total ? merge(*total, *states[0]) : states[0];
    }
    return total;
  }

  State empty() const {
    const DType type = c_.dtype(e_.element);
    const double infinity = std::numeric_limits<double>::infinity();
    switch (kind_) {
      case tile::Reduction::sum:
        return {is_float(type) ? float_bits(type, -0.0) : 0, -1};
      case tile::Reduction::product:
        return {is_float(type) ? float_bits(type, 1) : 1, -1};
      case tile::Reduction::max:
      case tile::Reduction::argmax:
        return {is_float(type) ? float_bits(type, -infinity) : std::numeric_limits<int32_t>::min(), -1};
      case tile::Reduction::min:
      case tile::Reduction::argmin:
        return {is_float(type) ? float_bits(type, infinity) : std::numeric_limits<int32_t>::max(), -1};
      default:
        return {kind_ == tile::Reduction::all ? 1 : 0, -1};
    }
  }

  void reduce() {
    const int64_t n = count();
    if (e_.reduction == tile::Reduction::contraction) {
      const BodyNode& product = e_.body[static_cast<size_t>(e_.element)];
      int64_t acc = 0;
      for (int64_t k = 0; k < n; ++k) {
        at(k);
        const int64_t a = node(product.operands[0]), b = node(product.operands[1]);
        if (is_float(product.dtype))
          acc = apply(ScalarOp::fma, product.dtype, product.dtype, {a, b, acc}, isa_);
        else
          acc = apply(ScalarOp::add, product.dtype, product.dtype,
                      {apply(ScalarOp::mul, product.dtype, product.dtype, {a, b}, isa_), acc}, isa_);
      }
      reduced_ = {acc};
      return;
    }
    kind_ = e_.reduction;
    if (kind_ == tile::Reduction::softmax_stats) return softmax(n);
    const State s = chunks(0, n, [this](int64_t r) { return at(r); }).value_or(empty());
    reduced_ = {s.value, s.index};
  }

  void softmax(int64_t n) {
    const DType type = c_.dtype(e_.element);
    const auto exp_less = [&](int64_t x, int64_t maximum) {
      const bool lowest = float_value(type, maximum) == -std::numeric_limits<double>::infinity();
      const int64_t shift = lowest ? float_bits(type, 0) : maximum;
      return apply(ScalarOp::exp, type, type, {apply(ScalarOp::sub, type, type, {x, shift}, isa_)}, isa_);
    };
    const int64_t block = tile::kSoftmaxBlock;
    int64_t m = float_bits(type, -std::numeric_limits<double>::infinity()), s = float_bits(type, -0.0);
    for (int64_t lo = 0; lo < n; lo += block) {
      const int64_t hi = std::min(n, lo + block);
      kind_ = tile::Reduction::max;
      const int64_t mb = chunks(lo, hi, [this](int64_t r) { return at(r); })->value;
      kind_ = tile::Reduction::sum;
      const int64_t sb = chunks(lo, hi, [&](int64_t r) { return exp_less(at(r), mb); })->value;
      if (lo == 0) {
        m = mb, s = sb;
        continue;
      }
      const int64_t next = apply(ScalarOp::max, type, type, {m, mb}, isa_);
      const int64_t old_part = apply(ScalarOp::mul, type, type, {s, exp_less(m, next)}, isa_);
      const int64_t new_part = apply(ScalarOp::mul, type, type, {sb, exp_less(mb, next)}, isa_);
      s = apply(ScalarOp::add, type, type, {old_part, new_part}, isa_);
      m = next;
    }
    reduced_ = {m, s};
  }

  const FusedCase& c_;
  const tile::TensorExpr& e_;
  const Memory& memory_;
  const Isa isa_;
  std::vector<int64_t> extents_, point_, reduced_;
  std::map<int32_t, int64_t> values_;
  tile::Reduction kind_ = tile::Reduction::sum;
};

Status run(const FusedCase& c, const Lowered& lowered,
           std::map<std::pair<int, tile::TensorId>, std::vector<uint8_t>>& memory, Isa isa) {
  QUARTET_ASSIGN(const Kernel kernel, expand(lowered.kernel, isa));
  std::vector<int64_t> dims;
  for (const Symbol s : lowered.dims) dims.push_back(c.dims[static_cast<size_t>(s)]);
  std::vector<std::span<uint8_t>> spans;
  for (size_t i = 0; i < lowered.arguments.size(); ++i) {
    const Argument& argument = lowered.arguments[i];
    auto& bytes = memory[{static_cast<int>(argument.kind), argument.tensor}];
    const Buffer& buffer = kernel.buffers[i];
    const int64_t count =
        buffer.elements.evaluate([&](Symbol s) { return std::optional(dims[static_cast<size_t>(s)]); }).value();
    if (buffer.scope == Scope::argument_out) bytes.assign(static_cast<size_t>(count) * size_of(buffer.dtype), 0xa5);
    spans.emplace_back(bytes);
  }
  const auto tasks = reference::interpret(kernel, isa, spans, dims);
  return tasks.ok() ? Status() : tasks.status().with_prefix(print(lowered.kernel));
}

}  // namespace

Memory evaluate_plainly(const FusedCase& c, const Memory& inputs, Isa isa) { return Plain(c, inputs, isa).run(); }

Result<Memory> evaluate_lowered(const FusedCase& c, const LoweredGroup& group, const Memory& inputs, Isa isa) {
  std::map<std::pair<int, tile::TensorId>, std::vector<uint8_t>> memory;
  for (const auto& [tensor, bytes] : inputs) memory[{0, tensor}] = bytes;
  for (const Packing& packing : group.packings) {
    QUARTET_TRY(run(c, packing.lowered, memory, isa));
    const auto panels = memory.find({1, packing.lowered.arguments.back().tensor});
    if (panels == memory.end() || static_cast<int64_t>(panels->second.size()) != c.evaluate(packing.bytes))
      return make_error(Code::internal, "panels of %lld bytes", static_cast<long long>(c.evaluate(packing.bytes)));
  }
  QUARTET_TRY(run(c, group.main, memory, isa));
  Memory outputs;
  for (const tile::TensorId t : c.fused.outputs) outputs[t] = memory[{0, t}];
  return outputs;
}

}  // namespace quartet::kernel
