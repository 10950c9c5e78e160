// SPDX-License-Identifier: Apache-2.0
// Stateful sets: every default down to the claims, every refusal, the few changes that are allowed.
#include <gtest/gtest.h>

#include "apiserver/kinds/testing/workload_bench.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

Doc stateful_set() {
  return json(R"({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s"},
    "spec": {"serviceName": "h", "selector": {"matchLabels": {"a": "s"}},
             "template": {"metadata": {"labels": {"a": "s"}},
                          "spec": {"containers": [{"name": "c", "image": "i:1"}]}},
             "volumeClaimTemplates": [{"metadata": {"name": "v"},
               "spec": {"accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "1Gi"}}}}]}})");
}

TEST(StatefulSet, GetsItsDefaults) {
  WorkloadBench bench;
  const auto made = bench.create(stateful_set());
  ASSERT_TRUE(made.has_value());
  const Doc& spec = (*made)["spec"];
  EXPECT_EQ(spec["replicas"], Doc(1));
  EXPECT_EQ(spec["podManagementPolicy"], Doc("OrderedReady"));
  EXPECT_EQ(spec["updateStrategy"],
            json(R"({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})"));
  EXPECT_EQ(spec["revisionHistoryLimit"], Doc(10));
  EXPECT_EQ(spec["persistentVolumeClaimRetentionPolicy"],
            json(R"({"whenDeleted": "Retain", "whenScaled": "Retain"})"));
  EXPECT_EQ(spec["volumeClaimTemplates"].items().at(0),
            json(R"({"kind": "PersistentVolumeClaim", "apiVersion": "v1",
                     "metadata": {"name": "v"},
                     "spec": {"accessModes": ["ReadWriteOnce"],
                              "resources": {"requests": {"storage": "1Gi"}},
                              "volumeMode": "Filesystem"},
                     "status": {"phase": "Pending"}})"));
  EXPECT_EQ((*made)["status"], json(R"({"replicas": 0, "availableReplicas": 0})"));
}

TEST(StatefulSet, OnlyAStrategyOfTheServersChoiceGetsAPartition) {
  WorkloadBench bench;
  const auto named = bench.create(with(stateful_set(), {"spec/updateStrategy/type=RollingUpdate"}));
  ASSERT_TRUE(named.has_value());
  EXPECT_EQ((*named)["spec"]["updateStrategy"], json(R"({"type": "RollingUpdate"})"));
  const auto half =
      bench.create(with(stateful_set(), {"metadata/name=t", "spec/updateStrategy/rollingUpdate={}",
                                         "spec/updateStrategy/type=RollingUpdate"}));
  ASSERT_TRUE(half.has_value());
  EXPECT_EQ((*half)["spec"]["updateStrategy"]["rollingUpdate"], json(R"({"partition": 0})"));
}

TEST(StatefulSet, MaxUnavailableIsBehindAGate) {
  WorkloadBench bench;
  const auto made =
      bench.create(with(stateful_set(), {"spec/updateStrategy/rollingUpdate/maxUnavailable=2"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_FALSE((*made)["spec"]["updateStrategy"]["rollingUpdate"].has("maxUnavailable"));
  const auto changed =
      bench.edit(stateful_set(), {"spec/updateStrategy/rollingUpdate/maxUnavailable=2"});
  ASSERT_TRUE(changed.has_value());
  EXPECT_FALSE((*changed)["spec"]["updateStrategy"]["rollingUpdate"].has("maxUnavailable"));
}

TEST(StatefulSet, IsRefusedOnCreate) {
  WorkloadBench bench;
  const std::string claim = "spec/volumeClaimTemplates/0/spec/";
  expect_creates(
      bench, stateful_set(),
      {{"right", {}},
       {"name", {"metadata/name=a.b"}, "Invalid metadata.name"},
       {"management", {"spec/podManagementPolicy=Any"}, "Invalid spec.podManagementPolicy"},
       {"strategy", {"spec/updateStrategy/type=Any"}, "Invalid spec.updateStrategy"},
       {"on delete rolls",
        {"spec/updateStrategy/type=OnDelete", "spec/updateStrategy/rollingUpdate/partition=1"},
        "Invalid spec.updateStrategy.rollingUpdate"},
       {"partition",
        {"spec/updateStrategy/rollingUpdate/partition=-1"},
        "Invalid spec.updateStrategy.rollingUpdate.partition"},
       {"retention",
        {"spec/persistentVolumeClaimRetentionPolicy/whenDeleted=X",
         "spec/persistentVolumeClaimRetentionPolicy/whenScaled=Y"},
        "NotSupported spec.persistentVolumeClaimRetentionPolicy.whenDeleted, "
        "NotSupported spec.persistentVolumeClaimRetentionPolicy.whenScaled"},
       {"claim without modes",
        {claim + "accessModes=[]"},
        "Required spec.volumeClaimTemplates[0].spec.accessModes"},
       {"claim without size",
        {claim + "resources"},
        "Required spec.volumeClaimTemplates[0].spec.resources[storage]"},
       {"replicas", {"spec/replicas=-1"}, "Invalid spec.replicas"},
       {"ready seconds", {"spec/minReadySeconds=-1"}, "Invalid spec.minReadySeconds"},
       {"ordinals", {"spec/ordinals/start=-1"}, "Invalid spec.ordinals.start"},
       {"service", {"spec/serviceName=A_b"}, "Invalid spec.serviceName"},
       {"no service", {"spec/serviceName"}},
       {"no selector",
        {"spec/selector"},
        "Required spec.selector, Invalid spec.template.metadata.labels"},
       {"empty selector", {"spec/selector={}"}, "Invalid spec.selector"},
       {"other labels", {"spec/selector/matchLabels/a=q"}, "Invalid spec.template.metadata.labels"},
       {"restart policy",
        {"spec/template/spec/restartPolicy=Never"},
        "NotSupported spec.template.spec.restartPolicy"},
       {"deadline",
        {"spec/template/spec/activeDeadlineSeconds=5"},
        "Forbidden spec.template.spec.activeDeadlineSeconds"}});
}

TEST(StatefulSet, AClaimCountsAsAVolumeOfThePods) {
  WorkloadBench bench;
  const std::string mounts = "spec/template/spec/containers/0/volumeMounts=";
  expect_creates(bench, stateful_set(),
                 {{"of the claim", {mounts + R"([{"name": "v", "mountPath": "/v"}])"}},
                  {"of nothing",
                   {mounts + R"([{"name": "w", "mountPath": "/w"}])"},
                   "NotFound spec.template.spec.containers[0].volumeMounts[0].name"},
                  {"a volume of that name gives way",
                   {R"(spec/template/spec/volumes=[{"name": "v", "emptyDir": {}}])",
                    mounts + R"([{"name": "v", "mountPath": "/v"}])"}}});
}

TEST(StatefulSet, HostNameAndSubdomainAreTheControllers) {
  WorkloadBench bench;
  EXPECT_EQ(refusal(bench.create(with(stateful_set(), {"spec/template/spec/hostname=A_B",
                                                       "spec/template/spec/subdomain=C_D"}))),
            "");
}

TEST(StatefulSet, LabelsOfTheTemplateAreLookedAtTwice) {
  WorkloadBench bench;
  EXPECT_EQ(
      refusal(bench.create(with(stateful_set(), {R"(spec/template/metadata/labels/b="c d")"}))),
      "Invalid spec.template.labels, Invalid spec.template.labels");
}

TEST(StatefulSet, FewMembersMayChange) {
  WorkloadBench bench;
  expect_edits(bench, stateful_set(),
               {{"replicas", {"spec/replicas=5"}},
                {"template", {"spec/template/spec/containers/0/image=i:2"}},
                {"strategy", {"spec/updateStrategy/rollingUpdate/partition=1"}},
                {"ready seconds", {"spec/minReadySeconds=5"}},
                {"ordinals", {"spec/ordinals/start=1"}},
                {"history", {"spec/revisionHistoryLimit=2"}},
                {"retention", {"spec/persistentVolumeClaimRetentionPolicy/whenDeleted=Delete"}},
                {"service", {"spec/serviceName=other"}, "Forbidden spec"},
                {"management", {"spec/podManagementPolicy=Parallel"}, "Forbidden spec"},
                {"claims",
                 {R"(spec/volumeClaimTemplates/0/spec/resources/requests/storage="2Gi")"},
                 "Forbidden spec"},
                {"selector",
                 {"spec/selector/matchLabels/a=z", "spec/template/metadata/labels/a=z"},
                 "Forbidden spec"}});
}

TEST(StatefulSet, StatusIsCheckedAgainstItself) {
  WorkloadBench bench;
  expect_edits(
      bench, stateful_set(),
      {{"right",
        {"status/replicas=2", "status/readyReplicas=2", "status/availableReplicas=1",
         "status/currentReplicas=2", "status/updatedReplicas=1", "status/collisionCount=0"}},
       {"replicas",
        {"status/replicas=-1"},
        "Invalid status.replicas, Invalid status.readyReplicas, Invalid status.currentReplicas, "
        "Invalid status.updatedReplicas, Invalid status.availableReplicas"},
       {"ready", {"status/readyReplicas=1"}, "Invalid status.readyReplicas"},
       {"current", {"status/currentReplicas=1"}, "Invalid status.currentReplicas"},
       {"updated", {"status/updatedReplicas=1"}, "Invalid status.updatedReplicas"},
       {"available",
        {"status/replicas=2", "status/availableReplicas=1"},
        "Invalid status.availableReplicas"},
       {"generation", {"status/observedGeneration=-1"}, "Invalid status.observedGeneration"},
       {"collisions", {"status/collisionCount=-1"}, "Invalid status.collisionCount"}},
      "status");
}

TEST(StatefulSet, EndlessHistoryIsWarnedAbout) {
  WorkloadBench bench;
  ASSERT_EQ(refusal(bench.create(with(stateful_set(), {"spec/revisionHistoryLimit=-1"}))), "");
  ASSERT_EQ(bench.warnings().size(), 1U);
  EXPECT_TRUE(bench.warnings()[0].starts_with("spec.revisionHistoryLimit: a negative value"));
  ASSERT_EQ(refusal(bench.edit(stateful_set(), {"spec/replicas=2"})), "");
  EXPECT_EQ(bench.warnings().size(), 1U);
}

}  // namespace
}  // namespace jogak::api
