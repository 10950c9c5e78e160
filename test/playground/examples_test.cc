// SPDX-License-Identifier: Apache-2.0
//
// The manifests of examples/playground come to the end that docs promise, in virtual time.
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "apiserver/object/meta.h"
#include "base/file.h"
#include "playground/fleet.h"
#include "test/playground/world.h"

namespace jogak::playground::testing {
namespace {

std::string example(std::string_view name) {
  auto text =
      read_file(std::string(JOGAK_SOURCE_DIR) + "/examples/playground/" + std::string(name));
  EXPECT_TRUE(text.has_value());
  return text.value_or("");
}

class Examples : public ::testing::Test {
 protected:
  Examples() : world_(default_fleet()) {}
  void TearDown() override { EXPECT_EQ(world_.broken_rule(), ""); }

  bool job_is_complete(std::string_view name) {
    const auto job = world_.api().get("jobs.batch", "default", name);
    return job.has_value() && api::condition_is(*job, "Complete", "True");
  }

  World world_;
};

TEST_F(Examples, NodesAreReadyWithWhatTheyHave) {
  const auto nodes = world_.api().list("nodes");
  ASSERT_EQ(nodes.size(), default_fleet().size());
  for (const Doc& node : nodes) {
    EXPECT_TRUE(api::condition_is(node, "Ready", "True")) << api::name_of(node);
    EXPECT_EQ(node.get("status", "allocatable"), node.get("status", "capacity"));
  }
}

TEST_F(Examples, OneGpuPodRunsUntilItIsDeleted) {
  world_.apply(example("1-gpu-pod.yaml"));
  world_.run_for(5 * kSecondInUs);
  EXPECT_EQ(world_.count("one-gpu", "Running"), 1U);
  EXPECT_TRUE(world_.nodes_of("one-gpu").begin()->starts_with("train-"));
  world_.run_for(3600 * kSecondInUs);
  EXPECT_EQ(world_.count("one-gpu", "Running"), 1U);
  ASSERT_TRUE(world_.api().remove("pods", "default", "one-gpu").has_value());
  world_.run_for(5 * kSecondInUs);
  EXPECT_TRUE(world_.pods().empty());
}

TEST_F(Examples, TrainingTakesTwoNodesAndCompletes) {
  world_.apply(example("2-training-job.yaml"));
  world_.run_for(5 * kSecondInUs);
  EXPECT_EQ(world_.count("train-", "Running"), 2U);
  EXPECT_EQ(world_.nodes_of("train-").size(), 2U);
  EXPECT_FALSE(job_is_complete("train"));
  world_.run_for(70 * kSecondInUs);
  EXPECT_TRUE(job_is_complete("train"));
}

TEST_F(Examples, TheServiceRunsOnSlices) {
  world_.apply(example("3-inference.yaml"));
  world_.run_for(10 * kSecondInUs);
  EXPECT_EQ(world_.count("chat-", "Running"), 5U);
  for (const std::string& node : world_.nodes_of("chat-")) EXPECT_TRUE(node.starts_with("mig-"));
  const auto deployment = world_.api().get("deployments.apps", "default", "chat");
  ASSERT_TRUE(deployment.has_value());
  EXPECT_EQ(deployment->get("status", "availableReplicas").as_int(), 5);
}

TEST_F(Examples, UrgentWorkPreemptsTrainingWhichComesBackAndEnds) {
  world_.apply(example("1-gpu-pod.yaml"));
  world_.apply(example("2-training-job.yaml"));
  world_.run_for(5 * kSecondInUs);
  world_.apply(example("4-urgent-job.yaml"));
  world_.run_for(15 * kSecondInUs);
  EXPECT_EQ(world_.count("urgent-", "Running"), 8U);
  EXPECT_EQ(world_.broken_rule(), "");
  std::size_t preempted = 0;
  for (const auto& [uid, gone] : world_.gone()) preempted += gone.was_disrupted ? 1U : 0U;
  EXPECT_EQ(preempted, 3U);  // the pod with one GPU and both workers: nobody else held a GPU
  EXPECT_EQ(world_.scheduler().counts().preempted, 3U);
  world_.run_for(200 * kSecondInUs);
  EXPECT_TRUE(job_is_complete("urgent"));
  EXPECT_TRUE(job_is_complete("train"));
}

TEST_F(Examples, WhatCannotRunSaysWhy) {
  world_.apply(example("5-cannot-run.yaml"));
  world_.run_for(5 * kSecondInUs);
  const Doc pod = world_.pod("sixteen-gpus");
  const Doc& condition = api::condition_of(pod, "PodScheduled");
  EXPECT_EQ(condition["status"].as_string(), "False");
  EXPECT_EQ(condition["reason"].as_string(), "Unschedulable");
  EXPECT_TRUE(condition["message"].as_string().starts_with("0/12 nodes are available"))
      << condition["message"].as_string();
  EXPECT_TRUE(condition["message"].as_string().find("Insufficient nvidia.com/gpu") !=
              std::string::npos);
  // saying it once is enough, however long it waits
  const std::uint64_t revision = world_.playground().server().store().revision();
  const std::size_t events = world_.api().list("events").size();
  world_.run_for(60 * kSecondInUs);
  EXPECT_EQ(world_.api().list("events").size(), events);
  EXPECT_EQ(world_.pod("sixteen-gpus")["metadata"]["resourceVersion"],
            pod["metadata"]["resourceVersion"]);
  EXPECT_GT(world_.playground().server().store().revision(), revision);  // leases went on
}

}  // namespace
}  // namespace jogak::playground::testing
