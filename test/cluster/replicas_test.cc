// SPDX-License-Identifier: Apache-2.0
//
// Replica sets and deployments.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "apiserver/object/meta.h"
#include "test/cluster/cluster.h"

namespace jogak::test {
namespace {

constexpr std::string_view kSets = "replicasets.apps";
constexpr std::string_view kDeployments = "deployments.apps";

std::string with_replicas(std::string_view name, int replicas, std::string_view more = "",
                          std::string_view image = "i:1") {
  return fmt::format(R"({{"metadata": {{"name": "{}"}}, "spec": {{"replicas": {},
      "selector": {{"matchLabels": {{"a": "{}"}}}}, "template": {}{}}}}})",
                     name, replicas, name, pod_template(name, image), more);
}

// image: number of live pods.
std::map<std::string, int> images(const Cluster& cluster) {
  std::map<std::string, int> counts;
  for (const Doc& pod : cluster.live_pods()) {
    ++counts[pod.get("spec", "containers").items()[0]["image"].as_string()];
  }
  return counts;
}
using Images = std::map<std::string, int>;

std::int64_t status(const Cluster& cluster, std::string_view table, std::string_view name,
                    std::string_view member) {
  return cluster.get(table, name)["status"][member].as_int();
}

std::string reason(const Cluster& cluster, std::string_view type) {
  return api::condition_of(cluster.get(kDeployments, "d"), type)["reason"].as_string();
}

void set_image(Cluster& cluster, std::string_view image) {
  cluster.patch(kDeployments, "d",
                fmt::format(R"({{"spec": {{"template": {}}}}})", pod_template("d", image)));
}

// Runs what is pending until nothing changes any more.
void finish_rollout(Cluster& cluster) {
  for (int i = 0; i < 30; ++i) cluster.run_all_pods();
}

TEST(ReplicaSet, MakesAndRemovesPods) {
  Cluster cluster;
  cluster.make(kSets, with_replicas("r", 60));  // more than one turn's worth
  EXPECT_EQ(cluster.count("pods"), 60U);
  EXPECT_EQ(status(cluster, kSets, "r", "replicas"), 60);
  cluster.run_pod(api::name_of(cluster.list("pods")[3]));
  const std::string ready = api::name_of(cluster.list("pods")[3]);
  cluster.patch(kSets, "r", R"({"spec": {"replicas": 1}})");
  EXPECT_EQ(cluster.names("pods"), ready);  // the one that works stays
  EXPECT_EQ(status(cluster, kSets, "r", "readyReplicas"), 1);
}

TEST(ReplicaSet, ALostPodIsReplaced) {
  Cluster cluster;
  cluster.make(kSets, with_replicas("r", 2));
  const std::string lost = api::name_of(cluster.list("pods")[0]);
  cluster.remove("pods", lost);
  EXPECT_EQ(cluster.count("pods"), 2U);
  cluster.end_pod(api::name_of(cluster.list("pods")[0]), "Failed");
  EXPECT_EQ(cluster.count("pods"), 3U);  // the failed one is kept to be looked at
}

TEST(ReplicaSet, TakesInAndLetsGoByLabel) {
  Cluster cluster;
  cluster.make("pods", R"({"metadata": {"name": "mine", "labels": {"a": "r"}},
      "spec": {"containers": [{"name": "c", "image": "i:1"}]}})");
  cluster.make(kSets, with_replicas("r", 1));
  EXPECT_EQ(cluster.names("pods"), "mine");
  cluster.patch("pods", "mine", R"({"metadata": {"labels": {"a": "other"}}})");
  EXPECT_TRUE(api::meta(cluster.get("pods", "mine"))["ownerReferences"].empty());
  EXPECT_EQ(cluster.count("pods"), 2U);
}

TEST(ReplicaSet, DeletionCostDecidesWhoGoes) {
  Cluster cluster;
  cluster.make(kSets, with_replicas("r", 3));
  cluster.run_all_pods();
  const auto pods = cluster.list("pods");
  for (std::size_t i = 0; i < 3; ++i) {
    cluster.patch("pods", api::name_of(pods[i]),
                  fmt::format(R"({{"metadata": {{"annotations": {{
          "controller.kubernetes.io/pod-deletion-cost": "{}"}}}}}})",
                              i == 1 ? 5 : 9));
  }
  cluster.patch(kSets, "r", R"({"spec": {"replicas": 2}})");
  EXPECT_TRUE(cluster.get("pods", api::name_of(pods[1])).is_null());
}

TEST(ReplicaSet, AQuotaShowsAsAFailure) {
  Cluster cluster;
  cluster.make("resourcequotas", R"({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}})");
  cluster.make(kSets, with_replicas("r", 3));
  EXPECT_EQ(cluster.count("pods"), 1U);
  EXPECT_EQ(api::condition_of(cluster.get(kSets, "r"), "ReplicaFailure")["reason"],
            Doc("FailedCreate"));
  cluster.patch("resourcequotas", "q", R"({"spec": {"hard": {"pods": "9"}}})");
  cluster.pass(20 * kSecondInUs);
  EXPECT_EQ(cluster.count("pods"), 3U);
  EXPECT_TRUE(api::condition_of(cluster.get(kSets, "r"), "ReplicaFailure").is_null());
}

TEST(Deployment, RollsWithinItsBounds) {
  Cluster cluster;
  cluster.make(kDeployments, with_replicas("d", 10, R"(, "strategy": {"type": "RollingUpdate",
      "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}})"));
  finish_rollout(cluster);
  EXPECT_EQ(reason(cluster, "Progressing"), "NewReplicaSetAvailable");
  set_image(cluster, "i:2");
  // at most 13 pods (25 % rounded up), at least 8 available (rounded down)
  EXPECT_EQ(images(cluster), (Images{{"i:1", 8}, {"i:2", 5}}));
  for (int i = 0; i < 30; ++i) {
    std::string pending;
    int ready = 0;
    for (const Doc& pod : cluster.live_pods()) {
      if (pod.get("status", "phase").as_string() == "Pending") pending = api::name_of(pod);
      if (api::condition_is(pod, "Ready", "True")) ++ready;
    }
    EXPECT_LE(cluster.live_pods().size(), 13U);
    EXPECT_GE(ready, 8);
    if (pending.empty()) break;
    cluster.run_pod(pending);
  }
  EXPECT_EQ(images(cluster), (Images{{"i:2", 10}}));
  EXPECT_EQ(status(cluster, kDeployments, "d", "updatedReplicas"), 10);
}

TEST(Deployment, RecreateEndsTheOldFirst) {
  Cluster cluster;
  cluster.make_node("n");
  cluster.make(kDeployments, with_replicas("d", 2, R"(, "strategy": {"type": "Recreate"})"));
  for (const Doc& pod : cluster.list("pods")) cluster.bind_pod(api::name_of(pod), "n");
  cluster.run_all_pods();
  set_image(cluster, "i:2");
  EXPECT_EQ(images(cluster), Images{});  // the old ones are still on their way out
  for (const Doc& pod : cluster.list("pods")) cluster.let_go(api::name_of(pod));
  EXPECT_EQ(images(cluster), (Images{{"i:2", 2}}));
}

TEST(Deployment, ABrokenUpdateKeepsTheOldPods) {
  Cluster cluster;
  cluster.make(kDeployments, with_replicas("d", 4, R"(, "progressDeadlineSeconds": 60,
      "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})"));
  finish_rollout(cluster);
  set_image(cluster, "i:broken");
  EXPECT_EQ(images(cluster), (Images{{"i:1", 4}, {"i:broken", 1}}));
  cluster.pass(70 * kSecondInUs);
  EXPECT_EQ(reason(cluster, "Progressing"), "ProgressDeadlineExceeded");
  set_image(cluster, "i:1");  // back
  finish_rollout(cluster);
  EXPECT_EQ(images(cluster), (Images{{"i:1", 4}}));
  EXPECT_EQ(
      api::meta(cluster.get(kDeployments, "d"))["annotations"]["deployment.kubernetes.io/revision"],
      Doc("3"));
  EXPECT_EQ(reason(cluster, "Progressing"), "NewReplicaSetAvailable");
}

TEST(Deployment, PausedItOnlyScales) {
  Cluster cluster;
  cluster.make(kDeployments, with_replicas("d", 2));
  finish_rollout(cluster);
  cluster.patch(kDeployments, "d", R"({"spec": {"paused": true}})");
  EXPECT_EQ(reason(cluster, "Progressing"), "DeploymentPaused");
  set_image(cluster, "i:2");
  EXPECT_EQ(images(cluster), (Images{{"i:1", 2}}));
  cluster.patch(kDeployments, "d", R"({"spec": {"replicas": 5}})");
  EXPECT_EQ(images(cluster), (Images{{"i:1", 5}}));
  cluster.patch(kDeployments, "d", R"({"spec": {"paused": false}})");
  finish_rollout(cluster);
  EXPECT_EQ(images(cluster), (Images{{"i:2", 5}}));
}

TEST(Deployment, ScalingDuringARolloutIsShared) {
  Cluster cluster;
  cluster.make(kDeployments, with_replicas("d", 10, R"(, "strategy": {
      "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 5}})"));
  finish_rollout(cluster);
  set_image(cluster, "i:2");
  EXPECT_EQ(images(cluster), (Images{{"i:1", 5}, {"i:2", 5}}));
  cluster.patch(kDeployments, "d", R"({"spec": {"replicas": 20}})");
  EXPECT_EQ(images(cluster), (Images{{"i:1", 10}, {"i:2", 10}}));
}

TEST(Deployment, HistoryHasALimit) {
  Cluster cluster;
  cluster.make(kDeployments, with_replicas("d", 1, R"(, "revisionHistoryLimit": 2)"));
  finish_rollout(cluster);
  for (int i = 2; i < 7; ++i) {
    set_image(cluster, fmt::format("i:{}", i));
    finish_rollout(cluster);
  }
  EXPECT_EQ(cluster.count(kSets), 3U);
}

TEST(Deployment, AScaleOfZeroHasNoPodsAndIsComplete) {
  Cluster cluster;
  cluster.make(kDeployments, with_replicas("d", 0));
  EXPECT_EQ(cluster.count("pods"), 0U);
  EXPECT_EQ(reason(cluster, "Available"), "MinimumReplicasAvailable");
  EXPECT_EQ(reason(cluster, "Progressing"), "NewReplicaSetAvailable");
}

TEST(Deployment, ANameTakenByAnotherTemplateGivesAnother) {
  Cluster cluster;
  cluster.make(kDeployments, with_replicas("d", 1));
  const std::string name = cluster.names(kSets);
  cluster.remove(kDeployments, "d");
  ASSERT_EQ(cluster.count(kSets), 0U);
  std::string other = with_replicas(name, 0);  // somebody else's set under the very name
  cluster.make(kSets, other);
  cluster.make(kDeployments, with_replicas("d", 1));
  cluster.pass(5 * kSecondInUs);
  EXPECT_EQ(status(cluster, kDeployments, "d", "collisionCount"), 1);
  EXPECT_EQ(cluster.count(kSets), 2U);
  EXPECT_EQ(images(cluster), (Images{{"i:1", 1}}));
}

TEST(Deployment, MinReadySecondsCountAsAvailability) {
  Cluster cluster;
  cluster.make(kDeployments, with_replicas("d", 1, R"(, "minReadySeconds": 30)"));
  cluster.run_all_pods();
  EXPECT_EQ(status(cluster, kDeployments, "d", "readyReplicas"), 1);
  EXPECT_EQ(status(cluster, kDeployments, "d", "availableReplicas"), 0);
  cluster.pass(31 * kSecondInUs);
  EXPECT_EQ(status(cluster, kDeployments, "d", "availableReplicas"), 1);
}

TEST(Deployment, DeletedWithItsPodsOrWithout) {
  Cluster cluster;
  cluster.make(kDeployments, with_replicas("d", 2));
  cluster.remove(kDeployments, "d", "Orphan");
  EXPECT_EQ(cluster.count("pods"), 2U);
  EXPECT_EQ(cluster.count(kSets), 1U);
  cluster.make(kDeployments, with_replicas("d", 2));  // takes them in again
  EXPECT_EQ(cluster.count(kSets), 1U);
  cluster.remove(kDeployments, "d", "Foreground");
  EXPECT_EQ(cluster.count(kDeployments), 0U);
  EXPECT_EQ(cluster.count("pods"), 0U);
}

}  // namespace
}  // namespace jogak::test
