// SPDX-License-Identifier: Apache-2.0
//
// What keeping up with 50,000 pods costs before anything is decoded: bytes to objects, metadata,
// the table of what is known. One core, a peer in the same process, realistic pods of about 3 KB.
//
//   build/bench/bench/reflector_bench
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/check.h"
#include "base/mono_clock.h"
#include "base/rng.h"
#include "base/sim_loop.h"
#include "kube/api_client.h"
#include "kube/reflector.h"
#include "net/http_client.h"

namespace jogak::bench {
namespace {

constexpr int kPods = 50'000;
constexpr std::size_t kPieceBytes = 16'384;  // as a socket gives them

std::string hex(Rng& rng, int digits) {
  std::string result;
  for (int i = 0; i < digits; ++i) result += "0123456789abcdef"[rng.below(16)];
  return result;
}

// What a Deployment's pod with a GPU looks like once it runs.
std::string pod(int i, Rng& rng, bool has_kind) {
  const std::string uid = fmt::format("{}-{}-4{}-a{}-{}", hex(rng, 8), hex(rng, 4), hex(rng, 3),
                                      hex(rng, 3), hex(rng, 12));
  const std::string set = fmt::format("trainer-{:04}-{}", i / 10, hex(rng, 9));
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
      has_kind ? R"("kind":"Pod","apiVersion":"v1",)" : "", set, hex(rng, 5), set, i % 50, uid,
      10'000'000 + i, hex(rng, 9), set, uid, uid, hex(rng, 12), i % 5000);
}

// Hands out prepared answers in pieces, one after another.
class Peer : public net::HttpClient {
 public:
  explicit Peer(Loop& loop) : loop_(loop) {}
  std::vector<std::string> answers;

  Loop& loop() override { return loop_; }
  std::shared_ptr<void> send(net::ClientRequest request, net::ClientEvents events) override {
    const bool is_list = request.target.find("limit=") != std::string::npos ||
                         request.target.find("sendInitialEvents") != std::string::npos;
    const auto handle = std::make_shared<int>();
    if (!is_list || next_ == answers.size()) return handle;
    const std::string* const answer = &answers[next_++];
    loop_.post([answer, events = std::move(events), weak = std::weak_ptr<int>(handle),
                ends = request.target.find("limit=") != std::string::npos] {
      if (weak.expired()) return;
      events.on_head(200, {});
      for (std::size_t at = 0; at < answer->size() && !weak.expired(); at += kPieceBytes) {
        events.on_body(std::string_view(*answer).substr(at, kPieceBytes));
      }
      if (ends && !weak.expired()) events.on_end({});
    });
    return handle;
  }

 private:
  Loop& loop_;
  std::size_t next_ = 0;
};

std::size_t heap_bytes() { return mallinfo2().uordblks + mallinfo2().hblkhd; }

// Reads what the answers hold, `times` times; prints the best.
void measure(const char* what, const std::vector<std::string>& answers, bool may_stream) {
  std::size_t bytes = 0, strings = 0;
  for (const std::string& answer : answers) bytes += answer.size();
  double best = 1e9;
  double kept = 0;
  for (int round = 0; round < 5; ++round) {
    SimLoop loop;
    Peer peer(loop);
    peer.answers = answers;
    kube::ApiClient api(peer);
    strings = 0;
    std::size_t told = 0;
    const std::size_t before = heap_bytes();
    const std::int64_t start = mono_now_ns();
    kube::Reflector reflector(
        api, {.path = "/api/v1/pods", .may_stream = may_stream},
        {.on_change =
             [&](const kube::ObjectChange& change) {
               ++told;
               strings += change.ns.size() + change.name.size() + change.uid.size() +
                          change.version.size();
             },
         .on_synced = {},
         .on_error = [](const Error& error) { fmt::print("{}\n", error.what); }});
    loop.run_ready();
    best = std::min(best, static_cast<double>(mono_now_ns() - start) / 1e9);
    JOGAK_CHECK(told == kPods && reflector.state().is_synced, "{} told", told);
    kept = static_cast<double>(heap_bytes() - before) / kPods;
  }
  const double text = static_cast<double>(strings) / kPods;
  fmt::print(
      "{:<18}{:>8.1f} MB{:>9.3f} s{:>8.2f} GB/s{:>8.0f} bytes kept an object, {:.0f} of them "
      "its strings\n",
      what, static_cast<double>(bytes) / 1e6, best, static_cast<double>(bytes) / 1e9 / best, kept,
      text);
}

void run() {
  Rng rng(1, "pods");
  std::vector<std::string> pages;
  std::string stream;
  for (int i = 0; i < kPods; ++i) {
    if (i % 500 == 0) pages.emplace_back(R"({"kind":"PodList","apiVersion":"v1","items":[)");
    pages.back() += (i % 500 == 0 ? "" : ",") + pod(i, rng, false);
    if (i % 500 == 499) {
      pages.back() += fmt::format(R"(],"metadata":{{"resourceVersion":"20000000"{}}}}})",
                                  i + 1 == kPods ? "" : fmt::format(R"(,"continue":"t{}")", i));
    }
    stream += R"({"type":"ADDED","object":)" + pod(i, rng, true) + "}\n";
  }
  stream += R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"20000000",)"
            R"("annotations":{"k8s.io/initial-events-end":"true"}}}})"
            "\n";
  fmt::print("{} pods of {} bytes\n", kPods, stream.size() / kPods);
  measure("pages of 500", pages, false);
  measure("streaming list", {stream}, true);
}

}  // namespace
}  // namespace jogak::bench

int main() { jogak::bench::run(); }
