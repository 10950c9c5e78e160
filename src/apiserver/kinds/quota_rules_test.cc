// SPDX-License-Identifier: Apache-2.0
// Resource quotas and limit ranges.
#include <gtest/gtest.h>

#include "apiserver/kinds/testing/workload_bench.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

Doc quota() {
  return json(R"({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"},
                  "spec": {"hard": {"pods": "3"}}})");
}

TEST(Quota, IsRefused) {
  WorkloadBench bench;
  expect_creates(
      bench, quota(),
      {{"right", {R"(spec/hard={"cpu": "1", "requests.memory": "1Gi", "pods": "3"})"}},
       {"device", {"spec={\"hard\": {\"requests.nvidia.com/gpu\": \"2\"}}"}},
       {"count", {"spec={\"hard\": {\"count/jobs.batch\": \"2\"}}"}},
       {"unknown", {R"(spec/hard={"gpu": "1"})"}, "Invalid spec.hard[gpu], Invalid spec.hard[gpu]"},
       {"storage is not for quotas",
        {R"(spec/hard={"storage": "1"})"},
        "Invalid spec.hard[storage]"},
       {"negative", {R"(spec/hard={"cpu": "-1"})"}, "Invalid spec.hard[cpu]"},
       {"fraction", {R"(spec/hard={"pods": "1.5"})"}, "Invalid spec.hard[pods]"},
       {"scope", {R"(spec/scopes=["Odd"])"}, "Invalid spec.scopes"},
       {"scope of other things",
        {R"(spec/hard={"services": "1"})", R"(spec/scopes=["BestEffort"])"},
        "Invalid spec.scopes"},
       {"scopes that exclude each other",
        {R"(spec/scopes=["BestEffort", "NotBestEffort"])"},
        "Invalid spec.scopes"}});
}

TEST(Quota, ScopeSelectors) {
  WorkloadBench bench;
  const auto selector = [](std::string_view requirement) {
    return std::vector<std::string>{"spec/scopeSelector/matchExpressions=[" +
                                    std::string(requirement) + "]"};
  };
  const std::string at = "spec.scopeSelector.matchExpressions";
  const std::vector<std::string> causes = {
      "Invalid " + at + ".scopeName", "Invalid " + at + ".operator", "Required " + at + ".values",
      "Invalid " + at + ".values"};
  expect_creates(
      bench, quota(),
      {{"right", selector(R"({"scopeName": "PriorityClass", "operator": "In", "values": ["a"]})")},
       {"exists", selector(R"({"scopeName": "Terminating", "operator": "Exists"})")},
       {"scope", selector(R"({"scopeName": "Odd", "operator": "Exists"})"), causes[0]},
       {"operator", selector(R"({"scopeName": "PriorityClass", "operator": "Is"})"), causes[1]},
       {"must exist",
        selector(R"({"scopeName": "Terminating", "operator": "In", "values": ["a"]})"), causes[1]},
       {"no values", selector(R"({"scopeName": "PriorityClass", "operator": "In"})"), causes[2]},
       {"values",
        selector(R"({"scopeName": "PriorityClass", "operator": "Exists", "values": ["a"]})"),
        causes[3]}});
}

TEST(Quota, ChangesAndStatus) {
  WorkloadBench bench;
  expect_edits(bench, with(quota(), {R"(spec/scopes=["BestEffort"])"}),
               {{"more", {R"(spec/hard={"pods": "4"})"}},
                {"scopes", {R"(spec/scopes=["Terminating"])"}, "Invalid spec.scopes"},
                {"status is not for the main resource", {R"(status/hard={"gpu": "1"})"}}});
  expect_edits(bench, quota(),
               {{"right", {R"(status={"hard": {"pods": "3"}, "used": {"pods": "1"}})"}},
                {"wrong", {R"(status/used={"pods": "-1"})"}, "Invalid status.used[pods]"}},
               "status");
}

TEST(Quota, WarnsOfRequestsAboveLimits) {
  WorkloadBench bench;
  ASSERT_TRUE(
      bench.create(with(quota(), {R"(spec/hard={"cpu": "2", "limits.cpu": "1"})"})).has_value());
  ASSERT_EQ(bench.warnings().size(), 1U);
  EXPECT_TRUE(bench.warnings()[0].contains("cpu (2)"));
}

Doc limits(std::string_view item) {
  Doc made = json(R"({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}})");
  made.at("spec", "limits").push(json(item));
  return made;
}

TEST(LimitRange, DefaultsOfContainers) {
  WorkloadBench bench;
  const auto made = bench.create(limits(
      R"({"type": "Container", "max": {"cpu": "2", "memory": "1Gi"}, "min": {"cpu": "1"},
          "default": {"memory": "512Mi"}})"));
  ASSERT_TRUE(made.has_value());
  const Doc& item = made->get("spec", "limits").items()[0];
  EXPECT_EQ(item["default"], json(R"({"cpu": "2", "memory": "512Mi"})"));
  EXPECT_EQ(item["defaultRequest"], json(R"({"cpu": "2", "memory": "512Mi"})"));
}

TEST(LimitRange, MinimumIsTheLastDefault) {
  WorkloadBench bench;
  const auto made = bench.create(limits(R"({"type": "Container", "min": {"cpu": "1"}})"));
  ASSERT_TRUE(made.has_value());
  const Doc& item = made->get("spec", "limits").items()[0];
  EXPECT_FALSE(item.has("default"));
  EXPECT_EQ(item["defaultRequest"], json(R"({"cpu": "1"})"));
}

TEST(LimitRange, PodsHaveNoDefaults) {
  WorkloadBench bench;
  const auto made = bench.create(limits(R"({"type": "Pod", "max": {"cpu": "1"}})"));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->get("spec", "limits").items()[0],
            json(R"({"type": "Pod", "max": {"cpu": "1"}})"));
}

TEST(LimitRange, IsRefused) {
  WorkloadBench bench;
  struct Row {
    std::string_view item, causes;
  };
  for (const auto& [item, causes] : std::vector<Row>{
           {R"({"type": "Odd"})", "Invalid spec.limits[0].type"},
           {R"({"type": "x.y/z"})", ""},
           {R"({"type": "Pod", "max": {"gpu": "1"}})",
            "Invalid spec.limits[0].max[gpu], Invalid spec.limits[0].max[gpu]"},
           {R"({"type": "Pod", "default": {"cpu": "1"}})", "Forbidden spec.limits[0].default"},
           {R"({"type": "PersistentVolumeClaim"})", "Required spec.limits[0].limits"},
           {R"({"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}})", ""},
           {R"({"type": "Pod", "min": {"cpu": "2"}, "max": {"cpu": "1"}})",
            "Invalid spec.limits[0].min[cpu]"},
           {R"({"type": "Container", "min": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}})",
            "Invalid spec.limits[0].defaultRequest[cpu]"},
           {R"({"type": "Container", "max": {"cpu": "1"}, "default": {"cpu": "2"},
                "defaultRequest": {"cpu": "1"}})",
            "Invalid spec.limits[0].default[cpu]"},
           {R"({"type": "Container", "default": {"nvidia.com/gpu": "2"},
                "defaultRequest": {"nvidia.com/gpu": "1"}})",
            "Invalid spec.limits[0].defaultRequest[nvidia.com/gpu]"},
           {R"({"type": "Pod", "maxLimitRequestRatio": {"cpu": "500m"}})",
            "Invalid spec.limits[0].maxLimitRequestRatio[cpu]"},
           {R"({"type": "Pod", "min": {"cpu": "1"}, "max": {"cpu": "2"},
                "maxLimitRequestRatio": {"cpu": "2"}})",
            ""},
           {R"({"type": "Pod", "min": {"cpu": "1"}, "max": {"cpu": "2"},
                "maxLimitRequestRatio": {"cpu": "2.5"}})",
            "Invalid spec.limits[0].maxLimitRequestRatio[cpu]"}}) {
    EXPECT_EQ(refusal(bench.create(limits(item))), causes) << item;
    if (causes.empty()) {
      ASSERT_TRUE(bench.remove(limits(item)).has_value());
    }
  }
}

TEST(LimitRange, MinimumAboveMaximumOfAContainerIsSaidOfEachPair) {
  WorkloadBench bench;
  EXPECT_EQ(refusal(bench.create(
                limits(R"({"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}})"))),
            "Invalid spec.limits[0].min[cpu], Invalid spec.limits[0].defaultRequest[cpu], "
            "Invalid spec.limits[0].default[cpu]");
}

TEST(LimitRange, ATypeTwice) {
  WorkloadBench bench;
  Doc twice = limits(R"({"type": "Pod", "max": {"cpu": "1"}})");
  twice.at("spec", "limits").push(json(R"({"type": "Pod", "max": {"memory": "1"}})"));
  EXPECT_EQ(refusal(bench.create(twice)), "Duplicate spec.limits[1].type");
}

}  // namespace
}  // namespace jogak::api
