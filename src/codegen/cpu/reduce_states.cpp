#include "codegen/cpu/arithmetic.h"
#include "codegen/cpu/reduction.h"

namespace quartet::codegen {
namespace {

// Whether x is strictly better than y: NaN is best, zeros are equal.
llvm::Value* better(Ir& ir, DType type, bool wants_max, llvm::Value* x, llvm::Value* y) {
  auto& b = ir.b;
  if (!is_float(type)) {
    if (is_signed_int(type)) return wants_max ? b.CreateICmpSGT(x, y) : b.CreateICmpSLT(x, y);
    return wants_max ? b.CreateICmpUGT(x, y) : b.CreateICmpULT(x, y);
  }
  llvm::Value* const a = widen(ir, type, x);
  llvm::Value* const c = widen(ir, type, y);
  llvm::Value* const beyond = wants_max ? b.CreateFCmpUGT(a, c) : b.CreateFCmpULT(a, c);
  return b.CreateAnd(beyond, b.CreateFCmpORD(c, c));
}

}  // namespace

Emitter::State Emitter::identity(const Reduction& r, int lanes) {
  State out;
  out.best = reduce_identity(ir_, r.s.reduce, r.s.dtype, lanes);
  if (r.indexed) out.index = ir_.number(ir_.vector(r.index_type, lanes), -1);
  return out;
}

Emitter::State Emitter::choose(llvm::Value* condition, const State& a, const State& b) {
  State out;
  out.best = ir_.b.CreateSelect(condition, a.best, b.best);
  if (a.index) out.index = ir_.b.CreateSelect(condition, a.index, b.index);
  return out;
}

Emitter::State Emitter::extend(const Reduction& r, const State& state, const State& element) {
  auto& b = ir_.b;
  if (!r.indexed) return {emit_combine(ir_, r.s.reduce, r.s.dtype, state.best, element.best), nullptr};
  llvm::Value* const none = b.CreateICmpSLT(state.index, ir_.number_like(state.index, 0));
  return choose(b.CreateOr(none, better(ir_, r.s.dtype, r.wants_max(), element.best, state.best)), element, state);
}

Emitter::State Emitter::merge(const Reduction& r, const State& a, const State& c) {
  auto& b = ir_.b;
  if (a.empty()) return c;
  if (c.empty()) return a;
  if (!r.indexed) return {emit_combine(ir_, r.s.reduce, r.s.dtype, a.best, c.best), nullptr};
  llvm::Constant* const zero = ir_.number_like(a.index, 0);
  llvm::Value* const worse = better(ir_, r.s.dtype, r.wants_max(), c.best, a.best);
  llvm::Value* const equal = b.CreateNot(better(ir_, r.s.dtype, r.wants_max(), a.best, c.best));
  llvm::Value* const earlier = b.CreateAnd(equal, b.CreateICmpSLT(c.index, a.index));
  llvm::Value* const takes = b.CreateOr(b.CreateICmpSLT(a.index, zero), b.CreateOr(worse, earlier));
  return choose(b.CreateAnd(takes, b.CreateICmpSGE(c.index, zero)), c, a);
}

Emitter::State Emitter::merge_tree(const Reduction& r, States states) {
  for (size_t half = states.size() / 2; half > 0; half /= 2)
    for (size_t i = 0; i < half; ++i) states[i] = merge(r, states[i], states[i + half]);
  return states[0];
}

Emitter::State Emitter::merge_lanes(const Reduction& r, State state) {
  for (int half = Ir::lanes_of(state.best) / 2; half > 0; half /= 2) {
    const State low{ir_.slice(state.best, 0, half), r.indexed ? ir_.slice(state.index, 0, half) : nullptr};
    const State high{ir_.slice(state.best, half, half), r.indexed ? ir_.slice(state.index, half, half) : nullptr};
    state = merge(r, low, high);
  }
  return state;
}

Emitter::LlvmValues Emitter::flatten(const Reduction& r, const States& states) {
  LlvmValues out;
  for (const State& state : states) {
    out.push_back(state.best);
    if (r.indexed) out.push_back(state.index);
  }
  return out;
}

void Emitter::unflatten(const Reduction& r, const LlvmValues& values, States& states) {
  size_t at = 0;
  for (State& state : states) {
    state.best = values[at++];
    state.index = r.indexed ? values[at++] : nullptr;
  }
}

Emitter::StateArray Emitter::state_array(const Reduction& r, int64_t count, int lanes) {
  StateArray out;
  out.lanes = lanes;
  out.best = ir_.stack_array(ir_.memory_type(r.s.dtype, lanes), count);
  if (r.indexed) out.index = ir_.stack_array(ir_.vector(r.index_type, lanes), count);
  return out;
}

void Emitter::free_states(const StateArray& array) {
  ir_.free_array(array.best);
  if (array.index) ir_.free_array(array.index);
}

Emitter::State Emitter::read_state(const Reduction& r, const StateArray& array, llvm::Value* number) {
  auto& b = ir_.b;
  llvm::Type* const type = ir_.memory_type(r.s.dtype, array.lanes);
  State out;
  out.best = from_memory(ir_, r.s.dtype, b.CreateLoad(type, b.CreateInBoundsGEP(type, array.best, number)));
  if (r.indexed) {
    llvm::Type* const index = ir_.vector(r.index_type, array.lanes);
    out.index = b.CreateLoad(index, b.CreateInBoundsGEP(index, array.index, number));
  }
  return out;
}

void Emitter::write_state(const Reduction& r, const StateArray& array, llvm::Value* number, const State& state) {
  auto& b = ir_.b;
  llvm::Value* const best = to_memory(ir_, r.s.dtype, state.best);
  b.CreateStore(best, b.CreateInBoundsGEP(best->getType(), array.best, number));
  if (r.indexed) b.CreateStore(state.index, b.CreateInBoundsGEP(state.index->getType(), array.index, number));
}

}  // namespace quartet::codegen
