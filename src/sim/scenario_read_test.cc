// SPDX-License-Identifier: Apache-2.0
// Scenario files: what they mean, and what is wrong with bad ones.
#include <gtest/gtest.h>

#include "sim/samples.h"
#include "sim/scenario.h"

namespace jogak::sim {
namespace {

Result<Scenario> parse(std::string_view text) {
  Scenario scenario;
  JOGAK_TRY_VOID(parse_scenario("s.yaml", text, scenario));
  JOGAK_TRY_VOID(check_scenario(scenario));
  return scenario;
}

std::string error_of(std::string_view text) {
  const auto scenario = parse(text);
  return scenario ? "" : scenario.error().what;
}

TEST(ScenarioRead, APodThatNoEmptyNodeCanHoldIsAMistake) {
  EXPECT_EQ(error_of("nodes:\n  - {name: n, cpu: 8, memory: 8Gi, gpu: {count: 2, model: T4}}\n"
                     "pods:\n  - {name: ok, gpu: 2}\n  - {name: big, gpu: 4}\n"),
            "s.yaml:5: pods[1]: pod default/big fits no node even if that is empty: Insufficient "
            "nvidia.com/gpu; ask for less or add a node");
  EXPECT_EQ(
      error_of("nodes:\n  - {name: n, cpu: 8, memory: 8Gi}\npods:\n  - {name: fat, cpu: 9}\n"),
      "s.yaml:4: pods[0]: pod default/fat fits no node even if that is empty: Insufficient "
      "cpu; ask for less or add a node");
}

TEST(ScenarioRead, NodesAndPods) {
  const auto s = parse(R"(
name: both
policy: fgd
seed: 7
until: 90.5
nodes:
  - name: n
    count: 2
    cpu: 1500m
    memory: 4Gi
    resources: {example.com/nic: 2}
    labels: {zone: a}
    taints: [{key: k, value: v}]
    gpu: {count: 4, model: NVIDIA-A100-SXM4-80GB, memory: 80Gi, numa: [0, 0, 1, 1], nvlink: pairs}
pods:
  - {name: p, count: 2, arrival: 5, every: 2.5, run: 60, cpu: 1, priority: 3,
     gpu: {share: 0.25, count: 2}}
  - {name: q, gpu: 2, preempts: false, tolerations: [{key: k, value: v}], node_selector: {zone: a}}
)");
  ASSERT_TRUE(s.has_value()) << s.error().what;
  EXPECT_EQ(s->until_ns, 90'500'000'000);
  ASSERT_EQ(s->nodes.size(), 2U);
  EXPECT_EQ(s->nodes[1].name, "n-1");
  const core::ResourceList allocatable = {{"cpu", 1500},
                                          {"example.com/nic", 2},
                                          {"memory", std::int64_t{4} << 30},
                                          {"nvidia.com/gpu", 4},
                                          {"pods", 110}};
  EXPECT_EQ(s->nodes[1].allocatable, allocatable);
  EXPECT_EQ(s->nodes[1].gpus[0].nvlink_mask, 0b0010U);
  EXPECT_EQ(s->nodes[1].gpus[3].numa_node, 1);
  EXPECT_EQ(s->nodes[1].gpus[3].memory_mib, 81920);
  ASSERT_EQ(s->pods.size(), 3U);
  EXPECT_EQ(s->pods[1].arrival_ns, 7'500'000'000);
  EXPECT_EQ(s->pods[1].spec.shape.gpu.kind, core::GpuAsk::ShareMilli);
  EXPECT_EQ(s->pods[1].spec.shape.gpu.amount, 250);
  EXPECT_EQ(s->pods[2].run_ns, kForever);
  EXPECT_EQ(s->pods[2].spec.shape.gpu.count, 2);
  EXPECT_EQ(s->pods[2].spec.shape.nonzero_cpu, 100);
  EXPECT_EQ(mix_of_pods(*s).size(), 2U);
}

TEST(ScenarioRead, ErrorsNameLineFieldAndWhatIsRight) {
  const std::string rest = "pods: [{name: p}]\n";
  const std::string nodes = "nodes: [{name: n, cpu: 1}]\n";
  EXPECT_EQ(error_of("nodes: [{name: n, cpuu: 1}]\n" + rest),
            "s.yaml:1: nodes[0].cpuu: unknown field; did you mean cpu?");
  EXPECT_NE(error_of(nodes + "pods: [{name: p, gpu: {share: 1}}]").find("0.001 to 0.999"),
            std::string::npos);
  EXPECT_NE(error_of(nodes + "pods: [{name: p, gpu: {share: 0.5, mig: 1g.5gb}}]")
                .find("one of whole, share, memory, mig"),
            std::string::npos);
  EXPECT_NE(error_of(nodes + "pods: [{cpu: 1}]").find("pods[0].name: is required"),
            std::string::npos);
  EXPECT_NE(error_of(nodes + "pods: [{name: p, cpu: -1}]").find("must not be negative"),
            std::string::npos);
  EXPECT_NE(error_of(nodes + "pods: [{name: p, run: 5m}]").find("seconds like 90"),
            std::string::npos);
  EXPECT_NE(error_of(nodes + rest + "events: [{at: 1, node: x, do: down}]").find("no node x"),
            std::string::npos);
  EXPECT_NE(error_of(nodes + rest + "events: [{at: 1, node: n, do: dwon}]").find("expected down"),
            std::string::npos);
  EXPECT_NE(error_of(nodes + rest + "policy: none\n").find("unknown policy none"),
            std::string::npos);
  EXPECT_NE(error_of(nodes + "pods: [{name: p}, {name: p}]").find("two pods"), std::string::npos);
  EXPECT_NE(error_of("nodes: [").find("s.yaml:1"), std::string::npos);
  EXPECT_NE(error_of("- a\n").find("expected one YAML document"), std::string::npos);
  EXPECT_NE(error_of("").find("expected one YAML document"), std::string::npos);
  EXPECT_NE(error_of("name: a\nname: b\n" + nodes + rest).find("given twice"), std::string::npos);
}

TEST(Samples, AreScenarioFilesAndRepeatable) {
  const auto groups = parse_sample_groups("3x8xA100-80,2x4xL40S,2xCPU");
  ASSERT_TRUE(groups.has_value());
  EXPECT_EQ(sample_gpus(*groups), 32);
  for (const bool as_json : {false, true}) {
    const Doc cluster = sample_cluster(*groups, 5);
    const Doc workload = sample_workload(*groups, {.for_seconds = 600}, 5);
    Scenario s;
    ASSERT_TRUE(parse_scenario("c", as_json ? cluster.json() : cluster.yaml(), s).has_value());
    const auto pods = parse_scenario("w", as_json ? workload.json() : workload.yaml(), s);
    ASSERT_TRUE(pods.has_value()) << pods.error().what;
    ASSERT_TRUE(check_scenario(s).has_value());
    EXPECT_EQ(s.nodes.size(), 7U);
    EXPECT_GT(s.pods.size(), 10U);
  }
  EXPECT_EQ(sample_workload(*groups, {}, 5).yaml(), sample_workload(*groups, {}, 5).yaml());
  EXPECT_NE(sample_workload(*groups, {}, 5).yaml(), sample_workload(*groups, {}, 6).yaml());
}

TEST(Samples, BadGroupsAreExplained) {
  for (const std::string_view text :
       {"", "x", "3", "3x", "3x8", "3x8xB17", "0x8xT4", "2x17xT4", "3x8xT4,", "999999999xCPU"}) {
    const auto groups = parse_sample_groups(text);
    EXPECT_FALSE(groups.has_value()) << text;
  }
  EXPECT_NE(parse_sample_groups("3x8xB17").error().what.find("A100-80"), std::string::npos);
}

}  // namespace
}  // namespace jogak::sim
