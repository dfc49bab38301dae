#include "kernel/analysis.h"

#include "kernel/ops.h"

namespace quartet::kernel {
namespace {

constexpr int kMaxDepth = 64;

struct Varying {
  std::vector<bool> varying;

  bool get(ValueId v) const {
    return v >= 0 && static_cast<size_t>(v) < varying.size() && varying[static_cast<size_t>(v)];
  }
  void set(ValueId v, bool value) {
    if (v >= 0 && static_cast<size_t>(v) < varying.size()) varying[static_cast<size_t>(v)] = value;
  }

  // `lanes`: the region stands in a vector loop or reduce.
  void region(const Region& region, bool lanes, int depth) {
    if (depth > kMaxDepth) return;
    for (const Statement& s : region.body) statement(s, lanes, depth);
  }

  void statement(const Statement& s, bool lanes, int depth) {
    bool any = false;
    for (const ValueId v : s.operands) any = any || get(v);
    switch (s.op) {
      case Op::loop: {
        const bool vector = s.loop == LoopKind::vector;
        for (const Region& r : s.regions) {
          for (size_t i = 0; i < r.arguments.size(); ++i) set(r.arguments[i], i == 0 ? vector : lanes);
          region(r, lanes || vector, depth + 1);
        }
        for (const ValueId v : s.results) set(v, lanes);
        return;
      }
      case Op::reduce:
        for (const Region& r : s.regions) {
          for (const ValueId v : r.arguments) set(v, true);
          region(r, true, depth + 1);
        }
        for (const ValueId v : s.results) set(v, lanes);
        return;
      case Op::branch:
        for (const Region& r : s.regions) {
          region(r, lanes, depth + 1);
          if (r.body.empty()) continue;
          for (size_t i = 0; i < s.results.size() && i < r.body.back().operands.size(); ++i)
            set(s.results[i], get(s.results[i]) || get(r.body.back().operands[i]));
        }
        return;
      case Op::contract:
        for (const Region& r : s.regions) {
          for (const ValueId v : r.arguments) set(v, true);
          region(r, true, depth + 1);
        }
        return;
      default:
        for (const ValueId v : s.results) set(v, any);
    }
  }
};

size_t count(const Region& region) {
  size_t total = region.body.size();
  for (const Statement& s : region.body)
    for (const Region& inner : s.regions) total += count(inner);
  return total;
}

}  // namespace

std::vector<bool> varying_values(const Kernel& kernel) {
  Varying walk;
  walk.varying.assign(kernel.value_types.size(), false);
  walk.region(kernel.body, false, 0);
  return std::move(walk.varying);
}

size_t count_statements(const Kernel& kernel) { return count(kernel.body); }

int64_t canonical_bits(DType dtype, int64_t bits) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
    case DType::u64:
      return bits;
    case DType::f32:
    case DType::u32:
      return static_cast<int64_t>(static_cast<uint32_t>(bits));
    case DType::i32:
      return static_cast<int32_t>(bits);
    case DType::f16:
    case DType::bf16:
    case DType::u16:
      return static_cast<uint16_t>(bits);
    case DType::i16:
      return static_cast<int16_t>(bits);
    case DType::i8:
      return static_cast<int8_t>(bits);
    case DType::u8:
      return static_cast<uint8_t>(bits);
    case DType::boolean:
      return bits != 0 ? 1 : 0;
    case DType::invalid:
      break;
  }
  return 0;
}

}  // namespace quartet::kernel
