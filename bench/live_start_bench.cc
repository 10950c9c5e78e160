// SPDX-License-Identifier: Apache-2.0
//
// What the scheduler's start costs: 5,000 nodes and 50,000 running pods (150 MB of JSON) from bytes
// to the state that decides, and the first decision; then what it keeps. One core, a peer in the
// same process.
//
//   build/bench/bench/live_start_bench
#include <malloc.h>

#include <memory>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "base/check.h"
#include "base/mono_clock.h"
#include "base/sim_loop.h"
#include "bench/made_pods.h"
#include "kube/api_client.h"
#include "live/kube_cluster.h"
#include "live/scheduler_driver.h"

namespace jogak::bench {
namespace {

constexpr int kNodes = 5'000, kPods = 50'000, kRounds = 3;
constexpr std::string_view kEnd =
    R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"20000000",)"
    R"("annotations":{"k8s.io/initial-events-end":"true"}}}})";

constexpr std::string_view kEmpty[] = {"/api/v1/namespaces",
                                       "/api/v1/services",
                                       "/api/v1/replicationcontrollers",
                                       "/api/v1/persistentvolumes",
                                       "/api/v1/persistentvolumeclaims",
                                       "/apis/apps/v1/replicasets",
                                       "/apis/apps/v1/statefulsets",
                                       "/apis/policy/v1/poddisruptionbudgets",
                                       "/apis/storage.k8s.io/v1/storageclasses",
                                       "/apis/storage.k8s.io/v1/csinodes",
                                       "/apis/storage.k8s.io/v1/csidrivers",
                                       "/apis/storage.k8s.io/v1/csistoragecapacities",
                                       "/apis/storage.k8s.io/v1/volumeattachments"};

std::size_t heap_bytes() { return mallinfo2().uordblks + mallinfo2().hblkhd; }

void run() {
  Rng rng(1, "pods");
  const std::string end(kEnd);
  std::string nodes, pods;
  for (int i = 0; i < kNodes; ++i) {
    nodes += R"({"type":"ADDED","object":)" + made_node(i) + "}\n";
  }
  for (int i = 0; i < kPods; ++i) {
    pods += R"({"type":"ADDED","object":)" + made_pod(i, rng, true) + "}\n";
  }
  // One that waits: the first decision.
  std::string waits = made_pod(kPods, rng, true);
  const std::size_t at = waits.find(R"("nodeName":)");
  waits.erase(at, waits.find(',', at) + 1 - at);
  const std::size_t phase = waits.find("Running");
  waits.replace(phase, 7, "Pending");
  pods += R"({"type":"ADDED","object":)" + waits + "}\n";
  nodes += end;
  pods += end;
  for (int round = 0; round < kRounds; ++round) {
    SimLoop loop;
    ListPeer peer(loop);
    for (const std::string_view path : kEmpty) peer.lists[std::string(path)] = {&end};
    peer.lists["/api/v1/nodes"] = {&nodes};
    peer.lists["/api/v1/pods"] = {&pods};
    kube::ApiClient api(peer);
    live::KubeCluster cluster(api, {});
    const std::size_t before = heap_bytes();
    const std::int64_t start = mono_now_ns();
    auto driver = live::SchedulerDriver::make(cluster, {});
    JOGAK_CHECK(driver.has_value(), "no driver");
    while (!(*driver)->is_synced()) loop.step();
    const double read = static_cast<double>(mono_now_ns() - start) / 1e9;
    while ((*driver)->counts().decisions == 0) loop.step();
    const double decided = static_cast<double>(mono_now_ns() - start) / 1e9;
    const std::size_t kept = heap_bytes() - before;
    fmt::print(
        "{} nodes and {} pods, {:.0f} MB: read in {:.2f} s, first decision after {:.2f} s; {:.1f} "
        "MiB kept, {} bytes a pod with its share of a node\n",
        kNodes, (*driver)->cluster().pods().size(),
        static_cast<double>(nodes.size() + pods.size()) / 1e6, read, decided,
        static_cast<double>(kept) / 1048576, kept / kPods);
  }
}

}  // namespace
}  // namespace jogak::bench

int main() { jogak::bench::run(); }
