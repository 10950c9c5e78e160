// SPDX-License-Identifier: Apache-2.0
// Choices on small drawn nodes, and against every subset.
#include "agent/plugin/preferred.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "agent/plugin/testing/node_facts.h"
#include "base/rng.h"

namespace jogak::agent {
namespace {

using testing::a100_node;
using testing::cut;
using testing::gpu_uuid;
using testing::link;
using testing::mig_uuid;

using Ids = std::vector<std::string>;

Ids gpus(const std::vector<int>& indices) {
  Ids result;
  for (const int index : indices) result.push_back(gpu_uuid(index));
  return result;
}

Ids prefer_gpus(const nvml::NodeFacts& facts, const std::vector<int>& available, int size,
                const std::vector<int>& must = {}) {
  const Inventory inventory = make_inventory(facts, {}, {});
  return prefer(inventory.resources[0], facts.gpus, std::nullopt,
                {.available = gpus(available), .must_include = gpus(must), .size = size});
}

// 0 and 1 near each other, 2 and 3, 4 and 5, 6 and 7.
nvml::NodeFacts pairs() {
  auto facts = a100_node(8);
  for (const int i : {0, 2, 4, 6}) link(facts, i, i + 1, 4);
  return facts;
}

TEST(Preferred, links_within_come_first) {
  EXPECT_EQ(prefer_gpus(pairs(), {0, 1, 2, 3, 4, 5, 6, 7}, 2), gpus({0, 1}));
  EXPECT_EQ(prefer_gpus(pairs(), {1, 2, 4, 5}, 2), gpus({4, 5}));
  EXPECT_EQ(prefer_gpus(pairs(), {1, 3, 4, 5, 6}, 3), gpus({4, 5, 6}));
}

TEST(Preferred, a_single_gpu_breaks_no_pair_of_the_rest) {
  EXPECT_EQ(prefer_gpus(pairs(), {0, 1, 2, 4, 5}, 1), gpus({2}));
}

TEST(Preferred, without_links_one_numa_node_is_better_than_two) {
  EXPECT_EQ(prefer_gpus(a100_node(8), {0, 4, 5, 1, 6}, 3), gpus({4, 5, 6}));
}

TEST(Preferred, what_must_be_included_is) {
  EXPECT_EQ(prefer_gpus(pairs(), {0, 1, 2, 3, 7}, 2, {3}), gpus({2, 3}));
  EXPECT_EQ(prefer_gpus(pairs(), {0, 1, 2, 3, 7}, 3, {3, 7}), gpus({2, 3, 7}));
}

TEST(Preferred, odd_questions_get_plain_answers) {
  EXPECT_EQ(prefer_gpus(pairs(), {0}, 2), gpus({0}));
  EXPECT_EQ(prefer_gpus(pairs(), {0, 1}, 0), Ids());
  EXPECT_EQ(prefer_gpus(pairs(), {0, 1}, -1), Ids());
  EXPECT_EQ(prefer_gpus(pairs(), {0, 1, 2}, 1, {1, 2}), gpus({1}));
  EXPECT_EQ(prefer_gpus(pairs(), {0, 99}, 2), gpus({0, 99}));  // the kubelet knows one more
}

TEST(Preferred, the_order_of_the_question_says_nothing) {
  Rng random(7, "preferred");
  std::vector<int> order = {0, 1, 2, 3, 5, 6, 7};
  const Ids first = prefer_gpus(pairs(), order, 3);
  for (int i = 0; i < 50; ++i) {
    for (std::size_t j = order.size(); j > 1; --j) {
      std::swap(order[j - 1], order[static_cast<std::size_t>(random.below(j))]);
    }
    EXPECT_EQ(prefer_gpus(pairs(), order, 3), first);
  }
}

TEST(Preferred, large_nodes_are_searched_greedily_and_still_keep_islands) {
  auto facts = a100_node(32);  // 32 choose 8 is more than ten million
  for (int island = 0; island < 4; ++island) {
    for (int i = 0; i < 8; ++i) {
      for (int j = 0; j < i; ++j) link(facts, island * 8 + i, island * 8 + j, 6);
    }
  }
  std::vector<int> available;
  for (int i = 3; i < 32; ++i) available.push_back(i);
  const Ids chosen = prefer_gpus(facts, available, 8);
  ASSERT_EQ(chosen.size(), 8U);
  std::set<int> islands;
  for (int i = 0; i < 32; ++i) {
    if (std::ranges::find(chosen, gpu_uuid(i)) != chosen.end()) islands.insert(i / 8);
  }
  EXPECT_EQ(islands.size(), 1U);
}

TEST(Preferred, mig_fills_the_gpu_that_is_fullest) {
  auto facts = a100_node(2);
  for (const int gpu : {0, 1}) cut(facts, gpu, {"1g.5gb", "1g.5gb", "1g.5gb"});
  PluginConfig config;
  config.mig_strategy = MigStrategy::Mixed;
  const Inventory inventory = make_inventory(facts, config, {});
  const Ids available = {mig_uuid(0, 0), mig_uuid(0, 1), mig_uuid(0, 2), mig_uuid(1, 2)};
  const auto ask = [&](std::optional<SharedPolicy> policy) {
    return prefer(inventory.resources[0], facts.gpus, policy,
                  {.available = available, .must_include = {}, .size = 1});
  };
  EXPECT_EQ(ask(std::nullopt), Ids{mig_uuid(1, 2)});
  EXPECT_EQ(ask(SharedPolicy::Distributed), Ids{mig_uuid(0, 0)});
}

TEST(Preferred, shares_are_spread_or_packed) {
  const auto facts = a100_node(2);
  PluginConfig config;
  config.sharing = {.kind = SharingKind::TimeSlicing,
                    .resources = {{.name = "nvidia.com/gpu", .replicas = 3}}};
  const Inventory inventory = make_inventory(facts, config, {});
  const auto share = [](int gpu, int n) { return fmt::format("{}::{}", gpu_uuid(gpu), n); };
  const Ids available = {share(0, 1), share(0, 2), share(1, 0), share(1, 1), share(1, 2)};
  const auto ask = [&](SharedPolicy policy, int size) {
    return prefer(inventory.resources[0], facts.gpus, policy,
                  {.available = available, .must_include = {}, .size = size});
  };
  EXPECT_EQ(ask(SharedPolicy::Distributed, 1), Ids{share(1, 0)});
  EXPECT_EQ(ask(SharedPolicy::Distributed, 2), (Ids{share(1, 0), share(0, 1)}));
  EXPECT_EQ(ask(SharedPolicy::Packed, 2), (Ids{share(0, 1), share(0, 2)}));
}

// Against every subset, on random links: nothing has better links within.
TEST(Preferred, no_subset_is_better) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Rng random(seed, "links");
    auto facts = a100_node(6);
    for (int i = 0; i < 6; ++i) {
      for (int j = 0; j < i; ++j) link(facts, i, j, static_cast<int>(random.below(4)));
    }
    const auto within = [&](unsigned mask) {
      std::int64_t sum = 0;
      for (unsigned i = 0; i < 6; ++i) {
        for (unsigned j = 0; j < i; ++j) {
          if ((mask >> i & 1U) != 0 && (mask >> j & 1U) != 0) {
            sum += link_score(facts.gpus[i].links[j]);
          }
        }
      }
      return sum;
    };
    const Ids chosen = prefer_gpus(facts, {0, 1, 2, 3, 4, 5}, 3);
    unsigned mask = 0;
    for (int i = 0; i < 6; ++i) {
      if (std::ranges::find(chosen, gpu_uuid(i)) != chosen.end()) mask |= 1U << i;
    }
    for (unsigned other = 0; other < 64; ++other) {
      if (__builtin_popcount(other) == 3) {
        EXPECT_LE(within(other), within(mask)) << "seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace jogak::agent
