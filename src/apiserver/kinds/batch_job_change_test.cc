// SPDX-License-Identifier: Apache-2.0
// What may change in a job: before it runs, while it runs, while it is suspended.
#include <gtest/gtest.h>

#include "apiserver/kinds/testing/workload_bench.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

Doc job() {
  return json(R"({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
    "spec": {"template": {"spec": {"restartPolicy": "Never",
                                   "containers": [{"name": "c", "image": "i:1"}]}}}})");
}

Doc indexed() {
  return with(job(), {"spec/completionMode=Indexed", "spec/completions=3", "spec/parallelism=2"});
}

Doc suspended() { return with(job(), {"spec/suspend=true"}); }

const std::string kPod = "spec/template/spec/";

TEST(JobChange, LittleMayChange) {
  WorkloadBench bench;
  expect_edits(bench, job(),
               {{"parallelism", {"spec/parallelism=3"}},
                {"suspend", {"spec/suspend=true"}},
                {"backoff", {"spec/backoffLimit=3"}},
                {"deadline", {"spec/activeDeadlineSeconds=3"}},
                {"ttl", {"spec/ttlSecondsAfterFinished=3"}},
                {"completions", {"spec/completions=3"}, "Invalid spec.completions"},
                {"image", {kPod + "containers/0/image=i:2"}, "Invalid spec.template"},
                {"node selector", {kPod + "nodeSelector/a=b"}, "Invalid spec.template"},
                {"manager", {"spec/managedBy=a.io/b"}, "Invalid spec.managedBy"},
                {"mode", {"spec/completionMode=Indexed"}, "Invalid spec.completionMode"}});
}

TEST(JobChange, WhatIsWrongIsSaidTwice) {
  WorkloadBench bench;
  expect_edits(bench, job(),
               {{"parallelism",
                 {"spec/parallelism=-1"},
                 "Invalid spec.parallelism, Invalid spec.parallelism"}});
}

TEST(JobChange, SelectorStays) {
  WorkloadBench bench;
  expect_edits(bench,
               with(job(), {"spec/manualSelector=true", "spec/selector/matchLabels/a=b",
                            R"(spec/template/metadata/labels={"a": "b", "c": "d"})"}),
               {{"selector", {"spec/selector/matchLabels/c=d"}, "Invalid spec.selector"}});
}

TEST(JobChange, IndexedJobsAreResizedInBothNumbers) {
  WorkloadBench bench;
  expect_edits(
      bench, indexed(),
      {{"together", {"spec/completions=5", "spec/parallelism=5"}},
       {"alone", {"spec/completions=5"}, "Invalid spec.completions"},
       {"gone", {"spec/completions"}, "Required spec.completions, Required spec.completions"},
       {"parallelism alone", {"spec/parallelism=9"}},
       {"limit", {"spec/backoffLimitPerIndex=1"}, "Invalid spec.backoffLimitPerIndex"},
       {"policy",
        {R"(spec/successPolicy/rules=[{"succeededCount": 1}])"},
        "Invalid spec.successPolicy"}});
}

TEST(JobChange, ASuspendedJobTakesNewDirections) {
  WorkloadBench bench;
  const std::string affinity = kPod +
                               "affinity/nodeAffinity/"
                               "requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms="
                               R"([{"matchExpressions": [{"key": "a", "operator": "Exists"}]}])";
  expect_edits(bench, suspended(),
               {{"node selector", {kPod + "nodeSelector/a=b"}},
                {"tolerations", {kPod + R"(tolerations=[{"operator": "Exists"}])"}},
                {"gates", {kPod + R"(schedulingGates=[{"name": "a.io/b"}])"}},
                {"labels", {"spec/template/metadata/labels/x=y"}},
                {"annotations", {"spec/template/metadata/annotations/x=y"}},
                {"node affinity", {affinity}},
                {"resources", {kPod + R"(containers/0/resources/requests/cpu="2")"}},
                {"image", {kPod + "containers/0/image=i:2"}, "Invalid spec.template.spec"},
                {"scheduler", {kPod + "schedulerName=other"}, "Invalid spec.template.spec"},
                {"pod affinity",
                 {kPod + "affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution="
                         R"([{"topologyKey": "k", "labelSelector": {}}])"},
                 "Invalid spec.template.spec"}});
}

TEST(JobChange, NodeAffinityMayGo) {
  WorkloadBench bench;
  const Doc with_affinity = with(
      suspended(),
      {kPod + "affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/"
              R"(nodeSelectorTerms=[{"matchExpressions": [{"key": "a", "operator": "Exists"}]}])"});
  expect_edits(bench, with_affinity,
               {{"all of it", {kPod + "affinity"}}, {"the part", {kPod + "affinity={}"}}});
}

TEST(JobChange, OnceStartedASuspendedJobMustBeAtRest) {
  WorkloadBench bench;
  const std::vector<std::string> directions = {kPod + "nodeSelector/a=b"};
  const std::string condition = R"(status/conditions=[{"type": "Suspended", "status": "True",
      "lastTransitionTime": "2026-01-01T00:00:00Z"}])";
  ASSERT_EQ(refusal(bench.create(suspended())), "");
  ASSERT_EQ(refusal(bench.edit(job(), {"status/startTime=2026-01-01T00:00:00Z"}, "status")), "");
  EXPECT_EQ(refusal(bench.edit(job(), directions)), "Invalid spec.template");
  ASSERT_EQ(refusal(bench.edit(job(), {condition, "status/active=1"}, "status")), "");
  EXPECT_EQ(refusal(bench.edit(job(), directions)), "Invalid spec.template");
  ASSERT_EQ(refusal(bench.edit(job(), {"status/active=0"}, "status")), "");
  EXPECT_EQ(refusal(bench.edit(job(), directions)), "");
}

}  // namespace
}  // namespace jogak::api
