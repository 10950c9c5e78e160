// SPDX-License-Identifier: Apache-2.0
// Scores that compare domains: PodTopologySpread (soft) and InterPodAffinity (preferred).
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/rng.h"
#include "core/model/testing.h"
#include "core/score/inter_pod_affinity_score.h"
#include "core/score/pod_topology_spread_score.h"

namespace jogak::core {
namespace {

using testing::add;
using testing::in;
using testing::NodeBuilder;
using testing::PodBuilder;
using Scores = std::vector<std::int64_t>;

PodBuilder web(const std::string& name) { return PodBuilder(name).label("app", "web"); }

SpreadConstraint soft(const std::string& key) {
  SpreadConstraint c;
  c.topology_key = key;
  c.hard = false;
  c.selector = LabelSelector{{in("app", {"web"})}};
  return c;
}

class ScoresTest : public ::testing::Test {
 protected:
  //   zone a: n1 n2     zone b: n3     no zone: n4
  Cluster cluster_;
  NodeId n1_ = add(cluster_, NodeBuilder("n1").zone("a"));
  NodeId n2_ = add(cluster_, NodeBuilder("n2").zone("a"));
  NodeId n3_ = add(cluster_, NodeBuilder("n3").zone("b"));
  NodeId n4_ = add(cluster_, NodeBuilder("n4"));
  const std::vector<NodeId> all_ = {n1_, n2_, n3_, n4_};
};

TEST_F(ScoresTest, SpreadPrefersEmptierDomainsAndIgnoresNodesWithoutTheKey) {
  add(cluster_, web("w1").on("n1"));
  add(cluster_, web("w2").on("n2"));
  add(cluster_, web("w3").on("n3"));
  const PodView pod =
      testing::view(cluster_, web("in").spread(soft("topology.kubernetes.io/zone")));
  // ln(2 zones + 2) = 1.386: zone a 2 pods -> 3, zone b 1 pod -> 1; 100 * (3 + 1 - s) / 3
  EXPECT_EQ(pod_topology_spread_score(cluster_, pod, all_), (Scores{33, 33, 100, 0}));
}

TEST_F(ScoresTest, SpreadByHostCountsPerNode) {
  add(cluster_, web("w1").on("n1"));
  add(cluster_, web("w2").on("n1").terminating());
  const PodView pod = testing::view(cluster_, web("in").spread(soft("kubernetes.io/hostname")));
  // ln(4 nodes + 2) = 1.79: n1 -> 2, others 0
  EXPECT_EQ(pod_topology_spread_score(cluster_, pod, all_), (Scores{0, 100, 100, 100}));
}

TEST_F(ScoresTest, SpreadIsSkippedWithoutSoftConstraints) {
  EXPECT_EQ(pod_topology_spread_score(cluster_, testing::view(cluster_, web("in")), all_),
            std::nullopt);
  SpreadConstraint hard = soft("kubernetes.io/hostname");
  hard.hard = true;
  EXPECT_EQ(
      pod_topology_spread_score(cluster_, testing::view(cluster_, web("in").spread(hard)), all_),
      std::nullopt);
}

TEST_F(ScoresTest, DefaultsSpreadWhatAServiceSelectsByHostAndZone) {
  WorkloadSpec service{"Service", "default", "svc", LabelSelector{{in("app", {"web"})}}};
  cluster_.mutable_objects().workloads["Service/default/svc"] = service;
  add(cluster_, web("w1").on("n1"));
  // By host: ln(4 + 2) * 1 = 1.79 on n1, and + 2 (skew 3) everywhere.
  // By zone, three values with "none": ln(3 + 2) * 1 = 1.61 in a, and + 4 (skew 5) where a zone is.
  // n1: 1.79 + 2 + 1.61 + 4 = 9.4; n2: 2 + 1.61 + 4 = 7.6; n3: 2 + 4 = 6; n4: 2
  // 100 * (9 + 2 - s) / 9 for s = 9, 8, 6, 2
  EXPECT_EQ(pod_topology_spread_score(cluster_, testing::view(cluster_, web("in")), all_),
            (Scores{22, 33, 55, 100}));
}

TEST_F(ScoresTest, DefaultSelectorJoinsServicesAndOwner) {
  auto& workloads = cluster_.mutable_objects().workloads;
  workloads["Service/default/all"] = {"Service", "default", "all",
                                      LabelSelector{{in("app", {"web"})}}};
  workloads["Service/default/none"] = {"Service", "default", "none", std::nullopt};
  workloads["Service/other/x"] = {"Service", "other", "x", LabelSelector{{in("app", {"web"})}}};
  workloads["ReplicaSet/default/rs"] = {"ReplicaSet", "default", "rs",
                                        LabelSelector{{in("hash", {"1"})}}};
  workloads["Job/default/j"] = {"Job", "default", "j", LabelSelector{{in("hash", {"1"})}}};
  Identity identity;
  identity.ns = "default";
  identity.labels = {{"app", "db"}};
  EXPECT_EQ(default_spread_selector(cluster_, identity), std::nullopt);
  identity.labels = {{"app", "web"}};
  EXPECT_EQ(default_spread_selector(cluster_, identity), (LabelSelector{{in("app", {"web"})}}));
  identity.owner_kind = "ReplicaSet";
  identity.owner_name = "rs";
  EXPECT_EQ(default_spread_selector(cluster_, identity),
            (LabelSelector{{in("app", {"web"}), in("hash", {"1"})}}));
  identity.owner_kind = "Job";
  identity.owner_name = "j";
  EXPECT_EQ(default_spread_selector(cluster_, identity), (LabelSelector{{in("app", {"web"})}}));
}

using Real = double;  // tidy: kube-float (what kube-scheduler computes)

Real kube_term(const SpreadScoreTerm& term) {
  return static_cast<Real>(term.pods) * std::log(static_cast<Real>(term.domains + 2)) +
         static_cast<Real>(term.max_skew - 1);
}

// The fixed-point logarithm against the library's, which is what kube-scheduler rounds.
TEST(SpreadRawScore, EqualsTheRoundedFloatSum) {
  const std::uint64_t seed = 7;
  Rng rng(seed, "raw score");
  for (int i = 0; i < 20000; ++i) {
    std::vector<SpreadScoreTerm> terms;
    Real expected = 0;
    for (std::int64_t n = rng.between(1, 3); n > 0; --n) {
      const std::int64_t pods = rng.between(0, 5000);
      const std::int64_t domains = rng.between(1, 20000);
      const std::int64_t skew = rng.between(1, 100);
      terms.push_back({pods, domains, skew});
      expected += kube_term(terms.back());
    }
    ASSERT_EQ(spread_raw_score(terms), std::llround(expected)) << "seed " << seed << " draw " << i;
  }
}

PodAffinityTerm preference(const std::string& app, std::int32_t weight) {
  PodAffinityTerm term;
  term.selector = LabelSelector{{in("app", {app})}};
  term.topology_key = "topology.kubernetes.io/zone";
  term.weight = weight;
  return term;
}

TEST_F(ScoresTest, AffinityAddsWeightsInBothDirections) {
  PodBuilder db = PodBuilder("db").label("app", "db").on("n1");
  db.shape().preferred_affinity.push_back(preference("web", 30));
  db.shape().required_affinity.push_back(preference("web", 0));  // counts 1
  add(cluster_, db);
  PodBuilder noisy = PodBuilder("noisy").label("app", "noisy").on("n3");
  noisy.shape().preferred_anti_affinity.push_back(preference("web", 20));
  add(cluster_, noisy);
  PodBuilder incoming = web("in");
  incoming.shape().preferred_affinity.push_back(preference("db", 10));
  // zone a: 30 + 1 + 10 = 41, zone b: -20, none: 0; 100 * (s + 20) / 61
  EXPECT_EQ(inter_pod_affinity_score(cluster_, testing::view(cluster_, incoming), all_),
            (Scores{100, 100, 0, 32}));
}

TEST_F(ScoresTest, AffinityIsSkippedWhereNoTermSelectsAnybody) {
  PodBuilder incoming = web("in");
  EXPECT_EQ(inter_pod_affinity_score(cluster_, testing::view(cluster_, incoming), all_),
            std::nullopt);
  incoming.shape().preferred_affinity.push_back(preference("db", 10));
  EXPECT_EQ(inter_pod_affinity_score(cluster_, testing::view(cluster_, incoming), all_),
            std::nullopt);
  add(cluster_, PodBuilder("db").label("app", "db").on("n4"));  // no zone: still nobody
  EXPECT_EQ(inter_pod_affinity_score(cluster_, testing::view(cluster_, incoming), all_),
            std::nullopt);
}

TEST_F(ScoresTest, AffinityQuotientIsCutAsFloatsCutIt) {
  PodBuilder incoming = web("in");
  incoming.shape().preferred_affinity.push_back(preference("db", 100));
  incoming.shape().preferred_affinity.push_back(preference("cache", 29));
  add(cluster_, PodBuilder("db").label("app", "db").on("n1"));
  add(cluster_, PodBuilder("cache").label("app", "cache").on("n3"));
  // 100 * (29 / 100.0) = 28.999...: kube-scheduler says 28
  EXPECT_EQ(inter_pod_affinity_score(cluster_, testing::view(cluster_, incoming), all_),
            (Scores{100, 100, 28, 0}));
}

}  // namespace
}  // namespace jogak::core
