#include <cmath>

#include "base/checked.h"
#include "base/utf8.h"

#include "program/body.h"
#include "program/memory_plan.h"
#include "program/program.h"

namespace quartet::program {
namespace {

const char* storage_name(Storage storage) {
  switch (storage) {
    case Storage::input:
      return "input";
    case Storage::output:
      return "output";
    case Storage::constant:
      return "constant";
    case Storage::prepared:
      return "prepared buffer";
    case Storage::workspace:
      return "workspace slot";
    case Storage::view:
      return "view";
  }
  return "storage of no known kind";
}

class Verifier {
 public:
  explicit Verifier(const Program& program) : p_(program), used_(program.dims.size()) {}

  Status run() {
    QUARTET_TRY(dims());
    QUARTET_TRY(tensors(p_.inputs, "input"));
    QUARTET_TRY(tensors(p_.outputs, "output"));
    for (const Assumption& assumption : p_.assumptions) {
      QUARTET_TRY(expression(assumption.a, "an assumed dim"));
      QUARTET_TRY(expression(assumption.b, "an assumed dim"));
    }
    QUARTET_TRY(buffers());
    QUARTET_TRY(kernels());
    QUARTET_TRY(stages(p_.prepare, true));
    QUARTET_TRY(stages(p_.stages, false));
    QUARTET_TRY(views());
    QUARTET_TRY(verify_body(p_));
    QUARTET_TRY(copies());
    QUARTET_TRY(defaults());
    QUARTET_TRY(outputs_written());
    QUARTET_TRY(bound_dims());
    return memory();
  }

 private:
  static Status bad(const std::string& what) { return {Code::invalid_argument, what}; }

  // Notes the dims it uses.
  Status expression(const IntExpr& e, const std::string& what, bool constant = false, bool negative = false) const {
    if (!e.is_valid()) return bad(what + " is not a valid expression");
    if (constant && !e.is_constant()) return bad(what + " must be a constant, not " + e.to_text());
    if (!negative && e.is_constant() && e.constant().value_or(0) < 0) return bad(what + " is negative: " + e.to_text());
    for (const Symbol s : e.symbols()) {
      if (s < 0 || static_cast<size_t>(s) >= p_.dims.size())
        return bad(what + " uses symbol " + std::to_string(s) + ", which is no dim of the program");
      used_[static_cast<size_t>(s)] = true;
    }
    return {};
  }

  Status dims() const {
    if (p_.dims.size() >= static_cast<size_t>(kAxisSymbols)) return bad("too many dims");
    for (size_t i = 0; i < p_.dims.size(); ++i) {
      const std::string who = "dim '" + p_.dims[i].name + "'";
      if (p_.dims[i].lower < 0) return bad(who + " has the negative lower bound " + std::to_string(p_.dims[i].lower));
      if (!p_.dims[i].upper) continue;
      if (!p_.dims[i].run) return bad(who + " has an upper bound, though the inputs bind it");
      QUARTET_TRY(expression(*p_.dims[i].upper, "the upper bound of " + who));
      for (const Symbol s : p_.dims[i].upper->symbols())
        if (s >= static_cast<Symbol>(i) || p_.dims[static_cast<size_t>(s)].run)
          return bad("the upper bound of " + who + " uses a dim that is not known before");
    }
    return {};
  }

  Status tensors(const std::vector<TensorInfo>& list, const char* kind) const {
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string who = std::string(kind) + " " + std::to_string(i) + " ('" + list[i].name + "')";
      if (!is_utf8(list[i].name)) return bad(who + " has a name that is not UTF-8");
      if (!is_valid(list[i].dtype)) return bad(who + " has no element type");
      for (size_t axis = 0; axis < list[i].shape.size(); ++axis)
        QUARTET_TRY(expression(list[i].shape[axis], who + ", axis " + std::to_string(axis)));
    }
    return {};
  }

  Status bound_dims() const {
    std::vector<bool> bound(p_.dims.size());
    for (const TensorInfo& input : p_.inputs)
      for (const IntExpr& extent : input.shape) {
        if (const auto symbol = extent.as_symbol()) bound[static_cast<size_t>(*symbol)] = true;
        for (const Symbol s : extent.symbols())
          if (p_.dims[static_cast<size_t>(s)].run)
            return bad("input '" + input.name + "' has the dim '" + p_.dims[static_cast<size_t>(s)].name +
                       "', which the run sets");
      }
    QUARTET_TRY(set_dims(bound));
    for (const Loop& loop : p_.loops) {
      if (loop.dim < 0) continue;
      const auto dim = static_cast<size_t>(loop.dim);
      if (dim >= p_.dims.size() || !p_.dims[dim].run || bound[dim])
        return bad("a loop sets dim " + std::to_string(loop.dim) + ", which is not its own to set");
      bound[dim] = true;
    }
    for (size_t i = 0; i < bound.size(); ++i)
      if (used_[i] && !bound[i] && !p_.dims[i].run)
        return bad("dim '" + p_.dims[i].name + "' is not the whole extent of any input's axis, so nothing binds it");
    return {};
  }

  // Dims that instructions set, as often as they like.
  Status set_dims(std::vector<bool>& bound) const {
    for (const Instruction& instruction : p_.body) {
      if (instruction.kind == InstructionKind::copy) QUARTET_TRY(expression(instruction.bytes, "the size of a copy"));
      if (instruction.kind != InstructionKind::set && instruction.kind != InstructionKind::read) continue;
      const auto dim = static_cast<size_t>(instruction.first);
      if (instruction.kind == InstructionKind::set) QUARTET_TRY(expression(instruction.bytes, "what a dim is set to"));
      if (!p_.dims[dim].run)
        return bad("dim '" + p_.dims[dim].name + "' is set by the run, though it is not the run's to set");
      bound[dim] = true;
    }
    return {};
  }

  Status buffers() const {
    for (size_t i = 0; i < p_.constants.size(); ++i)
      if (const ConstantInfo& c = p_.constants[i]; !c.inline_data.empty() && c.inline_data.size() != c.bytes)
        return bad("constant " + std::to_string(i) + " is " + std::to_string(c.bytes) + " bytes but carries " +
                   std::to_string(c.inline_data.size()));
    for (size_t i = 0; i < p_.prepared.size(); ++i)
      QUARTET_TRY(expression(p_.prepared[i].bytes, "size of prepared buffer " + std::to_string(i), true));
    for (size_t i = 0; i < p_.workspace.size(); ++i) {
      QUARTET_TRY(expression(p_.workspace[i].bytes, "size of workspace slot " + std::to_string(i)));
      QUARTET_TRY(expression(p_.workspace[i].offset, "offset of workspace slot " + std::to_string(i)));
      if (p_.workspace[i].region < -1 || p_.workspace[i].region >= static_cast<int32_t>(p_.workspace.size()))
        return bad("workspace slot " + std::to_string(i) + " is in region " + std::to_string(p_.workspace[i].region));
      if (is_open(p_, p_.workspace[i].offset) || (is_open(p_, p_.workspace[i].bytes) && p_.workspace[i].region < 0))
        return bad("workspace slot " + std::to_string(i) + " is in the arena, though its size or offset is not known " +
                   "before the run");
    }
    if (is_open(p_, p_.workspace_bytes)) return bad("the workspace size is not known before the run");
    return expression(p_.workspace_bytes, "workspace size");
  }

  Status defaults() const {
    int32_t last = -1;
    for (const InputDefault& given : p_.defaults) {
      const std::string who = "the default of input " + std::to_string(given.input);
      if (given.input <= last || static_cast<size_t>(given.input) >= p_.inputs.size())
        return bad(who + " is out of order or of no input");
      last = given.input;
      if (given.constant < 0 || static_cast<size_t>(given.constant) >= p_.constants.size())
        return bad(who + " is constant " + std::to_string(given.constant) + ", which is none");
      const TensorInfo& input = p_.inputs[static_cast<size_t>(given.input)];
      if (given.shape.size() != input.shape.size()) return bad(who + " has another rank");
      auto bytes = std::optional<uint64_t>(size_of(input.dtype));
      for (size_t axis = 0; axis < given.shape.size(); ++axis) {
        const auto extent = input.shape[axis].constant();
        if (given.shape[axis] < 0 || (extent && *extent != given.shape[axis])) return bad(who + " has another shape");
        bytes = bytes ? checked_mul<uint64_t>(*bytes, static_cast<uint64_t>(given.shape[axis])) : bytes;
      }
      if (bytes != p_.constants[static_cast<size_t>(given.constant)].bytes)
        return bad(who + " is a constant of another size");
    }
    return {};
  }

  Status kernels() const {
    for (size_t k = 0; k < p_.kernels.size(); ++k) {
      const KernelInfo& kernel = p_.kernels[k];
      const std::string who = "kernel " + std::to_string(k) + " ('" + kernel.name + "')";
      if (kernel.blob < 0) return bad(who + " has the negative blob index " + std::to_string(kernel.blob));
      if (kernel.arguments < 0) return bad(who + " has a negative number of arguments");
      for (size_t d = 0; d < kernel.dims.size(); ++d)
        QUARTET_TRY(expression(kernel.dims[d], "dim " + std::to_string(d) + " of " + who));
      QUARTET_TRY(expression(kernel.scratch_bytes, "scratch size of " + who));
    }
    return {};
  }

  Status reference(const BufferRef& ref, const std::string& who) const {
    if (ref.index < 0 || static_cast<size_t>(ref.index) >= buffer_count(p_, ref.storage))
      return bad(who + " names " + storage_name(ref.storage) + " " + std::to_string(ref.index) +
                 ", of which there are " + std::to_string(buffer_count(p_, ref.storage)));
    return {};
  }

  Status stages(const std::vector<Stage>& list, bool prepare) const {
    int32_t wave = 0;
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string who = (prepare ? "prepare stage " : "stage ") + std::to_string(i);
      QUARTET_TRY(stage(list, i, prepare, who));
      if (list[i].wave < wave)
        return bad(who + " is in wave " + std::to_string(list[i].wave) + ", after a stage of wave " +
                   std::to_string(wave));
      wave = list[i].wave;
    }
    return {};
  }

  Status stage(const std::vector<Stage>& list, size_t i, bool prepare, const std::string& who) const {
    const Stage& stage = list[i];
    if (stage.kernel < 0 || static_cast<size_t>(stage.kernel) >= p_.kernels.size())
      return bad(who + " names kernel " + std::to_string(stage.kernel) + ", of which there are " +
                 std::to_string(p_.kernels.size()));
    const KernelInfo& kernel = p_.kernels[static_cast<size_t>(stage.kernel)];
    if (stage.arguments.size() != static_cast<size_t>(kernel.arguments))
      return bad(who + " passes " + std::to_string(stage.arguments.size()) + " arguments to kernel '" + kernel.name +
                 "', which takes " + std::to_string(kernel.arguments));
    for (const BufferRef& ref : stage.arguments) {
      QUARTET_TRY(reference(ref, who));
      if (prepare && ref.storage != Storage::constant && ref.storage != Storage::prepared)
        return bad(who + " names an " + storage_name(ref.storage) +
                   "; only constants and prepared buffers exist at load");
    }
    QUARTET_TRY(expression(stage.tasks, "number of tasks of " + who, prepare));
    if (prepare) {
      for (const IntExpr& dim : kernel.dims)
        QUARTET_TRY(expression(dim, "a dim of kernel '" + kernel.name + "' in " + who, true));
      QUARTET_TRY(expression(kernel.scratch_bytes, "scratch size of kernel '" + kernel.name + "' in " + who, true));
    }
    if (!(std::isfinite(stage.task_cost) && stage.task_cost >= 0)) return bad(who + " has a cost that is no time");
    for (const int32_t before : stage.after)
      if (before < 0 || static_cast<size_t>(before) >= i || list[static_cast<size_t>(before)].wave >= stage.wave)
        return bad(who + " waits for stage " + std::to_string(before) + ", which is not in an earlier wave");
    return {};
  }

  Status views() const {
    for (size_t i = 0; i < p_.views.size(); ++i) {
      const View& view = p_.views[i];
      const std::string who = "view " + std::to_string(i);
      QUARTET_TRY(reference(view.base, who));
      if (view.base.storage == Storage::view && view.base.index >= static_cast<int32_t>(i))
        return bad(who + " is a part of view " + std::to_string(view.base.index) + ", which does not come before it");
      QUARTET_TRY(expression(view.first, "the beginning of " + who, false, true));
      QUARTET_TRY(expression(view.stride, "the stride of " + who, false, true));
      QUARTET_TRY(expression(view.bytes, "the size of " + who));
    }
    return {};
  }

  Status copies() const {
    for (size_t i = 0; i < p_.copies.size(); ++i) {
      const Program::Copy& copy = p_.copies[i];
      const std::string who = "copy " + std::to_string(i);
      QUARTET_TRY(reference(copy.from, who));
      QUARTET_TRY(reference({Storage::output, copy.output}, who));
      const IntExpr to = bytes_of(p_, {Storage::output, copy.output});
      if (copy.from.storage == Storage::output || copy.from.storage == Storage::workspace ||
          copy.from.storage == Storage::view)
        return bad(who + " is from an " + storage_name(copy.from.storage) + "; stages write those");
      const IntExpr from = bytes_of(p_, copy.from);
      if (!(from.is_valid() && from == to))
        return bad(who + " is of " + from.to_text() + " bytes into an output of " + to.to_text());
    }
    return {};
  }

  Status outputs_written() const {
    std::vector<bool> staged(p_.outputs.size()), copied(p_.outputs.size());
    const auto note = [&](BufferRef ref) {
      while (ref.storage == Storage::view) ref = p_.views[static_cast<size_t>(ref.index)].base;
      if (ref.storage == Storage::output) staged[static_cast<size_t>(ref.index)] = true;
    };
    for (const Stage& stage : p_.stages)
      for (const BufferRef& ref : stage.arguments) note(ref);
    for (const Instruction& instruction : p_.body)
      if (instruction.kind == InstructionKind::copy) note(instruction.to);
    for (const Program::Copy& copy : p_.copies) {
      const size_t i = static_cast<size_t>(copy.output);
      if (staged[i] || copied[i])
        return bad("output " + std::to_string(i) + " is written by a copy and by something else");
      copied[i] = true;
    }
    for (size_t i = 0; i < p_.outputs.size(); ++i)
      if (!staged[i] && !copied[i] && !bytes_of(p_, {Storage::output, static_cast<int32_t>(i)}).is(0))
        return bad("output " + std::to_string(i) + " ('" + p_.outputs[i].name +
                   "') is written by no stage and no copy");
    return {};
  }

  // Lifetimes exactly; places for all sizes when they are static, else for two samples of the dims.
  Status memory() const {
    QUARTET_TRY(check_lifetimes(p_));
    std::vector<int64_t> small, large;
    for (const DimInfo& dim : p_.dims) {
      if (dim.run) {
        for (std::vector<int64_t>* sample : {&small, &large})
          sample->push_back(dim.upper ? value_at(*dim.upper, *sample).value_or(0) : 0);
        continue;
      }
      const int64_t least = std::max<int64_t>(dim.lower, 1);
      small.push_back(least);
      large.push_back(least < (int64_t{1} << 20) ? least + 37 + 11 * static_cast<int64_t>(large.size() % 64) : least);
    }
    QUARTET_TRY(check_places(p_, small));
    return p_.dims.empty() ? Status() : check_places(p_, large);
  }

  const Program& p_;
  mutable std::vector<bool> used_;  // by dim
};

}  // namespace

Status verify(const Program& program) { return Verifier(program).run().with_stage("program"); }

}  // namespace quartet::program
