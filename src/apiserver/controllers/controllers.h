// SPDX-License-Identifier: Apache-2.0
//
// The controllers that a cluster cannot do without, in small: each follows a few resources through
// the API and writes what follows from them, as kube-controller-manager 1.36 would.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apiserver/controllers/pod_index.h"
#include "apiserver/registry/api.h"

namespace jogak::controllers {

class Controller {
 public:
  virtual ~Controller() = default;
};

struct ControllerOptions {
  TimeUs node_monitor_period = 5 * kSecondInUs;
  TimeUs node_grace = 50 * kSecondInUs;  // without a lease renewal: Ready=Unknown
  TimeUs pod_gc_period = 20 * kSecondInUs;
  TimeUs hpa_period = 15 * kSecondInUs;
  std::string root_ca;  // PEM, for the config map kube-root-ca.crt
};

// Makes the API for one controller, by the name of its field manager.
using ApiFactory = std::function<std::unique_ptr<api::Api>(std::string manager)>;

// What controllers have in common.
struct ControllerContext {
  ApiFactory make_api;
  PodIndex& pods;
  ControllerOptions options;
};

// deployments, replica sets, stateful sets, daemon sets, jobs, cron jobs
std::vector<std::unique_ptr<Controller>> workload_controllers(const ControllerContext& context);
// garbage collector, namespaces, nodes and taints, pod GC, disruption budgets, quotas, endpoints,
// autoscaler without metrics, volumes, claims from templates, accounts and root certificates
std::vector<std::unique_ptr<Controller>> cluster_controllers(const ControllerContext& context);

}  // namespace jogak::controllers
