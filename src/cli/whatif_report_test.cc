// SPDX-License-Identifier: Apache-2.0
//
// Answers as people and programs read them, whole.
#include "cli/whatif_report.h"

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/model/testing.h"

namespace jogak::cli {
namespace {

using core::Cluster;
using core::testing::add;
using core::testing::NodeBuilder;
using core::testing::PodBuilder;

constexpr const char* kA100 = "NVIDIA-A100-SXM4-80GB";

constexpr std::string_view kHugeWaits =
    "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. no new claims to deallocate, "
    "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.";
constexpr std::string_view kLowWaits =
    "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. no new claims to deallocate, "
    "preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, "
    "1 Preemption is not helpful for scheduling.";

PodBuilder owned(std::string name) {
  PodBuilder pod(std::move(name));
  pod.spec().owner_kind = "ReplicaSet";
  return pod;
}

sim::WhatifReport ask(Cluster& cluster, const sim::WhatifChanges& changes) {
  auto report = sim::whatif(cluster, changes);
  EXPECT_TRUE(report.has_value()) << report.error().what;
  return report.value_or(sim::WhatifReport());
}

// a: 4 A100 [low 4, of nobody]   b: 2 A100 [web 1]   waiting: high 4, huge 8
void fill(Cluster& cluster) {
  add(cluster, NodeBuilder("a").cpu(16).gpus(kA100, 4, 81920));
  add(cluster, NodeBuilder("b").cpu(16).gpus(kA100, 2, 81920));
  add(cluster, PodBuilder("low").cpu(4).gpus(4).on("a", {{0}, {1}, {2}, {3}}));
  add(cluster, owned("web").cpu(1).gpus(1).on("b", {{0}}));
  add(cluster, owned("high").cpu(4).gpus(4).priority(10));
  add(cluster, owned("huge").cpu(4).gpus(8));
}

TEST(WhatifReport, TellsPeopleWhatBecomesOfEachPod) {
  Cluster cluster;
  fill(cluster);
  const auto small = add(cluster, owned("small").cpu(1).gpu_milli(500));
  const sim::WhatifReport report =
      ask(cluster,
          {.remove_nodes = {"b"}, .copy_nodes = {{"b", 1}}, .new_pods = {small}, .policy = "kube"});
  EXPECT_EQ(whatif_text(report, {.rows_max = 20, .left_out = {"ConfigMap x (why)"}}),
            R"(added    1 node: b-new-1
removed  1 node: b
created  1 pod
policy   kube

would start: 2 pods:
  POD            PRIORITY  NODE     DEVICES           NOTE
  default/high         10  a        gpu 0-3           preempts default/low
  default/small         0  b-new-1  gpu 1 (500/1000)

would move: 1 pod:
  POD          PRIORITY  FROM  TO       DEVICES  NOTE
  default/web         0  b     b-new-1  gpu 0

would be preempted: 1 pod:
  POD          PRIORITY  FROM  BY            THEN   NOTE
  default/low         0  a     default/high  waits  has no controller: create it again yourself

would wait: 2 pods:
  default/huge
    )" + std::string(kHugeWaits) +
                R"(
  default/low (now on a)
    )" + std::string(kLowWaits) +
                R"(

left out of the manifests:
  ConfigMap x (why)

                BEFORE  AFTER
nodes                2      2
GPUs                 6      6
GPUs allocated       5    5.5
GPUs idle            1    0.5
CPUs requested       5      6
CPUs                32     32
pods on nodes        2      3
pods waiting         2      2

2 of 5 pods would wait
)");
}

TEST(WhatifReport, TellsProgramsTheSame) {
  Cluster cluster;
  fill(cluster);
  const sim::WhatifReport report = ask(cluster, {.policy = "kube"});
  EXPECT_EQ(whatif_doc(report, {}).yaml(), R"(policy: kube
addedNodes: []
drainedNodes: []
removedNodes: []
starts:
- pod: default/high
  priority: 10
  node: a
  gpus: 4
  devices:
  - gpu: 0
  - gpu: 1
  - gpu: 2
  - gpu: 3
  preempts:
  - default/low
moves: []
preempted:
- pod: default/low
  priority: 0
  from: a
  preemptedBy: default/high
  hasNoController: true
  message: ")" + std::string(kLowWaits) + R"("
waits:
- pod: default/huge
  priority: 0
  message: ")" + std::string(kHugeWaits) + R"("
- pod: default/low
  priority: 0
  from: a
  preemptedBy: default/high
  hasNoController: true
  message: ")" + std::string(kLowWaits) + R"("
endWithNode: []
beingDeleted: 0
leftOut: []
before:
  nodes: 2
  gpuMilli: 6000
  gpuAllocatedMilli: 5000
  gpuIdleMilli: 1000
  cpuMilli: 32000
  cpuRequestedMilli: 5000
  podsOnNodes: 2
  podsWaiting: 2
after:
  nodes: 2
  gpuMilli: 6000
  gpuAllocatedMilli: 5000
  gpuIdleMilli: 1000
  cpuMilli: 32000
  cpuRequestedMilli: 5000
  podsOnNodes: 2
  podsWaiting: 2
)");
}

TEST(WhatifReport, AQuietClusterSaysSo) {
  Cluster cluster;
  add(cluster, NodeBuilder("a").cpu(16));
  EXPECT_EQ(whatif_text(ask(cluster, {}), {}), R"(policy   jogak

                BEFORE  AFTER
nodes                1      1
GPUs                 0      0
GPUs allocated       0      0
GPUs idle            0      0
CPUs requested       0      0
CPUs                16     16
pods on nodes        0      0
pods waiting         0      0

nothing waits, and nothing would move
)");
}

TEST(WhatifReport, LongSectionsAreCutAndPodsThatWaitAlikeShareARow) {
  Cluster cluster;
  add(cluster, NodeBuilder("a").cpu(3));
  for (int i = 0; i < 10; ++i) add(cluster, owned(fmt::format("p{}", i)).cpu(1));
  const std::string text = whatif_text(ask(cluster, {}), {.rows_max = 2, .left_out = {}});
  EXPECT_NE(text.find("would start: 3 pods:\n"
                      "  POD         PRIORITY  NODE  DEVICES  NOTE\n"
                      "  default/p0         0  a\n"
                      "  default/p1         0  a\n"
                      "  ... and 1 more (--all shows them)\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("would wait: 7 pods:\n"
                      "  7 pods: default/p3, default/p4, default/p5 and 4 more\n"
                      "    0/1 nodes are available: 1 Insufficient cpu."),
            std::string::npos)
      << text;
  EXPECT_TRUE(text.ends_with("\n7 of 10 pods would wait\n")) << text;
}

}  // namespace
}  // namespace jogak::cli
