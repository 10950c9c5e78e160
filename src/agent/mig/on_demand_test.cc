// SPDX-License-Identifier: Apache-2.0
//
// Which instance a pod gets: drawn on a few GPUs by hand, then random ones against the rules.
#include "agent/mig/on_demand.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "agent/mig/picture.h"
#include "agent/mig/profile_name.h"
#include "agent/mig/testing/mig_models.h"
#include "agent/mig/testing/mig_oracle.h"
#include "agent/mig/testing/trial.h"
#include "base/rng.h"

namespace jogak::agent {
namespace {

using Kind = MigCut::Kind;
using testing::mig_model;
using testing::MigTrial;

class MigOnDemand : public ::testing::Test {
 protected:
  MigCutGpu gpu(int index) { return {.gpu = index, .geometry = &geometry_, .present = {}}; }

  void put(MigCutGpu& gpu, int gi, std::string_view name, int start, bool in_use) const {
    const int profile = match_profile(name, geometry_.profiles()).value();
    const auto& places = geometry_.profiles()[static_cast<std::size_t>(profile)].placements;
    MigPresent instance;
    instance.gi_id = gi;
    instance.place = {.at = {start, places.front().size}, .profile = profile};
    instance.in_use = in_use;
    gpu.present.push_back(std::move(instance));
  }

  static MigHold hold(std::string profile, std::optional<int> gpu = {},
                      std::optional<int> start = {}) {
    return {.pod = "ml/a", .profile = std::move(profile), .gpu = gpu, .start = start};
  }

  MigGeometry geometry_ = MigGeometry::from_facts(mig_model("A100-40").profiles).value();
};

TEST_F(MigOnDemand, CutsWhereTheMostFreedomStays) {
  const std::vector<MigCutGpu> gpus = {gpu(0)};
  const MigCut cut = cut_for(gpus, {}, hold("1g.5gb"));
  EXPECT_EQ(cut.kind, Kind::Create);
  EXPECT_EQ(cut.place.at.start, 6);
  EXPECT_TRUE(cut.destroy.empty());
}

TEST_F(MigOnDemand, TakesAnIdleInstanceFirst) {
  std::vector<MigCutGpu> gpus = {gpu(0)};
  put(gpus[0], 3, "2g.10gb", 2, true);
  put(gpus[0], 4, "2g.10gb", 4, false);
  const MigCut cut = cut_for(gpus, {}, hold("2g.10gb"));
  EXPECT_EQ(cut.kind, Kind::Use);
  EXPECT_EQ(cut.gi_id, 4);
}

TEST_F(MigOnDemand, PrefersTheFullerGpu) {
  std::vector<MigCutGpu> gpus = {gpu(0), gpu(1)};
  put(gpus[1], 1, "3g.20gb", 0, true);
  EXPECT_EQ(cut_for(gpus, {}, hold("3g.20gb")).gpu, 1);
  EXPECT_EQ(cut_for(gpus, {}, hold("4g.20gb")).gpu, 0);
}

TEST_F(MigOnDemand, ObeysTheScheduler) {
  std::vector<MigCutGpu> gpus = {gpu(0), gpu(1)};
  const MigCut cut = cut_for(gpus, {}, hold("1g.5gb", 1, 2));
  EXPECT_EQ(cut.gpu, 1);
  EXPECT_EQ(cut.place.at.start, 2);
  EXPECT_EQ(cut_for(gpus, {}, hold("2g.10gb", 1, 3)).reason, "2g.10gb may not start at slice 3");
  EXPECT_EQ(cut_for(gpus, {}, hold("2g.10gb", 7)).reason, "gpu 7 has no MIG");
}

TEST_F(MigOnDemand, KeepsRoomForWhatIsPromised) {
  std::vector<MigCutGpu> gpus = {gpu(0)};
  put(gpus[0], 1, "1g.5gb", 6, true);
  // A 4g is promised and lies at 0: a 2g may go to 4 alone, a 3g nowhere.
  const std::vector<MigHold> others = {hold("4g.20gb", 0)};
  const MigCut two = cut_for(gpus, others, hold("2g.10gb"));
  EXPECT_EQ(two.kind, Kind::Create);
  EXPECT_EQ(two.place.at.start, 4);
  const MigCut three = cut_for(gpus, others, hold("3g.20gb"));
  EXPECT_EQ(three.kind, Kind::Wait);
  EXPECT_EQ(three.reason, "no room for a 3g.20gb beside what is in use or promised");
  EXPECT_EQ(cut_for(gpus, {}, hold("3g.20gb")).kind, Kind::Create);
}

TEST_F(MigOnDemand, APromisedPlaceIsNotGivenAway) {
  std::vector<MigCutGpu> gpus = {gpu(0)};
  put(gpus[0], 1, "3g.20gb", 0, false);
  const std::vector<MigHold> others = {hold("3g.20gb", 0, 0)};
  const MigCut cut = cut_for(gpus, others, hold("3g.20gb"));
  EXPECT_EQ(cut.kind, Kind::Create);
  EXPECT_EQ(cut.place.at.start, 4);
}

TEST_F(MigOnDemand, DestroysIdleOnesOnlyWhenItMust) {
  std::vector<MigCutGpu> gpus = {gpu(0)};
  put(gpus[0], 1, "1g.5gb", 0, false);
  put(gpus[0], 2, "1g.5gb", 4, true);
  put(gpus[0], 3, "1g.5gb", 5, false);
  const MigCut two = cut_for(gpus, {}, hold("2g.10gb"));
  EXPECT_EQ(two.place.at.start, 2);
  EXPECT_TRUE(two.destroy.empty());
  const MigCut four = cut_for(gpus, {}, hold("4g.20gb"));
  EXPECT_EQ(four.kind, Kind::Create);
  ASSERT_EQ(four.destroy.size(), 1U);
  EXPECT_EQ(four.destroy[0].gi_id, 1);
  EXPECT_EQ(cut_for(gpus, {}, hold("7g.40gb")).kind, Kind::Wait);
}

TEST_F(MigOnDemand, SaysWhatCanNeverBe) {
  const std::vector<MigCutGpu> gpus = {gpu(0)};
  EXPECT_EQ(cut_for(gpus, {}, hold("3g.40gb")).kind, Kind::Never);
  EXPECT_EQ(cut_for({}, {}, hold("3g.20gb")).reason, "no GPU of the node has MIG on");
}

// Seven pods, one card: each gets one.
TEST_F(MigOnDemand, SevenPodsOnOneCard) {
  std::vector<MigCutGpu> gpus = {gpu(0)};
  for (int pod = 0; pod < 7; ++pod) {
    const MigCut cut = cut_for(gpus, {}, hold("1g.5gb"));
    ASSERT_EQ(cut.kind, Kind::Create) << pod;
    put(gpus[0], pod, "1g.5gb", cut.place.at.start, true);
  }
  EXPECT_EQ(cut_for(gpus, {}, hold("1g.5gb")).kind, Kind::Wait);
}

// Random GPUs and promises: what comes out is legal, touches nothing in use, leaves room for every
// promise, and Wait is said only when the oracle finds no layout with all of it.
TEST(MigOnDemandRandom, KeepsItsRules) {
  const MigTrial trial = MigTrial::from_env(400);
  std::map<std::string, testing::MigOracle> oracles;
  for (std::uint64_t round = 0; round < trial.rounds; ++round) {
    SCOPED_TRACE(trial.repeat(round));
    Rng rng(trial.seed_of(round), "on demand");
    const auto models = testing::mig_models();
    const auto& model = models[rng.below(models.size())];
    const auto& oracle = oracles.try_emplace(model.key, model.profiles).first->second;
    const MigGeometry geometry = MigGeometry::from_facts(model.profiles).value();
    std::vector<MigCutGpu> gpus = {{.gpu = 0, .geometry = &geometry, .present = {}}};
    const auto now = oracle.layouts()[rng.below(oracle.layouts().size())];
    testing::MigOracle::Set in_use = 0;
    for (std::size_t i = 0; i < oracle.places().size(); ++i) {
      if ((now >> i & 1) == 0) continue;
      MigPresent instance;
      instance.gi_id = static_cast<int>(i);
      const auto& place = oracle.places()[i];
      instance.place = {.at = {place.start, place.size}, .profile = place.profile};
      instance.in_use = rng.chance(1, 2);
      if (instance.in_use) in_use |= testing::MigOracle::Set{1} << i;
      gpus[0].present.push_back(std::move(instance));
    }
    const auto draw = [&] { return rng.below(model.profiles.size()); };
    std::vector<int> needed(model.profiles.size(), 0);  // promises
    std::vector<MigHold> others;
    for (std::uint64_t n = rng.below(3); n > 0; --n) {
      const std::size_t profile = draw();
      ++needed[profile];
      others.push_back(
          {.pod = "p", .profile = model.profiles[profile].name, .gpu = 0, .start = {}});
    }
    const std::size_t wanted = draw();
    // Whether the rest of what is needed fits when all of `fixed` lies.
    const auto fits = [&](testing::MigOracle::Set fixed, const std::vector<int>& more) {
      return std::ranges::any_of(oracle.layouts(), [&](testing::MigOracle::Set layout) {
        if ((layout & fixed) != fixed) return false;
        std::vector<int> counts(model.profiles.size(), 0);
        for (std::size_t i = 0; i < oracle.places().size(); ++i) {
          if (((layout & ~fixed) >> i & 1) == 0) continue;
          ++counts[static_cast<std::size_t>(oracle.places()[i].profile)];
        }
        return counts == more;
      });
    };
    const MigCut cut = cut_for(gpus, others, {"me", model.profiles[wanted].name, {}, {}});
    if (cut.kind == Kind::Wait) {
      std::vector<int> all = needed;
      ++all[wanted];
      EXPECT_FALSE(fits(in_use, all));
      continue;
    }
    ASSERT_TRUE(cut.kind == Kind::Use || cut.kind == Kind::Create) << cut.reason;
    EXPECT_EQ(cut.place.profile, static_cast<int>(wanted));
    testing::MigOracle::Set after = now;
    for (const MigPresent& gone : cut.destroy) after &= ~(testing::MigOracle::Set{1} << gone.gi_id);
    EXPECT_EQ(after & in_use, in_use);
    testing::MigOracle::Set mine = 0;
    for (std::size_t i = 0; i < oracle.places().size(); ++i) {
      const auto& place = oracle.places()[i];
      if (place.profile == cut.place.profile && place.start == cut.place.at.start) {
        mine = testing::MigOracle::Set{1} << i;
      }
    }
    EXPECT_EQ((after & mine) != 0, cut.kind == Kind::Use);
    EXPECT_TRUE(oracle.is_legal(after | mine));
    EXPECT_TRUE(fits(in_use | mine, needed));
  }
}

TEST(MigPicture, ShowsBeforeAndAfter) {
  const MigShape before{.is_enabled = true, .instances = {{9, "3g.20gb", {0, 4}, {}}}};
  const MigShape after{.is_enabled = true,
                       .instances = {{9, "3g.20gb", {0, 4}, {}}, {19, "1g.5gb", {6, 1}, {}}}};
  EXPECT_EQ(slice_picture({{"before", before}, {"after", after}, {"later", {}}}, 8, 2),
            "  slice      0       1       2       3       4       5       6       7\n"
            "  before  [3g.20gb                       ]   .       .       .       .\n"
            "  after   [3g.20gb                       ]   .       .    [1g.5gb]   .\n"
            "  later   [the whole GPU, MIG off                                        ]\n");
}

}  // namespace
}  // namespace jogak::agent
