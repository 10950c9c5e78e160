// SPDX-License-Identifier: Apache-2.0
// Daemon sets: every default and every refusal, and the template's generation.
#include <gtest/gtest.h>

#include "apiserver/kinds/testing/workload_bench.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

constexpr std::string_view kAnnotation = "deprecated.daemonset.template.generation";

Doc daemon_set() {
  return json(R"({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d"},
    "spec": {"selector": {"matchLabels": {"a": "d"}},
             "template": {"metadata": {"labels": {"a": "d"}},
                          "spec": {"containers": [{"name": "c", "image": "i:1"}]}}}})");
}

constexpr std::string_view kCounts[] = {"currentNumberScheduled", "numberMisscheduled",
                                        "desiredNumberScheduled", "numberReady",
                                        "observedGeneration",     "updatedNumberScheduled",
                                        "numberAvailable",        "numberUnavailable",
                                        "collisionCount"};

std::string template_generation(const Doc& object) {
  return meta(object)["annotations"][kAnnotation].as_string();
}

TEST(DaemonSet, GetsItsDefaults) {
  WorkloadBench bench;
  const auto made = bench.create(daemon_set());
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["spec"]["updateStrategy"], json(R"({"type": "RollingUpdate",
                     "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}})"));
  EXPECT_EQ((*made)["spec"]["revisionHistoryLimit"], Doc(10));
  EXPECT_EQ(template_generation(*made), "1");
  EXPECT_EQ((*made)["status"], json(R"({"currentNumberScheduled": 0, "numberMisscheduled": 0,
                     "desiredNumberScheduled": 0, "numberReady": 0})"));
}

TEST(DaemonSet, OnDeleteNeedsNoNumbers) {
  WorkloadBench bench;
  const auto made = bench.create(with(daemon_set(), {"spec/updateStrategy/type=OnDelete"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["spec"]["updateStrategy"], json(R"({"type": "OnDelete"})"));
}

TEST(DaemonSet, IsRefusedOnCreate) {
  WorkloadBench bench;
  const std::string rolling = "spec/updateStrategy/rollingUpdate/";
  expect_creates(
      bench, daemon_set(),
      {{"right", {}},
       {"no selector", {"spec/selector"}, "Invalid spec.template.metadata.labels"},
       {"empty selector", {"spec/selector={}"}, "Invalid spec.selector"},
       {"other labels", {"spec/selector/matchLabels/a=q"}, "Invalid spec.template.metadata.labels"},
       {"bad key",
        {R"(spec/selector/matchLabels={"a b": "c"})"},
        "Invalid spec.selector.matchLabels"},
       {"restart policy",
        {"spec/template/spec/restartPolicy=Never"},
        "NotSupported spec.template.spec.restartPolicy"},
       {"deadline",
        {"spec/template/spec/activeDeadlineSeconds=5"},
        "Forbidden spec.template.spec.activeDeadlineSeconds"},
       {"ready seconds", {"spec/minReadySeconds=-1"}, "Invalid spec.minReadySeconds"},
       {"strategy", {"spec/updateStrategy/type=X"}, "NotSupported spec.updateStrategy"},
       {"nothing moves",
        {rolling + "maxUnavailable=0"},
        "Required spec.updateStrategy.rollingUpdate.maxUnavailable"},
       {"both", {rolling + "maxSurge=1"}, "Invalid spec.updateStrategy.rollingUpdate.maxSurge"},
       {"surge alone", {rolling + "maxSurge=10%", rolling + "maxUnavailable=0"}},
       {"not a percentage",
        {rolling + "maxUnavailable=x"},
        "Invalid spec.updateStrategy.rollingUpdate.maxUnavailable, "
        "Required spec.updateStrategy.rollingUpdate.maxUnavailable"},
       {"more than all",
        {rolling + "maxUnavailable=101%"},
        "Invalid spec.updateStrategy.rollingUpdate.maxUnavailable"},
       {"surge more than all",
        {rolling + "maxSurge=101%", rolling + "maxUnavailable=0"},
        "Invalid spec.updateStrategy.rollingUpdate.maxSurge"},
       {"below zero",
        {rolling + "maxUnavailable=-1"},
        "Invalid spec.updateStrategy.rollingUpdate.maxUnavailable"},
       {"history", {"spec/revisionHistoryLimit=-1"}, "Invalid spec.revisionHistoryLimit"}});
}

TEST(DaemonSet, SelectorNeverChanges) {
  WorkloadBench bench;
  expect_edits(bench, daemon_set(),
               {{"selector",
                 {"spec/selector/matchLabels/x=y"},
                 "Invalid spec.selector, Invalid spec.template.metadata.labels"},
                {"template", {"spec/template/spec/containers/0/image=i:2"}}});
}

TEST(DaemonSet, TheTemplateHasAGenerationOfItsOwn) {
  WorkloadBench bench;
  ASSERT_TRUE(bench.create(daemon_set()).has_value());
  auto changed = bench.edit(daemon_set(), {"spec/minReadySeconds=3"});
  EXPECT_EQ(template_generation(*changed), "1");
  EXPECT_EQ(meta(*changed)["generation"], Doc(2));
  changed = bench.edit(daemon_set(), {"spec/template/spec/containers/0/image=i:2"});
  EXPECT_EQ(template_generation(*changed), "2");
  EXPECT_EQ(meta(*changed)["generation"], Doc(3));
}

TEST(DaemonSet, NobodyElseWritesThatGeneration) {
  WorkloadBench bench;
  const std::string key = "metadata/annotations/" + std::string(kAnnotation);
  ASSERT_TRUE(bench.create(daemon_set()).has_value());
  auto changed = bench.edit(daemon_set(), {key + "=\"9\""});
  EXPECT_EQ(template_generation(*changed), "1");
  changed = bench.edit(daemon_set(), {"metadata/annotations"});
  EXPECT_EQ(template_generation(*changed), "1");
  changed = bench.edit(daemon_set(), {key + "=\"9\"", "status/numberReady=1"}, "status");
  EXPECT_EQ(template_generation(*changed), "1");
  EXPECT_EQ((*changed)["status"]["numberReady"], Doc(1));
}

TEST(DaemonSet, AHigherGenerationMayBeBroughtAlong) {
  WorkloadBench bench;
  const std::string key = "metadata/annotations/" + std::string(kAnnotation);
  EXPECT_EQ(template_generation(*bench.create(with(daemon_set(), {key + "=\"7\""}))), "7");
}

TEST(DaemonSet, StatusIsChecked) {
  WorkloadBench bench;
  std::vector<std::string> causes;
  for (const std::string_view name : kCounts)
    causes.push_back("Invalid status." + std::string(name));
  std::vector<Edited> rows = {{"right", {"status/numberReady=3", "status/collisionCount=1"}}};
  for (std::size_t i = 0; i < std::size(kCounts); ++i) {
    rows.push_back({kCounts[i], {"status/" + std::string(kCounts[i]) + "=-1"}, causes[i]});
  }
  expect_edits(bench, daemon_set(), rows, "status");
}

}  // namespace
}  // namespace jogak::api
