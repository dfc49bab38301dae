#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "unit/program/random_program.h"

namespace quartet::program {
namespace {

using testing::RandomProgram;

// Every task once, phases in wave order, ranges where their phase says.
void check(std::span<const Stage> stages, const std::vector<int64_t>& tasks, int vEUs, const Placement& placement) {
  ASSERT_EQ(placement.lists.size(), static_cast<size_t>(vEUs));
  ASSERT_EQ(placement.cuts.size(), static_cast<size_t>(vEUs));
  std::map<int32_t, std::vector<std::pair<int64_t, int64_t>>> ranges;
  int32_t last_wave = -1;
  for (size_t p = 0; p < placement.phases.size(); ++p) {
    const Placement::Phase& phase = placement.phases[p];
    EXPECT_GT(phase.first_wave, last_wave);
    EXPECT_LE(phase.first_wave, phase.last_wave);
    if (phase.parallel) {
      EXPECT_EQ(phase.first_wave, phase.last_wave);
    }
    last_wave = phase.last_wave;
    for (size_t v = 0; v < placement.lists.size(); ++v) {
      int32_t stage_before = -1;
      for (int32_t r = placement.cuts[v][p]; r < placement.cuts[v][p + 1]; ++r) {
        const TaskRange& range = placement.lists[v][static_cast<size_t>(r)];
        EXPECT_TRUE(phase.parallel || v == 0);
        EXPECT_GT(range.stage, stage_before);
        EXPECT_LT(range.begin, range.end);
        const int32_t wave = stages[static_cast<size_t>(range.stage)].wave;
        EXPECT_TRUE(phase.first_wave <= wave && wave <= phase.last_wave);
        ranges[range.stage].emplace_back(range.begin, range.end);
        stage_before = range.stage;
      }
    }
  }
  for (size_t v = 0; v < placement.lists.size(); ++v) {
    ASSERT_EQ(placement.cuts[v].size(), placement.phases.size() + 1);
    EXPECT_EQ(placement.cuts[v].front(), 0);
    EXPECT_EQ(placement.cuts[v].back(), static_cast<int32_t>(placement.lists[v].size()));
  }
  for (size_t s = 0; s < stages.size(); ++s) {
    auto& list = ranges[static_cast<int32_t>(s)];
    std::ranges::sort(list);
    int64_t next = 0;
    for (const auto& [begin, end] : list) {
      EXPECT_EQ(begin, next) << "stage " << s;
      next = end;
    }
    EXPECT_EQ(next, std::max<int64_t>(tasks[s], 0)) << "stage " << s;
  }
}

TEST(Place, EveryTaskExactlyOnce) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    RandomProgram random(seed, {.stages = 1 + static_cast<int>(seed % 30)});
    std::mt19937_64 numbers(seed);
    std::vector<int64_t> tasks;
    for (Stage& stage : random.program.stages) {
      tasks.push_back(numbers() % 5 == 0 ? 0 : static_cast<int64_t>(numbers() % 300));
      const double costs[] = {0, 1e-9, 1e-7, 1e-6, 1e-3, 1e300};
      stage.task_cost = costs[numbers() % (seed % 7 == 0 ? 6 : 5)];
    }
    for (const int vEUs : {1, 2, 3, 8, 64})
      check(random.program.stages, tasks, vEUs, place(random.program.stages, tasks, vEUs));
  }
}

Stage stage(int32_t wave, double cost) {
  Stage s;
  s.wave = wave;
  s.task_cost = cost;
  return s;
}

TEST(Place, SmallWavesStayWithTheCaller) {
  const std::vector<Stage> stages{stage(0, 1e-7), stage(1, 1e-7), stage(2, 1e-6), stage(3, 1e-7)};
  const std::vector<int64_t> tasks{10, 10, 100, 10};
  const Placement placement = place(stages, tasks, 4);
  ASSERT_EQ(placement.phases.size(), 3u);
  EXPECT_FALSE(placement.phases[0].parallel);
  EXPECT_EQ(placement.phases[0].last_wave, 1);
  EXPECT_TRUE(placement.phases[1].parallel);
  EXPECT_FALSE(placement.phases[2].parallel);
  EXPECT_EQ(placement.lists[0].size(), 4u);
  for (size_t v = 1; v < 4; ++v)
    EXPECT_EQ(placement.lists[v],
              (std::vector<TaskRange>{{2, static_cast<int64_t>(25 * v), static_cast<int64_t>(25 * v + 25)}}));
}

TEST(Place, BalancesByCost) {
  // One dear task and ten cheap ones of the same wave: half the cost each.
  const std::vector<Stage> stages{stage(0, 1e-5), stage(0, 1e-6)};
  const std::vector<int64_t> tasks{1, 10};
  const Placement placement = place(stages, tasks, 2);
  EXPECT_EQ(placement.lists[0], (std::vector<TaskRange>{{0, 0, 1}}));
  EXPECT_EQ(placement.lists[1], (std::vector<TaskRange>{{1, 0, 10}}));
}

TEST(Place, GivesNoVEULessThanAGrain) {
  const std::vector<Stage> stages{stage(0, 1e-6)};
  const std::vector<int64_t> tasks{6};
  const Placement placement = place(stages, tasks, 8);
  EXPECT_EQ(placement.lists[0].size(), 1u);
  EXPECT_EQ(placement.lists[2].size(), 1u);
  EXPECT_TRUE(placement.lists[3].empty());
}

TEST(Place, TheSameShareGoesToTheSameVEU) {
  const std::vector<Stage> stages{stage(0, 1e-5), stage(1, 3e-5)};
  const std::vector<int64_t> tasks{64, 64};
  const Placement placement = place(stages, tasks, 8);
  for (size_t v = 0; v < 8; ++v) {
    ASSERT_EQ(placement.lists[v].size(), 2u);
    EXPECT_EQ(placement.lists[v][0].begin, placement.lists[v][1].begin);
    EXPECT_EQ(placement.lists[v][0].end, placement.lists[v][1].end);
  }
}

TEST(Place, NothingToDo) {
  EXPECT_TRUE(place(std::vector<Stage>{}, {}, 4).phases.empty());
  const Placement placement = place(std::vector<Stage>{stage(0, 1)}, std::vector<int64_t>{0}, 4);
  EXPECT_TRUE(placement.phases.empty());
  EXPECT_EQ(placement.cuts[3], std::vector<int32_t>{0});
}

}  // namespace
}  // namespace quartet::program
