// SPDX-License-Identifier: Apache-2.0
// Replica sets and replication controllers: every default and every refusal.
#include <gtest/gtest.h>

#include "apiserver/kinds/testing/workload_bench.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

Doc replica_set() {
  return json(R"({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "r"},
    "spec": {"selector": {"matchLabels": {"a": "r"}},
             "template": {"metadata": {"labels": {"a": "r"}},
                          "spec": {"containers": [{"name": "c", "image": "i:1"}]}}}})");
}

Doc controller() {
  return json(R"({"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "rc"},
    "spec": {"template": {"metadata": {"labels": {"a": "rc"}},
                          "spec": {"containers": [{"name": "c", "image": "i:1"}]}}}})");
}

TEST(ReplicaSet, GetsItsDefaults) {
  WorkloadBench bench;
  const auto made = bench.create(replica_set());
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["spec"]["replicas"], Doc(1));
  EXPECT_EQ((*made)["spec"]["template"]["spec"]["dnsPolicy"], Doc("ClusterFirst"));
  EXPECT_EQ((*made)["status"], json(R"({"replicas": 0})"));
  EXPECT_EQ(meta(*made)["generation"], Doc(1));
}

TEST(ReplicaSet, IsRefusedOnCreate) {
  WorkloadBench bench;
  expect_creates(
      bench, replica_set(),
      {{"right", {}},
       {"replicas", {"spec/replicas=-1"}, "Invalid spec.replicas"},
       {"ready seconds", {"spec/minReadySeconds=-1"}, "Invalid spec.minReadySeconds"},
       {"no selector",
        {"spec/selector"},
        "Required spec.selector, Invalid spec.template.metadata.labels"},
       {"empty selector", {"spec/selector={}"}, "Invalid spec.selector"},
       {"bad key",
        {R"(spec/selector/matchLabels={"a b": "c"})"},
        "Invalid spec.selector.matchLabels, Invalid spec.selector"},
       {"other labels", {"spec/selector/matchLabels/a=q"}, "Invalid spec.template.metadata.labels"},
       {"restart policy",
        {"spec/template/spec/restartPolicy=OnFailure"},
        "NotSupported spec.template.spec.restartPolicy"},
       {"deadline",
        {"spec/template/spec/activeDeadlineSeconds=5"},
        "Forbidden spec.template.spec.activeDeadlineSeconds"}});
}

TEST(ReplicaSet, UpdatesAreChecked) {
  WorkloadBench bench;
  expect_edits(bench, replica_set(),
               {{"selector",
                 {"spec/selector/matchLabels/a=q"},
                 "Invalid spec.template.metadata.labels, Invalid spec.selector"},
                {"ready seconds", {"spec/minReadySeconds=5"}},
                {"replicas", {"spec/replicas=-5"}, "Invalid spec.replicas"}});
}

TEST(ReplicaSet, OnlyTheSpecRaisesTheGeneration) {
  WorkloadBench bench;
  ASSERT_TRUE(bench.create(replica_set()).has_value());
  EXPECT_EQ(meta(*bench.edit(replica_set(), {"metadata/annotations/a=b"}))["generation"], Doc(1));
  EXPECT_EQ(meta(*bench.edit(replica_set(), {"spec/replicas=5"}))["generation"], Doc(2));
}

const std::vector<Edited> kStatusRows = {
    {"right",
     {"status/replicas=3", "status/readyReplicas=2", "status/availableReplicas=2",
      "status/fullyLabeledReplicas=3"}},
    {"labeled", {"status/fullyLabeledReplicas=1"}, "Invalid status.fullyLabeledReplicas"},
    {"labeled below zero",
     {"status/fullyLabeledReplicas=-1"},
     "Invalid status.fullyLabeledReplicas"},
    {"ready", {"status/readyReplicas=1"}, "Invalid status.readyReplicas"},
    {"available",
     {"status/replicas=3", "status/readyReplicas=2", "status/availableReplicas=9"},
     "Invalid status.availableReplicas, Invalid status.availableReplicas"},
    {"generation", {"status/observedGeneration=-1"}, "Invalid status.observedGeneration"}};

TEST(ReplicaSet, StatusIsCheckedAgainstItself) {
  WorkloadBench bench;
  expect_edits(bench, replica_set(), kStatusRows, "status");
  expect_edits(
      bench, replica_set(),
      {{"terminating", {"status/terminatingReplicas=-1"}, "Invalid status.terminatingReplicas"}},
      "status");
}

TEST(ReplicaSet, StatusUpdateTakesLabelsToo) {
  WorkloadBench bench;
  ASSERT_TRUE(bench.create(replica_set()).has_value());
  const auto changed =
      bench.edit(replica_set(), {"metadata/labels/x=y", "spec/replicas=9"}, "status");
  ASSERT_TRUE(changed.has_value());
  EXPECT_EQ(meta(*changed)["labels"]["x"], Doc("y"));
  EXPECT_EQ((*changed)["spec"]["replicas"], Doc(1));
}

TEST(ReplicationController, TakesSelectorAndLabelsFromItsTemplate) {
  WorkloadBench bench;
  const auto made = bench.create(controller());
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["spec"]["replicas"], Doc(1));
  EXPECT_EQ((*made)["spec"]["selector"], json(R"({"a": "rc"})"));
  EXPECT_EQ(meta(*made)["labels"], json(R"({"a": "rc"})"));
}

TEST(ReplicationController, KeepsItsOwnSelectorAndLabels) {
  WorkloadBench bench;
  const auto made =
      bench.create(with(controller(), {"spec/selector/b=c", "spec/template/metadata/labels/b=c",
                                       "metadata/labels/own=1x"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["spec"]["selector"], json(R"({"b": "c"})"));
  EXPECT_EQ(meta(*made)["labels"], json(R"({"own": "1x"})"));
}

TEST(ReplicationController, IsRefusedOnCreate) {
  WorkloadBench bench;
  expect_creates(
      bench, controller(),
      {{"right", {}},
       {"ready seconds", {"spec/minReadySeconds=-1"}, "Invalid spec.minReadySeconds"},
       {"replicas", {"spec/replicas=-1"}, "Invalid spec.replicas"},
       {"no template", {"spec/template"}, "Required spec.selector, Required spec.template"},
       {"no labels", {"spec/template/metadata"}, "Required spec.selector"},
       {"other labels", {"spec/selector/a=b"}, "Invalid spec.template.metadata.labels"},
       {"restart policy",
        {"spec/template/spec/restartPolicy=Never"},
        "NotSupported spec.template.spec.restartPolicy"},
       {"deadline",
        {"spec/template/spec/activeDeadlineSeconds=5"},
        "Forbidden spec.template.spec.activeDeadlineSeconds"}});
}

TEST(ReplicationController, ItsSelectorMayChange) {
  WorkloadBench bench;
  expect_edits(bench, controller(),
               {{"with the labels", {"spec/selector/a=z", "spec/template/metadata/labels/a=z"}},
                {"without", {"spec/selector/a=z"}, "Invalid spec.template.metadata.labels"}});
}

TEST(ReplicationController, StatusIsCheckedAgainstItself) {
  WorkloadBench bench;
  expect_edits(bench, controller(), kStatusRows, "status");
}

TEST(ReplicationController, CanBeFoundByItsReplicas) {
  WorkloadBench bench;
  const auto made = bench.create(controller());
  ASSERT_TRUE(made.has_value());
  const Strategy& strategy = *bench.resource_of(*made).strategy;
  EXPECT_EQ(strategy.field(*made, "status.replicas"), "0");
  EXPECT_EQ(strategy.field(with(*made, {"status/replicas=4"}), "status.replicas"), "4");
  EXPECT_EQ(strategy.field(controller(), "status.replicas"), "0");
}

}  // namespace
}  // namespace jogak::api
