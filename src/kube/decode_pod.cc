// SPDX-License-Identifier: Apache-2.0
// Pods, and the API server's defaulting of pods that scheduling depends on.
#include <algorithm>

#include <fmt/format.h>

#include "kube/decode_parts.h"
#include "kube/time.h"

namespace jogak::kube {

namespace {

ContainerPort read_port(const Json& json, bool host_network) {
  ContainerPort result{
      .host_ip = json["hostIP"].text(),
      .protocol = json["protocol"].text(),
      .host_port = static_cast<std::int32_t>(json["hostPort"].integer(0, 65535)),
      .container_port = static_cast<std::int32_t>(json["containerPort"].integer(0, 65535))};
  if (result.host_ip.empty()) result.host_ip = "0.0.0.0";
  if (result.protocol.empty()) result.protocol = "TCP";
  if (host_network && result.host_port == 0) result.host_port = result.container_port;
  return result;
}

// A resource with a limit but no request asks for its limit.
void default_requests(ResizableResources& resources) {
  for (const auto& [name, amount] : resources.limits) {
    const auto it = std::ranges::lower_bound(resources.requests, name, {}, [](const auto& entry) {
      return std::string_view(entry.first);
    });
    if (it == resources.requests.end() || it->first != name) {
      resources.requests.emplace(it, name, amount);
    }
  }
}

std::vector<Container> read_containers(const Json& json, bool init, bool host_network) {
  std::vector<Container> result;
  json.each_item([&](const Json& item) {
    Container& container = result.emplace_back();
    container.name = item["name"].text();
    container.image = item["image"].text();
    const Json resources = item["resources"];
    container.resources.requests = read_resources(resources["requests"]);
    container.resources.limits = read_resources(resources["limits"]);
    default_requests(container.resources);
    item["ports"].each_item(
        [&](const Json& port) { container.ports.push_back(read_port(port, host_network)); });
    container.sidecar = init && item["restartPolicy"].view() == "Always";
    item["restartPolicyRules"].each_item([&container](const Json& rule) {
      if (rule["action"].view() == "RestartAllContainers") container.restarts_all_containers = true;
    });
  });
  return result;
}

TolerationOperator read_toleration_operator(const Json& json) {
  const std::string_view text = json.view();
  if (text.empty() || text == "Equal") return TolerationOperator::Equal;
  if (text == "Exists") return TolerationOperator::Exists;
  if (text == "Lt") return TolerationOperator::Lt;
  if (text == "Gt") return TolerationOperator::Gt;
  json.complain(
      fmt::format("\"{}\" is not an operator of a toleration; use Equal or Exists", text));
  return TolerationOperator::Equal;
}

std::vector<Toleration> read_tolerations(const Json& json) {
  std::vector<Toleration> result;
  json.each_item([&result](const Json& item) {
    Toleration toleration{.key = item["key"].text(),
                          .op = read_toleration_operator(item["operator"]),
                          .value = item["value"].text(),
                          .effect = read_taint_effect(item["effect"])};
    if (toleration.key.empty() && toleration.op != TolerationOperator::Exists) {
      item["operator"].complain("must be Exists where the key is empty");
    }
    result.push_back(std::move(toleration));
  });
  return result;
}

std::int32_t read_weight(const Json& json) {
  return static_cast<std::int32_t>(json.integer(0, 100));
}

PodAffinityTerm read_pod_affinity_term(const Json& json, std::int32_t weight) {
  PodAffinityTerm result{.weight = weight,
                         .selector = read_label_selector(json["labelSelector"]),
                         .topology_key = json["topologyKey"].text(),
                         .namespaces = json["namespaces"].texts(),
                         .namespace_selector = read_label_selector(json["namespaceSelector"]),
                         .match_label_keys = json["matchLabelKeys"].texts(),
                         .mismatch_label_keys = json["mismatchLabelKeys"].texts()};
  if (result.topology_key.empty()) {
    json["topologyKey"].complain("is required, e.g. \"kubernetes.io/hostname\"");
  }
  return result;
}

PodAffinity read_pod_affinity(const Json& json) {
  PodAffinity result;
  json["requiredDuringSchedulingIgnoredDuringExecution"].each_item(
      [&result](const Json& item) { result.required.push_back(read_pod_affinity_term(item, 0)); });
  json["preferredDuringSchedulingIgnoredDuringExecution"].each_item([&result](const Json& item) {
    result.preferred.push_back(
        read_pod_affinity_term(item["podAffinityTerm"], read_weight(item["weight"])));
  });
  return result;
}

NodeAffinity read_node_affinity(const Json& json) {
  NodeAffinity result;
  const Json required = json["requiredDuringSchedulingIgnoredDuringExecution"];
  if (required) result.required = read_node_selector_terms(required["nodeSelectorTerms"]);
  json["preferredDuringSchedulingIgnoredDuringExecution"].each_item([&result](const Json& item) {
    result.preferred.push_back({.weight = read_weight(item["weight"]),
                                .term = read_node_selector_term(item["preference"])});
  });
  return result;
}

bool read_policy_is_honor(const Json& json, bool by_default) {
  const std::string_view text = json.view();
  if (text.empty()) return by_default;
  if (text != "Honor" && text != "Ignore") {
    json.complain(fmt::format("\"{}\" is unknown; use Honor or Ignore", text));
  }
  return text == "Honor";
}

TopologySpreadConstraint read_spread(const Json& json) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
  TopologySpreadConstraint result;
  const Json skew = json["maxSkew"];
  if (!skew) skew.complain("is required; use 1 or more");
  result.max_skew = static_cast<std::int32_t>(skew.integer(1, kMax));
  result.topology_key = json["topologyKey"].text();
  if (result.topology_key.empty()) {
    json["topologyKey"].complain("is required, e.g. \"topology.kubernetes.io/zone\"");
  }
  const Json when = json["whenUnsatisfiable"];
  const std::string_view text = when.view();
  if (text != "DoNotSchedule" && text != "ScheduleAnyway") {
    when.complain(fmt::format("\"{}\" is unknown; use DoNotSchedule or ScheduleAnyway", text));
  }
  result.do_not_schedule = text == "DoNotSchedule";
  result.selector = read_label_selector(json["labelSelector"]);
  result.match_label_keys = json["matchLabelKeys"].texts();
  if (const Json domains = json["minDomains"]) {
    result.min_domains = static_cast<std::int32_t>(domains.integer(1, kMax));
  }
  result.honor_node_affinity = read_policy_is_honor(json["nodeAffinityPolicy"], true);
  result.honor_node_taints = read_policy_is_honor(json["nodeTaintsPolicy"], false);
  return result;
}

struct VolumeField {
  std::string_view field;
  std::string_view source;  // name of the field that identifies the volume
  Volume::Kind kind;
};
constexpr VolumeField kVolumeFields[] = {
    {"persistentVolumeClaim", "claimName", Volume::Kind::Claim},
    {"ephemeral", "", Volume::Kind::Ephemeral},
    {"gcePersistentDisk", "pdName", Volume::Kind::GcePd},
    {"awsElasticBlockStore", "volumeID", Volume::Kind::AwsEbs},
    {"iscsi", "iqn", Volume::Kind::Iscsi},
    {"rbd", "", Volume::Kind::Rbd},
    {"image", "reference", Volume::Kind::Image},
};

std::vector<Volume> read_volumes(const Json& json) {
  std::vector<Volume> result;
  json.each_item([&result](const Json& item) {
    for (const VolumeField& field : kVolumeFields) {
      const Json source = item[field.field];
      if (!source) continue;
      Volume& volume = result.emplace_back();
      volume.name = item["name"].text();
      volume.kind = field.kind;
      if (!field.source.empty()) volume.source = source[field.source].text();
      volume.read_only = source["readOnly"].flag();
      if (field.kind == Volume::Kind::Rbd) {
        volume.pool = source["pool"].text();
        if (volume.pool.empty()) volume.pool = "rbd";
        volume.image = source["image"].text();
        volume.monitors = source["monitors"].texts();
      }
      break;
    }
  });
  return result;
}

std::optional<Resources> read_optional_resources(const Json& json) {
  if (!json) return std::nullopt;
  return read_resources(json);
}

// Statuses are matched to containers by name, whichever of the two lists they are in.
void read_container_statuses(const Json& list, Pod& pod) {
  list.each_item([&pod](const Json& item) {
    const Json resources = item["resources"];
    if (!resources) return;  // kube-scheduler then looks at allocatedResources neither
    const std::string_view name = item["name"].view();
    for (auto* const containers : {&pod.containers, &pod.init_containers}) {
      const auto it = std::ranges::find(*containers, name, &Container::name);
      if (it == containers->end()) continue;
      it->resources.in_effect = read_resources(resources["requests"]);
      it->resources.allocated = read_optional_resources(item["allocatedResources"]);
      return;
    }
  });
}

void read_conditions(const Json& json, Pod& pod) {
  json.each_item([&pod](const Json& item) {
    const std::string_view type = item["type"].view();
    if (type == "PodResizePending") {
      pod.resize_infeasible = item["reason"].view() == "Infeasible";
    } else if (type == "PodScheduled") {
      if (item["status"].view() == "False") pod.refusal = item["message"].text();
    } else if (type == "DisruptionTarget") {
      pod.preemption_victim =
          item["status"].view() == "True" && item["reason"].view() == "PreemptionByScheduler";
    }
  });
}

void read_status(const Json& json, Pod& pod) {
  const std::string_view phase = json["phase"].view();
  pod.finished = phase == "Succeeded" || phase == "Failed";
  pod.nominated_node_name = json["nominatedNodeName"].text();
  if (const Json start = json["startTime"]) {
    pod.start_time = parse_time(start.view());
    if (!pod.start_time) start.complain("is not a time; use e.g. \"2026-02-02T02:09:39Z\"");
  }
  read_conditions(json["conditions"], pod);
  read_container_statuses(json["containerStatuses"], pod);
  read_container_statuses(json["initContainerStatuses"], pod);
  pod.pod_level.in_effect = read_optional_resources(json["resources"]["requests"]);
  pod.pod_level.allocated = read_optional_resources(json["allocatedResources"]);
}

void read_placement(const Json& spec, Pod& pod) {
  pod.node_name = spec["nodeName"].text();
  pod.scheduler_name = spec["schedulerName"].text();
  if (pod.scheduler_name.empty()) pod.scheduler_name = "default-scheduler";
  if (const Json priority = spec["priority"]) pod.priority = priority.int32();
  pod.priority_class_name = spec["priorityClassName"].text();
  if (const Json policy = spec["preemptionPolicy"]) {
    const std::string_view text = policy.view();
    if (text != "Never" && text != "PreemptLowerPriority") {
      policy.complain(fmt::format("\"{}\" is unknown; use Never or PreemptLowerPriority", text));
    }
    pod.never_preempts = text == "Never";
  }
  pod.node_selector = read_string_map(spec["nodeSelector"]);
  const Json affinity = spec["affinity"];
  pod.node_affinity = read_node_affinity(affinity["nodeAffinity"]);
  pod.pod_affinity = read_pod_affinity(affinity["podAffinity"]);
  pod.pod_anti_affinity = read_pod_affinity(affinity["podAntiAffinity"]);
  pod.tolerations = read_tolerations(spec["tolerations"]);
  spec["topologySpreadConstraints"].each_item(
      [&pod](const Json& item) { pod.spread.push_back(read_spread(item)); });
  spec["schedulingGates"].each_item(
      [&pod](const Json& item) { pod.scheduling_gates.push_back(item["name"].text()); });
}

}  // namespace

Pod read_pod(const Json& json) {
  Pod pod;
  pod.meta = read_meta(json, true);
  const Json status = json["status"];
  const std::string_view phase = status["phase"].view();
  if (phase == "Succeeded" || phase == "Failed") {
    pod.finished = true;  // holds nothing and asks for nothing: the rest is not looked at
    return pod;
  }
  const Json spec = json["spec"];
  if (!spec) spec.complain("is required");
  read_placement(spec, pod);
  pod.host_network = spec["hostNetwork"].flag();
  if (const Json host_users = spec["hostUsers"]) pod.host_users = host_users.flag();
  pod.containers = read_containers(spec["containers"], false, pod.host_network);
  if (pod.containers.empty()) spec["containers"].complain("is required");
  pod.init_containers = read_containers(spec["initContainers"], true, pod.host_network);
  spec["resourceClaims"].each_item([&pod](const Json&) { pod.has_resource_claims = true; });
  pod.has_pod_group = spec["schedulingGroup"].present() || spec["workloadRef"].present();
  const Json resources = spec["resources"];
  pod.pod_level.requests = read_resources(resources["requests"]);
  pod.pod_level.limits = read_resources(resources["limits"]);
  pod.overhead = read_resources(spec["overhead"]);
  pod.volumes = read_volumes(spec["volumes"]);
  read_status(status, pod);
  return pod;
}

}  // namespace jogak::kube
