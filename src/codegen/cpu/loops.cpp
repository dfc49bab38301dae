#include <algorithm>
#include <numeric>

#include "codegen/cpu/emitter.h"

namespace quartet::codegen {

using kernel::LoopKind;
using kernel::Statement;

namespace {

constexpr size_t kLightBody = 10;   // statements: four runs in a row
constexpr size_t kMiddleBody = 20;  // two
constexpr size_t kHeavyBody = 120;  // emitted once, its every run masked where masks cost little

std::optional<int64_t> constant_of(const llvm::Value* value) {
  const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value);
  return constant ? std::optional(constant->getSExtValue()) : std::nullopt;
}

// Of a loop's index: lo, lo + step ... below hi.
Range index_range(const Value& lo, const Value& hi) {
  const int64_t last = hi.range.hi == std::numeric_limits<int64_t>::min() ? hi.range.hi : hi.range.hi - 1;
  return {lo.range.lo, std::max(lo.range.lo, last)};
}

}  // namespace

// A vector loop's bounds and how it is cut into runs of lanes.
struct Emitter::VectorLoop {
  const kernel::Region& body;
  Value lo, hi;
  BodyShape shape;
  int runs = 1;                        // in a row in the main loop
  bool tail = true;                    // the last run may be partial
  std::optional<int64_t> length = {};  // if constant
};

void Emitter::loop(const Statement& s) {
  switch (s.loop) {
    case LoopKind::serial:
      serial_loop(s);
      break;
    case LoopKind::unrolled:
      unrolled_loop(s);
      break;
    case LoopKind::vector:
      vector_loop(s);
      break;
  }
}

void Emitter::serial_loop(const Statement& s) {
  const Value lo = value(s.operands[0]), hi = value(s.operands[1]), step = value(s.operands[2]);
  const kernel::Region& body = s.regions[0];
  const size_t carried = s.results.size();
  LlvmValues state;
  for (size_t i = 0; i < carried; ++i)
    state.push_back(math_.all(value(s.operands[3 + i]), keep_vector(body.arguments[1 + i]) ? lanes_.count : 1));
  ir_.loop(lo.base, hi.base, step.base, state, [&](llvm::Value* i) {
    Values arguments{math_.index(i, index_range(lo, hi), std::gcd(lo.multiple, step.multiple))};
    for (size_t n = 0; n < carried; ++n) arguments.push_back(math_.vector(value(s.operands[3 + n]).dtype, state[n]));
    const Values yielded = region(body, arguments);
    for (size_t n = 0; n < carried; ++n)
      state[n] = math_.all(yielded[n], keep_vector(body.arguments[1 + n]) ? lanes_.count : 1);
  });
  for (size_t i = 0; i < carried; ++i) define(s.results[i], math_.vector(value(s.operands[3 + i]).dtype, state[i]));
}

void Emitter::unrolled_loop(const Statement& s) {
  const int64_t lo = *constant_of(value(s.operands[0]).base), hi = *constant_of(value(s.operands[1]).base);
  const int64_t step = *constant_of(value(s.operands[2]).base);
  Values state;
  for (size_t i = 3; i < s.operands.size(); ++i) state.push_back(value(s.operands[i]));
  for (int64_t i = lo; i < hi; i += step) {
    Values arguments{math_.number(i)};
    arguments.insert(arguments.end(), state.begin(), state.end());
    state = region(s.regions[0], arguments);
  }
  for (size_t i = 0; i < state.size(); ++i) define(s.results[i], state[i]);
}

Lanes Emitter::first_lanes(llvm::Value* left, int count) {
  auto& b = ir_.b;
  if (const auto known = constant_of(left); count == 1 || (known && *known >= count)) return {count, nullptr};
  llvm::Value* const capped = ir_.intrinsic(llvm::Intrinsic::smin, left, ir_.i64(count));
  llvm::Value* const limit = ir_.splat(b.CreateTrunc(capped, b.getInt32Ty()), count);
  return {count, b.CreateICmpSLT(ir_.iota(count), limit)};
}

void Emitter::vector_body(const VectorLoop& loop, llvm::Value* first, const Lanes& lanes) {
  const uint64_t multiple = std::gcd(loop.lo.multiple, static_cast<uint64_t>(lanes.count));
  const Value index = math_.consecutive(first, index_range(loop.lo, loop.hi), multiple, lanes.count);
  const Lanes outer = std::exchange(lanes_, lanes);
  region(loop.body, {&index, 1});
  lanes_ = outer;
}

// From an index to the loop's end, 0 if that lies before.
llvm::Value* Emitter::distance(const VectorLoop& loop, llvm::Value* first) {
  llvm::Value* const length = ir_.b.CreateSub(loop.hi.base, first);
  if ((loop.hi.range - loop.lo.range).nonnegative()) return length;
  return ir_.intrinsic(llvm::Intrinsic::smax, length, ir_.i64(0));
}

// What the main loop left over.
void Emitter::vector_rest(const VectorLoop& loop, llvm::Value* first) {
  auto& b = ir_.b;
  const int count = loop.shape.lanes;
  llvm::Value* const hi = loop.hi.base;
  if (!loop.shape.masks) {
    if (loop.runs > 1) {  // whole runs, then lane by lane
      llvm::Value* const end = b.CreateAdd(first, b.CreateAnd(distance(loop, first), ir_.i64(-count)));
      ir_.loop(first, end, ir_.i64(count), [&](llvm::Value* i) { vector_body(loop, i, {count, nullptr}); });
      first = end;
    }
    if (loop.tail) ir_.loop(first, hi, ir_.i64(1), [&](llvm::Value* i) { vector_body(loop, i, {}); });
    return;
  }
  const auto from = constant_of(first), to = constant_of(hi);
  if (from && to) {
    for (int64_t i = *from; i < *to; i += count) vector_body(loop, ir_.i64(i), first_lanes(ir_.i64(*to - i), count));
    return;
  }
  const auto run = [&](llvm::Value* i) {
    vector_body(loop, i, loop.tail ? first_lanes(b.CreateSub(hi, i), count) : Lanes{count, nullptr});
  };
  if (loop.runs == 1) {
    ir_.when(b.CreateICmpSLT(first, hi), [&] { run(first); });
  } else {
    ir_.loop(first, hi, ir_.i64(count), run);
  }
}

void Emitter::vector_loop(const Statement& s) {
  auto& b = ir_.b;
  VectorLoop loop{s.regions[0], value(s.operands[0]), value(s.operands[1]),
                  body_shape(kernel_, s.regions[0], varying_, ir_.target)};
  BodyShape& shape = loop.shape;
  if (const auto lo = constant_of(loop.lo.base), hi = constant_of(loop.hi.base); lo && hi) {
    loop.length = std::max<int64_t>(*hi - *lo, 0);
    if (*loop.length == 0) return;
    while (!shape.masks && shape.lanes > 1 && shape.lanes > *loop.length) shape.lanes /= 2;
  }
  if (!shape.nested) loop.runs = shape.statements <= kLightBody ? 4 : shape.statements <= kMiddleBody ? 2 : 1;
  while (loop.runs > 1 && loop.length && *loop.length < loop.runs * shape.lanes) loop.runs /= 2;
  // What both bounds are a multiple of, the length is.
  const uint64_t grain =
      loop.length ? static_cast<uint64_t>(*loop.length) : std::gcd(loop.lo.multiple, loop.hi.multiple);
  loop.tail = grain % static_cast<uint64_t>(shape.lanes) != 0;
  const int64_t main_step = int64_t{loop.runs} * shape.lanes;
  if (loop.tail && shape.statements >= kHeavyBody && ir_.target.isa == Isa::avx512) {
    ir_.loop(loop.lo.base, loop.hi.base, ir_.i64(shape.lanes),
             [&](llvm::Value* i) { vector_body(loop, i, first_lanes(b.CreateSub(loop.hi.base, i), shape.lanes)); });
    return;
  }
  const bool exact = grain % static_cast<uint64_t>(main_step) == 0;
  llvm::Value* main_end = loop.hi.base;
  if (!exact) {
    main_end = b.CreateAdd(loop.lo.base, b.CreateAnd(distance(loop, loop.lo.base), ir_.i64(-main_step)));
  }
  ir_.loop(loop.lo.base, main_end, ir_.i64(main_step), [&](llvm::Value* i) {
    for (int run = 0; run < loop.runs; ++run)
      vector_body(loop, b.CreateAdd(i, ir_.i64(int64_t{run} * shape.lanes)), {shape.lanes, nullptr});
  });
  if (!exact) vector_rest(loop, main_end);
}

}  // namespace quartet::codegen
