// SPDX-License-Identifier: Apache-2.0
// Scenarios played out: queueing, preemption, loss and repair, each drawn as a small timetable.
#include "sim/scenario_run.h"

#include <gtest/gtest.h>

#include "sim/samples.h"
#include "sim/scenario_report.h"
#include "sim/svg_chart.h"

namespace jogak::sim {
namespace {

// One node with two whole GPUs and 8 cpu.
constexpr std::string_view kNode = "nodes: [{name: n, cpu: 8, gpu: {count: 2, model: T4}}]\n";

ScenarioResult play(std::string_view text, std::string_view policy = "") {
  Scenario s;
  const auto parsed = parse_scenario("s.yaml", text, s);
  EXPECT_TRUE(parsed.has_value()) << parsed.error().what;
  const auto checked = check_scenario(s);
  EXPECT_TRUE(checked.has_value()) << checked.error().what;
  auto result = run_scenario(s, {.policy = std::string(policy), .check = true});
  EXPECT_TRUE(result.has_value());
  return *std::move(result);
}

std::int64_t start_s(const ScenarioResult& r, std::size_t pod) {
  return r.pods[pod].start_ns < 0 ? -1 : r.pods[pod].start_ns / kSecondNs;
}
std::int64_t end_s(const ScenarioResult& r, std::size_t pod) {
  return r.pods[pod].end_ns < 0 ? -1 : r.pods[pod].end_ns / kSecondNs;
}

TEST(ScenarioRun, WaitingPodsStartWhenSomethingEnds) {
  // a b run 0-100; c waits for 2 GPUs until 100, d (1 GPU, later, same priority) until c ends at
  // 150.
  const auto r = play(std::string(kNode) + R"(pods:
  - {name: ab, count: 2, run: 100, gpu: 1}
  - {name: c, arrival: 10, run: 50, gpu: 2}
  - {name: d, arrival: 20, run: 10, gpu: 1})");
  EXPECT_EQ(start_s(r, 2), 100);
  EXPECT_EQ(start_s(r, 3), 150);
  EXPECT_EQ(r.wait.pods, 4);
  EXPECT_EQ(r.wait.p99_ns, 130 * kSecondNs);
  EXPECT_EQ(r.end_ns, 160 * kSecondNs);
}

TEST(ScenarioRun, WholeGpusAreNotFoundOnNodesWithoutAny) {
  const auto r = play(R"(nodes:
  - {name: a-cpu, cpu: 8}
  - {name: g, cpu: 8, gpu: {count: 1, model: T4}}
pods:
  - {name: first, run: 100, gpu: 1}
  - {name: second, run: 50, gpu: 1})");
  EXPECT_EQ(start_s(r, 0), 0);
  EXPECT_EQ(start_s(r, 1), 100);
}

TEST(ScenarioRun, PriorityGoesFirstAmongWaiting) {
  const auto r = play(std::string(kNode) + R"(preemption: false
pods:
  - {name: ab, count: 2, run: 100, gpu: 1}
  - {name: low, arrival: 10, run: 50, gpu: 2}
  - {name: high, arrival: 20, run: 10, gpu: 2, priority: 5})");
  EXPECT_EQ(start_s(r, 3), 100);
  EXPECT_EQ(start_s(r, 2), 110);
  EXPECT_EQ(r.preempted, 0);
}

TEST(ScenarioRun, HighPriorityPreemptsAndTheVictimStartsOver) {
  const auto r = play(std::string(kNode) + R"(pods:
  - {name: low, run: 100, gpu: 2}
  - {name: high, arrival: 20, run: 10, gpu: 1, priority: 5})");
  EXPECT_EQ(start_s(r, 1), 20);
  EXPECT_EQ(r.pods[0].evictions, 1);
  EXPECT_EQ(start_s(r, 0), 30);
  EXPECT_EQ(end_s(r, 0), 130);
  EXPECT_EQ(r.preempted, 1);
}

TEST(ScenarioRun, PodsThatMustNotPreemptWait) {
  const auto r = play(std::string(kNode) + R"(pods:
  - {name: low, run: 100, gpu: 2}
  - {name: high, arrival: 20, run: 10, gpu: 1, priority: 5, preempts: false})");
  EXPECT_EQ(start_s(r, 1), 100);
}

TEST(ScenarioRun, LostNodesTakeTheirPodsAndComeBack) {
  const auto r = play(std::string(kNode) + R"(pods: [{name: p, run: 100, gpu: 1}]
events: [{at: 40, node: n, do: down}, {at: 60, node: n, do: up}])");
  EXPECT_EQ(r.pods[0].losses, 1);
  EXPECT_EQ(start_s(r, 0), 60);
  EXPECT_EQ(end_s(r, 0), 160);
}

TEST(ScenarioRun, SickDevicesTakeOnlyTheirPods) {
  const auto r = play(std::string(kNode) + R"(pods: [{name: p, count: 2, run: 100, gpu: 1}]
events: [{at: 40, node: n, do: gpu-unhealthy, gpu: 1},
         {at: 70, node: n, do: gpu-healthy, gpu: 1}])");
  EXPECT_EQ(r.pods[0].losses, 0);
  EXPECT_EQ(r.pods[1].losses, 1);
  EXPECT_EQ(end_s(r, 0), 100);
  EXPECT_EQ(start_s(r, 1), 70);
}

TEST(ScenarioRun, CordonedNodesTakeNobody) {
  const auto r = play(std::string(kNode) + R"(pods: [{name: p, arrival: 5, run: 10, gpu: 1}]
events: [{at: 0, node: n, do: cordon}, {at: 30, node: n, do: uncordon}])");
  EXPECT_EQ(start_s(r, 0), 30);
}

TEST(ScenarioRun, LabelsCanBeWaitedFor) {
  const auto r =
      play(std::string(kNode) + R"(pods: [{name: p, run: 10, node_selector: {disk: fast}}]
events: [{at: 30, node: n, do: label, labels: {disk: fast}}])");
  EXPECT_EQ(start_s(r, 0), 30);
}

TEST(ScenarioRun, AffinityWaitsForTheNeighbour) {
  const auto r = play(std::string(kNode) + R"(pods:
  - {name: shy, run: 10, cpu: 1, pod_affinity: [{labels: {app: host}}]}
  - {name: host, arrival: 7, run: 50, cpu: 1, labels: {app: host}})");
  EXPECT_EQ(start_s(r, 0), 7);
}

TEST(ScenarioRun, DeletedPodsAreGone) {
  const auto r = play(std::string(kNode) + R"(pods:
  - {name: runs, run: 100, gpu: 2}
  - {name: waits, arrival: 1, run: 10, gpu: 2}
  - {name: never, arrival: 50, run: 10, gpu: 1}
events:
  - {at: 10, pod: never, do: delete}
  - {at: 20, pod: waits, do: delete}
  - {at: 30, pod: runs, do: delete})");
  EXPECT_EQ(end_s(r, 0), 30);
  EXPECT_EQ(r.pods[0].fate, PodFate::Deleted);
  EXPECT_EQ(start_s(r, 1), -1);
  EXPECT_EQ(start_s(r, 2), -1);
}

TEST(ScenarioRun, AveragesCountTheTimeInWhichPodsArrive) {
  // One of two GPUs for 100 s, then both: 50 % until the last arrival.
  const auto r = play(std::string(kNode) + R"(pods:
  - {name: a, run: 500, gpu: 1}
  - {name: b, arrival: 100, run: 10, gpu: 1})");
  EXPECT_DOUBLE_EQ(r.allocated_percent, 50);
  EXPECT_EQ(r.hottest_node, "n");
}

TEST(ScenarioRun, SamplesRunTheSameTwiceUnderEveryPolicy) {
  const auto groups = parse_sample_groups("2x8xH100-80,2x4xL40S");
  Scenario s;
  ASSERT_TRUE(parse_scenario("c", sample_cluster(*groups, 3).yaml(), s).has_value());
  ASSERT_TRUE(parse_scenario("w", sample_workload(*groups, {.for_seconds = 2400}, 3).yaml(), s)
                  .has_value());
  for (const core::PolicyInfo& info : core::policies()) {
    const ScenarioRunOptions options{.policy = std::string(info.name), .check = true};
    const auto first = run_scenario(s, options);
    const auto second = run_scenario(s, options);
    ASSERT_TRUE(first.has_value() && second.has_value()) << info.name;
    EXPECT_EQ(first->digest, second->digest) << info.name;
    EXPECT_EQ(scenario_text(*first, 1000, false), scenario_text(*second, 1000, false));
    // Every pod of a sample fits somewhere, so all end.
    for (const PodRecord& pod : first->pods) EXPECT_EQ(pod.fate, PodFate::Done) << pod.name;
  }
}

TEST(ScenarioReport, Durations) {
  EXPECT_EQ(duration_text(-1), "never");
  EXPECT_EQ(duration_text(1'250'000'000), "1.2 s");
  EXPECT_EQ(duration_text(200 * kSecondNs), "3 m 20 s");
  EXPECT_EQ(duration_text(7500 * kSecondNs), "2 h 05 m");
}

TEST(SvgChart, TicksAreRoundAndTextIsEscaped) {
  EXPECT_DOUBLE_EQ(tick_step(55, 8), 10);
  EXPECT_DOUBLE_EQ(tick_step(0.9, 6), 0.2);
  EXPECT_DOUBLE_EQ(tick_step(0, 6), 1);
  EXPECT_EQ(html_escape("a<b>&\"c"), "a&lt;b&gt;&amp;&quot;c");
  LineChart chart;
  chart.title = "<script>";
  chart.series.push_back({"one", 0, {{0, 0.5}, {1, 1}}});
  const std::string svg = line_chart_svg(chart);
  EXPECT_EQ(svg.find("<script>"), std::string::npos);
  EXPECT_NE(svg.find("<path class=\"line s0\" d=\"M"), std::string::npos);
}

}  // namespace
}  // namespace jogak::sim
