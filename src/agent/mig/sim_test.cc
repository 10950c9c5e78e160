// SPDX-License-Identifier: Apache-2.0
//
// The manager over NVML's C interface, with the simulated library behind it: every shipped machine,
// every standard configuration, what processes hold, resets, and a change cut short.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "agent/mig/config_file.h"
#include "agent/mig/manager.h"
#include "agent/mig/testing/fake_gpus.h"
#include "nvml/nvml_source.h"
#include "nvml/sim/machine.h"
#include "nvml/sim/shipped.h"

namespace jogak::agent {
namespace {

class MigOnSim {
 public:
  explicit MigOnSim(const std::string& name)
      : machine_(nvml::sim::Machine::create(nvml::sim::load_machine(name).value(),
                                            {.now = [this] { return now_; }})
                     .value()),
        source_(nvml::NvmlSource::of_machine(machine_, [this] { return now_; })) {}

  nvml::NodeFacts facts() { return source_->facts().value(); }
  std::vector<MigGpuReport> apply(const std::vector<MigGoal>& goals) {
    auto reports = MigManager(*source_, store_).apply(goals, {});
    EXPECT_TRUE(reports.has_value()) << reports.error().what;
    return reports.value_or(std::vector<MigGpuReport>{});
  }
  std::vector<MigGpuReport> recover() {
    auto reports = MigManager(*source_, store_).recover({});
    EXPECT_TRUE(reports.has_value()) << reports.error().what;
    return reports.value_or(std::vector<MigGpuReport>{});
  }
  // Applies, resets what waits for it, and finishes.
  MigState settle(const std::vector<MigGoal>& goals) {
    const auto reports = apply(goals);
    if (overall(reports) != MigState::NeedsReset) return overall(reports);
    for (const MigGpuReport& report : reports) {
      if (report.state == MigState::NeedsReset) machine_->reset_gpu(report.gpu);
    }
    return overall(recover());
  }

  nvml::sim::Machine& machine() { return *machine_; }
  testing::Fuse fuse;

 private:
  TimeUs now_ = 1'000'000;
  std::shared_ptr<nvml::sim::Machine> machine_;
  std::unique_ptr<nvml::NvmlSource> source_;
  testing::FakeStore store_{fuse};
};

TEST(MigManagerOnSim, EveryStandardConfigOnEveryShippedMachine) {
  for (const std::string& name : nvml::sim::shipped_names()) {
    MigOnSim node(name);
    const auto is_busy = [&](const nvml::GpuFacts& gpu) {
      return !node.machine().gpus()[static_cast<std::size_t>(gpu.index)].processes.empty();
    };
    const nvml::NodeFacts facts = node.facts();
    for (const MigConfig& config : standard_configs(facts)) {
      SCOPED_TRACE(name + " " + config.name);
      auto goals = config_goals(config, facts);
      if (!goals) continue;  // a machine without MIG
      std::erase_if(*goals, [&](const MigGoal& goal) {
        const auto gpu = std::ranges::find(facts.gpus, goal.uuid, &nvml::GpuFacts::uuid);
        return is_busy(*gpu);
      });
      const MigState state = node.settle(*goals);
      EXPECT_TRUE(state == MigState::Done || state == MigState::Same) << state_text(state);
      EXPECT_EQ(overall(node.apply(*goals)), MigState::Same);
    }
  }
}

TEST(MigManagerOnSim, OneA100IntoSeven) {
  MigOnSim node("a100-40gb-x8");
  const std::string uuid = node.facts().gpus[3].uuid;
  const std::vector<MigGoal> goals = {
      {.uuid = uuid, .is_enabled = true, .wanted = {{.profile = "1g.5gb", .count = 7}}}};
  EXPECT_EQ(node.settle(goals), MigState::Done);
  const nvml::NodeFacts facts = node.facts();
  ASSERT_EQ(facts.gpus[3].mig_instances.size(), 7U);
  for (const auto& row : facts.gpus[3].mig_instances) {
    EXPECT_EQ(row.profile, "1g.5gb");
    EXPECT_TRUE(row.uuid.starts_with("MIG-"));
  }
}

TEST(MigManagerOnSim, PartsOfAnInstance) {
  for (const std::string name : {"a100-40gb-x8", "h100-80gb-x8"}) {
    SCOPED_TRACE(name);
    MigOnSim node(name);
    const std::string gi = name.starts_with("a100") ? "3g.20gb" : "3g.40gb";
    const std::string uuid = node.facts().gpus[0].uuid;
    const std::vector<MigGoal> goals = {
        {.uuid = uuid,
         .is_enabled = true,
         .wanted = {{.profile = "1c." + gi, .count = 1}, {.profile = "2c." + gi, .count = 1}}}};
    EXPECT_EQ(node.settle(goals), MigState::Done);
    const nvml::NodeFacts facts = node.facts();
    const auto& rows = facts.gpus[0].mig_instances;
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_EQ(rows[0].gi_id, rows[1].gi_id);
    EXPECT_EQ((std::multiset<std::string>{rows[0].profile, rows[1].profile}),
              (std::multiset<std::string>{"1c." + gi, "2c." + gi}));
    EXPECT_EQ(overall(node.apply(goals)), MigState::Same);
  }
}

TEST(MigManagerOnSim, InstancesWithProcessesStay) {
  MigOnSim node("mixed");
  const nvml::NodeFacts facts = node.facts();
  const auto cut = std::ranges::find_if(facts.gpus, [](const nvml::GpuFacts& gpu) {
    return gpu.mig_enabled && gpu.mig_instances.size() > 1;
  });
  ASSERT_NE(cut, facts.gpus.end());
  const auto gone = node.apply({{.uuid = cut->uuid, .is_enabled = true, .wanted = {}}});
  EXPECT_EQ(gone[0].state, MigState::Refused) << gone[0].reason;
  EXPECT_EQ(node.facts().gpus[static_cast<std::size_t>(cut->index)].mig_instances,
            cut->mig_instances);
}

TEST(MigManagerOnSim, CutShortAndFinished) {
  for (int at = 2;; ++at) {
    SCOPED_TRACE(at);
    MigOnSim node("h100-80gb-x8");
    const std::string uuid = node.facts().gpus[0].uuid;
    const std::vector<MigGoal> goals = {
        {.uuid = uuid, .is_enabled = true, .wanted = {{.profile = "3g.40gb", .count = 2}}}};
    node.fuse.light(at);
    bool was_killed = false;
    try {
      node.apply(goals);
    } catch (const testing::Killed&) {
      was_killed = true;
    }
    node.fuse.put_out();
    node.recover();
    EXPECT_EQ(overall(node.apply(goals)), MigState::Same);
    if (!was_killed) break;
    ASSERT_LT(at, 50);
  }
}

}  // namespace
}  // namespace jogak::agent
