#include "kernel/builder.h"

#include <algorithm>
#include <bit>

#include "base/checked.h"
#include "kernel/analysis.h"
#include "kernel/clean.h"

namespace quartet::kernel {
namespace {

Statement statement(Op op) {
  Statement s{};
  s.op = op;
  return s;
}

}  // namespace

Builder::Builder(std::string name) {
  kernel_.name = std::move(name);
  frames_.emplace_back();
  task_ = new_value(DType::i64, 0);
  frames_[0].region.arguments.push_back(task_);
}

BufferId Builder::buffer(Buffer buffer) {
  kernel_.buffers.push_back(std::move(buffer));
  return static_cast<BufferId>(kernel_.buffers.size() - 1);
}

void Builder::set_dims(int32_t dims, std::vector<IntExpr> bounds) {
  kernel_.dims = dims;
  kernel_.dim_bounds = std::move(bounds);
}

ValueId Builder::new_value(DType dtype, size_t depth) {
  kernel_.value_types.push_back(dtype);
  depths_.push_back(depth);
  constants_.emplace_back();
  return static_cast<ValueId>(kernel_.value_types.size() - 1);
}

size_t Builder::depth_of(std::span<const ValueId> values) const {
  size_t depth = 0;
  for (const ValueId v : values) depth = std::max(depth, depth_of(v));
  return depth;
}

ValueId Builder::emit(Statement statement, DType dtype, size_t depth) {
  Frame& frame = frames_[depth];
  const Key key{static_cast<int32_t>(statement.op), static_cast<int32_t>(dtype), statement.buffer, statement.immediate,
                statement.operands};
  if (const auto found = frame.known.find(key); found != frame.known.end()) return found->second;
  const ValueId v = new_value(dtype, depth);
  statement.dtype = dtype;
  statement.results = {v};
  if (statement.op == Op::constant) constants_[static_cast<size_t>(v)] = statement.immediate;
  frame.region.body.push_back(std::move(statement));
  frame.known.emplace(key, v);
  return v;
}

ValueId Builder::constant(DType dtype, int64_t bits) {
  Statement s = statement(Op::constant);
  s.immediate = canonical_bits(dtype, bits);
  return emit(std::move(s), dtype, 0);
}

ValueId Builder::dim(int32_t number) {
  Statement s = statement(Op::dim);
  s.immediate = number;
  return emit(std::move(s), DType::i64, 0);
}

std::optional<int64_t> Builder::constant_of(ValueId v) const { return constants_[static_cast<size_t>(v)]; }

ValueId Builder::scalar(ScalarOp op, DType dtype, std::span<const ValueId> operands) {
  if (const auto folded = fold(op, dtype, operands)) return *folded;
  Statement s = statement(op_of(op));
  s.operands.assign(operands.begin(), operands.end());
  const size_t depth = depth_of(operands);
  return emit(std::move(s), dtype, depth);
}

std::optional<ValueId> Builder::fold(ScalarOp op, DType dtype, std::span<const ValueId> operands) {
  if (op == ScalarOp::select) {
    if (operands[1] == operands[2]) return operands[1];
    if (const auto c = constant_of(operands[0])) return *c ? operands[1] : operands[2];
    return std::nullopt;
  }
  if (operands.size() == 2 && dtype == DType::boolean && type(operands[0]) == DType::boolean) {
    for (size_t i = 0; i < 2; ++i) {
      const auto c = constant_of(operands[i]);
      if (!c) continue;
      if (op == ScalarOp::bit_and) return *c ? operands[1 - i] : operands[i];
      if (op == ScalarOp::bit_or) return *c ? operands[i] : operands[1 - i];
    }
  }
  if (operands.size() == 2 && type(operands[0]) == DType::i64) return fold_index(op, operands[0], operands[1]);
  return std::nullopt;
}

std::optional<ValueId> Builder::fold_index(ScalarOp op, ValueId a, ValueId b) {
  const auto ca = constant_of(a), cb = constant_of(b);
  const auto value = [this](std::optional<int64_t> v) { return v ? std::optional(i64(*v)) : std::nullopt; };
  const auto truth = [this](bool v) { return std::optional(constant(DType::boolean, v)); };
  switch (op) {
    case ScalarOp::add:
      if (ca && cb) return value(checked_add(*ca, *cb));
      if (ca && *ca == 0) return b;
      if (cb && *cb == 0) return a;
      break;
    case ScalarOp::sub:
      if (a == b) return i64(0);
      if (ca && cb && *cb != INT64_MIN) return value(checked_add(*ca, -*cb));
      if (cb && *cb == 0) return a;
      break;
    case ScalarOp::mul:
      if (ca && cb) return value(checked_mul(*ca, *cb));
      if ((ca && *ca == 0) || (cb && *cb == 1)) return a;
      if ((cb && *cb == 0) || (ca && *ca == 1)) return b;
      break;
    case ScalarOp::floor_div:
      if (!cb || *cb <= 0) break;
      if (*cb == 1) return a;
      if (ca) return i64(*ca / *cb - (*ca % *cb < 0));
      // An arithmetic shift rounds towards minus infinity as well.
      if (std::has_single_bit(static_cast<uint64_t>(*cb)))
        return binary(ScalarOp::shift_right, a, i64(std::countr_zero(static_cast<uint64_t>(*cb))));
      break;
    case ScalarOp::floor_mod:
      if (!cb || *cb <= 0) break;
      if (ca) return i64((*ca % *cb + *cb) % *cb);
      if (std::has_single_bit(static_cast<uint64_t>(*cb))) return binary(ScalarOp::bit_and, a, i64(*cb - 1));
      break;
    case ScalarOp::min:
      if (a == b) return a;
      if (ca && cb) return *ca < *cb ? a : b;
      break;
    case ScalarOp::max:
      if (a == b) return a;
      if (ca && cb) return *ca < *cb ? b : a;
      break;
    case ScalarOp::lt:
      if (ca && cb) return truth(*ca < *cb);
      break;
    case ScalarOp::le:
      if (ca && cb) return truth(*ca <= *cb);
      break;
    case ScalarOp::eq:
      if (ca && cb) return truth(*ca == *cb);
      break;
    default:
      break;
  }
  return std::nullopt;
}

// ---- Index expressions: what changes least comes first, so that it is computed outside the inner loops. ----

ValueId Builder::atom(const IntExpr::Atom& atom, const std::function<ValueId(Symbol)>& value_of) {
  if (!atom.func) return value_of(atom.symbol);
  const ValueId a = index(atom.func->a, value_of), b = index(atom.func->b, value_of);
  if (a == kNone || b == kNone) return kNone;
  switch (atom.func->func) {
    case IntExpr::Func::floor_div:
      return binary(ScalarOp::floor_div, a, b);
    case IntExpr::Func::floor_mod:
      return binary(ScalarOp::floor_mod, a, b);
    case IntExpr::Func::min:
      return min(a, b);
    case IntExpr::Func::max:
      return max(a, b);
  }
  return kNone;
}

ValueId Builder::term(const IntExpr::Term& term, const std::function<ValueId(Symbol)>& value_of) {
  Ids factors;
  for (const IntExpr::Atom& a : term.factors) {
    factors.push_back(atom(a, value_of));
    if (factors.back() == kNone) return kNone;
  }
  std::sort(factors.begin(), factors.end(),
            [this](ValueId a, ValueId b) { return std::pair(depth_of(a), a) < std::pair(depth_of(b), b); });
  // The sign is the sum's business.
  ValueId product = i64(term.coefficient < 0 && term.coefficient != INT64_MIN ? -term.coefficient : term.coefficient);
  for (const ValueId f : factors) product = mul(product, f);
  return product;
}

ValueId Builder::index(const IntExpr& e, const std::function<ValueId(Symbol)>& value_of) {
  if (!e.is_valid()) return kNone;
  struct Part {
    ValueId value;
    bool negative;
  };
  std::vector<Part> parts;
  for (const IntExpr::Term& t : e.terms()) {
    parts.push_back({term(t, value_of), t.coefficient < 0 && t.coefficient != INT64_MIN});
    if (parts.back().value == kNone) return kNone;
  }
  std::sort(parts.begin(), parts.end(), [this](const Part& a, const Part& b) {
    return std::pair(depth_of(a.value), a.value) < std::pair(depth_of(b.value), b.value);
  });
  ValueId sum = i64(e.constant_term());
  for (const Part& part : parts) sum = part.negative ? sub(sum, part.value) : add(sum, part.value);
  return sum;
}

// ---- Memory ----

ValueId Builder::load(BufferId buffer, ValueId index, ValueId guard, ValueId fill) {
  Statement s = statement(Op::load);
  s.buffer = buffer;
  s.operands = {index};
  if (guard != kNone && constant_of(guard) != 1) {
    s.operands.push_back(guard);
    s.operands.push_back(fill);
  }
  const Buffer& from = kernel_.buffers[static_cast<size_t>(buffer)];
  size_t depth = frames_.size() - 1;
  if (from.scope == Scope::argument_in) {
    const size_t reach = depth_of(s.operands);
    while (depth > reach && frames_[depth].runs == Runs::always) --depth;
    // What an enclosing region already holds need not be loaded again.
    const Key key{static_cast<int32_t>(s.op), static_cast<int32_t>(from.dtype), buffer, 0, s.operands};
    for (size_t outer = depth; outer > reach; --outer)
      if (const auto found = frames_[outer - 1].known.find(key); found != frames_[outer - 1].known.end())
        return found->second;
    return emit(std::move(s), from.dtype, depth);
  }
  const ValueId v = new_value(from.dtype, depth);
  s.dtype = from.dtype;
  s.results = {v};
  append(std::move(s));
  return v;
}

void Builder::store(BufferId buffer, ValueId index, ValueId value, ValueId guard) {
  Statement s = statement(Op::store);
  s.buffer = buffer;
  s.operands = {index, value};
  if (guard != kNone && constant_of(guard) != 1) s.operands.push_back(guard);
  append(std::move(s));
}

// ---- Regions ----

Region Builder::region(const std::vector<DType>& arguments, Runs runs,
                       const std::function<Ids(std::span<const ValueId>)>& body) {
  frames_.emplace_back();
  frames_.back().runs = runs;
  Ids ids;
  for (const DType type : arguments) ids.push_back(new_value(type, frames_.size() - 1));
  frames_.back().region.arguments = ids;
  Statement yield = statement(Op::yield);
  yield.operands = body(ids);
  append(std::move(yield));
  Region done = std::move(frames_.back().region);
  frames_.pop_back();
  return done;
}

Ids Builder::loop(LoopKind kind, ValueId lo, ValueId hi, int64_t step, const Ids& inits, Runs runs,
                  const LoopBody& body) {
  Statement s = statement(Op::loop);
  s.loop = kind;
  s.operands = {lo, hi, i64(step)};
  std::vector<DType> arguments{DType::i64};
  for (const ValueId v : inits) {
    s.operands.push_back(v);
    arguments.push_back(type(v));
  }
  s.regions.push_back(
      region(arguments, runs, [&](std::span<const ValueId> ids) { return body(ids[0], ids.subspan(1)); }));
  for (const ValueId v : inits) s.results.push_back(new_value(type(v), frames_.size() - 1));
  Ids results = s.results;
  append(std::move(s));
  return results;
}

void Builder::loop(LoopKind kind, ValueId lo, ValueId hi, int64_t step, Runs runs,
                   const std::function<void(ValueId)>& body) {
  loop(kind, lo, hi, step, {}, runs, [&](ValueId i, std::span<const ValueId>) {
    body(i);
    return Ids{};
  });
}

Ids Builder::branch(ValueId condition, const std::function<Ids()>& then, const std::function<Ids()>& otherwise) {
  if (const auto known = constant_of(condition)) return *known ? then() : otherwise();
  Statement s = statement(Op::branch);
  s.operands = {condition};
  for (const auto* side : {&then, &otherwise})
    s.regions.push_back(region({}, Runs::maybe, [&](std::span<const ValueId>) { return (*side)(); }));
  for (const ValueId v : s.regions[0].body.back().operands) s.results.push_back(new_value(type(v), frames_.size() - 1));
  Ids results = s.results;
  append(std::move(s));
  return results;
}

Ids Builder::reduce(const ReduceSpec& spec, ValueId lo, ValueId hi, const std::function<ValueId(ValueId)>& element) {
  Statement s = statement(Op::reduce);
  s.dtype = spec.dtype;
  s.reduce = spec.op;
  s.interleave = spec.interleave;
  s.chunk = spec.chunk;
  s.operands = {lo, hi};
  s.regions.push_back(
      region({DType::i64}, Runs::maybe, [&](std::span<const ValueId> r) { return Ids{element(r[0])}; }));
  s.results.push_back(new_value(spec.dtype, frames_.size() - 1));
  if (spec.op == ReduceOp::argmax || spec.op == ReduceOp::argmin)
    s.results.push_back(new_value(DType::i64, frames_.size() - 1));
  Ids results = s.results;
  append(std::move(s));
  return results;
}

void Builder::contract(const ContractTile& tile, const std::function<void(ValueId, ValueId, ValueId)>& epilogue,
                       const std::function<ValueId(ValueId, ValueId)>& init) {
  Statement s = statement(Op::contract);
  s.dtype = tile.accumulator;
  s.buffer = tile.a;
  s.buffer_b = tile.b;
  s.rows = tile.rows;
  s.columns = tile.columns;
  s.unroll = tile.unroll;
  s.operands = {tile.k_count, tile.a_base,     tile.a_row_stride, tile.a_k_stride,
                tile.b_base,  tile.b_k_stride, tile.column_limit};
  for (const ContractTile::Around& loop : tile.around)
    s.operands.insert(s.operands.end(), {loop.count, loop.a_stride, loop.b_stride});
  s.regions.push_back(region({DType::i64, DType::i64, tile.accumulator}, tile.runs, [&](std::span<const ValueId> ids) {
    epilogue(ids[0], ids[1], ids[2]);
    return Ids{};
  }));
  if (init)
    s.regions.push_back(region({DType::i64, DType::i64}, tile.runs,
                               [&](std::span<const ValueId> ids) { return Ids{init(ids[0], ids[1])}; }));
  append(std::move(s));
}

Result<Kernel> Builder::finish(IntExpr tasks) {
  append(statement(Op::yield));
  kernel_.body = std::move(frames_[0].region);
  kernel_.tasks = std::move(tasks);
  arguments_first(kernel_);
  clean(kernel_);
  QUARTET_TRY(verify(kernel_));
  return std::move(kernel_);
}

}  // namespace quartet::kernel
