// SPDX-License-Identifier: Apache-2.0
//
// Garbage, namespaces, nodes, taints, old pods and old events.
#include <gtest/gtest.h>

#include <set>

#include <fmt/core.h>

#include "apiserver/object/meta.h"
#include "test/cluster/cluster.h"

namespace jogak::test {
namespace {

std::string map_of(std::string_view name, const Doc& owner = {}, bool blocks = false) {
  std::string owners;
  if (!owner.is_null()) {
    owners = fmt::format(R"(, "ownerReferences": [{{"apiVersion": "v1", "kind": "ConfigMap",
        "name": "{}", "uid": "{}", "blockOwnerDeletion": {}}}])",
                         api::name_of(owner), api::uid_of(owner), blocks);
  }
  return fmt::format(R"({{"metadata": {{"name": "{}"{}}}}})", name, owners);
}

TEST(Garbage, DependentsGoDownTheChain) {
  Cluster cluster;
  const Doc a = cluster.make("configmaps", map_of("a"));
  const Doc b = cluster.make("configmaps", map_of("b", a));
  cluster.make("configmaps", map_of("c", b));
  cluster.remove("configmaps", "a");
  EXPECT_EQ(cluster.names("configmaps"), "kube-root-ca.crt");
}

TEST(Garbage, OrphansStayAndForgetTheirOwner) {
  Cluster cluster;
  const Doc a = cluster.make("configmaps", map_of("a"));
  cluster.make("configmaps", map_of("b", a));
  cluster.remove("configmaps", "a", "Orphan");
  EXPECT_EQ(cluster.names("configmaps"), "b kube-root-ca.crt");
  EXPECT_TRUE(api::meta(cluster.get("configmaps", "b"))["ownerReferences"].empty());
}

TEST(Garbage, InTheForegroundTheOwnerGoesLast) {
  Cluster cluster;
  const Doc a = cluster.make("configmaps", map_of("a"));
  cluster.make("configmaps", map_of("b", a, true));
  cluster.patch("configmaps", "b", R"({"metadata": {"finalizers": ["example.com/wait"]}})");
  cluster.remove("configmaps", "a", "Foreground");
  EXPECT_TRUE(api::is_deleting(cluster.get("configmaps", "a")));
  EXPECT_TRUE(api::is_deleting(cluster.get("configmaps", "b")));
  cluster.patch("configmaps", "b", R"({"metadata": {"finalizers": null}})");
  EXPECT_EQ(cluster.names("configmaps"), "kube-root-ca.crt");
}

TEST(Garbage, AnOwnerThatNeverWasMeansNothing) {
  Cluster cluster;
  Doc stranger = json(map_of("x"));
  stranger.at("metadata").set("uid", "11111111-2222-3333-4444-555555555555");
  cluster.make("configmaps", map_of("b", stranger));
  cluster.pass(60 * kSecondInUs);
  EXPECT_EQ(cluster.names("configmaps"), "kube-root-ca.crt");
}

TEST(Namespace, HasItsAccountAndGoesWithAllInIt) {
  Cluster cluster;
  cluster.make("namespaces", R"({"metadata": {"name": "x"}})");
  EXPECT_EQ(cluster.names("serviceaccounts", "x"), "default");
  EXPECT_EQ(cluster.names("configmaps", "x"), "kube-root-ca.crt");
  cluster.make("pods", R"({"metadata": {"name": "p", "namespace": "x"},
      "spec": {"containers": [{"name": "c", "image": "i:1"}]}})");
  cluster.remove("namespaces", "x");
  cluster.pass(20 * kSecondInUs);
  EXPECT_TRUE(cluster.get("namespaces", "x").is_null());
  EXPECT_EQ(cluster.names("pods", "x"), "");
}

TEST(Namespace, AFinalizerHoldsItAndIsNamed) {
  Cluster cluster;
  cluster.make("namespaces", R"({"metadata": {"name": "x"}})");
  cluster.make("configmaps", R"({"metadata": {"name": "m", "namespace": "x",
      "finalizers": ["example.com/wait"]}})");
  cluster.remove("namespaces", "x");
  cluster.pass(20 * kSecondInUs);
  const Doc space = cluster.get("namespaces", "x");
  EXPECT_TRUE(api::condition_is(space, "NamespaceFinalizersRemaining", "True"));
  EXPECT_TRUE(api::condition_is(space, "NamespaceContentRemaining", "True"));
  cluster.patch("configmaps", "m", R"({"metadata": {"finalizers": null}})", "", "x");
  cluster.pass(20 * kSecondInUs);
  EXPECT_TRUE(cluster.get("namespaces", "x").is_null());
}

std::set<std::string> taints(const Cluster& cluster, std::string_view node) {
  std::set<std::string> keys;
  const Doc object = cluster.get("nodes", node);
  for (const Doc& taint : object.get("spec", "taints").items()) {
    const std::string& key = taint["key"].as_string();
    keys.insert(key.substr(key.find('/') + 1) + ":" + taint["effect"].as_string());
  }
  return keys;
}
using Taints = std::set<std::string>;

TEST(Nodes, ALeaseThatStopsMakesANodeUnreachable) {
  Cluster cluster;
  cluster.make_node("alive");
  cluster.make_node("dead");
  for (int i = 0; i < 12; ++i) {
    cluster.pass(10 * kSecondInUs);
    cluster.renew_lease("alive");
    if (i < 2) cluster.renew_lease("dead");
  }
  EXPECT_EQ(taints(cluster, "alive"), Taints{});
  EXPECT_TRUE(api::condition_is(cluster.get("nodes", "dead"), "Ready", "Unknown"));
  EXPECT_EQ(taints(cluster, "dead"), (Taints{"unreachable:NoSchedule", "unreachable:NoExecute"}));
}

TEST(Nodes, PodsOfALostNodeGoAfterTheirPatience) {
  Cluster cluster;
  cluster.make_node("alive");
  cluster.make_node("dead");
  cluster.make("pods", R"({"metadata": {"name": "p"}, "spec": {"nodeName": "dead",
      "containers": [{"name": "c", "image": "i:1"}]}})");
  const auto live = [&](int seconds) {
    for (int i = 0; i < seconds / 10; ++i) {
      cluster.pass(10 * kSecondInUs);
      cluster.renew_lease("alive");
    }
  };
  live(100);  // lost after 50 s; 300 s of toleration come by default
  EXPECT_FALSE(api::is_deleting(cluster.get("pods", "p")));
  live(300);
  EXPECT_TRUE(api::is_deleting(cluster.get("pods", "p")));
}

TEST(Nodes, WhenAllAreSilentNobodyIsEvicted) {
  Cluster cluster;
  cluster.make_node("a");
  cluster.make_node("b");
  cluster.pass(120 * kSecondInUs);
  EXPECT_EQ(taints(cluster, "a"), (Taints{"unreachable:NoSchedule"}));
}

TEST(Nodes, ConditionsAreTaints) {
  Cluster cluster;
  cluster.make_node("a");
  cluster.patch("nodes", "a", R"({"spec": {"unschedulable": true}})");
  EXPECT_EQ(taints(cluster, "a"), (Taints{"unschedulable:NoSchedule"}));
  cluster.patch("nodes", "a", R"({"spec": {"unschedulable": false}, "metadata": {}})");
  cluster.patch("nodes", "a", R"({"status": {"conditions": [
      {"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "True"}]}})",
                "status");
  EXPECT_EQ(taints(cluster, "a"), (Taints{"disk-pressure:NoSchedule"}));
}

TEST(Taints, NoExecuteSendsAwayWhoDoesNotTolerateIt) {
  Cluster cluster;
  cluster.make_node("n");
  const auto make_pod = [&](const std::string& name, const std::string& tolerations) {
    cluster.make("pods", fmt::format(R"({{"metadata": {{"name": "{}"}}, "spec": {{"nodeName": "n",
        "containers": [{{"name": "c", "image": "i:1"}}], "tolerations": [{}]}}}})",
                                     name, tolerations));
  };
  make_pod("none", "");
  make_pod("always", R"({"key": "x", "operator": "Exists"})");
  make_pod("a-while", R"({"key": "x", "operator": "Exists", "effect": "NoExecute",
      "tolerationSeconds": 20})");
  cluster.patch("nodes", "n", R"({"spec": {"taints": [{"key": "x", "effect": "NoExecute"}]}})");
  const auto is_going = [&](const char* name) {
    return api::is_deleting(cluster.get("pods", name));
  };
  EXPECT_TRUE(is_going("none"));
  EXPECT_TRUE(api::condition_is(cluster.get("pods", "none"), "DisruptionTarget", "True"));
  EXPECT_FALSE(is_going("a-while"));
  cluster.pass(25 * kSecondInUs);
  EXPECT_TRUE(is_going("a-while"));
  EXPECT_FALSE(is_going("always"));
}

TEST(Taints, ATaintThatGoesInTimeSparesThePod) {
  Cluster cluster;
  cluster.make_node("n");
  cluster.make("pods", R"({"metadata": {"name": "p"}, "spec": {"nodeName": "n",
      "containers": [{"name": "c", "image": "i:1"}], "tolerations": [{"key": "x",
      "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 20}]}})");
  cluster.patch("nodes", "n", R"({"spec": {"taints": [{"key": "x", "effect": "NoExecute"}]}})");
  cluster.pass(10 * kSecondInUs);
  cluster.patch("nodes", "n", R"({"spec": {"taints": null}})");
  cluster.pass(30 * kSecondInUs);
  EXPECT_FALSE(api::is_deleting(cluster.get("pods", "p")));
}

TEST(PodGc, PodsOfAMissingNodeGo) {
  Cluster cluster;
  cluster.make_node("n");
  cluster.make("pods", R"({"metadata": {"name": "p"}, "spec": {"nodeName": "n",
      "containers": [{"name": "c", "image": "i:1"}]}})");
  cluster.remove("nodes", "n");
  cluster.pass(30 * kSecondInUs);
  EXPECT_EQ(cluster.names("pods"), "p");  // it may come back
  cluster.pass(60 * kSecondInUs);
  EXPECT_EQ(cluster.names("pods"), "");
}

TEST(Events, GoAfterAnHour) {
  Cluster cluster;
  cluster.make("replicasets.apps", R"({"metadata": {"name": "r"}, "spec": {"replicas": 60,
      "selector": {"matchLabels": {"a": "r"}}, "template": )" +
                                       pod_template("r") + "}}");
  EXPECT_EQ(cluster.events_of("r").size(), 60U);
  cluster.pass(3590 * kSecondInUs);
  EXPECT_EQ(cluster.events_of("r").size(), 60U);
  cluster.pass(20 * kSecondInUs);
  EXPECT_EQ(cluster.count("events"), 0U);
}

TEST(Events, OneThatIsWrittenAgainStays) {
  Cluster cluster;
  cluster.make("events", R"({"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod",
      "name": "p", "namespace": "default"}, "reason": "R", "message": "m", "type": "Normal"})");
  cluster.pass(3000 * kSecondInUs);
  cluster.patch("events", "e", R"({"count": 2})");
  cluster.pass(3000 * kSecondInUs);
  EXPECT_FALSE(cluster.get("events", "e").is_null());
  cluster.pass(1000 * kSecondInUs);
  EXPECT_TRUE(cluster.get("events", "e").is_null());
}

}  // namespace
}  // namespace jogak::test
