// SPDX-License-Identifier: Apache-2.0
// The MIG tables against enumeration: how many layouts a GPU has is known, so a wrong start or size
// shows as a wrong count.
#include "core/model/mig.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace jogak::core {
namespace {

using Instance = std::pair<std::int32_t, std::int32_t>;  // profile index, start
using Layout = std::set<Instance>;

// Every layout to which nothing can be added, over the profiles that `use` names. Slow on purpose:
// instances are added in all orders and duplicates fall together in the set.
void grow(const MigModel& model, const std::vector<std::int32_t>& use, Layout& now,
          std::uint16_t mask, std::set<Layout>& seen, std::set<Layout>& maximal) {
  if (!seen.insert(now).second) return;
  bool grew = false;
  for (const std::int32_t p : use) {
    const MigProfile& profile = model.profiles[static_cast<std::size_t>(p)];
    for (std::int32_t start = 0; start < model.slices; ++start) {
      if ((profile.starts >> start & 1) == 0) continue;
      const std::uint16_t covers = mig_mask(start, profile.size);
      if ((mask & covers) != 0) continue;
      grew = true;
      now.insert({p, start});
      grow(model, use, now, static_cast<std::uint16_t>(mask | covers), seen, maximal);
      now.erase({p, start});
    }
  }
  if (!grew) maximal.insert(now);
}

struct Counted {
  std::set<Layout> layouts;
  std::set<std::multiset<std::int32_t>> multisets;
};

Counted count_layouts(const MigModel& model, const std::vector<std::string>& names) {
  std::vector<std::int32_t> use;
  for (const std::string& name : names) {
    use.push_back(find_mig_profile(model, name));
    EXPECT_GE(use.back(), 0) << name;
  }
  Counted counted;
  std::set<Layout> seen;
  Layout now;
  grow(model, use, now, 0, seen, counted.layouts);
  for (const Layout& layout : counted.layouts) {
    std::multiset<std::int32_t> kinds;
    for (const auto& [profile, start] : layout) kinds.insert(profile);
    counted.multisets.insert(kinds);
  }
  return counted;
}

const MigModel& model(std::string_view label) {
  const auto index = find_mig_model(label);
  EXPECT_TRUE(index.has_value()) << label;
  return mig_models()[index.value_or(0)];
}

TEST(Mig, SevenSliceGridHas19LayoutsOf14Kinds) {
  const Counted counted = count_layouts(model("NVIDIA-A100-SXM4-40GB"),
                                        {"1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"});
  EXPECT_EQ(counted.layouts.size(), 19U);
  EXPECT_EQ(counted.multisets.size(), 14U);
}

TEST(Mig, DoubleMemoryMakesIt78) {
  const Counted counted =
      count_layouts(model("NVIDIA-A100-SXM4-40GB"),
                    {"1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"});
  EXPECT_EQ(counted.layouts.size(), 78U);
}

TEST(Mig, A30AndRtxPro6000HaveFiveLayoutsOfFourKinds) {
  const Counted a30 = count_layouts(model("NVIDIA-A30"), {"1g.6gb", "2g.12gb", "4g.24gb"});
  EXPECT_EQ(a30.layouts.size(), 5U);
  EXPECT_EQ(a30.multisets.size(), 4U);
  const Counted rtx = count_layouts(model("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition"),
                                    {"1g.24gb", "2g.48gb", "4g.96gb"});
  EXPECT_EQ(rtx.layouts.size(), 5U);
  EXPECT_EQ(rtx.multisets.size(), 4U);
}

TEST(Mig, DisjointSlicesNeverBreakCountsUnlessMediaEnginesAreAsked) {
  for (const MigModel& m : mig_models()) {
    std::vector<std::string> plain;
    for (const MigProfile& p : m.profiles) {
      if (p.name.find("me") == std::string_view::npos) plain.emplace_back(p.name);
    }
    for (const Layout& layout : count_layouts(m, plain).layouts) {
      std::vector<std::int32_t> counts(m.profiles.size(), 0);
      std::int32_t compute = 0;
      for (const auto& [profile, start] : layout) {
        ++counts[static_cast<std::size_t>(profile)];
        compute += m.profiles[static_cast<std::size_t>(profile)].compute;
      }
      EXPECT_TRUE(mig_counts_fit(m, counts)) << m.key;
      EXPECT_LE(compute, 7) << m.key;
    }
  }
}

TEST(Mig, MediaEnginesAreOnePerGpu) {
  struct Case {
    const char* gpu;
    std::vector<const char*> instances;
    bool fits;
  };
  const Case cases[] = {
      {"H100", {"1g.10gb+me"}, true},
      {"H100", {"1g.10gb+me", "1g.10gb+me"}, false},
      {"H100", {"1g.10gb+me", "1g.10gb", "1g.20gb", "3g.40gb"}, true},
      {"A30", {"1g.6gb+me", "2g.12gb"}, true},
      {"A30", {"1g.6gb+me", "2g.12gb+me"}, false},
      {"RTX-PRO-6000", {"1g.24gb+me.all", "1g.24gb-me", "2g.48gb-me"}, true},
      {"RTX-PRO-6000", {"1g.24gb+me.all", "1g.24gb"}, false},
      {"RTX-PRO-6000", {"1g.24gb+me.all", "1g.24gb+me"}, false},
      {"RTX-PRO-6000", {"1g.24gb+me", "1g.24gb", "2g.48gb"}, true},
  };
  for (const Case& c : cases) {
    const MigModel& m = model(c.gpu);
    std::vector<std::int32_t> counts(m.profiles.size(), 0);
    std::string text = c.gpu;
    for (const char* name : c.instances) {
      ++counts.at(static_cast<std::size_t>(find_mig_profile(m, name)));
      text += std::string(" ") + name;
    }
    EXPECT_EQ(mig_counts_fit(m, counts), c.fits) << text;
  }
}

TEST(Mig, EveryTableIsWellFormed) {
  std::set<std::string_view> keys;
  for (const MigModel& m : mig_models()) {
    EXPECT_TRUE(keys.insert(m.key).second) << m.key;
    EXPECT_EQ(&model(m.key), &m) << "the key must find its own model";
    std::set<std::string_view> names;
    for (const MigProfile& p : m.profiles) {
      EXPECT_TRUE(names.insert(p.name).second) << m.key << ' ' << p.name;
      EXPECT_EQ(std::to_string(p.compute) + "g.", p.name.substr(0, 3)) << m.key << ' ' << p.name;
      ASSERT_NE(p.starts, 0) << m.key << ' ' << p.name;
      for (std::int32_t start = 0; start < 16; ++start) {
        if ((p.starts >> start & 1) != 0) {
          EXPECT_LE(start + p.size, m.slices) << m.key << ' ' << p.name;
        }
      }
    }
  }
}

TEST(Mig, ProductLabelsFindTheirModel) {
  const std::map<std::string, std::string> expected = {
      {"NVIDIA-A100-SXM4-40GB", "A100-SXM4-40GB"},
      {"NVIDIA A100-PCIE-40GB", "A100-SXM4-40GB"},
      {"NVIDIA-A100-SXM4-80GB", "A100-SXM4-80GB"},
      {"NVIDIA-A100-80GB-PCIe", "A100-SXM4-80GB"},
      {"NVIDIA-A30", "A30"},
      {"NVIDIA-H100-80GB-HBM3", "H100-80GB"},
      {"NVIDIA-H100-PCIe", "H100-80GB"},
      {"NVIDIA-H100-NVL", "H100-NVL"},
      {"NVIDIA-H20", "H100-96GB"},
      {"NVIDIA-H20-3e", "H200"},
      {"NVIDIA-H200", "H200"},
      {"NVIDIA-H200-NVL", "H200"},
      {"NVIDIA-GH200-480GB", "GH200-480GB"},
      {"NVIDIA-GH200-144G-HBM3e", "GH200-144G"},
      {"NVIDIA-B200", "B200"},
      {"NVIDIA-GB200", "GB200"},
      {"NVIDIA-B300-SXM6-AC", "B300"},
      {"NVIDIA-GB300", "GB300"},
      {"NVIDIA-H100-80GB-HBM3-SHARED", "H100-80GB"},
      {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX-PRO-6000"},
  };
  for (const auto& [label, key] : expected) {
    const auto index = find_mig_model(label);
    ASSERT_TRUE(index.has_value()) << label;
    EXPECT_EQ(mig_models()[*index].key, key) << label;
  }
  for (const char* none : {"", "Tesla-T4", "NVIDIA-RTX-A3000", "NVIDIA-A100", "NVIDIA-L40S", "A10",
                           "NVIDIA-H100-64GB-HBM2", "V100M32"}) {
    EXPECT_FALSE(find_mig_model(none).has_value()) << none;
  }
}

TEST(Mig, ProfilesAreFoundInBothForms) {
  const MigModel& m = model("NVIDIA-H100-80GB-HBM3");
  EXPECT_EQ(find_mig_profile(m, "1g.10gb+me"), find_mig_profile(m, "1g.10gb.me"));
  EXPECT_NE(find_mig_profile(m, "1g.10gb+me"), find_mig_profile(m, "1g.10gb"));
  EXPECT_EQ(m.profiles[static_cast<std::size_t>(find_mig_profile(m, "3g.40gb"))].size, 4);
  for (const char* none : {"", "1g", "1g.5gb", "1g.10gb+me+me", "1g+10gb"}) {
    EXPECT_EQ(find_mig_profile(m, none), -1) << none;
  }
}

// 3g covers four memory slices, so two of them fill the grid with one compute slice unused.
TEST(Mig, TwoThreeSliceInstancesLeaveNothing) {
  const MigModel& m = model("NVIDIA-A100-SXM4-40GB");
  const auto used = static_cast<std::uint16_t>(mig_mask(0, 4) | mig_mask(4, 4));
  for (const MigProfile& p : m.profiles) EXPECT_EQ(mig_free_starts(p, used), 0) << p.name;
}

// Four 1g fit beside a 3g only if the 3g went to start 4.
TEST(Mig, FourSmallBesideAThreeWantItAtFour) {
  const MigModel& m = model("NVIDIA-A100-SXM4-40GB");
  const MigProfile& three = m.profiles[4];
  EXPECT_EQ(best_mig_start(m, three, 0), 4);
  const MigProfile& four = m.profiles[5];
  EXPECT_EQ(mig_free_starts(four, mig_mask(4, 4)), 1);
  EXPECT_EQ(mig_free_starts(four, mig_mask(0, 4)), 0);
}

// Case F3: three 1g run on an A100 and a 3g.20gb is asked for. Whether it fits depends on where the
// three are, and the first of them must not be put where it blocks the larger ones.
TEST(Mig, ThreeSmallThenAThree) {
  const MigModel& m = model("NVIDIA-A100-SXM4-40GB");
  const MigProfile& one = m.profiles[0];
  const MigProfile& three = m.profiles[4];
  EXPECT_EQ(mig_free_starts(three, 0b0000'0111), 1 << 4);  // at 0..2: the 3g goes to 4
  EXPECT_EQ(mig_free_starts(three, 0b0010'0101), 0);       // at 0, 2, 5: nowhere
  std::uint16_t used = 0;
  for (int i = 0; i < 3; ++i) {
    const auto start = best_mig_start(m, one, used);
    ASSERT_TRUE(start.has_value());
    used = static_cast<std::uint16_t>(used | mig_mask(*start, 1));
  }
  EXPECT_NE(mig_free_starts(three, used), 0) << "used mask " << used;
}

// Over every set of occupied slices: the chosen start is legal, and no other legal start leaves
// more.
TEST(Mig, BestStartNeverBlocksMoreThanAnother) {
  const auto left = [](const MigModel& m, unsigned used) {
    int sum = 0;
    for (const MigProfile& p : m.profiles) {
      for (int start = 0; start < m.slices; ++start) {
        const unsigned covers = ((1U << p.size) - 1U) << start;
        if ((p.starts >> start & 1) != 0 && (used & covers) == 0) sum += p.compute;
      }
    }
    return sum;
  };
  for (const MigModel& m : mig_models()) {
    for (unsigned used = 0; used < 1U << m.slices; ++used) {
      for (const MigProfile& p : m.profiles) {
        int most = -1;
        std::optional<std::int32_t> first;
        for (int start = 0; start < m.slices; ++start) {
          const unsigned covers = ((1U << p.size) - 1U) << start;
          if ((p.starts >> start & 1) == 0 || (used & covers) != 0) continue;
          if (left(m, used | covers) > most) {
            most = left(m, used | covers);
            first = start;
          }
        }
        ASSERT_EQ(best_mig_start(m, p, static_cast<std::uint16_t>(used)), first)
            << m.key << ' ' << p.name << " used " << used;
      }
    }
  }
}

}  // namespace
}  // namespace jogak::core
