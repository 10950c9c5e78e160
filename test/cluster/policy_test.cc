// SPDX-License-Identifier: Apache-2.0
//
// Disruption budgets and quotas.
#include <gtest/gtest.h>

#include "apiserver/object/meta.h"
#include "test/cluster/cluster.h"

namespace jogak::test {
namespace {

constexpr std::string_view kBudgets = "poddisruptionbudgets.policy";

std::string replica_set(std::string_view name, int replicas) {
  return R"({"metadata": {"name": ")" + std::string(name) + R"("}, "spec": {"replicas": )" +
         std::to_string(replicas) + R"(, "selector": {"matchLabels": {"a": ")" + std::string(name) +
         R"("}}, "template": )" + pod_template(name) + "}}";
}

std::string budget(std::string_view rule) {
  return R"({"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"a": "r"}}, )" +
         std::string(rule) + "}}";
}

// "expected healthy/desired allowed".
std::string numbers(const Cluster& cluster) {
  const Doc status = cluster.get(kBudgets, "b")["status"];
  return std::to_string(status["expectedPods"].as_int()) + " " +
         std::to_string(status["currentHealthy"].as_int()) + "/" +
         std::to_string(status["desiredHealthy"].as_int()) + " " +
         std::to_string(status["disruptionsAllowed"].as_int());
}

TEST(Disruption, CountsHealthyPodsAgainstAnInteger) {
  Cluster cluster;
  cluster.make(kBudgets, budget(R"("minAvailable": 1)"));
  EXPECT_EQ(numbers(cluster), "0 0/1 0");
  cluster.make("replicasets.apps", replica_set("r", 3));
  EXPECT_EQ(numbers(cluster), "3 0/1 0");
  cluster.run_all_pods();
  EXPECT_EQ(numbers(cluster), "3 3/1 2");
  const Doc status = cluster.get(kBudgets, "b")["status"];
  EXPECT_EQ(status["observedGeneration"].as_int(), 1);
  EXPECT_EQ(status["conditions"].items()[0]["reason"], Doc("SufficientPods"));
  EXPECT_EQ(status["conditions"].items()[0]["observedGeneration"].as_int(), 1);
}

TEST(Disruption, SharesAreOfWhatTheOwnerWants) {
  Cluster cluster;
  cluster.make(kBudgets, budget(R"("maxUnavailable": "30%")"));
  cluster.make("replicasets.apps", replica_set("r", 4));
  cluster.run_all_pods();
  EXPECT_EQ(numbers(cluster), "4 4/2 2");  // 1.2 is rounded up
  cluster.end_pod(api::name_of(cluster.list("pods")[0]), "Running");
  EXPECT_EQ(numbers(cluster), "4 3/2 1");
}

TEST(Disruption, ADeploymentsPodsCountForTheDeployment) {
  Cluster cluster;
  cluster.make(kBudgets, budget(R"("maxUnavailable": 1)"));
  cluster.make("deployments.apps", replica_set("r", 2));
  cluster.run_all_pods();
  EXPECT_EQ(numbers(cluster), "2 2/1 1");
}

TEST(Disruption, PodsOfNobodyHaveNoShare) {
  Cluster cluster;
  cluster.make(kBudgets, budget(R"("maxUnavailable": 1)"));
  cluster.make("pods", R"({"metadata": {"name": "p", "labels": {"a": "r"}},
      "spec": {"containers": [{"name": "c", "image": "i:1"}]}})");
  cluster.run_pod("p");
  EXPECT_EQ(numbers(cluster), "0 1/0 0");
  const auto events = cluster.events_of("b");
  ASSERT_EQ(events.size(), 2U);  // one when it had no pods, one now
  EXPECT_TRUE(events[1].starts_with("UnmanagedPods")) << events[1];
}

TEST(Disruption, AnOwnerWithoutAScaleAllowsNothing) {
  Cluster cluster;
  cluster.make(kBudgets, budget(R"("maxUnavailable": 1)"));
  cluster.make("jobs.batch", R"({"metadata": {"name": "j"}, "spec": {"template": {
      "metadata": {"labels": {"a": "r"}}, "spec": {"restartPolicy": "Never",
      "containers": [{"name": "c", "image": "i:1"}]}}}})");
  const Doc object = cluster.get(kBudgets, "b");
  const Doc& condition = api::condition_of(object, "DisruptionAllowed");
  EXPECT_EQ(condition["reason"], Doc("SyncFailed"));
  EXPECT_EQ(condition["message"], Doc("jobs.batch does not implement the scale subresource"));
  EXPECT_EQ(object.get("status", "disruptionsAllowed").as_int(), 0);
}

Doc eviction(std::string_view pod) {
  Doc body = Doc::object().set("apiVersion", "policy/v1").set("kind", "Eviction");
  body.at("metadata").set("name", pod).set("namespace", "default");
  return body;
}

TEST(Disruption, EvictionsUseUpTheBudget) {
  Cluster cluster;
  cluster.make(kBudgets, budget(R"("minAvailable": 2)"));
  cluster.make_node("n");
  cluster.make("replicasets.apps", replica_set("r", 3));
  for (const Doc& pod : cluster.list("pods")) cluster.bind_pod(api::name_of(pod), "n");
  cluster.run_all_pods();
  const auto pods = cluster.list("pods");
  const std::string first = api::name_of(pods[0]), second = api::name_of(pods[1]);
  ASSERT_TRUE(cluster.api().create("pods", "default", eviction(first), "eviction", first));
  const auto refused =
      cluster.api().create("pods", "default", eviction(second), "eviction", second);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, 429);
  cluster.settle();
  EXPECT_TRUE(cluster.get(kBudgets, "b").get("status", "disruptedPods").is_null());  // it is going
  EXPECT_EQ(numbers(cluster), "4 2/2 0");
  cluster.let_go(first);
  cluster.run_all_pods();  // its successor
  EXPECT_EQ(numbers(cluster), "3 3/2 1");
}

TEST(Disruption, AnEvictedPodThatStaysCountsAgain) {
  Cluster cluster;
  cluster.make("replicasets.apps", replica_set("r", 2));
  cluster.make(kBudgets, budget(R"("minAvailable": 1)"));
  cluster.run_all_pods();
  const std::string pod = api::name_of(cluster.list("pods")[0]);
  cluster.patch(kBudgets, "b",
                R"({"status": {"disruptedPods": {")" + pod + R"(": ")" +
                    api::format_time(cluster.loop().now()) + R"("}}})",
                "status");
  EXPECT_EQ(numbers(cluster), "2 1/1 0");
  cluster.pass(3 * 60 * kSecondInUs);
  EXPECT_EQ(numbers(cluster), "2 2/1 1");
  EXPECT_TRUE(cluster.get(kBudgets, "b").get("status", "disruptedPods").is_null());
}

TEST(Disruption, AStaleMarkIsTakenBack) {
  Cluster cluster;
  cluster.make("pods", R"({"metadata": {"name": "p"},
      "spec": {"containers": [{"name": "c", "image": "i:1"}]}})");
  cluster.patch("pods", "p",
                R"({"status": {"conditions": [{"type": "DisruptionTarget",
      "status": "True", "reason": "PreemptionByScheduler", "lastTransitionTime": ")" +
                    api::format_time(cluster.loop().now()) + R"("}]}})",
                "status");
  cluster.pass(110 * kSecondInUs);
  EXPECT_TRUE(api::condition_is(cluster.get("pods", "p"), "DisruptionTarget", "True"));
  cluster.pass(20 * kSecondInUs);
  EXPECT_TRUE(api::condition_is(cluster.get("pods", "p"), "DisruptionTarget", "False"));
}

// Quotas.

std::string pod_with_gpus(std::string_view name, int gpus) {
  return R"({"metadata": {"name": ")" + std::string(name) +
         R"("}, "spec": {"containers": [{"name": "c", "image": "i:1", "resources": {"limits":
            {"nvidia.com/gpu": ")" +
         std::to_string(gpus) + R"("}}}]}})";
}

std::string used(const Cluster& cluster, std::string_view name = "q") {
  return cluster.get("resourcequotas", name).get("status", "used").json(JsonWriter::Style::Compact);
}

TEST(Quota, CountsWhatWasThereBefore) {
  Cluster cluster;
  for (int i = 0; i < 120; ++i) {  // more than one turn counts
    cluster.make("pods", pod_with_gpus("p" + std::to_string(i), 2));
  }
  cluster.make("resourcequotas", R"({"metadata": {"name": "q"}, "spec": {"hard":
      {"pods": "200", "requests.nvidia.com/gpu": "300", "count/configmaps": "9"}}})");
  EXPECT_EQ(used(cluster),
            R"({"count/configmaps":"1","pods":"120","requests.nvidia.com/gpu":"240"})");
}

TEST(Quota, FollowsDeletionsAndEnds) {
  Cluster cluster;
  cluster.make("resourcequotas", R"({"metadata": {"name": "q"}, "spec": {"hard":
      {"pods": "3", "requests.nvidia.com/gpu": "4"}}})");
  cluster.make("pods", pod_with_gpus("a", 2));
  cluster.make("pods", pod_with_gpus("b", 2));
  EXPECT_EQ(used(cluster), R"({"pods":"2","requests.nvidia.com/gpu":"4"})");
  EXPECT_NE(cluster.try_make("pods", pod_with_gpus("c", 1)), "");
  EXPECT_EQ(used(cluster), R"({"pods":"2","requests.nvidia.com/gpu":"4"})");
  cluster.end_pod("a", "Succeeded");
  EXPECT_EQ(used(cluster), R"({"pods":"1","requests.nvidia.com/gpu":"2"})");
  cluster.remove("pods", "b");
  EXPECT_EQ(used(cluster), R"({"pods":"0","requests.nvidia.com/gpu":"0"})");
  EXPECT_EQ(cluster.try_make("pods", pod_with_gpus("c", 4)), "");
}

TEST(Quota, NeverShowsLessThanWasLetIn) {
  Cluster cluster;
  cluster.make("resourcequotas", R"({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "5"}}})");
  // many in one turn, and some in the turns between: the sum of what was let in is never above 5
  int let_in = 0;
  for (int i = 0; i < 20; ++i) {
    const bool is_in =
        cluster.api()
            .create("pods", "default", json(pod_with_gpus("p" + std::to_string(i), 1)))
            .has_value();
    let_in += is_in ? 1 : 0;
    for (int step = 0; step < i % 4; ++step) cluster.loop().step();
  }
  cluster.settle();
  EXPECT_EQ(let_in, 5);
  EXPECT_EQ(used(cluster), R"({"pods":"5"})");
}

TEST(Quota, ScopesCoverSomePodsOnly) {
  Cluster cluster;
  cluster.make("resourcequotas", R"({"metadata": {"name": "q"}, "spec": {
      "hard": {"pods": "5"}, "scopes": ["NotBestEffort"]}})");
  cluster.make("pods", pod_with_gpus("best-effort", 1));
  EXPECT_EQ(used(cluster), R"({"pods":"0"})");
  cluster.make("pods", R"({"metadata": {"name": "burstable"}, "spec": {"containers": [
      {"name": "c", "image": "i:1", "resources": {"requests": {"cpu": "1"}}}]}})");
  EXPECT_EQ(used(cluster), R"({"pods":"1"})");
}

TEST(Quota, AChangeOfTheLimitsIsCountedAnew) {
  Cluster cluster;
  cluster.make("resourcequotas", R"({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "5"}}})");
  cluster.make("pods", pod_with_gpus("a", 3));
  cluster.patch("resourcequotas", "q",
                R"({"spec": {"hard": {"pods": null, "requests.nvidia.com/gpu": "8"}}})");
  const Doc status = cluster.get("resourcequotas", "q")["status"];
  EXPECT_EQ(status["hard"], json(R"({"requests.nvidia.com/gpu": "8"})"));
  EXPECT_EQ(status["used"], json(R"({"requests.nvidia.com/gpu": "3"})"));
}

TEST(Quota, CustomObjectsCountOnceTheyAreDefined) {
  Cluster cluster;
  cluster.make("resourcequotas", R"({"metadata": {"name": "q"}, "spec": {"hard":
      {"count/rings.example.com": "2"}}})");
  EXPECT_EQ(used(cluster), "null");
  cluster.make("customresourcedefinitions.apiextensions.k8s.io", R"({
      "metadata": {"name": "rings.example.com"}, "spec": {"group": "example.com",
      "scope": "Namespaced", "names": {"plural": "rings", "kind": "Ring"},
      "versions": [{"name": "v1", "served": true, "storage": true,
      "schema": {"openAPIV3Schema": {"type": "object"}}}]}})");
  cluster.pass(5 * kSecondInUs);
  EXPECT_EQ(used(cluster), R"({"count/rings.example.com":"0"})");
  for (const char* name : {"x", "y"}) {
    cluster.make("rings.example.com", std::string(R"({"apiVersion": "example.com/v1",
        "kind": "Ring", "metadata": {"name": ")") +
                                          name + R"("}})");
  }
  EXPECT_EQ(used(cluster), R"({"count/rings.example.com":"2"})");
}

}  // namespace
}  // namespace jogak::test
