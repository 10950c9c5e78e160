// SPDX-License-Identifier: Apache-2.0
//
// The simulated kubelets of all simulated nodes (label jogak.io/simulated=true): node status and
// leases, admission, the life of pods, graceful deletion, failure and return of a node. What a node
// or a pod shall do is said by annotations (docs/playground.md), so that kubectl can script faults.
// Devices come from the plugins of a DeviceHost, or without one from the node's manifest.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/controllers/controllers.h"
#include "apiserver/controllers/pod_index.h"
#include "apiserver/controllers/work_queue.h"
#include "apiserver/kubelet/device_host.h"
#include "apiserver/kubelet/ledger.h"
#include "apiserver/kubelet/pod_status.h"
#include "apiserver/kubelet/run_plan.h"

namespace jogak::kubelet {

inline constexpr std::string_view kSimulatedLabel = "jogak.io/simulated";
// On a node: "down" stops its kubelet (no lease, no pod moves) until it is removed.
inline constexpr std::string_view kFault = "jogak.io/fault";
// On a node: how many of each device are unhealthy, e.g. "nvidia.com/gpu=2".
inline constexpr std::string_view kUnhealthy = "jogak.io/unhealthy";

struct KubeletOptions {
  RunDefaults run;
  TimeUs stop_delay = 1 * kSecondInUs;     // from the deletion to the end of a well-behaved pod
  TimeUs ready_delay = 0;                  // on top of a readiness probe's initial delay
  TimeUs lease_period = 10 * kSecondInUs;  // stretched so that all nodes together write <= 40/s
  std::string version = "v1.36.3";
};

class Kubelets : public controllers::Controller {
 public:
  // `devices` may be null; it outlives this, which takes its on_change.
  Kubelets(const controllers::ApiFactory& make_api, controllers::PodIndex& pods,
           KubeletOptions options = {}, DeviceHost* devices = nullptr);
  ~Kubelets() override;

  std::size_t nodes() const { return nodes_.size(); }

 private:
  struct PodRun {
    std::string ns, name, uid;
    RunPlan plan;
    PodFacts facts;
    std::optional<DevicePod> devices;  // when it holds some of plugins
    bool is_admitted = false;
    bool is_stopping = false;
    TimeUs deletion_end = 0;  // when its grace is over, while it is stopping
    TimerId timer = 0;
  };
  struct NodeState {
    std::string name, ip;
    std::uint32_t number = 0;  // for addresses
    std::uint32_t next_pod = 1;
    bool is_down = false;
    bool has_status = false;
    std::string last_unhealthy;
    NodeDevices* devices = nullptr;
    std::vector<HostResource> told_devices;  // in the last status
    bool has_waited = false;                 // pods may have come meanwhile
    NodeLedger ledger;

    bool is_waiting() const { return devices != nullptr && !devices->is_ready(); }
    std::map<std::string, PodRun, std::less<>> runs;  // by uid
    TimerId lease_timer = 0;
  };

  void on_node(const api::Api::Change& change);
  void on_pod(store::EventType type, const controllers::PodViewPtr& pod);
  controllers::Outcome sync_pod(const std::string& key);
  void sync_node(NodeState& node, const Doc& object);
  void write_node_status(NodeState& node, const Doc& object);
  void on_devices(const std::string& name);
  static bool wants_devices(const NodeState& node, const Doc& pod);
  void renew_lease(const std::string& name);
  TimeUs lease_period() const;
  TimeUs next_renewal(const NodeState& node) const;

  void begin(NodeState& node, const Doc& pod);
  void adopt(NodeState& node, PodRun& run, const Doc& pod);
  void start_running(NodeState& node, PodRun& run);
  void become_ready(NodeState& node, PodRun& run);
  void end_run(NodeState& node, PodRun& run);
  void begin_stop(NodeState& node, PodRun& run, TimeUs deletion_end);
  void finish_stop(NodeState& node, PodRun& run);
  void forget(NodeState& node, const std::string& uid);
  void take_devices(NodeState& node, PodRun& run, const Doc& pod);
  void tell_running(NodeState& node, PodRun& run);
  void release(NodeState& node, const std::string& uid);
  bool write_status(NodeState& node, PodRun& run);
  using Step = void (Kubelets::*)(NodeState&, PodRun&);
  void later(const NodeState& node, PodRun& run, TimeUs when, Step step);
  NodeState* find_node(std::string_view name);

  std::unique_ptr<api::Api> api_;
  controllers::PodIndex& pods_;
  KubeletOptions options_;
  DeviceHost* const host_;
  std::map<std::string, NodeState, std::less<>> nodes_;
  std::uint32_t next_node_ = 1;
  controllers::WorkQueue queue_;
  std::shared_ptr<void> following_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace jogak::kubelet
