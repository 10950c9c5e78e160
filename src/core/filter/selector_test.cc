// SPDX-License-Identifier: Apache-2.0
// Tables of what matches: requirements, node selector terms, tolerations. Corners follow the
// parsers of Kubernetes, which refuse some terms that would otherwise match.
#include "core/filter/selector.h"

#include <gtest/gtest.h>

#include "core/model/testing.h"

namespace jogak::core {
namespace {

using testing::absent;
using testing::add;
using testing::exists;
using testing::greater;
using testing::in;
using testing::less;
using testing::NodeBuilder;
using testing::not_in;
using testing::PodBuilder;

TEST(Selector, RequirementTable) {
  struct Case {
    const char* name;
    Requirement requirement;
    std::optional<std::string> value;
    bool match;
  };
  const Case cases[] = {
      {"in", in("k", {"a", "b"}), "b", true},
      {"in, other value", in("k", {"a", "b"}), "c", false},
      {"in, absent", in("k", {"a"}), std::nullopt, false},
      {"not in", not_in("k", {"a"}), "b", true},
      {"not in, listed", not_in("k", {"a"}), "a", false},
      {"not in, absent matches", not_in("k", {"a"}), std::nullopt, true},
      {"exists", exists("k"), "", true},
      {"exists, absent", exists("k"), std::nullopt, false},
      {"does not exist", absent("k"), std::nullopt, true},
      {"does not exist, present", absent("k"), "a", false},
      {"greater", greater("k", "4"), "5", true},
      {"greater is strict", greater("k", "4"), "4", false},
      {"greater compares numbers, not text", greater("k", "9"), "10", true},
      {"greater, absent", greater("k", "4"), std::nullopt, false},
      {"greater of a word", greater("k", "4"), "many", false},
      {"greater, leading zeros", greater("k", "4"), "007", true},
      {"greater, plus sign", greater("k", "4"), "+5", true},
      {"greater, two signs", greater("k", "4"), "+-5", false},
      {"greater, trailing text", greater("k", "4"), "5Gi", false},
      {"less", less("k", "4"), "-1", true},
      {"less beyond 64 bits", less("k", "4"), "-9223372036854775809", false},
      {"less of nothing", less("k", "4"), "", false},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(matches(c.requirement, c.value ? &*c.value : nullptr), c.match) << c.name;
  }
}

TEST(Selector, AnEmptySelectorMatchesEverything) {
  EXPECT_TRUE(matches(LabelSelector{}, Labels{}));
  EXPECT_TRUE(matches(LabelSelector{}, Labels{{"app", "web"}}));
}

TEST(Selector, AllRequirementsMustHold) {
  const Labels labels = {{"app", "web"}, {"tier", "front"}};
  EXPECT_TRUE(matches({{in("app", {"web"}), exists("tier")}}, labels));
  EXPECT_FALSE(matches({{in("app", {"web"}), absent("tier")}}, labels));
}

TEST(Selector, LabelsAreFoundByKey) {
  const Labels labels = {{"a", "1"}, {"c", "3"}};
  ASSERT_NE(find_label(labels, "c"), nullptr);
  EXPECT_EQ(*find_label(labels, "c"), "3");
  EXPECT_EQ(find_label(labels, "b"), nullptr);
  EXPECT_EQ(find_label(labels, "d"), nullptr);
}

TEST(Selector, NodeTerms) {
  Cluster cluster;
  const Node& node =
      cluster.node(add(cluster, NodeBuilder("n1").label("disk", "ssd").label("cores", "16")));
  struct Case {
    const char* name;
    NodeSelectorTerm term;
    bool match;
  };
  const Case cases[] = {
      {"labels", {{in("disk", {"ssd"}), greater("cores", "8")}, {}}, true},
      {"one of them fails", {{in("disk", {"ssd"}), greater("cores", "16")}, {}}, false},
      {"a key no node ever had", {{in("never-seen", {"x"})}, {}}, false},
      {"its absence", {{absent("never-seen")}, {}}, true},
      {"name", {{}, {in("metadata.name", {"n1"})}}, true},
      {"other name", {{}, {in("metadata.name", {"n2"})}}, false},
      {"not that name", {{}, {not_in("metadata.name", {"n2"})}}, true},
      {"label and name", {{in("disk", {"hdd"})}, {in("metadata.name", {"n1"})}}, false},
      {"empty term", {}, false},
      {"greater than a word does not parse", {{absent("gpu"), greater("cores", "x")}, {}}, false},
      {"not a label value, though NotIn would hold", {{not_in("disk", {"a b"})}, {}}, false},
      {"two names in one field do not parse", {{}, {in("metadata.name", {"n1", "n2"})}}, false},
      {"In without values does not parse", {{not_in("disk", {})}, {}}, false},
  };
  for (const Case& c : cases) EXPECT_EQ(node_matches(cluster, node, c.term), c.match) << c.name;
}

TEST(Selector, NodeTermsAreOred) {
  Cluster cluster;
  const Node& node = cluster.node(add(cluster, NodeBuilder("n1").label("disk", "ssd")));
  const NodeSelectorTerm hit = {{in("disk", {"ssd"})}, {}};
  const NodeSelectorTerm miss = {{in("disk", {"hdd"})}, {}};
  const NodeSelectorTerm broken = {{greater("disk", "x")}, {}};
  EXPECT_TRUE(node_matches_any(cluster, node, std::vector{broken, miss, hit}));
  EXPECT_FALSE(node_matches_any(cluster, node, std::vector{broken, miss}));
  EXPECT_FALSE(node_matches_any(cluster, node, {}));
}

TEST(Selector, NodeSelectorAndAffinityAreAnded) {
  Cluster cluster;
  const Node& node =
      cluster.node(add(cluster, NodeBuilder("n1").label("disk", "ssd").label("zone", "a")));
  const auto allows = [&](PodBuilder pod) {
    return required_node_affinity_matches(cluster, pod.spec().shape, node);
  };
  EXPECT_TRUE(allows(PodBuilder("p")));
  EXPECT_TRUE(allows(PodBuilder("p").node_selector("disk", "ssd").node_affinity({exists("zone")})));
  EXPECT_FALSE(
      allows(PodBuilder("p").node_selector("disk", "hdd").node_affinity({exists("zone")})));
  EXPECT_FALSE(
      allows(PodBuilder("p").node_selector("disk", "ssd").node_affinity({absent("zone")})));
  PodBuilder no_terms("p");
  no_terms.shape().node_affinity.emplace();
  EXPECT_FALSE(allows(no_terms)) << "a required block without terms matches no node";
}

TEST(Selector, Tolerations) {
  const Taint taint = {"gpu", "a100", TaintEffect::NoSchedule};
  struct Case {
    const char* name;
    Toleration toleration;
    bool tolerated;
  };
  const Case cases[] = {
      {"equal", {"gpu", false, "a100", TaintEffect::NoSchedule}, true},
      {"every effect", {"gpu", false, "a100", std::nullopt}, true},
      {"other effect", {"gpu", false, "a100", TaintEffect::NoExecute}, false},
      {"other value", {"gpu", false, "h100", std::nullopt}, false},
      {"other key", {"cpu", false, "a100", std::nullopt}, false},
      {"exists", {"gpu", true, "", std::nullopt}, true},
      {"everything", {"", true, "", std::nullopt}, true},
      {"everything of one effect", {"", true, "", TaintEffect::PreferNoSchedule}, false},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(tolerates(std::vector{c.toleration}, taint), c.tolerated) << c.name;
  }
  EXPECT_FALSE(tolerates({}, taint));
}

}  // namespace
}  // namespace jogak::core
