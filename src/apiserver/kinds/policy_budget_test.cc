// SPDX-License-Identifier: Apache-2.0
// Disruption budgets: every refusal, and the status.
#include <gtest/gtest.h>

#include "apiserver/kinds/testing/workload_bench.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

Doc budget() {
  return json(R"({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                  "metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"a": "b"}}}})");
}

TEST(DisruptionBudget, HasNoDefaults) {
  WorkloadBench bench;
  const auto made = bench.create(with(budget(), {"spec={}"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["spec"], Doc::object());
  EXPECT_EQ((*made)["status"],
            json(R"({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0,
                     "expectedPods": 0})"));
  EXPECT_EQ(meta(*made)["generation"], Doc(1));
}

TEST(DisruptionBudget, AnEmptySelectorStays) {
  WorkloadBench bench;
  const auto made = bench.create(with(budget(), {"spec/selector={}", "spec/maxUnavailable=25%"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["spec"], json(R"({"selector": {}, "maxUnavailable": "25%"})"));
}

TEST(DisruptionBudget, IsRefusedOnCreate) {
  WorkloadBench bench;
  expect_creates(
      bench, budget(),
      {{"right", {"spec/minAvailable=1"}},
       {"percentage", {"spec/minAvailable=100%"}},
       {"both", {"spec/minAvailable=1", "spec/maxUnavailable=1"}, "Invalid spec"},
       {"min", {"spec/minAvailable=-1"}, "Invalid spec.minAvailable"},
       {"max", {"spec/maxUnavailable=-1"}, "Invalid spec.maxUnavailable"},
       {"text", {"spec/minAvailable=abc"}, "Invalid spec.minAvailable"},
       {"more than all", {"spec/minAvailable=120%"}, "Invalid spec.minAvailable"},
       {"more than all at once", {"spec/maxUnavailable=120%"}, "Invalid spec.maxUnavailable"},
       {"selector",
        {R"(spec/selector/matchExpressions=[{"key": "a", "operator": "Is"}])"},
        "Invalid spec.selector.matchExpressions[0].operator"},
       {"policy",
        {"spec/unhealthyPodEvictionPolicy=Foo"},
        "NotSupported spec.unhealthyPodEvictionPolicy"},
       {"known policy", {"spec/unhealthyPodEvictionPolicy=AlwaysAllow"}}});
}

TEST(DisruptionBudget, ItsSpecMayChange) {
  WorkloadBench bench;
  expect_edits(bench, with(budget(), {"spec/minAvailable=1"}),
               {{"number", {"spec/minAvailable=2"}},
                {"other bound", {"spec/minAvailable", "spec/maxUnavailable=0"}},
                {"selector", {"spec/selector/matchLabels/a=c"}},
                {"both", {"spec/maxUnavailable=0"}, "Invalid spec"}});
}

TEST(DisruptionBudget, ANameNeedsOnlyToFitAnUrl) {
  WorkloadBench bench;
  expect_creates(bench, budget(),
                 {{"upper case", {"metadata/name=Bad_Name"}},
                  {"slash", {"metadata/name=a/b"}, "Invalid metadata.name"},
                  {"dots", {"metadata/name=.."}, "Invalid metadata.name"}});
}

TEST(DisruptionBudget, StatusIsChecked) {
  WorkloadBench bench;
  const std::string conditions = "status/conditions=";
  expect_edits(
      bench, budget(),
      {{"right", {"status/disruptionsAllowed=1", "status/expectedPods=3"}},
       {"allowed", {"status/disruptionsAllowed=-1"}, "Invalid status.disruptionsAllowed"},
       {"healthy", {"status/currentHealthy=-1"}, "Invalid status.currentHealthy"},
       {"desired", {"status/desiredHealthy=-1"}, "Invalid status.desiredHealthy"},
       {"expected", {"status/expectedPods=-1"}, "Invalid status.expectedPods"},
       {"condition",
        {conditions + R"([{"type": "DisruptionAllowed", "status": "Maybe", "reason": "R",
                           "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}])"},
        "NotSupported status.conditions[0].status"},
       {"condition of a bad reason",
        {conditions + R"([{"type": "DisruptionAllowed", "status": "True", "reason": "2 few",
                           "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}])"},
        "Invalid status.conditions[0].reason"},
       {"condition without reason",
        {conditions + R"([{"type": "DisruptionAllowed", "status": "True", "message": "",
                           "lastTransitionTime": "2026-01-01T00:00:00Z"}])"},
        "Required status.conditions[0].reason"}},
      "status");
}

TEST(DisruptionBudget, APutNeedsTheVersion) {
  WorkloadBench bench;
  ASSERT_EQ(refusal(bench.create(budget())), "");
  EXPECT_EQ(refusal(bench.update(with(budget(), {"spec/minAvailable=1"}))),
            "Invalid metadata.resourceVersion");
}

}  // namespace
}  // namespace jogak::api
