// SPDX-License-Identifier: Apache-2.0
// The node-local filters but GpuDevices, through the cycle that runs them, so that each case also
// shows that the plugin's turn comes.
#include "core/filter/local_filters.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/filter/cycle.h"
#include "core/model/testing.h"

namespace jogak::core {
namespace {

using testing::absent;
using testing::add;
using testing::exists;
using testing::in;
using testing::kGib;
using testing::NodeBuilder;
using testing::PodBuilder;
using testing::view;

struct Answer {
  Verdict verdict;
  Reasons reasons;  // sorted
};

Answer ask(const Cluster& cluster, const PodView& pod, NodeId node) {
  Answer answer;
  const FilterCycle cycle(cluster, pod);
  answer.verdict = cycle.check(node, &answer.reasons);
  std::ranges::sort(answer.reasons);
  EXPECT_EQ(cycle.check(node, nullptr), answer.verdict) << "reasons must not change the verdict";
  const Node& n = cluster.node(node);
  EXPECT_EQ(first_refusal(static_filters(cluster, pod, n), dynamic_local_filters(cluster, pod, n)),
            answer.verdict)
      << "the two groups must add up to the cycle";
  return answer;
}

Answer ask(const NodeBuilder& node, const PodBuilder& pod) {
  Cluster cluster;
  const NodeId id = add(cluster, node);
  return ask(cluster, view(cluster, pod), id);
}

constexpr Verdict kFits = {};

TEST(LocalFilters, APlainPodFits) {
  EXPECT_EQ(ask(NodeBuilder("n1"), PodBuilder("p").cpu(1).memory_gib(1)).verdict, kFits);
}

TEST(LocalFilters, ACordonedNode) {
  const auto cordoned = NodeBuilder("n1").unschedulable();
  const Answer refused = ask(cordoned, PodBuilder("p"));
  EXPECT_EQ(refused.verdict, (Verdict{Plugin::NodeUnschedulable, Code::Unresolvable}));
  EXPECT_EQ(refused.reasons, Reasons{"node(s) were unschedulable"});
  EXPECT_EQ(ask(cordoned, PodBuilder("p").tolerate_key("node.kubernetes.io/unschedulable")).verdict,
            kFits);
}

TEST(LocalFilters, AnotherNodeName) {
  PodBuilder pod("p");
  pod.shape().node_name = "n2";
  const Answer refused = ask(NodeBuilder("n1"), pod);
  EXPECT_EQ(refused.verdict, (Verdict{Plugin::NodeName, Code::Unresolvable}));
  EXPECT_EQ(refused.reasons, Reasons{"node(s) didn't match the requested node name"});
  EXPECT_EQ(ask(NodeBuilder("n2"), pod).verdict, kFits);
}

TEST(LocalFilters, Taints) {
  const Verdict refused = {Plugin::TaintToleration, Code::Unresolvable};
  const auto with = [](TaintEffect effect) { return NodeBuilder("n1").taint("gpu", "", effect); };
  const Answer answer = ask(with(TaintEffect::NoSchedule), PodBuilder("p"));
  EXPECT_EQ(answer.verdict, refused);
  EXPECT_EQ(answer.reasons, Reasons{"node(s) had untolerated taint(s)"});
  EXPECT_EQ(ask(with(TaintEffect::NoExecute), PodBuilder("p")).verdict, refused);
  EXPECT_EQ(ask(with(TaintEffect::PreferNoSchedule), PodBuilder("p")).verdict, kFits);
  EXPECT_EQ(ask(with(TaintEffect::NoSchedule), PodBuilder("p").tolerate_key("gpu")).verdict, kFits);
}

TEST(LocalFilters, NodeAffinity) {
  const Answer answer = ask(NodeBuilder("n1"), PodBuilder("p").node_selector("disk", "ssd"));
  EXPECT_EQ(answer.verdict, (Verdict{Plugin::NodeAffinity, Code::Unresolvable}));
  EXPECT_EQ(answer.reasons, Reasons{"node(s) didn't match Pod's node affinity/selector"});
}

TEST(LocalFilters, HostPorts) {
  struct Case {
    const char* name;
    HostPort used;
    HostPort wanted;
    bool fits;
  };
  const Case cases[] = {
      {"same", {"0.0.0.0", "TCP", 80}, {"0.0.0.0", "TCP", 80}, false},
      {"other port", {"0.0.0.0", "TCP", 80}, {"0.0.0.0", "TCP", 81}, true},
      {"other protocol", {"0.0.0.0", "TCP", 80}, {"0.0.0.0", "UDP", 80}, true},
      {"other address", {"10.0.0.1", "TCP", 80}, {"10.0.0.2", "TCP", 80}, true},
      {"same address", {"10.0.0.1", "TCP", 80}, {"10.0.0.1", "TCP", 80}, false},
      {"every address used", {"0.0.0.0", "TCP", 80}, {"10.0.0.1", "TCP", 80}, false},
      {"every address wanted", {"10.0.0.1", "TCP", 80}, {"0.0.0.0", "TCP", 80}, false},
      {"IPv6 any is an address like others", {"::", "TCP", 80}, {"10.0.0.1", "TCP", 80}, true},
  };
  for (const Case& c : cases) {
    Cluster cluster;
    const NodeId node = add(cluster, NodeBuilder("n1"));
    add(cluster, PodBuilder("a").host_port(c.used.port, c.used.ip, c.used.protocol).on("n1"));
    const Answer answer =
        ask(cluster,
            view(cluster, PodBuilder("b").host_port(c.wanted.port, c.wanted.ip, c.wanted.protocol)),
            node);
    if (c.fits) {
      EXPECT_EQ(answer.verdict, kFits) << c.name;
      continue;
    }
    EXPECT_EQ(answer.verdict, (Verdict{Plugin::NodePorts, Code::Unschedulable})) << c.name;
    EXPECT_EQ(answer.reasons,
              Reasons{"node(s) didn't have free ports for the requested pod ports"});
  }
}

// A node of 4 cpu, 8 GiB, 10 GiB storage, 2 FPGAs and 2 pods, half of each in use.
TEST(LocalFilters, ResourcesFit) {
  struct Case {
    const char* name;
    PodBuilder pod;
    Code code;
    Reasons reasons;  // sorted
  };
  const auto p = [] { return PodBuilder("p"); };
  const std::string fpga = "example.com/fpga";
  const std::string storage = "ephemeral-storage";
  const Case cases[] = {
      {"exactly the rest",
       p().cpu(2).memory_gib(4).resource(storage, 5 * kGib).resource(fpga, 1),
       Code::Fits,
       {}},
      {"cpu", p().cpu_milli(2001), Code::Unschedulable, {"Insufficient cpu"}},
      {"cpu beyond the node", p().cpu_milli(4001), Code::Unresolvable, {"Insufficient cpu"}},
      {"memory", p().memory(4 * kGib + 1), Code::Unschedulable, {"Insufficient memory"}},
      {"memory beyond the node",
       p().memory(8 * kGib + 1),
       Code::Unresolvable,
       {"Insufficient memory"}},
      {"storage",
       p().resource(storage, 6 * kGib),
       Code::Unschedulable,
       {"Insufficient ephemeral-storage"}},
      {"scalar", p().resource(fpga, 2), Code::Unschedulable, {"Insufficient example.com/fpga"}},
      {"scalar beyond the node",
       p().resource(fpga, 3),
       Code::Unresolvable,
       {"Insufficient example.com/fpga"}},
      {"scalar no node has",
       p().resource("example.com/none", 1),
       Code::Unresolvable,
       {"Insufficient example.com/none"}},
      {"of which nothing is asked", p().resource("example.com/none", 0), Code::Fits, {}},
      {"several, one of them for good",
       p().cpu(3).memory_gib(9).resource(fpga, 2),
       Code::Unresolvable,
       {"Insufficient cpu", "Insufficient example.com/fpga", "Insufficient memory"}},
      {"several, none for good",
       p().cpu(3).memory_gib(5),
       Code::Unschedulable,
       {"Insufficient cpu", "Insufficient memory"}},
  };
  for (const Case& c : cases) {
    Cluster cluster;
    const NodeId node = add(cluster, NodeBuilder("n1")
                                         .cpu(4)
                                         .memory_gib(8)
                                         .pods(2)
                                         .resource(storage, 10 * kGib)
                                         .resource(fpga, 2));
    add(cluster, PodBuilder("old")
                     .cpu(2)
                     .memory_gib(4)
                     .resource(storage, 5 * kGib)
                     .resource(fpga, 1)
                     .on("n1"));
    const Answer answer = ask(cluster, view(cluster, c.pod), node);
    EXPECT_EQ(answer.verdict.code, c.code) << c.name;
    EXPECT_EQ(answer.reasons, c.reasons) << c.name;
    if (c.code != Code::Fits) {
      EXPECT_EQ(answer.verdict.plugin, Plugin::NodeResourcesFit) << c.name;
    }
  }
}

TEST(LocalFilters, TooManyPods) {
  Cluster cluster;
  const NodeId node = add(cluster, NodeBuilder("n1").pods(1));
  add(cluster, PodBuilder("old").on("n1"));
  const Answer answer = ask(cluster, view(cluster, PodBuilder("p")), node);
  EXPECT_EQ(answer.verdict, (Verdict{Plugin::NodeResourcesFit, Code::Unschedulable}));
  EXPECT_EQ(answer.reasons, Reasons{"Too many pods"});
}

// Observed pods may hold more than the node has left after it shrank.
TEST(LocalFilters, AnOvercommittedNodeTakesOnlyPodsThatAskForNothing) {
  Cluster cluster;
  const NodeId node = add(cluster, NodeBuilder("n1").cpu(2));
  add(cluster, PodBuilder("old").cpu(4).on("n1"));
  EXPECT_EQ(ask(cluster, view(cluster, PodBuilder("a").cpu_milli(1)), node).verdict,
            (Verdict{Plugin::NodeResourcesFit, Code::Unschedulable}));
  EXPECT_EQ(ask(cluster, view(cluster, PodBuilder("b")), node).verdict, kFits);
}

TEST(LocalFilters, DeclaredFeatures) {
  const auto pod = PodBuilder("p").needs_feature("A").needs_feature("B");
  EXPECT_EQ(ask(NodeBuilder("n1").feature("B").feature("A").feature("C"), pod).verdict, kFits);
  const Answer answer = ask(NodeBuilder("n1").feature("A"), pod);
  EXPECT_EQ(answer.verdict, (Verdict{Plugin::NodeDeclaredFeatures, Code::Unresolvable}));
  EXPECT_EQ(answer.reasons, Reasons{"node(s) didn't match Pod's required features"});
}

TEST(LocalFilters, TheFirstPluginInOrderSpeaks) {
  // Refused by taints, affinity, fit and features: taints come first, features last.
  const auto node = NodeBuilder("n1").cpu(1).taint("gpu");
  auto pod = PodBuilder("p").cpu(2).node_selector("disk", "ssd").needs_feature("A");
  EXPECT_EQ(ask(node, pod).verdict.plugin, Plugin::TaintToleration);
  pod.tolerate_key("gpu");
  EXPECT_EQ(ask(node, pod).verdict.plugin, Plugin::NodeAffinity);
  pod.shape().node_selector.clear();
  EXPECT_EQ(ask(node, pod).verdict.plugin, Plugin::NodeResourcesFit);
  pod.cpu(1);
  EXPECT_EQ(ask(node, pod).verdict.plugin, Plugin::NodeDeclaredFeatures);
}

// ---- PreFilter of NodeAffinity ---------------------------------------------------------------

class PinnedNames : public ::testing::Test {
 protected:
  PinnedNames() {
    for (const char* name : {"n1", "n2", "n3"}) ids_.push_back(add(cluster_, NodeBuilder(name)));
  }
  FilterCycle cycle(const PodBuilder& pod) {
    view_ = view(cluster_, pod);
    return FilterCycle(cluster_, view_);
  }
  static Requirement name(const char* node) { return in("metadata.name", {node}); }

  Cluster cluster_;
  std::vector<NodeId> ids_;
  PodView view_;
};

TEST_F(PinnedNames, OnlyTheUnionIsTried) {
  const auto pinned =
      cycle(PodBuilder("p").node_affinity({}, {name("n3")}).node_affinity({}, {name("n1")}));
  ASSERT_TRUE(pinned.prefilter().only_nodes);
  EXPECT_EQ(*pinned.prefilter().only_nodes, (std::vector{ids_[0], ids_[2]}));
  EXPECT_EQ(pinned.check(ids_[0], nullptr), kFits);
  Reasons reasons;
  EXPECT_EQ(pinned.check(ids_[1], &reasons), (Verdict{Plugin::None, Code::Unresolvable}));
  EXPECT_EQ(reasons, Reasons{"node(s) didn't satisfy plugin(s) [NodeAffinity]"});
}

TEST_F(PinnedNames, ATermWithoutNameLeavesAllNodesOpen) {
  const auto open =
      cycle(PodBuilder("p").node_affinity({}, {name("n3")}).node_affinity({absent("disk")}));
  EXPECT_FALSE(open.prefilter().only_nodes);
}

TEST_F(PinnedNames, ContradictoryNamesRefuseThePod) {
  const auto none = cycle(PodBuilder("p").node_affinity({}, {name("n1"), name("n2")}));
  EXPECT_EQ(none.prefilter().verdict, (Verdict{Plugin::NodeAffinity, Code::Unresolvable}));
  EXPECT_EQ(none.prefilter().reasons, Reasons{"pod affinity terms conflict"});
}

TEST_F(PinnedNames, AnUnknownNameLeavesNothingToTry) {
  const auto gone = cycle(PodBuilder("p").node_affinity({}, {name("n9")}));
  EXPECT_TRUE(gone.prefilter().verdict.fits());
  ASSERT_TRUE(gone.prefilter().only_nodes);
  EXPECT_TRUE(gone.prefilter().only_nodes->empty());
}

TEST_F(PinnedNames, OtherRequirementsOfThePinnedTermStillHold) {
  const auto pinned = cycle(PodBuilder("p").node_affinity({exists("disk")}, {name("n1")}));
  EXPECT_EQ(pinned.check(ids_[0], nullptr), (Verdict{Plugin::NodeAffinity, Code::Unresolvable}));
}

}  // namespace
}  // namespace jogak::core
