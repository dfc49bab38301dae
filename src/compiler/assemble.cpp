#include "compiler/assemble.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "compiler/stages.h"
#include "graph/constant.h"
#include "graph/dims.h"

namespace quartet::compiler {

namespace {

using graph::kNoValue;
using graph::Op;
using graph::OpCode;
using graph::ValueId;
using program::BufferRef;
using program::Instruction;
using program::InstructionKind;
using program::Storage;
using Kind = grinder::Origin::Kind;

IntExpr bytes_of(const graph::TensorType& type) {
  return type.elements() * IntExpr(static_cast<int64_t>(size_of(type.dtype)));
}

// Every value that is in memory has one home. Where a value is wanted in a certain place (an output, the result of an
// if, what an iteration hands on), it is made there if that can be; else it is copied when its block ends. A loop's
// carried value has two slots, of which the body reads one and writes the other; they change places after an iteration.
class Assembler {
 public:
  Assembler(const grinder::Placed& placed, const graph::Graph& given, const std::vector<Piece>& pieces)
      : placed_(placed), main_(placed.graph->main()), pieces_(pieces), stages_(result_, given) {
    home_.resize(main_.values.size());
  }

  Result<Assembly> run() {
    describe();
    std::vector<Target> outputs;
    for (size_t i = 0; i < main_.body.results.size(); ++i)
      outputs.push_back({main_.body.results[i], {Storage::output, static_cast<int32_t>(i)}});
    for (size_t i = 0; i < main_.body.arguments.size(); ++i)
      home_[static_cast<size_t>(main_.body.arguments[i])] = BufferRef{Storage::input, static_cast<int32_t>(i)};
    if (placed_.is_straight())
      QUARTET_TRY(add_whole(outputs));
    else
      QUARTET_TRY(add_block(main_.body, placed_.steps, outputs));
    program::plan_memory(program_);
    QUARTET_TRY(program::verify(program_));
    return std::move(result_);
  }

 private:
  struct Target {
    ValueId value;
    BufferRef place;
  };

  const graph::TensorType& type(ValueId id) const { return main_.values[static_cast<size_t>(id)].type; }
  const grinder::Origin& origin(ValueId id) const { return placed_.origins[static_cast<size_t>(id)]; }

  void describe() {
    for (const graph::DimSymbol& symbol : placed_.graph->symbols) {
      program::DimInfo& dim = program_.dims.emplace_back();
      dim.name = symbol.name;
      dim.lower = symbol.lower;
      dim.run = symbol.kind == graph::DimSymbol::Kind::run;
      const auto set_by_run = [&](Symbol s) {
        return placed_.graph->symbols[static_cast<size_t>(s)].kind == graph::DimSymbol::Kind::run;
      };
      if (dim.run && symbol.upper && !symbol.upper->contains_any(set_by_run)) dim.upper = symbol.upper;
    }
    const auto describe_value = [&](ValueId id, const std::string& name) {
      return program::TensorInfo{name, type(id).dtype, type(id).shape};
    };
    for (const ValueId id : main_.body.arguments)
      program_.inputs.push_back(describe_value(id, main_.values[static_cast<size_t>(id)].name));
    for (size_t i = 0; i < main_.body.results.size(); ++i)
      program_.outputs.push_back(describe_value(main_.body.results[i], main_.output_names[i]));
    for (const graph::InputDefault& given : placed_.graph->defaults) {
      const graph::Constant& constant = placed_.graph->constants[static_cast<size_t>(given.constant)];
      program::InputDefault& made = program_.defaults.emplace_back();
      made = {given.input, stages_.constant(constant).index, {}};
      for (const IntExpr& extent : constant.type.shape) made.shape.push_back(*extent.constant());
    }
    assume(main_.body);
  }

  // What the block and those inside it assume of dims, once each.
  void assume(const graph::Block& block) {
    const graph::Dims dims(placed_.graph->symbols);
    for (const Op& op : block.ops) {
      for (const graph::Block& region : op.regions) assume(region);
      if (op.code != OpCode::assume_shape) continue;
      const graph::Shape &before = type(op.operands[0]).shape, &after = type(op.results[0]).shape;
      for (size_t i = 0; i < before.size(); ++i) {
        auto& list = program_.assumptions;
        const bool known = std::any_of(list.begin(), list.end(), [&](const program::Assumption& assumption) {
          return assumption.a == before[i] && assumption.b == after[i];
        });
        if (!known && !dims.same(before[i], after[i])) list.push_back({before[i], after[i]});
      }
    }
  }

  void emit(Instruction instruction) { program_.body.push_back(std::move(instruction)); }
  void emit_copy(const BufferRef& from, const BufferRef& to, IntExpr bytes) {
    if (from == to || bytes.is(0)) return;
    make_room(to);
    emit({InstructionKind::copy, 0, 0, from, to, std::move(bytes)});
  }
  // Before something is made in a place. Rows get their room when an iteration begins.
  void make_room(const BufferRef& place) {
    if (place.storage != Storage::view && program::grows(program_, place))
      emit({InstructionKind::grow, 0, 0, {}, place, {}});
  }

  BufferRef workspace_for(ValueId id) { return stages_.workspace(bytes_of(type(id))); }

  Result<BufferRef> home(ValueId id) {
    if (origin(id).kind == Kind::constant)
      return stages_.constant(placed_.graph->constants[static_cast<size_t>(origin(id).constant)]);
    if (const auto& known = home_[static_cast<size_t>(id)]) return *known;
    return make_error(Code::internal, "value %d of the graph has no home", id);
  }

  // Where a value that is about to be made shall live.
  BufferRef place_for(ValueId id, bool with_room = true) {
    const auto it = wanted_.find(id);
    const BufferRef place = it != wanted_.end() ? it->second : workspace_for(id);
    home_[static_cast<size_t>(id)] = place;
    for (const BirthPlace& birth : birth_places_)
      if (birth.place == place) set_dims(birth.dims);
    if (with_room) make_room(place);
    return place;
  }

  // ---- Dims that ifs and loops give birth to ----

  struct SetDim {
    int32_t dim;
    IntExpr to;
  };
  // Where something is made whose dims are set just before.
  struct BirthPlace {
    BufferRef place;
    std::vector<SetDim> dims;
  };

  // All at once: what one is set to may be of another that is set, too.
  void set_dims(const std::vector<SetDim>& dims) {
    std::vector<SetDim> last;
    for (const SetDim& set : dims) {
      const bool used = std::any_of(dims.begin(), dims.end(), [&](const SetDim& other) {
        return other.dim != set.dim && other.to.contains(set.dim);
      });
      int32_t dim = set.dim;
      if (used) {
        dim = static_cast<int32_t>(program_.dims.size());
        program_.dims.push_back({program_.dims[static_cast<size_t>(set.dim)].name + "'", 0, std::nullopt, true});
        last.push_back({set.dim, IntExpr::symbol(dim)});
      }
      emit({InstructionKind::set, dim, 0, {}, {}, set.to});
    }
    for (const SetDim& set : last) emit({InstructionKind::set, set.dim, 0, {}, {}, set.to});
  }

  std::vector<SetDim> born(const Op& op, bool first) const {
    std::vector<SetDim> sets;
    for (const graph::BornDim& dim : graph::born_dims(main_, op))
      sets.push_back({dim.symbol, first ? dim.first : dim.second});
    return sets;
  }

  bool uses(ValueId id, int32_t dim) const {
    const graph::Shape& shape = type(id).shape;
    return std::any_of(shape.begin(), shape.end(), [&](const IntExpr& e) { return e.contains(dim); });
  }

  // Whether a value's dims are among those that an op gives birth to.
  bool is_born_with(ValueId id, const Op& op) const {
    const graph::Shape* births = graph::attr_shape(op, graph::AttrKey::births);
    return births && std::any_of(births->begin(), births->end(),
                                 [&](const IntExpr& birth) { return uses(id, *birth.as_symbol()); });
  }

  // Dims of a value made in a place are set when it is made.
  void note_birth(const BufferRef& place, ValueId id, const std::vector<SetDim>& dims) {
    BirthPlace birth{place, {}};
    for (const SetDim& set : dims)
      if (uses(id, set.dim)) birth.dims.push_back(set);
    if (!birth.dims.empty()) birth_places_.push_back(std::move(birth));
  }

  // Whether a value can be made in a place, so that it need not be copied there.
  bool want(const Target& target, const graph::Block& block) {
    const grinder::Origin& from = origin(target.value);
    if (from.block != &block || (from.kind != Kind::segment && from.kind != Kind::result)) return false;
    return wanted_.emplace(target.value, target.place).second;
  }

  Status add_whole(const std::vector<Target>& outputs) {
    std::vector<BufferRef> inputs, places;
    for (size_t i = 0; i < main_.body.arguments.size(); ++i)
      inputs.push_back({Storage::input, static_cast<int32_t>(i)});
    for (const Target& output : outputs) places.push_back(output.place);
    QUARTET_TRY(stages_.add(pieces_[0], *placed_.graph, inputs, places).status());
    program_.run_all();
    return {};
  }

  // `births` are set when everything but the copies is done.
  Status add_block(const graph::Block& block, const std::vector<grinder::Step>& steps,
                   const std::vector<Target>& targets, const std::vector<SetDim>& births = {}) {
    std::vector<Target> copies;
    for (const Target& target : targets)
      if (!want(target, block)) copies.push_back(target);
    for (const grinder::Step& step : steps)
      if (step.control && step.control->code == OpCode::loop) choose_carried(*step.control, block);
    for (const grinder::Step& step : steps) {
      if (!step.control)
        QUARTET_TRY(add_segment(step.segment));
      else if (step.control->code == OpCode::require)
        QUARTET_TRY(add_check(*step.control));
      else if (step.control->code == OpCode::bind)
        QUARTET_TRY(add_bind(*step.control));
      else if (step.control->code == OpCode::if_)
        QUARTET_TRY(add_if(step));
      else
        QUARTET_TRY(add_loop(step));
    }
    set_dims(births);
    for (const Target& target : copies) {
      QUARTET_ASSIGN(const BufferRef from, home(target.value));
      emit_copy(from, target.place, bytes_of(type(target.value)));
    }
    return {};
  }

  Status add_segment(int32_t number) {
    const grinder::Segment& segment = placed_.segments[static_cast<size_t>(number)];
    std::vector<BufferRef> inputs, outputs;
    for (const ValueId id : segment.inputs) {
      QUARTET_ASSIGN(const BufferRef place, home(id));
      inputs.push_back(place);
    }
    for (const ValueId id : segment.outputs) outputs.push_back(place_for(id));
    const size_t slots = program_.workspace.size();
    QUARTET_ASSIGN(const StageBuilder::Range range,
                   stages_.add(pieces_[static_cast<size_t>(number)], *segment.graph, inputs, outputs));
    for (size_t i = slots; i < program_.workspace.size(); ++i) make_room({Storage::workspace, static_cast<int32_t>(i)});
    if (range.count > 0) emit({InstructionKind::run, range.first, range.count, {}, {}, {}});
    return {};
  }

  Status add_check(const Op& op) {
    QUARTET_ASSIGN(const BufferRef condition, home(op.operands[0]));
    for (size_t i = 0; i < op.results.size(); ++i) {
      QUARTET_ASSIGN(home_[static_cast<size_t>(op.results[i])], home(op.operands[i + 1]));
    }
    const auto message = static_cast<int32_t>(program_.messages.size());
    program_.messages.push_back(std::get<std::string>(op.attrs.at(graph::AttrKey::reason)));
    emit({InstructionKind::check, message, 0, condition, {}, {}});
    return {};
  }

  Status add_bind(const Op& op) {
    QUARTET_ASSIGN(const BufferRef number, home(op.operands[0]));
    const auto message = static_cast<int32_t>(program_.messages.size());
    program_.messages.push_back(std::get<std::string>(op.attrs.at(graph::AttrKey::reason)));
    const Symbol dim = *(*graph::attr_shape(op, graph::AttrKey::births))[0].as_symbol();
    emit({InstructionKind::read, dim, message, number, {}, {}});
    return {};
  }

  Status add_if(const grinder::Step& step) {
    const Op& op = *step.control;
    QUARTET_ASSIGN(const BufferRef condition, home(op.operands[0]));
    std::vector<BufferRef> places;
    for (const ValueId id : op.results) places.push_back(place_for(id, !is_born_with(id, op)));
    emit({InstructionKind::branch, 0, 0, condition, {}, {}});
    for (size_t side = 0; side < 2; ++side) {
      std::vector<Target> targets;
      const std::vector<SetDim> dims = born(op, side == 0);
      const size_t known = birth_places_.size();
      for (size_t i = 0; i < places.size(); ++i) {
        targets.push_back({op.regions[side].results[i], places[i]});
        note_birth(places[i], op.results[i], dims);
      }
      QUARTET_TRY(add_block(op.regions[side], step.regions[side], targets, dims));
      birth_places_.resize(known);
      emit({side == 0 ? InstructionKind::otherwise : InstructionKind::branch_end, 0, 0, {}, {}, {}});
    }
    return {};
  }

  // ---- Loops ----

  struct Carried {
    BufferRef now, next;
    bool made_here = false;  // the first value is made in its place
  };

  // Slots for the carried values, before anything of the block around is placed: a first value that nothing else uses
  // is made in its slot.
  void choose_carried(const Op& op, const graph::Block& block) {
    std::vector<Carried>& carried = carried_[&op];
    for (size_t i = 2; i < op.operands.size(); ++i) {
      Carried value;
      const ValueId inside = op.regions[0].arguments[i];
      const bool changes = is_born_with(inside, op);
      value.now = stages_.workspace(bytes_of(type(changes ? inside : op.operands[i])), changes);
      if (changes) note_birth(value.now, inside, born(op, true));
      value.made_here = origin(op.operands[i]).uses == 1 && want({op.operands[i], value.now}, block);
      carried.push_back(value);
    }
  }

  std::optional<bool> constant_flag(ValueId id) const {
    if (origin(id).kind != Kind::constant) return std::nullopt;
    return graph::element_as_int(placed_.graph->constants[static_cast<size_t>(origin(id).constant)], 0) != 0;
  }

  Status add_loop(const grinder::Step& step) {
    const Op& op = *step.control;
    const graph::Block& body = op.regions[0];
    std::vector<Carried>& carried = carried_[&op];
    const auto number = static_cast<int32_t>(program_.loops.size());
    program_.loops.emplace_back();
    program::Loop loop;
    loop.count = grinder::known_count(*placed_.graph, main_, op);
    if (const auto born = grinder::born_symbol(*placed_.graph, main_, op)) {
      loop.dim = *born;
      if (!loop.count) loop.count = program_.dims[static_cast<size_t>(*born)].upper;
      if (op.operands[0] != kNoValue && origin(op.operands[0]).kind != Kind::constant) {
        QUARTET_ASSIGN(loop.trip, home(op.operands[0]));
      }
    } else if (!loop.count && op.operands[0] != kNoValue) {
      QUARTET_ASSIGN(loop.trip, home(op.operands[0]));
    }
    if (op.operands[1] != kNoValue && constant_flag(op.operands[1]) != true) {
      QUARTET_ASSIGN(loop.condition, home(op.operands[1]));
    }
    const std::vector<SetDim> next_dims = born(op, false);
    set_dims(born(op, true));
    for (size_t i = 0; i < carried.size(); ++i) {
      home_[static_cast<size_t>(body.arguments[i + 2])] = carried[i].now;
      home_[static_cast<size_t>(op.results[i])] = carried[i].now;
      if (carried[i].made_here) continue;
      QUARTET_ASSIGN(const BufferRef from, home(op.operands[i + 2]));
      emit_copy(from, carried[i].now, bytes_of(type(op.operands[i + 2])));
    }
    if (origin(body.arguments[0]).uses > 0) {
      const BufferRef slot = workspace_for(body.arguments[0]);
      home_[static_cast<size_t>(body.arguments[0])] = slot;
      loop.iteration = slot.index;
    }
    QUARTET_TRY(add_windows(op, number));
    const std::vector<Target> targets = loop_targets(op, number, carried, loop.dim);
    emit({InstructionKind::loop, number, 0, {}, {}, {}});
    for (const Target& target : targets)
      if (target.place.storage == Storage::view && grows_by_row(target.place, loop.dim))
        emit({InstructionKind::grow, 0, 0, {}, target.place, {}});
    QUARTET_TRY(add_block(body, step.regions[0], targets));
    for (size_t i = 0; i < carried.size(); ++i)
      if (body.results[i + 1] != body.arguments[i + 2] && !bytes_of(type(op.results[i])).is(0))
        emit({InstructionKind::swap, 0, 0, carried[i].now, carried[i].next, {}});
    set_dims(next_dims);
    if (constant_flag(body.results[0]) != true) {
      QUARTET_ASSIGN(loop.next, home(body.results[0]));
    }
    emit({InstructionKind::loop_end, 0, 0, {}, {}, {}});
    program_.loops[static_cast<size_t>(number)] = std::move(loop);
    return {};
  }

  Status add_windows(const Op& op, int32_t loop) {
    for (const grinder::Window& window : placed_.windows) {
      if (window.loop != &op) continue;
      QUARTET_ASSIGN(const BufferRef base, home(window.base));
      const IntExpr row = bytes_of(type(window.value));
      home_[static_cast<size_t>(window.value)] =
          view({base, loop, window.first * row, IntExpr(window.step) * row, row});
    }
    return {};
  }

  BufferRef view(program::View made) {
    program_.views.push_back(std::move(made));
    return {Storage::view, static_cast<int32_t>(program_.views.size() - 1)};
  }

  // Whether a stacked result grows while its loop runs.
  bool grows_by_row(const BufferRef& row, int32_t dim) const {
    return dim >= 0 && program_.dims[static_cast<size_t>(dim)].is_open() && program::grows(program_, row);
  }

  // Where what an iteration yields goes: carried values to their other slot, stacked ones to the iteration's row.
  std::vector<Target> loop_targets(const Op& op, int32_t loop, std::vector<Carried>& carried, int32_t dim) {
    const graph::Block& body = op.regions[0];
    std::vector<Target> targets;
    for (size_t i = carried.size(); i < op.results.size(); ++i) {
      const bool by_row = dim >= 0 && program_.dims[static_cast<size_t>(dim)].is_open();
      const BufferRef whole = place_for(op.results[i], !by_row);
      const IntExpr row = bytes_of(type(body.results[i + 1]));
      targets.push_back({body.results[i + 1], view({whole, loop, IntExpr(0), row, row})});
    }
    for (size_t i = 0; i < carried.size(); ++i) {
      if (body.results[i + 1] == body.arguments[i + 2]) continue;
      const bool changes = is_born_with(op.results[i], op);
      carried[i].next = stages_.workspace(bytes_of(type(changes ? body.results[i + 1] : op.results[i])), changes);
      targets.push_back({body.results[i + 1], carried[i].next});
    }
    return targets;
  }

  const grinder::Placed& placed_;
  const graph::Function& main_;
  const std::vector<Piece>& pieces_;
  Assembly result_;
  program::Program& program_ = result_.program;
  StageBuilder stages_;
  std::vector<std::optional<BufferRef>> home_;     // by value of main
  std::unordered_map<ValueId, BufferRef> wanted_;  // where a value shall be made
  std::map<const Op*, std::vector<Carried>> carried_;
  std::vector<BirthPlace> birth_places_;
};

}  // namespace

Result<Assembly> assemble(const grinder::Placed& placed, const graph::Graph& given, const std::vector<Piece>& pieces) {
  return Assembler(placed, given, pieces).run();
}

}  // namespace quartet::compiler
