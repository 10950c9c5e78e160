// SPDX-License-Identifier: Apache-2.0
// Nodes and runtime classes: defaults, what is refused, what a status write takes.
#include <gtest/gtest.h>

#include "apiserver/kinds/testing/workload_bench.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

Doc node() {
  return json(R"({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
                  "status": {"capacity": {"cpu": "8", "nvidia.com/gpu": "4"}}})");
}

TEST(Node, KeepsItsStatusOnCreate) {
  WorkloadBench bench;
  const auto made = bench.create(node());
  ASSERT_TRUE(made.has_value());
  const Doc& status = (*made)["status"];
  EXPECT_EQ(status["capacity"], json(R"({"cpu": "8", "nvidia.com/gpu": "4"})"));
  EXPECT_EQ(status["allocatable"], status["capacity"]);
  EXPECT_EQ(status.get("daemonEndpoints", "kubeletEndpoint", "Port"), Doc(0));
  EXPECT_FALSE(meta(*made).has("generation"));
}

TEST(Node, AllocatableIsNotOverwritten) {
  WorkloadBench bench;
  const auto made = bench.create(with(node(), {R"(status/allocatable={"cpu": "7"})"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->get("status", "allocatable"), json(R"({"cpu": "7"})"));
}

TEST(Node, FinerThanMilliIsRoundedUp) {
  WorkloadBench bench;
  const auto made = bench.create(with(node(), {R"(status/capacity={"cpu": "1.0001"})"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->get("status", "capacity", "cpu"), Doc("1001m"));
}

TEST(Node, TheTwoMembersForPodAddressesAgree) {
  WorkloadBench bench;
  const auto one = bench.create(with(node(), {"spec/podCIDR=10.1.0.0/24"}));
  ASSERT_TRUE(one.has_value());
  EXPECT_EQ(one->get("spec", "podCIDRs"), json(R"(["10.1.0.0/24"])"));
  const auto two = bench.create(
      with(node(), {"metadata/name=m", R"(spec/podCIDRs=["10.2.0.0/24", "fd00::/64"])"}));
  ASSERT_TRUE(two.has_value());
  EXPECT_EQ(two->get("spec", "podCIDR"), Doc("10.2.0.0/24"));
}

TEST(Node, IsRefusedOnCreate) {
  WorkloadBench bench;
  expect_creates(
      bench, node(),
      {{"a name without meaning", {R"(status/capacity={"gpu": "1"})"}},
       {"fraction",
        {R"(status/capacity={"nvidia.com/gpu": "1.5"})", R"(status/allocatable={"cpu": "1"})"},
        "Invalid status.capacity.nvidia.com/gpu"},
       {"negative",
        {R"(status/capacity={"cpu": "-1"})", R"(status/allocatable={"cpu": "1"})"},
        "Invalid status.capacity.cpu"},
       {"more than there is", {R"(status/allocatable={"cpu": "9"})"}},
       {"name", {"metadata/name=Bad_Node"}, "Invalid metadata.name"},
       {"range", {"spec/podCIDR=bad"}, "Invalid spec.podCIDRs[0]"},
       {"leading zeros", {"spec/podCIDR=010.001.000.000/24"}},
       {"two of one family",
        {R"(spec/podCIDRs=["10.2.0.0/24", "10.3.0.0/24"])"},
        "Invalid spec.podCIDRs"},
       {"features out of order",
        {R"(status/declaredFeatures=["B", "A"])"},
        "Invalid status.declaredFeatures[1]"},
       {"a feature twice",
        {R"(status/declaredFeatures=["A", "A"])"},
        "Duplicate status.declaredFeatures[1]"},
       {"feature name", {R"(status/declaredFeatures=["a"])"}, "Invalid status.declaredFeatures[0]"},
       {"feature with a part", {R"(status/declaredFeatures=["A/b"])"}}});
}

TEST(Node, TaintsAreCheckedTwiceOnUpdate) {
  WorkloadBench bench;
  expect_edits(bench, node(),
               {{"right", {R"(spec/taints=[{"key": "a", "effect": "NoSchedule"},
                                   {"key": "a", "effect": "NoExecute"}])"}},
                {"twice",
                 {R"(spec/taints=[{"key": "a", "effect": "NoSchedule"},
                                   {"key": "a", "effect": "NoSchedule", "value": "x"}])"},
                 "Duplicate metadata.taints[1], Duplicate metadata.taints[1]"},
                {"no effect",
                 {R"(spec/taints=[{"key": "a"}])"},
                 "Required metadata.taints[0].effect, Required metadata.taints[0].effect"},
                {"effect",
                 {R"(spec/taints=[{"key": "a", "effect": "Sometimes"}])"},
                 "NotSupported metadata.taints[0].effect, NotSupported metadata.taints[0].effect"},
                {"key and value",
                 {R"(spec/taints=[{"key": "a b", "effect": "NoExecute", "value": "c d"}])"},
                 "Invalid metadata.taints[0].key, Invalid metadata.taints[0].value, "
                 "Invalid metadata.taints[0].key, Invalid metadata.taints[0].value"}});
}

TEST(Node, SomeMembersAreSetOnce) {
  WorkloadBench bench;
  const Doc set = with(node(), {"spec/providerID=x://1", "spec/podCIDR=10.1.0.0/24"});
  expect_edits(bench, set,
               {{"the same", {"spec/providerID=x://1"}},
                {"provider", {"spec/providerID=x://2"}, "Forbidden spec.providerID"},
                {"addresses", {"spec/podCIDR=10.2.0.0/24"}, "Forbidden spec.podCIDRs"},
                {"broken addresses",
                 {"spec/podCIDR=bad"},
                 "Invalid spec.podCIDRs[0], Forbidden spec.podCIDRs"},
                {"more addresses",
                 {R"(spec/podCIDRs=["10.1.0.0/24", "fd00::/64"])"},
                 "Forbidden spec.podCIDRs"}});
  expect_edits(bench, node(), {{"first time", {"spec/providerID=x://1"}}});
}

TEST(Node, TheMainResourceIgnoresStatus) {
  WorkloadBench bench;
  ASSERT_TRUE(bench.create(node()).has_value());
  const auto changed =
      bench.edit(node(), {R"(status/capacity={"cpu": "1"})", "spec/unschedulable=true"});
  ASSERT_TRUE(changed.has_value());
  EXPECT_EQ(changed->get("status", "capacity", "cpu"), Doc("8"));
  EXPECT_EQ(changed->get("spec", "unschedulable"), Doc(true));
}

TEST(Node, AStatusWriteTakesLabelsButNoSpec) {
  WorkloadBench bench;
  ASSERT_TRUE(bench.create(node()).has_value());
  const auto changed = bench.edit(
      node(), {R"(metadata/labels={"s": "t"})", "spec/unschedulable=true", "status/phase=Running"},
      "status");
  ASSERT_TRUE(changed.has_value());
  EXPECT_EQ(meta(*changed)["labels"], json(R"({"s": "t"})"));
  EXPECT_FALSE((*changed)["spec"].has("unschedulable"));
  EXPECT_EQ(changed->get("status", "phase"), Doc("Running"));
}

TEST(Node, StatusIsRefused) {
  WorkloadBench bench;
  expect_edits(bench, node(),
               {{"fraction",
                 {R"(status/capacity={"nvidia.com/gpu": "1.5"})"},
                 "Invalid status.capacity.nvidia.com/gpu"},
                {"addresses",
                 {R"(status/addresses=[{"type": "Hostname", "address": "n"},
                                                   {"type": "Hostname", "address": "n"}])"},
                 "Duplicate status.addresses[1]"}},
               "status");
}

TEST(Node, CanBeSelectedByUnschedulable) {
  WorkloadBench bench;
  const Strategy& rules = *bench.resource_of(node()).strategy;
  EXPECT_EQ(rules.field(node(), "spec.unschedulable"), "false");
  EXPECT_EQ(rules.field(with(node(), {"spec/unschedulable=true"}), "spec.unschedulable"), "true");
}

Doc runtime_class() {
  return json(R"({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass",
                  "metadata": {"name": "r"}, "handler": "h"})");
}

TEST(RuntimeClass, IsRefused) {
  WorkloadBench bench;
  expect_creates(
      bench, runtime_class(),
      {{"right", {R"(overhead/podFixed={"cpu": "10m"})"}},
       {"no handler", {"handler"}, "Required handler"},
       {"handler", {"handler=A.b"}, "Invalid handler"},
       {"overhead",
        {R"(overhead/podFixed={"gpu": "1"})"},
        "Invalid overhead.limits[gpu], Invalid overhead.limits[gpu]"},
       {"selector", {R"(scheduling/nodeSelector={"a b": "c"})"}, "Invalid scheduling.nodeSelector"},
       {"toleration",
        {R"(scheduling/tolerations=[{"key": "a", "operator": "Is"}])"},
        "NotSupported scheduling.tolerations[0].operator"},
       {"the same toleration",
        {R"(scheduling/tolerations=[{"key": "a"}, {"key": "a"}])"},
        "Duplicate scheduling.tolerations[1]"}});
  expect_edits(bench, runtime_class(), {{"handler", {"handler=i"}, "Invalid handler"}});
}

}  // namespace
}  // namespace jogak::api
