// SPDX-License-Identifier: Apache-2.0
//
// Jobs.
#include <gtest/gtest.h>

#include <set>

#include <fmt/core.h>

#include "apiserver/object/meta.h"
#include "test/cluster/cluster.h"

namespace jogak::test {
namespace {

constexpr std::string_view kJobs = "jobs.batch";

std::string job(std::string_view spec, std::string_view restart = "Never") {
  return fmt::format(R"({{"metadata": {{"name": "j"}}, "spec": {{{} "template": {{"spec": {{
      "restartPolicy": "{}", "containers": [{{"name": "c", "image": "i:1"}}]}}}}}}}})",
                     spec, restart);
}

Doc status(const Cluster& cluster) { return cluster.get(kJobs, "j")["status"]; }

bool is(const Cluster& cluster, std::string_view type) {
  return api::condition_is(cluster.get(kJobs, "j"), type, "True");
}

std::vector<Doc> unfinished(const Cluster& cluster) {
  std::vector<Doc> pods = cluster.live_pods();
  std::erase_if(pods, [](const Doc& pod) {
    const std::string& phase = pod.get("status", "phase").as_string();
    return phase == "Succeeded" || phase == "Failed";
  });
  return pods;
}

void end_all(Cluster& cluster, std::string_view phase) {
  for (const Doc& pod : unfinished(cluster)) cluster.end_pod(api::name_of(pod), phase);
}

TEST(Job, RunsSoManyAtATime) {
  Cluster cluster;
  cluster.make(kJobs, job(R"("completions": 5, "parallelism": 2,)"));
  EXPECT_EQ(unfinished(cluster).size(), 2U);
  end_all(cluster, "Succeeded");
  EXPECT_EQ(unfinished(cluster).size(), 2U);
  end_all(cluster, "Succeeded");
  EXPECT_EQ(unfinished(cluster).size(), 1U);  // the last of five
  EXPECT_FALSE(is(cluster, "Complete"));
  end_all(cluster, "Succeeded");
  EXPECT_TRUE(is(cluster, "Complete"));
  EXPECT_TRUE(is(cluster, "SuccessCriteriaMet"));
  EXPECT_EQ(status(cluster)["succeeded"].as_int(), 5);
  EXPECT_FALSE(status(cluster)["completionTime"].is_null());
  for (const Doc& pod : cluster.list("pods")) {
    EXPECT_TRUE(api::meta(pod)["finalizers"].empty());  // counted
  }
}

TEST(Job, ManyPodsAreMadeInSeveralTurns) {
  Cluster cluster;
  cluster.make(kJobs, job(R"("completions": 80, "parallelism": 80,)"));
  EXPECT_EQ(unfinished(cluster).size(), 80U);
  EXPECT_EQ(status(cluster)["active"].as_int(), 80);
}

TEST(Job, WithoutCompletionsOneSuccessWillDo) {
  Cluster cluster;
  cluster.make(kJobs, job(R"("parallelism": 3,)"));
  ASSERT_EQ(unfinished(cluster).size(), 3U);
  cluster.end_pod(api::name_of(unfinished(cluster)[0]), "Succeeded");
  EXPECT_EQ(unfinished(cluster).size(), 2U);  // none comes after the first success
  EXPECT_FALSE(is(cluster, "Complete"));
  end_all(cluster, "Succeeded");
  EXPECT_TRUE(is(cluster, "Complete"));
}

TEST(Job, FailuresWaitLongerEachTime) {
  Cluster cluster;
  cluster.make(kJobs, job(R"("backoffLimit": 5,)"));
  end_all(cluster, "Failed");
  EXPECT_EQ(unfinished(cluster).size(), 0U);
  cluster.pass(8 * kSecondInUs);
  EXPECT_EQ(unfinished(cluster).size(), 0U);
  cluster.pass(3 * kSecondInUs);
  EXPECT_EQ(unfinished(cluster).size(), 1U);  // after ten seconds
  end_all(cluster, "Failed");
  cluster.pass(15 * kSecondInUs);
  EXPECT_EQ(unfinished(cluster).size(), 0U);
  cluster.pass(6 * kSecondInUs);
  EXPECT_EQ(unfinished(cluster).size(), 1U);  // after twenty
}

TEST(Job, TooManyFailuresEndIt) {
  Cluster cluster;
  cluster.make(kJobs, job(R"("backoffLimit": 1,)"));
  end_all(cluster, "Failed");
  cluster.pass(15 * kSecondInUs);
  end_all(cluster, "Failed");
  EXPECT_TRUE(is(cluster, "Failed"));
  EXPECT_EQ(api::condition_of(cluster.get(kJobs, "j"), "Failed")["reason"],
            Doc("BackoffLimitExceeded"));
  EXPECT_EQ(status(cluster)["failed"].as_int(), 2);
  cluster.pass(3600 * kSecondInUs);
  EXPECT_EQ(unfinished(cluster).size(), 0U);
}

TEST(Job, ADeadlineEndsItWithItsPods) {
  Cluster cluster;
  cluster.make(kJobs, job(R"("activeDeadlineSeconds": 30,)"));
  cluster.pass(25 * kSecondInUs);
  EXPECT_FALSE(is(cluster, "Failed"));
  cluster.pass(10 * kSecondInUs);
  EXPECT_TRUE(is(cluster, "Failed"));
  EXPECT_EQ(api::condition_of(cluster.get(kJobs, "j"), "Failed")["reason"],
            Doc("DeadlineExceeded"));
  EXPECT_EQ(unfinished(cluster).size(), 0U);
}

TEST(Job, IndexesAreDoneEachOnce) {
  Cluster cluster;
  cluster.make(kJobs, job(R"("completions": 4, "parallelism": 2, "completionMode": "Indexed",)"));
  const auto index_of = [](const Doc& pod) {
    return api::meta(pod)["labels"]["batch.kubernetes.io/job-completion-index"].as_string();
  };
  std::multiset<std::string> indexes;
  for (const Doc& pod : unfinished(cluster)) indexes.insert(index_of(pod));
  EXPECT_EQ(indexes, (std::multiset<std::string>{"0", "1"}));
  const Doc first = unfinished(cluster)[0];
  EXPECT_TRUE(api::name_of(first).starts_with("j-" + index_of(first) + "-"));
  EXPECT_EQ(first.get("spec", "hostname"), Doc("j-" + index_of(first)));
  end_all(cluster, "Succeeded");
  EXPECT_EQ(status(cluster)["completedIndexes"], Doc("0,1"));
  end_all(cluster, "Succeeded");
  EXPECT_EQ(status(cluster)["completedIndexes"], Doc("0-3"));
  EXPECT_TRUE(is(cluster, "Complete"));
}

TEST(Job, AFailedIndexIsTriedAgain) {
  Cluster cluster;
  cluster.make(kJobs, job(R"("completions": 2, "parallelism": 2, "completionMode": "Indexed",)"));
  const Doc pod = unfinished(cluster)[0];
  const std::string label = "batch.kubernetes.io/job-completion-index";
  cluster.end_pod(api::name_of(pod), "Failed");
  cluster.pass(15 * kSecondInUs);
  std::multiset<std::string> indexes;
  for (const Doc& one : unfinished(cluster))
    indexes.insert(api::meta(one)["labels"][label].as_string());
  EXPECT_EQ(indexes, (std::multiset<std::string>{"0", "1"}));
}

TEST(Job, SuspendedItHasNoPods) {
  Cluster cluster;
  cluster.make(kJobs, job(R"("suspend": true,)"));
  EXPECT_EQ(cluster.count("pods"), 0U);
  EXPECT_TRUE(is(cluster, "Suspended"));
  EXPECT_TRUE(status(cluster)["startTime"].is_null());
  cluster.patch(kJobs, "j", R"({"spec": {"suspend": false}})");
  EXPECT_EQ(unfinished(cluster).size(), 1U);
  EXPECT_FALSE(is(cluster, "Suspended"));
  cluster.patch(kJobs, "j", R"({"spec": {"suspend": true}})");
  EXPECT_EQ(unfinished(cluster).size(), 0U);
  EXPECT_EQ(status(cluster)["failed"].as_int(), 0);
}

TEST(Job, ItGoesWhenItsTimeIsOver) {
  Cluster cluster;
  cluster.make(kJobs, job(R"("ttlSecondsAfterFinished": 100,)"));
  end_all(cluster, "Succeeded");
  cluster.pass(90 * kSecondInUs);
  EXPECT_FALSE(cluster.get(kJobs, "j").is_null());
  cluster.pass(20 * kSecondInUs);
  EXPECT_TRUE(cluster.get(kJobs, "j").is_null());
  EXPECT_EQ(cluster.count("pods"), 0U);
}

TEST(Job, LessParallelismEndsPods) {
  Cluster cluster;
  cluster.make(kJobs, job(R"("completions": 5, "parallelism": 4,)"));
  cluster.patch(kJobs, "j", R"({"spec": {"parallelism": 1}})");
  EXPECT_EQ(unfinished(cluster).size(), 1U);
}

TEST(Job, ItsPodsGoWithIt) {
  Cluster cluster;
  cluster.make(kJobs, job(""));
  cluster.remove(kJobs, "j");
  EXPECT_EQ(cluster.count("pods"), 0U);
}

}  // namespace
}  // namespace jogak::test
