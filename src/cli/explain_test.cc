// SPDX-License-Identifier: Apache-2.0
// Small clusters as JSON, and what is said of one pod of each.
#include "cli/explain.h"

#include <gtest/gtest.h>

#include <string>

#include "import/import.h"

namespace jogak::cli {
namespace {

using core::Cluster;

void import_into(Cluster& cluster, const std::string& items) {
  const auto report =
      importer::import_list(R"({"kind":"List","items":[)" + items + "]}", "cluster.json", cluster);
  ASSERT_TRUE(report.has_value()) << report.error().what;
}

std::string node(std::string_view name, int gpus, std::string_view spec = "{}") {
  return fmt::format(
      R"({{"kind":"Node","metadata":{{"name":"{}"}},"spec":{},"status":{{"allocatable":
          {{"cpu":"16","memory":"64Gi","pods":"110","nvidia.com/gpu":"{}"}}}}}})",
      name, spec, gpus);
}

std::string pod(std::string_view name, int gpus, std::string_view more = "") {
  return fmt::format(
      R"({{"kind":"Pod","metadata":{{"name":"{}","namespace":"team-a"}},"spec":{{"containers":
          [{{"name":"main","resources":{{"limits":{{"cpu":"2","nvidia.com/gpu":"{}"}}}}}}]{}}}}})",
      name, gpus, more);
}

Explanation explain_pod(Cluster& cluster, std::string_view name, std::string_view policy = "kube") {
  const auto id = cluster.find_pod("team-a", name);
  EXPECT_TRUE(id.has_value());
  auto result = explain(cluster, id.value_or(core::PodId{0}), policy);
  EXPECT_TRUE(result.has_value()) << result.error().what;
  return std::move(*result);
}

TEST(Explain, NamesTheNodeItWouldGoTo) {
  Cluster cluster;
  import_into(cluster, node("n1", 8) + "," + node("n2", 8) + "," + node("n3", 0) + "," +
                           pod("busy", 2, R"(,"nodeName":"n1")") + "," + pod("x", 4));
  const Explanation explanation = explain_pod(cluster, "x");
  EXPECT_TRUE(explanation.placed());
  // n2: fit (87 + 99) / 2 = 93, balance 50 + (50 + 93 - 100) / 2 = 71, taints 300.
  const std::string text = explain_text(cluster, explanation, {});
  EXPECT_TRUE(
      text.starts_with("pod      team-a/x\n"
                       "verdict  would be placed on n2 (policy kube, score 464 of 2 nodes "
                       "that fit)\n"))
      << text;
  ASSERT_EQ(explanation.refused.size(), 1U);
  EXPECT_EQ(explanation.refused[0].nodes.size(), 1U);
}

TEST(Explain, SaysWhyNowhere) {
  Cluster cluster;
  import_into(cluster, node("n1", 8) + "," +
                           node("n2", 8, R"({"taints":[{"key":"k","effect":"NoSchedule"}]})") +
                           "," + pod("busy", 6, R"(,"nodeName":"n1","priority":1)") + "," +
                           pod("x", 4));
  const Explanation explanation = explain_pod(cluster, "x");
  EXPECT_FALSE(explanation.placed());
  EXPECT_EQ(explain_text(cluster, explanation, {}),
            R"(pod      team-a/x
verdict  would stay pending
message  0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated )"
            R"(taint(s). no new claims to deallocate, preemption: 0/2 nodes are available: 1 No )"
            R"(preemption victims found for incoming pod, 1 Preemption is not helpful for )"
            R"(scheduling.

ASKS FOR           MOST FREE  ON
cpu             2         16  n2
nvidia.com/gpu  4          8  n2

NODES  REFUSED BY        REASON                            EVICTING HELPS  E.G.
    1  NodeResourcesFit  Insufficient nvidia.com/gpu       maybe           n1
    1  TaintToleration   node(s) had untolerated taint(s)  no              n2

preemption: no pods whose eviction would make room
)");
}

TEST(Explain, NamesVictims) {
  Cluster cluster;
  import_into(cluster, node("n1", 8) + "," + pod("low", 8, R"(,"nodeName":"n1","priority":-5)") +
                           "," + pod("x", 4));
  const std::uint64_t before = cluster.digest();
  const Explanation explanation = explain_pod(cluster, "x");
  EXPECT_EQ(cluster.digest(), before);
  EXPECT_FALSE(explanation.placed());
  const std::string text = explain_text(cluster, explanation, {});
  EXPECT_NE(text.find("would make room on 1 node\n"), std::string::npos) << text;
  EXPECT_NE(text.find("team-a/low"), std::string::npos) << text;
}

TEST(Explain, APodThatRunsIsLookedAtAsIfPending) {
  Cluster cluster;
  import_into(cluster, node("n1", 8) + "," + pod("x", 8, R"(,"nodeName":"n1")"));
  const Explanation explanation = explain_pod(cluster, "x");
  EXPECT_EQ(explanation.bound_node, "n1");
  EXPECT_TRUE(explanation.placed());  // on its own place
  Cluster elsewhere;
  import_into(elsewhere, node("n1", 4) + "," + pod("x", 8, R"(,"nodeName":"gone")"));
  const Explanation orphan = explain_pod(elsewhere, "x");
  EXPECT_EQ(orphan.bound_node, "gone");
  EXPECT_FALSE(orphan.placed());
}

TEST(Explain, GatedPodsWait) {
  Cluster cluster;
  import_into(cluster,
              node("n1", 8) + "," + pod("x", 1, R"(,"schedulingGates":[{"name":"quota"}])"));
  const std::string text = explain_text(cluster, explain_pod(cluster, "x"), {});
  EXPECT_NE(text.find("waiting for scheduling gates: [quota]"), std::string::npos) << text;
}

TEST(Explain, ThousandsOfNodesBecomeGroups) {
  Cluster cluster;
  std::string items = pod("x", 4);
  for (int i = 0; i < 1000; ++i) items += "," + node(fmt::format("n{:04}", i), i % 2);
  import_into(cluster, items);
  const Explanation explanation = explain_pod(cluster, "x");
  ASSERT_EQ(explanation.refused.size(), 1U);
  EXPECT_EQ(explanation.refused[0].nodes.size(), 1000U);
  EXPECT_LT(explain_text(cluster, explanation, {}).size(), 1500U);
  EXPECT_GT(explain_text(cluster, explanation, {.all_nodes = true}).size(), 40000U);
}

TEST(Explain, NamesDevicesAndOtherPolicies) {
  Cluster cluster;
  const std::string devices = R"({"kind":"Node","metadata":{"name":"n1",
      "annotations":{"jogak.io/gpus":"[{},{\"health\":\"Unhealthy\"},{}]"}},
      "status":{"allocatable":{"cpu":"16","memory":"64Gi","pods":"110","nvidia.com/gpu":"2"}}})";
  import_into(cluster, devices + "," + node("n2", 8) + "," +
                           pod("x", 2, R"(,"nodeSelector":{},"priority":3)"));
  const Explanation explanation = explain_pod(cluster, "x", "best-fit");
  EXPECT_TRUE(explanation.placed());
  EXPECT_EQ(explanation.policy, "best-fit");
  Cluster one;
  import_into(one, devices + "," + pod("x", 2));
  const std::string text = explain_text(one, explain_pod(one, "x"), {});
  EXPECT_NE(text.find("devices  gpu 0, gpu 2\n"), std::string::npos) << text;
  const auto unknown = explain(one, *one.find_pod("team-a", "x"), "beast-fit");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_NE(unknown.error().what.find("best-fit"), std::string::npos) << unknown.error().what;
}

TEST(Explain, TheDocumentHasTheSame) {
  Cluster cluster;
  import_into(cluster, node("n1", 8) + "," + pod("low", 8, R"(,"nodeName":"n1","priority":-5)") +
                           "," + pod("x", 4));
  const std::string json = explain_doc(cluster, explain_pod(cluster, "x"), {}).json();
  for (const std::string_view part :
       {R"("outcome": "Unschedulable")", R"("plugin": "NodeResourcesFit")",
        R"("code": "Unschedulable")", R"("asked": 4)", R"("team-a/low")", R"("best": true)"}) {
    EXPECT_NE(json.find(part), std::string::npos) << part << "\n" << json;
  }
}

TEST(Explain, AmountsAsPeopleWriteThem) {
  EXPECT_EQ(amount_text("cpu", 500), "500m");
  EXPECT_EQ(amount_text("cpu", 2000), "2");
  EXPECT_EQ(amount_text("memory", 1536), "1.5Ki");
  EXPECT_EQ(amount_text("memory", std::int64_t{64} << 30), "64Gi");
  EXPECT_EQ(amount_text("memory", 100), "100");
  EXPECT_EQ(amount_text("memory", -100), "-100");
  EXPECT_EQ(amount_text("nvidia.com/gpu", 8), "8");
}

}  // namespace
}  // namespace jogak::cli
