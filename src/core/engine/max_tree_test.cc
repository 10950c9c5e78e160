// SPDX-License-Identifier: Apache-2.0
// The tree against a linear search.
#include "core/engine/max_tree.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/rng.h"

namespace jogak::core {
namespace {

TEST(MaxTree, EmptyAndSingle) {
  MaxTree tree;
  tree.reset(0);
  EXPECT_EQ(tree.top(), MaxTree::kNone);
  tree.reset(1);
  tree.set(0, -5);
  EXPECT_EQ(tree.top(), -5);
  EXPECT_EQ(tree.first_top(), 0U);
}

TEST(MaxTree, EqualValuesFallToTheLeft) {
  MaxTree tree;
  tree.reset(300);
  tree.set(299, 7);
  tree.set(17, 7);
  tree.set(40, 7);
  EXPECT_EQ(tree.first_top(), 17U);
  tree.set(17, 6);
  EXPECT_EQ(tree.first_top(), 40U);
}

// Random changes on sizes around the block edges, against std::max_element.
TEST(MaxTree, AgreesWithALinearSearch) {
  for (const std::size_t n : {1, 15, 16, 17, 255, 256, 257, 4096, 5000}) {
    Rng rng(n, "max-tree");
    MaxTree tree;
    tree.reset(n);
    std::vector<std::int64_t> plain(n, MaxTree::kNone);
    for (int step = 0; step < 3000; ++step) {
      const std::size_t i = rng.below(n);
      const std::uint64_t draw = rng.below(12);
      plain[i] = draw == 0 ? MaxTree::kNone : static_cast<std::int64_t>(draw) - 6;
      tree.set(i, plain[i]);
      const auto best = std::max_element(plain.begin(), plain.end());
      ASSERT_EQ(tree.top(), *best) << "n " << n << " step " << step;
      if (*best != MaxTree::kNone) {
        ASSERT_EQ(tree.first_top(), static_cast<std::size_t>(best - plain.begin()));
      }
    }
  }
}

}  // namespace
}  // namespace jogak::core
