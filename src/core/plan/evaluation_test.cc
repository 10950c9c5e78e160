// SPDX-License-Identifier: Apache-2.0
// The steps around the filters: gates, deletion, nominations, the message, the best nodes. The
// filters themselves and the texts in full are compared with recorded verdicts in test/golden.
#include "core/plan/evaluation.h"

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

class EvaluationTest : public ::testing::Test {
 protected:
  Evaluation run(const PodBuilder& pod) {
    const PodId id = add(cluster, pod);
    const std::uint64_t before = cluster.digest();
    Evaluation e = evaluate(cluster, id);
    EXPECT_EQ(cluster.digest(), before);
    return e;
  }
  std::vector<std::string> names(const std::vector<NodeId>& nodes) const {
    std::vector<std::string> out;
    for (const NodeId node : nodes) out.emplace_back(cluster.text(cluster.node(node).name));
    return out;
  }

  Cluster cluster;
};

using Names = std::vector<std::string>;

TEST_F(EvaluationTest, GatesHoldThePod) {
  add(cluster, NodeBuilder("n1"));
  PodBuilder pod("p");
  pod.shape().gates = {"example.com/b", "example.com/a"};
  const Evaluation e = run(pod.terminating());
  EXPECT_EQ(e.outcome, Outcome::Gated);
  EXPECT_EQ(e.prefilter.verdict.plugin, Plugin::SchedulingGates);
  EXPECT_EQ(e.prefilter.reasons,
            (Reasons{"waiting for scheduling gates: [example.com/b example.com/a]"}));
}

TEST_F(EvaluationTest, ADeletedPodIsSkipped) {
  add(cluster, NodeBuilder("n1"));
  const Evaluation e = run(PodBuilder("p").terminating());
  EXPECT_EQ(e.outcome, Outcome::SkippedDeleting);
  EXPECT_EQ(e.message, "skip schedule deleting pod: default/p");
}

TEST_F(EvaluationTest, WithoutNodesNobodyIsPreempted) {
  const Evaluation e = run(PodBuilder("p").priority(5));
  EXPECT_EQ(e.outcome, Outcome::Unschedulable);
  EXPECT_EQ(e.message, "no nodes available to schedule pods");
  EXPECT_FALSE(e.preemption_attempted);
}

TEST_F(EvaluationTest, ReasonsAreCountedAndPreemptionHasTheLastWord) {
  add(cluster, NodeBuilder("n1").cpu(1));
  add(cluster, NodeBuilder("n2").cpu(1));
  add(cluster, NodeBuilder("n3").taint("dedicated"));
  const Evaluation e = run(PodBuilder("p").cpu(2));
  EXPECT_EQ(e.message,
            "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. no "
            "new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not "
            "helpful for scheduling.");
  EXPECT_TRUE(e.preemption_attempted);
}

TEST_F(EvaluationTest, APinnedPodSeesOneNode) {
  add(cluster, NodeBuilder("n1"));
  add(cluster, NodeBuilder("n2").cpu(1));
  add(cluster, NodeBuilder("n3"));
  PodBuilder pod("p");
  pod.cpu(2).node_affinity({}, {in("metadata.name", {"n2"})});
  const Evaluation e = run(pod);
  EXPECT_EQ(e.message.substr(0, e.message.find(". ")),
            "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) "
            "[NodeAffinity]");
  // Nominated elsewhere: that node is looked at all the same, and refused in its own words.
  const Evaluation again = run(pod.nominate("n1"));
  EXPECT_EQ(again.nodes[0].verdict.plugin, Plugin::NodeAffinity);
  EXPECT_EQ(again.nodes[0].reasons, (Reasons{"node(s) didn't match Pod's node affinity/selector"}));
  EXPECT_EQ(again.nodes[2].verdict.plugin, Plugin::None);
}

TEST_F(EvaluationTest, TheNominatedNodeIsTakenIfItFits) {
  add(cluster, NodeBuilder("n1"));
  add(cluster, NodeBuilder("n2").cpu(4));
  add(cluster, PodBuilder("busy").cpu(3).on("n2"));
  const Evaluation e = run(PodBuilder("p").cpu(1).nominate("n2"));
  EXPECT_EQ(e.outcome, Outcome::Scheduled);
  EXPECT_TRUE(e.nominated_shortcut);
  EXPECT_EQ(names(e.top), (Names{"n2"}));
  EXPECT_TRUE(e.scores.empty());
  const Evaluation full = run(PodBuilder("p").cpu(2).nominate("n2"));
  EXPECT_FALSE(full.nominated_shortcut);
  EXPECT_EQ(names(full.top), (Names{"n1"}));
}

TEST_F(EvaluationTest, AllNodesWithTheBestTotalAreTop) {
  for (const char* name : {"n1", "n2", "n3"}) add(cluster, NodeBuilder(name).cpu(8));
  add(cluster, PodBuilder("busy").cpu(6).on("n2"));
  const Evaluation e = run(PodBuilder("p").cpu(1));
  EXPECT_EQ(names(e.feasible), (Names{"n1", "n2", "n3"}));
  EXPECT_EQ(names(e.top), (Names{"n1", "n3"}));
  EXPECT_EQ(e.totals[0], e.totals[2]);
  EXPECT_GT(e.totals[0], e.totals[1]);
}

}  // namespace
}  // namespace jogak::core
