// Memory that grows with what the run finds out.
#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "program/memory_plan.h"
#include "runtime/frame.h"

namespace quartet::runtime {

using program::BufferRef;
using program::Storage;

namespace {

// The least that a room begins with.
constexpr uint64_t kFirstRoom = 1024;

}  // namespace

void Frame::make_rooms() {
  const program::Program& p = program_.program();
  output_rooms_.assign(p.outputs.size(), -1);
  size_t regions = 0;
  for (const program::WorkspaceSlot& slot : p.workspace)
    regions = std::max(regions, static_cast<size_t>(slot.region + 1));
  rooms_.resize(regions);
  for (size_t i = 0; i < p.workspace.size(); ++i) {
    if (p.workspace[i].region < 0) continue;
    Place& at = place({Storage::workspace, static_cast<int32_t>(i)});
    at.room = p.workspace[i].region;
    rooms_[static_cast<size_t>(at.room)].places.push_back(&at);
  }
  for (size_t i = 0; i < p.outputs.size(); ++i) {
    const BufferRef output{Storage::output, static_cast<int32_t>(i)};
    if (!program::grows(p, output)) continue;
    output_rooms_[i] = place(output).room = static_cast<int32_t>(rooms_.size());
    Room& room = rooms_.emplace_back();
    room.output = output.index;
    room.places = {&place(output)};
  }
  for (size_t i = 0; i < p.views.size(); ++i) {
    const int32_t room = place(p.views[i].base).room;
    if (room < 0) continue;
    places_[static_cast<size_t>(Storage::view)][i].room = room;
    rooms_[static_cast<size_t>(room)].views.push_back(static_cast<int32_t>(i));
  }
}

// Whether all of what is there fits into its room.
bool Frame::is_there(const Place& place) const {
  if (place.room < 0 || place.need == 0) return true;
  const Room& room = rooms_[static_cast<size_t>(place.room)];
  const auto begin = reinterpret_cast<uintptr_t>(room.data), address = reinterpret_cast<uintptr_t>(place.address);
  return room.data != nullptr && address >= begin && address - begin <= room.bytes &&
         place.need <= room.bytes - (address - begin);
}

Status Frame::check_there(const Place* place) const {
  if (place == nullptr || place->room < 0 || is_there(*place)) return {};
  return {Code::internal, "a buffer that grows is used before it has room"};
}

Status Frame::grow(const Action& action) {
  const Place& at = *action.to;
  Room& room = rooms_[static_cast<size_t>(at.room)];
  uint64_t before = 0;
  for (int32_t v = action.first; v >= 0; v = views_[static_cast<size_t>(v)].base_view) {
    const ViewState& view = views_[static_cast<size_t>(v)];
    const LoopState& loop = loops_[static_cast<size_t>(program_.program().views[static_cast<size_t>(v)].loop)];
    const auto moved = checked_mul(static_cast<uint64_t>(loop.at), static_cast<uint64_t>(view.stride));
    const auto here = moved ? checked_add(*moved, static_cast<uint64_t>(view.first)) : std::nullopt;
    const auto sum = here ? checked_add(before, *here) : std::nullopt;
    if (!sum) return {Code::resource_exhausted, "the place of a loop's row overflows"};
    before = *sum;
  }
  const auto needed = checked_add(before, at.need);
  if (!needed) return {Code::resource_exhausted, "the size of a loop's result overflows"};
  if (*needed <= room.bytes) return {};
  return enlarge(room, *needed, before);
}

// Doubles, so that growing by rows copies each byte about once; what is needed alone if there is no memory for that.
Status Frame::enlarge(Room& room, uint64_t needed, uint64_t kept) {
  const program::Program& p = program_.program();
  if (room.lent)
    return make_error(Code::resource_exhausted, "%s: it has room for %llu bytes, but the result takes %s%llu",
                      output_name(p, static_cast<size_t>(room.output)).c_str(),
                      static_cast<unsigned long long>(room.bytes), kept > 0 ? "at least " : "",
                      static_cast<unsigned long long>(needed));
  const std::string what =
      room.output >= 0 ? output_name(p, static_cast<size_t>(room.output)) : "memory that grows with the run's dims";
  const auto least = checked_round_up(needed, Block::kAlignment);
  if (!least) return {Code::resource_exhausted, what + ": its size overflows"};
  if (kept == 0) {
    room.block = Block();
    room.data = nullptr;
  }
  const uint64_t wanted = std::max({*least, room.bytes > UINT64_MAX / 4 ? 0 : 2 * room.bytes, kFirstRoom});
  if (kept == 0) room.bytes = 0;
  auto made = Block::allocate(program_.allocator(), wanted, what.c_str());
  if (!made.ok() && wanted > *least) made = Block::allocate(program_.allocator(), *least, what.c_str());
  if (!made.ok()) {
    settle(room);
    return made.status();
  }
  Block block = made.take();
  if (kept > 0) std::memcpy(block.data(), room.data, static_cast<size_t>(std::min(kept, room.bytes)));
  room.bytes = block.size();
  room.data = block.data();
  room.block = std::move(block);
  settle(room);
  return {};
}

// Puts everything in a room where the room is.
void Frame::settle(Room& room) {
  for (Place* place : room.places) move(*place, room.data);
  for (const int32_t number : room.views) {
    const ViewState& view = views_[static_cast<size_t>(number)];
    const LoopState& loop = loops_[static_cast<size_t>(program_.program().views[static_cast<size_t>(number)].loop)];
    auto* const base = static_cast<std::byte*>(view.base->address);
    move(places_[static_cast<size_t>(Storage::view)][static_cast<size_t>(number)],
         base == nullptr ? nullptr : base + (view.first + loop.at * view.stride));
  }
}

void Frame::swap_slots(int32_t first, int32_t second) {
  std::vector<Place>& slots = places_[static_cast<size_t>(Storage::workspace)];
  Place &a = slots[static_cast<size_t>(first)], &b = slots[static_cast<size_t>(second)];
  if (a.room < 0) {
    void* const address = a.address;
    move(a, b.address);
    move(b, address);
    return;
  }
  if (a.room == b.room) return;
  Room &x = rooms_[static_cast<size_t>(a.room)], &y = rooms_[static_cast<size_t>(b.room)];
  std::swap(x.block, y.block);
  std::swap(x.data, y.data);
  std::swap(x.bytes, y.bytes);
  settle(x);
  settle(y);
}

// Scratch for stages of open dims, if what there is does not suffice.
Status Frame::find_scratch(const Run& run) {
  uint64_t bytes = 0;
  for (size_t s = run.first; s < run.first + run.count; ++s) bytes = std::max(bytes, stage_scratch_[s]);
  if (bytes <= scratch_bytes_) return {};
  const auto one = checked_round_up(bytes, Block::kAlignment);
  const auto all = one ? checked_mul<uint64_t>(*one, static_cast<uint64_t>(requested_vEUs_)) : std::nullopt;
  if (!all) return {Code::resource_exhausted, "the scratch size of a kernel overflows"};
  QUARTET_ASSIGN(own_scratch_, Block::allocate(program_.allocator(), *all, "the scratch of a kernel"));
  scratch_ = own_scratch_.data();
  scratch_bytes_ = *one;
  return {};
}

void Frame::lend_output(size_t index, void* data, uint64_t bytes) {
  Room& room = rooms_[static_cast<size_t>(output_room(index))];
  room.block = Block();
  room.data = static_cast<std::byte*>(data);
  room.bytes = data != nullptr ? bytes : 0;
  room.lent = true;
  settle(room);
}

void Frame::own_output(size_t index) {
  Room& room = rooms_[static_cast<size_t>(output_room(index))];
  if (!room.lent) return;
  room.data = nullptr;
  room.bytes = 0;
  room.lent = false;
  settle(room);
}

Block Frame::release_output(size_t index) {
  Room& room = rooms_[static_cast<size_t>(output_room(index))];
  Block taken = std::move(room.block);
  room.data = nullptr;
  room.bytes = 0;
  room.lent = false;
  settle(room);
  return taken;
}

}  // namespace quartet::runtime
