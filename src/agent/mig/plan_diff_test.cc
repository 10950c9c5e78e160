// SPDX-License-Identifier: Apache-2.0
//
// The planner against the brute-force oracle: from every layout of every model to every set of
// counts that some layout has, idle and with random instances in use, and all the ways to be in use
// on the smallest; plus counts that no layout has. Minimal, legal, nothing in use destroyed, and
// refused exactly when the oracle finds nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>

#include <fmt/format.h>

#include "agent/mig/plan.h"
#include "agent/mig/testing/mig_models.h"
#include "agent/mig/testing/mig_oracle.h"
#include "agent/mig/testing/trial.h"
#include "base/rng.h"

namespace jogak::agent {
namespace {

using testing::mig_model;
using testing::mig_models;
using testing::MigOracle;
using testing::MigTrial;
using Set = MigOracle::Set;

class Compare {
 public:
  using Parts = std::vector<std::pair<std::string_view, std::vector<int>>>;

  explicit Compare(const testing::MigModel& model, const Parts& parts = {})
      : model_(model), geometry_(with_parts(model, parts)), oracle_(geometry_.profiles()) {}

  const MigOracle& oracle() const { return oracle_; }
  const MigGeometry& geometry() const { return geometry_; }

  // True: they agree. `in_use` is part of `now`.
  bool agree(Set now, Set in_use, const MigCounts& counts, const std::vector<Set>& group) const {
    const std::vector<MigPresent> present = instances(now, in_use);
    const MigPlanned planned = plan_counts(geometry_, present, counts);
    const int kept = MigOracle::most_kept(group, now, in_use);
    if (!planned) {
      const bool never = planned.error().why == MigRefusal::Why::Never;
      return kept < 0 && never == group.empty() && !planned.error().reason.empty() &&
             (never || blockers_are_right(now, in_use, group, planned.error().blockers));
    }
    if (kept < 0) return false;
    const Set after = carry_out(now, in_use, *planned);
    return after != kBroken && std::ranges::find(group, after) != group.end() &&
           after == set_of(planned->after) &&
           static_cast<int>(planned->destroy.size()) == std::popcount(now) - kept &&
           static_cast<int>(planned->create.size()) == std::popcount(after) - kept &&
           static_cast<int>(planned->keep.size()) == kept;
  }

  // Exact places: the difference of two sets, or a refusal.
  bool agree_exactly(Set now, Set in_use, Set wanted) const {
    MigLayout layout;
    for (const MigPresent& instance : instances(wanted, 0)) layout.push_back(instance.place);
    const MigPlanned planned = plan_layout(geometry_, instances(now, in_use), layout);
    if ((in_use & ~wanted) != 0) {
      return !planned && planned.error().why == MigRefusal::Why::InUse &&
             planned.error().blockers == ids(in_use & ~wanted);
    }
    return planned && carry_out(now, in_use, *planned) == wanted &&
           static_cast<int>(planned->keep.size()) == std::popcount(now & wanted);
  }

  std::string text(Set now, Set in_use, const MigCounts& counts) const {
    return fmt::format("{}: from {:#x}, in use {:#x}, to {}", model_.key, now, in_use,
                       geometry_.counts_text(counts));
  }

 private:
  static constexpr Set kBroken = ~Set{0};

  static MigGeometry with_parts(const testing::MigModel& model, const Parts& parts) {
    MigGeometry geometry = MigGeometry::from_facts(model.profiles).value();
    for (const auto& [name, slices] : parts) {
      const auto at = std::ranges::find(model.profiles, name, &nvml::MigProfileFacts::name);
      EXPECT_TRUE(geometry.add_parts(static_cast<int>(at - model.profiles.begin()), slices));
    }
    return geometry;
  }

  std::vector<MigPresent> instances(Set set, Set in_use) const {
    std::vector<MigPresent> result;
    for (std::size_t i = 0; i < oracle_.places().size(); ++i) {
      if ((set >> i & 1) == 0) continue;
      const MigOracle::Place& place = oracle_.places()[i];
      MigPresent instance;
      instance.gi_id = static_cast<int>(i);
      instance.place = {.at = {place.start, place.size}, .profile = place.profile};
      instance.in_use = (in_use >> i & 1) != 0;
      result.push_back(std::move(instance));
    }
    return result;
  }

  std::size_t bit_of(const MigPlace& wanted) const {
    const auto same = [&](const MigOracle::Place& place) {
      return place.profile == wanted.profile && place.start == wanted.at.start;
    };
    const auto at = std::ranges::find_if(oracle_.places(), same);
    return static_cast<std::size_t>(at - oracle_.places().begin());
  }

  Set set_of(const MigLayout& layout) const {
    Set set = 0;
    for (const MigPlace& place : layout) set |= Set{1} << bit_of(place);
    return set;
  }

  // Plays the steps one by one as a driver would take them.
  Set carry_out(Set now, Set in_use, const MigPlan& plan) const {
    for (const MigPresent& gone : plan.destroy) {
      const Set bit = Set{1} << gone.gi_id;
      if ((now & bit) == 0 || (in_use & bit) != 0) return kBroken;
      now &= ~bit;
    }
    for (const MigPlace& made : plan.create) {
      const Set bit = Set{1} << bit_of(made);
      if ((now & bit) != 0 || !oracle_.is_legal(now | bit)) return kBroken;
      now |= bit;
    }
    return now;
  }

  static std::vector<int> ids(Set set) {
    std::vector<int> result;
    for (int i = 0; i < 64; ++i) {
      if ((set >> i & 1) != 0) result.push_back(i);
    }
    return result;
  }

  // Freeing them all makes room, freeing all but one of them does not.
  static bool blockers_are_right(Set now, Set in_use, const std::vector<Set>& group,
                                 const std::vector<int>& blockers) {
    Set blocking = 0;
    for (const int id : blockers) blocking |= Set{1} << id;
    if ((blocking & ~in_use) != 0 || blocking == 0) return false;
    if (MigOracle::most_kept(group, now, in_use & ~blocking) < 0) return false;
    return std::ranges::all_of(blockers, [&](int id) {
      return MigOracle::most_kept(group, now, (in_use & ~blocking) | Set{1} << id) < 0;
    });
  }

  const testing::MigModel& model_;
  MigGeometry geometry_;
  MigOracle oracle_;
};

bool is_like_an_earlier(std::string_view key) {
  const auto shape = [](const testing::MigModel& model) {
    auto profiles = model.profiles;
    for (nvml::MigProfileFacts& profile : profiles) {
      profile.name.clear();
      profile.memory_mib = 0;
      profile.multiprocessors = profile.copy_engines = 0;
    }
    return profiles;
  };
  for (const testing::MigModel& model : mig_models()) {
    if (model.key == key) return false;
    if (shape(model) == shape(mig_model(key))) return true;
  }
  return false;
}

class MigPlanAgainstOracle : public ::testing::TestWithParam<std::string> {};

TEST_P(MigPlanAgainstOracle, FromEveryLayoutToEvery) {
  // Where only names and memory tell a model from one that is walked whole, the planner sees the
  // same numbers: a part will do, and JOGAK_ROUNDS=16 walks it all.
  const MigTrial trial = MigTrial::from_env(is_like_an_earlier(GetParam()) ? 1 : 16);
  const Compare compare(mig_model(GetParam()));
  Rng rng(trial.seed, "in use");
  for (const Set now : compare.oracle().layouts()) {
    if (rng.below(16) >= trial.rounds) continue;
    for (const auto& [counts, group] : compare.oracle().by_counts()) {
      ASSERT_TRUE(compare.agree(now, 0, counts, group)) << compare.text(now, 0, counts);
      const Set in_use = now & rng.next() & rng.next();
      ASSERT_TRUE(compare.agree(now, in_use, counts, group))
          << compare.text(now, in_use, counts) << " " << trial.repeat(0);
    }
    const Set in_use = now & rng.next();
    const auto& layouts = compare.oracle().layouts();
    for (int i = 0; i < 8; ++i) {
      const Set wanted = layouts[rng.below(layouts.size())];
      ASSERT_TRUE(compare.agree_exactly(now, 0, wanted)) << now << " " << wanted;
      ASSERT_TRUE(compare.agree_exactly(now, in_use, wanted)) << now << " " << wanted;
    }
  }
}

TEST_P(MigPlanAgainstOracle, LegalityIsTheSame) {
  const Compare compare(mig_model(GetParam()));
  const MigTrial trial = MigTrial::from_env(20'000);
  Rng rng(trial.seed, "layouts");
  const auto& places = compare.oracle().places();
  for (std::uint64_t round = 0; round < trial.rounds; ++round) {
    Set set = 0;
    MigLayout layout;
    const std::uint64_t size = rng.below(6);
    for (std::uint64_t i = 0; i < size; ++i) {
      const std::size_t at = rng.below(places.size());
      if ((set >> at & 1) != 0) continue;
      set |= Set{1} << at;
      layout.push_back({.at = {places[at].start, places[at].size}, .profile = places[at].profile});
    }
    ASSERT_EQ(!compare.geometry().layout_fault(layout), compare.oracle().is_legal(set)) << set;
  }
}

// Counts around and beyond what the driver allows, on the empty GPU.
TEST_P(MigPlanAgainstOracle, RefusesWhatNoLayoutHas) {
  const Compare compare(mig_model(GetParam()));
  const MigTrial trial = MigTrial::from_env(4'000);
  Rng rng(trial.seed, "counts");
  const auto& profiles = mig_model(GetParam()).profiles;
  for (std::uint64_t round = 0; round < trial.rounds; ++round) {
    MigCounts counts;
    for (const auto& profile : profiles) {
      const bool any = rng.chance(1, 3);
      counts.push_back(any ? static_cast<int>(rng.between(0, profile.count_max + 1)) : 0);
    }
    const auto at = compare.oracle().by_counts().find(counts);
    const bool exists = at != compare.oracle().by_counts().end();
    ASSERT_TRUE(compare.agree(0, 0, counts, exists ? at->second : std::vector<Set>{}))
        << compare.text(0, 0, counts);
  }
}

std::vector<std::string> model_keys() {
  std::vector<std::string> keys;
  for (const auto& model : mig_models()) keys.push_back(model.key);
  return keys;
}

INSTANTIATE_TEST_SUITE_P(Models, MigPlanAgainstOracle, ::testing::ValuesIn(model_keys()),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(MigPlanInUse, EveryWayToBeInUse) {
  const Compare compare(mig_model("A30"));
  for (const Set now : compare.oracle().layouts()) {
    for (Set in_use = now;; in_use = (in_use - 1) & now) {
      for (const auto& [counts, group] : compare.oracle().by_counts()) {
        ASSERT_TRUE(compare.agree(now, in_use, counts, group)) << compare.text(now, in_use, counts);
      }
      for (const Set wanted : compare.oracle().layouts()) {
        ASSERT_TRUE(compare.agree_exactly(now, in_use, wanted)) << now << " " << wanted;
      }
      if (in_use == 0) break;
    }
  }
}

// Kinds with parts are kinds like others: the oracle knows them by their profile's id only.
TEST(MigPlanWithParts, FromEveryLayoutToEvery) {
  const Compare compare(mig_model("A30"), {{"2g.12gb", {1, 1}}, {"4g.24gb", {1, 2, 1}}});
  const MigTrial trial = MigTrial::from_env(1);
  Rng rng(trial.seed, "in use");
  for (const Set now : compare.oracle().layouts()) {
    const Set in_use = now & rng.next();
    for (const auto& [counts, group] : compare.oracle().by_counts()) {
      ASSERT_TRUE(compare.agree(now, 0, counts, group)) << compare.text(now, 0, counts);
      ASSERT_TRUE(compare.agree(now, in_use, counts, group))
          << compare.text(now, in_use, counts) << " " << trial.repeat(0);
    }
  }
}

TEST(MigGeometryParts, AKindOfItsOwn) {
  MigGeometry geometry = MigGeometry::from_facts(mig_model("A100-40").profiles).value();
  const std::size_t plain = geometry.profiles().size();
  EXPECT_EQ(geometry.add_parts(2, {3}), 2) << "all of it is the plain one";
  const int kind = geometry.add_parts(2, {1, 2}).value();
  EXPECT_EQ(geometry.profiles().size(), plain + 1);
  EXPECT_EQ(geometry.name(kind), "2c+1c.3g.20gb");
  EXPECT_EQ(geometry.add_parts(kind, {2, 1}), kind);
  EXPECT_EQ(geometry.find_parts(2, {1, 1, 1}), -1);
  EXPECT_EQ(geometry.base_of(kind), 2);
  EXPECT_EQ(geometry.add_parts(2, {2, 2}).error().what,
            "3g.20gb has 3 compute slices, and the parts 2c+2c take 4");
}

// The published numbers: 19 maximal layouts of seven slices without the double-memory and +me
// profiles, in 14 kinds; with double memory 78. Four slices: 5 layouts of 4 kinds.
TEST(MigOracle, CountsOfMaximalLayouts) {
  const auto maximal = [](std::string_view key, const std::set<std::string>& names) {
    std::vector<nvml::MigProfileFacts> profiles;
    for (nvml::MigProfileFacts profile : mig_model(key).profiles) {
      profile.decoders = profile.jpeg_engines = profile.ofa_engines = 0;
      if (names.contains(profile.name)) profiles.push_back(profile);
    }
    const MigOracle oracle(profiles);
    std::set<std::vector<int>> kinds;
    std::size_t count = 0;
    for (const auto& [counts, group] : oracle.by_counts()) {
      for (const Set layout : group) {
        const bool more = std::ranges::any_of(oracle.layouts(), [&](Set other) {
          return other != layout && (other & layout) == layout;
        });
        if (more) continue;
        ++count;
        kinds.insert(counts);
      }
    }
    return std::pair(count, kinds.size());
  };
  using Pair = std::pair<std::size_t, std::size_t>;
  EXPECT_EQ(maximal("A100-40", {"1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"}),
            Pair(19, 14));
  EXPECT_EQ(
      maximal("A100-40", {"1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"}).first,
      78U);
  EXPECT_EQ(maximal("A30", {"1g.6gb", "2g.12gb", "4g.24gb"}), Pair(5, 4));
}

}  // namespace
}  // namespace jogak::agent
