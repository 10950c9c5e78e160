// SPDX-License-Identifier: Apache-2.0
//
// See series.h.
#include "ops/series.h"

#include <bit>

#include "import/gpu.h"

namespace jogak::ops {

namespace {

double seconds(TimeUs span) { return static_cast<double>(span) / kSecondInUs; }

// The part of a device that is given out.
double used_part(const core::Gpu& gpu) {
  if (gpu.mig_enabled) {
    const int slices = gpu.mig_model == 0xff ? 0 : core::mig_models()[gpu.mig_model].slices;
    return slices == 0 ? 0.0 : static_cast<double>(std::popcount(gpu.mig_used_mask)) / slices;
  }
  if (gpu.owner_count == 0 || gpu.capacity_units == 0) return 0;
  return static_cast<double>(gpu.capacity_units - gpu.free_units) /
         static_cast<double>(gpu.capacity_units);
}

std::string model_of(const core::Cluster& cluster, const core::Node& node) {
  std::string model(cluster.text(node.gpu_model));
  if (!model.empty()) return model;
  for (const core::NodeLabel& label : node.labels) {
    if (cluster.text(label.key) == "nvidia.com/gpu.product") {
      return std::string(cluster.text(label.value));
    }
  }
  return "unknown";
}

}  // namespace

std::map<std::string, GpuTotals> gpu_totals(const core::Cluster& cluster) {
  std::map<std::string, GpuTotals> totals;
  const auto counted = cluster.find_scalar(importer::kGpuResource);
  for (const core::NodeId id : cluster.node_order()) {
    const core::Node& node = cluster.node(id);
    const core::ScalarAmount* amount = counted ? node.scalar(*counted) : nullptr;
    const bool has_detail = !node.gpus.empty();
    if (!has_detail && (amount == nullptr || amount->allocatable == 0)) continue;
    GpuTotals& total = totals[model_of(cluster, node)];
    if (!has_detail) {
      total.capacity += static_cast<double>(amount->allocatable);
      total.allocated += static_cast<double>(amount->requested);
      continue;
    }
    total.capacity += static_cast<double>(node.gpus.size());
    total.allocated += node.unknown_gpus;
    for (const core::Gpu& gpu : node.gpus) {
      total.allocated += used_part(gpu);
      if (gpu.health != core::GpuHealth::Healthy) total.unhealthy += 1;
    }
  }
  return totals;
}

void add_cluster_series(Registry& registry, const core::Cluster& cluster,
                        std::function<std::size_t()> assumed) {
  registry.sampled_gauges(
      "scheduler_cache_size", "Nodes, pods and pods with a binding under way, as known here.",
      {"type"}, [&cluster, assumed = std::move(assumed)] {
        double pods = 0;
        for (const core::Pod& pod : cluster.pods()) {
          if (pod.state != core::PodState::Gone) ++pods;
        }
        return std::vector<Sample>{{{"assumed_pods"}, static_cast<double>(assumed())},
                                   {{"nodes"}, static_cast<double>(cluster.node_count())},
                                   {{"pods"}, pods}};
      });
  const auto add = [&](std::string_view name, std::string_view help, double GpuTotals::* field) {
    registry.sampled_gauges(name, help, {"model"}, [&cluster, field] {
      std::vector<Sample> samples;
      for (const auto& [model, total] : gpu_totals(cluster)) {
        samples.push_back({{model}, total.*field});
      }
      return samples;
    });
  };
  add("jogak_gpu_capacity", "Devices of all nodes.", &GpuTotals::capacity);
  add("jogak_gpu_unhealthy", "Devices that are not given out because they are not healthy.",
      &GpuTotals::unhealthy);
  add("jogak_gpu_allocated",
      "Devices given to pods; a share or a MIG instance counts as a part of one.",
      &GpuTotals::allocated);
}

void add_informer_series(Registry& registry, const Informers& informers,
                         std::function<TimeUs()> now) {
  const auto read = [informers](auto value) {
    return [informers, value] {
      std::vector<Sample> samples;
      for (const InformerView& view : informers()) {
        samples.push_back({{view.resource}, static_cast<double>(value(view))});
      }
      return samples;
    };
  };
  const std::vector<std::string> by = {"resource"};
  registry.sampled_gauges("jogak_informer_objects", "Objects known, by resource.", by,
                          read([](const InformerView& v) { return v.objects; }));
  registry.sampled_gauges("jogak_informer_synced", "1 once all objects of the start are known.", by,
                          read([](const InformerView& v) { return v.state.is_synced ? 1 : 0; }));
  registry.sampled_gauges(
      "jogak_informer_failing_seconds",
      "For how long the server could not be followed: what is known may be so old. 0: it is "
      "followed.",
      by, read([now = std::move(now)](const InformerView& v) {
        return v.state.failing_since == 0 ? 0.0 : seconds(now() - v.state.failing_since);
      }));
  registry.sampled_counters("jogak_informer_events_total", "Changes taken from watches.", by,
                            read([](const InformerView& v) { return v.state.events; }));
  registry.sampled_counters("jogak_informer_lists_total", "Whole lists read, the first included.",
                            by, read([](const InformerView& v) { return v.state.lists; }));
  registry.sampled_counters("jogak_informer_watches_total", "Watches begun.", by,
                            read([](const InformerView& v) { return v.state.watches; }));
  registry.sampled_counters("jogak_informer_gaps_total",
                            "Times that the server's history did not reach back far enough, and "
                            "the list was read again.",
                            by, read([](const InformerView& v) { return v.state.gaps; }));
}

ApiSeries::ApiSeries(Registry& registry, std::string host)
    : requests_(
          registry.counters("rest_client_requests_total",
                            "Requests to the API server; the code is <error> where none came.",
                            {"code", "method", "host"})),
      durations_(registry.histograms(
          "rest_client_request_duration_seconds", "Time of a request to the API server.",
          {"verb", "host"},
          std::vector<double>{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60})),
      host_(std::move(host)) {}

void ApiSeries::called(const kube::ApiCall& call) {
  Counter*& count = by_code_[{std::string(call.method), call.status}];
  if (count == nullptr) {
    const std::string code = call.status == 0 ? "<error>" : std::to_string(call.status);
    count = &requests_.with({code, std::string(call.method), host_});
  }
  count->add();
  auto at = by_verb_.find(call.method);
  if (at == by_verb_.end()) {
    Histogram& made = durations_.with({std::string(call.method), host_});
    at = by_verb_.emplace(std::string(call.method), &made).first;
  }
  at->second->observe(seconds(call.duration));
}

void add_leader_series(Registry& registry, const std::string& lease,
                       std::function<bool()> is_leader) {
  registry.sampled_gauges("leader_election_master_status",
                          "1 while this replica holds the lease, 0 while it stands by.", {"name"},
                          [lease, is_leader = std::move(is_leader)] {
                            return std::vector<Sample>{{{lease}, is_leader() ? 1.0 : 0.0}};
                          });
}

DriftSeries::DriftSeries(Registry& registry)
    : objects_(registry.gauges("jogak_cache_drift_objects",
                               "Differences between memory and the API server that the last "
                               "comparison found, by kind. Any is a fault.",
                               {"kind"})),
      checks_(registry.counters("jogak_cache_drift_checks_total",
                                "Comparisons with the API server, by how they ended.", {"result"})),
      last_(registry.gauge("jogak_cache_drift_last_check_timestamp_seconds",
                           "When the last comparison ended; 0: none yet.")) {
  for (std::size_t i = 0; i < live::kDriftKinds; ++i) {
    objects_.with({std::string(live::drift_kind_name(static_cast<live::DriftKind>(i)))});
  }
  for (const char* result : {"clean", "drift", "error"}) checks_.with({result});
}

void DriftSeries::checked(const live::DriftReport& report, TimeUs now) {
  for (std::size_t i = 0; i < live::kDriftKinds; ++i) {
    objects_.with({std::string(live::drift_kind_name(static_cast<live::DriftKind>(i)))})
        .set(static_cast<double>(report.counts[i]));
  }
  checks_.with({report.is_clean() ? "clean" : "drift"}).add();
  last_.set(seconds(now));
}

void DriftSeries::failed() { checks_.with({"error"}).add(); }

}  // namespace jogak::ops
