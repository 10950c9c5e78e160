// SPDX-License-Identifier: Apache-2.0
//
// What pods and templates get filled in, and the quality of service that follows.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/kinds/pod_spec.h"
#include "apiserver/kinds/testing/workload_bench.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

Doc pod() {
  return json(R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
                  "spec": {"containers": [{"name": "c", "image": "reg.example/a:1"}]}})");
}

Doc created(const std::vector<std::string>& edits) {
  WorkloadBench bench;
  const auto answer = bench.create(with(pod(), edits));
  EXPECT_EQ(refusal(answer), "");
  return answer.value_or(Doc());
}

Doc container(const std::vector<std::string>& edits) {
  return created(edits)["spec"]["containers"].items().front();
}

TEST(PodDefaults, OfASmallPod) {
  const Doc spec = created({})["spec"];
  EXPECT_EQ(spec["restartPolicy"], Doc("Always"));
  EXPECT_EQ(spec["dnsPolicy"], Doc("ClusterFirst"));
  EXPECT_EQ(spec["schedulerName"], Doc("default-scheduler"));
  EXPECT_EQ(spec["terminationGracePeriodSeconds"], Doc(30));
  EXPECT_EQ(spec["securityContext"], Doc::object());
  EXPECT_EQ(spec["enableServiceLinks"], Doc(true));
  const Doc& first = spec["containers"].items().front();
  EXPECT_EQ(first["resources"], Doc::object());
  EXPECT_EQ(first["imagePullPolicy"], Doc("IfNotPresent"));
  EXPECT_EQ(first["terminationMessagePath"], Doc("/dev/termination-log"));
  EXPECT_EQ(first["terminationMessagePolicy"], Doc("File"));
}

TEST(PodDefaults, StatusIsTheServers) {
  const Doc made = created({R"(status={"phase": "Running", "podIP": "10.0.0.1"})"});
  EXPECT_EQ(made["status"], json(R"({"phase": "Pending", "qosClass": "BestEffort"})"));
}

TEST(PodDefaults, TemplatesGetLess) {
  Doc pod_template = json(R"({"spec": {"containers": [{"name": "c", "image": "i",
      "resources": {"limits": {"cpu": "1"}}}]}})");
  default_pod_template(pod_template);
  const Doc& spec = pod_template["spec"];
  EXPECT_EQ(spec["schedulerName"], Doc("default-scheduler"));
  EXPECT_FALSE(spec.has("enableServiceLinks"));
  EXPECT_FALSE(spec["containers"].items().front()["resources"].has("requests"));
}

TEST(PodDefaults, RequestsFollowLimits) {
  const Doc made =
      container({R"(spec/containers/0/resources={"limits": {"nvidia.com/gpu": "2", "memory": "1Gi"},
                                       "requests": {"memory": "512Mi"}})"});
  EXPECT_EQ(made["resources"]["requests"], json(R"({"memory": "512Mi", "nvidia.com/gpu": "2"})"));
}

TEST(PodDefaults, QuantitiesAreKeptInThousandths) {
  const Doc made = container({R"(spec/containers/0/resources={"requests": {"cpu": "1.0005"}})"});
  EXPECT_EQ(made["resources"]["requests"]["cpu"], Doc("1001m"));
}

TEST(PodDefaults, PortsProbesAndHooks) {
  const Doc made =
      container({R"(spec/containers/0/ports=[{"containerPort": 80}])",
                 R"(spec/containers/0/livenessProbe={"httpGet": {"port": 80}})",
                 R"(spec/containers/0/readinessProbe={"grpc": {"port": 80}})",
                 R"(spec/containers/0/lifecycle={"preStop": {"httpGet": {"port": 1}}})"});
  EXPECT_EQ(made["ports"].items().front()["protocol"], Doc("TCP"));
  EXPECT_EQ(made["livenessProbe"],
            json(R"({"httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}, "timeoutSeconds": 1,
                     "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3})"));
  EXPECT_EQ(made["readinessProbe"]["grpc"]["service"], Doc(""));
  EXPECT_EQ(made["lifecycle"]["preStop"]["httpGet"]["path"], Doc("/"));
}

TEST(PodDefaults, VariablesFromFields) {
  const Doc made =
      container({R"(spec/containers/0/env=[{"name": "N", "valueFrom": {"fieldRef": {"fieldPath":
          "metadata.name"}}}])"});
  EXPECT_EQ(made["env"].items().front()["valueFrom"]["fieldRef"]["apiVersion"], Doc("v1"));
}

TEST(PodDefaults, Volumes) {
  const Doc made =
      created({R"(spec/volumes=[{"name": "e"}, {"name": "h", "hostPath": {"path": "/x"}},
        {"name": "s", "secret": {"secretName": "x"}}, {"name": "c", "configMap": {"name": "x"}},
        {"name": "d", "downwardAPI": {"items": [{"path": "a",
          "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        {"name": "p", "projected": {"sources": [{"secret": {"name": "x"}}]}},
        {"name": "i", "image": {"reference": "x"}}])"});
  const auto& volumes = made["spec"]["volumes"].items();
  EXPECT_EQ(volumes[0]["emptyDir"], Doc::object());
  EXPECT_EQ(volumes[1]["hostPath"]["type"], Doc(""));
  for (const auto& [place, source] : std::vector<std::pair<std::size_t, std::string_view>>{
           {2, "secret"}, {3, "configMap"}, {4, "downwardAPI"}, {5, "projected"}}) {
    EXPECT_EQ(volumes[place][source]["defaultMode"], Doc(420)) << source;
  }
  EXPECT_EQ(volumes[4]["downwardAPI"]["items"].items().front()["fieldRef"]["apiVersion"],
            Doc("v1"));
  EXPECT_EQ(volumes[6]["image"]["pullPolicy"], Doc("Always"));
}

TEST(PodDefaults, OnTheHostsNetworkPortsAreTheHosts) {
  const Doc made =
      container({"spec/hostNetwork=true", R"(spec/containers/0/ports=[{"containerPort": 80}])"});
  EXPECT_EQ(made["ports"].items().front()["hostPort"], Doc(80));
}

TEST(PodDefaults, NegativeGraceIsOneSecond) {
  EXPECT_EQ(
      created({"spec/terminationGracePeriodSeconds=-5"})["spec"]["terminationGracePeriodSeconds"],
      Doc(1));
}

TEST(PodDefaults, TheOldNameOfAServiceAccount) {
  for (const std::string key : {"serviceAccount", "serviceAccountName"}) {
    const Doc spec = created({"spec/" + key + "=robot"})["spec"];
    EXPECT_EQ(spec["serviceAccount"], Doc("robot"));
    EXPECT_EQ(spec["serviceAccountName"], Doc("robot"));
  }
}

TEST(PodDefaults, PodLevelRequests) {
  const Doc whole = created({R"(spec/resources={"limits": {"cpu": "2", "memory": "1Gi"}})",
                             R"(spec/containers/0/resources={"requests": {"cpu": "1"}})"});
  EXPECT_EQ(whole["spec"]["resources"]["requests"], json(R"({"cpu": "1", "memory": "1Gi"})"));
  EXPECT_EQ(whole["status"]["qosClass"], Doc("Burstable"));
}

TEST(PodDefaults, GatesAreShownInTheStatus) {
  const Doc made = created({R"(spec/schedulingGates=[{"name": "example.com/g"}])"});
  EXPECT_EQ(condition_of(made, "PodScheduled")["reason"], Doc("SchedulingGated"));
  EXPECT_TRUE(condition_is(made, "PodScheduled", "False"));
}

TEST(PodDefaults, LabelKeysBecomePartOfTheSelector) {
  const Doc made = created(
      {R"(metadata/labels={"app": "x", "team": "y"})",
       R"(spec/topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "z",
         "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}, "matchLabelKeys": ["app"]}])",
       R"(spec/affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
         {"topologyKey": "z", "labelSelector": {"matchLabels": {"a": "b"}},
          "matchLabelKeys": ["app", "absent"], "mismatchLabelKeys": ["team"]}]}})"});
  EXPECT_EQ(made["spec"]["topologySpreadConstraints"].items().front()["labelSelector"],
            json(R"({"matchExpressions": [{"key": "app", "operator": "In", "values": ["x"]}]})"));
  const Doc& term = made.get("spec", "affinity", "podAntiAffinity",
                             "requiredDuringSchedulingIgnoredDuringExecution")
                        .items()
                        .front();
  EXPECT_EQ(term["labelSelector"]["matchExpressions"],
            json(R"([{"key": "app", "operator": "In", "values": ["x"]},
                     {"key": "team", "operator": "NotIn", "values": ["y"]}])"));
}

TEST(PodDefaults, SchedulingGroupNeedsItsGate) {
  const std::string edit = R"(spec/schedulingGroup={"podGroupName": "g"})";
  EXPECT_FALSE(created({edit})["spec"].has("schedulingGroup"));
  KindOptions options;
  options.has_pod_groups = true;
  WorkloadBench bench(options);
  const auto made = bench.create(with(pod(), {edit}));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)["spec"]["schedulingGroup"]["podGroupName"], Doc("g"));
}

TEST(PodDefaults, AreIdempotent) {
  WorkloadBench bench;
  const auto made =
      bench.create(with(pod(), {R"(spec/volumes=[{"name": "e"}])", "spec/hostNetwork=true",
                                R"(spec/containers/0/ports=[{"containerPort": 80}])",
                                R"(spec/resources={"limits": {"cpu": "2"}})"}));
  ASSERT_TRUE(made.has_value());
  Doc again = (*made)["spec"];
  default_pod_only(again);
  default_pod_spec(again);
  EXPECT_EQ(again, (*made)["spec"]);
}

TEST(PodQos, Classes) {
  struct Row {
    std::string_view resources, qos;
  };
  for (const Row& row : std::vector<Row>{
           {R"({})", "BestEffort"},
           {R"({"limits": {"nvidia.com/gpu": "8"}})", "BestEffort"},
           {R"({"requests": {"cpu": "0"}})", "BestEffort"},
           {R"({"requests": {"cpu": "100m"}})", "Burstable"},
           {R"({"limits": {"cpu": "1"}})", "Burstable"},
           {R"({"limits": {"cpu": "1", "memory": "1Gi"}})", "Guaranteed"},
           {R"({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}})",
            "Burstable"}}) {
    const Doc made = created({"spec/containers/0/resources=" + std::string(row.resources)});
    EXPECT_EQ(made["status"]["qosClass"], Doc(row.qos)) << row.resources;
  }
}

TEST(PodQos, EveryContainerCounts) {
  const Doc made =
      created({R"(spec/containers=[{"name": "a", "image": "i", "resources": {"limits": {"cpu": "1",
          "memory": "1Gi"}}}, {"name": "b", "image": "i"}])"});
  EXPECT_EQ(made["status"]["qosClass"], Doc("Burstable"));
}

}  // namespace
}  // namespace jogak::api
