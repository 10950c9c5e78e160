// SPDX-License-Identifier: Apache-2.0
//
// Endpoints and autoscalers.
#include <gtest/gtest.h>

#include <set>

#include <fmt/core.h>

#include "apiserver/object/meta.h"
#include "test/cluster/cluster.h"

namespace jogak::test {
namespace {

constexpr std::string_view kSlices = "endpointslices.discovery.k8s.io";

std::string service(std::string_view more = "") {
  return R"({"metadata": {"name": "w"}, "spec": {"selector": {"a": "w"},
      "ports": [{"name": "web", "port": 80, "targetPort": "http"}])" +
         std::string(more) + "}}";
}

// A pod of the service on node "n" with that address; Ready when asked.
void make_pod(Cluster& cluster, const std::string& name, const std::string& ip,
              bool is_ready = true) {
  cluster.make("pods", fmt::format(R"({{"metadata": {{"name": "{}", "labels": {{"a": "w"}}}},
      "spec": {{"nodeName": "n", "containers": [{{"name": "c", "image": "i:1",
      "ports": [{{"name": "http", "containerPort": 8080}}]}}]}}}})",
                                   name));
  cluster.patch(
      "pods", name,
      fmt::format(R"({{"status": {{"phase": "Running", "podIP": "{0}",
      "podIPs": [{{"ip": "{0}"}}], "conditions": [{{"type": "Ready", "status": "{1}",
      "lastTransitionTime": "{2}"}}]}}}})",
                  ip, is_ready ? "True" : "False", api::format_time(cluster.loop().now())),
      "status");
}

// "ready/unready" addresses of the Endpoints.
std::string addresses(const Cluster& cluster) {
  std::string ready, unready;
  const Doc endpoints = cluster.get("endpoints", "w");
  for (const Doc& subset : endpoints["subsets"].items()) {
    for (const Doc& one : subset["addresses"].items()) ready += one["ip"].as_string() + " ";
    for (const Doc& one : subset["notReadyAddresses"].items()) {
      unready += one["ip"].as_string() + " ";
    }
  }
  return ready + "/ " + unready;
}

TEST(Endpoints, ReadyPodsAreAddresses) {
  Cluster cluster;
  cluster.make_node("n", R"({"topology.kubernetes.io/zone": "z"})");
  cluster.make("services", service());
  make_pod(cluster, "a", "10.0.1.1");
  make_pod(cluster, "b", "10.0.1.2", false);
  EXPECT_EQ(addresses(cluster), "10.0.1.1 / 10.0.1.2 ");
  const Doc subset = cluster.get("endpoints", "w")["subsets"].items()[0];
  EXPECT_EQ(subset["ports"].items()[0],
            json(R"({"name": "web", "port": 8080, "protocol": "TCP"})"));
  ASSERT_EQ(cluster.count(kSlices), 1U);
  const Doc slice = cluster.list(kSlices)[0];
  EXPECT_EQ(slice["endpoints"].items()[0]["zone"], Doc("z"));
  EXPECT_EQ(slice["endpoints"].items()[1]["conditions"],
            json(R"({"ready": false, "serving": false, "terminating": false})"));
}

TEST(Endpoints, PodsThatEndLeave) {
  Cluster cluster;
  cluster.make_node("n");
  cluster.make("services", service());
  make_pod(cluster, "a", "10.0.1.1");
  make_pod(cluster, "b", "10.0.1.2");
  cluster.remove("pods", "a");  // with grace: it is on a node
  EXPECT_EQ(addresses(cluster), "10.0.1.2 / ");
  const Doc slice = cluster.list(kSlices)[0];
  EXPECT_EQ(slice["endpoints"].items()[0]["conditions"],
            json(R"({"ready": false, "serving": true, "terminating": true})"));
  cluster.end_pod("b", "Succeeded");
  EXPECT_EQ(addresses(cluster), "/ ");
}

TEST(Endpoints, PodsFromBeforeTheServiceCount) {
  Cluster cluster;
  cluster.make_node("n");
  make_pod(cluster, "a", "10.0.1.1");
  cluster.make("services", service());
  EXPECT_EQ(addresses(cluster), "10.0.1.1 / ");
}

TEST(Endpoints, TheSelectorMayChange) {
  Cluster cluster;
  cluster.make_node("n");
  cluster.make("services", service());
  make_pod(cluster, "a", "10.0.1.1");
  cluster.patch("services", "w", R"({"spec": {"selector": {"a": "other"}}})");
  EXPECT_EQ(addresses(cluster), "/ ");
  cluster.patch("pods", "a", R"({"metadata": {"labels": {"a": "other"}}})");
  EXPECT_EQ(addresses(cluster), "10.0.1.1 / ");
}

TEST(Endpoints, UnreadyOnesArePublishedOnDemand) {
  Cluster cluster;
  cluster.make("services", service(R"(, "publishNotReadyAddresses": true)"));
  make_pod(cluster, "a", "10.0.1.1", false);  // its node is not known either
  EXPECT_EQ(addresses(cluster), "10.0.1.1 / ");
  EXPECT_EQ(cluster.list(kSlices)[0]["endpoints"].items()[0]["conditions"]["ready"], Doc(true));
}

TEST(Endpoints, SlicesWaitForTheNode) {
  Cluster cluster;
  cluster.make("services", service());
  make_pod(cluster, "a", "10.0.1.1");
  EXPECT_TRUE(cluster.list(kSlices)[0]["endpoints"].empty());
  cluster.make_node("n");
  EXPECT_EQ(cluster.list(kSlices)[0]["endpoints"].size(), 1U);
}

TEST(Endpoints, ASliceHoldsAHundred) {
  Cluster cluster;
  cluster.make_node("n");
  cluster.make("services", service());
  for (int i = 0; i < 130; ++i) {
    make_pod(cluster, fmt::format("p{}", i), fmt::format("10.0.{}.{}", i / 100, i % 100 + 1));
  }
  std::multiset<std::size_t> sizes;
  for (const Doc& slice : cluster.list(kSlices)) sizes.insert(slice["endpoints"].size());
  EXPECT_EQ(sizes, (std::multiset<std::size_t>{30, 100}));
  // one that leaves changes one slice only
  const Doc before = cluster.list(kSlices)[0];
  const std::string gone =
      cluster.list(kSlices)[1]["endpoints"].items()[0].get("targetRef", "name").as_string();
  cluster.let_go(gone);
  EXPECT_EQ(api::meta(cluster.list(kSlices)[0])["resourceVersion"],
            api::meta(before)["resourceVersion"]);
}

TEST(Endpoints, SomebodysChangesArePutRight) {
  Cluster cluster;
  cluster.make_node("n");
  cluster.make("services", service());
  make_pod(cluster, "a", "10.0.1.1");
  cluster.remove(kSlices, cluster.names(kSlices));
  EXPECT_EQ(cluster.count(kSlices), 1U);
  cluster.patch("endpoints", "w", R"({"subsets": null})");
  EXPECT_EQ(addresses(cluster), "10.0.1.1 / ");
}

TEST(Endpoints, TheyGoWithTheService) {
  Cluster cluster;
  cluster.make("services", service());
  cluster.remove("services", "w");
  EXPECT_EQ(cluster.names("endpoints"), "");
  EXPECT_EQ(cluster.names(kSlices), "");
}

TEST(Endpoints, WithoutASelectorTheyAreTheUsers) {
  Cluster cluster;
  cluster.make("services", R"({"metadata": {"name": "w"}, "spec": {"ports": [{"port": 80}]}})");
  EXPECT_TRUE(cluster.get("endpoints", "w").is_null());
}

// Autoscalers.

constexpr std::string_view kScalers = "horizontalpodautoscalers.autoscaling";

std::string scaler(std::string_view target, int least, int most) {
  return fmt::format(R"({{"metadata": {{"name": "h"}}, "spec": {{"scaleTargetRef": {{
      "apiVersion": "apps/v1", "kind": "Deployment", "name": "{}"}}, "minReplicas": {},
      "maxReplicas": {}}}}})",
                     target, least, most);
}

std::string deployment(int replicas) {
  return fmt::format(R"({{"metadata": {{"name": "d"}}, "spec": {{"replicas": {},
      "selector": {{"matchLabels": {{"a": "d"}}}}, "template": {}}}}})",
                     replicas, pod_template("d"));
}

std::string reason(const Cluster& cluster, std::string_view type) {
  return api::condition_of(cluster.get(kScalers, "h"), type)["reason"].as_string();
}

TEST(Autoscaler, WithinTheBoundsItHasNoMetrics) {
  Cluster cluster;
  cluster.make("deployments.apps", deployment(2));
  cluster.make(kScalers, scaler("d", 1, 3));
  EXPECT_EQ(reason(cluster, "AbleToScale"), "SucceededGetScale");
  EXPECT_EQ(reason(cluster, "ScalingActive"), "FailedGetResourceMetric");
  EXPECT_EQ(cluster.get("deployments.apps", "d").get("spec", "replicas").as_int(), 2);
  const std::size_t events = cluster.events_of("h").size();
  cluster.pass(60 * kSecondInUs);
  EXPECT_EQ(cluster.events_of("h").size(), events);  // it does not repeat itself
}

TEST(Autoscaler, OutsideItScalesToTheNearerBound) {
  Cluster cluster;
  cluster.make("deployments.apps", deployment(7));
  cluster.make(kScalers, scaler("d", 1, 3));
  EXPECT_EQ(reason(cluster, "AbleToScale"), "SucceededRescale");
  EXPECT_EQ(cluster.get("deployments.apps", "d").get("spec", "replicas").as_int(), 3);
  cluster.patch(kScalers, "h", R"({"spec": {"minReplicas": 5, "maxReplicas": 9}})");
  cluster.pass(16 * kSecondInUs);
  EXPECT_EQ(cluster.get("deployments.apps", "d").get("spec", "replicas").as_int(), 5);
}

TEST(Autoscaler, AScaleOfZeroSwitchesItOff) {
  Cluster cluster;
  cluster.make("deployments.apps", deployment(0));
  cluster.make(kScalers, scaler("d", 1, 3));
  EXPECT_EQ(reason(cluster, "ScalingActive"), "ScalingDisabled");
  EXPECT_EQ(cluster.get("deployments.apps", "d").get("spec", "replicas").as_int(), 0);
}

TEST(Autoscaler, ATargetMayComeLater) {
  Cluster cluster;
  cluster.make(kScalers, scaler("d", 1, 3));
  EXPECT_EQ(reason(cluster, "AbleToScale"), "FailedGetScale");
  cluster.make("deployments.apps", deployment(4));
  cluster.pass(16 * kSecondInUs);
  EXPECT_EQ(cluster.get("deployments.apps", "d").get("spec", "replicas").as_int(), 3);
}

}  // namespace
}  // namespace jogak::test
