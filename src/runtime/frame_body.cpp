// The body's control: made ready, and run.
#include <algorithm>
#include <cstring>

#include "program/memory_plan.h"
#include "runtime/frame.h"

namespace quartet::runtime {

using program::BufferRef;
using program::InstructionKind;
using program::Storage;

Status Frame::build_body() {
  QUARTET_TRY(build_loops());
  QUARTET_TRY(build_views());
  std::vector<size_t> open;  // actions that wait for their target
  const auto here = [&] { return static_cast<int32_t>(actions_.size()); };
  for (const program::Instruction& instruction : program_.program().body) {
    Action action;
    switch (instruction.kind) {
      case InstructionKind::run:
        build_run(static_cast<size_t>(instruction.first), static_cast<size_t>(instruction.count), action);
        if (action.first == action.last) continue;
        break;
      case InstructionKind::branch:
        action.kind = Action::Kind::jump_unless;
        action.from = &place(instruction.from);
        open.push_back(actions_.size());
        break;
      case InstructionKind::otherwise:
        action.kind = Action::Kind::jump;
        actions_[open.back()].target = here() + 1;
        open.back() = actions_.size();
        break;
      case InstructionKind::branch_end:
        actions_[open.back()].target = here();
        open.pop_back();
        continue;
      case InstructionKind::loop:
        action.kind = Action::Kind::loop;
        action.first = instruction.first;
        open.push_back(actions_.size());
        break;
      case InstructionKind::loop_end:
        action.kind = Action::Kind::next;
        action.first = actions_[open.back()].first;
        action.target = static_cast<int32_t>(open.back()) + 1;
        actions_[open.back()].target = here() + 1;
        open.pop_back();
        break;
      case InstructionKind::copy: {
        QUARTET_ASSIGN(const int64_t bytes, count_at(instruction.bytes, dims_, "the size of a copy"));
        if (bytes == 0) continue;
        action.kind = Action::Kind::copy;
        action.from = &place(instruction.from);
        action.to = &place(instruction.to);
        action.bytes = static_cast<uint64_t>(bytes);
        break;
      }
      case InstructionKind::swap:
        action.kind = Action::Kind::swap;
        action.first = instruction.from.index;
        action.last = instruction.to.index;
        break;
    }
    actions_.push_back(action);
  }
  return {};
}

Status Frame::build_loops() {
  for (const program::Loop& loop : program_.program().loops) {
    LoopState state;
    if (loop.count) {
      const auto count = program::value_at(*loop.count, dims_);
      if (!count)
        return {Code::resource_exhausted, "a loop's number of iterations, " + loop.count->to_text() + ", overflows"};
      state.count = std::max<int64_t>(*count, 0);
    }
    state.trip = place(loop.trip);
    state.condition = place(loop.condition);
    state.next = place(loop.next);
    if (loop.iteration >= 0) state.iteration = &place(BufferRef{Storage::workspace, loop.iteration});
    loops_.push_back(std::move(state));
  }
  return {};
}

// A view never leaves its base, however many iterations there are.
Status Frame::build_views() {
  const program::Program& p = program_.program();
  for (size_t i = 0; i < p.views.size(); ++i) {
    const program::View& view = p.views[i];
    LoopState& loop = loops_[static_cast<size_t>(view.loop)];
    const auto first = program::value_at(view.first, dims_), stride = program::value_at(view.stride, dims_),
               bytes = program::value_at(view.bytes, dims_),
               whole = program::value_at(program::bytes_of(p, view.base), dims_);
    const int64_t steps = std::max<int64_t>(loop.count - 1, 0);
    int64_t last = 0;
    if (!first || !stride || !bytes || !whole || __builtin_mul_overflow(*stride, steps, &last) ||
        __builtin_add_overflow(*first, last, &last) ||
        (loop.count > 0 && (std::min(*first, last) < 0 || *bytes > *whole || std::max(*first, last) > *whole - *bytes)))
      return make_error(Code::invalid_argument, "view %zu leaves its buffer in some iteration", i);
    views_.push_back({&place(view.base), *first, *stride});
    loop.views.push_back(static_cast<int32_t>(i));
  }
  return {};
}

void Frame::move(Place& place, void* address) {
  place.address = address;
  for (const uint32_t pointer : place.pointers) pointers_[pointer] = address;
}

void Frame::move_views(const LoopState& loop) {
  for (const int32_t number : loop.views) {
    const ViewState& view = views_[static_cast<size_t>(number)];
    auto* const base = static_cast<std::byte*>(view.base->address);
    // Null stands for no bytes at all.
    move(places_[static_cast<size_t>(Storage::view)][static_cast<size_t>(number)],
         base == nullptr ? nullptr : base + (view.first + loop.at * view.stride));
  }
}

namespace {

bool flag(const void* address) { return *static_cast<const uint8_t*>(address) != 0; }

}  // namespace

bool Frame::enter(LoopState& loop) {
  loop.at = 0;
  loop.trips = loop.count;
  if (loop.trip != nullptr) {
    int64_t trip = 0;
    std::memcpy(&trip, loop.trip->address, sizeof trip);
    loop.trips = std::min(loop.trips, trip);
  }
  if (loop.trips <= 0 || (loop.condition != nullptr && !flag(loop.condition->address))) return false;
  if (loop.iteration != nullptr) std::memcpy(loop.iteration->address, &loop.at, sizeof loop.at);
  move_views(loop);
  return true;
}

// To the next iteration, if there is one.
bool Frame::advance(LoopState& loop) {
  ++loop.at;
  if (loop.at >= loop.trips || (loop.next != nullptr && !flag(loop.next->address))) return false;
  if (loop.iteration != nullptr) std::memcpy(loop.iteration->address, &loop.at, sizeof loop.at);
  move_views(loop);
  return true;
}

void Frame::run_actions(WorkerPool* pool) {
  const auto count = static_cast<int32_t>(actions_.size());
  for (int32_t at = 0; at < count;) {
    const Action& action = actions_[static_cast<size_t>(at++)];
    switch (action.kind) {
      case Action::Kind::run:
        run_phases(action, pool);
        break;
      case Action::Kind::jump:
        at = action.target;
        break;
      case Action::Kind::jump_unless:
        if (!flag(action.from->address)) at = action.target;
        break;
      case Action::Kind::loop:
        if (!enter(loops_[static_cast<size_t>(action.first)])) at = action.target;
        break;
      case Action::Kind::next:
        if (advance(loops_[static_cast<size_t>(action.first)])) at = action.target;
        break;
      case Action::Kind::copy:
        std::memcpy(action.to->address, action.from->address, action.bytes);
        break;
      case Action::Kind::swap: {
        std::vector<Place>& slots = places_[static_cast<size_t>(Storage::workspace)];
        Place &a = slots[static_cast<size_t>(action.first)], &b = slots[static_cast<size_t>(action.last)];
        void* const address = a.address;
        move(a, b.address);
        move(b, address);
        break;
      }
    }
  }
}

}  // namespace quartet::runtime
