// SPDX-License-Identifier: Apache-2.0
// InterPodAffinity as a filter: own affinity and anti-affinity, that of others, namespaces.
#include "core/filter/inter_pod_affinity.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/model/testing.h"

namespace jogak::core {
namespace {

using testing::add;
using testing::in;
using testing::NodeBuilder;
using testing::not_in;
using testing::PodBuilder;

constexpr const char* kAffinity = "node(s) didn't match pod affinity rules";
constexpr const char* kAnti = "node(s) didn't match pod anti-affinity rules";
constexpr const char* kExisting = "node(s) didn't satisfy existing pods anti-affinity rules";

PodAffinityTerm near(const std::string& app, const std::string& key = "zone") {
  PodAffinityTerm term;
  term.selector = LabelSelector{{in("app", {app})}};
  term.topology_key = key;
  return term;
}

PodBuilder pod(const std::string& name, const std::string& app) {
  return PodBuilder(name).label("app", app);
}
PodBuilder affine(PodBuilder builder, PodAffinityTerm term) {
  builder.shape().required_affinity.push_back(std::move(term));
  return builder;
}
PodBuilder averse(PodBuilder builder, PodAffinityTerm term) {
  builder.shape().required_anti_affinity.push_back(std::move(term));
  return builder;
}

class AffinityTest : public ::testing::Test {
 protected:
  AffinityTest() {
    Objects& objects = cluster_.mutable_objects();
    objects.namespaces["default"] = {"default", {}};
    objects.namespaces["team-a"] = {"team-a", {{"team", "a"}}};
  }

  std::string ask(const PodBuilder& incoming, NodeId node) {
    const PodView view = testing::view(cluster_, incoming);
    InterPodAffinityFilter filter;
    filter.build(cluster_, view);
    Reasons reasons;
    const Verdict verdict = filter.check(cluster_, view, node, &reasons);
    EXPECT_EQ(verdict.fits(), reasons.empty());
    if (reasons.empty()) return "";
    EXPECT_EQ(verdict.code,
              reasons.front() == kAffinity ? Code::Unresolvable : Code::Unschedulable);
    return reasons.front();
  }

  //   zone a: n1 n2     zone b: n3     no zone: n4
  Cluster cluster_;
  NodeId n1_ = add(cluster_, NodeBuilder("n1").label("zone", "a"));
  NodeId n2_ = add(cluster_, NodeBuilder("n2").label("zone", "a"));
  NodeId n3_ = add(cluster_, NodeBuilder("n3").label("zone", "b"));
  NodeId n4_ = add(cluster_, NodeBuilder("n4"));
};

TEST_F(AffinityTest, AffinityWantsAMatchingPodInTheSameDomain) {
  add(cluster_, pod("db", "db").on("n1").terminating());  // terminating pods count
  const PodBuilder incoming = affine(pod("in", "web"), near("db"));
  EXPECT_EQ(ask(incoming, n2_), "");
  EXPECT_EQ(ask(incoming, n3_), kAffinity);
  EXPECT_EQ(ask(incoming, n4_), kAffinity);
}

TEST_F(AffinityTest, OnePodMustMatchAllTerms) {
  add(cluster_, pod("db", "db").on("n1"));
  add(cluster_, pod("cache", "cache").on("n1"));
  PodBuilder incoming = affine(affine(pod("in", "web"), near("db")), near("cache"));
  EXPECT_EQ(ask(incoming, n1_), kAffinity);
}

TEST_F(AffinityTest, FirstOfASeriesMayGoWhereTheKeysAre) {
  const PodBuilder incoming = affine(pod("in", "db"), near("db"));
  EXPECT_EQ(ask(incoming, n1_), "");
  EXPECT_EQ(ask(incoming, n4_), kAffinity);
  add(cluster_, pod("db", "db").on("n4"));  // no zone: still the first
  EXPECT_EQ(ask(incoming, n1_), "");
  add(cluster_, pod("db2", "db").on("n3"));
  EXPECT_EQ(ask(incoming, n1_), kAffinity);
  EXPECT_EQ(ask(incoming, n3_), "");
}

TEST_F(AffinityTest, AntiAffinityJudgesEachTermAloneAndPassesNodesWithoutTheKey) {
  add(cluster_, pod("db", "db").on("n1"));
  const PodBuilder incoming =
      averse(averse(pod("in", "web"), near("db")), near("cache", "kubernetes.io/hostname"));
  EXPECT_EQ(ask(incoming, n2_), kAnti);
  EXPECT_EQ(ask(incoming, n3_), "");
  EXPECT_EQ(ask(incoming, n4_), "");
}

TEST_F(AffinityTest, AntiAffinityOfPlacedPodsHoldsAgainstThisOne) {
  add(cluster_, averse(pod("db", "db").on("n1"), near("web")));
  EXPECT_EQ(ask(pod("in", "web"), n2_), kExisting);
  EXPECT_EQ(ask(pod("in", "web"), n3_), "");
  EXPECT_EQ(ask(pod("in", "other"), n2_), "");
  EXPECT_EQ(ask(pod("in", "web").ns("team-a"), n2_), "");  // term covers its own namespace only
}

TEST_F(AffinityTest, PodOnAnUnknownNodeIsNowhere) {
  add(cluster_, averse(pod("db", "db").on("gone"), near("web")));
  EXPECT_EQ(ask(pod("in", "web"), n1_), "");
}

TEST_F(AffinityTest, NamespaceSelectorIsJudgedByTheNamespacesLabels) {
  add(cluster_, pod("db", "db").ns("team-a").on("n1"));
  PodAffinityTerm term = near("db");
  EXPECT_EQ(ask(averse(pod("in", "web"), term), n1_), "");
  term.namespaces = {"team-a"};
  EXPECT_EQ(ask(averse(pod("in", "web"), term), n1_), kAnti);
  term.namespaces.clear();
  term.namespace_selector = LabelSelector{};
  EXPECT_EQ(ask(averse(pod("in", "web"), term), n1_), kAnti);
  term.namespace_selector = LabelSelector{{not_in("team", {"a"})}};
  EXPECT_EQ(ask(averse(pod("in", "web"), term), n1_), "");
}

TEST_F(AffinityTest, MissingSelectorMatchesNobodyEmptyEverybody) {
  add(cluster_, PodBuilder("bare").on("n1"));
  PodAffinityTerm term = near("db");
  term.selector.reset();
  EXPECT_EQ(ask(averse(pod("in", "web"), term), n1_), "");
  term.selector = LabelSelector{};
  EXPECT_EQ(ask(averse(pod("in", "web"), term), n1_), kAnti);
}

TEST_F(AffinityTest, BecomesActiveWhenAPodThatRefusesItArrives) {
  const PodView view = testing::view(cluster_, pod("in", "web"));
  const PodId other = add(cluster_, averse(pod("db", "db"), near("web")));
  InterPodAffinityFilter filter;
  filter.build(cluster_, view);
  EXPECT_FALSE(filter.active());
  cluster_.place(other, n1_, {});
  filter.pod_moved(cluster_, view, other, n1_, 1);
  EXPECT_TRUE(filter.active());
  EXPECT_FALSE(filter.check(cluster_, view, n2_, nullptr).fits());
  std::vector<Symbol> keys;
  filter.domain_keys(keys);
  ASSERT_EQ(keys.size(), 1U);
  EXPECT_EQ(cluster_.text(keys[0]), "zone");
  EXPECT_FALSE(filter.depends_on_hostname());
}

}  // namespace
}  // namespace jogak::core
