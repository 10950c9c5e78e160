// SPDX-License-Identifier: Apache-2.0
//
// How long simulated containers run and how they end, from commands, annotations and owners.
// What is malformed counts as absent.
#include "apiserver/kubelet/run_plan.h"

#include <initializer_list>
#include <string_view>

#include <gtest/gtest.h>

namespace jogak::kubelet {
namespace {

constexpr RunDefaults kDefaults = {.start_delay = 2 * kSecondInUs, .job_run_time = 7 * kSecondInUs};

Doc pod_with(std::initializer_list<std::string_view> command) {
  Doc words = Doc::array();
  for (const std::string_view word : command) words.push(word);
  Doc container = Doc::object().set("name", "main");
  if (!words.empty()) container.set("command", std::move(words));
  Doc pod = Doc::object();
  pod.at("spec").set("containers", Doc::array().push(std::move(container)));
  return pod;
}

Doc annotated(std::string_view key, std::string_view value,
              std::initializer_list<std::string_view> command = {}) {
  Doc pod = pod_with(command);
  pod.at("metadata", "annotations").set(key, value);
  return pod;
}

TEST(ParseSeconds, WholeAndParts) {
  EXPECT_EQ(parse_seconds("0"), 0);
  EXPECT_EQ(parse_seconds("30"), 30 * kSecondInUs);
  EXPECT_EQ(parse_seconds("30s"), 30 * kSecondInUs);
  EXPECT_EQ(parse_seconds("0.5"), 500 * kMsInUs);
  EXPECT_EQ(parse_seconds("1.000001"), kSecondInUs + 1);
  EXPECT_EQ(parse_seconds("1.0000019"), kSecondInUs + 1);  // finer than the clock
  EXPECT_EQ(parse_seconds("1000000000"), 1'000'000'000 * kSecondInUs);
}

TEST(ParseSeconds, WhatIsNoTimeIsNone) {
  for (const std::string_view text : {"", "s", "-1", "x", "1x", "1.x", "1..2", "1e3", " 1",
                                      "infinity", "1000000001", "99999999999999999999"}) {
    EXPECT_FALSE(parse_seconds(text).has_value()) << text;
  }
}

TEST(PlanOf, RunsForEverWhenNothingSaysOtherwise) {
  const RunPlan plan = plan_of(pod_with({}), kDefaults);
  EXPECT_EQ(plan.start_delay, 2 * kSecondInUs);
  EXPECT_FALSE(plan.run_time.has_value());
  EXPECT_EQ(plan.exit_code, 0);
  EXPECT_FALSE(plan.ignores_term);
}

TEST(PlanOf, SleepsAsItsCommandSays) {
  EXPECT_EQ(plan_of(pod_with({"sleep", "30"}), kDefaults).run_time, 30 * kSecondInUs);
  EXPECT_EQ(plan_of(pod_with({"/bin/sleep", "1.5"}), kDefaults).run_time, 1500 * kMsInUs);
  EXPECT_EQ(plan_of(pod_with({"sh", "-c", "echo hi; sleep 5; sleep 6"}), kDefaults).run_time,
            11 * kSecondInUs);
  EXPECT_FALSE(plan_of(pod_with({"sleep", "infinity"}), kDefaults).run_time.has_value());
  EXPECT_FALSE(plan_of(pod_with({"oversleep", "5"}), kDefaults).run_time.has_value());
}

TEST(PlanOf, EndsWithTheCodeOfItsCommand) {
  const RunPlan failing = plan_of(pod_with({"sh", "-c", "sleep 3 && exit 7"}), kDefaults);
  EXPECT_EQ(failing.run_time, 3 * kSecondInUs);
  EXPECT_EQ(failing.exit_code, 7);
  const RunPlan no = plan_of(pod_with({"/bin/false"}), kDefaults);
  EXPECT_EQ(no.run_time, 0);
  EXPECT_EQ(no.exit_code, 1);
  const RunPlan yes = plan_of(pod_with({"true"}), kDefaults);
  EXPECT_EQ(yes.run_time, 0);
  EXPECT_EQ(yes.exit_code, 0);
}

TEST(PlanOf, ShortProgramsEndAtOnce) {
  EXPECT_EQ(plan_of(pod_with({"echo", "hi"}), kDefaults).run_time, 0);
  EXPECT_EQ(plan_of(pod_with({"/usr/bin/nvidia-smi"}), kDefaults).run_time, 0);
  EXPECT_FALSE(plan_of(pod_with({"server", "--echo"}), kDefaults).run_time.has_value());
  EXPECT_FALSE(plan_of(pod_with({"server", "echo"}), kDefaults).run_time.has_value());
}

TEST(PlanOf, AnnotationsGoBeforeCommands) {
  EXPECT_EQ(plan_of(annotated(kRunSeconds, "4", {"sleep", "30"}), kDefaults).run_time,
            4 * kSecondInUs);
  EXPECT_EQ(plan_of(annotated(kExitCode, "3", {"false"}), kDefaults).exit_code, 3);
  EXPECT_EQ(plan_of(annotated(kStartSeconds, "0.25"), kDefaults).start_delay, 250 * kMsInUs);
  EXPECT_TRUE(plan_of(annotated(kIgnoresTerm, "true"), kDefaults).ignores_term);
  EXPECT_FALSE(plan_of(annotated(kIgnoresTerm, "yes"), kDefaults).ignores_term);
}

TEST(PlanOf, MalformedAnnotationsCountAsAbsent) {
  EXPECT_EQ(plan_of(annotated(kRunSeconds, "soon", {"sleep", "30"}), kDefaults).run_time,
            30 * kSecondInUs);
  EXPECT_EQ(plan_of(annotated(kStartSeconds, "-1"), kDefaults).start_delay, 2 * kSecondInUs);
  EXPECT_EQ(plan_of(annotated(kExitCode, "bad", {"sh", "-c", "exit 4"}), kDefaults).exit_code, 4);
  EXPECT_EQ(plan_of(annotated(kExitCode, "1x"), kDefaults).exit_code, 0);
}

TEST(PlanOf, PodsOfJobsEnd) {
  Doc pod = pod_with({"python", "train.py"});
  pod.at("metadata")
      .set("ownerReferences",
           Doc::array().push(
               Doc::object().set("kind", "Job").set("name", "j").set("controller", true)));
  EXPECT_EQ(plan_of(pod, kDefaults).run_time, 7 * kSecondInUs);
}

TEST(PlanOf, APodOfAJobMaySleepForEver) {
  Doc pod = pod_with({"sleep", "infinity"});
  pod.at("metadata")
      .set("ownerReferences",
           Doc::array().push(
               Doc::object().set("kind", "Job").set("name", "j").set("controller", true)));
  EXPECT_FALSE(plan_of(pod, kDefaults).run_time.has_value());
}

TEST(PlanOf, TheLongestContainerDecides) {
  Doc pod = pod_with({"sleep", "3"});
  pod.at("spec", "containers")
      .push(Doc::object().set("name", "b").set("command", Doc::strings({"sleep", "9"})));
  EXPECT_EQ(plan_of(pod, kDefaults).run_time, 9 * kSecondInUs);
}

TEST(PlanOf, OneContainerThatNeverEndsKeepsThePodRunning) {
  Doc pod = pod_with({"sleep", "3"});
  pod.at("spec", "containers").push(Doc::object().set("name", "server"));
  EXPECT_FALSE(plan_of(pod, kDefaults).run_time.has_value());
}

}  // namespace
}  // namespace jogak::kubelet
