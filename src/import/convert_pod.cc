// SPDX-License-Identifier: Apache-2.0
// A pod of the API to a PodSpec: its shape (what decides) and its state. Where the API server
// completes an object on creation, and no API server has seen this one, that is done here.
#include <algorithm>

#include "core/model/pod_requests.h"
#include "import/convert.h"
#include "import/convert_parts.h"
#include "import/gpu.h"

namespace jogak::importer {

namespace {

core::ResizableRequests to_requests(kube::ResizableResources&& from) {
  return {.spec = std::move(from.requests),
          .in_effect = std::move(from.in_effect),
          .allocated = std::move(from.allocated)};
}

std::vector<core::ContainerRequests> to_container_requests(
    std::vector<kube::Container>& containers) {
  std::vector<core::ContainerRequests> result;
  result.reserve(containers.size());
  for (kube::Container& container : containers) {
    result.push_back(
        {.requests = to_requests(std::move(container.resources)), .sidecar = container.sidecar});
  }
  return result;
}

bool has(const core::ResourceList& list, std::string_view name) {
  return std::ranges::any_of(list, [name](const auto& entry) { return entry.first == name; });
}

// API defaulting: with limits at pod level, a name that only they mention is also requested, and
// what the containers ask for is stated at pod level too.
Result<void> default_pod_level(const core::ResourceList& limits, core::PodResources& pod) {
  if (limits.empty()) return {};
  core::PodResources containers = pod;
  containers.pod_level = {};
  containers.overhead.clear();
  containers.on_node = false;
  JOGAK_TRY(const core::PodRequests sum, core::effective_requests(containers, "the containers"));
  for (const core::ResourceList* const list : {&sum.requests, &limits}) {
    for (const auto& [name, amount] : *list) {
      if (core::is_pod_level_resource(name) && !has(pod.pod_level.spec, name)) {
        pod.pod_level.spec.emplace_back(name, amount);
      }
    }
  }
  std::ranges::sort(pod.pod_level.spec);
  return {};
}

Result<void> add_requests(kube::Pod& pod, core::PodShape& shape) {
  core::PodResources resources{.containers = to_container_requests(pod.containers),
                               .init_containers = to_container_requests(pod.init_containers),
                               .pod_level = {},
                               .overhead = std::move(pod.overhead),
                               .on_node = !pod.node_name.empty(),
                               .resize_infeasible = pod.resize_infeasible};
  const core::ResourceList limits = std::move(pod.pod_level.limits);
  resources.pod_level = to_requests(std::move(pod.pod_level));
  JOGAK_TRY_VOID(default_pod_level(limits, resources));
  JOGAK_TRY(core::PodRequests sum, core::effective_requests(resources, "spec"));
  for (const auto& [name, amount] : sum.requests) {
    if (amount > core::kMaxAmount) {
      return invalid("spec: the requests for {} add up to {}; more than {} is not accepted", name,
                     amount, core::kMaxAmount);
    }
  }
  shape.requests = std::move(sum.requests);
  shape.nonzero_cpu = sum.nonzero_cpu;
  shape.nonzero_memory = sum.nonzero_memory;
  shape.scored_cpu = sum.scored_cpu;
  shape.scored_memory = sum.scored_memory;
  return {};
}

// The API server merges match- and mismatchLabelKeys into the selector when the pod is created. An
// object without uid never met an API server, so that it is done here.
void merge_label_keys(kube::PodAffinityTerm& term, const kube::ObjectMeta& meta) {
  if (!meta.uid.empty() || !term.selector) return;
  for (const bool match : {true, false}) {
    for (std::string& key : match ? term.match_label_keys : term.mismatch_label_keys) {
      const auto label = std::ranges::find(meta.labels, key, [](const auto& l) { return l.first; });
      if (label == meta.labels.end()) continue;
      term.selector->match_expressions.push_back(
          {.key = std::move(key),
           .op = match ? kube::Operator::In : kube::Operator::NotIn,
           .values = {label->second}});
    }
  }
}

std::vector<core::PodAffinityTerm> to_affinity_terms(std::vector<kube::PodAffinityTerm>&& from,
                                                     const kube::ObjectMeta& meta) {
  std::vector<core::PodAffinityTerm> result;
  result.reserve(from.size());
  for (kube::PodAffinityTerm& term : from) {
    merge_label_keys(term, meta);
    std::ranges::sort(term.namespaces);
    result.push_back({.selector = to_selector(std::move(term.selector)),
                      .topology_key = std::move(term.topology_key),
                      .namespaces = std::move(term.namespaces),
                      .namespace_selector = to_selector(std::move(term.namespace_selector)),
                      .weight = term.weight});
  }
  return result;
}

void add_affinity(kube::Pod& pod, core::PodShape& shape) {
  for (auto& [key, value] : pod.node_selector) {
    shape.node_selector.push_back({std::move(key), core::SelectorOp::In, {std::move(value)}});
  }
  if (pod.node_affinity.required) {
    shape.node_affinity = to_terms(std::move(*pod.node_affinity.required));
  }
  for (kube::PreferredNodeTerm& term : pod.node_affinity.preferred) {
    shape.preferred_node.push_back({.weight = term.weight, .term = to_term(std::move(term.term))});
  }
  shape.required_affinity = to_affinity_terms(std::move(pod.pod_affinity.required), pod.meta);
  shape.preferred_affinity = to_affinity_terms(std::move(pod.pod_affinity.preferred), pod.meta);
  shape.required_anti_affinity =
      to_affinity_terms(std::move(pod.pod_anti_affinity.required), pod.meta);
  shape.preferred_anti_affinity =
      to_affinity_terms(std::move(pod.pod_anti_affinity.preferred), pod.meta);
}

void add_tolerations(kube::Pod& pod, core::PodShape& shape) {
  for (kube::Toleration& from : pod.tolerations) {
    // Lt and Gt are behind a gate that is off by default; then they match no taint.
    if (from.op == kube::TolerationOperator::Lt || from.op == kube::TolerationOperator::Gt)
      continue;
    core::Toleration& toleration = shape.tolerations.emplace_back();
    toleration.key = std::move(from.key);
    toleration.exists = from.op == kube::TolerationOperator::Exists;
    toleration.value = std::move(from.value);
    if (from.effect) toleration.effect = to_effect(*from.effect);
  }
}

void add_spread(kube::Pod& pod, core::PodShape& shape) {
  for (kube::TopologySpreadConstraint& from : pod.spread) {
    shape.spread.push_back({.max_skew = from.max_skew,
                            .topology_key = std::move(from.topology_key),
                            .hard = from.do_not_schedule,
                            .selector = to_selector(std::move(from.selector)),
                            .match_label_keys = std::move(from.match_label_keys),
                            .min_domains = from.min_domains,
                            .honor_node_affinity = from.honor_node_affinity,
                            .honor_node_taints = from.honor_node_taints});
  }
}

void add_ports(const std::vector<kube::Container>& containers, bool sidecars_only,
               core::PodShape& shape) {
  for (const kube::Container& container : containers) {
    if (sidecars_only && !container.sidecar) continue;
    for (const kube::ContainerPort& port : container.ports) {
      if (port.host_port > 0) {
        shape.host_ports.push_back({port.host_ip, port.protocol, port.host_port});
      }
    }
  }
}

core::VolumeKind to_volume_kind(kube::Volume::Kind kind) {
  switch (kind) {
    case kube::Volume::Kind::Claim:
      return core::VolumeKind::Claim;
    case kube::Volume::Kind::Ephemeral:
      return core::VolumeKind::Ephemeral;
    case kube::Volume::Kind::GcePd:
      return core::VolumeKind::GcePd;
    case kube::Volume::Kind::AwsEbs:
      return core::VolumeKind::AwsEbs;
    case kube::Volume::Kind::Iscsi:
      return core::VolumeKind::Iscsi;
    case kube::Volume::Kind::Rbd:
      return core::VolumeKind::Rbd;
    case kube::Volume::Kind::Image:
      break;
  }
  std::unreachable();
}

void add_volumes_and_images(kube::Pod& pod, core::PodShape& shape) {
  for (auto* const containers : {&pod.init_containers, &pod.containers}) {
    for (kube::Container& container : *containers) {
      shape.images.push_back(image_with_tag(std::move(container.image)));
    }
  }
  for (kube::Volume& from : pod.volumes) {
    if (from.kind == kube::Volume::Kind::Image) {
      shape.images.push_back(image_with_tag(std::move(from.source)));
      continue;
    }
    core::VolumeRef& volume = shape.volumes.emplace_back();
    volume.kind = to_volume_kind(from.kind);
    // The claim of a generic ephemeral volume is named after pod and volume.
    volume.name = from.kind == kube::Volume::Kind::Ephemeral ? pod.meta.name + "-" + from.name
                                                             : std::move(from.source);
    volume.read_only = from.read_only;
    volume.pool = std::move(from.pool);
    volume.image = std::move(from.image);
    volume.monitors = std::move(from.monitors);
  }
  shape.container_count =
      static_cast<std::int32_t>(pod.containers.size() + pod.init_containers.size());
}

// What a node must declare to run the pod (Kubernetes 1.36,
// component-helpers/nodedeclaredfeatures).
void add_required_features(const kube::Pod& pod, core::PodShape& shape) {
  const auto restarts_all = [](const kube::Container& c) { return c.restarts_all_containers; };
  if (std::ranges::any_of(pod.containers, restarts_all) ||
      std::ranges::any_of(pod.init_containers, restarts_all)) {
    shape.required_features.emplace_back("RestartAllContainersOnContainerExits");
  }
  if (pod.host_network && !pod.host_users) {
    shape.required_features.emplace_back("UserNamespacesHostNetworkSupport");
  }
}

}  // namespace

std::string image_with_tag(std::string name) {
  const std::size_t colon = name.rfind(':');
  const std::size_t slash = name.rfind('/');
  const bool has_tag = colon != std::string::npos && (slash == std::string::npos || colon > slash);
  if (!has_tag) name += ":latest";
  return name;
}

Result<core::PodSpec> to_pod(kube::Pod&& pod) {
  core::PodSpec result;
  core::PodShape& shape = result.shape;
  JOGAK_TRY_VOID(add_requests(pod, shape));
  JOGAK_TRY(shape.gpu, gpu_request(pod.meta, shape.requests));
  if (!pod.node_name.empty()) {
    JOGAK_TRY(result.holds, gpu_holds(pod.meta, shape.gpu));
  }
  shape.priority = pod.priority.value_or(0);
  if (pod.never_preempts.value_or(false)) shape.preemption = core::PreemptionPolicy::Never;
  add_affinity(pod, shape);
  add_tolerations(pod, shape);
  add_spread(pod, shape);
  add_ports(pod.containers, false, shape);
  add_ports(pod.init_containers, true, shape);
  add_required_features(pod, shape);
  add_volumes_and_images(pod, shape);
  shape.gates = std::move(pod.scheduling_gates);

  result.ns = std::move(pod.meta.ns);
  result.name = std::move(pod.meta.name);
  result.uid = std::move(pod.meta.uid);
  result.labels = std::move(pod.meta.labels);
  result.owner_kind = std::move(pod.meta.owner_kind);
  result.owner_name = std::move(pod.meta.owner_name);
  result.scheduler_name = std::move(pod.scheduler_name);
  result.bound_node = std::move(pod.node_name);
  result.nominated_node = std::move(pod.nominated_node_name);
  result.terminating = pod.meta.deleting;
  result.preemption_victim = pod.preemption_victim;
  if (pod.start_time) result.start_time = *pod.start_time;
  return result;
}

}  // namespace jogak::importer
