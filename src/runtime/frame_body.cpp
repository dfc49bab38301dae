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
  const std::vector<program::Instruction>& body = program_.program().body;
  for (size_t i = 0; i < body.size(); ++i) {
    const program::Instruction& instruction = body[i];
    Action action;
    switch (instruction.kind) {
      case InstructionKind::run:
        action.first = static_cast<int32_t>(runs_.size());
        add_run(static_cast<size_t>(instruction.first), static_cast<size_t>(instruction.count));
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
        action.kind = Action::Kind::copy;
        action.from = &place(instruction.from);
        action.to = &place(instruction.to);
        action.from_varies = !(program::bytes_of(program_.program(), instruction.from) == instruction.bytes);
        action.to_varies = !(program::bytes_of(program_.program(), instruction.to) == instruction.bytes);
        add_item(Item::Kind::copy, actions_.size(), {{&instruction.bytes, 1}}, i);
        if (any_open_ && program::is_open(program_.program(), instruction.bytes)) break;
        QUARTET_ASSIGN(const int64_t bytes, count_at(instruction.bytes, dims_, "the size of a copy"));
        action.bytes = static_cast<uint64_t>(bytes);
        break;
      }
      case InstructionKind::check:
        action.kind = Action::Kind::check;
        action.from = &place(instruction.from);
        action.first = instruction.first;
        break;
      case InstructionKind::swap:
        action.kind = Action::Kind::swap;
        action.first = instruction.from.index;
        action.last = instruction.to.index;
        break;
      case InstructionKind::grow:
        action.kind = Action::Kind::grow;
        action.to = &place(instruction.to);
        action.first = instruction.to.storage == Storage::view ? instruction.to.index : -1;
        break;
      case InstructionKind::set:
        action.kind = Action::Kind::set;
        action.first = instruction.first;
        action.last = static_cast<int32_t>(i);
        break;
      case InstructionKind::read:
        action.kind = Action::Kind::read;
        action.from = &place(instruction.from);
        action.first = instruction.first;
        action.last = instruction.count;
        break;
    }
    actions_.push_back(action);
  }
  return {};
}

Status Frame::build_loops() {
  for (const program::Loop& loop : program_.program().loops) {
    LoopState state;
    state.trip = place(loop.trip);
    state.condition = place(loop.condition);
    state.next = place(loop.next);
    state.dim = loop.dim;
    if (loop.iteration >= 0) state.iteration = &place(BufferRef{Storage::workspace, loop.iteration});
    loops_.push_back(std::move(state));
    QUARTET_TRY(fill_loop(loops_.size() - 1));
  }
  return {};
}

// The bound of a loop for the dims as they are; never more than a dim that it sets may be.
Status Frame::fill_loop(size_t number) {
  const program::Loop& loop = program_.program().loops[number];
  int64_t count = INT64_MAX;
  if (any_open_ && loop.count && program::is_open(program_.program(), *loop.count) &&
      loop.count->contains_any([&](Symbol s) { return !known_[static_cast<size_t>(s)]; }))
    return {};
  if (loop.count) {
    const auto known = program::value_at(*loop.count, live_);
    if (!known)
      return {Code::resource_exhausted, "a loop's number of iterations, " + loop.count->to_text() + ", overflows"};
    count = std::max<int64_t>(*known, 0);
  }
  if (loop.dim >= 0 && !program_.program().dims[static_cast<size_t>(loop.dim)].is_open())
    count = std::min(count, dims_[static_cast<size_t>(loop.dim)]);
  loops_[number].count = count;
  return {};
}

Status Frame::build_views() {
  const program::Program& p = program_.program();
  for (size_t i = 0; i < p.views.size(); ++i) {
    const BufferRef& base = p.views[i].base;
    views_.push_back({&place(base), base.storage == Storage::view ? base.index : -1, 0, 0});
    loops_[static_cast<size_t>(p.views[i].loop)].views.push_back(static_cast<int32_t>(i));
    const bool waits = any_open_ && (program::is_open(p, p.views[i].first) || program::is_open(p, p.views[i].stride) ||
                                     program::is_open(p, p.views[i].bytes));
    if (!waits) QUARTET_TRY(fill_view(i));
  }
  return {};
}

// A view never leaves its base, however many iterations there are. Where the base grows that is seen when it is used.
Status Frame::fill_view(size_t number) {
  const program::Program& p = program_.program();
  const program::View& view = p.views[number];
  const LoopState& loop = loops_[static_cast<size_t>(view.loop)];
  const auto first = program::value_at(view.first, live_), stride = program::value_at(view.stride, live_),
             bytes = program::value_at(view.bytes, live_);
  Place& at = places_[static_cast<size_t>(Storage::view)][number];
  if (at.room >= 0) {
    if (!first || !stride || !bytes || *first < 0 || *stride < 0 || *bytes < 0)
      return make_error(Code::resource_exhausted, "the place or size of view %zu overflows", number);
    views_[number].first = *first;
    views_[number].stride = *stride;
    at.need = static_cast<uint64_t>(*bytes);
    return {};
  }
  const auto whole = program::value_at(program::bytes_of(p, view.base), dims_);
  const int64_t steps = std::max<int64_t>(loop.count - 1, 0);
  int64_t last = 0;
  if (!first || !stride || !bytes || !whole || __builtin_mul_overflow(*stride, steps, &last) ||
      __builtin_add_overflow(*first, last, &last) ||
      (loop.count > 0 && (std::min(*first, last) < 0 || *bytes > *whole || std::max(*first, last) > *whole - *bytes)))
    return make_error(Code::invalid_argument, "view %zu leaves its buffer in some iteration", number);
  views_[number].first = *first;
  views_[number].stride = *stride;
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

Status Frame::run_actions(WorkerPool* pool) {
  const auto count = static_cast<int32_t>(actions_.size());
  for (int32_t at = 0; at < count;) {
    const Action& action = actions_[static_cast<size_t>(at++)];
    switch (action.kind) {
      case Action::Kind::run: {
        Run& run = runs_[static_cast<size_t>(action.first)];
        for (const Place* place : run.growing) QUARTET_TRY(check_there(place));
        if (run.stale) QUARTET_TRY(find_scratch(run));
        run_phases(run, pool);
        break;
      }
      case Action::Kind::jump:
        at = action.target;
        break;
      case Action::Kind::jump_unless:
        QUARTET_TRY(check_there(action.from));
        if (!flag(action.from->address)) at = action.target;
        break;
      case Action::Kind::loop: {
        LoopState& loop = loops_[static_cast<size_t>(action.first)];
        for (const Place* place : {loop.trip, loop.condition}) QUARTET_TRY(check_there(place));
        if (enter(loop)) break;
        at = action.target;
        if (loop.dim >= 0) QUARTET_TRY(set_dim(loop.dim, 0));
        break;
      }
      case Action::Kind::next: {
        LoopState& loop = loops_[static_cast<size_t>(action.first)];
        QUARTET_TRY(check_there(loop.next));
        if (advance(loop))
          at = action.target;
        else if (loop.dim >= 0)
          QUARTET_TRY(set_dim(loop.dim, loop.at));
        break;
      }
      case Action::Kind::check:
        QUARTET_TRY(check_there(action.from));
        if (!flag(action.from->address))
          return {Code::failed_precondition, program_.program().messages[static_cast<size_t>(action.first)]};
        break;
      case Action::Kind::copy:
        if (action.bytes == 0) break;
        for (const Place* place : {action.from, action.to}) QUARTET_TRY(check_there(place));
        if ((action.from_varies && action.bytes > action.from->need) ||
            (action.to_varies && action.bytes > action.to->need))
          return {Code::internal, "a copy is larger than what it copies"};
        std::memcpy(action.to->address, action.from->address, action.bytes);
        break;
      case Action::Kind::swap:
        swap_slots(action.first, action.last);
        break;
      case Action::Kind::grow:
        QUARTET_TRY(grow(action));
        break;
      case Action::Kind::set: {
        const IntExpr& e = program_.program().body[static_cast<size_t>(action.last)].bytes;
        QUARTET_ASSIGN(const int64_t value, count_at(e, live_, "a dim"));
        QUARTET_TRY(set_dim(action.first, value));
        break;
      }
      case Action::Kind::read:
        QUARTET_TRY(read_dim(action));
        break;
    }
  }
  return {};
}

}  // namespace quartet::runtime
