// SPDX-License-Identifier: Apache-2.0
//
// Layouts carried out on GPUs in memory: whole, with steps that fail, with the manager killed at
// every point and again while it recovers, and after a loss of power.
#include "agent/mig/manager.h"

#include <gtest/gtest.h>

#include <functional>

#include "agent/mig/pod_holders.h"
#include "agent/mig/testing/fake_gpus.h"
#include "agent/mig/testing/mig_oracle.h"
#include "agent/mig/testing/trial.h"
#include "base/rng.h"
#include "base/testing/temp_folder.h"

namespace jogak::agent {
namespace {

using testing::FakeGpus;
using testing::FakeStore;
using testing::Fuse;
using testing::Killed;
using testing::MigTrial;

// A node, its journal, and a manager that may be replaced by another.
struct World {
  Fuse fuse;
  FakeGpus gpus{fuse};
  FakeStore store{fuse};

  std::vector<MigGpuReport> apply(const std::vector<MigGoal>& goals,
                                  const MigHolders& holders = {}) {
    auto reports = MigManager(gpus, store).apply(goals, holders);
    EXPECT_TRUE(reports.has_value()) << reports.error().what;
    return reports.value_or(std::vector<MigGpuReport>{});
  }
  std::vector<MigGpuReport> recover(const MigHolders& holders = {}) {
    auto reports = MigManager(gpus, store).recover(holders);
    EXPECT_TRUE(reports.has_value()) << reports.error().what;
    return reports.value_or(std::vector<MigGpuReport>{});
  }
};

MigGoal goal(std::string uuid, std::vector<MigGoal::Count> wanted) {
  return {.uuid = std::move(uuid), .is_enabled = true, .wanted = std::move(wanted)};
}

MigGoal off(std::string uuid) {
  return {.uuid = std::move(uuid), .is_enabled = false, .wanted = {}};
}

TEST(MigManager, OneA100IntoSeven) {
  World world;
  const std::string gpu = world.gpus.add("A100-40", true);
  const auto reports = world.apply({goal(gpu, {{"1g.5gb", 7}})});
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].state, MigState::Done) << reports[0].reason;
  EXPECT_EQ(reports[0].steps.size(), 7U);
  EXPECT_EQ(world.gpus.picture(gpu),
            "1g.5gb@0 1g.5gb@1 1g.5gb@2 1g.5gb@3 1g.5gb@4 1g.5gb@5 1g.5gb@6");
  EXPECT_EQ(world.store.text, "");
  EXPECT_EQ(world.apply({goal(gpu, {{"1g.5gb", 7}})})[0].state, MigState::Same);
}

TEST(MigManager, KeepsWhatPodsAndProcessesUse) {
  World world;
  const std::string gpu = world.gpus.add("A100-40", true);
  const int used = world.gpus.put(gpu, "3g.20gb", 0);
  world.gpus.put(gpu, "1g.5gb", 4);
  world.gpus.use(gpu, used, 12);
  const auto refused = world.apply({goal(gpu, {{"1g.5gb", 7}})});
  EXPECT_EQ(refused[0].state, MigState::Refused);
  EXPECT_EQ(refused[0].reason,
            "7 x 1g.5gb needs the place of what is in use: instance 1 (3g.20gb at slices 0-3) by "
            "pid 12 (python); stop that first");
  EXPECT_EQ(world.gpus.picture(gpu), "3g.20gb@0 1g.5gb@4");
  EXPECT_EQ(world.apply({goal(gpu, {{"3g.20gb", 2}})})[0].state, MigState::Done);
  EXPECT_EQ(world.gpus.picture(gpu), "3g.20gb@0 3g.20gb@4");
  EXPECT_EQ(world.gpus.touched_in_use(), 0);
}

TEST(MigManager, APodWithoutAProcessKeepsItsInstance) {
  World world;
  const std::string gpu = world.gpus.add("A100-40", true);
  world.gpus.put(gpu, "3g.20gb", 0);
  const nvml::NodeFacts facts = world.gpus.facts().value();
  const std::vector<Holding> holdings = {
      {.resource = "nvidia.com/mig-3g.20gb",
       .device_id = facts.gpus[0].mig_instances[0].uuid,
       .holder = {.pod_namespace = "ml", .pod = "a", .container = "c", .pod_uid = ""}}};
  const MigHolders holders = pod_holders(facts, HolderIndex(facts, holdings));
  EXPECT_EQ(holders, (MigHolders{{facts.gpus[0].mig_instances[0].uuid, "pod ml/a"}}));
  const auto refused = world.apply({goal(gpu, {{"7g.40gb", 1}})}, holders);
  EXPECT_EQ(refused[0].reason,
            "1 x 7g.40gb needs the place of what is in use: instance 1 (3g.20gb at slices 0-3) by "
            "pod ml/a; stop that first");
  EXPECT_EQ(world.apply({off(gpu)}, holders)[0].reason,
            "the MIG mode changes only while nothing uses the GPU; stop pod ml/a first");
}

TEST(MigManager, OneRefusalLeavesAllAsTheyWere) {
  World world;
  const std::string a = world.gpus.add("A100-40", true);
  const std::string b = world.gpus.add("A30", true);
  const auto reports = world.apply({goal(a, {{"1g.5gb", 7}}), goal(b, {{"1g.5gb", 7}})});
  EXPECT_EQ(reports[0].reason, "not begun, because of gpu 1");
  EXPECT_EQ(reports[1].reason,
            "1g.5gb: the GPU offers 1g.6gb, 2g.12gb, 4g.24gb, 1g.6gb+me, 2g.12gb+me");
  EXPECT_EQ(world.gpus.changes(), 0);
}

TEST(MigManager, HopperIsSwitchedOnAndCutAtOnce) {
  World world;
  const std::string gpu = world.gpus.add("H100-80", false);
  EXPECT_EQ(world.apply({goal(gpu, {{"3g.40gb", 2}})})[0].state, MigState::Done);
  EXPECT_EQ(world.gpus.picture(gpu), "3g.40gb@0 3g.40gb@4");
  EXPECT_EQ(world.apply({off(gpu)})[0].state, MigState::Done);
  EXPECT_EQ(world.gpus.picture(gpu), "off");
}

TEST(MigManager, AmpereWaitsForItsReset) {
  World world;
  const std::string gpu = world.gpus.add("A100-40", false);
  const auto first = world.apply({goal(gpu, {{"3g.20gb", 2}})});
  EXPECT_EQ(first[0].state, MigState::NeedsReset);
  EXPECT_EQ(first[0].reason, "MIG is on after a reset of the GPU");
  EXPECT_NE(world.store.text, "");
  EXPECT_EQ(world.recover()[0].state, MigState::NeedsReset) << "not reset yet";
  world.gpus.reset(gpu);
  EXPECT_EQ(world.recover()[0].state, MigState::Done);
  EXPECT_EQ(world.gpus.picture(gpu), "3g.20gb@0 3g.20gb@4");
  EXPECT_EQ(world.store.text, "");

  EXPECT_EQ(world.apply({off(gpu)})[0].state, MigState::NeedsReset);
  EXPECT_EQ(world.gpus.picture(gpu), "") << "its instances are gone";
  world.gpus.reset(gpu);
  EXPECT_EQ(world.recover()[0].state, MigState::Done);
  EXPECT_EQ(world.gpus.picture(gpu), "off");
}

TEST(MigManager, TheModeChangesOnlyOnAnIdleGpu) {
  World world;
  const std::string gpu = world.gpus.add("H100-80", false);
  world.gpus.use(gpu, -1, 7);
  const auto busy = world.apply({goal(gpu, {})});
  EXPECT_EQ(busy[0].state, MigState::Refused);
  EXPECT_EQ(busy[0].reason,
            "the MIG mode changes only while nothing uses the GPU; stop pid 7 (python) first");
  world.gpus.stop_all(gpu);
  EXPECT_EQ(world.apply({goal(gpu, {})}, {{gpu, "pod a/b"}})[0].state, MigState::Refused);
  EXPECT_EQ(world.apply({goal(gpu, {})})[0].state, MigState::Done);
}

TEST(MigManager, AFailedStepIsPutBack) {
  World world;
  const std::string gpu = world.gpus.add("A100-40", true);
  world.gpus.put(gpu, "1g.5gb", 0);
  world.gpus.put(gpu, "2g.10gb", 4);
  world.gpus.fail_change(3, {Errc::Conflict, "the driver says no"});
  const auto reports = world.apply({goal(gpu, {{"3g.20gb", 2}})});
  EXPECT_EQ(reports[0].state, MigState::Undone);
  EXPECT_EQ(reports[0].reason, "create 3g.20gb at slices 4-7: the driver says no");
  EXPECT_EQ(world.gpus.picture(gpu), "1g.5gb@0 2g.10gb@4");
  EXPECT_EQ(world.store.text, "");
}

TEST(MigManager, StuckIsSaidAndTriedAgain) {
  World world;
  const std::string gpu = world.gpus.add("A100-40", true);
  world.gpus.put(gpu, "1g.5gb", 0);
  world.gpus.fail_change(1, {Errc::Conflict, "no"});
  world.gpus.fail_change(2, {Errc::Conflict, "no again"});
  const auto reports = world.apply({goal(gpu, {{"7g.40gb", 1}})});
  EXPECT_EQ(reports[0].state, MigState::Stuck);
  EXPECT_EQ(reports[0].reason,
            "create 7g.40gb at slices 0-7: no; and putting it back: create 1g.5gb at slice 0: no "
            "again");
  EXPECT_EQ(world.gpus.picture(gpu), "");
  EXPECT_EQ(world.recover()[0].state, MigState::Undone);
  EXPECT_EQ(world.gpus.picture(gpu), "1g.5gb@0");
}

TEST(MigManager, AFullDiskStopsTheWork) {
  World world;
  const std::string gpu = world.gpus.add("A100-40", true);
  world.store.is_full = true;
  const auto reports =
      MigManager(world.gpus, world.store).apply(std::vector{goal(gpu, {{"1g", 1}})}, {});
  ASSERT_FALSE(reports.has_value());
  EXPECT_EQ(reports.error().what, "write journal: no space left on device");
  EXPECT_EQ(world.gpus.changes(), 0);
}

TEST(MigManager, ALostGpuKeepsItsEntry) {
  World world;
  const std::string gpu = world.gpus.add("A100-40", true);
  world.fuse.light(4);  // in the middle of the first creation
  EXPECT_THROW(world.apply({goal(gpu, {{"1g.5gb", 2}})}), Killed);
  world.fuse.put_out();
  world.gpus.lose(gpu, true);
  EXPECT_EQ(world.recover()[0].state, MigState::Stuck);
  EXPECT_EQ(world.recover()[0].reason, "the GPU is lost: fallen off the bus");
  world.gpus.lose(gpu, false);
  EXPECT_EQ(world.recover()[0].state, MigState::Done);
  EXPECT_EQ(world.gpus.picture(gpu), "1g.5gb@4 1g.5gb@5");
}

TEST(MigManager, PartsShareAnInstance) {
  World world;
  const std::string gpu = world.gpus.add("A100-40", true);
  const auto wanted = goal(gpu, {{"1c.3g.20gb", 3}, {"2g.10gb", 1}});
  const auto plan = MigManager(world.gpus, world.store).plan(std::vector{wanted}, {});
  ASSERT_EQ(plan->front().steps.size(), 2U);
  EXPECT_EQ(step_text(plan->front().steps[0]), "create 1c+1c+1c.3g.20gb at slices 4-7");
  EXPECT_EQ(world.apply({wanted})[0].state, MigState::Done);
  EXPECT_EQ(world.gpus.picture(gpu), "2g.10gb@0 1c.3g.20gb@4 1c.3g.20gb@4 1c.3g.20gb@4");
  EXPECT_EQ(world.apply({wanted})[0].state, MigState::Same);
  // A fourth does not fit with them; the three stay where they are.
  EXPECT_EQ(world.apply({goal(gpu, {{"1c.3g.20gb", 4}})})[0].state, MigState::Done);
  EXPECT_EQ(world.gpus.picture(gpu), "1c.3g.20gb@0 1c.3g.20gb@4 1c.3g.20gb@4 1c.3g.20gb@4");
}

TEST(MigManager, AUsedPartKeepsItsInstance) {
  World world;
  const std::string gpu = world.gpus.add("A100-40", true);
  world.apply({goal(gpu, {{"1c.4g.20gb", 2}, {"2c.4g.20gb", 1}})});
  EXPECT_EQ(world.gpus.picture(gpu), "2c.4g.20gb@0 1c.4g.20gb@0 1c.4g.20gb@0");
  world.gpus.use(gpu, 1, 12);
  const auto refused = world.apply({goal(gpu, {{"4g.20gb", 1}})});
  EXPECT_EQ(refused[0].reason,
            "1 x 4g.20gb needs the place of what is in use: instance 1 (4g.20gb at slices 0-3 in "
            "parts 2c+1c+1c) by pid 12 (python); stop that first");
  EXPECT_EQ(world.apply({goal(gpu, {{"1c.4g.20gb", 2}, {"2c.4g.20gb", 1}, {"1g", 1}})})[0].state,
            MigState::Done);
  EXPECT_EQ(world.gpus.touched_in_use(), 0);
}

TEST(MigManager, PartsBeyondTheGpuAreRefused) {
  World world;
  const std::string gpu = world.gpus.add("A100-40", true);
  EXPECT_EQ(world.apply({goal(gpu, {{"2c.3g.20gb", 3}})})[0].reason,
            "3 x 3g.20gb is asked for, and the GPU takes at most 2");
  EXPECT_EQ(world.apply({goal(gpu, {{"1c.9g.20gb", 1}})})[0].reason,
            "1c.9g.20gb: the GPU offers 1g.5gb, 2g.10gb, 3g.20gb, 4g.20gb, 7g.40gb, 1g.5gb+me, "
            "1g.10gb");
}

TEST(MigManager, ANewGoalReplacesAnUnfinishedOne) {
  World world;
  const std::string gpu = world.gpus.add("A100-40", true);
  world.fuse.light(12);
  EXPECT_THROW(world.apply({goal(gpu, {{"1g.5gb", 7}})}), Killed);
  world.fuse.put_out();
  EXPECT_EQ(world.apply({goal(gpu, {{"7g.40gb", 1}})})[0].state, MigState::Done);
  EXPECT_EQ(world.gpus.picture(gpu), "7g.40gb@0");
  EXPECT_TRUE(world.recover().empty());
}

// Scenarios that are killed at every point.
struct Scenario {
  std::string name;
  std::function<std::vector<MigGoal>(World&)> start;
  std::vector<std::string> before, after;  // pictures, by GPU
};

std::vector<Scenario> scenarios() {
  return {
      {"a layout into another, one instance in use",
       [](World& world) {
         const std::string gpu = world.gpus.add("A100-40", true);
         world.gpus.put(gpu, "1g.5gb", 0);
         world.gpus.put(gpu, "2g.10gb", 2);
         world.gpus.use(gpu, world.gpus.put(gpu, "1g.5gb", 6), 9);
         return std::vector{goal(gpu, {{"4g.20gb", 1}, {"1g.5gb", 2}})};
       },
       {"1g.5gb@0 2g.10gb@2 1g.5gb@6"},
       {"4g.20gb@0 1g.5gb@4 1g.5gb@6"}},
      {"on and cut, two GPUs",
       [](World& world) {
         const std::string a = world.gpus.add("H100-80", false);
         const std::string b = world.gpus.add("H100-80", true);
         world.gpus.put(b, "7g.80gb", 0);
         return std::vector{goal(a, {{"3g.40gb", 1}}), goal(b, {{"3g.40gb", 2}})};
       },
       {"off", "7g.80gb@0"},
       {"3g.40gb@4", "3g.40gb@0 3g.40gb@4"}},
      {"parts into other parts",
       [](World& world) {
         const std::string gpu = world.gpus.add("A100-40", true);
         world.apply({goal(gpu, {{"1c.3g.20gb", 3}, {"1g.5gb", 1}})});
         return std::vector{goal(gpu, {{"2c.3g.20gb", 1}, {"1c.3g.20gb", 1}, {"3g.20gb", 1}})};
       },
       {"1g.5gb@0 1c.3g.20gb@4 1c.3g.20gb@4 1c.3g.20gb@4"},
       {"3g.20gb@0 2c.3g.20gb@4 1c.3g.20gb@4"}},
      {"off",
       [](World& world) {
         const std::string gpu = world.gpus.add("H100-80", true);
         world.gpus.put(gpu, "3g.40gb", 0);
         world.gpus.put(gpu, "1g.10gb", 4);
         return std::vector{off(gpu)};
       },
       {"3g.40gb@0 1g.10gb@4"},
       {"off"}},
  };
}

std::string picture(World& world, std::size_t gpu) {
  return world.gpus.picture("GPU-" + std::to_string(gpu));
}

// The fuse of a run that is not killed.
int length_of(const Scenario& scenario) {
  World world;
  const auto goals = scenario.start(world);
  const int before = world.fuse.burnt();
  world.apply(goals);
  return world.fuse.burnt() - before;
}

void expect_finished(const Scenario& scenario, World& world, bool was_begun) {
  const auto& wanted = was_begun ? scenario.after : scenario.before;
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(picture(world, i), wanted[i]);
  EXPECT_EQ(world.store.text, "");
  EXPECT_EQ(world.gpus.touched_in_use(), 0);
}

TEST(MigManagerKilled, AtEveryPoint) {
  for (const Scenario& scenario : scenarios()) {
    const int length = length_of(scenario);
    ASSERT_GT(length, 10);
    for (int at = 0; at < length; ++at) {
      SCOPED_TRACE(scenario.name + ", killed at " + std::to_string(at));
      World world;
      const auto goals = scenario.start(world);
      world.fuse.light(at);
      ASSERT_THROW(world.apply(goals), Killed);
      world.fuse.put_out();
      const bool was_done = picture(world, scenario.after.size() - 1) == scenario.after.back();
      const bool was_begun = !world.store.text.empty() || was_done;
      for (const auto& report : world.recover()) {
        EXPECT_EQ(report.state, MigState::Done) << report.reason;
      }
      expect_finished(scenario, world, was_begun);
    }
  }
}

TEST(MigManagerKilled, AndAgainWhileItRecovers) {
  for (const Scenario& scenario : scenarios()) {
    const int length = length_of(scenario);
    for (int at = 3; at < length; at += 2) {
      for (int again = 0; again < length; ++again) {
        SCOPED_TRACE(scenario.name + ", killed at " + std::to_string(at) + " and " +
                     std::to_string(again));
        World world;
        const auto goals = scenario.start(world);
        world.fuse.light(at);
        ASSERT_THROW(world.apply(goals), Killed);
        world.fuse.light(again);
        try {
          world.recover();
        } catch (const Killed&) {
        }
        world.fuse.put_out();
        world.recover();
        expect_finished(scenario, world, true);
      }
    }
  }
}

TEST(MigManagerKilled, ByALossOfPower) {
  for (const Scenario& scenario : scenarios()) {
    const int length = length_of(scenario);
    for (int at = 2; at < length - 2; ++at) {
      SCOPED_TRACE(scenario.name + ", power lost at " + std::to_string(at));
      World world;
      const auto goals = scenario.start(world);
      world.fuse.light(at);
      ASSERT_THROW(world.apply(goals), Killed);
      world.fuse.put_out();
      world.gpus.reboot();
      for (const auto& report : world.recover()) {
        EXPECT_EQ(report.state, MigState::Done) << report.reason;
      }
      // A GPU that was done before stays as the boot left it: no journal speaks of it any more. The
      // places may be others than before, for nothing is in use after a boot.
      const auto last = MigManager(world.gpus, world.store).plan(std::vector{goals.back()}, {});
      EXPECT_EQ(last.value().front().state, MigState::Same) << picture(world, goals.size() - 1);
      EXPECT_EQ(world.store.text, "");
    }
  }
}

TEST(MigManagerFails, AtEveryChangeAndIsPutBack) {
  for (const Scenario& scenario : scenarios()) {
    for (int at = 0;; ++at) {
      SCOPED_TRACE(scenario.name + ", change " + std::to_string(at) + " fails");
      World world;
      const auto goals = scenario.start(world);
      world.gpus.fail_change(at, {Errc::Conflict, "no"});
      const auto reports = world.apply(goals);
      const MigState worst = overall(reports);
      for (std::size_t i = 0; i < reports.size(); ++i) {
        const bool is_undone = reports[i].state == MigState::Undone;
        EXPECT_TRUE(is_undone || reports[i].state == MigState::Done);
        EXPECT_EQ(picture(world, i), (is_undone ? scenario.before : scenario.after)[i]);
      }
      EXPECT_EQ(world.store.text, "");
      if (worst == MigState::Done) break;
      ASSERT_LT(at, 50);
    }
  }
}

// Random layouts, uses, failures and deaths: in the end the goal or what was before, and nothing in
// use was ever touched.
TEST(MigManagerRandom, EndsThereOrBack) {
  const MigTrial trial = MigTrial::from_env(300);
  for (std::uint64_t round = 0; round < trial.rounds; ++round) {
    SCOPED_TRACE(trial.repeat(round));
    Rng rng(trial.seed_of(round), "mig");
    const auto models = testing::mig_models();
    const auto& model = models[rng.below(models.size() - 1)];
    static std::map<std::string, testing::MigOracle> oracles;
    const auto& oracle = oracles.try_emplace(model.key, model.profiles).first->second;
    World world;
    const std::string gpu = world.gpus.add(model.key, true);
    const auto draw = [&] { return oracle.layouts()[rng.below(oracle.layouts().size())]; };
    const auto from = draw();
    const auto to = draw();
    MigGoal wanted = goal(gpu, {});
    for (std::size_t i = 0; i < oracle.places().size(); ++i) {
      const auto& place = oracle.places()[i];
      const auto& profile = model.profiles[static_cast<std::size_t>(place.profile)];
      const std::string& name = profile.name;
      if ((to >> i & 1) != 0) {
        const bool in_parts = profile.slices > 1 && rng.chance(1, 4);
        wanted.wanted.push_back(
            {.profile = in_parts ? "1c." + name : name, .count = in_parts ? profile.slices : 1});
      }
      if ((from >> i & 1) == 0) continue;
      const int gi = world.gpus.put(gpu, name, place.start);
      if (rng.chance(1, 6)) world.gpus.use(gpu, gi, 100 + gi);
    }
    const std::string before = world.gpus.picture(gpu);
    if (rng.chance(1, 3)) {
      world.gpus.fail_change(static_cast<int>(rng.below(8)), {Errc::Conflict, "drawn"});
    }
    for (int deaths = static_cast<int>(rng.below(4)); deaths > 0; --deaths) {
      world.fuse.light(static_cast<int>(rng.below(40)));
      try {
        if (deaths % 2 == 0) {
          world.recover();
        } else {
          world.apply({wanted});
        }
      } catch (const Killed&) {
      }
    }
    world.fuse.put_out();
    world.recover();
    const auto last = MigManager(world.gpus, world.store).plan(std::vector{wanted}, {});
    ASSERT_TRUE(last.has_value());
    EXPECT_TRUE(last->front().state == MigState::Same || world.gpus.picture(gpu) == before)
        << world.gpus.picture(gpu) << " from " << before;
    EXPECT_EQ(world.store.text, "");
    EXPECT_EQ(world.gpus.touched_in_use(), 0);
  }
}

TEST(MigJournal, ReadsBackWhatItWrote) {
  MigJournalEntry entry;
  entry.goal = goal("GPU-1", {{"3g.20gb", 2}, {"1g.5gb+me", 1}});
  entry.before = {.is_enabled = true, .instances = {{9, "3g.20gb", {4, 4}, {1, 2}}}};
  entry.is_undoing = true;
  entry.steps = {{MigStep::Kind::Destroy, 3, {9, "3g.20gb", {4, 4}, {1}}},
                 {MigStep::Kind::Create, -1, {19, "1g.5gb", {6, 1}, {}}},
                 {MigStep::Kind::Create, -1, {9, "3g.20gb", {0, 4}, {}, {2, 1}}},
                 {MigStep::Kind::Enable, -1, {}}};
  entry.begun = 2;
  const MigJournal journal = {entry, {}};
  MigJournal named = journal;
  named[1].goal.uuid = "GPU-2";
  const auto again = read_journal("j", journal_text(named));
  ASSERT_TRUE(again.has_value()) << again.error().what;
  EXPECT_EQ(*again, named);
  EXPECT_EQ(step_text(entry.steps[0]), "destroy instance 3 (3g.20gb at slices 4-7)");
  EXPECT_EQ(step_text(entry.steps[1]), "create 1g.5gb at slice 6");
  EXPECT_EQ(step_text(entry.steps[2]), "create 2c+1c.3g.20gb at slices 0-3");
}

TEST(MigJournal, RefusesWhatItDidNotWrite) {
  EXPECT_EQ(read_journal("j", "{version: 2, gpus: []}").error().what,
            "j:1: version: expected 1: written by another release");
  EXPECT_EQ(read_journal("j", "{version: 1, gpus: [{uuid: G}]}").error().what,
            "j:1: gpus[0].goal: is required");
  EXPECT_FALSE(read_journal("j", "").has_value());
}

TEST(MigJournal, LivesInAFile) {
  const TempFolder folder;
  MigJournalFile file(folder.path("mig.json"));
  EXPECT_EQ(file.load().value(), MigJournal{});
  MigJournalEntry entry;
  entry.goal = goal("GPU-1", {{"1g.5gb", 1}});
  ASSERT_TRUE(file.save({entry}).has_value());
  EXPECT_EQ(file.load().value(), MigJournal{entry});
  ASSERT_TRUE(file.save({}).has_value());
  EXPECT_FALSE(std::filesystem::exists(folder.path("mig.json")));
  EXPECT_TRUE(file.save({}).has_value());
  MigJournalFile nowhere(folder.path("no/such.json"));
  EXPECT_FALSE(nowhere.save({entry}).has_value());
}

TEST(MigJournal, IsLockedByOneAtATime) {
  const TempFolder folder;
  MigJournalFile one(folder.path("mig.json"));
  MigJournalFile two(folder.path("mig.json"));
  ASSERT_TRUE(one.lock().has_value());
  const auto refused = two.lock();
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::Conflict);
  World world;
  const std::string gpu = world.gpus.add("A100-40", true);
  EXPECT_EQ(MigManager(world.gpus, two).recover({}).error().code, Errc::Conflict);
  one.unlock();
  EXPECT_TRUE(MigManager(world.gpus, two).recover({}).has_value());
  EXPECT_TRUE(one.lock().has_value()) << "given back when the change is over";
}

}  // namespace
}  // namespace jogak::agent
