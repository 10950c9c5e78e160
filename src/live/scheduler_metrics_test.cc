// SPDX-License-Identifier: Apache-2.0
//
// Facts of the driver as series, under the names that dashboards of kube-scheduler ask for.
#include "live/scheduler_metrics.h"

#include <gtest/gtest.h>

#include "base/sim_loop.h"

namespace jogak::live {
namespace {

class SchedulerMetricsTest : public ::testing::Test {
 protected:
  // Whether the scrape has this line.
  bool has(std::string_view line) const {
    text_ = "\n" + registry_.expose(ExpositionFormat::Text);
    return text_.find("\n" + std::string(line) + "\n") != std::string::npos;
  }

  Registry registry_;
  SimLoop loop_;
  CapturedLog captured_;
  Log log_{loop_, captured_};
  const std::vector<std::string> profiles_ = {"jogak"};
  SchedulerMetrics metrics_{registry_, log_, profiles_};
  mutable std::string text_;
};

TEST_F(SchedulerMetricsTest, SeriesOfProfilesAreThereFromTheStart) {
  EXPECT_TRUE(has(R"(scheduler_schedule_attempts_total{result="scheduled",profile="jogak"} 0)"));
  EXPECT_TRUE(has(R"(scheduler_schedule_attempts_total{result="error",profile="jogak"} 0)"));
  EXPECT_TRUE(has(R"(scheduler_pending_pods{queue="gated"} 0)"));
  EXPECT_TRUE(has(R"(jogak_bind_errors_total{code="Conflict"} 0)"));
  EXPECT_TRUE(has("jogak_invalid_plans_total 0"));
}

TEST_F(SchedulerMetricsTest, AnAttempt) {
  metrics_.attempted({.profile = "jogak",
                      .result = AttemptResult::Scheduled,
                      .decide = 40,  // us
                      .whole = 3 * kMsInUs});
  EXPECT_TRUE(has(R"(scheduler_schedule_attempts_total{result="scheduled",profile="jogak"} 1)"));
  const std::string duration = "scheduler_scheduling_attempt_duration_seconds";
  const std::string labels = R"({result="scheduled",profile="jogak")";
  EXPECT_TRUE(has(duration + "_bucket" + labels + R"(,le="0.002"} 0)"));
  EXPECT_TRUE(has(duration + "_bucket" + labels + R"(,le="0.004"} 1)"));
  EXPECT_TRUE(has(duration + "_bucket" + labels + R"(,le="16.384"} 1)"));
  EXPECT_TRUE(has(duration + "_count" + labels + "} 1"));
  EXPECT_TRUE(has(R"(scheduler_scheduling_algorithm_duration_seconds_bucket{le="0.001"} 1)"));
  EXPECT_TRUE(has(R"(jogak_decision_duration_seconds_bucket{le="2e-05"} 0)"));
  EXPECT_TRUE(has(R"(jogak_decision_duration_seconds_bucket{le="4e-05"} 1)"));
}

TEST_F(SchedulerMetricsTest, TriesAreToldToWhoeverWantsToKnow) {
  metrics_.attempted({.profile = "jogak", .decide = 1, .whole = 2, .pod = "a/b", .detail = "n1"});
  EXPECT_TRUE(captured_.lines.empty());
  metrics_.attempted({.profile = "jogak",
                      .result = AttemptResult::Error,
                      .decide = 1,
                      .whole = 2,
                      .pod = "a/b",
                      .detail = "no answer"});
  log_.set_level(LogLevel::Debug);
  metrics_.attempted({.profile = "jogak", .decide = 1, .whole = 2, .pod = "a/b", .detail = "n1"});
  EXPECT_EQ(captured_.lines,
            (std::vector<std::string>{
                "warn: a try failed  pod=a/b result=error detail=\"no "
                "answer\" decide_us=1 whole_us=2",
                "debug: tried  pod=a/b result=scheduled detail=n1 decide_us=1 whole_us=2"}));
}

TEST_F(SchedulerMetricsTest, ACrowdOfFaultsIsNotAllTold) {
  for (int i = 0; i < 100; ++i) {
    metrics_.attempted({.profile = "jogak", .result = AttemptResult::Error});
  }
  EXPECT_EQ(captured_.lines.size(), 10U);
  EXPECT_TRUE(has(R"(scheduler_schedule_attempts_total{result="error",profile="jogak"} 100)"));
  loop_.run_for(61 * kSecondInUs);
  metrics_.attempted({.profile = "jogak", .result = AttemptResult::Error});
  EXPECT_EQ(captured_.lines.size(), 11U);
}

TEST_F(SchedulerMetricsTest, PodsThatTookManyTriesShareALabel) {
  metrics_.bound({.profile = "jogak", .attempts = 1, .since_seen = 15 * kMsInUs});
  metrics_.bound({.profile = "jogak", .attempts = 15, .since_seen = 60 * kSecondInUs});
  metrics_.bound({.profile = "jogak", .attempts = 99, .since_seen = 60 * kSecondInUs});
  const std::string sli = "scheduler_pod_scheduling_sli_duration_seconds";
  EXPECT_TRUE(has(sli + R"(_bucket{attempts="1",le="0.01"} 0)"));
  EXPECT_TRUE(has(sli + R"(_bucket{attempts="1",le="0.02"} 1)"));
  EXPECT_TRUE(has(sli + R"(_count{attempts="15+"} 2)"));
  EXPECT_TRUE(has(R"(scheduler_pod_scheduling_attempts_bucket{le="1"} 1)"));
  EXPECT_TRUE(has(R"(scheduler_pod_scheduling_attempts_bucket{le="16"} 2)"));
  EXPECT_TRUE(has("scheduler_pod_scheduling_attempts_count 3"));
}

TEST_F(SchedulerMetricsTest, BindingsThatFail) {
  metrics_.binds_in_flight(7);
  metrics_.bind_failed(Errc::Conflict);
  EXPECT_TRUE(has("jogak_binds_in_flight 7"));
  EXPECT_TRUE(has(R"(jogak_bind_errors_total{code="Conflict"} 1)"));
}

TEST_F(SchedulerMetricsTest, RefusalsComeAndGo) {
  const std::array<std::string_view, 2> plugins = {"NodeAffinity", "NodeResourcesFit"};
  metrics_.refused("jogak", plugins);
  metrics_.refused("jogak", std::span(plugins).first(1));
  metrics_.refused_no_more("jogak", plugins);
  EXPECT_TRUE(has(R"(scheduler_unschedulable_pods{plugin="NodeAffinity",profile="jogak"} 1)"));
  EXPECT_TRUE(has(R"(scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="jogak"} 0)"));
}

TEST_F(SchedulerMetricsTest, Preemption) {
  metrics_.preemption_tried(0);
  metrics_.preemption_tried(3);
  EXPECT_TRUE(has("scheduler_preemption_attempts_total 2"));
  EXPECT_TRUE(has("scheduler_preemption_victims_count 1"));
  EXPECT_TRUE(has(R"(scheduler_preemption_victims_bucket{le="4"} 1)"));
}

TEST_F(SchedulerMetricsTest, Queues) {
  metrics_.queued(QueueKind::Active, "PodAdd", 2);
  metrics_.queued(QueueKind::Active, "PodAdd", 1);
  metrics_.queued(QueueKind::Unschedulable, "ScheduleAttemptFailure", 1);
  metrics_.queue_lengths({1, 2, 3, 4});
  EXPECT_TRUE(has(R"(scheduler_queue_incoming_pods_total{queue="active",event="PodAdd"} 3)"));
  EXPECT_TRUE(has(R"(scheduler_pending_pods{queue="active"} 1)"));
  EXPECT_TRUE(has(R"(scheduler_pending_pods{queue="unschedulable"} 3)"));
  EXPECT_TRUE(has(R"(scheduler_pending_pods{queue="gated"} 4)"));
}

TEST_F(SchedulerMetricsTest, FaultsAreCountedAndLogged) {
  metrics_.plan_invalid("team/a", "GPU 0 twice");
  metrics_.unreadable("Node", "n1", "bad annotation");
  EXPECT_TRUE(has("jogak_invalid_plans_total 1"));
  EXPECT_TRUE(has(R"(jogak_unreadable_objects_total{kind="Node"} 1)"));
  EXPECT_EQ(captured_.lines,
            (std::vector<std::string>{
                "error: a plan breaks a rule and was stopped  pod=team/a why=\"GPU 0 twice\"",
                "warn: an object could not be read  kind=Node object=n1 why=\"bad annotation\""}));
}

}  // namespace
}  // namespace jogak::live
