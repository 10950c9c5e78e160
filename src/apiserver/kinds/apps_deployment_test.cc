// SPDX-License-Identifier: Apache-2.0
// Deployments: every default, every refusal, what status updates may do.
#include <gtest/gtest.h>

#include "apiserver/kinds/testing/workload_bench.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

Doc deployment() {
  return json(R"({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
    "spec": {"selector": {"matchLabels": {"app": "d"}},
             "template": {"metadata": {"labels": {"app": "d"}},
                          "spec": {"containers": [{"name": "c", "image": "reg.example/a:1"}]}}}})");
}

TEST(Deployment, GetsItsDefaults) {
  WorkloadBench bench;
  const auto made = bench.create(deployment());
  ASSERT_TRUE(made.has_value());
  const Doc& spec = (*made)["spec"];
  EXPECT_EQ(spec["replicas"].as_int(), 1);
  EXPECT_EQ(spec["strategy"], json(R"({"type": "RollingUpdate",
                     "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}})"));
  EXPECT_EQ(spec["revisionHistoryLimit"].as_int(), 10);
  EXPECT_EQ(spec["progressDeadlineSeconds"].as_int(), 600);
  EXPECT_EQ(spec["template"]["spec"]["restartPolicy"].as_string(), "Always");
  EXPECT_EQ(meta(*made)["generation"].as_int(), 1);
  EXPECT_EQ((*made)["status"], Doc::object());
}

TEST(Deployment, KeepsWhatItWasGiven) {
  WorkloadBench bench;
  const auto made = bench.create(
      with(deployment(), {"spec/replicas=0", "spec/strategy/type=Recreate",
                          "spec/revisionHistoryLimit=0", "spec/progressDeadlineSeconds=20"}));
  ASSERT_TRUE(made.has_value());
  const Doc& spec = (*made)["spec"];
  EXPECT_EQ(spec["replicas"], Doc(0));
  EXPECT_EQ(spec["strategy"], json(R"({"type": "Recreate"})"));
  EXPECT_EQ(spec["revisionHistoryLimit"], Doc(0));
  EXPECT_EQ(spec["progressDeadlineSeconds"], Doc(20));
}

TEST(Deployment, HalfAStrategyIsCompleted) {
  WorkloadBench bench;
  const auto made = bench.create(with(deployment(), {"spec/strategy/rollingUpdate/maxSurge=1"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["spec"]["strategy"]["rollingUpdate"],
            json(R"({"maxUnavailable": "25%", "maxSurge": 1})"));
}

TEST(Deployment, CreateLosesTheStatus) {
  WorkloadBench bench;
  const auto made = bench.create(with(deployment(), {"status/replicas=3"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["status"], Doc::object());
}

TEST(Deployment, IsRefusedOnCreate) {
  WorkloadBench bench;
  const std::string rolling = "spec/strategy/rollingUpdate/";
  const std::string pod = "spec/template/spec/";
  expect_creates(
      bench, deployment(),
      {{"right", {}},
       {"replicas", {"spec/replicas=-1"}, "Invalid spec.replicas"},
       {"no selector",
        {"spec/selector"},
        "Required spec.selector, Invalid spec.template.metadata.labels"},
       {"empty selector", {"spec/selector={}"}, "Invalid spec.selector"},
       {"other labels",
        {"spec/selector/matchLabels/app=e"},
        "Invalid spec.template.metadata.labels"},
       {"bad operator",
        {R"(spec/selector/matchExpressions=[{"key": "a", "operator": "Gt", "values": ["1"]}])"},
        "Invalid spec.selector.matchExpressions[0].operator, Invalid spec.selector"},
       {"restart policy",
        {pod + "restartPolicy=Never"},
        "NotSupported spec.template.spec.restartPolicy"},
       {"deadline",
        {pod + "activeDeadlineSeconds=5"},
        "Forbidden spec.template.spec.activeDeadlineSeconds"},
       {"nothing moves",
        {rolling + "maxSurge=0", rolling + "maxUnavailable=0"},
        "Invalid spec.strategy.rollingUpdate.maxUnavailable"},
       {"nothing moves, in percent",
        {rolling + "maxSurge=0%", rolling + "maxUnavailable=0%"},
        "Invalid spec.strategy.rollingUpdate.maxUnavailable"},
       {"surge below zero",
        {rolling + "maxSurge=-1"},
        "Invalid spec.strategy.rollingUpdate.maxSurge"},
       {"unavailable below zero",
        {rolling + "maxUnavailable=-1"},
        "Invalid spec.strategy.rollingUpdate.maxUnavailable"},
       {"not a percentage",
        {rolling + "maxSurge=x%"},
        "Invalid spec.strategy.rollingUpdate.maxSurge"},
       {"more than all",
        {rolling + "maxUnavailable=101%"},
        "Invalid spec.strategy.rollingUpdate.maxUnavailable"},
       {"surge may be more than all", {rolling + "maxSurge=300%"}},
       {"recreate rolls",
        {"spec/strategy/type=Recreate", rolling + "maxSurge=1"},
        "Forbidden spec.strategy.rollingUpdate"},
       {"strategy", {"spec/strategy/type=Other"}, "NotSupported spec.strategy"},
       {"ready seconds", {"spec/minReadySeconds=-1"}, "Invalid spec.minReadySeconds"},
       {"history", {"spec/revisionHistoryLimit=-1"}, "Invalid spec.revisionHistoryLimit"},
       {"deadline below zero",
        {"spec/progressDeadlineSeconds=-1"},
        "Invalid spec.progressDeadlineSeconds, Invalid spec.progressDeadlineSeconds"},
       {"deadline before readiness",
        {"spec/progressDeadlineSeconds=5", "spec/minReadySeconds=10"},
        "Invalid spec.progressDeadlineSeconds"},
       {"no spec",
        {"spec"},
        "Required spec.selector, Invalid spec.template.metadata.labels, Required "
        "spec.template.spec.containers"}});
}

TEST(Deployment, SelectorNeverChanges) {
  WorkloadBench bench;
  expect_edits(bench, deployment(),
               {{"selector",
                 {"spec/selector/matchLabels/app=z"},
                 "Invalid spec.template.metadata.labels, Invalid spec.selector"},
                {"selector with the labels",
                 {"spec/selector/matchLabels/app=z", "spec/template/metadata/labels/app=z"},
                 "Invalid spec.selector"},
                {"more labels in the template", {"spec/template/metadata/labels/b=c"}},
                {"image", {"spec/template/spec/containers/0/image=reg.example/a:2"}},
                {"replicas", {"spec/replicas=-3"}, "Invalid spec.replicas"}});
}

TEST(Deployment, AnAnnotationRaisesTheGeneration) {
  WorkloadBench bench;
  ASSERT_TRUE(bench.create(deployment()).has_value());
  EXPECT_EQ(meta(*bench.edit(deployment(), {"metadata/annotations/a=b"}))["generation"], Doc(2));
  EXPECT_EQ(meta(*bench.edit(deployment(), {"metadata/labels/a=b"}))["generation"], Doc(2));
  EXPECT_EQ(meta(*bench.edit(deployment(), {"spec/paused=true"}))["generation"], Doc(3));
}

TEST(Deployment, StatusIsCheckedAgainstItself) {
  WorkloadBench bench;
  expect_edits(
      bench, deployment(),
      {{"right",
        {"status/replicas=2", "status/readyReplicas=1", "status/availableReplicas=1",
         "status/updatedReplicas=2", "status/observedGeneration=3"}},
       {"generation", {"status/observedGeneration=-1"}, "Invalid status.observedGeneration"},
       {"replicas",
        {"status/replicas=-1"},
        "Invalid status.replicas, Invalid status.updatedReplicas, Invalid status.readyReplicas, "
        "Invalid status.availableReplicas"},
       {"updated", {"status/updatedReplicas=1"}, "Invalid status.updatedReplicas"},
       {"ready", {"status/readyReplicas=5"}, "Invalid status.readyReplicas"},
       {"available",
        {"status/replicas=3", "status/readyReplicas=2", "status/availableReplicas=9"},
        "Invalid status.availableReplicas, Invalid status.availableReplicas"},
       {"unavailable", {"status/unavailableReplicas=-1"}, "Invalid status.unavailableReplicas"},
       {"terminating", {"status/terminatingReplicas=-1"}, "Invalid status.terminatingReplicas"},
       {"collisions", {"status/collisionCount=-1"}, "Invalid status.collisionCount"}},
      "status");
}

TEST(Deployment, CollisionsAreNeverForgotten) {
  WorkloadBench bench;
  ASSERT_TRUE(bench.create(deployment()).has_value());
  ASSERT_EQ(refusal(bench.edit(deployment(), {"status/collisionCount=2"}, "status")), "");
  EXPECT_EQ(refusal(bench.edit(deployment(), {"status/collisionCount=1"}, "status")),
            "Invalid status.collisionCount");
  EXPECT_EQ(refusal(bench.edit(deployment(), {"status/collisionCount"}, "status")),
            "Invalid status.collisionCount");
  EXPECT_EQ(refusal(bench.edit(deployment(), {"status/collisionCount=3"}, "status")), "");
}

TEST(Deployment, StatusUpdateLeavesSpecAndLabels) {
  WorkloadBench bench;
  ASSERT_TRUE(bench.create(deployment()).has_value());
  const auto changed = bench.edit(
      deployment(),
      {"spec/replicas=7", "metadata/labels/a=b", "metadata/annotations/c=d", "status/replicas=1"},
      "status");
  ASSERT_TRUE(changed.has_value());
  EXPECT_EQ((*changed)["spec"]["replicas"], Doc(1));
  EXPECT_FALSE(meta(*changed).has("labels"));
  EXPECT_EQ(meta(*changed)["annotations"]["c"], Doc("d"));
  EXPECT_EQ((*changed)["status"]["replicas"], Doc(1));
  EXPECT_EQ(meta(*changed)["generation"], Doc(1));
}

TEST(Deployment, UpdateKeepsTheStatus) {
  WorkloadBench bench;
  ASSERT_TRUE(bench.create(deployment()).has_value());
  ASSERT_TRUE(bench.edit(deployment(), {"status/replicas=4"}, "status").has_value());
  const auto changed = bench.edit(deployment(), {"status/replicas=9", "spec/replicas=2"});
  ASSERT_TRUE(changed.has_value());
  EXPECT_EQ((*changed)["status"]["replicas"], Doc(4));
}

TEST(Deployment, ANameThatIsNoHostNameIsWarnedAbout) {
  WorkloadBench bench;
  ASSERT_EQ(refusal(bench.create(with(deployment(), {"metadata/name=a.b"}))), "");
  ASSERT_EQ(bench.warnings().size(), 1U);
  EXPECT_TRUE(bench.warnings()[0].starts_with("metadata.name: this is used in Pod names"));
  ASSERT_EQ(refusal(bench.create(deployment())), "");
  EXPECT_TRUE(bench.warnings().empty());
}

TEST(Deployment, ARefusedWriteDoesNotWarn) {
  WorkloadBench bench;
  EXPECT_NE(refusal(bench.create(with(deployment(), {"metadata/name=a.b", "spec/replicas=-1"}))),
            "");
  EXPECT_TRUE(bench.warnings().empty());
}

}  // namespace
}  // namespace jogak::api
