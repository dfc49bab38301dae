// LSTM, GRU and RNN: one product of the whole sequence with the input weights, then a loop over the steps.
#include <algorithm>
#include <array>

#include "graph/constant.h"
#include "import/onnx/node.h"
#include "import/onnx/rnn_activations.h"

namespace quartet::import::onnx {
namespace {

enum class CellKind : uint8_t { rnn, gru, lstm };

struct Cell {
  CellKind kind = CellKind::rnn;
  size_t gates = 1;
  size_t functions = 1;                   // of each direction
  std::array<const char*, 3> defaults{};  // their names
};

constexpr Cell kRnn{CellKind::rnn, 1, 1, {"Tanh"}};
constexpr Cell kGru{CellKind::gru, 3, 2, {"Sigmoid", "Tanh"}};
constexpr Cell kLstm{CellKind::lstm, 4, 3, {"Sigmoid", "Tanh", "Tanh"}};

// The node's operands and attributes, in the layout with the time first.
struct Sequence {
  Cell cell;
  ValueId x = graph::kNoValue;                       // [T, B, I]
  ValueId w = graph::kNoValue, r = graph::kNoValue;  // [D, gates * H, I] and [.., H]
  ValueId b = graph::kNoValue;                       // [D, 2 * gates * H]
  ValueId lengths = graph::kNoValue;                 // i32 or i64 [B]
  ValueId h = graph::kNoValue, c = graph::kNoValue;  // [D, B, H]
  ValueId p = graph::kNoValue;                       // [D, 3 * H]
  IntExpr time, batch, hidden;
  size_t directions = 1;
  bool batch_first = false, linear_before_reset = false, input_forget = false;
  std::optional<float> clip;
  std::vector<Activation> activations;  // of all directions

  DType dtype = DType::f32;
  IntExpr gates_extent() const { return IntExpr(static_cast<int64_t>(cell.gates)) * hidden; }
};

// ---- Small pieces ----

Result<ValueId> part(NodeContext& c, ValueId x, size_t axis, const IntExpr& begin, const IntExpr& end) {
  graph::Shape starts(c.type(x).rank(), IntExpr(0)), limits = c.type(x).shape;
  starts[axis] = begin;
  limits[axis] = end;
  return c.op(OpCode::slice, {x}, {{AttrKey::starts, starts}, {AttrKey::limits, limits}});
}

// Row d of the first axis, which goes away.
Result<ValueId> row(NodeContext& c, ValueId x, size_t d) {
  graph::Shape shape(c.type(x).shape.begin() + 1, c.type(x).shape.end());
  const auto at = static_cast<int64_t>(d);
  QUARTET_ASSIGN(const ValueId taken, part(c, x, 0, IntExpr(at), IntExpr(at + 1)));
  return c.reshape(taken, std::move(shape));
}

// Columns of gate g of the last axis.
Result<ValueId> gate(NodeContext& c, const Sequence& s, ValueId x, size_t g) {
  const auto at = static_cast<int64_t>(g);
  return part(c, x, c.type(x).rank() - 1, IntExpr(at) * s.hidden, IntExpr(at + 1) * s.hidden);
}

Result<ValueId> swap_axes(NodeContext& c, ValueId x, std::vector<int64_t> perm) {
  return c.op(OpCode::transpose, {x}, {{AttrKey::perm, std::move(perm)}});
}

Result<ValueId> clipped(NodeContext& c, const Sequence& s, ValueId x) {
  if (!s.clip) return x;
  QUARTET_ASSIGN(const ValueId low, c.with_scalar(OpCode::max, x, -*s.clip));
  return c.with_scalar(OpCode::min, low, *s.clip);
}

Result<ValueId> activate(NodeContext& c, const Sequence& s, const Activation& f, ValueId x) {
  QUARTET_ASSIGN(const ValueId inside, clipped(c, s, x));
  return apply(c, f, inside);
}

// ---- One step ----

// What a direction's steps share.
struct Direction {
  size_t number = 0;
  bool backwards = false;
  std::span<const Activation> f;
  ValueId inputs = graph::kNoValue;          // [T, B, gates * H]: what the inputs add to every gate
  ValueId r = graph::kNoValue;               // [gates * H, H]
  ValueId recurrent_bias = graph::kNoValue;  // [H] of a GRU's candidate with linear_before_reset
  ValueId p = graph::kNoValue;               // [3 * H]
};

struct State {
  ValueId h = graph::kNoValue, c = graph::kNoValue;
};

Result<ValueId> recurrent(NodeContext& c, ValueId h, ValueId r) {
  return c.op(OpCode::matmul, {h, r}, {{AttrKey::transpose_b, int64_t{1}}});
}

Result<State> rnn_step(NodeContext& c, const Sequence& s, const Direction& d, ValueId x, const State& before) {
  QUARTET_ASSIGN(const ValueId product, recurrent(c, before.h, d.r));
  QUARTET_ASSIGN(const ValueId sum, c.op(OpCode::add, {x, product}));
  QUARTET_ASSIGN(const ValueId h, activate(c, s, d.f[0], sum));
  return State{h, graph::kNoValue};
}

// Gates z, r, h.
Result<State> gru_step(NodeContext& c, const Sequence& s, const Direction& d, ValueId x, const State& before) {
  const auto rows = [&](ValueId v, int64_t from, int64_t to) {
    return part(c, v, c.type(v).rank() - 1, IntExpr(from) * s.hidden, IntExpr(to) * s.hidden);
  };
  ValueId product = graph::kNoValue, gates = graph::kNoValue;
  if (s.linear_before_reset) {
    QUARTET_ASSIGN(product, recurrent(c, before.h, d.r));
    QUARTET_ASSIGN(gates, rows(product, 0, 2));
  } else {
    QUARTET_ASSIGN(const ValueId first, part(c, d.r, 0, IntExpr(0), IntExpr(2) * s.hidden));
    QUARTET_ASSIGN(gates, recurrent(c, before.h, first));
  }
  QUARTET_ASSIGN(const ValueId x_gates, rows(x, 0, 2));
  QUARTET_ASSIGN(const ValueId sum, c.op(OpCode::add, {x_gates, gates}));
  QUARTET_ASSIGN(const ValueId z_sum, gate(c, s, sum, 0));
  QUARTET_ASSIGN(const ValueId r_sum, gate(c, s, sum, 1));
  QUARTET_ASSIGN(const ValueId z, activate(c, s, d.f[0], z_sum));
  QUARTET_ASSIGN(const ValueId r, activate(c, s, d.f[0], r_sum));
  ValueId old = graph::kNoValue;
  if (s.linear_before_reset) {
    QUARTET_ASSIGN(old, rows(product, 2, 3));
    if (d.recurrent_bias != graph::kNoValue) {
      QUARTET_ASSIGN(old, c.op(OpCode::add, {old, d.recurrent_bias}));
    }
    QUARTET_ASSIGN(old, c.op(OpCode::mul, {r, old}));
  } else {
    QUARTET_ASSIGN(const ValueId kept, c.op(OpCode::mul, {r, before.h}));
    QUARTET_ASSIGN(const ValueId last, part(c, d.r, 0, IntExpr(2) * s.hidden, IntExpr(3) * s.hidden));
    QUARTET_ASSIGN(old, recurrent(c, kept, last));
  }
  QUARTET_ASSIGN(const ValueId x_new, rows(x, 2, 3));
  QUARTET_ASSIGN(const ValueId candidate_sum, c.op(OpCode::add, {x_new, old}));
  QUARTET_ASSIGN(const ValueId candidate, activate(c, s, d.f[1], candidate_sum));
  QUARTET_ASSIGN(const ValueId one, c.scalar(s.dtype, 1));
  QUARTET_ASSIGN(const ValueId rest, c.op(OpCode::sub, {one, z}));
  QUARTET_ASSIGN(const ValueId fresh, c.op(OpCode::mul, {rest, candidate}));
  QUARTET_ASSIGN(const ValueId stale, c.op(OpCode::mul, {z, before.h}));
  QUARTET_ASSIGN(const ValueId h, c.op(OpCode::add, {fresh, stale}));
  return State{h, graph::kNoValue};
}

// Gates i, o, f, c; peepholes i, o, f.
Result<State> lstm_step(NodeContext& c, const Sequence& s, const Direction& d, ValueId x, const State& before) {
  QUARTET_ASSIGN(const ValueId product, recurrent(c, before.h, d.r));
  QUARTET_ASSIGN(const ValueId sum, c.op(OpCode::add, {x, product}));
  const auto gate_sum = [&](size_t g, size_t peephole, ValueId cell) -> Result<ValueId> {
    QUARTET_ASSIGN(const ValueId plain, gate(c, s, sum, g));
    if (d.p == graph::kNoValue) return plain;
    QUARTET_ASSIGN(const ValueId weight, gate(c, s, d.p, peephole));
    QUARTET_ASSIGN(const ValueId seen, c.op(OpCode::mul, {weight, cell}));
    return c.op(OpCode::add, {plain, seen});
  };
  QUARTET_ASSIGN(const ValueId i_sum, gate_sum(0, 0, before.c));
  QUARTET_ASSIGN(const ValueId i, activate(c, s, d.f[0], i_sum));
  ValueId f = graph::kNoValue;
  if (s.input_forget) {
    QUARTET_ASSIGN(const ValueId one, c.scalar(s.dtype, 1));
    QUARTET_ASSIGN(f, c.op(OpCode::sub, {one, i}));
  } else {
    QUARTET_ASSIGN(const ValueId f_sum, gate_sum(2, 2, before.c));
    QUARTET_ASSIGN(f, activate(c, s, d.f[0], f_sum));
  }
  QUARTET_ASSIGN(const ValueId new_sum, gate(c, s, sum, 3));
  QUARTET_ASSIGN(const ValueId candidate, activate(c, s, d.f[1], new_sum));
  QUARTET_ASSIGN(const ValueId stale, c.op(OpCode::mul, {f, before.c}));
  QUARTET_ASSIGN(const ValueId fresh, c.op(OpCode::mul, {i, candidate}));
  QUARTET_ASSIGN(const ValueId cell, c.op(OpCode::add, {stale, fresh}));
  QUARTET_ASSIGN(const ValueId o_sum, gate_sum(1, 1, cell));
  QUARTET_ASSIGN(const ValueId o, activate(c, s, d.f[0], o_sum));
  QUARTET_ASSIGN(const ValueId seen, activate(c, s, d.f[2], cell));
  QUARTET_ASSIGN(const ValueId h, c.op(OpCode::mul, {o, seen}));
  return State{h, cell};
}

Result<State> step(NodeContext& c, const Sequence& s, const Direction& d, ValueId x, const State& before) {
  switch (s.cell.kind) {
    case CellKind::rnn:
      return rnn_step(c, s, d, x, before);
    case CellKind::gru:
      return gru_step(c, s, d, x, before);
    case CellKind::lstm:
      return lstm_step(c, s, d, x, before);
  }
  return make_error(Code::internal, "a cell of no kind");
}

// ---- One direction ----

// X * W^T and every bias that can be added before the loop.
Result<ValueId> hoisted_inputs(NodeContext& c, const Sequence& s, Direction& d) {
  QUARTET_ASSIGN(const ValueId w, row(c, s.w, d.number));
  const IntExpr width = c.type(s.x).shape[2];
  QUARTET_ASSIGN(const ValueId flat, c.reshape(s.x, {s.time * s.batch, width}));
  QUARTET_ASSIGN(ValueId sum, c.op(OpCode::matmul, {flat, w}, {{AttrKey::transpose_b, int64_t{1}}}));
  if (s.b != graph::kNoValue) {
    QUARTET_ASSIGN(const ValueId both, row(c, s.b, d.number));
    const IntExpr all = s.gates_extent();
    QUARTET_ASSIGN(const ValueId wb, part(c, both, 0, IntExpr(0), all));
    QUARTET_ASSIGN(ValueId rb, part(c, both, 0, all, IntExpr(2) * all));
    if (s.cell.kind == CellKind::gru && s.linear_before_reset) {
      // The candidate's recurrent bias is inside the reset.
      const IntExpr kept = IntExpr(2) * s.hidden;
      QUARTET_ASSIGN(d.recurrent_bias, part(c, rb, 0, kept, all));
      QUARTET_ASSIGN(const ValueId first, part(c, rb, 0, IntExpr(0), kept));
      QUARTET_ASSIGN(const ValueId zero, c.scalar(s.dtype, 0));
      QUARTET_ASSIGN(rb, c.op(OpCode::pad, {first, zero},
                              {{AttrKey::low, graph::Shape{IntExpr(0)}}, {AttrKey::high, graph::Shape{s.hidden}}}));
    }
    QUARTET_ASSIGN(const ValueId bias, c.op(OpCode::add, {wb, rb}));
    QUARTET_ASSIGN(sum, c.op(OpCode::add, {sum, bias}));
  }
  return c.reshape(sum, {s.time, s.batch, s.gates_extent()});
}

Result<ValueId> initial(NodeContext& c, const Sequence& s, ValueId given, size_t d) {
  if (given != graph::kNoValue) return row(c, given, d);
  QUARTET_ASSIGN(const ValueId zero, c.scalar(s.dtype, 0));
  return c.op(OpCode::expand, {zero}, {{AttrKey::shape, graph::Shape{s.batch, s.hidden}}});
}

Result<ValueId> known_scalar(NodeContext& c, const IntExpr& e) {
  Value value;
  value.ints = KnownInts{{e}, true, DType::i64};
  return materialise(c.builder(), value);
}

// Beyond a sequence's end the state stays and the output is zero.
Result<ValueId> masked(NodeContext& c, const Sequence& s, ValueId time, ValueId inside, ValueId outside) {
  QUARTET_ASSIGN(const ValueId lengths, c.cast(s.lengths, DType::i64));
  QUARTET_ASSIGN(const ValueId running, c.op(OpCode::less, {time, lengths}));
  QUARTET_ASSIGN(const ValueId column, c.reshape(running, {s.batch, IntExpr(1)}));
  return c.op(OpCode::select, {column, inside, outside});
}

struct Outputs {
  ValueId y = graph::kNoValue;  // [T, B, H]
  State last;                   // [B, H] each
};

Result<Outputs> import_direction(NodeContext& c, const Sequence& s, Direction& d) {
  QUARTET_ASSIGN(d.inputs, hoisted_inputs(c, s, d));
  QUARTET_ASSIGN(d.r, row(c, s.r, d.number));
  if (s.p != graph::kNoValue) {
    QUARTET_ASSIGN(d.p, row(c, s.p, d.number));
  }
  const bool two = s.cell.kind == CellKind::lstm;
  State first;
  QUARTET_ASSIGN(first.h, initial(c, s, s.h, d.number));
  if (two) {
    QUARTET_ASSIGN(first.c, initial(c, s, s.c, d.number));
  }
  QUARTET_ASSIGN(const ValueId trip, known_scalar(c, s.time));
  QUARTET_ASSIGN(const ValueId last_time, known_scalar(c, s.time - IntExpr(1)));
  graph::Builder& builder = c.builder();
  QUARTET_ASSIGN(const int32_t region, builder.region_begin());
  QUARTET_ASSIGN(const ValueId iteration, builder.parameter({DType::i64, {}}));
  QUARTET_ASSIGN(const ValueId condition, builder.parameter({DType::boolean, {}}));
  State before;
  QUARTET_ASSIGN(before.h, builder.parameter(c.type(first.h)));
  if (two) {
    QUARTET_ASSIGN(before.c, builder.parameter(c.type(first.c)));
  }
  ValueId time = iteration;
  if (d.backwards) {
    QUARTET_ASSIGN(time, c.op(OpCode::sub, {last_time, iteration}));
  }
  QUARTET_ASSIGN(const ValueId x, c.op(OpCode::gather, {d.inputs, time}, {{AttrKey::axis, int64_t{0}}}));
  QUARTET_ASSIGN(State after, step(c, s, d, x, before));
  ValueId y = after.h;
  if (s.lengths != graph::kNoValue) {
    QUARTET_ASSIGN(const ValueId zero, c.scalar(s.dtype, 0));
    QUARTET_ASSIGN(y, masked(c, s, time, after.h, zero));
    QUARTET_ASSIGN(after.h, masked(c, s, time, after.h, before.h));
    if (two) {
      QUARTET_ASSIGN(after.c, masked(c, s, time, after.c, before.c));
    }
  }
  std::vector<ValueId> operands{trip, graph::kNoValue, first.h}, yields{condition, after.h};
  if (two) operands.push_back(first.c), yields.push_back(after.c);
  yields.push_back(y);
  QUARTET_TRY(builder.region_end(yields));
  QUARTET_ASSIGN(
      const std::vector<ValueId> results,
      builder.op(OpCode::loop, operands, {{AttrKey::trip, graph::Shape{s.time}}}, {{region}, -1, c.label()}));
  Outputs made;
  made.last.h = results[0];
  if (two) made.last.c = results[1];
  made.y = results.back();
  if (d.backwards) {
    QUARTET_ASSIGN(made.y, c.op(OpCode::slice, {made.y},
                                {{AttrKey::starts, graph::Shape{s.time - IntExpr(1), IntExpr(0), IntExpr(0)}},
                                 {AttrKey::limits, graph::Shape{IntExpr(-1), s.batch, s.hidden}},
                                 {AttrKey::steps, std::vector<int64_t>{-1, 1, 1}}}));
  }
  return made;
}

// ---- The node ----

Status expect(NodeContext& c, ValueId& id, graph::Shape shape, const char* what) {
  QUARTET_ASSIGN(id, c.assumed(id, std::move(shape), what));
  return {};
}

Result<ValueId> optional(NodeContext& c, size_t i) { return c.has(i) ? c.in(i) : Result<ValueId>(graph::kNoValue); }

Status read_operands(NodeContext& c, Sequence& s) {
  QUARTET_ASSIGN(s.x, c.in(0));
  QUARTET_ASSIGN(s.w, c.in(1));
  QUARTET_ASSIGN(s.r, c.in(2));
  QUARTET_ASSIGN(s.b, optional(c, 3));
  QUARTET_ASSIGN(s.lengths, optional(c, 4));
  QUARTET_ASSIGN(s.h, optional(c, 5));
  if (s.cell.kind == CellKind::lstm) {
    QUARTET_ASSIGN(s.c, optional(c, 6));
    QUARTET_ASSIGN(s.p, optional(c, 7));
  }
  s.dtype = c.type(s.x).dtype;
  if (c.type(s.x).rank() != 3 || c.type(s.w).rank() != 3 || c.type(s.r).rank() != 3)
    return Status(Code::invalid_argument, "X, W and R have rank 3");
  if (s.batch_first) {
    QUARTET_ASSIGN(s.x, swap_axes(c, s.x, {1, 0, 2}));
    for (ValueId* state : {&s.h, &s.c})
      if (*state != graph::kNoValue) {
        QUARTET_ASSIGN(*state, swap_axes(c, *state, {1, 0, 2}));
      }
  }
  s.time = c.type(s.x).shape[0];
  s.batch = c.type(s.x).shape[1];
  s.hidden = c.type(s.r).shape[2];
  const IntExpr directions(static_cast<int64_t>(s.directions)), all = s.gates_extent();
  QUARTET_TRY(expect(c, s.w, {directions, all, c.type(s.x).shape[2]}, "W"));
  QUARTET_TRY(expect(c, s.r, {directions, all, s.hidden}, "R"));
  if (s.b != graph::kNoValue) QUARTET_TRY(expect(c, s.b, {directions, IntExpr(2) * all}, "B"));
  if (s.lengths != graph::kNoValue) QUARTET_TRY(expect(c, s.lengths, {s.batch}, "sequence_lens"));
  if (s.h != graph::kNoValue) QUARTET_TRY(expect(c, s.h, {directions, s.batch, s.hidden}, "initial_h"));
  if (s.c != graph::kNoValue) QUARTET_TRY(expect(c, s.c, {directions, s.batch, s.hidden}, "initial_c"));
  if (s.p != graph::kNoValue) QUARTET_TRY(expect(c, s.p, {directions, IntExpr(3) * s.hidden}, "P"));
  // Lengths that are all the whole length say nothing.
  if (const auto known = c.known_ints(4)) {
    const bool whole = std::all_of(known->values.begin(), known->values.end(),
                                   [&](const IntExpr& e) { return c.dims().at_least(e, s.time); });
    if (whole) s.lengths = graph::kNoValue;
  }
  return {};
}

Status read_attributes(NodeContext& c, Sequence& s, bool& backwards) {
  const std::string direction = c.attr_text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return make_error(Code::invalid_argument, "direction is '%s'", direction.substr(0, 40).c_str());
  s.directions = direction == "bidirectional" ? 2 : 1;
  backwards = direction == "reverse";
  s.batch_first = c.attr_int("layout", 0) != 0;
  s.linear_before_reset = c.attr_int("linear_before_reset", 0) != 0;
  s.input_forget = c.attr_int("input_forget", 0) != 0;
  if (c.attr("clip")) s.clip = c.attr_float("clip", 0);
  std::vector<std::string> names;
  if (const Attribute* given = c.attr("activations"))
    for (const std::string_view name : given->strings) names.emplace_back(name);
  const size_t wanted = s.cell.functions * s.directions;
  if (names.empty())
    for (size_t i = 0; i < wanted; ++i) names.emplace_back(s.cell.defaults[i % s.cell.functions]);
  if (names.size() != wanted)
    return make_error(Code::invalid_argument, "%zu activations, wanted %zu", names.size(), wanted);
  const Attribute *alpha = c.attr("activation_alpha"), *beta = c.attr("activation_beta");
  QUARTET_ASSIGN(s.activations, read_activations(names, alpha ? alpha->floats : std::vector<float>(),
                                                 beta ? beta->floats : std::vector<float>()));
  return {};
}

// The directions' values as one along a new axis.
Result<ValueId> joined(NodeContext& c, std::vector<ValueId> parts, size_t axis) {
  for (ValueId& id : parts) {
    graph::Shape shape = c.type(id).shape;
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), IntExpr(1));
    QUARTET_ASSIGN(id, c.reshape(id, std::move(shape)));
  }
  if (parts.size() == 1) return parts[0];
  return c.op(OpCode::concat, std::move(parts), {{AttrKey::axis, static_cast<int64_t>(axis)}});
}

Status give_outputs(NodeContext& c, const Sequence& s, const std::vector<Outputs>& made) {
  std::vector<ValueId> y, h, cell;
  for (const Outputs& outputs : made) {
    y.push_back(outputs.y);
    h.push_back(outputs.last.h);
    cell.push_back(outputs.last.c);
  }
  if (c.output_count() > 0) {
    QUARTET_ASSIGN(ValueId all, joined(c, y, 1));  // [T, D, B, H]
    if (s.batch_first) {
      QUARTET_ASSIGN(all, swap_axes(c, all, {2, 0, 1, 3}));
    }
    QUARTET_TRY(c.give(0, all));
  }
  for (size_t i = 1; i < c.output_count() && i < (s.cell.kind == CellKind::lstm ? 3u : 2u); ++i) {
    QUARTET_ASSIGN(ValueId all, joined(c, i == 1 ? h : cell, 0));  // [D, B, H]
    if (s.batch_first) {
      QUARTET_ASSIGN(all, swap_axes(c, all, {1, 0, 2}));
    }
    QUARTET_TRY(c.give(i, all));
  }
  return {};
}

template <const Cell& cell>
Status import_cell(NodeContext& c) {
  Sequence s;
  s.cell = cell;
  bool backwards = false;
  QUARTET_TRY(read_attributes(c, s, backwards));
  QUARTET_TRY(read_operands(c, s));
  std::vector<Outputs> made;
  for (size_t d = 0; d < s.directions; ++d) {
    Direction direction;
    direction.number = d;
    direction.backwards = backwards || d == 1;
    direction.f = std::span<const Activation>(s.activations).subspan(d * cell.functions, cell.functions);
    QUARTET_ASSIGN(const Outputs outputs, import_direction(c, s, direction));
    made.push_back(outputs);
  }
  return give_outputs(c, s, made);
}

constexpr OpRow kRows[] = {
    {"RNN", 7, INT64_MAX, import_cell<kRnn>},
    {"GRU", 7, INT64_MAX, import_cell<kGru>},
    {"LSTM", 7, INT64_MAX, import_cell<kLstm>},
};

}  // namespace

std::span<const OpRow> rnn_ops() { return kRows; }

}  // namespace quartet::import::onnx
