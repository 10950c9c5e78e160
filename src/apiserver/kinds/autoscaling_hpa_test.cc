// SPDX-License-Identifier: Apache-2.0
// Autoscalers: every default and every refusal of v2, and that v1 is the same object.
#include <gtest/gtest.h>

#include "apiserver/kinds/testing/workload_bench.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

Doc autoscaler() {
  return json(R"({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "h"},
    "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
             "maxReplicas": 5}})");
}

const std::string kMetric = "spec/metrics/0/";

// One metric of that type with that source.
std::vector<std::string> metric(std::string_view type, std::string_view member,
                                std::string_view source) {
  return {"spec/metrics=[]", kMetric + "type=" + std::string(type),
          kMetric + std::string(member) + "=" + std::string(source)};
}

TEST(Autoscaler, GetsItsDefaults) {
  WorkloadBench bench;
  const auto made = bench.create(autoscaler());
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["spec"]["minReplicas"], Doc(1));
  EXPECT_EQ((*made)["spec"]["metrics"], json(R"([{"type": "Resource", "resource": {"name": "cpu",
                      "target": {"type": "Utilization", "averageUtilization": 80}}}])"));
  EXPECT_FALSE((*made)["spec"].has("behavior"));
  EXPECT_EQ((*made)["status"], json(R"({"desiredReplicas": 0, "currentMetrics": null})"));
  EXPECT_FALSE(meta(*made).has("generation"));
}

TEST(Autoscaler, HalfABehaviorIsCompleted) {
  WorkloadBench bench;
  const auto made =
      bench.create(with(autoscaler(), {"spec/behavior/scaleDown/stabilizationWindowSeconds=60"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["spec"]["behavior"],
            json(R"({"scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max",
                       "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15},
                                    {"type": "Percent", "value": 100, "periodSeconds": 15}]},
                     "scaleDown": {"stabilizationWindowSeconds": 60, "selectPolicy": "Max",
                       "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}})"));
}

TEST(Autoscaler, RulesOfItsOwnStay) {
  WorkloadBench bench;
  const auto made = bench.create(
      with(autoscaler(), {R"(spec/behavior={"scaleUp": {"selectPolicy": "Min", "tolerance": "0.1",
           "policies": [{"type": "Pods", "value": 1, "periodSeconds": 30}]}})"}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["spec"]["behavior"]["scaleUp"],
            json(R"({"stabilizationWindowSeconds": 0, "selectPolicy": "Min", "tolerance": "100m",
                     "policies": [{"type": "Pods", "value": 1, "periodSeconds": 30}]})"));
}

TEST(Autoscaler, IsRefusedOnCreate) {
  WorkloadBench bench;
  expect_creates(
      bench, autoscaler(),
      {{"right", {}},
       {"min above max", {"spec/minReplicas=5", "spec/maxReplicas=2"}, "Invalid spec.maxReplicas"},
       {"zero", {"spec/minReplicas=0"}, "Invalid spec.minReplicas, Forbidden spec.metrics"},
       {"no max", {"spec/maxReplicas"}, "Required spec.maxReplicas, Invalid spec.maxReplicas"},
       {"max below zero",
        {"spec/maxReplicas=-1"},
        "Invalid spec.maxReplicas, Invalid spec.maxReplicas"},
       {"no target and an unknown metric",
        {"spec/scaleTargetRef={}", "spec/maxReplicas=0", R"(spec/metrics=[{"type": "Foo"}])"},
        "Required spec.maxReplicas, Invalid spec.maxReplicas, Required spec.scaleTargetRef.kind, "
        "Required spec.scaleTargetRef.name, Invalid spec.scaleTargetRef.apiVersion, "
        "NotSupported spec.metrics[0].type, NotSupported spec.metrics[0].type"},
       {"kind", {"spec/scaleTargetRef/kind=a%b"}, "Invalid spec.scaleTargetRef.kind"},
       {"name", {"spec/scaleTargetRef/name=.."}, "Invalid spec.scaleTargetRef.name"},
       {"core group",
        {"spec/scaleTargetRef/apiVersion=v1"},
        "Invalid spec.scaleTargetRef.apiVersion"},
       {"controllers are of the core group",
        {"spec/scaleTargetRef/apiVersion=v1", "spec/scaleTargetRef/kind=ReplicationController"}},
       {"two slashes",
        {"spec/scaleTargetRef/apiVersion=a/b/c"},
        "Invalid spec.scaleTargetRef.apiVersion"},
       {"metric without type",
        {"spec/metrics=[{}]"},
        "Required spec.metrics[0].type, NotSupported spec.metrics[0].type, "
        "NotSupported spec.metrics[0].type"},
       {"metric without source",
        {R"(spec/metrics=[{"type": "Resource"}])"},
        "Required spec.metrics[0].resource"},
       {"metric of another source",
        metric("Pods", "resource",
               R"({"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 1}})"),
        "Required spec.metrics[0].pods"},
       {"two sources",
        {R"(spec/metrics=[{"type": "Resource",
             "resource": {"name": "cpu",
                          "target": {"type": "Utilization", "averageUtilization": 1}},
             "pods": {"metric": {"name": "m"}, "target": {"type": "AverageValue",
                                                          "averageValue": "1"}}}])"},
        "Forbidden spec.metrics[0].pods"}});
}

TEST(Autoscaler, TargetsAreChecked) {
  WorkloadBench bench;
  const auto resource = [](std::string_view target) {
    return metric("Resource", "resource",
                  R"({"name": "cpu", "target": )" + std::string(target) + "}");
  };
  expect_creates(
      bench, autoscaler(),
      {{"no type", resource(R"({"averageUtilization": 1})"),
        "Required spec.metrics[0].resource.target.type, "
        "Invalid spec.metrics[0].resource.target.type"},
       {"type", resource(R"({"type": "X", "averageUtilization": 1})"),
        "Invalid spec.metrics[0].resource.target.type"},
       {"value", resource(R"({"type": "Value", "value": "-1", "averageUtilization": 1})"),
        "Invalid spec.metrics[0].resource.target.value"},
       {"average", resource(R"({"type": "AverageValue", "averageValue": "0"})"),
        "Invalid spec.metrics[0].resource.target.averageValue"},
       {"utilization", resource(R"({"type": "Utilization", "averageUtilization": 0})"),
        "Invalid spec.metrics[0].resource.target.averageUtilization"},
       {"neither", resource(R"({"type": "Utilization"})"),
        "Required spec.metrics[0].resource.target.averageUtilization"},
       {"both",
        resource(R"({"type": "Utilization", "averageUtilization": 1, "averageValue": "1"})"),
        "Forbidden spec.metrics[0].resource.target.averageValue"}});
}

TEST(Autoscaler, SourcesAreChecked) {
  WorkloadBench bench;
  const std::string utilization = R"("target": {"type": "Utilization", "averageUtilization": 1}})";
  const std::string value = R"("target": {"type": "Value", "value": "1"}})";
  const std::string average = R"("target": {"type": "AverageValue", "averageValue": "1"}})";
  const std::string object = R"({"metric": {"name": "m"}, "describedObject": )";
  expect_creates(
      bench, autoscaler(),
      {{"resource without name", metric("Resource", "resource", "{" + utilization),
        "Required spec.metrics[0].resource.name"},
       {"container", metric("ContainerResource", "containerResource",
                            R"({"name": "cpu", "container": "c", )" + utilization)},
       {"container without anything",
        metric("ContainerResource", "containerResource", "{" + utilization),
        "Required spec.metrics[0].containerResource.name, "
        "Required spec.metrics[0].containerResource.container"},
       {"container of a bad name",
        metric("ContainerResource", "containerResource",
               R"({"name": "gpus", "container": "C_", )" + utilization),
        "Invalid spec.metrics[0].containerResource.name, "
        "Invalid spec.metrics[0].containerResource.name, "
        "Invalid spec.metrics[0].containerResource.container"},
       {"pods", metric("Pods", "pods", R"({"metric": {"name": "m"}, )" + average)},
       {"pods without metric", metric("Pods", "pods", "{" + average),
        "Required spec.metrics[0].pods.metric.name"},
       {"pods by value", metric("Pods", "pods", R"({"metric": {"name": "m"}, )" + value),
        "Required spec.metrics[0].pods.target.averageValue"},
       {"metric name", metric("Pods", "pods", R"({"metric": {"name": "a/b"}, )" + average),
        "Invalid spec.metrics[0].pods.metric.name"},
       {"external", metric("External", "external", R"({"metric": {"name": "m"}, )" + value)},
       {"external by neither",
        metric("External", "external", R"({"metric": {"name": "m"}, "target": {"type": "Value"}})"),
        "Required spec.metrics[0].external.target.averageValue"},
       {"external by both",
        metric("External", "external",
               R"({"metric": {"name": "m"},
                   "target": {"type": "Value", "value": "1", "averageValue": "1"}})"),
        "Forbidden spec.metrics[0].external.target.value"},
       {"object",
        metric("Object", "object",
               object + R"({"apiVersion": "v1", "kind": "Service", "name": "s"}, )" + value)},
       {"object without reference",
        metric("Object", "object", R"({"metric": {"name": "m"}, )" + value),
        "Required spec.metrics[0].object.describedObject.kind, "
        "Required spec.metrics[0].object.describedObject.name"},
       {"object by neither",
        metric("Object", "object",
               object + R"({"kind": "Service", "name": "s"}, "target": {"type": "Value"}})"),
        "Required spec.metrics[0].object.target.averageValue"},
       {"object of a bad version",
        metric("Object", "object",
               object + R"({"apiVersion": "a/b/c", "kind": "Service", "name": "s"}, )" + value),
        "Invalid spec.metrics[0].object.describedObject.apiVersion"}});
}

TEST(Autoscaler, BehaviorIsChecked) {
  WorkloadBench bench;
  const std::string up = "spec/behavior/scaleUp/";
  const std::string down = "spec/behavior/scaleDown/";
  expect_creates(
      bench, autoscaler(),
      {{"window below zero",
        {up + "stabilizationWindowSeconds=-1"},
        "Invalid spec.behavior.scaleUp.stabilizationWindowSeconds"},
       {"window too long",
        {down + "stabilizationWindowSeconds=3601"},
        "Invalid spec.behavior.scaleDown.stabilizationWindowSeconds"},
       {"select", {up + "selectPolicy=X"}, "NotSupported spec.behavior.scaleUp.selectPolicy"},
       {"policy",
        {up + R"(policies=[{"type": "X"}])"},
        "NotSupported spec.behavior.scaleUp.policies[0].type, "
        "Invalid spec.behavior.scaleUp.policies[0].value, "
        "Invalid spec.behavior.scaleUp.policies[0].periodSeconds"},
       {"period too long",
        {up + R"(policies=[{"type": "Pods", "value": 1, "periodSeconds": 1801}])"},
        "Invalid spec.behavior.scaleUp.policies[0].periodSeconds"},
       {"tolerance", {up + R"(tolerance="-1")"}, "Invalid spec.behavior.scaleUp.tolerance"}});
}

TEST(Autoscaler, AnOldReferenceMayStay) {
  WorkloadBench bench;
  expect_edits(bench,
               with(autoscaler(), {"spec/scaleTargetRef/apiVersion=v1",
                                   "spec/scaleTargetRef/kind=ReplicationController"}),
               {{"size", {"spec/maxReplicas=9"}},
                {"kind",
                 {"spec/scaleTargetRef/kind=Deployment"},
                 "Invalid spec.scaleTargetRef.apiVersion"}});
}

TEST(Autoscaler, StatusIsChecked) {
  WorkloadBench bench;
  expect_edits(bench, autoscaler(),
               {{"right", {"status/currentReplicas=2", "status/desiredReplicas=3"}},
                {"current", {"status/currentReplicas=-1"}, "Invalid status.currentReplicas"},
                {"desired", {"status/desiredReplicas=-1"}, "Invalid status.desiredReplicas"}},
               "status");
}

TEST(AutoscalerV1, GetsItsDefaults) {
  WorkloadBench bench;
  const Doc v1 = with(autoscaler(), {"apiVersion=autoscaling/v1"});
  const auto made = bench.create(v1);
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["apiVersion"], Doc("autoscaling/v1"));
  EXPECT_EQ((*made)["spec"]["minReplicas"], Doc(1));
  EXPECT_EQ((*made)["spec"]["targetCPUUtilizationPercentage"], Doc(80));
  EXPECT_FALSE(meta(*made).has("annotations"));
  EXPECT_EQ((*made)["status"], json(R"({"currentReplicas": 0, "desiredReplicas": 0})"));
}

TEST(AutoscalerV1, IsStoredAsV2) {
  WorkloadBench bench;
  ASSERT_TRUE(bench
                  .create(with(autoscaler(), {"apiVersion=autoscaling/v1",
                                              "spec/targetCPUUtilizationPercentage=30"}))
                  .has_value());
  const Doc v2 = bench.get(autoscaler());
  EXPECT_EQ(v2["apiVersion"], Doc("autoscaling/v2"));
  EXPECT_EQ(v2["spec"]["metrics"], json(R"([{"type": "Resource", "resource": {"name": "cpu",
                      "target": {"type": "Utilization", "averageUtilization": 30}}}])"));
}

TEST(AutoscalerV1, IsCheckedLikeV2) {
  WorkloadBench bench;
  expect_creates(
      bench, with(autoscaler(), {"apiVersion=autoscaling/v1"}),
      {{"no max", {"spec/maxReplicas=0"}, "Required spec.maxReplicas, Invalid spec.maxReplicas"},
       {"target",
        {"spec/targetCPUUtilizationPercentage=0"},
        "Invalid spec.metrics[0].resource.target.averageUtilization"}});
}

TEST(AutoscalerV1, ReadsAndWritesWhatV2Made) {
  WorkloadBench bench;
  ASSERT_TRUE(
      bench.create(with(autoscaler(), {"spec/behavior/scaleDown/stabilizationWindowSeconds=60"}))
          .has_value());
  const Doc v1 = with(autoscaler(), {"apiVersion=autoscaling/v1"});
  const Doc before = bench.get(autoscaler());
  ASSERT_EQ(refusal(bench.edit(v1, {"spec/maxReplicas=9"})), "");
  const Doc after = bench.get(autoscaler());
  EXPECT_EQ(after["spec"], with(before["spec"], {"maxReplicas=9"}));
}

TEST(AutoscalerV1, StatusGoesThrough) {
  WorkloadBench bench;
  ASSERT_TRUE(bench.create(autoscaler()).has_value());
  const Doc v1 = with(autoscaler(), {"apiVersion=autoscaling/v1"});
  const auto changed =
      bench.edit(v1,
                 {"status/currentReplicas=2", "status/currentCPUUtilizationPercentage=40",
                  "spec/maxReplicas=99"},
                 "status");
  ASSERT_TRUE(changed.has_value());
  const Doc v2 = bench.get(autoscaler());
  EXPECT_EQ(v2["spec"]["maxReplicas"], Doc(5));
  EXPECT_EQ(v2["status"]["currentReplicas"], Doc(2));
  EXPECT_EQ(v2["status"]["currentMetrics"].items().at(0)["resource"]["current"],
            json(R"({"averageUtilization": 40})"));
}

}  // namespace
}  // namespace jogak::api
