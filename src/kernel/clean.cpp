#include "kernel/clean.h"

#include <algorithm>

#include "kernel/ops.h"

namespace quartet::kernel {
namespace {

struct Sweep {
  std::vector<int32_t> uses;

  void count(const Region& region) {
    for (const Statement& s : region.body) {
      for (const ValueId v : s.operands) ++uses[static_cast<size_t>(v)];
      for (const Region& inner : s.regions) count(inner);
    }
  }

  void uncount(const Statement& s) {
    for (const ValueId v : s.operands) --uses[static_cast<size_t>(v)];
    for (const Region& inner : s.regions)
      for (const Statement& nested : inner.body) uncount(nested);
  }

  static bool has_store(const Region& region) {
    return std::any_of(region.body.begin(), region.body.end(), [](const Statement& s) {
      return s.op == Op::store || s.op == Op::contract || std::any_of(s.regions.begin(), s.regions.end(), has_store);
    });
  }

  bool dead(const Statement& s) const {
    if (s.op == Op::yield || s.op == Op::store || s.op == Op::contract) return false;
    if (std::any_of(s.results.begin(), s.results.end(), [&](ValueId v) { return uses[static_cast<size_t>(v)] > 0; }))
      return false;
    return std::none_of(s.regions.begin(), s.regions.end(), has_store);
  }

  // Backwards, so that what only dead statements use is dead when it is reached.
  void drop(Region& region) {
    for (size_t i = region.body.size(); i-- > 0;) {
      Statement& s = region.body[i];
      if (dead(s)) {
        uncount(s);
        region.body.erase(region.body.begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      }
      for (Region& inner : s.regions) drop(inner);
    }
  }
};

struct Renumber {
  const std::vector<DType>& old_types;
  std::vector<ValueId> to;
  std::vector<DType> types;

  void define(ValueId& v) {
    to[static_cast<size_t>(v)] = static_cast<ValueId>(types.size());
    types.push_back(old_types[static_cast<size_t>(v)]);
    v = to[static_cast<size_t>(v)];
  }

  void region(Region& region) {
    for (ValueId& v : region.arguments) define(v);
    for (Statement& s : region.body) {
      for (ValueId& v : s.operands) v = to[static_cast<size_t>(v)];
      for (Region& inner : s.regions) this->region(inner);
      for (ValueId& v : s.results) define(v);
    }
  }
};

void replace_buffers(Region& region, const std::vector<BufferId>& to) {
  for (Statement& s : region.body) {
    if (s.buffer != kNone) s.buffer = to[static_cast<size_t>(s.buffer)];
    if (s.buffer_b != kNone) s.buffer_b = to[static_cast<size_t>(s.buffer_b)];
    for (Region& inner : s.regions) replace_buffers(inner, to);
  }
}

}  // namespace

void arguments_first(Kernel& kernel) {
  const auto is_argument = [](const Buffer& buffer) { return buffer.scope != Scope::task; };
  if (std::is_partitioned(kernel.buffers.begin(), kernel.buffers.end(), is_argument)) return;
  std::vector<BufferId> to(kernel.buffers.size());
  std::vector<Buffer> ordered;
  for (const bool argument : {true, false}) {
    for (size_t i = 0; i < to.size(); ++i) {
      if (is_argument(kernel.buffers[i]) != argument) continue;
      to[i] = static_cast<BufferId>(ordered.size());
      ordered.push_back(kernel.buffers[i]);
    }
  }
  kernel.buffers = std::move(ordered);
  replace_buffers(kernel.body, to);
}

void clean(Kernel& kernel) {
  Sweep sweep{std::vector<int32_t>(kernel.value_types.size(), 0)};
  sweep.count(kernel.body);
  sweep.drop(kernel.body);
  const std::vector<DType> old_types = std::move(kernel.value_types);
  Renumber renumber{old_types, std::vector<ValueId>(old_types.size(), kNone), {}};
  renumber.region(kernel.body);
  kernel.value_types = std::move(renumber.types);
}

}  // namespace quartet::kernel
