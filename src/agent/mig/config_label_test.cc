// SPDX-License-Identifier: Apache-2.0
//
// The label protocol, state by state.
#include "agent/mig/config_label.h"

#include <gtest/gtest.h>

#include "agent/mig/testing/fake_gpus.h"

namespace jogak::agent {
namespace {

using Act = MigLabelAnswer::Act;

class MigLabel : public ::testing::Test {
 protected:
  MigLabelAnswer read(const MigLabels& labels, bool is_fresh = true) {
    const nvml::NodeFacts node = gpus.facts().value();
    return read_labels(labels, standard_configs(node), node, is_fresh,
                       [&](std::span<const MigGoal> goals) { return manager.plan(goals, {}); });
  }

  testing::Fuse fuse;
  testing::FakeGpus gpus{fuse};
  testing::FakeStore store{fuse};
  MigManager manager{gpus, store};
};

TEST_F(MigLabel, PendingThenSuccess) {
  gpus.add("A100-40", true);
  const MigLabelAnswer ask = read({.config = "all-1g.5gb", .state = "success", .state_of = "old"});
  EXPECT_EQ(ask.act, Act::Apply);
  EXPECT_EQ(ask.state, kMigPending);
  EXPECT_EQ(ask.state_of, "all-1g.5gb");
  const MigLabelAnswer told = after_apply(ask.state_of, manager.apply(ask.goals, {}), false);
  EXPECT_EQ(told.state, kMigSuccess);
  const MigLabels now{.config = "all-1g.5gb", .state = "success", .state_of = "all-1g.5gb"};
  EXPECT_EQ(read(now).act, Act::Nothing);
}

TEST_F(MigLabel, ThereAlreadyIsSuccessAtOnce) {
  gpus.add("A100-40", false);
  const MigLabelAnswer answer = read({.config = "all-disabled", .state = "", .state_of = ""});
  EXPECT_EQ(answer.act, Act::Write);
  EXPECT_EQ(answer.state, kMigSuccess);
}

TEST_F(MigLabel, NoLabelLeavesAllAsItIs) {
  gpus.add("A100-40", true);
  EXPECT_EQ(read({.config = "", .state = "success", .state_of = "x"}).act, Act::Nothing);
}

TEST_F(MigLabel, AnUnknownNameFailsOnce) {
  gpus.add("A100-40", true);
  const MigLabelAnswer answer = read({.config = "all-1g.6gb", .state = "", .state_of = ""});
  EXPECT_EQ(answer.act, Act::Write);
  EXPECT_EQ(answer.state, kMigFailed);
  EXPECT_EQ(answer.reason, "there is no MIG config all-1g.6gb; did you mean all-1g.5gb?");
  EXPECT_EQ(read({.config = "all-1g.6gb", .state = "failed", .state_of = "all-1g.6gb"}).act,
            Act::Nothing);
}

TEST_F(MigLabel, AFailureIsTriedAgainOnlyWhenFresh) {
  const std::string gpu = gpus.add("A100-40", true);
  gpus.use(gpu, gpus.put(gpu, "3g.20gb", 0), 5);
  const MigLabelAnswer ask = read({.config = "all-1g.5gb", .state = "", .state_of = ""});
  EXPECT_EQ(ask.act, Act::Apply);
  const MigLabelAnswer told = after_apply(ask.state_of, manager.apply(ask.goals, {}), false);
  EXPECT_EQ(told.state, kMigFailed);
  EXPECT_EQ(told.reason.substr(0, 7), "gpu 0: ");
  const MigLabels failed{.config = "all-1g.5gb", .state = "failed", .state_of = "all-1g.5gb"};
  EXPECT_EQ(read(failed, false).act, Act::Nothing);
  EXPECT_EQ(read(failed, true).act, Act::Apply);
}

TEST_F(MigLabel, RebootingIsSaidWhereSomebodyReboots) {
  const std::string gpu = gpus.add("A100-40", false);
  const MigLabelAnswer ask = read({.config = "all-1g.5gb", .state = "", .state_of = ""});
  const auto reports = manager.apply(ask.goals, {});
  EXPECT_EQ(after_apply(ask.state_of, reports, false).state, kMigFailed);
  EXPECT_EQ(after_apply(ask.state_of, reports, true).state, kMigRebooting);
  const MigLabels rebooting{.config = "all-1g.5gb", .state = "rebooting", .state_of = "all-1g.5gb"};
  const MigLabelAnswer still = read(rebooting);
  EXPECT_EQ(still.act, Act::Write);
  EXPECT_EQ(still.state, kMigFailed);
  gpus.reset(gpu);
  EXPECT_EQ(read(rebooting).act, Act::Apply);
}

}  // namespace
}  // namespace jogak::agent
