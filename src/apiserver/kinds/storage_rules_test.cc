// SPDX-License-Identifier: Apache-2.0
// Volumes and claims.
#include <gtest/gtest.h>

#include "apiserver/kinds/testing/workload_bench.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

Doc volume() {
  return json(R"({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"},
                  "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                           "hostPath": {"path": "/x"}}})");
}

TEST(Volume, HasDefaults) {
  WorkloadBench bench;
  const auto made = bench.create(with(volume(), {"status/phase=Bound"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["spec"],
            json(R"({"capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x", "type": ""},
                     "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
                     "volumeMode": "Filesystem"})"));
  EXPECT_EQ(made->get("status", "phase"), Doc("Pending"));
  EXPECT_EQ(made->get("status", "lastPhaseTransitionTime"), meta(*made)["creationTimestamp"]);
}

TEST(Volume, IsRefused) {
  WorkloadBench bench;
  expect_creates(
      bench, volume(),
      {{"nothing",
        {"spec"},
        "Required spec.accessModes, Required spec.capacity, NotSupported spec.capacity, "
        "Required spec"},
       {"mode", {R"(spec/accessModes=["Odd"])"}, "NotSupported spec.accessModes"},
       {"mode that stands alone",
        {R"(spec/accessModes=["ReadWriteOncePod", "ReadOnlyMany"])"},
        "Forbidden spec.accessModes"},
       {"other capacity", {R"(spec/capacity={"cpu": "1"})"}, "NotSupported spec.capacity"},
       {"nothing to store",
        {R"(spec/capacity={"storage": "0"})"},
        "Invalid spec.capacity[storage]"},
       {"less than nothing",
        {R"(spec/capacity={"storage": "-1"})"},
        "Invalid spec.capacity[storage], Invalid spec.capacity[storage]"},
       {"two sources", {R"(spec/nfs={"server": "s", "path": "/"})"}, "Forbidden spec.nfs"},
       {"policy",
        {"spec/persistentVolumeReclaimPolicy=Odd"},
        "NotSupported spec.persistentVolumeReclaimPolicy"},
       {"policy of the root",
        {"spec/persistentVolumeReclaimPolicy=Recycle", "spec/hostPath/path=/"},
        "Forbidden spec.persistentVolumeReclaimPolicy"},
       {"class", {"spec/storageClassName=A"}, "Invalid spec.storageClassName"},
       {"volume mode", {"spec/volumeMode=Odd"}, "NotSupported spec.volumeMode"},
       {"affinity", {"spec/nodeAffinity={}"}, "Required spec.nodeAffinity.required"},
       {"affinity terms",
        {"spec/nodeAffinity/required={}"},
        "Required spec.nodeAffinity.required.nodeSelectorTerms"},
       {"attributes",
        {"spec/volumeAttributesClassName="},
        "Required spec.volumeAttributesClassName, Required spec.csi"}});
}

TEST(Volume, EachSourceHasItsRules) {
  WorkloadBench bench;
  Doc bare = volume();
  bare.at("spec").erase("hostPath");
  expect_creates(
      bench, bare,
      {{"host path", {"spec/hostPath={}"}, "Required spec.hostPath.path"},
       {"host path back", {"spec/hostPath/path=/a/../b"}, "Invalid spec.hostPath.path"},
       {"host path with dots", {"spec/hostPath/path=/a/..b"}},
       {"host path type",
        {R"(spec/hostPath={"path": "/", "type": "Odd"})"},
        "NotSupported spec.hostPath.type"},
       {"nfs",
        {"spec/nfs={}"},
        "Required spec.nfs.server, Required spec.nfs.path, Invalid spec.nfs.path"},
       {"csi", {"spec/csi={}"}, "Required spec.csi.driver, Required spec.csi.volumeHandle"},
       {"csi driver",
        {R"(spec/csi={"driver": "A_b", "volumeHandle": "h"})"},
        "Invalid spec.csi.driver"},
       {"csi driver in capitals", {R"(spec/csi={"driver": "A.b", "volumeHandle": "h"})"}},
       {"csi secret",
        {R"(spec/csi={"driver": "a", "volumeHandle": "h", "nodePublishSecretRef": {"name": "A"}})"},
        "Invalid spec.csi.nodePublishSecretRef.name, "
        "Required spec.csi.nodePublishSecretRef.namespace"},
       {"local", {"spec/local/path=/x"}, "Required spec.nodeAffinity"},
       {"local, right",
        {"spec/local/path=/x",
         R"(spec/nodeAffinity/required/nodeSelectorTerms=[{"matchFields": [
               {"key": "metadata.name", "operator": "In", "values": ["n"]}]}])"}},
       {"disk", {"spec/gcePersistentDisk={}"}, "Required spec.persistentDisk.pdName"},
       {"iscsi", {"spec/iscsi={}"}, "Required spec.iscsi.targetPortal, Required spec.iscsi.iqn"}});
}

TEST(Volume, TermsOfTheAffinity) {
  WorkloadBench bench;
  const std::string at = "spec/nodeAffinity/required/nodeSelectorTerms=";
  const auto expression = [&](std::string_view text) {
    return std::vector<std::string>{at + R"([{"matchExpressions": [)" + std::string(text) + "]}]"};
  };
  const auto field = [&](std::string_view text) {
    return std::vector<std::string>{at + R"([{"matchFields": [)" + std::string(text) + "]}]"};
  };
  const std::string label = "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].";
  const std::string name = "spec.nodeAffinity.required.nodeSelectorTerms[0].matchFields[0].";
  const std::vector<std::string> causes = {
      "Required " + label + "values", "Forbidden " + label + "values",
      "Required " + label + "values", "Invalid " + label + "operator",
      "Invalid " + label + "key",     "Invalid " + label + "values[0]",
      "Required " + name + "values",  "Invalid " + name + "operator",
      "Invalid " + name + "key",      "Invalid " + name + "values[0]"};
  expect_creates(
      bench, volume(),
      {{"empty term", {at + "[{}]"}},
       {"in", expression(R"({"key": "a", "operator": "In"})"), causes[0]},
       {"exists", expression(R"({"key": "a", "operator": "Exists", "values": ["x"]})"), causes[1]},
       {"greater", expression(R"({"key": "a", "operator": "Gt", "values": ["1", "2"]})"),
        causes[2]},
       {"operator", expression(R"({"key": "a", "operator": "Like"})"), causes[3]},
       {"key", expression(R"({"key": "a b", "operator": "Exists"})"), causes[4]},
       {"value", expression(R"({"key": "a", "operator": "In", "values": ["a b"]})"), causes[5]},
       {"two names", field(R"({"key": "metadata.name", "operator": "In", "values": ["a", "b"]})"),
        causes[6]},
       {"name operator", field(R"({"key": "metadata.name", "operator": "Exists"})"), causes[7]},
       {"other field", field(R"({"key": "a", "operator": "In", "values": ["a"]})"), causes[8]},
       {"no name", field(R"({"key": "metadata.name", "operator": "In", "values": ["A"]})"),
        causes[9]}});
}

TEST(Volume, TheSourceStays) {
  WorkloadBench bench;
  expect_edits(bench, volume(),
               {{"claim", {R"(spec/claimRef={"name": "c", "namespace": "ns"})"}},
                {"path", {"spec/hostPath/path=/y"}, "Forbidden spec.persistentvolumesource"},
                {"mode", {"spec/volumeMode=Block"}, "Invalid volumeMode"},
                {"affinity, once", {R"(spec/nodeAffinity/required/nodeSelectorTerms=[{}])"}}});
}

TEST(Volume, TheTimeOfThePhaseFollowsThePhase) {
  WorkloadBench bench;
  const auto made = bench.create(volume());
  ASSERT_TRUE(made.has_value());
  const Doc start = made->get("status", "lastPhaseTransitionTime");
  const auto same_phase =
      bench.edit(volume(), {"status/reason=x", "status/lastPhaseTransitionTime"}, "status");
  ASSERT_TRUE(same_phase.has_value());
  EXPECT_EQ(same_phase->get("status", "lastPhaseTransitionTime"), start);
  const auto given = bench.edit(
      volume(), {"status/phase=Bound", "status/lastPhaseTransitionTime=2024-01-01T00:00:00Z"},
      "status");
  ASSERT_TRUE(given.has_value());
  EXPECT_EQ(given->get("status", "lastPhaseTransitionTime"), Doc("2024-01-01T00:00:00Z"));
  const auto next = bench.edit(volume(), {"status/phase=Released"}, "status");
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->get("status", "lastPhaseTransitionTime"), start);  // the clock stood still
}

Doc claim() {
  return json(R"({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"},
                  "spec": {"accessModes": ["ReadWriteOnce"],
                           "resources": {"requests": {"storage": "1Gi"}}}})");
}

TEST(Claim, HasDefaults) {
  WorkloadBench bench;
  const auto made = bench.create(with(claim(), {"status/phase=Bound"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->get("spec", "volumeMode"), Doc("Filesystem"));
  EXPECT_EQ((*made)["status"], json(R"({"phase": "Pending"})"));
}

TEST(Claim, IsRefused) {
  WorkloadBench bench;
  expect_creates(bench, claim(),
                 {{"modes", {"spec/accessModes"}, "Required spec.accessModes"},
                  {"mode", {R"(spec/accessModes=["Odd"])"}, "NotSupported spec.accessModes"},
                  {"size", {"spec/resources"}, "Required spec.resources[storage]"},
                  {"no size",
                   {R"(spec/resources/requests={"storage": "0"})"},
                   "Invalid spec.resources[storage]"},
                  {"class", {"spec/storageClassName=A"}, "Invalid spec.storageClassName"},
                  {"no class on purpose", {"spec/storageClassName="}},
                  {"volume mode", {"spec/volumeMode=Odd"}, "NotSupported spec.volumeMode"},
                  {"selector",
                   {R"(spec/selector/matchLabels={"a b": "c"})"},
                   "Invalid spec.selector.matchLabels"},
                  {"source",
                   {R"(spec/dataSourceRef={"kind": "Odd"})"},
                   "Required spec.dataSource.name, Invalid spec.dataSource, "
                   "Required spec.dataSourceRef.name, Invalid spec.dataSourceRef"},
                  {"two sources",
                   {R"(spec/dataSource={"kind": "PersistentVolumeClaim", "name": "a"})",
                    R"(spec/dataSourceRef={"kind": "PersistentVolumeClaim", "name": "b"})"},
                   "Invalid spec"}});
}

TEST(Claim, BothMembersNameTheSource) {
  WorkloadBench bench;
  const auto old_way = bench.create(
      with(claim(), {R"(spec/dataSource={"kind": "PersistentVolumeClaim", "name": "a"})"}));
  ASSERT_TRUE(old_way.has_value());
  EXPECT_EQ(old_way->get("spec", "dataSourceRef", "name"), Doc("a"));
  const auto new_way = bench.create(with(
      claim(),
      {"metadata/name=d", R"(spec/dataSourceRef={"kind": "PersistentVolumeClaim", "name": "a"})"}));
  ASSERT_TRUE(new_way.has_value());
  EXPECT_EQ(new_way->get("spec", "dataSource", "name"), Doc("a"));
  const auto odd = bench.create(
      with(claim(), {"metadata/name=e", R"(spec/dataSource={"kind": "Odd", "name": "a"})"}));
  ASSERT_TRUE(odd.has_value());
  EXPECT_FALSE((*odd)["spec"].has("dataSource"));
}

TEST(Claim, TheSpecOfAPendingOneStays) {
  WorkloadBench bench;
  expect_edits(bench, with(claim(), {"spec/storageClassName=a"}),
               {{"volume", {"spec/volumeName=v"}},
                {"class", {"spec/storageClassName=b"}, "Forbidden spec"},
                {"size", {R"(spec/resources/requests={"storage": "2Gi"})"}, "Forbidden spec"},
                {"mode", {"spec/volumeMode=Block"}, "Forbidden spec, Invalid volumeMode"}});
  expect_edits(bench, claim(), {{"class, from none", {"spec/storageClassName=b"}}});
  expect_edits(bench, with(claim(), {"spec/volumeName=v"}),
               {{"other volume", {"spec/volumeName=w"}, "Forbidden spec"}});
}

TEST(Claim, ABoundOneMayGrow) {
  WorkloadBench bench;
  ASSERT_TRUE(bench.create(claim()).has_value());
  ASSERT_TRUE(
      bench.edit(claim(), {"status/phase=Bound", R"(status/capacity={"storage": "1Gi"})"}, "status")
          .has_value());
  EXPECT_EQ(refusal(bench.edit(claim(), {R"(spec/resources/requests={"storage": "3Gi"})"})), "");
  EXPECT_EQ(refusal(bench.edit(claim(), {R"(spec/resources/requests={"storage": "2Gi"})"})), "");
  EXPECT_EQ(refusal(bench.edit(claim(), {R"(spec/resources/requests={"storage": "1Gi"})"})),
            "Forbidden spec.resources.requests.storage");
}

TEST(Claim, StatusIsRefused) {
  WorkloadBench bench;
  expect_edits(
      bench, claim(),
      {{"capacity", {R"(status/capacity={"storage": "-1"})"}, "Invalid status.capacity[storage]"},
       {"what was allocated",
        {R"(status/allocatedResources={"cpu": "1"})"},
        "NotSupported status.allocatedResources"}},
      "status");
}

TEST(Claim, WarnsOfFractions) {
  WorkloadBench bench;
  ASSERT_TRUE(
      bench.create(with(claim(), {R"(spec/resources/requests={"storage": "1.5"})"})).has_value());
  EXPECT_EQ(bench.warnings().size(), 1U);
}

}  // namespace
}  // namespace jogak::api
