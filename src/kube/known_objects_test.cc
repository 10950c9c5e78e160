// SPDX-License-Identifier: Apache-2.0
// The table against a map.
#include "kube/known_objects.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "base/rng.h"

namespace jogak::kube {
namespace {

TEST(KnownObjects, FindsWhatItWasGiven) {
  KnownObjects known(1);
  EXPECT_EQ(known.find("ns", "a"), nullptr);
  known.add("ns", "a", "uid", "7");
  const KnownObject* const found = known.find("ns", "a");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->ns(), "ns");
  EXPECT_EQ(found->name(), "a");
  EXPECT_EQ(found->uid(), "uid");
  EXPECT_EQ(found->version(), "7");
  EXPECT_EQ(known.find("n", "sa"), nullptr);
  EXPECT_EQ(known.find("", "a"), nullptr);
}

TEST(KnownObjects, VersionsGrow) {
  KnownObjects known(1);
  known.add("", "a", "u", "9")->mark = 5;
  known.set_version(known.find("", "a"), "8");
  EXPECT_EQ(known.find("", "a")->version(), "8");
  known.set_version(known.find("", "a"), "10000");
  EXPECT_EQ(known.find("", "a")->version(), "10000");
  EXPECT_EQ(known.find("", "a")->uid(), "u");
  EXPECT_EQ(known.find("", "a")->mark, 5u);
}

TEST(KnownObjects, RemovesUnmarkedInOrder) {
  KnownObjects known(1);
  for (const char* name : {"c", "a", "b", "d"}) known.add("n", name, "u", "1")->mark = 1;
  known.add("m", "z", "u", "1")->mark = 1;
  known.find("n", "b")->mark = 2;
  std::string gone;
  for (const auto& object : known.remove_unmarked(2)) gone += object->name();
  EXPECT_EQ(gone, "zacd");
  EXPECT_EQ(known.size(), 1u);
}

TEST(KnownObjects, AgreesWithAMap) {
  Rng rng(3, "known");
  KnownObjects known(7);
  std::map<std::pair<std::string, std::string>, std::string> want;
  for (int step = 0; step < 200'000; ++step) {
    // Now many, now few: the table grows and shrinks.
    const std::uint64_t names = step / 20'000 % 2 == 0 ? 2000 : 20;
    const std::string ns = "n" + std::to_string(rng.below(3));
    const std::string name = "p" + std::to_string(rng.below(names));
    const auto it = want.find({ns, name});
    KnownObject* const found = known.find(ns, name);
    ASSERT_EQ(found != nullptr, it != want.end());
    if (found == nullptr) {
      known.add(ns, name, "u", "1");
      want[{ns, name}] = "1";
    } else {
      ASSERT_EQ(found->version(), it->second);
      if (rng.chance(1, 2) || names == 20) {
        ASSERT_EQ(known.remove(found)->name(), name);
        want.erase(it);
      } else {
        it->second = std::to_string(step);
        known.set_version(found, it->second);
      }
    }
    if (names == 20 && !want.empty()) {
      const auto first = want.begin();
      known.remove(known.find(first->first.first, first->first.second));
      want.erase(first);
    }
    ASSERT_EQ(known.size(), want.size());
  }
}

}  // namespace
}  // namespace jogak::kube
