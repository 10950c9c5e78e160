// SPDX-License-Identifier: Apache-2.0
//
// Writes of a pod's status.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/kinds/testing/workload_bench.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

Doc pod() {
  return json(R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
                  "spec": {"restartPolicy": "Never",
                           "containers": [{"name": "c", "image": "reg.example/a:1",
                             "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}})");
}

class PodStatus : public testing::Test {
 protected:
  PodStatus() : made_(bench_.create(pod()).value()) {}

  ApiResult<Doc> write(const std::vector<std::string>& edits) {
    return bench_.edit(made_, edits, "status");
  }

  WorkloadBench bench_;
  Doc made_;
};

TEST_F(PodStatus, TakesLabelsAndFinalizersButNoSpec) {
  const auto written = write({"spec/nodeName=n1", R"(metadata/labels={"b": "2"})",
                              R"(metadata/finalizers=["a.b/c"])", "status/phase=Foo",
                              R"(metadata/ownerReferences=[{"apiVersion": "v1", "kind": "Node",
                                  "name": "n", "uid": "1"}])"});
  ASSERT_EQ(refusal(written), "");
  EXPECT_EQ((*written)["spec"], made_["spec"]);
  EXPECT_EQ(meta(*written)["labels"], json(R"({"b": "2"})"));
  EXPECT_TRUE(has_finalizer(*written, "a.b/c"));
  EXPECT_FALSE(meta(*written).has("ownerReferences"));
  EXPECT_EQ((*written)["status"]["phase"], Doc("Foo"));  // not looked at
}

TEST_F(PodStatus, OneAddressIsAlsoTheList) {
  const auto written = write({"status/podIP=10.1.0.5"});
  ASSERT_EQ(refusal(written), "");
  EXPECT_EQ((*written)["status"]["podIPs"], json(R"([{"ip": "10.1.0.5"}])"));
  const auto second = write({R"(status/podIPs=[{"ip": "10.1.0.5"}, {"ip": "fd00::1"}])"});
  ASSERT_EQ(refusal(second), "");
  EXPECT_EQ((*second)["status"]["podIPs"].size(), 2U);
}

TEST_F(PodStatus, Refusals) {
  EXPECT_EQ(refusal(write({R"(status/nominatedNodeName="N 1")"})),
            "Invalid status.nominatedNodeName");
  EXPECT_EQ(refusal(write({"status/podIP=bad"})), "Invalid status.podIPs[0]");
  EXPECT_EQ(refusal(write({R"(status/podIPs=[{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}])"})),
            "Invalid status.podIPs");
  EXPECT_EQ(refusal(write({R"(status/hostIPs=[{"ip": "10.0.0.1"}])"})),
            "Invalid status.hostIPs[0].ip");
  EXPECT_EQ(refusal(write({"status/qosClass=Guaranteed"})), "Invalid status.qosClass");
  EXPECT_EQ(refusal(write({R"(status/conditions=[{"type": "a b", "status": "True"}])"})),
            "Invalid status.conditions[0].Type");
  EXPECT_EQ(refusal(write({R"(status/resourceClaimStatuses=[{"name": "x"}])"})),
            "Invalid status.resourceClaimStatuses[0].name");
}

TEST_F(PodStatus, ClassIsFilledInAgain) {
  const auto written = write({"status/qosClass", "status/phase=Running"});
  ASSERT_EQ(refusal(written), "");
  EXPECT_EQ((*written)["status"]["qosClass"], Doc("BestEffort"));
}

TEST_F(PodStatus, GenerationsSurviveClientsThatDoNotKnowThem) {
  ASSERT_EQ(refusal(write({"status/observedGeneration=3",
                           R"(status/conditions=[{"type": "Ready", "status": "True",
                               "observedGeneration": 3}])"})),
            "");
  const auto written = write(
      {"status/observedGeneration", R"(status/conditions=[{"type": "Ready", "status": "False"}])"});
  ASSERT_EQ(refusal(written), "");
  EXPECT_EQ((*written)["status"]["observedGeneration"], Doc(3));
  EXPECT_EQ(condition_of(*written, "Ready")["observedGeneration"], Doc(3));
}

TEST_F(PodStatus, WhatHasEndedStaysEnded) {
  const std::string status = "status/containerStatuses=";
  ASSERT_EQ(refusal(write({status + R"([{"name": "c", "image": "i", "imageID": "x",
      "state": {"terminated": {"exitCode": 1}}}])"})),
            "");
  EXPECT_EQ(refusal(write({status + R"([{"name": "c", "image": "i", "imageID": "x",
      "state": {"running": {}}}])"})),
            "Forbidden status.containerStatuses[0].state");
}

TEST_F(PodStatus, DeviceHealthMatchesARequest) {
  const auto health = [&](std::string_view entry) {
    return refusal(
        write({"status/containerStatuses=[{\"name\": \"c\", \"image\": \"i\", "
               "\"imageID\": \"x\", \"allocatedResourcesStatus\": [" +
               std::string(entry) + "]}]"}));
  };
  EXPECT_EQ(health(R"({"name": "nvidia.com/gpu", "resources": [
      {"resourceID": "GPU-1", "health": "Healthy"}]})"),
            "");
  EXPECT_EQ(health(R"({"name": "amd.com/gpu", "resources": []})"),
            "Invalid status.containerStatuses[0].allocatedResourcesStatus[0].name");
  EXPECT_EQ(health(R"({"name": "nvidia.com/gpu", "resources": [
      {"resourceID": "GPU-1", "health": "Ill"}, {"resourceID": "GPU-1", "health": "Healthy"}]})"),
            "NotSupported status.containerStatuses[0].allocatedResourcesStatus[0].resources[0]"
            ".health, Duplicate status.containerStatuses[0].allocatedResourcesStatus[0]"
            ".resources[1].resourceID");
}

}  // namespace
}  // namespace jogak::api
