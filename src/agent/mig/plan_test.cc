// SPDX-License-Identifier: Apache-2.0
//
// Layouts and plans by example; the exhaustive comparison is plan_diff_test.cc.
#include "agent/mig/plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "agent/mig/present.h"
#include "agent/mig/profile_name.h"
#include "agent/mig/testing/mig_models.h"

namespace jogak::agent {
namespace {

using testing::mig_model;

MigGeometry geometry(std::string_view key) {
  return MigGeometry::from_facts(mig_model(key).profiles).value();
}

MigPlace place(const MigGeometry& geometry, std::string_view name, int start) {
  const int profile = match_profile(name, geometry.profiles()).value();
  const auto& places = geometry.profiles()[static_cast<std::size_t>(profile)].placements;
  return {.at = {start, places.front().size}, .profile = profile};
}

MigPresent present(const MigGeometry& geometry, int gi, std::string_view name, int start,
                   std::string user = "") {
  MigPresent result;
  result.gi_id = gi;
  result.place = place(geometry, name, start);
  result.in_use = !user.empty();
  result.user = std::move(user);
  result.profile = name;
  return result;
}

MigCounts counts(const MigGeometry& geometry,
                 const std::vector<std::pair<std::string_view, int>>& wanted) {
  MigCounts result(geometry.profiles().size(), 0);
  for (const auto& [name, count] : wanted) {
    result[static_cast<std::size_t>(match_profile(name, geometry.profiles()).value())] += count;
  }
  return result;
}

std::vector<int> gi_ids(const std::vector<MigPresent>& instances) {
  std::vector<int> result;
  for (const MigPresent& instance : instances) result.push_back(instance.gi_id);
  return result;
}

TEST(MigGeometry, RefusesFactsThatCannotBe) {
  EXPECT_EQ(MigGeometry::from_facts({}).error().what, "the driver lists no MIG profiles");
  nvml::MigProfileFacts profile;
  profile.name = "1g.5gb";
  profile.placements = {{30, 8}};
  EXPECT_EQ(MigGeometry::from_facts(std::vector{profile}).error().what,
            "profile 1g.5gb: the driver lists an impossible place, start 30 size 8");
}

TEST(MigGeometry, SaysWhatIsWrongWithALayout) {
  const MigGeometry g = geometry("A100-40");
  EXPECT_EQ(g.layout_fault({}), std::nullopt);
  EXPECT_EQ(g.layout_fault({place(g, "4g.20gb", 0), place(g, "3g.20gb", 4)}), std::nullopt);
  EXPECT_EQ(g.layout_fault({place(g, "4g.20gb", 0), place(g, "3g.20gb", 0)}),
            "3g.20gb at slices 0-3 overlaps another");
  EXPECT_EQ(g.layout_fault({place(g, "4g.20gb", 4)}), "4g.20gb at slices 4-7 may not lie there");
  EXPECT_EQ(g.layout_fault({place(g, "1g.5gb+me", 0), place(g, "1g.5gb+me", 1)}),
            "2 x 1g.5gb+me is asked for, and the GPU takes at most 1");
}

TEST(MigGeometry, SharesOutTheEngines) {
  const MigGeometry g = geometry("A30");
  EXPECT_EQ(g.layout_fault({place(g, "1g.6gb+me", 0), place(g, "2g.12gb+me", 2)}),
            "1 x 2g.12gb+me, 1 x 1g.6gb+me take 2 JPEG engines together, and the GPU has 1");
  EXPECT_EQ(g.layout_fault({place(g, "1g.6gb+me", 0), place(g, "2g.12gb", 2)}), std::nullopt);
  const MigGeometry rtx = geometry("RTX-PRO-6000");
  EXPECT_NE(rtx.layout_fault({place(rtx, "1g.24gb+me.all", 0), place(rtx, "1g.24gb", 3)}),
            std::nullopt);
  EXPECT_EQ(rtx.layout_fault({place(rtx, "1g.24gb+me.all", 0), place(rtx, "1g.24gb-me", 3)}),
            std::nullopt);
}

// The case from the field.
TEST(MigPlan, OneA100IntoSeven) {
  const MigGeometry g = geometry("A100-40");
  const auto plan = plan_counts(g, {}, counts(g, {{"1g.5gb", 7}}));
  ASSERT_TRUE(plan.has_value());
  EXPECT_TRUE(plan->destroy.empty());
  ASSERT_EQ(plan->create.size(), 7U);
  for (int start = 0; start < 7; ++start) {
    EXPECT_EQ(plan->create[static_cast<std::size_t>(start)], place(g, "1g.5gb", start));
  }
}

TEST(MigPlan, NothingToDoWhenItIsThere) {
  const MigGeometry g = geometry("A100-40");
  const std::vector<MigPresent> now = {present(g, 1, "3g.20gb", 0, "pod a/b"),
                                       present(g, 2, "3g.20gb", 4)};
  const auto plan = plan_counts(g, now, counts(g, {{"3g.20gb", 2}}));
  ASSERT_TRUE(plan.has_value());
  EXPECT_TRUE(plan->empty());
  EXPECT_EQ(gi_ids(plan->keep), (std::vector<int>{1, 2}));
  EXPECT_TRUE(shows_layout(now, plan->after));
}

TEST(MigPlan, KeepsWhatItCanAndNamesPlaces) {
  const MigGeometry g = geometry("A100-40");
  // 1g at 0 and 6, 2g at 2; wanted: 3g and 2 x 1g. The 3g lies at 4 or at 0.
  const std::vector<MigPresent> now = {present(g, 7, "1g.5gb", 0), present(g, 8, "1g.5gb", 6),
                                       present(g, 3, "2g.10gb", 2)};
  const auto plan = plan_counts(g, now, counts(g, {{"3g.20gb", 1}, {"1g.5gb", 2}}));
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->destroy.size(), 2U);
  EXPECT_EQ(plan->create.size(), 2U);
  EXPECT_EQ(plan->create[0].at.size, 4) << "largest first";
}

TEST(MigPlan, AFirstSmallInstanceGoesToTheEnd) {
  const MigGeometry g = geometry("A100-40");
  const auto one = plan_counts(g, {}, counts(g, {{"1g.5gb", 1}}));
  ASSERT_TRUE(one.has_value());
  EXPECT_EQ(one->create, (std::vector{place(g, "1g.5gb", 6)})) << "4g and 3g at 0 stay possible";
  const auto two = plan_counts(g, {}, counts(g, {{"2g.10gb", 1}}));
  EXPECT_EQ(two->create, (std::vector{place(g, "2g.10gb", 4)}));
  const auto three = plan_counts(g, {}, counts(g, {{"3g.20gb", 1}}));
  EXPECT_EQ(three->create, (std::vector{place(g, "3g.20gb", 4)})) << "a 4g must lie at 0";
}

TEST(MigPlan, NeverTouchesWhatIsInUse) {
  const MigGeometry g = geometry("A100-40");
  const std::vector<MigPresent> now = {present(g, 7, "1g.5gb", 0, "pid 12 (python)"),
                                       present(g, 8, "1g.5gb", 5)};
  const auto four = plan_counts(g, now, counts(g, {{"4g.20gb", 1}, {"1g.5gb", 1}}));
  ASSERT_FALSE(four.has_value());
  EXPECT_EQ(four.error().why, MigRefusal::Why::InUse);
  EXPECT_EQ(four.error().blockers, std::vector<int>{7});
  EXPECT_EQ(four.error().reason,
            "1 x 4g.20gb, 1 x 1g.5gb needs the place of what is in use: instance 7 (1g.5gb at "
            "slice 0) by pid 12 (python); stop that first");
  const auto three = plan_counts(g, now, counts(g, {{"3g.20gb", 1}, {"1g.5gb", 1}}));
  ASSERT_TRUE(three.has_value());
  EXPECT_EQ(gi_ids(three->destroy), std::vector<int>{8});
  EXPECT_EQ(three->create, (std::vector{place(g, "3g.20gb", 4)}));
}

TEST(MigPlan, SaysThatItCanNeverBe) {
  const MigGeometry g = geometry("A100-40");
  const auto many = plan_counts(g, {}, counts(g, {{"1g.5gb", 8}}));
  EXPECT_EQ(many.error().why, MigRefusal::Why::Never);
  EXPECT_EQ(many.error().reason, "8 x 1g.5gb is asked for, and the GPU takes at most 7");
  const auto wide = plan_counts(g, {}, counts(g, {{"3g.20gb", 1}, {"2g.10gb", 3}}));
  EXPECT_EQ(wide.error().reason,
            "1 x 3g.20gb, 3 x 2g.10gb do not fit on the GPU together, wherever they are placed");
}

TEST(MigPlan, MakesABrokenInstanceAnew) {
  const MigGeometry g = geometry("A100-40");
  std::vector<MigPresent> now = {present(g, 1, "3g.20gb", 0)};
  now[0].is_whole = false;  // its compute instance is missing
  const auto plan = plan_counts(g, now, counts(g, {{"3g.20gb", 1}}));
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(gi_ids(plan->destroy), std::vector<int>{1});
  EXPECT_EQ(plan->create.size(), 1U);
  EXPECT_FALSE(shows_layout(now, plan->after));
  now[0].in_use = true;
  const auto refused = plan_counts(g, now, counts(g, {{"3g.20gb", 1}}));
  EXPECT_EQ(refused.error().why, MigRefusal::Why::InUse);
}

TEST(MigPlan, ExactPlacesAreKept) {
  const MigGeometry g = geometry("A100-40");
  const std::vector<MigPresent> now = {present(g, 7, "1g.5gb", 6),
                                       present(g, 1, "3g.20gb", 0, "pod a/b")};
  const MigLayout wanted = {place(g, "3g.20gb", 0), place(g, "1g.5gb", 4)};
  const auto plan = plan_layout(g, now, wanted);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(gi_ids(plan->destroy), std::vector<int>{7});
  EXPECT_EQ(plan->create, (std::vector{place(g, "1g.5gb", 4)}));
  const auto refused = plan_layout(g, now, {place(g, "1g.5gb", 4)});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().blockers, std::vector<int>{1});
}

TEST(MigPresent, JoinsRowsAndFindsUsers) {
  const MigGeometry g = geometry("A100-40");
  const auto row = [](int gi, int ci, std::string_view profile, std::string uuid) {
    nvml::MigInstanceFacts facts;
    facts.gi_id = gi;
    facts.ci_id = ci;
    facts.profile_id = 9;
    facts.gi_profile = "3g.20gb";
    facts.profile = profile;
    facts.placement = {gi == 1 ? 0 : 4, 4};
    facts.uuid = std::move(uuid);
    return facts;
  };
  const std::vector<nvml::MigInstanceFacts> rows = {row(2, 0, "1c.3g.20gb", "MIG-b"),
                                                    row(2, 1, "1c.3g.20gb", "MIG-c"),
                                                    row(1, 0, "3g.20gb", "MIG-a")};
  nvml::ProcessFacts process;
  process.pid = 12;
  process.gi_id = 2;
  const auto now = mig_present(g, rows, std::vector{process}, {{"MIG-a", "pod x/y"}});
  ASSERT_EQ(now.size(), 2U);
  EXPECT_EQ(now[0].gi_id, 1);
  EXPECT_TRUE(now[0].is_whole);
  EXPECT_TRUE(now[0].in_use);
  EXPECT_EQ(now[0].user, "pod x/y");
  EXPECT_FALSE(now[1].is_whole);
  EXPECT_EQ(now[1].user, "pid 12");
  EXPECT_EQ(now[1].uuids, (std::vector<std::string>{"MIG-b", "MIG-c"}));
}

}  // namespace
}  // namespace jogak::agent
