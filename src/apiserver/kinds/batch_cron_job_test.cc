// SPDX-License-Identifier: Apache-2.0
// Cron jobs: every default and every refusal.
#include <gtest/gtest.h>

#include "apiserver/kinds/testing/workload_bench.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

Doc cron_job() {
  return json(R"({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"},
    "spec": {"schedule": "* * * * *",
             "jobTemplate": {"spec": {"template": {"spec": {
               "restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}}}}}})");
}

const std::string kJob = "spec/jobTemplate/spec/";

TEST(CronJob, GetsItsDefaults) {
  WorkloadBench bench;
  const auto made = bench.create(cron_job());
  ASSERT_TRUE(made.has_value());
  const Doc& spec = (*made)["spec"];
  EXPECT_EQ(spec["concurrencyPolicy"], Doc("Allow"));
  EXPECT_EQ(spec["suspend"], Doc(false));
  EXPECT_EQ(spec["successfulJobsHistoryLimit"], Doc(3));
  EXPECT_EQ(spec["failedJobsHistoryLimit"], Doc(1));
  EXPECT_EQ(spec["jobTemplate"]["spec"]["template"]["spec"]["dnsPolicy"], Doc("ClusterFirst"));
  EXPECT_EQ((*made)["status"], Doc::object());
}

TEST(CronJob, ItsJobGetsNoDefaultsYet) {
  WorkloadBench bench;
  const auto made = bench.create(cron_job());
  ASSERT_TRUE(made.has_value());
  const Doc& job = (*made)["spec"]["jobTemplate"]["spec"];
  for (const std::string_view name : {"parallelism", "completions", "backoffLimit", "selector",
                                      "manualSelector", "completionMode", "suspend"}) {
    EXPECT_FALSE(job.has(name)) << name;
  }
}

TEST(CronJob, IsRefusedOnCreate) {
  WorkloadBench bench;
  expect_creates(
      bench, cron_job(),
      {{"right", {}},
       {"long name", {"metadata/name=" + std::string(53, 'x')}, "Invalid metadata.name"},
       {"name as long as may be", {"metadata/name=" + std::string(52, 'x')}},
       {"no schedule", {"spec/schedule"}, "Required spec.schedule"},
       {"schedule", {"spec/schedule=never"}, "Invalid spec.schedule"},
       {"zone in the schedule", {R"(spec/schedule="TZ=UTC * * * * *")"}, "Invalid spec.schedule"},
       {"zone and nothing", {"spec/schedule=TZ=0"}, "Invalid spec.schedule, Invalid spec.schedule"},
       {"zone", {"spec/timeZone=UTC"}},
       {"empty zone", {R"(spec/timeZone="")"}, "Invalid spec.timeZone"},
       {"local zone", {"spec/timeZone=Local"}, "Invalid spec.timeZone"},
       {"local zone, in small",
        {"spec/timeZone=local"},
        "Invalid spec.timeZone, Invalid spec.timeZone"},
       {"zone that is none", {R"(spec/timeZone="a b")"}, "Invalid spec.timeZone"},
       {"start", {"spec/startingDeadlineSeconds=-1"}, "Invalid spec.startingDeadlineSeconds"},
       {"concurrency", {"spec/concurrencyPolicy=X"}, "NotSupported spec.concurrencyPolicy"},
       {"selector", {kJob + "selector/matchLabels/a=b"}, "Invalid spec.jobTemplate.spec.selector"},
       {"manual selector",
        {kJob + "manualSelector=true"},
        "NotSupported spec.jobTemplate.spec.manualSelector"},
       {"job", {kJob + "parallelism=-1"}, "Invalid spec.jobTemplate.spec.parallelism"},
       {"restart policy",
        {kJob + "template/spec/restartPolicy"},
        "Required spec.jobTemplate.spec.template.spec.restartPolicy"},
       {"successes",
        {"spec/successfulJobsHistoryLimit=-1"},
        "Invalid spec.successfulJobsHistoryLimit"},
       {"failures", {"spec/failedJobsHistoryLimit=-1"}, "Invalid spec.failedJobsHistoryLimit"}});
}

TEST(CronJob, EverythingMayChange) {
  WorkloadBench bench;
  expect_edits(bench, cron_job(),
               {{"schedule", {"spec/schedule=@daily"}},
                {"suspend", {"spec/suspend=true"}},
                {"template", {kJob + "template/spec/containers/0/image=i:2"}},
                {"wrong", {"spec/schedule=x"}, "Invalid spec.schedule"},
                {"zone", {R"(spec/timeZone="-")"}, "Invalid spec.timeZone"}});
}

TEST(CronJob, AnyStatusIsTaken) {
  WorkloadBench bench;
  expect_edits(bench, cron_job(),
               {{"last run", {"status/lastScheduleTime=2026-01-01T00:00:00Z"}},
                {"active", {R"(status/active=[{"kind": "Job", "name": "x"}])"}}},
               "status");
}

TEST(CronJob, ItsJobIsWarnedAboutAtItsPlace) {
  WorkloadBench bench;
  ASSERT_EQ(refusal(bench.create(
                with(cron_job(), {kJob + "completionMode=Indexed", kJob + "completions=100001",
                                  kJob + "parallelism=10001"}))),
            "");
  ASSERT_EQ(bench.warnings().size(), 1U);
  EXPECT_TRUE(bench.warnings()[0].starts_with("spec.jobTemplate.spec: In Indexed Jobs"));
}

}  // namespace
}  // namespace jogak::api
