#include "rammer/waves.h"

#include <algorithm>

namespace quartet::rammer {
namespace {

// Which group makes each tensor, -1: none.
std::vector<int32_t> makers(const tile::TileGraph& graph, const std::vector<welder::Group>& groups) {
  std::vector<int32_t> maker(graph.tensors.size(), -1);
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const tile::TensorId t : groups[g].outputs) maker[static_cast<size_t>(t)] = static_cast<int32_t>(g);
  }
  return maker;
}

}  // namespace

Schedule schedule(const tile::TileGraph& graph, const std::vector<welder::Group>& groups, const CpuModel& /*device*/) {
  const std::vector<int32_t> maker = makers(graph, groups);
  const size_t count = groups.size();
  Schedule made;
  made.wave.assign(count, 0);
  made.after.resize(count);
  // Everything a group waits for, directly or not, as bits: what another of its needs waits for already, it need not
  // name.
  const size_t words = (count + 63) / 64;
  std::vector<uint64_t> reach(count * words);
  const auto reaches = [&](int32_t from, int32_t to) {
    return (reach[static_cast<size_t>(from) * words + static_cast<size_t>(to) / 64] >> (to % 64) & 1) != 0;
  };
  for (size_t g = 0; g < count; ++g) {  // groups come in topological order
    std::vector<int32_t> needs;
    for (const tile::TensorId t : groups[g].inputs) {
      if (const int32_t m = maker[static_cast<size_t>(t)]; m >= 0) needs.push_back(m);
    }
    std::sort(needs.begin(), needs.end());
    needs.erase(std::unique(needs.begin(), needs.end()), needs.end());
    for (const int32_t need : needs) {
      made.wave[g] = std::max(made.wave[g], made.wave[static_cast<size_t>(need)] + 1);
      const bool implied = std::any_of(needs.begin(), needs.end(), [&](int32_t other) { return reaches(other, need); });
      if (!implied) made.after[g].push_back(need);
      uint64_t* const own = &reach[g * words];
      const uint64_t* const theirs = &reach[static_cast<size_t>(need) * words];
      for (size_t w = 0; w < words; ++w) own[w] |= theirs[w];
      own[static_cast<size_t>(need) / 64] |= uint64_t{1} << (need % 64);
    }
    made.order.push_back(static_cast<int32_t>(g));
  }
  std::sort(made.order.begin(), made.order.end(), [&](int32_t a, int32_t b) {
    const int32_t wave_a = made.wave[static_cast<size_t>(a)], wave_b = made.wave[static_cast<size_t>(b)];
    return wave_a != wave_b ? wave_a < wave_b : a < b;
  });
  return made;
}

}  // namespace quartet::rammer
