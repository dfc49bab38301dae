// When workspace slots are in use.
#include <algorithm>
#include <numeric>

#include "program/memory_plan.h"

namespace quartet::program {
namespace {

class Timeline {
 public:
  explicit Timeline(const Program& program)
      : program_(program), lives_(program.workspace.size()), partner_(program.workspace.size()) {
    std::iota(partner_.begin(), partner_.end(), 0);
  }

  std::vector<Lifetime> run() {
    for (const Instruction& instruction : program_.body) visit(instruction);
    join_partners();
    // Loops end innermost first, so that what reaches out of one is looked at again in the one around it.
    for (const Span& span : loops_)
      for (Lifetime& life : lives_) extend(life, span);
    return std::move(lives_);
  }

 private:
  struct Span {
    int32_t first, last;
  };

  void visit(const Instruction& instruction) {
    switch (instruction.kind) {
      case InstructionKind::run:
        return run_stages(instruction);
      case InstructionKind::branch:
      case InstructionKind::check:
      case InstructionKind::read:
        use(instruction.from);
        break;
      case InstructionKind::grow:
        use(instruction.to);
        break;
      case InstructionKind::set:
      case InstructionKind::otherwise:
      case InstructionKind::branch_end:
        break;
      case InstructionKind::loop:
        return begin_loop(instruction);
      case InstructionKind::loop_end:
        return end_loop();
      case InstructionKind::copy:
        use(instruction.from);
        use(instruction.to);
        break;
      case InstructionKind::swap:
        use(instruction.from);
        use(instruction.to);
        join(instruction.from.index, instruction.to.index);
        break;
    }
    ++now_;
  }

  void run_stages(const Instruction& instruction) {
    const auto first = static_cast<size_t>(instruction.first), count = static_cast<size_t>(instruction.count);
    for (size_t s = first; s < first + count; ++s) {
      if (s > first && program_.stages[s].wave != program_.stages[s - 1].wave) ++now_;
      for (const BufferRef& ref : program_.stages[s].arguments) use(ref);
    }
    ++now_;
  }

  void begin_loop(const Instruction& instruction) {
    const Loop& loop = program_.loops[static_cast<size_t>(instruction.first)];
    for (const auto& ref : {loop.trip, loop.condition})
      if (ref) use(*ref);
    open_.push_back({++now_, instruction.first});
    if (loop.iteration >= 0) use({Storage::workspace, loop.iteration});
    ++now_;
  }

  void end_loop() {
    const auto [first, number] = open_.back();
    open_.pop_back();
    if (const auto& next = program_.loops[static_cast<size_t>(number)].next) use(*next);
    loops_.push_back({first, now_++});
  }

  void use(const BufferRef& ref) {
    BufferRef at = ref;
    while (at.storage == Storage::view) at = program_.views[static_cast<size_t>(at.index)].base;
    if (at.storage != Storage::workspace || at.index < 0 || static_cast<size_t>(at.index) >= lives_.size()) return;
    Lifetime& life = lives_[static_cast<size_t>(at.index)];
    if (!life.used()) life.first = now_;
    life.last = now_;
  }

  // Slots that exchange their memory are in use together.
  int32_t leader(int32_t slot) {
    while (partner_[static_cast<size_t>(slot)] != slot) slot = partner_[static_cast<size_t>(slot)];
    return slot;
  }
  void join(int32_t a, int32_t b) { partner_[static_cast<size_t>(leader(a))] = leader(b); }
  void join_partners() {
    std::vector<Lifetime> joined(lives_.size());
    for (size_t i = 0; i < lives_.size(); ++i) {
      if (!lives_[i].used()) continue;
      Lifetime& life = joined[static_cast<size_t>(leader(static_cast<int32_t>(i)))];
      life = life.used() ? Lifetime{std::min(life.first, lives_[i].first), std::max(life.last, lives_[i].last)}
                         : lives_[i];
    }
    for (size_t i = 0; i < lives_.size(); ++i)
      if (lives_[i].used()) lives_[i] = joined[static_cast<size_t>(leader(static_cast<int32_t>(i)))];
  }

  static void extend(Lifetime& life, const Span& span) {
    if (!life.used() || life.last < span.first || life.first > span.last) return;
    if (life.first >= span.first && life.last <= span.last) return;
    life.first = std::min(life.first, span.first);
    life.last = std::max(life.last, span.last);
  }

  const Program& program_;
  std::vector<Lifetime> lives_;
  std::vector<int32_t> partner_;
  int32_t now_ = 0;
  std::vector<std::pair<int32_t, int32_t>> open_;  // first moment and number of the loops around
  std::vector<Span> loops_;                        // inner ones before those around them
};

}  // namespace

std::vector<Lifetime> lifetimes(const Program& program) { return Timeline(program).run(); }

}  // namespace quartet::program
