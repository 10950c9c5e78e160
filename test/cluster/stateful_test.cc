// SPDX-License-Identifier: Apache-2.0
//
// Stateful sets.
#include <gtest/gtest.h>

#include "apiserver/object/meta.h"
#include "test/cluster/cluster.h"

namespace jogak::test {
namespace {

constexpr std::string_view kSets = "statefulsets.apps";
constexpr std::string_view kClaims = "persistentvolumeclaims";
constexpr std::string_view kRevisions = "controllerrevisions.apps";

std::string stateful_set(int replicas, std::string_view more = "") {
  return R"({"metadata": {"name": "s"}, "spec": {"replicas": )" + std::to_string(replicas) +
         R"(, "serviceName": "h", "selector": {"matchLabels": {"a": "s"}}, "template": )" +
         pod_template("s") + std::string(more) + "}}";
}

constexpr std::string_view kWithClaims = R"(, "volumeClaimTemplates": [{"metadata": {"name": "v"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}])";

void set_image(Cluster& cluster, std::string_view image) {
  cluster.patch(kSets, "s", R"({"spec": {"template": )" + pod_template("s", image) + "}}");
}

std::string image_of(const Cluster& cluster, std::string_view pod) {
  const Doc object = cluster.get("pods", pod);
  return object.is_null() ? "" : object.get("spec", "containers").items()[0]["image"].as_string();
}

TEST(StatefulSet, MembersComeOneAfterAnother) {
  Cluster cluster;
  cluster.make(kSets, stateful_set(3));
  EXPECT_EQ(cluster.names("pods"), "s-0");
  cluster.run_pod("s-0");
  EXPECT_EQ(cluster.names("pods"), "s-0 s-1");
  cluster.run_pod("s-1");
  EXPECT_EQ(cluster.names("pods"), "s-0 s-1 s-2");
  const Doc pod = cluster.get("pods", "s-1");
  EXPECT_EQ(pod.get("spec", "hostname"), Doc("s-1"));
  EXPECT_EQ(pod.get("spec", "subdomain"), Doc("h"));
  EXPECT_EQ(api::meta(pod)["labels"]["apps.kubernetes.io/pod-index"], Doc("1"));
}

TEST(StatefulSet, ParallelMembersComeTogether) {
  Cluster cluster;
  cluster.make(kSets, stateful_set(30, R"(, "podManagementPolicy": "Parallel")"));
  EXPECT_EQ(cluster.count("pods"), 30U);
  EXPECT_EQ(cluster.get(kSets, "s").get("status", "replicas").as_int(), 30);
}

TEST(StatefulSet, OrdinalsMayStartLater) {
  Cluster cluster;
  cluster.make(kSets, stateful_set(2, R"(, "ordinals": {"start": 5})"));
  cluster.run_all_pods();
  EXPECT_EQ(cluster.names("pods"), "s-5 s-6");
}

TEST(StatefulSet, TheHighestMemberGoesFirst) {
  Cluster cluster;
  cluster.make_node("n");
  cluster.make(kSets, stateful_set(3));
  for (const char* name : {"s-0", "s-1", "s-2"}) {
    cluster.bind_pod(name, "n");
    cluster.run_pod(name);
  }
  cluster.patch(kSets, "s", R"({"spec": {"replicas": 1}})");
  EXPECT_EQ(cluster.live_pods().size(), 2U);  // s-1 waits until s-2 is gone
  cluster.let_go("s-2");
  cluster.let_go("s-1");
  EXPECT_EQ(cluster.names("pods"), "s-0");
  EXPECT_EQ(cluster.get(kSets, "s").get("status", "replicas").as_int(), 1);
}

TEST(StatefulSet, ScalingDownWaitsForTheOthersToBeReady) {
  Cluster cluster;
  cluster.make(kSets, stateful_set(3));
  for (const char* name : {"s-0", "s-1", "s-2"}) cluster.run_pod(name);
  cluster.end_pod("s-0", "Running");  // not ready
  cluster.patch(kSets, "s", R"({"spec": {"replicas": 2}})");
  EXPECT_EQ(cluster.live_pods().size(), 3U);
  cluster.run_pod("s-0");
  EXPECT_EQ(cluster.names("pods"), "s-0 s-1");
}

TEST(StatefulSet, AFailedMemberIsMadeAnew) {
  Cluster cluster;
  cluster.make(kSets, stateful_set(1));
  const std::string uid = api::uid_of(cluster.get("pods", "s-0"));
  cluster.end_pod("s-0", "Failed");
  const Doc again = cluster.get("pods", "s-0");
  EXPECT_FALSE(again.is_null());
  EXPECT_NE(api::uid_of(again), uid);
}

TEST(StatefulSet, AnUpdateGoesFromTheTop) {
  Cluster cluster;
  cluster.make(kSets, stateful_set(3));
  for (const char* name : {"s-0", "s-1", "s-2"}) cluster.run_pod(name);
  const std::string before = cluster.get(kSets, "s").get("status", "currentRevision").as_string();
  set_image(cluster, "i:2");
  EXPECT_EQ(image_of(cluster, "s-2"), "i:2");
  EXPECT_EQ(image_of(cluster, "s-1"), "i:1");  // until s-2 runs
  Doc status = cluster.get(kSets, "s")["status"];
  EXPECT_EQ(status["currentRevision"], Doc(before));
  EXPECT_NE(status["updateRevision"], Doc(before));
  EXPECT_EQ(status["updatedReplicas"].as_int(), 1);
  EXPECT_EQ(status["currentReplicas"].as_int(), 2);
  for (const char* name : {"s-2", "s-1", "s-0"}) cluster.run_pod(name);
  EXPECT_EQ(image_of(cluster, "s-0"), "i:2");
  status = cluster.get(kSets, "s")["status"];
  EXPECT_EQ(status["currentRevision"], status["updateRevision"]);
  EXPECT_EQ(status["currentReplicas"].as_int(), 3);
}

TEST(StatefulSet, APartitionKeepsTheLowerMembers) {
  Cluster cluster;
  cluster.make(kSets, stateful_set(3, R"(, "updateStrategy": {"type": "RollingUpdate",
      "rollingUpdate": {"partition": 2}})"));
  for (const char* name : {"s-0", "s-1", "s-2"}) cluster.run_pod(name);
  set_image(cluster, "i:2");
  cluster.run_all_pods();
  EXPECT_EQ(image_of(cluster, "s-2"), "i:2");
  EXPECT_EQ(image_of(cluster, "s-1"), "i:1");
  cluster.remove("pods", "s-0");  // made anew from the old template
  EXPECT_EQ(image_of(cluster, "s-0"), "i:1");
}

TEST(StatefulSet, OnDeleteLeavesTheUpdateToTheUser) {
  Cluster cluster;
  cluster.make(kSets, stateful_set(1, R"(, "updateStrategy": {"type": "OnDelete"})"));
  cluster.run_pod("s-0");
  set_image(cluster, "i:2");
  EXPECT_EQ(image_of(cluster, "s-0"), "i:1");
  cluster.remove("pods", "s-0");
  EXPECT_EQ(image_of(cluster, "s-0"), "i:2");
}

TEST(StatefulSet, AnOldTemplateComesBackAsTheNewestRevision) {
  Cluster cluster;
  cluster.make(kSets, stateful_set(1));
  cluster.run_pod("s-0");
  const std::string first = cluster.get(kSets, "s").get("status", "updateRevision").as_string();
  set_image(cluster, "i:2");
  cluster.run_pod("s-0");
  EXPECT_EQ(cluster.count(kRevisions), 2U);
  set_image(cluster, "i:1");
  EXPECT_EQ(cluster.count(kRevisions), 2U);
  EXPECT_EQ(cluster.get(kSets, "s").get("status", "updateRevision"), Doc(first));
  EXPECT_EQ(cluster.get(kRevisions, first)["revision"].as_int(), 3);
}

TEST(StatefulSet, HistoryHasALimit) {
  Cluster cluster;
  cluster.make(kSets, stateful_set(1, R"(, "revisionHistoryLimit": 2)"));
  for (int i = 2; i < 8; ++i) {
    cluster.run_pod("s-0");
    set_image(cluster, "i:" + std::to_string(i));
  }
  cluster.run_pod("s-0");
  EXPECT_EQ(cluster.count(kRevisions), 3U);  // the present one and two before
}

TEST(StatefulSet, ClaimsOutliveTheirMembers) {
  Cluster cluster;
  cluster.make(kSets, stateful_set(2, kWithClaims));
  cluster.run_all_pods();
  EXPECT_EQ(cluster.names(kClaims), "v-s-0 v-s-1");
  cluster.patch(kSets, "s", R"({"spec": {"replicas": 0}})");
  EXPECT_EQ(cluster.names("pods"), "");
  cluster.remove(kSets, "s");
  EXPECT_EQ(cluster.names(kClaims), "v-s-0 v-s-1");
}

TEST(StatefulSet, ClaimsGoWithTheScale) {
  Cluster cluster;
  cluster.make(kSets, stateful_set(2, std::string(kWithClaims) +
                                          R"(, "persistentVolumeClaimRetentionPolicy":
      {"whenDeleted": "Retain", "whenScaled": "Delete"})"));
  cluster.run_all_pods();
  cluster.run_all_pods();
  EXPECT_TRUE(api::meta(cluster.get(kClaims, "v-s-1"))["ownerReferences"].empty());
  cluster.patch(kSets, "s", R"({"spec": {"replicas": 1}})");
  EXPECT_EQ(cluster.names("pods"), "s-0");
  EXPECT_EQ(cluster.names(kClaims), "v-s-0");
}

TEST(StatefulSet, ClaimsGoWithTheSet) {
  Cluster cluster;
  cluster.make(kSets, stateful_set(1, std::string(kWithClaims) +
                                          R"(, "persistentVolumeClaimRetentionPolicy":
      {"whenDeleted": "Delete", "whenScaled": "Retain"})"));
  cluster.run_all_pods();
  EXPECT_EQ(api::controller_of(cluster.get(kClaims, "v-s-0"))["kind"], Doc("StatefulSet"));
  cluster.remove(kSets, "s");
  EXPECT_EQ(cluster.names(kClaims), "");
}

TEST(StatefulSet, ANameTakenByAnotherTemplateGivesAnother) {
  Cluster cluster;
  cluster.make(kSets, stateful_set(1));
  cluster.run_pod("s-0");
  Doc revision = cluster.list(kRevisions)[0];
  cluster.remove(kSets, "s");
  EXPECT_EQ(cluster.count(kRevisions), 0U);
  // somebody else's revision under the very name
  Doc other = Doc::object();
  other.at("metadata").set("name", api::name_of(revision)).set("namespace", "default");
  other.set("data", Doc::object().set("x", 1)).set("revision", 1);
  ASSERT_TRUE(cluster.api().create(kRevisions, "default", std::move(other)).has_value());
  cluster.make(kSets, stateful_set(1));
  const Doc status = cluster.get(kSets, "s")["status"];
  EXPECT_EQ(status["collisionCount"].as_int(), 1);
  EXPECT_NE(status["updateRevision"], Doc(api::name_of(revision)));
  EXPECT_EQ(cluster.names("pods"), "s-0");
}

TEST(StatefulSet, MinReadySecondsHoldTheNextMember) {
  Cluster cluster;
  cluster.make(kSets, stateful_set(2, R"(, "minReadySeconds": 30)"));
  cluster.run_pod("s-0");
  EXPECT_EQ(cluster.names("pods"), "s-0");
  cluster.pass(31 * kSecondInUs);
  EXPECT_EQ(cluster.names("pods"), "s-0 s-1");
}

}  // namespace
}  // namespace jogak::test
