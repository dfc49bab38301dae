// Reductions in the order of tile/reduction_order.h. Outside vector loops the partial states are the lanes of
// registers; inside, each lane has its own states, which live in registers if the elements are few and on the stack
// otherwise.
#include <algorithm>
#include <numeric>

#include "codegen/cpu/arithmetic.h"
#include "codegen/cpu/reduction.h"

namespace quartet::codegen {

using kernel::ReduceOp;
using kernel::Statement;

namespace {

constexpr int64_t kFewElements = 16;       // unrolled
constexpr size_t kFewStatements = 32;      // of a masked run for each state
constexpr int64_t kManyStatements = 256;   // of an unrolled reduction
constexpr int64_t kNarrowIndex = 1 << 30;  // distances kept in i32

std::optional<int64_t> constant_of(const llvm::Value* value) {
  const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value);
  return constant ? std::optional(constant->getSExtValue()) : std::nullopt;
}

std::optional<int64_t> constant_count(const llvm::Value* lo, const llvm::Value* hi) {
  const auto from = constant_of(lo), to = constant_of(hi);
  if (!from || !to) return std::nullopt;
  return std::max<int64_t>(*to - *from, 0);
}

}  // namespace

void Emitter::reduce(const Statement& s) {
  Reduction r{s, value(s.operands[0]), value(s.operands[1]),
              body_shape(kernel_, s.regions[0], varying_, ir_.target, s.dtype)};
  r.along = lanes_.count == 1 && s.interleave > 1;
  r.shape.lanes = r.along ? std::min(r.shape.lanes, s.interleave) : lanes_.count;
  r.indexed = s.reduce == ReduceOp::argmax || s.reduce == ReduceOp::argmin;
  const Range length = r.hi.range - r.lo.range;
  const bool narrow =
      (s.chunk > 0 && s.chunk <= kNarrowIndex) || length.within(std::numeric_limits<int64_t>::min() + 1, kNarrowIndex);
  r.index_type = narrow ? ir_.b.getInt32Ty() : ir_.b.getInt64Ty();
  const bool one_chunk = s.chunk == 0 || (length.bounded() && length.hi <= s.chunk);
  State total = one_chunk ? reduce_chunk(r, r.lo.base, r.hi.base) : reduce_chunks(r);
  if (one_chunk && r.indexed) total.index = ir_.b.CreateSExt(total.index, ir_.like(total.index, ir_.b.getInt64Ty()));
  define(s.results[0], math_.vector(s.dtype, total.best));
  if (r.indexed) define(s.results[1], math_.vector(DType::i64, total.index));
}

// Chunks left to right. The index of the total is i64 and counts from lo.
Emitter::State Emitter::reduce_chunks(const Reduction& r) {
  auto& b = ir_.b;
  const int lanes = lanes_.count;
  llvm::Type* const wide = ir_.type(DType::i64, lanes);
  State total = identity(r, lanes);
  LlvmValues carried{total.best};
  if (r.indexed) carried.push_back(ir_.number(wide, -1));
  ir_.loop(r.lo.base, r.hi.base, ir_.i64(r.s.chunk), carried, [&](llvm::Value* chunk) {
    llvm::Value* const left = b.CreateSub(r.hi.base, chunk);  // chunk + s.chunk may pass the end of the type
    llvm::Value* const length = ir_.intrinsic(llvm::Intrinsic::smin, left, ir_.i64(r.s.chunk));
    State part = reduce_chunk(r, chunk, b.CreateAdd(chunk, length));
    if (r.indexed) {
      llvm::Value* const distance = ir_.splat(b.CreateSub(chunk, r.lo.base), lanes);
      llvm::Value* const index = b.CreateSExt(part.index, wide);
      part.index = b.CreateSelect(b.CreateICmpSLT(index, ir_.number(wide, 0)), index, b.CreateAdd(index, distance));
    }
    const State merged = merge(r, {carried[0], r.indexed ? carried[1] : nullptr}, part);
    carried[0] = merged.best;
    if (r.indexed) carried[1] = merged.index;
  });
  return {carried[0], r.indexed ? carried[1] : nullptr};
}

Emitter::State Emitter::reduce_chunk(const Reduction& r, llvm::Value* lo, llvm::Value* hi) {
  State state;
  const auto count = constant_count(lo, hi);
  if (r.along) {
    state = along_lanes(r, lo, hi);
  } else if (count && *count <= kFewElements && *count * static_cast<int64_t>(r.shape.statements) <= kManyStatements) {
    state = in_registers(r, lo, *count);
  } else if (r.interleave() == 1) {
    state = one_chain(r, lo, hi);
  } else {
    state = in_memory(r, lo, hi);
  }
  return state.empty() ? identity(r, lanes_.count) : state;
}

Emitter::State Emitter::element(const Reduction& r, llvm::Value* at, llvm::Value* chunk, const Lanes& lanes) {
  auto& b = ir_.b;
  Value index;
  const int64_t last = std::max(r.lo.range.lo, r.hi.range.hi - (r.hi.range.hi > r.lo.range.lo ? 1 : 0));
  const Range range{r.lo.range.lo, last};
  if (r.along) {
    index = math_.consecutive(at, range, std::gcd(r.lo.multiple, static_cast<uint64_t>(lanes.count)), lanes.count);
  } else {
    index = math_.index(at, range, 1);
  }
  const Lanes outer = std::exchange(lanes_, lanes);
  State out;
  out.best = math_.all(region(r.s.regions[0], {&index, 1})[0], lanes.count);
  lanes_ = outer;
  if (r.indexed) {
    llvm::Value* const start = ir_.splat(b.CreateTrunc(b.CreateSub(at, chunk), r.index_type), lanes.count);
    llvm::Value* const steps = b.CreateZExt(ir_.iota(lanes.count), ir_.vector(r.index_type, lanes.count));
    out.index = r.along && lanes.count > 1 ? b.CreateAdd(start, steps) : start;
  }
  return out;
}

// --- lanes along the reduction
// -----------------------------------------------------------------------------------------

Emitter::State Emitter::along_lanes(const Reduction& r, llvm::Value* lo, llvm::Value* hi) {
  auto& b = ir_.b;
  const int lanes = r.shape.lanes;
  const int64_t round = r.interleave();
  States states(static_cast<size_t>(round / lanes));
  const auto count = constant_count(lo, hi);
  if (count && *count == 0) return {};
  const uint64_t grain = count ? static_cast<uint64_t>(*count) : std::gcd(r.lo.multiple, r.hi.multiple);
  const bool exact = grain % static_cast<uint64_t>(round) == 0;
  llvm::Value* end = hi;
  if (!count || *count >= round) {
    for (State& state : states) state = identity(r, lanes);
    llvm::Value* const length = ir_.intrinsic(llvm::Intrinsic::smax, b.CreateSub(hi, lo), ir_.i64(0));
    if (!exact) end = b.CreateAdd(lo, b.CreateAnd(length, ir_.i64(-round)));
    whole_runs(r, lo, end, states);
  } else {
    end = lo;
  }
  if (!exact) partial_run(r, lo, end, hi, states);
  return merge_lanes(r, merge_tree(r, std::move(states)));
}

void Emitter::whole_runs(const Reduction& r, llvm::Value* lo, llvm::Value* end, States& states) {
  const int lanes = r.shape.lanes;
  LlvmValues carried = flatten(r, states);
  ir_.loop(lo, end, ir_.i64(r.interleave()), carried, [&](llvm::Value* first) {
    unflatten(r, carried, states);
    for (size_t i = 0; i < states.size(); ++i) {
      llvm::Value* const at = ir_.b.CreateAdd(first, ir_.i64(static_cast<int64_t>(i) * lanes));
      states[i] = extend(r, states[i], element(r, at, lo, {lanes, nullptr}));
    }
    carried = flatten(r, states);
  });
  unflatten(r, carried, states);
}

// The chunk's last elements, from `first`, fewer than there are partial states.
void Emitter::partial_run(const Reduction& r, llvm::Value* chunk, llvm::Value* first, llvm::Value* hi, States& states) {
  const auto count = constant_count(first, hi);
  if (r.shape.masks && count) {
    masked_runs(r, chunk, first, ir_.i64(*count), states);
    return;
  }
  for (State& state : states)
    if (state.empty()) state = identity(r, r.shape.lanes);
  if (!r.shape.masks || states.size() * r.shape.statements > kFewStatements) {
    runs_on_stack(r, chunk, first, hi, states);
    return;
  }
  LlvmValues carried = flatten(r, states);
  ir_.loop(first, hi, ir_.i64(r.interleave()), carried, [&](llvm::Value*) {  // once, or not at all
    unflatten(r, carried, states);
    masked_runs(r, chunk, first, ir_.b.CreateSub(hi, first), states);
    carried = flatten(r, states);
  });
  unflatten(r, carried, states);
}

// A run of lanes for each register of states, masked beyond `left` elements.
void Emitter::masked_runs(const Reduction& r, llvm::Value* chunk, llvm::Value* first, llvm::Value* left,
                          States& states) {
  auto& b = ir_.b;
  const int lanes = r.shape.lanes;
  const auto count = constant_of(left);
  for (size_t i = 0; i < states.size(); ++i) {
    const int64_t done = static_cast<int64_t>(i) * lanes;
    if (count && done >= *count) break;
    const Lanes some = first_lanes(b.CreateSub(left, ir_.i64(done)), lanes);
    const State found = element(r, b.CreateAdd(first, ir_.i64(done)), chunk, some);
    const State next = states[i].empty() ? found : extend(r, states[i], found);
    const State before = states[i].empty() ? identity(r, lanes) : states[i];
    states[i] = some.active ? choose(some.active, next, before) : next;
  }
}

// The same with one copy of the element's code: the states go over the stack, run by run or one by one.
void Emitter::runs_on_stack(const Reduction& r, llvm::Value* chunk, llvm::Value* first, llvm::Value* hi,
                            States& states) {
  auto& b = ir_.b;
  const int lanes = r.shape.lanes;
  const StateArray array = state_array(r, static_cast<int64_t>(states.size()), lanes);
  for (size_t i = 0; i < states.size(); ++i) write_state(r, array, ir_.i64(static_cast<int64_t>(i)), states[i]);
  StateArray view = array;
  view.lanes = r.shape.masks ? lanes : 1;
  ir_.loop(ir_.i64(0), b.CreateSub(hi, first), ir_.i64(view.lanes), [&](llvm::Value* done) {
    const Lanes some = r.shape.masks ? first_lanes(b.CreateSub(b.CreateSub(hi, first), done), lanes) : Lanes{};
    llvm::Value* const number = view.lanes == 1 ? done : b.CreateUDiv(done, ir_.i64(view.lanes));
    const State before = read_state(r, view, number);
    const State next = extend(r, before, element(r, b.CreateAdd(first, done), chunk, some));
    write_state(r, view, number, some.active ? choose(some.active, next, before) : next);
  });
  for (size_t i = 0; i < states.size(); ++i) states[i] = read_state(r, array, ir_.i64(static_cast<int64_t>(i)));
  free_states(array);
}

// --- a reduction for each lane
// -------------------------------------------------------------------------------------------

Emitter::State Emitter::in_registers(const Reduction& r, llvm::Value* lo, int64_t count) {
  States states(static_cast<size_t>(r.interleave()));
  for (int64_t i = 0; i < count; ++i) {
    State& state = states[static_cast<size_t>(i % r.interleave())];
    const State found = element(r, ir_.b.CreateAdd(lo, ir_.i64(i)), lo, lanes_);
    state = state.empty() ? found : extend(r, state, found);
  }
  return merge_tree(r, std::move(states));
}

Emitter::State Emitter::one_chain(const Reduction& r, llvm::Value* lo, llvm::Value* hi) {
  States state{identity(r, lanes_.count)};
  LlvmValues carried = flatten(r, state);
  ir_.loop(lo, hi, ir_.i64(1), carried, [&](llvm::Value* at) {
    unflatten(r, carried, state);
    state[0] = extend(r, state[0], element(r, at, lo, lanes_));
    carried = flatten(r, state);
  });
  unflatten(r, carried, state);
  return state[0];
}

// Each partial state is a chain of its own, so a few at a time run through all whole rounds in registers; then the last
// elements, then the tree over the states that saw any.
Emitter::State Emitter::in_memory(const Reduction& r, llvm::Value* lo, llvm::Value* hi) {
  auto& b = ir_.b;
  const int64_t round = r.interleave();
  const StateArray array = state_array(r, round, lanes_.count);
  llvm::Value* const zero = ir_.i64(0);
  llvm::Value* const length = ir_.intrinsic(llvm::Intrinsic::smax, b.CreateSub(hi, lo), zero);
  llvm::Value* const whole = b.CreateAnd(length, ir_.i64(-round));
  llvm::Value* const any_whole = b.CreateICmpSGT(whole, zero);
  ir_.when(any_whole, [&] { whole_rounds(r, lo, whole, array); });
  ir_.loop(zero, b.CreateSub(length, whole), ir_.i64(1), [&](llvm::Value* p) {
    const State found = element(r, b.CreateAdd(b.CreateAdd(lo, whole), p), lo, lanes_);
    write_state(r, array, p, choose(any_whole, extend(r, read_state(r, array, p), found), found));
  });
  llvm::Value* seen = ir_.intrinsic(llvm::Intrinsic::smin, length, ir_.i64(round));  // states that saw an element
  for (int64_t half = round / 2; half > 0; half /= 2) {
    ir_.loop(zero, b.CreateSub(seen, ir_.i64(half)), ir_.i64(1), [&](llvm::Value* p) {
      const State other = read_state(r, array, b.CreateAdd(p, ir_.i64(half)));
      write_state(r, array, p, merge(r, read_state(r, array, p), other));
    });
    seen = ir_.intrinsic(llvm::Intrinsic::smin, seen, ir_.i64(half));
  }
  const State result = choose(b.CreateICmpSGT(length, zero), read_state(r, array, zero), identity(r, lanes_.count));
  free_states(array);
  return result;
}

// The first `whole` elements, a multiple of the partial states, into the states.
void Emitter::whole_rounds(const Reduction& r, llvm::Value* lo, llvm::Value* whole, const StateArray& array) {
  auto& b = ir_.b;
  const int64_t round = r.interleave();
  const int64_t together = std::min<int64_t>(round, r.shape.statements <= 10 ? 4 : r.shape.statements <= 20 ? 2 : 1);
  ir_.loop(ir_.i64(0), ir_.i64(round), ir_.i64(together), [&](llvm::Value* p) {
    States states(static_cast<size_t>(together), identity(r, lanes_.count));
    LlvmValues carried = flatten(r, states);
    llvm::Value* const first = b.CreateAdd(lo, p);
    ir_.loop(first, b.CreateAdd(first, whole), ir_.i64(round), carried, [&](llvm::Value* at) {
      unflatten(r, carried, states);
      for (size_t g = 0; g < states.size(); ++g)
        states[g] = extend(r, states[g], element(r, b.CreateAdd(at, ir_.i64(static_cast<int64_t>(g))), lo, lanes_));
      carried = flatten(r, states);
    });
    unflatten(r, carried, states);
    for (size_t g = 0; g < states.size(); ++g)
      write_state(r, array, b.CreateAdd(p, ir_.i64(static_cast<int64_t>(g))), states[g]);
  });
}

}  // namespace quartet::codegen
