// Walks a kernel and rebuilds it through the builder, every scalar operation through its expansion.
#include "kernel/expand.h"

#include "kernel/expand_scalar.h"

namespace quartet::kernel {
namespace {

class Replay {
 public:
  Replay(const Kernel& from, Isa isa) : from_(from), isa_(isa), b_(from.name), to_(from.value_types.size(), kNone) {}

  Result<Kernel> run() {
    b_.set_dims(from_.dims, from_.dim_bounds);
    for (const Buffer& buffer : from_.buffers) b_.buffer(buffer);
    to_[static_cast<size_t>(from_.body.arguments[0])] = b_.task();
    body(from_.body);
    return b_.finish(from_.tasks);
  }

 private:
  ValueId get(ValueId v) const { return to_[static_cast<size_t>(v)]; }
  void set(ValueId v, ValueId to) { to_[static_cast<size_t>(v)] = to; }
  void set(const std::vector<ValueId>& list, std::span<const ValueId> to) {
    for (size_t i = 0; i < list.size(); ++i) set(list[i], to[i]);
  }
  Ids map(std::span<const ValueId> list) const {
    Ids out;
    for (const ValueId v : list) out.push_back(get(v));
    return out;
  }

  // The statements of a region; gives what it yields.
  Ids body(const Region& region) {
    for (const Statement& s : region.body) statement(s);
    return map(region.body.back().operands);
  }

  void statement(const Statement& s) {
    const Ids operands = map(s.operands);
    const auto optional = [&](size_t i) { return i < operands.size() ? operands[i] : kNone; };
    switch (s.op) {
      case Op::constant:
        return set(s.results[0], b_.constant(s.dtype, s.immediate));
      case Op::dim:
        return set(s.results[0], b_.dim(static_cast<int32_t>(s.immediate)));
      case Op::load:
        return set(s.results[0], b_.load(s.buffer, operands[0], optional(1), optional(2)));
      case Op::store:
        return b_.store(s.buffer, operands[0], operands[1], optional(2));
      case Op::loop:
        return loop(s, operands);
      case Op::branch:
        return set(s.results,
                   b_.branch(operands[0], [&] { return body(s.regions[0]); }, [&] { return body(s.regions[1]); }));
      case Op::reduce:
        return set(s.results,
                   b_.reduce({s.reduce, s.dtype, s.interleave, s.chunk}, operands[0], operands[1], [&](ValueId r) {
                     set(s.regions[0].arguments[0], r);
                     return body(s.regions[0])[0];
                   }));
      case Op::contract:
        return contract(s, operands);
      case Op::yield:
        return;
      default:
        return set(s.results[0], expand_scalar(b_, isa_, scalar_of(s.op), s.dtype, operands));
    }
  }

  void loop(const Statement& s, const Ids& operands) {
    const Region& region = s.regions[0];
    const Ids inits(operands.begin() + 3, operands.end());
    set(s.results, b_.loop(s.loop, operands[0], operands[1], *b_.constant_of(operands[2]), inits, Runs::maybe,
                           [&](ValueId i, std::span<const ValueId> carried) {
                             set(region.arguments[0], i);
                             for (size_t c = 0; c < carried.size(); ++c) set(region.arguments[c + 1], carried[c]);
                             return body(region);
                           }));
  }

  void contract(const Statement& s, const Ids& o) {
    ContractTile tile;
    tile.accumulator = s.dtype;
    tile.a = s.buffer, tile.b = s.buffer_b;
    tile.rows = s.rows, tile.columns = s.columns, tile.unroll = s.unroll;
    tile.k_count = o[0], tile.a_base = o[1], tile.a_row_stride = o[2], tile.a_k_stride = o[3];
    tile.b_base = o[4], tile.b_k_stride = o[5], tile.column_limit = o[6];
    for (size_t i = kContractOperands; i + 2 < o.size(); i += 3) tile.around.push_back({o[i], o[i + 1], o[i + 2]});
    std::function<ValueId(ValueId, ValueId)> init;
    if (s.regions.size() > 1)
      init = [&](ValueId row, ValueId column) {
        set(s.regions[1].arguments, Ids{row, column});
        return body(s.regions[1])[0];
      };
    b_.contract(
        tile,
        [&](ValueId row, ValueId column, ValueId acc) {
          set(s.regions[0].arguments, Ids{row, column, acc});
          body(s.regions[0]);
        },
        init);
  }

  const Kernel& from_;
  const Isa isa_;
  Builder b_;
  Ids to_;  // by old value
};

}  // namespace

Result<Kernel> expand(const Kernel& kernel, Isa isa) {
  QUARTET_TRY(verify(kernel));
  auto expanded = Replay(kernel, isa).run();
  if (!expanded.ok()) return expanded.status().with_prefix("expanding: ");
  return expanded;
}

}  // namespace quartet::kernel
