// SPDX-License-Identifier: Apache-2.0
// storage.k8s.io: classes, drivers, nodes of drivers, capacities, attachments.
#include <gtest/gtest.h>

#include "apiserver/kinds/testing/workload_bench.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

Doc object(std::string_view kind, std::string_view members) {
  Doc made = json(members);
  made.set("kind", kind).set("apiVersion", "storage.k8s.io/v1");
  made.at("metadata").set("name", "o");
  return made;
}

Doc storage_class() { return object("StorageClass", R"({"provisioner": "x.example/p"})"); }

TEST(StorageClass, HasDefaults) {
  WorkloadBench bench;
  const auto made = bench.create(storage_class());
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["reclaimPolicy"], Doc("Delete"));
  EXPECT_EQ((*made)["volumeBindingMode"], Doc("Immediate"));
}

TEST(StorageClass, IsRefused) {
  WorkloadBench bench;
  expect_creates(
      bench, storage_class(),
      {{"provisioner", {"provisioner"}, "Required provisioner"},
       {"capitals are fine", {"provisioner=X.example/P"}},
       {"odd provisioner", {"provisioner=a b"}, "Invalid provisioner"},
       {"mode", {"volumeBindingMode=Foo"}, "NotSupported volumeBindingMode"},
       {"policy", {"reclaimPolicy=Recycle"}, "NotSupported reclaimPolicy"},
       {"parameter", {R"(parameters={"": "x"})"}, "Invalid parameters"},
       {"topology",
        {R"(allowedTopologies=[{"matchLabelExpressions": [{"key": "a b"}]}])"},
        "Required allowedTopologies[0].matchLabelExpressions[0].values, "
        "Invalid allowedTopologies[0].matchLabelExpressions[0].key"},
       {"value twice",
        {R"(allowedTopologies=[{"matchLabelExpressions": [{"key": "a", "values": ["x", "x"]}]}])"},
        "Duplicate allowedTopologies[0].matchLabelExpressions[0].values[1]"},
       {"term twice",
        {R"(allowedTopologies=[{"matchLabelExpressions": [{"key": "a", "values": ["x", "y"]}]},
                               {"matchLabelExpressions": [{"key": "a", "values": ["y", "x"]}]}])"},
        "Duplicate allowedTopologies[1].matchLabelExpressions"}});
}

TEST(StorageClass, MostOfItStays) {
  WorkloadBench bench;
  expect_edits(bench, storage_class(),
               {{"expansion", {"allowVolumeExpansion=true"}},
                {"parameters", {R"(parameters={"a": "b"})"}, "Invalid parameters"},
                {"policy", {"reclaimPolicy=Retain"}, "Invalid reclaimPolicy"},
                {"mode", {"volumeBindingMode=WaitForFirstConsumer"}, "Invalid volumeBindingMode"},
                {"provisioner", {"provisioner=y"}, "Invalid provisioner"}});
}

TEST(CsiNode, IsRefused) {
  WorkloadBench bench;
  const Doc node = object("CSINode", R"({"spec": {"drivers": [{"name": "d", "nodeID": "n"}]}})");
  expect_creates(
      bench, node,
      {{"right", {}},
       {"no drivers", {"spec/drivers=[]"}},
       {"nothing in it",
        {"spec/drivers=[{}]"},
        "Required spec.drivers[0].name, Required spec.drivers[0].nodeID"},
       {"long", {"spec/drivers/0/name=" + std::string(64, 'x')}, "TooLong spec.drivers[0].name"},
       {"node id",
        {"spec/drivers/0/nodeID=" + std::string(257, 'x')},
        "Invalid spec.drivers[0].nodeID"},
       {"count",
        {"spec/drivers/0/allocatable/count=-1"},
        "Invalid spec.drivers[0].allocatable.count"},
       {"twice",
        {R"(spec/drivers=[{"name": "d", "nodeID": "n"}, {"name": "d", "nodeID": "m"}])"},
        "Duplicate spec.drivers[1].name"},
       {"keys", {R"(spec/drivers/0/topologyKeys=["zone", "zone"])"}, "Duplicate spec.drivers[0]"}});
  expect_edits(bench, node,
               {{"what it holds", {"spec/drivers/0/allocatable/count=4"}},
                {"another driver", {R"(spec/drivers=[{"name": "e", "nodeID": "m"}])"}},
                {"node", {"spec/drivers/0/nodeID=m"}, "Invalid spec.drivers"}});
}

Doc driver() { return object("CSIDriver", "{}"); }

TEST(CsiDriver, HasDefaults) {
  WorkloadBench bench;
  const auto made = bench.create(driver());
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["spec"],
            json(R"({"attachRequired": true, "podInfoOnMount": false, "storageCapacity": false,
                     "requiresRepublish": false, "seLinuxMount": false,
                     "fsGroupPolicy": "ReadWriteOnceWithFSType",
                     "volumeLifecycleModes": ["Persistent"]})"));
  EXPECT_FALSE(meta(*made).has("generation"));
}

TEST(CsiDriver, CountsItsChanges) {
  WorkloadBench bench;
  ASSERT_TRUE(bench.create(driver()).has_value());
  const auto changed = bench.edit(driver(), {"spec/podInfoOnMount=true"});
  ASSERT_TRUE(changed.has_value());
  EXPECT_EQ(meta(*changed)["generation"], Doc(1));
}

TEST(CsiDriver, IsRefused) {
  WorkloadBench bench;
  expect_creates(
      bench, driver(),
      {{"policy", {"spec/fsGroupPolicy=Odd"}, "NotSupported spec.fsGroupPolicy"},
       {"mode", {R"(spec/volumeLifecycleModes=["Odd"])"}, "NotSupported spec.volumeLifecycleModes"},
       {"short token",
        {R"(spec/tokenRequests=[{"audience": "a", "expirationSeconds": 1}])"},
        "Invalid spec.tokenRequests[0].expirationSeconds"},
       {"audience twice",
        {R"(spec/tokenRequests=[{"audience": "a"}, {"audience": "a"}])"},
        "Duplicate spec.tokenRequests[1].audience"},
       {"period",
        {"spec/nodeAllocatableUpdatePeriodSeconds=9"},
        "Invalid spec.nodeAllocatableUpdatePeriodSeconds"},
       {"no tokens",
        {"spec/serviceAccountTokenInSecrets=true"},
        "Invalid spec.serviceAccountTokenInSecrets"}});
  expect_edits(bench, driver(),
               {{"attach", {"spec/attachRequired=false"}, "Invalid spec.attachedRequired"},
                {"modes",
                 {R"(spec/volumeLifecycleModes=["Ephemeral"])"},
                 "Invalid spec.volumeLifecycleModes"}});
}

TEST(CsiDriver, WarnsOfTokensInAttributes) {
  WorkloadBench bench;
  ASSERT_TRUE(
      bench.create(with(driver(), {R"(spec/tokenRequests=[{"audience": "a"}])"})).has_value());
  EXPECT_EQ(bench.warnings().size(), 1U);
}

TEST(CsiCapacity, IsRefused) {
  WorkloadBench bench;
  const Doc capacity = object("CSIStorageCapacity", R"({"storageClassName": "s"})");
  expect_creates(bench, capacity,
                 {{"right", {"capacity=1Gi", "nodeTopology={}"}},
                  {"class", {"storageClassName"}, "Invalid storageClassName"},
                  {"negative", {"capacity=-1"}, "Invalid capacity"},
                  {"topology",
                   {R"(nodeTopology/matchLabels={"a b": "c"})"},
                   "Invalid nodeTopology.matchLabels"}});
  expect_edits(bench, capacity,
               {{"capacity", {"capacity=2Gi"}},
                {"class", {"storageClassName=t"}, "Invalid storageClassName"},
                {"topology", {R"(nodeTopology/matchLabels={"a": "c"})"}, "Invalid nodeTopology"}});
}

TEST(Attachment, IsRefused) {
  WorkloadBench bench;
  const Doc attachment = object(
      "VolumeAttachment",
      R"({"spec": {"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "v"}}})");
  const std::string inline_volume =
      R"(spec/source={"inlineVolumeSpec": {"accessModes": ["ReadWriteOnce"],
                                           "csi": {"driver": "d", "volumeHandle": "h"}}})";
  expect_creates(
      bench, attachment,
      {{"right", {}},
       {"inline", {inline_volume}},
       {"both", {inline_volume, "spec/source/persistentVolumeName=v"}, "Forbidden spec.source"},
       {"neither", {"spec/source={}"}, "Required spec.source"},
       {"attacher", {"spec/attacher"}, "Required spec.attacher"},
       {"node", {"spec/nodeName=A"}, "Invalid spec.nodeName"},
       {"volume",
        {"spec/source/persistentVolumeName=A"},
        "Invalid spec.source.persistentVolumeName"},
       {"no name",
        {"spec/source/persistentVolumeName="},
        "Required spec.source.persistentVolumeName, Invalid spec.source.persistentVolumeName"},
       {"inline with a claim",
        {inline_volume, "spec/source/inlineVolumeSpec/claimRef={}",
         "spec/source/inlineVolumeSpec/storageClassName=a"},
        "Forbidden spec.source.inlineVolumeSpec.claimRef, "
        "Forbidden spec.source.inlineVolumeSpec.storageClassName"}});
  expect_edits(bench, attachment, {{"spec", {"spec/nodeName=m"}, "Invalid spec"}});
  expect_edits(
      bench, attachment,
      {{"attached", {"status/attached=true"}},
       {"error",
        {"status/attachError/message=" + std::string(1025, 'x')},
        "TooLong status.attachError.message"},
       {"code", {"status/detachError/errorCode=-1"}, "Invalid status.detachError.errorCode"}},
      "status");
}

}  // namespace
}  // namespace jogak::api
