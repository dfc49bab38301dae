#include "program/body.h"

#include <algorithm>

namespace quartet::program {
namespace {

constexpr size_t kMaxDepth = 256;

IntExpr bytes_of_tensor(const TensorInfo& tensor) {
  IntExpr bytes(static_cast<int64_t>(size_of(tensor.dtype)));
  for (const IntExpr& extent : tensor.shape) bytes *= extent;
  return bytes;
}

class BodyVerifier {
 public:
  explicit BodyVerifier(const Program& program)
      : p_(program), loop_used_(program.loops.size()), known_(program.dims.size()) {}

  Status run() {
    QUARTET_TRY(views());
    for (size_t d = 0; d < known_.size(); ++d) {
      known_[d] = !p_.dims[d].is_open();
      any_open_ |= p_.dims[d].is_open();
    }
    for (size_t i = 0; i < p_.body.size(); ++i)
      if (const Status status = visit(p_.body[i]); !status.ok())
        return status.with_prefix("instruction " + std::to_string(i) + ": ");
    if (!open_.empty()) return bad("a loop or branch has no end");
    if (next_stage_ != p_.stages.size()) return bad("the body does not run each stage once and in order");
    for (size_t i = 0; i < loop_used_.size(); ++i)
      if (!loop_used_[i]) return bad("loop " + std::to_string(i) + " stands nowhere in the body");
    return {};
  }

 private:
  struct Open {
    InstructionKind kind;
    int32_t loop = -1;
    // Dims known where it began; of `otherwise`: where the first side ended.
    std::vector<bool> known = {};
  };

  static Status bad(const std::string& what) { return {Code::invalid_argument, what}; }

  bool in_loop(int32_t loop) const {
    for (const Open& open : open_)
      if (open.kind == InstructionKind::loop && open.loop == loop) return true;
    return false;
  }

  Status views() const {
    for (size_t i = 0; i < p_.views.size(); ++i) {
      const int32_t loop = p_.views[i].loop;
      const std::string who = "view " + std::to_string(i);
      if (loop < 0 || static_cast<size_t>(loop) >= p_.loops.size())
        return bad(who + " moves with loop " + std::to_string(loop) + ", which does not exist");
      if (!p_.loops[static_cast<size_t>(loop)].count && !p_.views[i].stride.is(0) && !grows(p_, p_.views[i].base))
        return bad(who + " moves with loop " + std::to_string(loop) + ", whose iterations have no bound");
    }
    return {};
  }

  // Open dims have been set on every way to here.
  Status known(const IntExpr& e) const {
    if (!any_open_) return {};
    for (const Symbol s : e.symbols())
      if (s >= 0 && static_cast<size_t>(s) < known_.size() && !known_[static_cast<size_t>(s)])
        return bad("uses dim '" + p_.dims[static_cast<size_t>(s)].name + "' before it is set");
    return {};
  }

  // The buffer exists here: a view, inside its loop and where its base does. Its size is known.
  Status here(BufferRef ref) const {
    if (ref.index < 0 || static_cast<size_t>(ref.index) >= buffer_count(p_, ref.storage))
      return bad("names a buffer that does not exist");
    if (any_open_) QUARTET_TRY(known(bytes_of(p_, ref)));
    for (; ref.storage == Storage::view; ref = p_.views[static_cast<size_t>(ref.index)].base) {
      const int32_t loop = p_.views[static_cast<size_t>(ref.index)].loop;
      if (!in_loop(loop))
        return bad("names view " + std::to_string(ref.index) + " outside of loop " + std::to_string(loop));
    }
    return {};
  }

  Status scalar(const BufferRef& ref, int64_t bytes, const char* role) const {
    QUARTET_TRY(here(ref));
    if (bytes_of(p_, ref).is(bytes)) return {};
    return bad(std::string(role) + " is of " + bytes_of(p_, ref).to_text() + " bytes, not " + std::to_string(bytes));
  }

  Status visit(const Instruction& instruction) {
    switch (instruction.kind) {
      case InstructionKind::run:
        return run_stages(instruction);
      case InstructionKind::branch:
        QUARTET_TRY(scalar(instruction.from, 1, "the condition"));
        return open({InstructionKind::branch});
      case InstructionKind::otherwise:
        return turn();
      case InstructionKind::branch_end:
        return close(InstructionKind::otherwise);
      case InstructionKind::loop:
        return begin_loop(instruction);
      case InstructionKind::loop_end:
        return end_loop();
      case InstructionKind::copy:
        return copy(instruction);
      case InstructionKind::swap:
        return swap(instruction);
      case InstructionKind::check:
        QUARTET_TRY(message(instruction.first));
        return scalar(instruction.from, 1, "the condition");
      case InstructionKind::grow:
        QUARTET_TRY(here(instruction.to));
        return grows(p_, instruction.to) ? Status() : bad("gives room to a buffer that does not grow");
      case InstructionKind::set:
        QUARTET_TRY(known(instruction.bytes));
        return learn(instruction.first);
      case InstructionKind::read:
        QUARTET_TRY(message(instruction.count));
        QUARTET_TRY(scalar(instruction.from, 8, "what it reads"));
        return learn(instruction.first);
    }
    return bad("is of no known kind");
  }

  Status message(int32_t number) const {
    if (number >= 0 && static_cast<size_t>(number) < p_.messages.size()) return {};
    return bad("fails with message " + std::to_string(number) + ", which does not exist");
  }

  // That dims are the run's to set is checked with the dims.
  Status learn(int32_t dim) {
    if (dim < 0 || static_cast<size_t>(dim) >= known_.size())
      return bad("sets dim " + std::to_string(dim) + ", which does not exist");
    known_[static_cast<size_t>(dim)] = true;
    return {};
  }

  Status open(Open block) {
    if (open_.size() == kMaxDepth) return {Code::resource_exhausted, "loops and branches are nested too deep"};
    if (block.kind != InstructionKind::otherwise) block.known = known_;
    open_.push_back(std::move(block));
    return {};
  }
  // What is known after a loop was known before it: there may be no iteration. After a branch, what both sides know.
  Status close(InstructionKind kind) {
    if (open_.empty() || open_.back().kind != kind) return bad("ends what has not begun");
    std::vector<bool>& before = open_.back().known;
    if (kind == InstructionKind::otherwise)
      for (size_t d = 0; d < known_.size(); ++d) known_[d] = known_[d] && before[d];
    else
      known_.swap(before);
    if (kind != InstructionKind::branch) open_.pop_back();
    return {};
  }
  Status turn() {
    QUARTET_TRY(close(InstructionKind::branch));
    open_.back().kind = InstructionKind::otherwise;
    return {};
  }

  Status run_stages(const Instruction& instruction) {
    if (instruction.count <= 0 || instruction.first != static_cast<int32_t>(next_stage_) ||
        static_cast<size_t>(instruction.count) > p_.stages.size() - next_stage_)
      return bad("the body does not run each stage once and in order");
    for (int32_t i = 0; i < instruction.count; ++i, ++next_stage_)
      if (const Status status = run_stage(p_.stages[next_stage_]); !status.ok())
        return status.with_prefix("stage " + std::to_string(next_stage_) + " ");
    return {};
  }

  Status run_stage(const Stage& stage) const {
    const KernelInfo& kernel = p_.kernels[static_cast<size_t>(stage.kernel)];
    QUARTET_TRY(known(stage.tasks));
    QUARTET_TRY(known(kernel.scratch_bytes));
    for (const IntExpr& dim : kernel.dims) QUARTET_TRY(known(dim));
    for (const BufferRef& ref : stage.arguments) QUARTET_TRY(here(ref));
    return {};
  }

  Status begin_loop(const Instruction& instruction) {
    if (instruction.first < 0 || static_cast<size_t>(instruction.first) >= p_.loops.size() ||
        loop_used_[static_cast<size_t>(instruction.first)])
      return bad("begins loop " + std::to_string(instruction.first) + ", which does not exist or stands elsewhere");
    loop_used_[static_cast<size_t>(instruction.first)] = true;
    const Loop& loop = p_.loops[static_cast<size_t>(instruction.first)];
    if (loop.trip) QUARTET_TRY(scalar(*loop.trip, 8, "the trip count"));
    if (loop.condition) QUARTET_TRY(scalar(*loop.condition, 1, "the condition"));
    if (loop.iteration >= 0) QUARTET_TRY(scalar({Storage::workspace, loop.iteration}, 8, "the iteration's number"));
    if (loop.count) {
      if (!loop.count->is_valid()) return bad("the number of iterations is not a valid expression");
      for (const Symbol s : loop.count->symbols())
        if (s < 0 || static_cast<size_t>(s) >= p_.dims.size())
          return bad("the number of iterations uses symbol " + std::to_string(s) + ", which is no dim of the program");
      QUARTET_TRY(known(*loop.count));
    }
    for (const View& view : p_.views)
      if (view.loop == instruction.first)
        for (const IntExpr* e : {&view.first, &view.stride, &view.bytes}) QUARTET_TRY(known(*e));
    return open({InstructionKind::loop, instruction.first});
  }

  Status end_loop() {
    if (!open_.empty() && open_.back().kind == InstructionKind::loop)
      if (const auto& next = p_.loops[static_cast<size_t>(open_.back().loop)].next)
        QUARTET_TRY(scalar(*next, 1, "the next condition"));
    const int32_t dim = open_.empty() || open_.back().kind != InstructionKind::loop
                            ? -1
                            : p_.loops[static_cast<size_t>(open_.back().loop)].dim;
    QUARTET_TRY(close(InstructionKind::loop));
    return dim < 0 ? Status() : learn(dim);
  }

  Status copy(const Instruction& instruction) const {
    QUARTET_TRY(here(instruction.from));
    QUARTET_TRY(here(instruction.to));
    if (instruction.to.storage != Storage::output && instruction.to.storage != Storage::workspace &&
        instruction.to.storage != Storage::view)
      return bad("copies to memory that is only read");
    // The size of what is of dims that the run sets is compared when it copies.
    const auto set_by_run = [&](Symbol s) { return p_.dims[static_cast<size_t>(s)].run; };
    QUARTET_TRY(known(instruction.bytes));
    for (const BufferRef& ref : {instruction.from, instruction.to})
      if (!(bytes_of(p_, ref) == instruction.bytes) &&
          (ref.storage == Storage::view || !bytes_of(p_, ref).contains_any(set_by_run)))
        return bad("copies " + instruction.bytes.to_text() + " bytes of a buffer of " + bytes_of(p_, ref).to_text());
    return {};
  }

  Status swap(const Instruction& instruction) const {
    for (const BufferRef& ref : {instruction.from, instruction.to}) {
      QUARTET_TRY(here(ref));
      if (ref.storage != Storage::workspace) return bad("exchanges what is no workspace slot");
    }
    const bool grow = grows(p_, instruction.from);
    if (grow != grows(p_, instruction.to)) return bad("exchanges a slot in a region with one that is in none");
    if (grow || bytes_of(p_, instruction.from) == bytes_of(p_, instruction.to)) return {};
    return bad("exchanges slots of different sizes");
  }

  const Program& p_;
  std::vector<bool> loop_used_;
  std::vector<bool> known_;  // by dim
  bool any_open_ = false;
  std::vector<Open> open_;
  size_t next_stage_ = 0;
};

}  // namespace

IntExpr bytes_of(const Program& program, const BufferRef& ref) {
  const auto index = static_cast<size_t>(ref.index);
  switch (ref.storage) {
    case Storage::input:
      return bytes_of_tensor(program.inputs[index]);
    case Storage::output:
      return bytes_of_tensor(program.outputs[index]);
    case Storage::constant:
      return IntExpr(static_cast<int64_t>(program.constants[index].bytes));
    case Storage::prepared:
      return program.prepared[index].bytes;
    case Storage::workspace:
      return program.workspace[index].bytes;
    case Storage::view:
      return program.views[index].bytes;
  }
  return IntExpr::invalid();
}

bool is_open(const Program& program, const IntExpr& e) {
  return e.contains_any([&](Symbol s) {
    return s >= 0 && static_cast<size_t>(s) < program.dims.size() && program.dims[static_cast<size_t>(s)].is_open();
  });
}

bool grows(const Program& program, BufferRef ref) {
  while (ref.storage == Storage::view) ref = program.views[static_cast<size_t>(ref.index)].base;
  if (ref.storage == Storage::workspace) return program.workspace[static_cast<size_t>(ref.index)].region >= 0;
  if (ref.storage != Storage::output) return false;
  const std::vector<IntExpr>& shape = program.outputs[static_cast<size_t>(ref.index)].shape;
  return std::any_of(shape.begin(), shape.end(), [&](const IntExpr& e) { return is_open(program, e); });
}

size_t buffer_count(const Program& program, Storage storage) {
  switch (storage) {
    case Storage::input:
      return program.inputs.size();
    case Storage::output:
      return program.outputs.size();
    case Storage::constant:
      return program.constants.size();
    case Storage::prepared:
      return program.prepared.size();
    case Storage::workspace:
      return program.workspace.size();
    case Storage::view:
      return program.views.size();
  }
  return 0;
}

Status verify_body(const Program& program) { return BodyVerifier(program).run(); }

}  // namespace quartet::program
