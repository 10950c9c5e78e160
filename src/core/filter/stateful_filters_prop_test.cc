// SPDX-License-Identifier: Apache-2.0
// The stateful filters follow moves: after any moves of pods, what a filter keeps and what it says
// of every node equals a filter built afresh. Clusters, pods and moves are drawn from a seed.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/rng.h"
#include "core/filter/inter_pod_affinity.h"
#include "core/filter/pod_topology_spread.h"
#include "core/filter/volume_restrictions.h"
#include "core/model/testing.h"

namespace jogak::core {
namespace {

using testing::add;
using testing::NodeBuilder;
using testing::PodBuilder;

constexpr const char* kApps[] = {"web", "db", "train"};
constexpr const char* kKeys[] = {"zone", "rack", "kubernetes.io/hostname", "nowhere"};
constexpr const char* kNamespaces[] = {"default", "team-a", "team-b"};

template <std::size_t N>
std::string pick(Rng& rng, const char* const (&from)[N]) {
  return from[rng.below(N)];
}

LabelSelector random_selector(Rng& rng) {
  LabelSelector selector;
  if (rng.chance(1, 6)) return selector;  // empty: everything, or nobody where spread counts
  const std::string app = pick(rng, kApps);
  selector.requirements.push_back(rng.chance(3, 4) ? testing::in("app", {app})
                                                   : testing::not_in("app", {app}));
  return selector;
}

PodAffinityTerm random_term(Rng& rng) {
  PodAffinityTerm term;
  if (!rng.chance(1, 10)) term.selector = random_selector(rng);
  term.topology_key = pick(rng, kKeys);
  if (rng.chance(1, 3)) term.namespaces.push_back(pick(rng, kNamespaces));
  if (rng.chance(1, 3)) {
    term.namespace_selector.emplace();
    if (rng.chance(1, 2)) {
      term.namespace_selector->requirements.push_back(testing::not_in("team", {"a"}));
    }
  }
  return term;
}

SpreadConstraint random_constraint(Rng& rng) {
  SpreadConstraint c;
  c.max_skew = static_cast<std::int32_t>(rng.between(1, 2));
  c.topology_key = pick(rng, kKeys);
  c.hard = rng.chance(4, 5);
  if (!rng.chance(1, 10)) c.selector = random_selector(rng);
  if (rng.chance(1, 4)) c.match_label_keys.push_back("ver");
  c.min_domains = static_cast<std::int32_t>(rng.between(1, 4));
  c.honor_node_affinity = rng.chance(1, 2);
  c.honor_node_taints = rng.chance(1, 2);
  return c;
}

PodBuilder random_pod(Rng& rng, const std::string& name) {
  PodBuilder pod(name);
  pod.ns(pick(rng, kNamespaces)).label("app", pick(rng, kApps));
  if (rng.chance(1, 2)) pod.label("ver", rng.chance(1, 2) ? "v1" : "v2");
  if (rng.chance(1, 4)) pod.terminating();
  if (rng.chance(1, 3)) pod.shape().required_anti_affinity.push_back(random_term(rng));
  if (rng.chance(1, 5)) pod.shape().required_anti_affinity.push_back(random_term(rng));
  if (rng.chance(1, 4)) {
    VolumeRef volume;
    volume.name = "data";
    pod.shape().volumes.push_back(volume);
  }
  return pod;
}

PodBuilder random_decided_pod(Rng& rng) {
  PodBuilder pod = random_pod(rng, "incoming");
  pod.spec().terminating = false;
  while (rng.chance(2, 3)) pod.spread(random_constraint(rng));
  while (rng.chance(1, 3)) pod.shape().required_affinity.push_back(random_term(rng));
  if (rng.chance(1, 4)) pod.node_selector("pool", "a");
  return pod;
}

void add_random_nodes(Rng& rng, Cluster& cluster) {
  const std::int64_t count = rng.between(1, 9);
  for (std::int64_t i = 0; i < count; ++i) {
    NodeBuilder node("n" + std::to_string(i));
    if (rng.chance(4, 5)) node.label("zone", "z" + std::to_string(rng.below(3)));
    if (rng.chance(4, 5)) node.label("rack", "r" + std::to_string(rng.below(4)));
    if (rng.chance(1, 2)) node.label("pool", "a");
    if (rng.chance(1, 5)) node.taint("dedicated");
    add(cluster, node);
  }
}

void add_objects(Cluster& cluster) {
  Objects& objects = cluster.mutable_objects();
  objects.namespaces["default"] = {"default", {}};
  objects.namespaces["team-a"] = {"team-a", {{"team", "a"}}};
  objects.namespaces["team-b"] = {"team-b", {{"team", "b"}}};
  for (const char* const ns : kNamespaces) {
    PersistentVolumeClaimSpec claim;
    claim.ns = ns;
    claim.name = "data";
    claim.access_modes = {"ReadWriteOncePod"};
    objects.pvcs[claim.ns + "/data"] = claim;
  }
}

struct Filters {
  PodTopologySpreadFilter spread;
  InterPodAffinityFilter affinity;
  VolumeRestrictionsFilter volumes;

  Filters(const Cluster& cluster, const PodView& pod) {
    spread.build(cluster, pod);
    affinity.build(cluster, pod);
    volumes.build(cluster, pod);
  }
  void pod_moved(const Cluster& cluster, const PodView& pod, PodId moved, NodeId node, int delta) {
    spread.pod_moved(cluster, pod, moved, node, delta);
    affinity.pod_moved(cluster, pod, moved, node, delta);
    volumes.pod_moved(cluster, pod, moved, node, delta);
  }
};

template <class Filter>
void expect_same(const Cluster& cluster, const PodView& pod, const Filter& moved,
                 const Filter& fresh) {
  EXPECT_EQ(moved.digest(), fresh.digest());
  EXPECT_EQ(moved.active(), fresh.active());
  for (const NodeId node : cluster.node_order()) {
    Reasons moved_reasons;
    Reasons fresh_reasons;
    const Verdict moved_verdict = moved.check(cluster, pod, node, &moved_reasons);
    const Verdict fresh_verdict = fresh.check(cluster, pod, node, &fresh_reasons);
    EXPECT_EQ(moved_verdict, fresh_verdict) << cluster.text(cluster.node(node).name);
    EXPECT_EQ(moved_reasons, fresh_reasons);
    EXPECT_EQ(moved_verdict, moved.check(cluster, pod, node, nullptr));
  }
}

// Nodes that agree on all keys of the filter get equal verdicts.
template <class Filter>
void expect_domains_decide(const Cluster& cluster, const PodView& pod, const Filter& filter) {
  std::vector<Symbol> keys;
  filter.domain_keys(keys);
  const auto agree = [&](NodeId a, NodeId b) {
    for (const Symbol key : keys) {
      const Symbol* const left = cluster.node(a).label(key);
      const Symbol* const right = cluster.node(b).label(key);
      if ((left == nullptr) != (right == nullptr)) return false;
      if (left != nullptr && *left != *right) return false;
    }
    return true;
  };
  for (const NodeId a : cluster.node_order()) {
    for (const NodeId b : cluster.node_order()) {
      if (!agree(a, b)) continue;
      EXPECT_EQ(filter.check(cluster, pod, a, nullptr), filter.check(cluster, pod, b, nullptr));
    }
  }
}

void run(std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Rng rng(seed, "stateful filters");
  Cluster cluster;
  add_objects(cluster);
  add_random_nodes(rng, cluster);
  const auto nodes = cluster.node_order();
  std::vector<PodId> pods;
  const std::int64_t count = rng.between(0, 14);
  for (std::int64_t i = 0; i < count; ++i) {
    PodBuilder pod = random_pod(rng, "p" + std::to_string(i));
    if (rng.chance(1, 2)) pod.on("n" + std::to_string(rng.below(nodes.size())));
    if (rng.chance(1, 12)) pod.on("gone");
    pods.push_back(add(cluster, pod));
  }
  const PodView incoming = testing::view(cluster, random_decided_pod(rng));

  Filters moved(cluster, incoming);
  const std::int64_t moves = count == 0 ? 0 : rng.between(1, 25);
  for (std::int64_t i = 0; i < moves; ++i) {
    const PodId pod = pods[rng.below(pods.size())];
    if (cluster.pod(pod).state == PodState::Placed) {
      moved.pod_moved(cluster, incoming, pod, cluster.pod(pod).node, -1);
      cluster.unplace(pod);
    } else if (cluster.pod(pod).state == PodState::Pending) {
      const NodeId node = nodes[rng.below(nodes.size())];
      cluster.place(pod, node, {});
      moved.pod_moved(cluster, incoming, pod, node, 1);
    }
    const Filters fresh(cluster, incoming);
    expect_same(cluster, incoming, moved.spread, fresh.spread);
    expect_same(cluster, incoming, moved.affinity, fresh.affinity);
    expect_same(cluster, incoming, moved.volumes, fresh.volumes);
    expect_domains_decide(cluster, incoming, moved.spread);
    expect_domains_decide(cluster, incoming, moved.affinity);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(StatefulFilters, MovesEqualAFreshBuild) {
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    run(seed);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace jogak::core
