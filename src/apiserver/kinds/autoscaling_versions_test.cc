// SPDX-License-Identifier: Apache-2.0
// Autoscalers between their versions: each metric both ways, the annotations, what cannot be read.
#include <gtest/gtest.h>

#include "apiserver/kinds/autoscaling.h"
#include "apiserver/kinds/testing/workload_bench.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

struct Pair {
  std::string_view v2, v1;
};

TEST(AutoscalerMetrics, SpecsGoBothWays) {
  constexpr Pair kPairs[] = {
      {R"({"type": "Resource", "resource": {"name": "memory",
           "target": {"type": "Utilization", "averageUtilization": 60}}})",
       R"({"type": "Resource", "resource": {"name": "memory", "targetAverageUtilization": 60}})"},
      {R"({"type": "Resource", "resource": {"name": "cpu",
           "target": {"type": "AverageValue", "averageValue": "500m"}}})",
       R"({"type": "Resource", "resource": {"name": "cpu", "targetAverageValue": "500m"}})"},
      {R"({"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c",
           "target": {"type": "Utilization", "averageUtilization": 60}}})",
       R"({"type": "ContainerResource", "containerResource": {"name": "cpu",
           "targetAverageUtilization": 60, "container": "c"}})"},
      {R"({"type": "Pods", "pods": {"metric": {"name": "m",
           "selector": {"matchLabels": {"a": "b"}}},
           "target": {"type": "AverageValue", "averageValue": "1k"}}})",
       R"({"type": "Pods", "pods": {"metricName": "m", "targetAverageValue": "1k",
           "selector": {"matchLabels": {"a": "b"}}}})"},
      {R"({"type": "Object", "object": {"describedObject": {"kind": "Service", "name": "s"},
           "metric": {"name": "m"}, "target": {"type": "Value", "value": "5"}}})",
       R"({"type": "Object", "object": {"target": {"kind": "Service", "name": "s"},
           "metricName": "m", "targetValue": "5"}})"},
      {R"({"type": "Object", "object": {"describedObject": {"kind": "Service", "name": "s"},
           "metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "5"}}})",
       R"({"type": "Object", "object": {"target": {"kind": "Service", "name": "s"},
           "metricName": "m", "targetValue": "0", "averageValue": "5"}})"},
      {R"({"type": "External", "external": {"metric": {"name": "m",
           "selector": {"matchLabels": {"a": "b"}}}, "target": {"type": "Value", "value": "5"}}})",
       R"({"type": "External", "external": {"metricName": "m",
           "metricSelector": {"matchLabels": {"a": "b"}}, "targetValue": "5"}})"},
      {R"({"type": "External", "external": {"metric": {"name": "m"},
           "target": {"type": "AverageValue", "averageValue": "5"}}})",
       R"({"type": "External", "external": {"metricName": "m", "targetAverageValue": "5"}})"}};
  for (const Pair& pair : kPairs) {
    EXPECT_EQ(metric_spec_to_v1(json(pair.v2)), json(pair.v1)) << pair.v2;
    EXPECT_EQ(metric_spec_to_v2(json(pair.v1)), json(pair.v2)) << pair.v1;
  }
}

TEST(AutoscalerMetrics, StatesGoBothWays) {
  constexpr Pair kPairs[] = {
      {R"({"type": "Resource", "resource": {"name": "cpu",
           "current": {"averageUtilization": 60, "averageValue": "5m"}}})",
       R"({"type": "Resource", "resource": {"name": "cpu", "currentAverageUtilization": 60,
           "currentAverageValue": "5m"}})"},
      {R"({"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c",
           "current": {"averageValue": "5m"}}})",
       R"({"type": "ContainerResource", "containerResource": {"name": "cpu",
           "currentAverageValue": "5m", "container": "c"}})"},
      {R"({"type": "Pods", "pods": {"metric": {"name": "m"}, "current": {"averageValue": "5"}}})",
       R"({"type": "Pods", "pods": {"metricName": "m", "currentAverageValue": "5"}})"},
      {R"({"type": "Object", "object": {"describedObject": {"kind": "Service", "name": "s"},
           "metric": {"name": "m"}, "current": {"value": "5", "averageValue": "2"}}})",
       R"({"type": "Object", "object": {"target": {"kind": "Service", "name": "s"},
           "metricName": "m", "currentValue": "5", "averageValue": "2"}})"},
      {R"({"type": "External", "external": {"metric": {"name": "m"},
           "current": {"value": "5", "averageValue": "2"}}})",
       R"({"type": "External", "external": {"metricName": "m", "currentValue": "5",
           "currentAverageValue": "2"}})"}};
  for (const Pair& pair : kPairs) {
    EXPECT_EQ(metric_status_to_v1(json(pair.v2)), json(pair.v1)) << pair.v2;
    EXPECT_EQ(metric_status_to_v2(json(pair.v1)), json(pair.v2)) << pair.v1;
  }
}

TEST(AutoscalerMetrics, V1WritesWhatItCannotLeaveOut) {
  EXPECT_EQ(metric_spec_to_v1(json(R"({"type": "Pods", "pods": {"metric": {"name": "m"}}})")),
            json(R"({"type": "Pods", "pods": {"metricName": "m", "targetAverageValue": "0"}})"));
}

Doc v2() {
  return json(R"({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "h", "annotations": {"own": "1"}},
    "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
             "minReplicas": 1, "maxReplicas": 5,
             "metrics": [
               {"type": "Resource", "resource": {"name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 50}}},
               {"type": "Resource", "resource": {"name": "memory",
                "target": {"type": "AverageValue", "averageValue": "1Gi"}}}],
             "behavior": {"scaleDown": {"selectPolicy": "Max",
               "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}}},
    "status": {"observedGeneration": 1, "lastScaleTime": "2026-01-01T00:00:00Z",
               "currentReplicas": 2, "desiredReplicas": 3,
               "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu",
                 "current": {"averageUtilization": 40, "averageValue": "400m"}}}],
               "conditions": [{"type": "AbleToScale", "status": "True", "reason": "R",
                 "message": "a < b & c", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})");
}

TEST(AutoscalerVersions, V1KeepsTheRestInAnnotations) {
  const Doc v1 = autoscaler_to_v1(v2());
  EXPECT_EQ(v1["apiVersion"], Doc("autoscaling/v1"));
  EXPECT_EQ(v1["spec"], json(R"({"scaleTargetRef": {"kind": "Deployment", "name": "d",
                                        "apiVersion": "apps/v1"},
                     "minReplicas": 1, "maxReplicas": 5, "targetCPUUtilizationPercentage": 50})"));
  EXPECT_EQ(v1["status"], json(R"({"observedGeneration": 1, "lastScaleTime": "2026-01-01T00:00:00Z",
                     "currentReplicas": 2, "desiredReplicas": 3,
                     "currentCPUUtilizationPercentage": 40})"));
  const Doc& annotations = meta(v1)["annotations"];
  EXPECT_EQ(annotations.size(), 5U);
  EXPECT_EQ(annotations["own"], Doc("1"));
  EXPECT_EQ(annotations["autoscaling.alpha.kubernetes.io/metrics"].as_string(),
            R"([{"type":"Resource","resource":{"name":"memory","targetAverageValue":"1Gi"}}])");
  EXPECT_EQ(annotations["autoscaling.alpha.kubernetes.io/current-metrics"].as_string(),
            R"([{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":40,)"
            R"("currentAverageValue":"400m"}}])");
  EXPECT_EQ(annotations["autoscaling.alpha.kubernetes.io/behavior"].as_string(),
            R"({"ScaleUp":null,"ScaleDown":{"StabilizationWindowSeconds":null,)"
            R"("SelectPolicy":"Max","Policies":[{"Type":"Percent","Value":100,)"
            R"("PeriodSeconds":15}],"Tolerance":null}})");
  EXPECT_NE(annotations["autoscaling.alpha.kubernetes.io/conditions"].as_string().find(
                R"(a \u003c b \u0026 c)"),
            std::string::npos);
}

TEST(AutoscalerVersions, TheWayBackGivesTheSame) {
  const Doc back = autoscaler_to_v2(autoscaler_to_v1(v2()));
  // the metric that v1 has a member for comes last
  Doc expected = v2();
  std::swap(expected.at("spec", "metrics").items()[0], expected.at("spec", "metrics").items()[1]);
  EXPECT_EQ(back, expected) << back.json();
}

TEST(AutoscalerVersions, WithoutAnyMetricV1MeansCpu) {
  Doc v1 =
      with(autoscaler_to_v1(v2()), {"metadata/annotations", "spec/targetCPUUtilizationPercentage"});
  const Doc back = autoscaler_to_v2(std::move(v1));
  EXPECT_EQ(back["spec"]["metrics"], json(R"([{"type": "Resource", "resource": {"name": "cpu",
                      "target": {"type": "Utilization", "averageUtilization": 80}}}])"));
}

TEST(AutoscalerVersions, AnnotationsThatCannotBeReadCountAsAbsent) {
  for (const std::string text : {"", "no json", "5", R"([{"type": 5}])", R"([5])",
                                 R"([{"type": "Pods", "pods": {"targetAverageValue": "x"}}])"}) {
    Doc v1 = autoscaler_to_v1(v2());
    v1.at("metadata", "annotations", "autoscaling.alpha.kubernetes.io/metrics") = text;
    v1.at("metadata", "annotations", "autoscaling.alpha.kubernetes.io/behavior") = text;
    const Doc back = autoscaler_to_v2(std::move(v1));
    EXPECT_EQ(back["spec"]["metrics"].size(), 1U) << text;
    EXPECT_FALSE(back["spec"].has("behavior")) << text;
    EXPECT_EQ(meta(back)["annotations"], json(R"({"own": "1"})"));
  }
}

TEST(AutoscalerVersions, BehaviorIsReadInEitherSpelling) {
  Doc v1 = autoscaler_to_v1(v2());
  v1.at("metadata", "annotations", "autoscaling.alpha.kubernetes.io/behavior") =
      R"({"scaleUp": {"selectPolicy": "Min", "policies": [{"type": "Pods", "value": 1,
                      "periodSeconds": 15}]}})";
  EXPECT_EQ(autoscaler_to_v2(std::move(v1))["spec"]["behavior"],
            json(R"({"scaleUp": {"selectPolicy": "Min", "policies": [{"type": "Pods", "value": 1,
                                 "periodSeconds": 15}]}})"));
}

TEST(AutoscalerVersions, V2NeverShowsTheAnnotations) {
  Doc object = with(v2(), {"metadata/annotations"});
  object.at("metadata", "annotations", "autoscaling.alpha.kubernetes.io/scale-up-tolerance") = "1";
  drop_autoscaler_annotations(object);
  EXPECT_FALSE(meta(object).has("annotations"));
}

}  // namespace
}  // namespace jogak::api
