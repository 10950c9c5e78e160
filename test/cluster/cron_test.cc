// SPDX-License-Identifier: Apache-2.0
//
// Cron jobs, and the schedules they go by.
#include <gtest/gtest.h>

#include "apiserver/controllers/cron_schedule.h"
#include "apiserver/object/meta.h"
#include "test/cluster/cluster.h"

namespace jogak::test {
namespace {

using controllers::CronSchedule;
using controllers::TimeZone;

std::string next(std::string_view line, std::string_view after, std::string_view zone = "") {
  const auto schedule = CronSchedule::parse(line, zone);
  if (!schedule.has_value()) return "bad";
  const auto time = schedule->next(*api::parse_time(after));
  return time.has_value() ? api::format_time(*time) : "never";
}

struct ScheduleCase {
  std::string_view line, after, expected;
  std::string_view zone = "";
};

TEST(CronSchedule, FindsTheNextMoment) {
  for (const ScheduleCase& one : std::initializer_list<ScheduleCase>{
           {"* * * * *", "2026-03-01T10:00:00Z", "2026-03-01T10:01:00Z"},
           {"* * * * *", "2026-03-01T10:00:59Z", "2026-03-01T10:01:00Z"},
           {"*/15 * * * *", "2026-03-01T10:46:00Z", "2026-03-01T11:00:00Z"},
           {"5/20 * * * *", "2026-03-01T10:06:00Z", "2026-03-01T10:25:00Z"},
           {"+5 * * * *", "2026-03-01T10:06:00Z", "2026-03-01T11:05:00Z"},  // Go reads such numbers
           {"*-5 * * * *", "2026-03-01T10:06:00Z", "2026-03-01T10:07:00Z"},  // and such stars
           {"0 0 29 2 *", "2026-03-01T00:00:00Z", "2028-02-29T00:00:00Z"},
           {"0 0 31 2 *", "2026-03-01T00:00:00Z", "never"},
           {"0 9 * * MON-fri", "2026-03-06T09:00:00Z", "2026-03-09T09:00:00Z"},
           {"0 0 13 * 5", "2026-03-01T00:00:00Z", "2026-03-06T00:00:00Z"},  // either day
           {"0 0 */2 * 5", "2026-03-01T00:00:00Z", "2026-03-03T00:00:00Z"},
           {"0 0 ? jan,JUL *", "2026-03-01T00:00:00Z", "2026-07-01T00:00:00Z"},
           {"@hourly", "2026-12-31T23:30:00Z", "2027-01-01T00:00:00Z"},
           {"@weekly", "2026-03-01T00:00:00Z", "2026-03-08T00:00:00Z"},
           {"@every 1h30m", "2026-03-01T00:00:00Z", "2026-03-01T01:30:00Z"},
           {"@every 10ms", "2026-03-01T00:00:00Z", "2026-03-01T00:00:01Z"},
           {"0 12 * * *", "2026-01-01T00:00:00Z", "2026-01-01T11:00:00Z", "Europe/Berlin"},
           {"0 12 * * *", "2026-07-01T00:00:00Z", "2026-07-01T10:00:00Z", "Europe/Berlin"},
           {"TZ=Asia/Tokyo 0 0 * * *", "2026-01-01T00:00:00Z", "2026-01-01T15:00:00Z"},
           // the hour from 2 to 3 is missing on that day
           {"30 2 * * *", "2026-03-28T12:00:00Z", "2026-03-30T00:30:00Z", "Europe/Berlin"},
           {"0 0 * * *", "2026-03-29T12:00:00Z", "2026-03-29T22:00:00Z", "Europe/Berlin"},
           {"0 0 * * *", "2026-10-24T23:00:00Z", "2026-10-25T23:00:00Z", "Europe/Berlin"},
       }) {
    EXPECT_EQ(next(one.line, one.after, one.zone), one.expected)
        << one.line << " after " << one.after << " " << one.zone;
  }
}

TEST(CronSchedule, UnknownZonesAndLinesAreRefused) {
  EXPECT_EQ(next("* * * * *", "2026-03-01T10:00:00Z", "Mars/Olympus"), "bad");
  EXPECT_EQ(next("* * * * *", "2026-03-01T10:00:00Z", "../../../etc/passwd"), "bad");
  for (const std::string_view line : {"", "* * * *", "61 * * * *", "x * * * *", "@never"}) {
    EXPECT_EQ(next(line, "2026-03-01T10:00:00Z"), "bad") << line;
  }
}

TEST(CronSchedule, TimesAreShownInTheZone) {
  const TimeUs time = *api::parse_time("2026-01-01T00:00:00Z");
  EXPECT_EQ(TimeZone::find("")->format(time), "2026-01-01T00:00:00Z");
  EXPECT_EQ(TimeZone::find("America/St_Johns")->format(time), "2025-12-31T20:30:00-03:30");
}

constexpr std::string_view kCronJobs = "cronjobs.batch";
constexpr TimeUs kMinute = 60 * kSecondInUs;

std::string cron_job(std::string_view more = "") {
  return R"({"metadata": {"name": "c"}, "spec": {"schedule": "* * * * *", "jobTemplate": {
      "metadata": {"labels": {"l": "v"}}, "spec": {"template": {"spec": {"restartPolicy": "Never",
      "containers": [{"name": "c", "image": "i:1"}]}}}})" +
         std::string(more) + "}}";
}

void finish_jobs(Cluster& cluster, std::string_view phase) {
  for (const Doc& pod : cluster.live_pods()) {
    if (pod.get("status", "phase").as_string() == "Pending") {
      cluster.end_pod(api::name_of(pod), phase);
    }
  }
  cluster.settle();
}

TEST(CronJob, MakesAJobEachTime) {
  Cluster cluster;
  cluster.make(kCronJobs, cron_job());
  EXPECT_EQ(cluster.count("jobs.batch"), 0U);
  cluster.pass(kMinute);
  ASSERT_EQ(cluster.count("jobs.batch"), 1U);
  const Doc job = cluster.list("jobs.batch")[0];
  const Doc status = cluster.get(kCronJobs, "c")["status"];
  const TimeUs time = *api::parse_time(status["lastScheduleTime"].as_string());
  EXPECT_EQ(api::name_of(job), "c-" + std::to_string(time / kMinute));
  EXPECT_EQ(api::meta(job)["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"],
            status["lastScheduleTime"]);
  EXPECT_EQ(api::meta(job)["labels"]["l"], Doc("v"));
  EXPECT_EQ(status["active"].items()[0]["uid"], Doc(api::uid_of(job)));
  cluster.pass(2 * kMinute);
  EXPECT_EQ(cluster.count("jobs.batch"), 3U);
}

TEST(CronJob, KeepsSoManyFinishedJobs) {
  Cluster cluster;
  cluster.make(kCronJobs, cron_job(R"(, "successfulJobsHistoryLimit": 2)"));
  for (int i = 0; i < 5; ++i) {
    cluster.pass(kMinute);
    finish_jobs(cluster, "Succeeded");
  }
  EXPECT_EQ(cluster.count("jobs.batch"), 2U);
  const Doc status = cluster.get(kCronJobs, "c")["status"];
  EXPECT_TRUE(status["active"].empty());
  EXPECT_FALSE(status["lastSuccessfulTime"].is_null());
}

TEST(CronJob, ForbidWaitsForTheOneThatRuns) {
  Cluster cluster;
  cluster.make(kCronJobs, cron_job(R"(, "concurrencyPolicy": "Forbid")"));
  cluster.pass(3 * kMinute);
  EXPECT_EQ(cluster.count("jobs.batch"), 1U);
  finish_jobs(cluster, "Succeeded");
  EXPECT_EQ(cluster.count("jobs.batch"), 2U);  // the time that was missed
}

TEST(CronJob, ReplaceEndsTheOneThatRuns) {
  Cluster cluster;
  cluster.make(kCronJobs, cron_job(R"(, "concurrencyPolicy": "Replace")"));
  cluster.pass(kMinute);
  const std::string first = cluster.names("jobs.batch");
  cluster.pass(kMinute);
  EXPECT_EQ(cluster.count("jobs.batch"), 1U);
  EXPECT_NE(cluster.names("jobs.batch"), first);
}

TEST(CronJob, SuspendedItMakesNone) {
  Cluster cluster;
  cluster.make(kCronJobs, cron_job(R"(, "suspend": true, "startingDeadlineSeconds": 20)"));
  cluster.pass(10 * kMinute);
  EXPECT_EQ(cluster.count("jobs.batch"), 0U);
  cluster.patch(kCronJobs, "c", R"({"spec": {"suspend": false}})");
  cluster.pass(kMinute);
  EXPECT_EQ(cluster.count("jobs.batch"), 1U);  // what was missed long ago stays so
}

TEST(CronJob, AMissingJobIsNotActive) {
  Cluster cluster;
  cluster.make(kCronJobs, cron_job());
  cluster.pass(kMinute);
  cluster.remove("jobs.batch", cluster.names("jobs.batch"));
  EXPECT_TRUE(cluster.get(kCronJobs, "c").get("status", "active").empty());
}

}  // namespace
}  // namespace jogak::test
