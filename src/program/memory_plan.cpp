#include "program/memory_plan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/checked.h"

namespace quartet::program {
namespace {

constexpr int64_t kAlignment = 64;

int64_t round_up(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }
IntExpr round_up(const IntExpr& bytes) { return ceil_div(bytes, kAlignment) * kAlignment; }

struct Placed {
  int64_t begin = 0, end = 0;
  const Lifetime* life = nullptr;
};

// The lowest place of the smallest gap that fits among conflicting neighbours; beyond all of them if none does.
// `placed` is sorted by begin.
int64_t best_fit(const std::vector<Placed>& placed, const Lifetime& life, int64_t size) {
  int64_t cursor = 0, best = -1, best_gap = 0;
  for (const Placed& other : placed) {
    if (!other.life->conflicts(life)) continue;
    const int64_t gap = other.begin - cursor;
    if (gap >= size && (best < 0 || gap < best_gap)) {
      best = cursor;
      best_gap = gap;
    }
    cursor = std::max(cursor, other.end);
  }
  return best >= 0 ? best : cursor;
}

// Places slots of constant size; returns the bytes they take.
int64_t place_static(Program& program, const std::vector<Lifetime>& lives) {
  std::vector<size_t> order;
  for (size_t i = 0; i < program.workspace.size(); ++i)
    if (lives[i].used() && program.workspace[i].region < 0 && program.workspace[i].bytes.constant().value_or(0) > 0)
      order.push_back(i);
  std::ranges::sort(order, [&](size_t a, size_t b) {
    const int64_t size_a = *program.workspace[a].bytes.constant(), size_b = *program.workspace[b].bytes.constant();
    return size_a != size_b ? size_a > size_b : a < b;
  });
  std::vector<Placed> placed;
  int64_t total = 0;
  for (const size_t i : order) {
    const int64_t size = round_up(*program.workspace[i].bytes.constant());
    const int64_t begin = best_fit(placed, lives[i], size);
    const Placed entry{begin, begin + size, &lives[i]};
    placed.insert(std::ranges::upper_bound(placed, begin, {}, &Placed::begin), entry);
    program.workspace[i].offset = IntExpr(begin);
    total = std::max(total, entry.end);
  }
  return total;
}

// Places slots of symbolic size behind `base`: slots of equal size share regions like intervals share colours. Returns
// the bytes of everything.
IntExpr place_symbolic(Program& program, const std::vector<Lifetime>& lives, IntExpr base) {
  std::map<IntExpr, std::vector<size_t>, IntExpr::Less> classes;
  for (size_t i = 0; i < program.workspace.size(); ++i)
    if (lives[i].used() && program.workspace[i].region < 0 && !program.workspace[i].bytes.is_constant())
      classes[program.workspace[i].bytes].push_back(i);
  for (auto& [bytes, slots] : classes) {
    std::ranges::sort(slots, {}, [&](size_t i) { return std::pair(lives[i].first, i); });
    struct Region {
      int32_t last;
      IntExpr offset;
    };
    std::vector<Region> regions;
    const IntExpr size = round_up(bytes);
    for (const size_t i : slots) {
      auto region = std::ranges::find_if(regions, [&](const Region& r) { return r.last < lives[i].first; });
      if (region == regions.end()) {
        region = regions.insert(regions.end(), Region{0, base});
        base += size;
      }
      region->last = lives[i].last;
      program.workspace[i].offset = region->offset;
    }
  }
  return base;
}

// Slots that have a region, by when they are first in use.
std::vector<size_t> growing_slots(const Program& program, const std::vector<Lifetime>& lives) {
  std::vector<size_t> slots;
  for (size_t i = 0; i < program.workspace.size(); ++i)
    if (program.workspace[i].region >= 0 && lives[i].used()) slots.push_back(i);
  std::ranges::sort(slots, {}, [&](size_t i) { return std::pair(lives[i].first, i); });
  return slots;
}

// Each slot that grows into the first region that nothing uses any more.
void place_growing(Program& program, const std::vector<Lifetime>& lives) {
  std::vector<int32_t> last;  // by region
  for (const size_t i : growing_slots(program, lives)) {
    auto region = std::ranges::find_if(last, [&](int32_t moment) { return moment < lives[i].first; });
    if (region == last.end()) region = last.insert(last.end(), 0);
    *region = lives[i].last;
    program.workspace[i].region = static_cast<int32_t>(region - last.begin());
  }
}

// Slots of one region are not in use together.
Status check_regions(const Program& program, const std::vector<Lifetime>& lives) {
  std::map<int32_t, size_t> latest;  // by region
  for (const size_t i : growing_slots(program, lives)) {
    const auto [at, fresh] = latest.try_emplace(program.workspace[i].region, i);
    if (!fresh && lives[at->second].conflicts(lives[i]))
      return make_error(Code::invalid_argument, "workspace slots %zu and %zu share a region while both are in use",
                        at->second, i);
    at->second = i;
  }
  return {};
}

}  // namespace

void plan_memory(Program& program) {
  const std::vector<Lifetime> lives = lifetimes(program);
  for (size_t i = 0; i < lives.size(); ++i) {
    WorkspaceSlot& slot = program.workspace[i];
    slot.first = lives[i].first;
    slot.last = lives[i].last;
    slot.offset = IntExpr(0);
  }
  const int64_t fixed = place_static(program, lives);
  program.workspace_bytes = place_symbolic(program, lives, IntExpr(fixed));
  place_growing(program, lives);
}

std::optional<int64_t> value_at(const IntExpr& e, std::span<const int64_t> dims) {
  if (e.is_constant()) return e.constant();
  return e.evaluate([&](Symbol s) -> std::optional<int64_t> {
    if (s < 0 || static_cast<size_t>(s) >= dims.size()) return std::nullopt;
    return dims[static_cast<size_t>(s)];
  });
}

Status check_lifetimes(const Program& program) {
  const std::vector<Lifetime> lives = lifetimes(program);
  for (size_t i = 0; i < lives.size(); ++i)
    if (program.workspace[i].first != lives[i].first || program.workspace[i].last != lives[i].last)
      return make_error(Code::invalid_argument,
                        "workspace slot %zu is planned for the moments %d to %d but in use from %d to %d", i,
                        program.workspace[i].first, program.workspace[i].last, lives[i].first, lives[i].last);
  return check_regions(program, lives);
}

Status check_places(const Program& program, std::span<const int64_t> dims) {
  const std::vector<Lifetime> lives = lifetimes(program);
  const auto total = value_at(program.workspace_bytes, dims);
  if (!total || *total < 0)
    return {Code::invalid_argument, "the workspace size " + program.workspace_bytes.to_text() + " overflows"};
  struct Place {
    int64_t begin, end;
    size_t slot;
  };
  std::vector<Place> places;
  for (size_t i = 0; i < lives.size(); ++i) {
    if (!lives[i].used() || program.workspace[i].region >= 0) continue;
    const auto offset = value_at(program.workspace[i].offset, dims), bytes = value_at(program.workspace[i].bytes, dims);
    const auto end = offset && bytes ? checked_add(*offset, *bytes) : std::nullopt;
    if (!end || *offset < 0 || *bytes < 0 || *end > *total || *offset % kAlignment != 0)
      return make_error(Code::invalid_argument,
                        "workspace slot %zu (offset %s, %s bytes) is misplaced in a workspace of %lld bytes", i,
                        program.workspace[i].offset.to_text().c_str(), program.workspace[i].bytes.to_text().c_str(),
                        static_cast<long long>(*total));
    if (*bytes > 0) places.push_back({*offset, *end, i});
  }
  std::ranges::sort(places, {}, &Place::begin);
  // Places still open at the sweep's position.
  std::vector<Place> open;
  for (const Place& place : places) {
    std::erase_if(open, [&](const Place& other) { return other.end <= place.begin; });
    for (const Place& other : open)
      if (lives[place.slot].conflicts(lives[other.slot]))
        return make_error(Code::invalid_argument, "workspace slots %zu and %zu overlap while both are in use",
                          other.slot, place.slot);
    open.push_back(place);
  }
  return {};
}

}  // namespace quartet::program
