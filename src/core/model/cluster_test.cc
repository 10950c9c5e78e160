// SPDX-License-Identifier: Apache-2.0
// Events and moves of the cluster state: nodes that come and go, pods bound to nodes nobody knows,
// pods made again under the same name, nominations, transactions.
#include "core/model/cluster.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/model/testing.h"

namespace jogak::core {
namespace {

using testing::add;
using testing::kGib;
using testing::NodeBuilder;
using testing::PodBuilder;

constexpr const char* kT4 = "Tesla-T4";

const Pod& pod(const Cluster& cluster, const char* name) {
  return cluster.pod(*cluster.find_pod("default", name));
}
const Node& node(const Cluster& cluster, const char* name) {
  return cluster.node(*cluster.find_node(name));
}

// ---- nodes ----------------------------------------------------------------------------------

TEST(Cluster, NodesAreOrderedByRankThenName) {
  Cluster cluster;
  add(cluster, NodeBuilder("c"));
  add(cluster, NodeBuilder("b").order(1));
  add(cluster, NodeBuilder("a").order(1));
  add(cluster, NodeBuilder("d"));
  const auto names = [&] {
    std::string all;
    for (const NodeId id : cluster.node_order()) all += cluster.text(cluster.node(id).name);
    return all;
  };
  EXPECT_EQ(names(), "cdab");
  EXPECT_EQ(cluster.rank(*cluster.find_node("a")), 2U);
  add(cluster, NodeBuilder("c").order(9));
  EXPECT_EQ(names(), "dabc");
  cluster.remove_node(*cluster.find_node("a"));
  EXPECT_EQ(names(), "dbc");
  EXPECT_EQ(cluster.find_node("a"), std::nullopt);
  EXPECT_EQ(cluster.node_count(), 3U);
}

TEST(Cluster, NodeFactsAreReplacedUnderRunningPods) {
  Cluster cluster;
  add(cluster, NodeBuilder("n1").cpu(8).label("old", "x").taint("t").image("img:1", 10));
  add(cluster, PodBuilder("p").cpu(6).memory_gib(2).resource("example.com/nic", 1).on("n1"));
  const std::uint64_t version = node(cluster, "n1").version;
  add(cluster, NodeBuilder("n1").cpu(4).label("new", "y"));
  const Node& n = node(cluster, "n1");
  EXPECT_EQ(n.cpu_allocatable, 4000);
  EXPECT_EQ(n.cpu_requested, 6000);
  EXPECT_EQ(n.memory_requested, 2 * kGib);
  EXPECT_TRUE(n.observed_over);
  EXPECT_TRUE(n.taints.empty());
  EXPECT_TRUE(n.images.empty());
  EXPECT_EQ(n.label(cluster.symbol("old")), nullptr);
  ASSERT_NE(n.label(cluster.symbol("new")), nullptr);
  EXPECT_EQ(n.scalar(*cluster.find_scalar("example.com/nic"))->requested, 1);
  EXPECT_NE(n.version, version);
  EXPECT_EQ(cluster.images()[cluster.find_image("img:1")->value].node_count, 0);
  EXPECT_EQ(cluster.recount(), "");
}

TEST(Cluster, LabelsVersionFollowsLabelsAndTaintsOfKnownNodes) {
  Cluster cluster;
  add(cluster, NodeBuilder("n1"));
  const std::uint64_t first = cluster.labels_version();
  add(cluster, NodeBuilder("n1").cpu(2));
  EXPECT_EQ(cluster.labels_version(), first);
  add(cluster, NodeBuilder("n1").zone("z"));
  EXPECT_EQ(cluster.labels_version(), first + 1);
  add(cluster, NodeBuilder("n1").zone("z").taint("t"));
  EXPECT_EQ(cluster.labels_version(), first + 2);
  add(cluster, NodeBuilder("n2").zone("y"));
  EXPECT_EQ(cluster.labels_version(), first + 2);
}

TEST(Cluster, CapacityVersionFollowsWhatAKnownNodeCanGive) {
  Cluster cluster;
  add(cluster, NodeBuilder("n1").gpus(kT4, 2, 16000));
  const std::uint64_t first = cluster.capacity_version();
  add(cluster, PodBuilder("p").cpu(1).gpus(1).on("n1", {{0}}));
  add(cluster, NodeBuilder("n1").gpus(kT4, 2, 16000).label("x", "y").taint("t"));
  EXPECT_EQ(cluster.capacity_version(), first);
  NodeBuilder sick("n1");
  sick.gpus(kT4, 2, 16000).spec().gpus[1].health = GpuHealth::Unhealthy;
  add(cluster, sick);
  EXPECT_EQ(cluster.capacity_version(), first + 1);
  add(cluster, NodeBuilder("n1"));
  EXPECT_EQ(cluster.capacity_version(), first + 2);
  add(cluster, NodeBuilder("n2"));
  EXPECT_EQ(cluster.capacity_version(), first + 2);
}

TEST(Cluster, BadNodesChangeNothing) {
  Cluster cluster;
  add(cluster, NodeBuilder("n1").cpu(4));
  const std::uint64_t before = cluster.digest();
  NodeSpec bad = NodeBuilder("n1").cpu(-1).spec();
  EXPECT_EQ(cluster.upsert_node(bad).error().what, "node n1: cpu is -1000, must be 0 or more");
  bad = NodeBuilder("n1").spec();
  bad.labels.push_back(bad.labels.back());
  EXPECT_FALSE(cluster.upsert_node(bad).has_value());
  bad = NodeBuilder("n1").resource("example.com/x", kMaxAmount + 1).spec();
  EXPECT_FALSE(cluster.upsert_node(bad).has_value());
  bad = NodeBuilder("n1").gpus(kT4, 33, 1).spec();
  EXPECT_FALSE(cluster.upsert_node(bad).has_value());
  bad = NodeBuilder("n1").gpus(kT4, 1, 1).spec();
  bad.gpus[0].mig_enabled = true;  // a T4 cannot be partitioned
  EXPECT_FALSE(cluster.upsert_node(bad).has_value());
  EXPECT_FALSE(cluster.upsert_node(NodeSpec{}).has_value());
  EXPECT_EQ(cluster.digest(), before);
}

// ---- pods bound to nodes nobody knows -------------------------------------------------------

TEST(Cluster, PodsSeenBeforeTheirNodeKeepTheirDevices) {
  Cluster cluster;
  add(cluster, PodBuilder("p").cpu(2).gpus(2).on("n1", {{3}, {1}}));
  EXPECT_EQ(pod(cluster, "p").state, PodState::Orphan);
  add(cluster, NodeBuilder("n1").gpus(kT4, 4, 16000));
  EXPECT_EQ(pod(cluster, "p").state, PodState::Placed);
  EXPECT_TRUE(pod(cluster, "p").holds_known);
  EXPECT_EQ(pod(cluster, "p").holds, (std::vector<GpuHold>{{1}, {3}}));
  EXPECT_EQ(node(cluster, "n1").unknown_gpus, 0);
  EXPECT_EQ(node(cluster, "n1").cpu_requested, 2000);

  Cluster other;  // the usual order gives the same state
  add(other, NodeBuilder("n1").gpus(kT4, 4, 16000));
  add(other, PodBuilder("p").cpu(2).gpus(2).on("n1", {{3}, {1}}));
  EXPECT_EQ(cluster.digest(), other.digest());
}

TEST(Cluster, PodsSeenBeforeTheirNodeWithImpossibleDevices) {
  Cluster cluster;
  add(cluster, PodBuilder("p").gpus(1).on("n1", {{7}}));
  add(cluster, NodeBuilder("n1").gpus(kT4, 4, 16000));
  EXPECT_FALSE(pod(cluster, "p").holds_known);
  EXPECT_EQ(node(cluster, "n1").unknown_gpus, 1);
  EXPECT_EQ(cluster.recount(), "");
}

TEST(Cluster, NodeGoesAndComesBack) {
  Cluster cluster;
  const NodeId n1 = add(cluster, NodeBuilder("n1").gpus(kT4, 4, 16000));
  add(cluster, PodBuilder("gpu").gpus(2).on("n1", {{0}, {1}}));
  add(cluster, PodBuilder("cpu").cpu(3).on("n1"));
  add(cluster, PodBuilder("hopes").nominate("n1"));
  cluster.remove_node(n1);
  EXPECT_EQ(pod(cluster, "gpu").state, PodState::Orphan);
  EXPECT_FALSE(pod(cluster, "hopes").nominated.valid());
  EXPECT_EQ(cluster.recount(), "");

  // Another node takes the slot; orphans do not move in with strangers.
  add(cluster, NodeBuilder("n2"));
  EXPECT_EQ(node(cluster, "n2").pod_count(), 0);
  cluster.remove_pod(*cluster.find_pod("default", "cpu"));  // one ends meanwhile

  add(cluster, NodeBuilder("n1").gpus(kT4, 4, 16000));
  EXPECT_EQ(node(cluster, "n1").pod_count(), 1);
  EXPECT_EQ(node(cluster, "n1").cpu_requested, 0);
  EXPECT_EQ(node(cluster, "n1").unknown_gpus, 0);
  EXPECT_EQ(pod(cluster, "gpu").holds, (std::vector<GpuHold>{{0}, {1}}));
  EXPECT_EQ(cluster.recount(), "");
}

TEST(Cluster, DevicesThatTheReturningNodeLacksAreUnknown) {
  Cluster cluster;
  add(cluster, NodeBuilder("n1").gpus(kT4, 4, 16000));
  add(cluster, PodBuilder("gpu").gpus(2).on("n1", {{0}, {3}}));
  cluster.remove_node(*cluster.find_node("n1"));
  add(cluster, NodeBuilder("n1").gpus(kT4, 3, 16000));
  EXPECT_FALSE(pod(cluster, "gpu").holds_known);
  EXPECT_EQ(node(cluster, "n1").unknown_gpus, 2);
  EXPECT_EQ(cluster.recount(), "");
}

TEST(Cluster, OrphansOnDifferentNodesAreDifferentStates) {
  Cluster a;
  add(a, PodBuilder("p").on("x"));
  Cluster b;
  add(b, PodBuilder("p").on("y"));
  EXPECT_NE(a.digest(), b.digest());
}

// ---- pods -----------------------------------------------------------------------------------

TEST(Cluster, PodMadeAgainUnderItsNameReplacesTheOldOne) {
  Cluster cluster;
  add(cluster, NodeBuilder("n1"));
  PodBuilder first("p");
  first.cpu(3).on("n1").spec().uid = "1";
  add(cluster, first);
  PodBuilder second("p");
  second.cpu(5).spec().uid = "2";
  add(cluster, second);
  EXPECT_EQ(node(cluster, "n1").cpu_requested, 0);
  EXPECT_EQ(pod(cluster, "p").state, PodState::Pending);
  EXPECT_EQ(pod(cluster, "p").uid, "2");
  const auto live =
      std::ranges::count_if(cluster.pods(), [](const Pod& p) { return p.state != PodState::Gone; });
  EXPECT_EQ(live, 1);
}

TEST(Cluster, SameNameInTwoNamespacesAreTwoPods) {
  Cluster cluster;
  const PodId a = add(cluster, PodBuilder("p").ns("a"));
  const PodId b = add(cluster, PodBuilder("p").ns("b"));
  EXPECT_EQ(cluster.find_pod("a", "p"), a);
  EXPECT_EQ(cluster.find_pod("b", "p"), b);
  EXPECT_EQ(cluster.pod_full_name(b), "b/p");
  cluster.remove_pod(a);
  EXPECT_EQ(cluster.find_pod("a", "p"), std::nullopt);
  EXPECT_EQ(cluster.find_pod("b", "p"), b);
}

TEST(Cluster, DuplicateAndMovedPodEvents) {
  Cluster cluster;
  add(cluster, NodeBuilder("n1"));
  add(cluster, NodeBuilder("n2"));
  const PodBuilder pod = PodBuilder("p").cpu(2).host_port(80).on("n1");
  for (int i = 0; i < 3; ++i) add(cluster, pod);
  EXPECT_EQ(node(cluster, "n1").cpu_requested, 2000);
  EXPECT_EQ(node(cluster, "n1").ports.size(), 1U);
  // A relist after a missed delete and create shows it elsewhere.
  add(cluster, PodBuilder(pod).on("n2"));
  EXPECT_EQ(node(cluster, "n1").cpu_requested, 0);
  EXPECT_EQ(node(cluster, "n2").cpu_requested, 2000);
  EXPECT_EQ(cluster.recount(), "");
}

TEST(Cluster, BadPodsChangeNothing) {
  Cluster cluster;
  add(cluster, NodeBuilder("n1"));
  add(cluster, PodBuilder("p").cpu(1).on("n1"));
  const std::uint64_t before = cluster.digest();
  EXPECT_FALSE(cluster.upsert_pod(PodBuilder("").spec()).has_value());
  EXPECT_EQ(cluster.upsert_pod(PodBuilder("p").cpu_milli(-5).spec()).error().what,
            "pod default/p: cpu is -5, must be 0 or more");
  EXPECT_FALSE(cluster.upsert_pod(PodBuilder("p").gpu_milli(1001).spec()).has_value());
  EXPECT_FALSE(cluster.upsert_pod(PodBuilder("p").gpus(1).on("n1", {{-1}}).spec()).has_value());
  PodBuilder huge("p");
  huge.shape().nonzero_memory = INT64_MAX;
  EXPECT_FALSE(cluster.upsert_pod(huge.spec()).has_value());
  EXPECT_EQ(cluster.digest(), before);
}

TEST(Cluster, ANodeOrPodSeenAgainUnchangedChangesNothing) {
  Cluster cluster;
  const NodeBuilder n1 = NodeBuilder("n1").cpu(8).label("zone", "a").gpus(kT4, 2, 16000);
  add(cluster, n1);
  const PodBuilder p = PodBuilder("p").cpu(1).gpus(1).on("n1", {{1, 0, -1}});
  const PodId id = add(cluster, p);
  add(cluster, PodBuilder("waits").cpu(1));
  const std::uint64_t changes = cluster.change_end();
  const std::uint64_t version = node(cluster, "n1").version;
  add(cluster, n1);
  EXPECT_EQ(add(cluster, p), id);
  add(cluster, PodBuilder("waits").cpu(1));
  EXPECT_EQ(cluster.change_end(), changes);
  EXPECT_EQ(node(cluster, "n1").version, version);
  // What differs in state alone is taken over in place.
  PodBuilder going = p;
  going.spec().terminating = true;
  EXPECT_EQ(add(cluster, going), id);
  EXPECT_TRUE(pod(cluster, "p").terminating);
  add(cluster, PodBuilder("waits").cpu(1).nominate("n1"));
  EXPECT_EQ(cluster.nominated_pods().size(), 1U);
  add(cluster, PodBuilder("waits").cpu(1));
  EXPECT_TRUE(cluster.nominated_pods().empty());
  // Other devices are another place.
  add(cluster, PodBuilder("p").cpu(1).gpus(1).on("n1", {{0, 0, -1}}));
  EXPECT_EQ(pod(cluster, "p").holds.at(0).gpu, 0);
  EXPECT_GT(cluster.change_end(), changes);
  EXPECT_EQ(cluster.recount(), "");
}

TEST(Cluster, ShapesAndIdentitiesThatNobodyHasAreGivenUp) {
  Cluster cluster;
  add(cluster, NodeBuilder("n1").cpu(8));
  const PodId kept = add(cluster, PodBuilder("kept").cpu(1).label("app", "kept").on("n1"));
  for (int i = 0; i < 100; ++i) {
    const std::string name = "p" + std::to_string(i);
    cluster.remove_pod(add(cluster, PodBuilder(name).cpu_milli(i + 1).label("name", name)));
  }
  const std::size_t before = cluster.interned();
  const std::uint64_t epoch = cluster.intern_epoch();
  EXPECT_EQ(cluster.collect_interned(), before - 2);
  EXPECT_EQ(cluster.interned(), 2U);
  EXPECT_NE(cluster.intern_epoch(), epoch);
  EXPECT_EQ(cluster.change_begin(), cluster.change_end());
  EXPECT_EQ(cluster.collect_interned(), 0U);
  EXPECT_EQ(cluster.identity_of(kept).labels.at(0).second, "kept");
  const std::size_t slots = cluster.shape_count();
  add(cluster, PodBuilder("next").cpu(3).label("name", "next"));
  EXPECT_EQ(cluster.shape_count(), slots);  // the slots are used again
  EXPECT_EQ(cluster.recount(), "");
}

TEST(Cluster, NominationsAreListedWhileTheyLast) {
  Cluster cluster;
  add(cluster, NodeBuilder("n1"));
  const PodId b = add(cluster, PodBuilder("b").nominate("n1"));
  const PodId a = add(cluster, PodBuilder("a").nominate("n1"));
  add(cluster, PodBuilder("c").nominate("unknown"));
  EXPECT_EQ(cluster.nominated_pods().size(), 2U);
  cluster.nominate(b, kNoNode);
  ASSERT_EQ(cluster.nominated_pods().size(), 1U);
  EXPECT_EQ(cluster.nominated_pods()[0], a);
  cluster.remove_pod(a);
  EXPECT_TRUE(cluster.nominated_pods().empty());
}

TEST(Cluster, TerminatingIsToldAsAMoveOutAndIn) {
  Cluster cluster;
  add(cluster, NodeBuilder("n1"));
  const PodId p = add(cluster, PodBuilder("p").on("n1"));
  const std::uint64_t at = cluster.change_end();
  cluster.set_terminating(p);
  ASSERT_EQ(cluster.change_end(), at + 2);
  EXPECT_EQ(cluster.change(at).delta, -1);
  EXPECT_FALSE(cluster.change(at).terminating);
  EXPECT_EQ(cluster.change(at + 1).delta, +1);
  EXPECT_TRUE(cluster.change(at + 1).terminating);
  cluster.set_terminating(p);
  EXPECT_EQ(cluster.change_end(), at + 2);
}

TEST(Cluster, EqualShapesAndIdentitiesShareAnId) {
  Cluster cluster;
  const PodId a = add(cluster, PodBuilder("a").cpu(1).label("app", "x"));
  const PodId b = add(cluster, PodBuilder("b").cpu(1).label("app", "x"));
  const PodId c = add(cluster, PodBuilder("c").cpu(1).label("app", "y"));
  EXPECT_EQ(cluster.pod(a).shape, cluster.pod(b).shape);
  EXPECT_EQ(cluster.pod(a).identity, cluster.pod(b).identity);
  EXPECT_EQ(cluster.pod(a).shape, cluster.pod(c).shape);
  EXPECT_NE(cluster.pod(a).identity, cluster.pod(c).identity);
}

// ---- transactions ---------------------------------------------------------------------------

TEST(Cluster, RollbackRestoresVersionsAndOrder) {
  Cluster cluster;
  const NodeId n1 = add(cluster, NodeBuilder("n1"));
  std::vector<PodId> pods;
  for (const char* name : {"a", "b", "c", "d"})
    pods.push_back(add(cluster, PodBuilder(name).on("n1")));
  const std::vector<PodId> order = cluster.node(n1).pods;
  const std::uint64_t version = cluster.node(n1).version;
  const std::uint64_t digest = cluster.digest();
  const auto mark = cluster.checkpoint();
  for (const PodId p : pods) cluster.unplace(p);
  cluster.place(pods[2], n1, {});
  cluster.nominate(pods[0], n1);
  EXPECT_NE(cluster.node(n1).version, version);
  cluster.rollback_to(mark);
  EXPECT_EQ(cluster.node(n1).pods, order);
  EXPECT_EQ(cluster.node(n1).version, version);
  EXPECT_EQ(cluster.digest(), digest);
  // A version that was rolled back is not given to other contents.
  cluster.unplace(pods[0]);
  EXPECT_GT(cluster.node(n1).version, version + 1);
}

TEST(Cluster, RollingBackToAnOuterCheckpointEndsTheInnerOnes) {
  Cluster cluster;
  const NodeId n1 = add(cluster, NodeBuilder("n1"));
  const PodId a = add(cluster, PodBuilder("a"));
  const PodId b = add(cluster, PodBuilder("b"));
  const auto outer = cluster.checkpoint();
  static_cast<void>(cluster.checkpoint());
  cluster.place(a, n1, {});
  static_cast<void>(cluster.checkpoint());
  cluster.place(b, n1, {});
  cluster.rollback_to(outer);
  EXPECT_EQ(cluster.node(n1).pod_count(), 0);
  cluster.remove_pod(a);  // events are allowed again
}

TEST(Cluster, CommitKeepsMoves) {
  Cluster cluster;
  const NodeId n1 = add(cluster, NodeBuilder("n1"));
  const PodId a = add(cluster, PodBuilder("a"));
  static_cast<void>(cluster.checkpoint());
  static_cast<void>(cluster.checkpoint());
  cluster.place(a, n1, {});
  cluster.commit();
  EXPECT_EQ(cluster.node(n1).pod_count(), 1);
  cluster.remove_pod(a);
}

TEST(ClusterDeathTest, EventsInsideATransactionAreBugs) {
  Cluster cluster;
  const NodeId n1 = add(cluster, NodeBuilder("n1"));
  const PodId a = add(cluster, PodBuilder("a").on("n1"));
  static_cast<void>(cluster.checkpoint());
  EXPECT_DEATH(cluster.remove_node(n1), "event inside a transaction");
  EXPECT_DEATH(cluster.remove_pod(a), "event inside a transaction");
  EXPECT_DEATH(cluster.set_terminating(a), "event inside a transaction");
  EXPECT_DEATH(cluster.rollback_to(7), "no such checkpoint");
}

TEST(Cluster, SlotsAreUsedAgainWithANewGeneration) {
  Cluster cluster;
  const PodId a = add(cluster, PodBuilder("a"));
  const std::uint32_t generation = cluster.pod(a).generation;
  cluster.remove_pod(a);
  const PodId b = add(cluster, PodBuilder("b"));
  EXPECT_EQ(a, b);
  EXPECT_NE(cluster.pod(b).generation, generation);
}

}  // namespace
}  // namespace jogak::core
