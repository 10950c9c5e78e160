// SPDX-License-Identifier: Apache-2.0
//
// Daemon sets.
#include <gtest/gtest.h>

#include <map>

#include "apiserver/object/meta.h"
#include "test/cluster/cluster.h"

namespace jogak::test {
namespace {

constexpr std::string_view kSets = "daemonsets.apps";

std::string daemon_set(std::string_view more = "", std::string_view in_template = "") {
  return R"({"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "d"}},
      "template": {"metadata": {"labels": {"a": "d"}}, "spec": {"containers": [
      {"name": "c", "image": "i:1"}])" +
         std::string(in_template) + "}}" + std::string(more) + "}}";
}

std::string node_of(const Doc& pod) {
  const Doc& required =
      pod.get("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution");
  return required["nodeSelectorTerms"]
      .items()[0]["matchFields"]
      .items()[0]["values"]
      .items()[0]
      .as_string();
}

// "node image" of each live pod.
std::map<std::string, std::string> images(const Cluster& cluster) {
  std::map<std::string, std::string> images;
  for (const Doc& pod : cluster.live_pods()) {
    std::string& text = images[node_of(pod)];
    text +=
        (text.empty() ? "" : " ") + pod.get("spec", "containers").items()[0]["image"].as_string();
  }
  return images;
}

// Binds and runs what the daemon set made.
void run_daemons(Cluster& cluster) {
  for (const Doc& pod : cluster.live_pods()) {
    if (pod.get("spec", "nodeName").as_string().empty()) {
      cluster.bind_pod(api::name_of(pod), node_of(pod));
    }
  }
  cluster.run_all_pods();
}

using Images = std::map<std::string, std::string>;

TEST(DaemonSet, OnePodOnEachNodeThatFits) {
  Cluster cluster;
  cluster.make_node("a", R"({"gpu": "yes"})");
  cluster.make_node("b");
  cluster.make(kSets, daemon_set("", R"(, "nodeSelector": {"gpu": "yes"})"));
  EXPECT_EQ(images(cluster), (Images{{"a", "i:1"}}));
  cluster.make_node("c", R"({"gpu": "yes"})");
  EXPECT_EQ(images(cluster), (Images{{"a", "i:1"}, {"c", "i:1"}}));
  cluster.patch("nodes", "a", R"({"metadata": {"labels": {"gpu": "no"}}})");
  EXPECT_EQ(images(cluster), (Images{{"c", "i:1"}}));
  const Doc status = cluster.get(kSets, "d")["status"];
  EXPECT_EQ(status["desiredNumberScheduled"].as_int(), 1);
  EXPECT_EQ(status["currentNumberScheduled"].as_int(), 1);
}

TEST(DaemonSet, RequiredAffinityIsAskedToo) {
  Cluster cluster;
  cluster.make_node("a", R"({"gpus": "4"})");
  cluster.make_node("b", R"({"gpus": "8"})");
  cluster.make(kSets, daemon_set("", R"(, "affinity": {"nodeAffinity": {
      "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
      {"matchExpressions": [{"key": "gpus", "operator": "Gt", "values": ["5"]}]}]}}})"));
  EXPECT_EQ(images(cluster), (Images{{"b", "i:1"}}));
}

TEST(DaemonSet, TaintsKeepItAwayAndSomeSendItAway) {
  Cluster cluster;
  cluster.make_node("a");
  cluster.patch("nodes", "a", R"({"spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}})");
  cluster.make(kSets, daemon_set());
  EXPECT_EQ(images(cluster), Images{});
  cluster.patch("nodes", "a", R"({"spec": {"taints": null}})");
  run_daemons(cluster);
  EXPECT_EQ(images(cluster), (Images{{"a", "i:1"}}));
  cluster.patch("nodes", "a", R"({"spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}})");
  EXPECT_EQ(images(cluster), (Images{{"a", "i:1"}}));  // it may stay
  EXPECT_EQ(cluster.get(kSets, "d").get("status", "numberMisscheduled").as_int(), 1);
  cluster.patch("nodes", "a", R"({"spec": {"taints": [{"key": "x", "effect": "NoExecute"}]}})");
  EXPECT_EQ(images(cluster), Images{});
}

TEST(DaemonSet, CordonedNodesHaveTheirDaemons) {
  Cluster cluster;
  cluster.make_node("a");
  cluster.patch("nodes", "a", R"({"spec": {"unschedulable": true}})");
  cluster.make(kSets, daemon_set());
  EXPECT_EQ(images(cluster), (Images{{"a", "i:1"}}));
}

TEST(DaemonSet, APodForANodeThatIsGoneGoesToo) {
  Cluster cluster;
  cluster.make_node("a");
  cluster.make(kSets, daemon_set());
  cluster.remove("nodes", "a");
  EXPECT_EQ(cluster.count("pods"), 0U);
}

TEST(DaemonSet, AnUpdateTakesOneNodeAtATime) {
  Cluster cluster;
  for (const char* name : {"a", "b", "c"}) cluster.make_node(name);
  cluster.make(kSets, daemon_set());
  run_daemons(cluster);
  cluster.patch(kSets, "d", R"({"spec": {"template": )" + pod_template("d", "i:2") + "}}");
  EXPECT_EQ(cluster.live_pods().size(), 2U);
  for (int i = 0; i < 3; ++i) {
    for (const Doc& pod : cluster.list("pods")) {
      if (api::is_deleting(pod)) cluster.let_go(api::name_of(pod));
    }
    run_daemons(cluster);
  }
  EXPECT_EQ(images(cluster), (Images{{"a", "i:2"}, {"b", "i:2"}, {"c", "i:2"}}));
  EXPECT_EQ(cluster.get(kSets, "d").get("status", "updatedNumberScheduled").as_int(), 3);
  EXPECT_EQ(cluster.count("controllerrevisions.apps"), 2U);
}

TEST(DaemonSet, PodsThatAreNotUpAreReplacedAtOnce) {
  Cluster cluster;
  for (const char* name : {"a", "b", "c"}) cluster.make_node(name);
  cluster.make(kSets, daemon_set());  // nothing runs
  cluster.patch(kSets, "d", R"({"spec": {"template": )" + pod_template("d", "i:2") + "}}");
  EXPECT_EQ(images(cluster), (Images{{"a", "i:2"}, {"b", "i:2"}, {"c", "i:2"}}));
}

TEST(DaemonSet, SurgingStartsTheNewPodFirst) {
  Cluster cluster;
  cluster.make_node("a");
  cluster.make_node("b");
  cluster.make(kSets, daemon_set(R"(, "updateStrategy": {"type": "RollingUpdate",
      "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})"));
  run_daemons(cluster);
  cluster.patch(kSets, "d", R"({"spec": {"template": )" + pod_template("d", "i:2") + "}}");
  EXPECT_EQ(cluster.live_pods().size(), 3U);
  run_daemons(cluster);
  run_daemons(cluster);
  EXPECT_EQ(images(cluster), (Images{{"a", "i:2"}, {"b", "i:2"}}));
}

TEST(DaemonSet, OnDeleteWaitsForTheUser) {
  Cluster cluster;
  cluster.make_node("a");
  cluster.make(kSets, daemon_set(R"(, "updateStrategy": {"type": "OnDelete"})"));
  cluster.patch(kSets, "d", R"({"spec": {"template": )" + pod_template("d", "i:2") + "}}");
  EXPECT_EQ(images(cluster), (Images{{"a", "i:1"}}));
  cluster.remove("pods", cluster.names("pods"));
  EXPECT_EQ(images(cluster), (Images{{"a", "i:2"}}));
}

TEST(DaemonSet, AFailingDaemonIsReplacedEverMoreSlowly) {
  Cluster cluster;
  cluster.make_node("a");
  cluster.make(kSets, daemon_set());
  int replaced = 0;
  std::string uid;
  for (int second = 0; second < 60; ++second) {
    for (const Doc& pod : cluster.live_pods()) {
      if (api::uid_of(pod) != uid) ++replaced;
      uid = api::uid_of(pod);
      if (pod.get("status", "phase").as_string() != "Failed") {
        cluster.end_pod(api::name_of(pod), "Failed");
      }
    }
    cluster.pass(kSecondInUs);
  }
  EXPECT_GE(replaced, 5);  // after 0, 1, 2, 4, ... seconds
  EXPECT_LE(replaced, 10);
}

TEST(DaemonSet, ALargeFleetIsServed) {
  Cluster cluster;
  for (int i = 0; i < 300; ++i) {
    Doc node = Doc::object();
    node.at("metadata").set("name", "n" + std::to_string(i));
    ASSERT_TRUE(cluster.api().create("nodes", "", std::move(node)).has_value());
  }
  cluster.make(kSets, daemon_set());
  cluster.pass(10 * kSecondInUs);
  EXPECT_EQ(cluster.count("pods"), 300U);
  EXPECT_EQ(cluster.get(kSets, "d").get("status", "currentNumberScheduled").as_int(), 300);
}

}  // namespace
}  // namespace jogak::test
