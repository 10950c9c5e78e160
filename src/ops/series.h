// SPDX-License-Identifier: Apache-2.0
//
// Series about what the scheduler works with: the cluster it knows, the API it calls, the watches
// it keeps, this process. All are read at the scrape from what the parts hold anyway; only calls
// are counted as they end. Everything referred to outlives the registry's last scrape.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/metrics.h"
#include "core/model/cluster.h"
#include "kube/api_client.h"
#include "kube/reflector.h"
#include "live/drift.h"

namespace jogak::ops {

// GPUs of one model, in devices: a share counts as the part that it is, a MIG instance by its
// memory slices.
struct GpuTotals {
  double capacity = 0, unhealthy = 0, allocated = 0;
};
// By the model's name; "unknown" where a node does not say. Nodes without device detail count by
// the resource nvidia.com/gpu.
std::map<std::string, GpuTotals> gpu_totals(const core::Cluster& cluster);

// scheduler_cache_size, jogak_gpu_*. `assumed`: pods whose binding is under way.
void add_cluster_series(Registry& registry, const core::Cluster& cluster,
                        std::function<std::size_t()> assumed);

// A watch as /readyz and the metrics show it.
struct InformerView {
  std::string resource;  // "pods"
  kube::ReflectorState state;
  std::size_t objects = 0;
};
using Informers = std::function<std::vector<InformerView>()>;
// jogak_informer_*. `now` is the loop's clock.
void add_informer_series(Registry& registry, const Informers& informers,
                         std::function<TimeUs()> now);

// rest_client_*, by client-go's names. Hand called() to ApiClient::on_call.
class ApiSeries {
 public:
  ApiSeries(Registry& registry, std::string host);
  void called(const kube::ApiCall& call);

 private:
  Family<Counter>& requests_;
  Family<Histogram>& durations_;
  std::string host_;
  std::map<std::pair<std::string, int>, Counter*> by_code_;
  std::map<std::string, Histogram*, std::less<>> by_verb_;
};

// leader_election_master_status.
void add_leader_series(Registry& registry, const std::string& lease,
                       std::function<bool()> is_leader);

// jogak_cache_drift_*: of the last comparison with the server.
class DriftSeries {
 public:
  explicit DriftSeries(Registry& registry);
  void checked(const live::DriftReport& report, TimeUs now);
  void failed();

 private:
  Family<Gauge>& objects_;
  Family<Counter>& checks_;
  Gauge& last_;
};

// process_* and jogak_build_info. What the system does not tell is left out.
void add_process_series(Registry& registry, const std::string& version);

}  // namespace jogak::ops
