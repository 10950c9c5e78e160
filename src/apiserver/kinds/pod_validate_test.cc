// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with a pod: each row an input and the causes in their order.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/kinds/pod_spec.h"
#include "apiserver/kinds/testing/workload_bench.h"

namespace jogak::api {
namespace {

Doc pod() {
  return json(R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
                  "spec": {"containers": [{"name": "c", "image": "reg.example/a:1"}]}})");
}

void expect(const std::vector<Edited>& rows) {
  WorkloadBench bench;
  expect_creates(bench, pod(), rows);
}

std::string resources(std::string_view value) {
  return "spec/containers/0/resources=" + std::string(value);
}

constexpr std::string_view kTwice =
    "Invalid spec.containers[0].resources.limits[nvidia.com/gpu], "
    "Invalid spec.containers[0].resources.requests[nvidia.com/gpu]";

TEST(PodResources, GpusAreWholeAndNotOvercommitted) {
  expect(
      {{"request below limit",
        {resources(R"({"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "2"}})")},
        "Invalid spec.containers[0].resources.requests"},
       {"request above limit",
        {resources(R"({"requests": {"nvidia.com/gpu": "3"}, "limits": {"nvidia.com/gpu": "2"}})")},
        "Invalid spec.containers[0].resources.requests"},
       {"request alone",
        {resources(R"({"requests": {"nvidia.com/gpu": "1"}})")},
        "Required spec.containers[0].resources.limits"},
       {"limit alone", {resources(R"({"limits": {"nvidia.com/gpu": "1"}})")}},
       {"half", {resources(R"({"limits": {"nvidia.com/gpu": "0.5"}})")}, kTwice},
       {"a thousand milli", {resources(R"({"limits": {"nvidia.com/gpu": "1000m"}})")}},
       {"exponent", {resources(R"({"limits": {"nvidia.com/gpu": "1e0"}})")}},
       {"negative", {resources(R"({"limits": {"nvidia.com/gpu": "-1"}})")}, kTwice},
       {"beyond all counting",
        {resources(R"({"limits": {"nvidia.com/gpu": "99999999999999999999"}})")},
        kTwice}});
}

TEST(PodResources, Names) {
  const std::string limits = "spec.containers[0].resources.limits";
  const std::string requests = "spec.containers[0].resources.requests";
  const auto both = [&](const std::string& name, std::size_t times) {
    std::string text;
    for (const std::string& side : {limits, requests}) {
      for (std::size_t i = 0; i < times; ++i) {
        text += (text.empty() ? "" : ", ") + ("Invalid " + side + "[" + name + "]");
      }
    }
    return text;
  };
  const std::string plain = both("gpu", 2);
  const std::string prefixed = both("requests.nvidia.com/gpu", 1);
  const std::string slashes = both("nvidia.com//gpu", 2);
  const std::string blank = both("nvidia com/gpu", 2);
  expect(
      {{"no domain", {resources(R"({"limits": {"gpu": "1"}})")}, plain},
       {"a quota's name", {resources(R"({"limits": {"requests.nvidia.com/gpu": "1"}})")}, prefixed},
       {"kubernetes.io is native", {resources(R"({"limits": {"kubernetes.io/gpu": "1"}})")}},
       {"two slashes", {resources(R"({"limits": {"nvidia.com//gpu": "1"}})")}, slashes},
       {"a blank", {resources(R"({"limits": {"nvidia com/gpu": "1"}})")}, blank}});
}

TEST(PodResources, CpuMemoryAndPages) {
  expect(
      {{"request above limit",
        {resources(R"({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})")},
        "Invalid spec.containers[0].resources.requests"},
       {"negative",
        {resources(R"({"requests": {"cpu": "-1"}})")},
        "Invalid spec.containers[0].resources.requests[cpu]"},
       {"pages alone",
        {resources(R"({"limits": {"hugepages-2Mi": "2Mi"}})")},
        "Forbidden spec.containers[0].resources"},
       {"half a page",
        {resources(R"({"limits": {"hugepages-2Mi": "3Mi", "cpu": "1"}})")},
        "Invalid spec.containers[0].resources.limits[hugepages-2Mi], "
        "Invalid spec.containers[0].resources.requests[hugepages-2Mi]"},
       {"of the pod",
        {R"(spec/resources={"limits": {"nvidia.com/gpu": "1"}})"},
        "NotSupported spec.resources.limits[nvidia.com/gpu]"},
       {"more in containers than in the pod",
        {R"(spec/resources={"requests": {"cpu": "1"}, "limits": {"cpu": "1"}})",
         resources(R"({"limits": {"cpu": "2"}})")},
        "Invalid spec.resources.requests[cpu], Invalid spec.resources.containers[0][cpu].limits"}});
}

TEST(PodResources, Claims) {
  const std::string claims = R"(spec/resourceClaims=[{"name": "g", "resourceClaimName": "x"}])";
  expect({{"right", {claims, resources(R"({"claims": [{"name": "g"}]})")}},
          {"unknown",
           {resources(R"({"claims": [{"name": "g"}]})")},
           "NotFound spec.containers[0].resources.claims[0]"},
          {"twice",
           {claims, resources(R"({"claims": [{"name": "g"}, {"name": "g"}]})")},
           "Duplicate spec.containers[0].resources.claims[1]"},
          {"whole and part",
           {claims, resources(R"({"claims": [{"name": "g", "request": "r"}, {"name": "g"}]})")},
           "Duplicate spec.containers[0].resources.claims[1]"},
          {"neither name",
           {R"(spec/resourceClaims=[{"name": "g"}])"},
           "Invalid spec.resourceClaims[0]"},
          {"both names",
           {R"(spec/resourceClaims=[{"name": "g", "resourceClaimName": "x",
               "resourceClaimTemplateName": "y"}])"},
           "Invalid spec.resourceClaims[0]"},
          {"one name for two",
           {R"(spec/resourceClaims=[{"name": "g", "resourceClaimName": "x"},
               {"name": "g", "resourceClaimName": "y"}])"},
           "Duplicate spec.resourceClaims[1].name"}});
}

TEST(PodContainers, NamesAndImages) {
  expect({{"none", {"spec/containers=[]"}, "Required spec.containers"},
          {"no image", {R"(spec/containers=[{"name": "c"}])"}, "Required spec.containers[0].image"},
          {"one name for two",
           {R"(spec/containers=[{"name": "c", "image": "i"}, {"name": "c", "image": "i"}])"},
           "Duplicate spec.containers[1].name"},
          {"bad name", {R"(spec/containers/0/name="C_")"}, "Invalid spec.containers[0].name"},
          {"blank around the image",
           {R"(spec/containers/0/image=" i")"},
           "Invalid spec.containers[0].image"},
          {"privileged",
           {R"(spec/containers/0/securityContext={"privileged": true})"},
           "Forbidden spec.containers[0].securityContext.privileged"}});
}

TEST(PodContainers, PortsInTheirOrder) {
  expect({{"every fault",
           {R"(spec/containers/0/ports=[{"containerPort": 80, "hostPort": 70000},
               {"containerPort": 0}, {"containerPort": 80, "hostPort": 80},
               {"containerPort": 80, "hostPort": 80}])"},
           "Invalid spec.containers[0].ports[0].hostPort, "
           "Required spec.containers[0].ports[1].containerPort, "
           "Duplicate spec.containers[0].ports[3].hostPort"},
          {"host network",
           {"spec/hostNetwork=true",
            R"(spec/containers/0/ports=[{"containerPort": 80, "hostPort": 81}])"},
           "Invalid spec.containers[0].ports[0].hostPort"}});
}

TEST(PodContainers, ManyFaultsOfOne) {
  expect({{"env, policy, probe",
           {R"(spec/containers/0/env=[{"name": ""}])", "spec/containers/0/imagePullPolicy=X",
            "spec/containers/0/livenessProbe={}"},
           "Required spec.containers[0].env[0].name, "
           "NotSupported spec.containers[0].imagePullPolicy, "
           "Required spec.containers[0].livenessProbe"},
          {"two handlers",
           {R"(spec/containers/0/livenessProbe={"exec": {"command": ["x"]},
               "tcpSocket": {"port": 1}})"},
           "Forbidden spec.containers[0].livenessProbe.tcpSocket"},
          {"a field that no variable has",
           {R"(spec/containers/0/env=[{"name": "A", "valueFrom": {"fieldRef":
               {"fieldPath": "status.phase"}}}])"},
           "NotSupported spec.containers[0].env[0].valueFrom.fieldRef.fieldPath"},
          {"value twice",
           {R"(spec/containers/0/env=[{"name": "A", "value": "x", "valueFrom": {"fieldRef":
               {"fieldPath": "metadata.name"}}}])"},
           "Invalid spec.containers[0].env[0].valueFrom"}});
}

TEST(PodContainers, InitAndSidecar) {
  expect({{"probe of an init container",
           {R"(spec/initContainers=[{"name": "i", "image": "i",
               "livenessProbe": {"tcpSocket": {"port": 1}}}])"},
           "Forbidden spec.initContainers[0].livenessProbe"},
          {"probe of a sidecar",
           {R"(spec/initContainers=[{"name": "i", "image": "i", "restartPolicy": "Always",
               "livenessProbe": {"tcpSocket": {"port": 1}}}])"}},
          {"name of another",
           {R"(spec/initContainers=[{"name": "c", "image": "i"}])"},
           "Duplicate spec.initContainers[0].name"},
          {"ephemeral ones come later",
           {R"(spec/ephemeralContainers=[{"name": "e", "image": "i"}])"},
           "Forbidden spec.ephemeralContainers"}});
}

TEST(PodVolumes, Sources) {
  expect({{"one name for two",
           {R"(spec/volumes=[{"name": "v"}, {"name": "v"}])"},
           "Duplicate spec.volumes[1].name"},
          {"two sources",
           {R"(spec/volumes=[{"name": "v", "emptyDir": {}, "secret": {"secretName": "x"}}])"},
           "Forbidden spec.volumes[0].secret"},
          {"nothing named",
           {R"(spec/volumes=[{"name": "v", "persistentVolumeClaim": {}}])"},
           "Required spec.volumes[0].persistentVolumeClaim.claimName"},
          {"mode",
           {R"(spec/volumes=[{"name": "v", "configMap": {"name": "x",
               "defaultMode": 1000}}])"},
           "Invalid spec.volumes[0].configMap.defaultMode"},
          {"steps back",
           {R"(spec/volumes=[{"name": "v", "hostPath": {"path": "/a/../b"}}])"},
           "Invalid spec.volumes[0].hostPath.path"},
          {"the server's odd path",
           {R"(spec/volumes=[{"name": "v", "emptyDir": {}, "downwardAPI": {}}])"},
           "Forbidden spec.volumes[0].downwarAPI"},
          {"token without account",
           {R"(spec/volumes=[{"name": "v", "projected": {"sources": [
               {"serviceAccountToken": {"path": "t"}}]}}])"},
           "Forbidden spec.volumes[0].projected.sources[0].serviceAccountToken"},
          {"one path for two",
           {R"(spec/volumes=[{"name": "v", "projected": {"sources": [
               {"secret": {"name": "a", "items": [{"key": "k", "path": "x"}]}},
               {"configMap": {"name": "b", "items": [{"key": "k", "path": "x"}]}}]}}])"},
           "Invalid spec.volumes[0].projected"}});
}

TEST(PodVolumes, Mounts) {
  const std::string volumes = R"(spec/volumes=[{"name": "v"}])";
  expect({{"unknown",
           {R"(spec/containers/0/volumeMounts=[{"name": "v", "mountPath": "/v"}])"},
           "NotFound spec.containers[0].volumeMounts[0].name"},
          {"one place for two",
           {volumes, R"(spec/containers/0/volumeMounts=[{"name": "v", "mountPath": "/v"},
               {"name": "v", "mountPath": "/v"}])"},
           "Invalid spec.containers[0].volumeMounts[1].mountPath"},
          {"sub path outside",
           {volumes, R"(spec/containers/0/volumeMounts=[{"name": "v", "mountPath": "/v",
               "subPath": "/a"}])"},
           "Invalid spec.containers[0].volumeMounts.subPath"},
          {"block device of a folder",
           {volumes, R"(spec/containers/0/volumeDevices=[{"name": "v", "devicePath": "/d"}])"},
           "Invalid spec.containers[0].volumeDevices[0].name"}});
}

TEST(PodPlacement, NodeAffinity) {
  const std::string terms =
      "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
      ".nodeSelectorTerms";
  const auto required = [](std::string_view list) {
    return "spec/affinity={\"nodeAffinity\": {\"requiredDuringSchedulingIgnoredDuringExecution\": "
           "{\"nodeSelectorTerms\": " +
           std::string(list) + "}}}";
  };
  const std::string values = terms + "[0].matchExpressions[0].values";
  const std::vector<std::string> causes = {
      "Required " + terms, "Required " + values, "Forbidden " + values,
      "Invalid " + terms + "[0].matchExpressions[0].operator",
      "Required " + terms + "[0].matchFields[0].values, Invalid " + terms +
          "[0].matchFields[0].key"};
  expect({{"no term", {required("[]")}, causes[0]},
          {"an empty term", {required("[{}]")}},
          {"In without values",
           {required(R"([{"matchExpressions": [{"key": "a", "operator": "In"}]}])")},
           causes[1]},
          {"Exists with values",
           {required(R"([{"matchExpressions": [{"key": "a", "operator": "Exists",
               "values": ["x"]}]}])")},
           causes[2]},
          {"Gt with two",
           {required(R"([{"matchExpressions": [{"key": "a", "operator": "Gt",
               "values": ["1", "2"]}]}])")},
           causes[1]},
          {"Gt with no number", {required(R"([{"matchExpressions": [{"key": "a", "operator": "Gt",
               "values": ["x"]}]}])")}},
          {"Like",
           {required(R"([{"matchExpressions": [{"key": "a", "operator": "Like",
               "values": ["x"]}]}])")},
           causes[3]},
          {"fields",
           {required(R"([{"matchFields": [{"key": "spec.x", "operator": "In",
               "values": ["a", "b"]}]}])")},
           causes[4]}});
}

TEST(PodPlacement, PodAffinity) {
  const std::string at =
      "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]";
  const auto required = [](std::string_view term) {
    return "spec/affinity={\"podAffinity\": {\"requiredDuringSchedulingIgnoredDuringExecution\": "
           "[" +
           std::string(term) + "]}}";
  };
  const std::vector<std::string> causes = {"Required " + at + ".topologyKey, Invalid " + at +
                                               ".topologyKey, Invalid " + at + ".topologyKey",
                                           "Forbidden " + at + ".matchLabelKeys",
                                           "Invalid " + at + "[0]",
                                           "Invalid " + at + ".matchLabelKeys[0]"};
  expect(
      {{"no topology", {required(R"({"labelSelector": {"matchLabels": {"a": "b"}}})")}, causes[0]},
       {"keys without selector",
        {required(R"({"topologyKey": "z", "matchLabelKeys": ["a"]})")},
        causes[1]},
       {"key written twice",
        {R"(metadata/labels={"app": "x"})",
         required(R"({"topologyKey": "z", "labelSelector": {"matchLabels": {"app": "x"}},
                "matchLabelKeys": ["app"]})")},
        causes[2]},
       {"key both ways",
        {required(R"({"topologyKey": "z", "labelSelector": {}, "matchLabelKeys": ["a"],
                "mismatchLabelKeys": ["a"]})")},
        causes[3]}});
}

TEST(PodPlacement, Tolerations) {
  expect({{"every fault",
           {R"(spec/tolerations=[{"operator": "Equal"},
               {"key": "a", "operator": "Exists", "value": "b"}, {"key": "a", "operator": "Foo"},
               {"key": "a", "effect": "X"}, {"key": "a", "tolerationSeconds": 5}])"},
           "Invalid spec.tolerations[0].operator, Invalid spec.tolerations[1].operator, "
           "NotSupported spec.tolerations[2].operator, NotSupported spec.tolerations[3].effect, "
           "Invalid spec.tolerations[4].effect"},
          {"comparing is off",
           {R"(spec/tolerations=[{"key": "a", "operator": "Gt", "value": "1"}])"},
           "NotSupported spec.tolerations[0].operator"}});
}

TEST(PodPlacement, SpreadConstraints) {
  const std::string at = "spec.topologySpreadConstraints[0]";
  const std::vector<std::string> causes = {
      "Invalid " + at + ".maxSkew, Required " + at + ".topologyKey, NotSupported " + at +
          ".whenUnsatisfiable",
      "Duplicate " + at + ".{topologyKey, whenUnsatisfiable}, Invalid " + at + ".minDomains",
      "NotSupported " + at + ".nodeTaintsPolicy"};
  expect({{"every fault",
           {R"(spec/topologySpreadConstraints=[{"maxSkew": 0, "topologyKey": "",
               "whenUnsatisfiable": "Maybe"}])"},
           causes[0]},
          {"two of a kind",
           {R"(spec/topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "z",
               "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 2}, {"maxSkew": 1,
               "topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway"}])"},
           causes[1]},
          {"policy",
           {R"(spec/topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "z",
               "whenUnsatisfiable": "DoNotSchedule", "nodeTaintsPolicy": "X"}])"},
           causes[2]}});
}

TEST(PodPlacement, GatesAndSelectors) {
  expect({{"gate twice",
           {R"(spec/schedulingGates=[{"name": "a"}, {"name": "a"}])"},
           "Duplicate spec.schedulingGates[1]"},
          {"gate and node",
           {R"(spec/schedulingGates=[{"name": "a"}])", "spec/nodeName=n"},
           "Forbidden spec.nodeName"},
          {"selector", {R"(spec/nodeSelector={"a b": "c"})"}, "Invalid spec.nodeSelector"}});
}

TEST(PodSpec, Words) {
  expect({{"restart", {"spec/restartPolicy=Sometimes"}, "NotSupported spec.restartPolicy"},
          {"dns", {"spec/dnsPolicy=X"}, "NotSupported spec.dnsPolicy"},
          {"hostname", {"spec/hostname=A_"}, "Invalid spec.hostname"},
          {"deadline", {"spec/activeDeadlineSeconds=0"}, "Invalid spec.activeDeadlineSeconds"},
          {"account", {"spec/serviceAccountName=A_"}, "Invalid spec.serviceAccountName"},
          {"any scheduler", {R"(spec/schedulerName="x y!")"}},
          {"group",
           {R"(spec/securityContext={"fsGroup": -1})"},
           "Invalid spec.securityContext.fsGroup"},
          {"seccomp",
           {R"(spec/securityContext={"seccompProfile": {"type": "Localhost"}})"},
           "Required spec.securityContext.seccompProfile.localhostProfile"},
          {"windows",
           {R"(spec/os={"name": "windows"})", R"(spec/securityContext={"runAsUser": 1})"},
           "Forbidden spec.securityContext.runAsUser"},
          {"cost",
           {R"(metadata/annotations={"controller.kubernetes.io/pod-deletion-cost": "+1"})"},
           "Invalid metadata.annotations[controller.kubernetes.io/pod-deletion-cost]"}});
}

TEST(PodSpec, Warnings) {
  WorkloadBench bench;
  const auto warned = [&](std::string_view name, std::vector<std::string> edits) {
    edits.push_back("metadata/name=" + std::string(name));
    EXPECT_EQ(refusal(bench.create(with(pod(), edits))), "");
    return bench.warnings();
  };
  EXPECT_TRUE(warned("plain", {}).empty());
  EXPECT_EQ(warned("spread", {R"(spec/topologySpreadConstraints=[{"maxSkew": 1,
                "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}])"}),
            std::vector<std::string>{"spec.topologySpreadConstraints[0].labelSelector: a null "
                                     "labelSelector results in matching no pod"});
  EXPECT_EQ(warned("a.b", {}).size(), 1U);
  EXPECT_EQ(warned("ports", {R"(spec/containers/0/ports=[{"containerPort": 80},
                {"containerPort": 80}])"}),
            std::vector<std::string>{"spec.containers[0].ports[1]: duplicate port definition with "
                                     "spec.containers[0].ports[0]"});
  EXPECT_EQ(warned("paths", {R"(spec/volumes=[{"name": "v", "configMap": {"name": "m", "items": [
                {"key": "a", "path": "x"}, {"key": "b", "path": "x/y"}]}}])"}),
            std::vector<std::string>{"volume \"v\" (ConfigMap \"m\"): overlapping paths: \"x/y\" "
                                     "with \"x\""});
  EXPECT_EQ(warned("address", {R"(spec/hostAliases=[{"ip": "FD00:0::1"}])"}),
            std::vector<std::string>{"spec.hostAliases[0].ip: IPv6 address \"FD00:0::1\" should be "
                                     "in RFC 5952 canonical format (\"fd00::1\")"});
  EXPECT_EQ(warned("old", {R"(spec/nodeSelector={"beta.kubernetes.io/os": "linux"})"}).size(), 1U);
}

TEST(PodTemplate, PathsStartWhereItStands) {
  Doc pod_template = json(R"({"metadata": {"labels": {"a b": "c"}},
      "spec": {"containers": [{"name": "c", "image": "i",
        "resources": {"limits": {"nvidia.com/gpu": "500m"}}}]}})");
  default_pod_template(pod_template);
  FieldErrors errors;
  validate_pod_template(pod_template, Path("spec.template"), errors);
  ASSERT_EQ(errors.size(), 2U);
  EXPECT_EQ(errors.list()[0].field, "spec.template.labels");
  EXPECT_EQ(errors.list()[1].field,
            "spec.template.spec.containers[0].resources.limits[nvidia.com/gpu]");
}

}  // namespace
}  // namespace jogak::api
