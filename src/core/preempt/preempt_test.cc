// SPDX-License-Identifier: Apache-2.0
// One small cluster per documented rule of preemption; the cluster is compared before and after.
#include "core/preempt/preempt.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/model/testing.h"
#include "core/preempt/nominated.h"

namespace jogak::core {
namespace {

using testing::add;
using testing::in;
using testing::NodeBuilder;
using testing::PodBuilder;

class PreemptTest : public ::testing::Test {
 protected:
  // Verdicts as a cycle would find them, then preemption; the cluster must be as before.
  PreemptionResult preempt(PodId pod) {
    const PodView view = PodView::of(cluster, pod);
    FilterCycle cycle(cluster, view);
    std::vector<NodeVerdict> verdicts;
    for (const NodeId node : cluster.node_order()) {
      NodeVerdict v{node, {}, {}};
      v.verdict = check_with_nominated(cluster, view, cycle, node, &v.reasons);
      EXPECT_FALSE(v.verdict.fits()) << "preemption is only asked where nothing fits";
      verdicts.push_back(v);
    }
    const std::uint64_t before = cluster.digest();
    std::vector<std::uint64_t> versions;
    for (const Node& node : cluster.nodes()) versions.push_back(node.version);
    PreemptionResult result = find_preemption(cluster, view, verdicts);
    EXPECT_EQ(cluster.digest(), before);
    EXPECT_EQ(cluster.recount(), "");
    for (std::size_t i = 0; i < versions.size(); ++i) {
      EXPECT_EQ(cluster.nodes()[i].version, versions[i]);
    }
    return result;
  }

  std::vector<std::string> names(const std::vector<PodId>& pods) const {
    std::vector<std::string> out;
    for (const PodId pod : pods) out.push_back(cluster.pod(pod).name);
    return out;
  }

  PdbSpec& budget(const std::string& name, std::vector<Requirement> selector, int allowed) {
    PdbSpec& pdb = cluster.mutable_objects().pdbs["default/" + name];
    pdb.ns = "default";
    pdb.name = name;
    pdb.selector = LabelSelector{std::move(selector)};
    pdb.disruptions_allowed = allowed;
    return pdb;
  }

  Cluster cluster;
};

using Names = std::vector<std::string>;

// 10 cpu: 4 (priority 2) + 4 (priority 1) + 2 free; 5 are wanted. One victim is enough, and it is
// the less important one.
TEST_F(PreemptTest, TakesTheLeastImportantAndNoMore) {
  add(cluster, NodeBuilder("n1").cpu(10));
  add(cluster, PodBuilder("high").cpu(4).priority(2).on("n1"));
  add(cluster, PodBuilder("low").cpu(4).priority(1).on("n1"));
  const auto result = preempt(add(cluster, PodBuilder("in").cpu(5).priority(10)));
  ASSERT_EQ(result.candidates.size(), 1U);
  EXPECT_EQ(names(result.candidates[0].victims), (Names{"low"}));
  EXPECT_EQ(result.best, (std::vector<std::size_t>{0}));
  EXPECT_EQ(result.nomination, NominationChange::Set);
  EXPECT_EQ(result.message, "");
}

TEST_F(PreemptTest, AmongEqualsTheLongestRunningStays) {
  add(cluster, NodeBuilder("n1").cpu(10));
  add(cluster, PodBuilder("young").cpu(5).start_time(2000).on("n1"));
  add(cluster, PodBuilder("old").cpu(5).start_time(1000).on("n1"));
  const auto result = preempt(add(cluster, PodBuilder("in").cpu(5).priority(10)));
  ASSERT_EQ(result.candidates.size(), 1U);
  EXPECT_EQ(names(result.candidates[0].victims), (Names{"young"}));
}

TEST_F(PreemptTest, EqualPriorityIsNeverAVictim) {
  add(cluster, NodeBuilder("n1").cpu(10));
  add(cluster, NodeBuilder("n2").cpu(10).taint("dedicated"));
  add(cluster, PodBuilder("same").cpu(10).priority(10).on("n1"));
  const auto result = preempt(add(cluster, PodBuilder("in").cpu(5).priority(10)));
  EXPECT_TRUE(result.eligible);
  EXPECT_TRUE(result.candidates.empty());
  EXPECT_EQ(result.nomination, NominationChange::Clear);
  EXPECT_EQ(result.message,
            "no new claims to deallocate, preemption: 0/2 nodes are available: 1 No preemption "
            "victims found for incoming pod, 1 Preemption is not helpful for scheduling.");
}

TEST_F(PreemptTest, NeverMeansNever) {
  add(cluster, NodeBuilder("n1").cpu(1));
  add(cluster, PodBuilder("low").cpu(1).on("n1"));
  PodBuilder pod("in");
  pod.cpu(1).priority(10);
  pod.shape().preemption = PreemptionPolicy::Never;
  const auto result = preempt(add(cluster, pod));
  EXPECT_FALSE(result.eligible);
  EXPECT_EQ(result.nomination, NominationChange::Keep);
  EXPECT_EQ(result.message,
            "no new claims to deallocate, preemption: not eligible due to "
            "preemptionPolicy=Never.");
}

TEST_F(PreemptTest, WaitsWhileAVictimTerminatesOnTheNominatedNode) {
  add(cluster, NodeBuilder("n1").cpu(4));
  PodBuilder victim("victim");
  victim.cpu(4).terminating().on("n1");
  victim.spec().preemption_victim = true;
  add(cluster, victim);
  const PodId pod = add(cluster, PodBuilder("in").cpu(2).priority(10).nominate("n1"));
  const auto waiting = preempt(pod);
  EXPECT_FALSE(waiting.eligible);
  EXPECT_EQ(waiting.not_eligible, "not eligible due to a terminating pod on the nominated node.");
  // Terminating for another reason is no promise of room for us.
  victim.spec().preemption_victim = false;
  add(cluster, victim);
  const auto tried = preempt(pod);
  EXPECT_TRUE(tried.eligible);
  ASSERT_EQ(tried.candidates.size(), 1U);
  EXPECT_EQ(names(tried.candidates[0].already_terminating), (Names{"victim"}));
}

// Two pods of 4, one has to go; the budget of "web" allows none, so "job" goes although it is the
// more important one.
TEST_F(PreemptTest, BudgetsAreKeptFirst) {
  add(cluster, NodeBuilder("n1").cpu(8));
  add(cluster, PodBuilder("web").label("app", "web").cpu(4).priority(1).on("n1"));
  add(cluster, PodBuilder("job").label("app", "job").cpu(4).priority(2).on("n1"));
  budget("web", {in("app", {"web"})}, 0);
  const PodId pod = add(cluster, PodBuilder("in").cpu(4).priority(10));
  auto result = preempt(pod);
  ASSERT_EQ(result.candidates.size(), 1U);
  EXPECT_EQ(names(result.candidates[0].victims), (Names{"job"}));
  EXPECT_EQ(result.candidates[0].pdb_violations, 0);
  // Already counted as disrupted by the API server: it costs nothing more.
  budget("web", {in("app", {"web"})}, 0).disrupted_pods = {"web"};
  result = preempt(pod);
  EXPECT_EQ(names(result.candidates[0].victims), (Names{"web"}));
}

TEST_F(PreemptTest, BudgetsAreCountedInOrderOfImportance) {
  add(cluster, NodeBuilder("n1").cpu(6));
  for (const char* name : {"a", "b", "c"}) {
    add(cluster, PodBuilder(name).label("app", "web").cpu(2).start_time(name[0]).on("n1"));
  }
  budget("web", {in("app", {"web"})}, 1);
  const auto result = preempt(add(cluster, PodBuilder("in").cpu(6).priority(10)));
  ASSERT_EQ(result.candidates.size(), 1U);
  EXPECT_EQ(names(result.candidates[0].victims), (Names{"a", "b", "c"}));
  EXPECT_EQ(result.candidates[0].pdb_violations, 2);
}

TEST_F(PreemptTest, EmptySelectorsAndLabellessPodsKnowNoBudget) {
  add(cluster, NodeBuilder("n1").cpu(4));
  add(cluster, PodBuilder("bare").cpu(2).on("n1"));
  add(cluster, PodBuilder("web").label("app", "web").cpu(2).on("n1"));
  budget("everything", {}, 0);
  budget("absent", {testing::absent("tier")}, 2);
  const auto result = preempt(add(cluster, PodBuilder("in").cpu(4).priority(10)));
  ASSERT_EQ(result.candidates.size(), 1U);
  EXPECT_EQ(result.candidates[0].pdb_violations, 0);
}

TEST_F(PreemptTest, CheapestNodeByTheDocumentedOrder) {
  const auto lone_victim = [&](const char* node, std::int32_t priority, std::int64_t start) {
    add(cluster, NodeBuilder(node).cpu(4));
    add(cluster, PodBuilder(std::string("on-") + node)
                     .label("node", node)
                     .cpu(4)
                     .priority(priority)
                     .start_time(start)
                     .on(node));
  };
  lone_victim("budget", 0, 900);
  lone_victim("high", 5, 900);
  lone_victim("old", 1, 100);
  lone_victim("young-b", 1, 900);
  lone_victim("young-a", 1, 900);
  add(cluster, NodeBuilder("two").cpu(4));  // the same highest priority, a larger sum
  add(cluster, PodBuilder("two-1").cpu(2).priority(1).start_time(900).on("two"));
  add(cluster, PodBuilder("two-2").cpu(2).priority(0).start_time(900).on("two"));
  budget("b", {in("node", {"budget"})}, 0);
  const auto result = preempt(add(cluster, PodBuilder("in").cpu(4).priority(10)));
  EXPECT_EQ(result.candidates.size(), 6U);
  Names best;
  for (const std::size_t i : result.best) {
    best.emplace_back(cluster.text(cluster.node(result.candidates[i].node).name));
  }
  EXPECT_EQ(best, (Names{"young-a", "young-b"}));
}

TEST_F(PreemptTest, LowerNominationsOfTheBestNodeAreLost) {
  add(cluster, NodeBuilder("n1").cpu(4));
  add(cluster, PodBuilder("run").cpu(4).on("n1"));
  add(cluster, PodBuilder("later").cpu(1).priority(5).nominate("n1"));
  add(cluster, PodBuilder("equal").cpu(1).priority(10).nominate("n1"));
  const auto result = preempt(add(cluster, PodBuilder("in").cpu(3).priority(10)));
  ASSERT_EQ(result.best.size(), 1U);
  EXPECT_EQ(names(result.loses_nomination[0]), (Names{"later"}));
}

// Room of 4: an equal nominated pod takes 2 of it, a gated one and a lower one take nothing.
TEST_F(PreemptTest, NominatedPodsCountFromEqualPriorityOn) {
  const NodeId node = add(cluster, NodeBuilder("n1").cpu(4));
  add(cluster, PodBuilder("lower").cpu(4).priority(5).nominate("n1"));
  PodBuilder gated("gated");
  gated.cpu(4).priority(20).nominate("n1");
  gated.shape().gates = {"example.com/wait"};
  add(cluster, gated);
  const PodId pod = add(cluster, PodBuilder("in").cpu(3).priority(10));
  const PodView view = PodView::of(cluster, pod);
  FilterCycle cycle(cluster, view);
  EXPECT_TRUE(check_with_nominated(cluster, view, cycle, node, nullptr).fits());
  add(cluster, PodBuilder("equal").cpu(2).priority(10).nominate("n1"));
  Reasons reasons;
  EXPECT_FALSE(check_with_nominated(cluster, view, cycle, node, &reasons).fits());
  EXPECT_EQ(reasons, (Reasons{"Insufficient cpu"}));
}

// The pod may use the nominated pod's room, but not lean on it: it may never come.
TEST_F(PreemptTest, NominatedPodsDoNotSatisfyAffinity) {
  const NodeId node = add(cluster, NodeBuilder("n1").cpu(4));
  add(cluster, PodBuilder("friend").label("app", "db").priority(10).nominate("n1"));
  PodBuilder pod("in");
  pod.priority(10);
  pod.shape().required_affinity.push_back(
      {LabelSelector{{in("app", {"db"})}}, "kubernetes.io/hostname", {}, {}, 0});
  const PodView view = PodView::of(cluster, add(cluster, pod));
  FilterCycle cycle(cluster, view);
  Reasons reasons;
  EXPECT_FALSE(check_with_nominated(cluster, view, cycle, node, &reasons).fits());
  EXPECT_EQ(reasons, (Reasons{"node(s) didn't match pod affinity rules"}));
}

// Anti-affinity of a pod that is only nominated is honoured, also if nobody else has any.
TEST_F(PreemptTest, NominatedPodsRefuseByAntiAffinity) {
  const NodeId node = add(cluster, NodeBuilder("n1").cpu(4));
  PodBuilder loner("loner");
  loner.priority(10).nominate("n1");
  loner.shape().required_anti_affinity.push_back(
      {LabelSelector{}, "kubernetes.io/hostname", {}, {}, 0});
  add(cluster, loner);
  const PodView view = PodView::of(cluster, add(cluster, PodBuilder("in").priority(10)));
  FilterCycle cycle(cluster, view);
  EXPECT_FALSE(check_with_nominated(cluster, view, cycle, node, nullptr).fits());
  EXPECT_TRUE(cycle.check(node, nullptr).fits()) << "the cycle must be as before";
}

// Device 0 is full of low shares, device 1 has a high one: only device 0 can be freed, and for half
// a device one of its two pods is enough.
TEST_F(PreemptTest, FreesSharesOfADevice) {
  add(cluster, NodeBuilder("n1").gpus("A100", 2, 40960));
  add(cluster, PodBuilder("low-a").gpu_milli(500).start_time(1).on("n1", {{0, 500, -1}}));
  add(cluster, PodBuilder("low-b").gpu_milli(500).start_time(2).on("n1", {{0, 500, -1}}));
  add(cluster, PodBuilder("high").gpu_milli(600).priority(50).on("n1", {{1, 600, -1}}));
  auto result = preempt(add(cluster, PodBuilder("half").gpu_milli(500).priority(10)));
  ASSERT_EQ(result.candidates.size(), 1U);
  EXPECT_EQ(names(result.candidates[0].victims), (Names{"low-b"}));
  result = preempt(add(cluster, PodBuilder("all").gpu_milli(900).priority(10)));
  ASSERT_EQ(result.candidates.size(), 1U);
  EXPECT_EQ(names(result.candidates[0].victims), (Names{"low-a", "low-b"}));
}

// A27: the pod on the unhealthy device frees nothing by going.
TEST_F(PreemptTest, AVictimOnAnUnhealthyDeviceDoesNotHelp) {
  NodeBuilder node("n1");
  node.gpus("A100", 2, 40960);
  node.spec().gpus[0].health = GpuHealth::Unhealthy;
  add(cluster, node);
  add(cluster, PodBuilder("sick").gpus(1).start_time(1).on("n1", {{0, 0, -1}}));
  add(cluster, PodBuilder("well").gpus(1).start_time(2).on("n1", {{1, 0, -1}}));
  PodBuilder pod("in");
  pod.gpus(1).priority(10);
  const auto result = preempt(add(cluster, pod));
  ASSERT_EQ(result.candidates.size(), 1U);
  EXPECT_EQ(names(result.candidates[0].victims), (Names{"well"}));
}

// The nominated pod's devices are still held by its victims: what becomes free is not for us.
TEST_F(PreemptTest, NominatedPodsKeepDevicesThatAreNotFreeYet) {
  const NodeId node = add(cluster, NodeBuilder("n1").gpus("A100", 2, 40960));
  add(cluster, PodBuilder("leaving").gpus(1).terminating().on("n1", {{0, 0, -1}}));
  add(cluster, PodBuilder("promised").gpus(2).priority(20).nominate("n1"));
  PodBuilder share("in");
  share.gpu_milli(100).priority(10);
  const PodView view = PodView::of(cluster, add(cluster, share));
  FilterCycle cycle(cluster, view);
  EXPECT_TRUE(cycle.check(node, nullptr).fits());
  EXPECT_FALSE(check_with_nominated(cluster, view, cycle, node, nullptr).fits());
  EXPECT_EQ(cluster.recount(), "");
}

// Three small instances lie across both halves; the larger one needs one half to itself.
TEST_F(PreemptTest, FreesAHalfOfAPartitionedDevice) {
  NodeBuilder node("n1");
  GpuSpec gpu;
  gpu.memory_mib = 40960;
  gpu.mig_enabled = true;
  gpu.mig_dynamic = true;
  node.gpu(gpu);
  node.spec().gpu_model = "NVIDIA-A100-SXM4-40GB";
  add(cluster, node);
  add(cluster, PodBuilder("left-1").mig("1g.5gb").start_time(1).on("n1", {{0, 0, 0}}));
  add(cluster, PodBuilder("left-2").mig("1g.5gb").start_time(2).on("n1", {{0, 0, 2}}));
  add(cluster, PodBuilder("right").mig("1g.5gb").start_time(3).on("n1", {{0, 0, 5}}));
  const auto result = preempt(add(cluster, PodBuilder("in").mig("3g.20gb").priority(10)));
  ASSERT_EQ(result.candidates.size(), 1U);
  EXPECT_EQ(names(result.candidates[0].victims), (Names{"right"}));
}

// Two users of one port, bound past the scheduler. kube-scheduler forgets the port with the first
// of them; its victims are ours, and a nominated pod's port stays taken all the same.
TEST_F(PreemptTest, APortWithSeveralUsersIsForgottenWithTheFirst) {
  const NodeId node = add(cluster, NodeBuilder("n1"));
  add(cluster, PodBuilder("low").host_port(80).priority(1).on("n1"));
  add(cluster, PodBuilder("high").host_port(80).priority(50).on("n1"));
  const PodId pod = add(cluster, PodBuilder("in").host_port(80).priority(10));
  const auto result = preempt(pod);
  ASSERT_EQ(result.candidates.size(), 1U);
  EXPECT_EQ(names(result.candidates[0].victims), (Names{"low"}));
  const PodView view = PodView::of(cluster, pod);
  FilterCycle cycle(cluster, view);
  EXPECT_FALSE(cycle.check(node, nullptr).fits()) << "the ledger counts both";
  add(cluster, PodBuilder("promised").host_port(80).priority(10).nominate("n1"));
  EXPECT_TRUE(preempt(pod).candidates.empty());
}

// 300 equal nodes: the search ends at a hundred candidates, wherever it starts.
TEST_F(PreemptTest, LargeClustersAreNotSearchedToTheEnd) {
  for (int i = 0; i < 300; ++i) {
    const std::string name = "n" + std::to_string(1000 + i);
    add(cluster, NodeBuilder(name).cpu(1));
    add(cluster, PodBuilder("p" + name).cpu(1).start_time(i).on(name));
  }
  const auto result = preempt(add(cluster, PodBuilder("in").cpu(1).priority(1)));
  EXPECT_EQ(result.candidates.size(), 100U);
  for (std::size_t i = 1; i < result.candidates.size(); ++i) {
    EXPECT_LT(cluster.rank(result.candidates[i - 1].node), cluster.rank(result.candidates[i].node));
  }
}

}  // namespace
}  // namespace jogak::core
