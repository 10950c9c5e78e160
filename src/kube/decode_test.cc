// SPDX-License-Identifier: Apache-2.0
// Objects as kubectl prints them and as people write them, and what is said of wrong ones.
#include "kube/decode.h"

#include <gtest/gtest.h>

#include <string>

namespace jogak::kube {
namespace {

Result<Object> decode(std::string_view json, std::string_view kind = {}) {
  Decoder decoder;
  return decoder.decode({.kind = kind, .json = json});
}

template <class T>
T decoded(std::string_view json, std::string_view kind) {
  auto object = decode(json, kind);
  EXPECT_TRUE(object.has_value()) << object.error().what;
  if (!object) return {};
  T* const result = std::get_if<T>(&*object);
  EXPECT_NE(result, nullptr) << json;
  return result == nullptr ? T{} : std::move(*result);
}

std::string error_of(std::string_view json, std::string_view kind = {}) {
  const auto object = decode(json, kind);
  return object ? "no error" : object.error().what;
}

Pod pod_with(const std::string& spec) {
  return decoded<Pod>(R"({"metadata":{"name":"x"},"spec":)" + spec + "}", "Pod");
}

std::string pod_error(const std::string& spec) {
  return error_of(R"({"kind":"Pod","metadata":{"name":"x","namespace":"team-a"},"spec":)" + spec +
                  "}");
}

constexpr std::string_view kContainers = R"("containers":[{"name":"main","image":"busybox"}])";

std::string spec_with(std::string_view more) {
  return "{" + std::string(kContainers) + "," + std::string(more) + "}";
}

TEST(SplitObjects, TakesListsObjectsAndStreams) {
  const auto kinds = [](std::string_view text) {
    std::string result;
    const auto objects = split_objects(text);
    if (!objects) return objects.error().what;
    for (const RawObject& object : *objects) {
      result += std::string(object.kind) + "=" + std::string(object.json) + ";";
    }
    return result;
  };
  EXPECT_EQ(kinds(R"({"kind":"List","items":[{"a":1},{}]})"), R"(={"a":1};={};)");
  EXPECT_EQ(kinds(R"({"items":[{"a":1}],"kind":"NodeList"})"), R"(Node={"a":1};)");
  EXPECT_EQ(kinds(R"({"items":[{"a":1}]})"), R"(={"a":1};)");
  EXPECT_EQ(kinds(R"({"kind":"PodList","items":null})"), "");
  EXPECT_EQ(kinds(R"({"kind":"PodList"})"), "");
  EXPECT_EQ(kinds(R"({"kind":"Pod"}
                     {"kind":"PodList","items":[{}]})"),
            R"(={"kind":"Pod"};Pod={};)");
  // A kind with a field `items` that is no list of objects.
  EXPECT_EQ(kinds(R"({"kind":"ConfigMap","items":[1]})"), R"(={"kind":"ConfigMap","items":[1]};)");
  EXPECT_EQ(kinds("\xef\xbb\xbf{\"kind\":\"Pod\"}"), R"(={"kind":"Pod"};)");
}

TEST(SplitObjects, SaysWhatIsWrong) {
  EXPECT_EQ(split_objects("").error().what,
            "is empty; want the output of `kubectl get nodes,pods,... -A -o json`");
  EXPECT_EQ(split_objects("apiVersion: v1").error().what,
            "line 1: want a JSON object, found 'a'; use `kubectl get ... -o json`");
  EXPECT_EQ(split_objects("{\"kind\":\"List\",\n\"items\":[\n{\"a\":1},{").error().what,
            "the text ends inside a list that began on line 2; it is not complete");
}

TEST(Decode, OtherKindsAndGroups) {
  EXPECT_EQ(decoded<OtherKind>(R"({"kind":"ConfigMap","data":{"a":1}})", "").kind, "ConfigMap");
  EXPECT_EQ(decoded<OtherKind>(
                R"({"apiVersion":"serving.knative.dev/v1","kind":"Service","spec":{}})", "")
                .kind,
            "Service");
  EXPECT_EQ(error_of("{}"), "object: kind: is required, e.g. \"Node\" or \"Pod\"");
  EXPECT_NE(error_of("{\"kind\":\"Pod\" \"x\"}").find("is not valid JSON"), std::string::npos);
}

TEST(Decode, Node) {
  const Node node = decoded<Node>(R"({
    "apiVersion":"v1","kind":"Node",
    "metadata":{"name":"n1","labels":{"b":"2","a":"1"},
                "annotations":{"jogak.io/gpus":"[]","other":"dropped"}},
    "spec":{"unschedulable":true,"taints":[{"key":"k","value":"v","effect":"NoExecute"}]},
    "status":{"capacity":{"cpu":"8"},
              "allocatable":{"cpu":"7900m","memory":"1Gi","nvidia.com/gpu":"8"},
              "images":[{"names":["a:1","b:1"],"sizeBytes":5}],
              "declaredFeatures":["B","A"]}})",
                                  "");
  EXPECT_EQ(node.meta.name, "n1");
  EXPECT_EQ(node.meta.labels, (StringMap{{"a", "1"}, {"b", "2"}}));
  EXPECT_EQ(node.meta.annotations, (StringMap{{"jogak.io/gpus", "[]"}}));
  EXPECT_TRUE(node.unschedulable);
  ASSERT_EQ(node.taints.size(), 1U);
  EXPECT_EQ(node.taints[0].effect, TaintEffect::NoExecute);
  const Resources want = {{"cpu", 7900}, {"memory", 1 << 30}, {"nvidia.com/gpu", 8}};
  EXPECT_EQ(node.allocatable, want);
  EXPECT_EQ(node.images[0].names.size(), 2U);
  EXPECT_EQ(node.declared_features, (std::vector<std::string>{"A", "B"}));
}

TEST(Decode, CapacityStandsInForMissingAllocatable) {
  const Node node =
      decoded<Node>(R"({"metadata":{"name":"n1"},"status":{"capacity":{"cpu":"8"}}})", "Node");
  EXPECT_EQ(node.allocatable, (Resources{{"cpu", 8000}}));
}

TEST(Decode, QuantitiesMayBeNumbersAndRoundUp) {
  const Pod pod = pod_with(
      R"({"containers":[{"name":"a","resources":{"requests":
          {"cpu":0.25,"memory":"1500m","nvidia.com/gpu":2}}}]})");
  const Resources want = {{"cpu", 250}, {"memory", 2}, {"nvidia.com/gpu", 2}};
  EXPECT_EQ(pod.containers.at(0).resources.requests, want);
}

TEST(Decode, PodDefaults) {
  const Pod pod = pod_with(R"({"hostNetwork":true,
    "containers":[{"name":"a","resources":{"limits":{"cpu":"2","nvidia.com/gpu":"1"},
                                           "requests":{"cpu":"1"}},
                   "ports":[{"containerPort":80},{"containerPort":90,"hostPort":91,
                             "hostIP":"10.0.0.1","protocol":"UDP"}]}],
    "initContainers":[{"name":"i","restartPolicy":"Always"},{"name":"j"}]})");
  EXPECT_EQ(pod.meta.ns, "default");
  EXPECT_EQ(pod.scheduler_name, "default-scheduler");
  EXPECT_FALSE(pod.priority.has_value());
  const Resources want = {{"cpu", 1000}, {"nvidia.com/gpu", 1}};
  EXPECT_EQ(pod.containers.at(0).resources.requests, want);
  const auto& ports = pod.containers.at(0).ports;
  EXPECT_EQ(ports.at(0).host_port, 80);
  EXPECT_EQ(ports.at(0).host_ip, "0.0.0.0");
  EXPECT_EQ(ports.at(0).protocol, "TCP");
  EXPECT_EQ(ports.at(1).host_port, 91);
  EXPECT_TRUE(pod.init_containers.at(0).sidecar);
  EXPECT_FALSE(pod.init_containers.at(1).sidecar);
}

TEST(Decode, PodPlacementFields) {
  const Pod pod = pod_with(spec_with(R"(
    "nodeName":"n1","schedulerName":"other","priority":-5,"preemptionPolicy":"Never",
    "nodeSelector":{"disk":"ssd"},
    "schedulingGates":[{"name":"g"}],
    "tolerations":[{"operator":"Exists"},{"key":"k","value":"v","effect":"NoSchedule"}],
    "topologySpreadConstraints":[{"maxSkew":2,"topologyKey":"zone","minDomains":3,
      "whenUnsatisfiable":"DoNotSchedule","nodeTaintsPolicy":"Honor","labelSelector":{}}],
    "affinity":{
      "nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
          {"matchExpressions":[{"key":"a","operator":"Gt","values":["3"]}]}]},
        "preferredDuringSchedulingIgnoredDuringExecution":[{"weight":7,"preference":
          {"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]}}]},
      "podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[
          {"topologyKey":"zone","labelSelector":{"matchLabels":{"app":"db"}},
           "namespaceSelector":{}}]}},
    "volumes":[{"name":"a","persistentVolumeClaim":{"claimName":"c"}},{"name":"b","emptyDir":{}},
               {"name":"e","ephemeral":{"volumeClaimTemplate":{}}},
               {"name":"i","image":{"reference":"r:1"}},
               {"name":"r","rbd":{"monitors":["m"],"image":"img","readOnly":true}}])"));
  EXPECT_EQ(pod.node_name, "n1");
  EXPECT_EQ(pod.priority, -5);
  EXPECT_EQ(pod.never_preempts, true);
  EXPECT_EQ(pod.scheduling_gates, (std::vector<std::string>{"g"}));
  EXPECT_EQ(pod.tolerations.at(0).op, TolerationOperator::Exists);
  EXPECT_EQ(pod.tolerations.at(1).op, TolerationOperator::Equal);
  EXPECT_EQ(pod.tolerations.at(1).effect, TaintEffect::NoSchedule);
  EXPECT_EQ(pod.spread.at(0).min_domains, 3);
  EXPECT_TRUE(pod.spread.at(0).honor_node_affinity);
  EXPECT_TRUE(pod.spread.at(0).honor_node_taints);
  EXPECT_TRUE(pod.spread.at(0).selector.has_value());
  EXPECT_EQ(pod.node_affinity.required->at(0).match_expressions.at(0).op, Operator::Gt);
  EXPECT_EQ(pod.node_affinity.preferred.at(0).weight, 7);
  const PodAffinityTerm& term = pod.pod_anti_affinity.required.at(0);
  EXPECT_EQ(term.selector->match_labels, (StringMap{{"app", "db"}}));
  EXPECT_TRUE(term.namespace_selector.has_value());
  ASSERT_EQ(pod.volumes.size(), 4U);  // emptyDir is nothing to a scheduler
  EXPECT_EQ(pod.volumes.at(0).source, "c");
  EXPECT_EQ(pod.volumes.at(1).kind, Volume::Kind::Ephemeral);
  EXPECT_EQ(pod.volumes.at(3).pool, "rbd");
  EXPECT_TRUE(pod.volumes.at(3).read_only);
}

TEST(Decode, PodStatus) {
  const Pod pod =
      decoded<Pod>(R"({"metadata":{"name":"x","deletionTimestamp":"2026-02-02T02:09:39Z"},
    "spec":{"containers":[{"name":"a"},{"name":"b"}]},
    "status":{"phase":"Running","nominatedNodeName":"n2","startTime":"1970-01-01T00:00:02Z",
      "conditions":[{"type":"PodResizePending","status":"True","reason":"Infeasible"},
        {"type":"DisruptionTarget","status":"True","reason":"PreemptionByScheduler"}],
      "containerStatuses":[{"name":"b","resources":{"requests":{"cpu":"2"}},
                            "allocatedResources":{"cpu":"1"}},
                           {"name":"a","allocatedResources":{"cpu":"9"}}]}})",
                   "Pod");
  EXPECT_TRUE(pod.meta.deleting);
  EXPECT_EQ(pod.nominated_node_name, "n2");
  EXPECT_EQ(pod.start_time, 2'000'000'000);
  EXPECT_TRUE(pod.resize_infeasible);
  EXPECT_TRUE(pod.preemption_victim);
  EXPECT_EQ(pod.containers.at(1).resources.in_effect, (Resources{{"cpu", 2000}}));
  EXPECT_EQ(pod.containers.at(1).resources.allocated, (Resources{{"cpu", 1000}}));
  EXPECT_FALSE(pod.containers.at(0).resources.in_effect.has_value());
}

TEST(Decode, AFinishedPodIsNotLookedAtFurther) {
  const Pod pod = decoded<Pod>(
      R"({"metadata":{"name":"x"},"spec":{"containers":7},"status":{"phase":"Failed"}})", "Pod");
  EXPECT_TRUE(pod.finished);
}

TEST(Decode, NullIsAbsent) {
  const Pod pod = pod_with(spec_with(R"("affinity":null,"priority":null,"volumes":null)"));
  EXPECT_FALSE(pod.priority.has_value());
}

TEST(Decode, Storage) {
  const auto pv = decoded<PersistentVolume>(R"({"metadata":{"name":"pv"},
    "spec":{"capacity":{"storage":"5Gi"},"claimRef":{"namespace":"a","name":"b","uid":"u"},
            "awsElasticBlockStore":{"volumeID":"aws://zone/vol-1"}},
    "status":{"phase":"Bound"}})",
                                            "PersistentVolume");
  EXPECT_EQ(pv.capacity_bytes, std::int64_t{5} << 30);
  EXPECT_EQ(pv.claim_uid, "u");
  EXPECT_EQ(pv.volume_mode, "Filesystem");
  EXPECT_EQ(pv.csi_driver, "ebs.csi.aws.com");
  EXPECT_EQ(pv.csi_handle, "vol-1");
  EXPECT_EQ(pv.migrated_from, "kubernetes.io/aws-ebs");
  const auto pvc = decoded<PersistentVolumeClaim>(
      R"({"metadata":{"name":"c","annotations":
            {"volume.beta.kubernetes.io/storage-class":"old"}},
          "spec":{"storageClassName":"new","resources":{"requests":{"storage":"1Gi"}}}})",
      "PersistentVolumeClaim");
  EXPECT_EQ(pvc.storage_class, "old");
  EXPECT_EQ(pvc.request_bytes, 1 << 30);
  const auto csi_node = decoded<CsiNode>(
      R"({"metadata":{"name":"n","annotations":
            {"storage.alpha.kubernetes.io/migrated-plugins":"kubernetes.io/a,kubernetes.io/b"}},
          "spec":{"drivers":[{"name":"d","allocatable":{"count":3}},{"name":"e"}]}})",
      "CSINode");
  EXPECT_EQ(csi_node.drivers.at(0).count, 3);
  EXPECT_FALSE(csi_node.drivers.at(1).count.has_value());
  EXPECT_EQ(csi_node.migrated_plugins.size(), 2U);
}

TEST(Decode, SaysWhereAndWhatWouldBeRight) {
  EXPECT_EQ(pod_error(R"({"containers":[{"resources":{"requests":{"cpu":"1x"}}}]})"),
            "Pod team-a/x: spec.containers[0].resources.requests.cpu: \"1x\" is not a quantity; "
            "use e.g. \"500m\" or \"2\"");
  EXPECT_EQ(pod_error(R"({"containers":[{"resources":{"requests":{"nvidia.com/gpu":"-1"}}}]})"),
            "Pod team-a/x: spec.containers[0].resources.requests[\"nvidia.com/gpu\"]: \"-1\" is "
            "negative; want 0 or more");
  EXPECT_EQ(pod_error(spec_with(R"("tolerations":[{"effect":"NoSchedul"}])")),
            "Pod team-a/x: spec.tolerations[0].effect: \"NoSchedul\" is not a taint effect; use "
            "NoSchedule, PreferNoSchedule or NoExecute");
  EXPECT_EQ(pod_error(spec_with(R"("priority":"high")")),
            "Pod team-a/x: spec.priority: want a whole number, found a string");
  EXPECT_EQ(pod_error(spec_with(R"("priority":3000000000)")),
            "Pod team-a/x: spec.priority: 3000000000 is out of range; want -2147483648 to "
            "2147483647");
  EXPECT_EQ(pod_error(R"({"containers":{}})"),
            "Pod team-a/x: spec.containers: want a list, found an object");
  EXPECT_EQ(pod_error("{}"), "Pod team-a/x: spec.containers: is required");
  EXPECT_EQ(error_of(R"({"kind":"Pod"})"), "Pod: metadata.name: is required");
  EXPECT_EQ(error_of(R"({"kind":"Node","metadata":{"name":"n1","labels":{"a":1}}})"),
            "Node n1: metadata.labels.a: want a string, found a number");
}

}  // namespace
}  // namespace jogak::kube
