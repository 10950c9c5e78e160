// SPDX-License-Identifier: Apache-2.0
//
// Text written out by hand, so that making 150 MB of it takes a moment only, with the members that
// make real pods long: managed fields, tolerations, projected volumes.
#include "bench/made_pods.h"

#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace jogak::bench {

namespace {

constexpr std::size_t kPieceBytes = 16'384;

std::string hex(Rng& rng, int digits) {
  std::string result;
  for (int i = 0; i < digits; ++i) result += "0123456789abcdef"[rng.below(16)];
  return result;
}

}  // namespace

std::string made_pod(int i, Rng& rng, bool has_kind) {
  const std::string uid = fmt::format("{}-{}-4{}-a{}-{}", hex(rng, 8), hex(rng, 4), hex(rng, 3),
                                      hex(rng, 3), hex(rng, 12));
  Rng shared(static_cast<std::uint64_t>(i / 10), "set");  // ten pods of one ReplicaSet
  const std::string hash = hex(shared, 9);
  const std::string set = fmt::format("trainer-{:04}-{}", i / 10, hash);
  return fmt::format(
      R"({{{}"metadata":{{"name":"{}-{}","generateName":"{}-","namespace":"team-{:03}",)"
      R"("uid":"{}","resourceVersion":"{}","generation":1,)"
      R"("creationTimestamp":"2026-02-02T02:09:39Z","labels":{{"app":"trainer",)"
      R"("pod-template-hash":"{}","team":"vision"}},)"
      R"("annotations":{{"example.com/note":"he said \"go {{on}}\""}},)"
      R"("ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"{}","uid":"{}",)"
      R"("controller":true,"blockOwnerDeletion":true}}],"managedFields":[{{"manager":)"
      R"("kube-controller-manager","operation":"Update","apiVersion":"v1","time":)"
      R"("2026-02-02T02:09:39Z","fieldsType":"FieldsV1","fieldsV1":{{"f:metadata":{{)"
      R"("f:generateName":{{}},"f:labels":{{".":{{}},"f:app":{{}},"f:pod-template-hash":{{}}}},)"
      R"("f:ownerReferences":{{".":{{}},"k:{{\"uid\":\"{}\"}}":{{}}}}}},"f:spec":{{"f:containers":)"
      R"({{"k:{{\"name\":\"main\"}}":{{".":{{}},"f:image":{{}},"f:imagePullPolicy":{{}},)"
      R"("f:name":{{}},)"
      R"("f:resources":{{".":{{}},"f:limits":{{".":{{}},"f:nvidia.com/gpu":{{}}}},"f:requests":)"
      R"({{".":{{}},"f:cpu":{{}},"f:memory":{{}},"f:nvidia.com/gpu":{{}}}}}},)"
      R"("f:terminationMessagePath":{{}},"f:terminationMessagePolicy":{{}}}}}},"f:dnsPolicy":{{}},)"
      R"("f:enableServiceLinks":{{}},"f:restartPolicy":{{}},"f:schedulerName":{{}}}}}}}},)"
      R"({{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":)"
      R"("2026-02-02T02:09:41Z","fieldsType":"FieldsV1","fieldsV1":{{"f:status":{{"f:conditions":)"
      R"({{"k:{{\"type\":\"Ready\"}}":{{".":{{}},"f:lastTransitionTime":{{}},"f:status":{{}}}}}},)"
      R"("f:hostIP":{{}},"f:phase":{{}},"f:podIP":{{}},"f:startTime":{{}}}}}},"subresource":)"
      R"("status"}}]}},"spec":{{"volumes":[{{"name":"kube-api-access-x","projected":{{"sources":)"
      R"([{{"serviceAccountToken":{{"expirationSeconds":3607,"path":"token"}}}},{{"configMap":)"
      R"({{"name":"kube-root-ca.crt","items":[{{"key":"ca.crt","path":"ca.crt"}}]}}}}],)"
      R"("defaultMode":420}}}}],"containers":[{{"name":"main","image":"registry.example/train:{}",)"
      R"("args":["--steps","1000","--note","a \\ b"],"resources":)"
      R"({{"limits":{{"nvidia.com/gpu":"1"}},)"
      R"("requests":{{"cpu":"4","memory":"16Gi","nvidia.com/gpu":"1"}}}},"volumeMounts":[{{"name":)"
      R"("kube-api-access-x","readOnly":true,"mountPath":"/var/run/secrets"}}],)"
      R"("terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File",)"
      R"("imagePullPolicy":"IfNotPresent"}}],"restartPolicy":"Always",)"
      R"("terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":)"
      R"("default","nodeName":"node-{:04}","securityContext":{{}},"schedulerName":"jogak",)"
      R"("tolerations":[{{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":)"
      R"("NoExecute","tolerationSeconds":300}},{{"key":"node.kubernetes.io/unreachable",)"
      R"("operator":"Exists","effect":"NoExecute","tolerationSeconds":300}}],"priority":0,)"
      R"("preemptionPolicy":"PreemptLowerPriority"}},"status":{{"phase":"Running","conditions":)"
      R"([{{"type":"Ready","status":"True","lastTransitionTime":"2026-02-02T02:09:41Z"}}],)"
      R"("hostIP":"10.0.0.1","podIP":"10.1.2.3","startTime":"2026-02-02T02:09:39Z","qosClass":)"
      R"("Burstable"}}}})",
      has_kind ? R"("kind":"Pod","apiVersion":"v1",)" : "", set, hex(rng, 5), set, i / 10 % 50, uid,
      10'000'000 + i, hash, set, uid, uid, hex(shared, 12), i % 5000);
}

std::string made_node(int index) {
  std::string images;
  for (int i = 0; i < 8; ++i) {
    images += fmt::format(R"({}{{"names":["registry.example/image-{}:1"],"sizeBytes":{}}})",
                          i == 0 ? "" : ",", (index + i) % 40, 100'000'000 + i);
  }
  const std::string amounts =
      R"({"cpu":"96","memory":"1024Gi","ephemeral-storage":"1000Gi","pods":"110",)"
      R"("nvidia.com/gpu":"8"})";
  return fmt::format(
      R"({{"kind":"Node","apiVersion":"v1","metadata":{{"name":"node-{0:04}","uid":"node-{0}",)"
      R"("resourceVersion":"{1}","labels":{{"kubernetes.io/hostname":"node-{0:04}",)"
      R"("kubernetes.io/arch":"amd64","topology.kubernetes.io/zone":"zone-{2}",)"
      R"("nvidia.com/gpu.product":"NVIDIA-H100-80GB-HBM3"}}}},"spec":{{"podCIDR":"10.0.0.0/24"}},)"
      R"("status":{{"capacity":{3},"allocatable":{3},"conditions":[{{"type":"Ready",)"
      R"("status":"True","lastHeartbeatTime":"2026-02-02T02:09:41Z","reason":"KubeletReady",)"
      R"("message":"kubelet is posting ready status"}}],"images":[{4}]}}}})",
      index, 1'000'000 + index, index % 20, amounts, images);
}

std::shared_ptr<void> ListPeer::send(net::ClientRequest request, net::ClientEvents events) {
  const auto handle = std::make_shared<int>();
  const std::string path = request.target.substr(0, request.target.find('?'));
  const bool ends = request.target.find("limit=") != std::string::npos;
  const bool is_list = ends || request.target.find("sendInitialEvents") != std::string::npos;
  const auto answers = lists.find(path);
  if (!is_list || answers == lists.end() || next_[path] == answers->second.size()) return handle;
  const std::string* const answer = answers->second[next_[path]++];
  loop_.post([answer, events = std::move(events), weak = std::weak_ptr<int>(handle), ends] {
    if (weak.expired()) return;
    events.on_head(200, {});
    for (std::size_t at = 0; at < answer->size() && !weak.expired(); at += kPieceBytes) {
      events.on_body(std::string_view(*answer).substr(at, kPieceBytes));
    }
    if (ends && !weak.expired()) events.on_end({});
  });
  return handle;
}

}  // namespace jogak::bench
