// SPDX-License-Identifier: Apache-2.0
// PodTopologySpread as a filter: the skew rule, which nodes form domains, which pods count.
#include "core/filter/pod_topology_spread.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/model/testing.h"

namespace jogak::core {
namespace {

using testing::add;
using testing::in;
using testing::NodeBuilder;
using testing::PodBuilder;

constexpr const char* kSkew = "node(s) didn't match pod topology spread constraints";
constexpr const char* kMissing =
    "node(s) didn't match pod topology spread constraints (missing required label)";

SpreadConstraint over_zones() {
  SpreadConstraint c;
  c.topology_key = "topology.kubernetes.io/zone";
  c.selector = LabelSelector{{in("app", {"web"})}};
  return c;
}

PodBuilder web(const std::string& name) { return PodBuilder(name).label("app", "web"); }

class SpreadTest : public ::testing::Test {
 protected:
  // Empty: allowed, else the reason.
  std::string ask(const PodBuilder& incoming, NodeId node) {
    const PodView pod = testing::view(cluster_, incoming);
    PodTopologySpreadFilter filter;
    filter.build(cluster_, pod);
    Reasons reasons;
    const Verdict verdict = filter.check(cluster_, pod, node, &reasons);
    EXPECT_EQ(verdict.fits(), reasons.empty());
    if (!reasons.empty()) {
      const bool missing = reasons.front() == kMissing;
      EXPECT_EQ(verdict.code, missing ? Code::Unresolvable : Code::Unschedulable);
    }
    return reasons.empty() ? "" : reasons.front();
  }

  //   zone a: n1 n2     zone b: n3     no zone: n4
  Cluster cluster_;
  NodeId n1_ = add(cluster_, NodeBuilder("n1").zone("a"));
  NodeId n2_ = add(cluster_, NodeBuilder("n2").zone("a"));
  NodeId n3_ = add(cluster_, NodeBuilder("n3").zone("b"));
  NodeId n4_ = add(cluster_, NodeBuilder("n4"));
};

TEST_F(SpreadTest, OneMoreMayNotExceedTheSmallestDomainByMoreThanMaxSkew) {
  add(cluster_, web("w1").on("n1"));
  // zone a: 1 + self 1 - minimum 0 = 2 > 1; zone b: 0 + 1 - 0 = 1
  const PodBuilder incoming = web("in").spread(over_zones());
  EXPECT_EQ(ask(incoming, n1_), kSkew);
  EXPECT_EQ(ask(incoming, n2_), kSkew);
  EXPECT_EQ(ask(incoming, n3_), "");
  EXPECT_EQ(ask(incoming, n4_), kMissing);
}

TEST_F(SpreadTest, PodThatDoesNotMatchItselfAddsNothing) {
  add(cluster_, web("w1").on("n1"));
  EXPECT_EQ(ask(PodBuilder("in").spread(over_zones()), n1_), "");
}

TEST_F(SpreadTest, CountsOnlyLivePodsOfItsNamespaceThatMatch) {
  add(cluster_, web("going").on("n1").terminating());
  add(cluster_, web("elsewhere").ns("other").on("n1"));
  add(cluster_, PodBuilder("db").label("app", "db").on("n1"));
  add(cluster_, web("lost").on("gone"));
  EXPECT_EQ(ask(web("in").spread(over_zones()), n1_), "");
}

TEST_F(SpreadTest, EmptySelectorCountsNobodyMissingSelectorNotEvenItself) {
  add(cluster_, web("w1").on("n1"));
  SpreadConstraint c = over_zones();
  c.min_domains = 3;  // more than there are: the minimum is taken as 0
  c.selector = LabelSelector{};
  EXPECT_EQ(ask(web("in").spread(c), n1_), "");  // 0 + 1 - 0
  c.max_skew = 0;  // below what the API allows, so that self alone decides
  EXPECT_EQ(ask(web("in").spread(c), n1_), kSkew);
  c.selector.reset();
  EXPECT_EQ(ask(web("in").spread(c), n1_), "");
}

TEST_F(SpreadTest, FewerDomainsThanAskedForMeansMinimumZero) {
  add(cluster_, web("w1").on("n1"));
  add(cluster_, web("w2").on("n3"));
  SpreadConstraint c = over_zones();
  EXPECT_EQ(ask(web("in").spread(c), n1_), "");  // 1 + 1 - 1
  c.min_domains = 3;
  EXPECT_EQ(ask(web("in").spread(c), n1_), kSkew);  // 1 + 1 - 0
}

TEST_F(SpreadTest, MatchLabelKeysNarrowTheSelectorToThePodsOwnValue) {
  add(cluster_, web("old").label("hash", "1").on("n1"));
  SpreadConstraint c = over_zones();
  c.match_label_keys = {"hash", "absent"};
  EXPECT_EQ(ask(web("in").label("hash", "2").spread(c), n1_), "");
  EXPECT_EQ(ask(web("in").label("hash", "1").spread(c), n1_), kSkew);
}

TEST_F(SpreadTest, TaintedNodeFormsADomainUnlessTaintsAreHonored) {
  add(cluster_, web("w1").on("n1"));
  add(cluster_, web("w2").on("n3"));
  add(cluster_, NodeBuilder("n5").zone("c").taint("dedicated"));
  SpreadConstraint c = over_zones();
  EXPECT_EQ(ask(web("in").spread(c), n1_), kSkew);  // zone c counts 0 and nobody can go there
  c.honor_node_taints = true;
  EXPECT_EQ(ask(web("in").spread(c), n1_), "");
}

TEST_F(SpreadTest, NodesThePodMayNotUseFormNoDomainUnlessAffinityIsIgnored) {
  add(cluster_, web("w1").on("n1"));
  add(cluster_, web("w2").on("n3"));
  add(cluster_, NodeBuilder("n5").zone("c").label("pool", "x"));
  SpreadConstraint c = over_zones();
  // n1 and n3 carry no pool: only zone c remains, with 0 pods.
  EXPECT_EQ(ask(web("in").spread(c).node_selector("pool", "x"), n1_), "");
  c.honor_node_affinity = false;
  EXPECT_EQ(ask(web("in").spread(c).node_selector("pool", "x"), n1_), kSkew);
}

TEST_F(SpreadTest, NodesThatLackAnyKeyCountForNoConstraint) {
  add(cluster_, web("w1").on("n4"));  // no zone
  SpreadConstraint hosts = over_zones();
  hosts.topology_key = "kubernetes.io/hostname";
  // By hosts alone n4 holds one pod and the others none.
  EXPECT_EQ(ask(web("in").spread(hosts), n4_), kSkew);
  // Together with zones n4 is out, and refused for the label.
  EXPECT_EQ(ask(web("in").spread(hosts).spread(over_zones()), n4_), kMissing);
  EXPECT_EQ(ask(web("in").spread(hosts).spread(over_zones()), n1_), "");
}

TEST_F(SpreadTest, SoftConstraintsDoNotFilter) {
  SpreadConstraint c = over_zones();
  c.hard = false;
  const PodView pod = testing::view(cluster_, web("in").spread(c));
  PodTopologySpreadFilter filter;
  filter.build(cluster_, pod);
  EXPECT_FALSE(filter.active());
}

TEST_F(SpreadTest, TellsItsKeysAndWhetherEachNodeIsADomain) {
  SpreadConstraint hosts = over_zones();
  hosts.topology_key = "kubernetes.io/hostname";
  PodTopologySpreadFilter filter;
  std::vector<Symbol> keys;
  filter.build(cluster_, testing::view(cluster_, web("z").spread(over_zones())));
  EXPECT_FALSE(filter.depends_on_hostname());
  filter.build(cluster_, testing::view(cluster_, web("h").spread(over_zones()).spread(hosts)));
  EXPECT_TRUE(filter.depends_on_hostname());
  filter.domain_keys(keys);
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(cluster_.text(keys[0]), "topology.kubernetes.io/zone");
  EXPECT_EQ(cluster_.text(keys[1]), "kubernetes.io/hostname");
}

}  // namespace
}  // namespace jogak::core
