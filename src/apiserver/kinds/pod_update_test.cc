// SPDX-License-Identifier: Apache-2.0
//
// What may change in a stored pod through each of its doors, and when its generation grows.
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
                  "spec": {"containers": [{"name": "c", "image": "reg.example/a:1"}],
                           "tolerations": [{"key": "a", "operator": "Exists",
                                            "effect": "NoExecute", "tolerationSeconds": 60}],
                           "activeDeadlineSeconds": 100}})");
}

Doc gated() {
  return with(pod(), {R"(spec/schedulingGates=[{"name": "g1"}, {"name": "g2"}])",
                      R"(spec/nodeSelector={"a": "b"})"});
}

std::int64_t generation_of(const Doc& object) { return meta(object)["generation"].as_int(); }

TEST(PodUpdate, MainResource) {
  WorkloadBench bench;
  expect_edits(
      bench, pod(),
      {{"image", {"spec/containers/0/image=reg.example/a:2"}},
       {"no image",
        {R"(spec/containers/0/image="")"},
        "Required spec.containers[0].image, Required spec.containers[0].image"},
       {"node", {"spec/nodeName=n"}, "Forbidden spec"},
       {"scheduler", {"spec/schedulerName=x"}, "Forbidden spec"},
       {"selector", {R"(spec/nodeSelector={"a": "b"})"}, "Forbidden spec"},
       {"grace", {"spec/terminationGracePeriodSeconds=5"}, "Forbidden spec"},
       {"resources", {R"(spec/containers/0/resources={"limits": {"cpu": "1"}})"}, "Forbidden spec"},
       {"one more container",
        {R"(spec/containers/1={"name": "d", "image": "x:1"})"},
        "Forbidden spec.containers"},
       {"deadline sooner", {"spec/activeDeadlineSeconds=50"}},
       {"deadline later", {"spec/activeDeadlineSeconds=101"}, "Invalid spec.activeDeadlineSeconds"},
       {"no deadline", {"spec/activeDeadlineSeconds"}, "Invalid spec.activeDeadlineSeconds"},
       {"one more toleration", {R"(spec/tolerations/1={"key": "z", "operator": "Exists"})"}},
       {"toleration for less long", {"spec/tolerations/0/tolerationSeconds=5"}},
       {"another toleration", {"spec/tolerations/0/key=z"}, "Forbidden spec.tolerations"},
       {"new gate",
        {R"(spec/schedulingGates=[{"name": "g"}])"},
        "Forbidden spec.schedulingGates[0].name"}});
}

TEST(PodUpdate, ZeroAndAbsentAreOne) {
  WorkloadBench bench;
  const Doc made = bench.create(pod()).value();
  const auto again = bench.edit(made, {"spec/hostNetwork=false", "spec/hostPID=false"});
  EXPECT_EQ(refusal(again), "");
  EXPECT_EQ(generation_of(again.value()), 1);
}

TEST(PodUpdate, GatedPodsMayBeNarrowed) {
  WorkloadBench bench;
  const std::string terms =
      "spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/"
      "nodeSelectorTerms=";
  expect_edits(bench, gated(),
               {{"one more label", {R"(spec/nodeSelector={"a": "b", "c": "d"})"}},
                {"another label", {R"(spec/nodeSelector={"a": "c"})"}, "Invalid spec.nodeSelector"},
                {"fewer labels", {"spec/nodeSelector"}, "Invalid spec.nodeSelector"},
                {"a gate less", {R"(spec/schedulingGates=[{"name": "g2"}])"}},
                {"node", {"spec/nodeName=n"}, "Forbidden spec"},
                {"affinity where there was none",
                 {terms + R"([{"matchExpressions": [{"key": "a", "operator": "Exists"}]}])"}}});
  Doc with_terms = with(gated(), {terms + R"([{"matchExpressions": [
      {"key": "a", "operator": "Exists"}]}])",
                                  "metadata/name=q"});
  const std::string at =
      "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
      ".nodeSelectorTerms";
  const std::string replaced = "Invalid " + at + "[0]";
  const std::string added = "Invalid " + at;
  expect_edits(
      bench, with_terms,
      {{"one more rule", {terms + R"([{"matchExpressions": [{"key": "a", "operator": "Exists"},
                     {"key": "b", "operator": "Exists"}]}])"}},
       {"another rule",
        {terms + R"([{"matchExpressions": [{"key": "b", "operator": "Exists"}]}])"},
        replaced},
       {"one more term",
        {terms + R"([{"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {}])"},
        added}});
}

TEST(PodUpdate, GenerationFollowsTheSpec) {
  WorkloadBench bench;
  const Doc made = bench.create(pod()).value();
  EXPECT_EQ(generation_of(made), 1);
  EXPECT_EQ(generation_of(bench.edit(made, {"spec/containers/0/image=x:2"}).value()), 2);
  EXPECT_EQ(generation_of(bench.edit(made, {R"(metadata/annotations={"a": "b"})"}).value()), 2);
  EXPECT_EQ(generation_of(bench.edit(made, {"status/phase=Running"}, "status").value()), 2);
}

TEST(PodUpdate, EphemeralContainers) {
  WorkloadBench bench;
  const Doc made = bench.create(pod()).value();
  const auto added = bench.edit(made,
                                {R"(spec/ephemeralContainers=[{"name": "dbg",
      "image": "busybox:1"}])",
                                 "spec/schedulerName=ignored"},
                                "ephemeralcontainers");
  ASSERT_EQ(refusal(added), "");
  EXPECT_EQ((*added)["spec"]["schedulerName"], Doc("default-scheduler"));
  EXPECT_EQ(generation_of(*added), 2);
  const auto edit = [&](const std::string& change) {
    return refusal(bench.edit(made, {change}, "ephemeralcontainers"));
  };
  EXPECT_EQ(edit("spec/ephemeralContainers"), "Forbidden spec.ephemeralContainers");
  EXPECT_EQ(edit("spec/ephemeralContainers/0/image=other"), "Forbidden spec.ephemeralContainers");
  EXPECT_EQ(edit(R"(spec/ephemeralContainers/1={"name": "c", "image": "i"})"),
            "Duplicate spec.ephemeralContainers[1].name");
  EXPECT_EQ(edit(R"(spec/ephemeralContainers/1={"name": "e", "image": "i",
                "resources": {"limits": {"cpu": "1"}}})"),
            "Forbidden spec.ephemeralContainers[1].resources");
}

Doc sized() {
  return with(pod(), {R"(spec/containers/0/resources={"limits": {"cpu": "1", "memory": "1Gi",
                          "nvidia.com/gpu": "1"}})"});
}

TEST(PodResize, CpuAndMemoryAlone) {
  WorkloadBench bench;
  const std::string at = "spec/containers/0/resources";
  expect_edits(
      bench, sized(),
      {{"more of both", {at + R"(={"limits": {"cpu": "2", "memory": "2Gi", "nvidia.com/gpu": "1"},
             "requests": {"cpu": "2", "memory": "2Gi", "nvidia.com/gpu": "1"}})"}},
       {"more GPUs",
        {at + R"(={"limits": {"cpu": "1", "memory": "1Gi",
             "nvidia.com/gpu": "2"}, "requests": {"cpu": "1", "memory": "1Gi",
             "nvidia.com/gpu": "2"}})"},
        "Forbidden spec"},
       {"another class", {at + "/requests/cpu=500m"}, "Invalid spec"},
       {"no requests",
        {at + R"(={"limits": {"cpu": "1", "memory": "1Gi"}})"},
        "Forbidden spec.containers[0].resources.requests, "
        "Forbidden spec.containers[0].resources.limits, Forbidden spec"},
       {"another name", {"spec/containers/0/name=d"}, "Forbidden spec.containers[0].name"}},
      "resize");
}

TEST(PodResize, LeavesTheRestAlone) {
  WorkloadBench bench;
  const Doc made = bench.create(sized()).value();
  const auto resized = bench.edit(
      made,
      {"spec/schedulerName=x", "spec/containers/0/image=x:9", R"(metadata/labels={"a": "b"})"},
      "resize");
  ASSERT_EQ(refusal(resized), "");
  EXPECT_EQ((*resized)["spec"], made["spec"]);
  EXPECT_FALSE(meta(*resized).has("labels"));
  EXPECT_EQ(generation_of(*resized), 1);
}

}  // namespace
}  // namespace jogak::api
