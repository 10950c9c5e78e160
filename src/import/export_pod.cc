// SPDX-License-Identifier: Apache-2.0
// A pod as a Kubernetes object. Requests were added up when the pod was read; here they are written
// as the pod's overhead, and its containers only say how many of them name no cpu or memory, since
// scores count a default for each of those.
#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/model/pod_requests.h"
#include "import/export.h"

namespace jogak::importer {

namespace {

using core::Cluster;
using core::GpuAsk;
using core::PodShape;

// Times as Kubernetes writes them, to the nanosecond.
std::string time_text(std::int64_t ns) {
  using namespace std::chrono;
  const sys_time<nanoseconds> at{nanoseconds{ns}};
  const auto day = floor<days>(at);
  const year_month_day date{day};
  const hh_mm_ss time{at - day};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", int{date.year()},
                     unsigned{date.month()}, unsigned{date.day()}, time.hours().count(),
                     time.minutes().count(), time.seconds().count(), time.subseconds().count());
}

// ---- containers -----------------------------------------------------------------------------

bool names(const PodShape& shape, std::string_view resource) {
  return std::ranges::any_of(shape.requests, [&](const auto& r) { return r.first == resource; });
}

std::int64_t asked(const PodShape& shape, std::string_view resource) {
  for (const auto& [name, amount] : shape.requests) {
    if (name == resource) return amount;
  }
  return 0;
}

// How one of cpu and memory is spread so that its sums come out as they were read.
struct Spread {
  bool is_named = false;
  bool is_pod_level = false;
  std::int64_t overhead = 0;
  std::int64_t silent = 0;  // running containers that do not name it; scores count a default each
  std::int64_t init = 0;    // what the last init container asks for
  std::int64_t first = 0;   // what the first running container asks for
  bool is_odd = false;      // no such spread
};

// Without init containers the difference of the two sums is a number of defaults. With one that
// asks for less than the defaults add up to, it is not: then an init container gives the real sum,
// silent containers the one that scores count, and the overhead what both have.
Spread spread_of(const PodShape& shape, std::string_view resource, std::int64_t scored,
                 std::int64_t each, std::int64_t pod_level_scored) {
  Spread s;
  s.is_named = names(shape, resource);
  const std::int64_t real = asked(shape, resource);
  s.is_pod_level = pod_level_scored >= 0;
  if (s.is_pod_level && s.is_named) {
    // The pod's own number counts, whatever its containers say; scores of the pod see those.
    s.first = pod_level_scored;
    s.is_odd = scored != real;
    return s;
  }
  s.is_odd = scored < real || (s.is_pod_level && pod_level_scored != scored);
  s.overhead = real;
  s.silent = (scored - real) / each;
  if (s.is_odd || (scored - real) % each == 0) return s;
  ++s.silent;
  s.overhead = scored - each * s.silent;
  s.init = real - s.overhead;
  s.is_odd = !s.is_named || s.overhead < 0 || s.init <= 0;
  return s;
}

struct Containers {
  std::int64_t all = 1;      // with init containers
  std::int64_t running = 1;  // not init
  Spread cpu, memory;
};

Result<Containers> containers_of(const PodShape& shape) {
  Containers c;
  c.all = std::max(shape.container_count, 1);
  c.cpu = spread_of(shape, "cpu", shape.nonzero_cpu, core::kDefaultCpuMilli, shape.scored_cpu);
  c.memory = spread_of(shape, "memory", shape.nonzero_memory, core::kDefaultMemoryBytes,
                       shape.scored_memory);
  const bool needs_init = c.cpu.init > 0 || c.memory.init > 0;
  c.running = needs_init ? c.all - 1 : c.all;
  // Where nobody names the resource every running container is silent; init containers are too, and
  // do not add up.
  if (!c.memory.is_named) c.running = c.memory.silent;
  if (!c.cpu.is_named) c.running = c.cpu.silent;
  const auto fits = [&](const Spread& s) {
    return !s.is_odd && s.silent <= c.running && (s.is_named || s.silent == c.running);
  };
  if (!fits(c.cpu) || !fits(c.memory) || c.running < 1 ||
      c.running > (needs_init ? c.all - 1 : c.all)) {
    return invalid("no containers explain what scores count ({} milli-CPU, {} bytes)",
                   shape.nonzero_cpu, shape.nonzero_memory);
  }
  return c;
}

void write_ports(JsonWriter& json, const PodShape& shape) {
  json.key("ports").begin_array();
  for (const core::HostPort& p : shape.host_ports) {
    json.begin_object().field("containerPort", p.port).field("hostPort", p.port);
    json.field("hostIP", p.ip).field("protocol", p.protocol).end_object();
  }
  json.end_array();
}

// `index` counts init containers first, as images do.
void write_container(JsonWriter& json, const PodShape& shape, const Containers& c,
                     std::int64_t index) {
  const std::int64_t running = index - (c.all - c.running);  // negative: an init container
  const auto image = static_cast<std::size_t>(index);
  json.begin_object().field("name", fmt::format("c{}", index));
  json.field("image", image < shape.images.size() ? shape.images[image] : std::string());
  json.key("resources").begin_object().key("requests").begin_object();
  const auto write_request = [&](std::string_view resource, const Spread& s) {
    // Who is silent comes first, but whoever asks for something is not.
    const bool is_silent = running >= 0 && running < s.silent;
    if (!s.is_named || is_silent) return;
    const std::int64_t amount = running == -1 ? s.init : running == 0 ? s.first : 0;
    json.field(resource, quantity_text(resource, amount));
  };
  write_request("cpu", c.cpu);
  write_request("memory", c.memory);
  json.end_object().end_object();
  if (running == 0) {
    write_ports(json, shape);
    if (std::ranges::count(shape.required_features, "RestartAllContainersOnContainerExits") > 0) {
      json.key("restartPolicyRules").begin_array().begin_object();
      json.field("action", "RestartAllContainers").end_object().end_array();
    }
  }
  json.end_object();
}

// What the containers together do not say: at pod level, or as overhead.
void write_sums(JsonWriter& json, const PodShape& shape, const Containers& c) {
  const bool has_pod_level = c.cpu.is_pod_level || c.memory.is_pod_level;
  const auto is_at_pod_level = [&](std::string_view name) {
    return has_pod_level && core::is_pod_level_resource(name);
  };
  if (has_pod_level) {
    json.key("resources").begin_object().key("requests").begin_object();
    for (const auto& [name, amount] : shape.requests) {
      if (is_at_pod_level(name)) json.field(name, quantity_text(name, amount));
    }
    json.end_object().end_object();
  }
  json.key("overhead").begin_object();
  for (const auto& [name, amount] : shape.requests) {
    if (is_at_pod_level(name)) continue;
    const std::int64_t part = name == "cpu"      ? c.cpu.overhead
                              : name == "memory" ? c.memory.overhead
                                                 : amount;
    json.field(name, quantity_text(name, part));
  }
  json.end_object();
}

void write_containers(JsonWriter& json, const PodShape& shape, const Containers& c) {
  const std::int64_t init = c.all - c.running;
  json.key("initContainers").begin_array();
  for (std::int64_t i = 0; i < init; ++i) write_container(json, shape, c, i);
  json.end_array().key("containers").begin_array();
  for (std::int64_t i = init; i < c.all; ++i) write_container(json, shape, c, i);
  json.end_array();
  write_sums(json, shape, c);
}

// ---- volumes --------------------------------------------------------------------------------

void write_volume(JsonWriter& json, const core::VolumeRef& v, std::string_view pod,
                  std::size_t index) {
  std::string name = fmt::format("v{}", index);
  if (v.kind == core::VolumeKind::Ephemeral && v.name.size() > pod.size()) {
    name = v.name.substr(pod.size() + 1);  // the claim is named after pod and volume
  }
  json.begin_object().field("name", name);
  const auto source = [&](std::string_view kind, std::string_view field) {
    json.key(kind).begin_object().field(field, v.name).field("readOnly", v.read_only).end_object();
  };
  switch (v.kind) {
    case core::VolumeKind::Claim:
      source("persistentVolumeClaim", "claimName");
      break;
    case core::VolumeKind::GcePd:
      source("gcePersistentDisk", "pdName");
      break;
    case core::VolumeKind::AwsEbs:
      source("awsElasticBlockStore", "volumeID");
      break;
    case core::VolumeKind::Iscsi:
      source("iscsi", "iqn");
      break;
    case core::VolumeKind::Ephemeral:
      json.key("ephemeral").begin_object().end_object();
      break;
    case core::VolumeKind::Rbd:
      json.key("rbd").begin_object().field("pool", v.pool).field("image", v.image);
      write_texts(json, "monitors", v.monitors);
      json.field("readOnly", v.read_only).end_object();
      break;
  }
  json.end_object();
}

void write_volumes(JsonWriter& json, const PodShape& shape, std::string_view pod) {
  json.key("volumes").begin_array();
  for (std::size_t i = 0; i < shape.volumes.size(); ++i) {
    write_volume(json, shape.volumes[i], pod, i);
  }
  const auto containers = static_cast<std::size_t>(std::max(shape.container_count, 1));
  for (std::size_t i = containers; i < shape.images.size(); ++i) {
    json.begin_object().field("name", fmt::format("image{}", i)).key("image").begin_object();
    json.field("reference", shape.images[i]).end_object().end_object();
  }
  json.end_array();
}

// ---- rules ----------------------------------------------------------------------------------

void write_affinity_term(JsonWriter& json, const core::PodAffinityTerm& term) {
  json.begin_object();
  write_selector(json, "labelSelector", term.selector);
  json.field("topologyKey", term.topology_key);
  write_texts(json, "namespaces", term.namespaces);
  write_selector(json, "namespaceSelector", term.namespace_selector);
  json.end_object();
}

void write_pod_affinity(JsonWriter& json, std::string_view key,
                        const std::vector<core::PodAffinityTerm>& required,
                        const std::vector<core::PodAffinityTerm>& preferred) {
  json.key(key).begin_object();
  json.key("requiredDuringSchedulingIgnoredDuringExecution").begin_array();
  for (const core::PodAffinityTerm& term : required) write_affinity_term(json, term);
  json.end_array().key("preferredDuringSchedulingIgnoredDuringExecution").begin_array();
  for (const core::PodAffinityTerm& term : preferred) {
    json.begin_object().field("weight", term.weight).key("podAffinityTerm");
    write_affinity_term(json, term);
    json.end_object();
  }
  json.end_array().end_object();
}

void write_affinity(JsonWriter& json, const PodShape& shape) {
  json.key("nodeSelector").begin_object();
  for (const core::Requirement& r : shape.node_selector) json.field(r.key, r.values.front());
  json.end_object().key("affinity").begin_object().key("nodeAffinity").begin_object();
  if (shape.node_affinity) {
    json.key("requiredDuringSchedulingIgnoredDuringExecution").begin_object();
    write_node_terms(json, *shape.node_affinity);
    json.end_object();
  }
  json.key("preferredDuringSchedulingIgnoredDuringExecution").begin_array();
  for (const core::PreferredNodeTerm& p : shape.preferred_node) {
    json.begin_object().field("weight", p.weight).key("preference");
    write_node_term(json, p.term);
    json.end_object();
  }
  json.end_array().end_object();
  write_pod_affinity(json, "podAffinity", shape.required_affinity, shape.preferred_affinity);
  write_pod_affinity(json, "podAntiAffinity", shape.required_anti_affinity,
                     shape.preferred_anti_affinity);
  json.end_object();
}

void write_spread(JsonWriter& json, const PodShape& shape) {
  json.key("topologySpreadConstraints").begin_array();
  for (const core::SpreadConstraint& c : shape.spread) {
    json.begin_object().field("maxSkew", c.max_skew).field("topologyKey", c.topology_key);
    json.field("whenUnsatisfiable", c.hard ? "DoNotSchedule" : "ScheduleAnyway");
    write_selector(json, "labelSelector", c.selector);
    write_texts(json, "matchLabelKeys", c.match_label_keys);
    if (c.min_domains != 1) json.field("minDomains", c.min_domains);
    json.field("nodeAffinityPolicy", c.honor_node_affinity ? "Honor" : "Ignore");
    json.field("nodeTaintsPolicy", c.honor_node_taints ? "Honor" : "Ignore").end_object();
  }
  json.end_array();
}

void write_tolerations(JsonWriter& json, const PodShape& shape) {
  json.key("tolerations").begin_array();
  for (const core::Toleration& t : shape.tolerations) {
    json.begin_object().field("key", t.key).field("operator", t.exists ? "Exists" : "Equal");
    if (!t.value.empty()) json.field("value", t.value);
    if (t.effect) json.field("effect", effect_text(*t.effect));
    json.end_object();
  }
  json.end_array();
}

// ---- devices --------------------------------------------------------------------------------

void write_annotations(JsonWriter& json, const core::Pod& pod, const core::GpuRequest& gpu) {
  json.key("annotations").begin_object();
  const std::string amount = std::to_string(gpu.amount);
  if (gpu.kind == GpuAsk::ShareMilli) json.field("jogak.io/gpu-milli", amount);
  if (gpu.kind == GpuAsk::ShareMib) json.field("jogak.io/gpu-memory-mib", amount);
  if (gpu.kind == GpuAsk::Mig) json.field("jogak.io/mig-profile", gpu.mig_profile);
  if (gpu.kind != GpuAsk::None && gpu.kind != GpuAsk::Whole) {
    json.field("jogak.io/gpu-count", std::to_string(gpu.count));
  }
  if (!gpu.models.empty()) {
    json.field("jogak.io/gpu-models", fmt::format("{}", fmt::join(gpu.models, ",")));
  }
  if (pod.holds_known && !pod.holds.empty()) {
    json.field("jogak.io/gpu-holds", holds_text(pod.holds, gpu.kind));
  }
  json.end_object();
}

// What no Kubernetes object says, or not this way.
Result<void> check_expressible(const PodShape& shape) {
  if (!shape.node_name.empty()) return invalid("asks for node {} by name", shape.node_name);
  const bool whole = shape.gpu.kind == GpuAsk::Whole;
  if (whole && asked(shape, "nvidia.com/gpu") != shape.gpu.count) {
    return invalid("asks for {} GPUs, but for {} of nvidia.com/gpu", shape.gpu.count,
                   asked(shape, "nvidia.com/gpu"));
  }
  const auto is_plain = [](const core::Requirement& r) {
    return r.op == core::SelectorOp::In && r.values.size() == 1;
  };
  if (!std::ranges::all_of(shape.node_selector, is_plain)) return invalid("an odd node selector");
  return {};
}

void write_metadata(JsonWriter& json, const core::Pod& pod, const core::Identity& identity,
                    const core::GpuRequest& gpu) {
  json.key("metadata").begin_object().field("name", pod.name).field("namespace", identity.ns);
  if (!pod.uid.empty()) json.field("uid", pod.uid);
  if (pod.terminating) json.field("deletionTimestamp", "1970-01-01T00:00:00Z");
  write_labels(json, "labels", identity.labels);
  write_annotations(json, pod, gpu);
  if (!identity.owner_kind.empty()) {
    json.key("ownerReferences").begin_array().begin_object().field("kind", identity.owner_kind);
    json.field("name", identity.owner_name).field("controller", true).end_object().end_array();
  }
  json.end_object();
}

void write_status(JsonWriter& json, const Cluster& cluster, const core::Pod& pod) {
  json.key("status").begin_object();
  if (pod.nominated.valid()) {
    json.field("nominatedNodeName", cluster.text(cluster.node(pod.nominated).name));
  }
  if (pod.start_time != core::kNoTime) json.field("startTime", time_text(pod.start_time));
  if (pod.preemption_victim) {
    json.key("conditions").begin_array().begin_object().field("type", "DisruptionTarget");
    json.field("status", "True").field("reason", "PreemptionByScheduler").end_object().end_array();
  }
  json.end_object();
}

}  // namespace

std::string holds_text(std::span<const core::GpuHold> holds, core::GpuAsk kind) {
  JsonWriter list;
  list.begin_array();
  for (const core::GpuHold& hold : holds) {
    list.begin_object().field("gpu", hold.gpu);
    if (kind == GpuAsk::ShareMilli) list.field("milli", hold.amount);
    if (kind == GpuAsk::ShareMib) list.field("mib", hold.amount);
    if (kind == GpuAsk::Mig) list.field("migStart", hold.mig_start);
    list.end_object();
  }
  list.end_array();
  return list.take();
}

Result<void> write_pod(JsonWriter& json, const Cluster& cluster, core::PodId id,
                       std::string_view scheduler_name) {
  const core::Pod& pod = cluster.pod(id);
  const PodShape& shape = cluster.shape_of(id).spec;
  const auto in_pod = [&](Error error) {
    return in_context("pod " + cluster.pod_full_name(id), std::move(error));
  };
  if (auto ok = check_expressible(shape); !ok) return in_pod(std::move(ok).error());
  auto containers = containers_of(shape);
  if (!containers) return in_pod(std::move(containers).error());

  json.begin_object().field("apiVersion", "v1").field("kind", "Pod");
  write_metadata(json, pod, cluster.identity_of(id), shape.gpu);
  json.key("spec").begin_object();
  if (!scheduler_name.empty()) json.field("schedulerName", scheduler_name);
  if (pod.state == core::PodState::Placed) {
    json.field("nodeName", cluster.text(cluster.node(pod.node).name));
  }
  if (pod.state == core::PodState::Orphan) json.field("nodeName", cluster.text(pod.orphan_node));
  json.field("priority", shape.priority);
  const bool never = shape.preemption == core::PreemptionPolicy::Never;
  json.field("preemptionPolicy", never ? "Never" : "PreemptLowerPriority");
  if (std::ranges::count(shape.required_features, "UserNamespacesHostNetworkSupport") > 0) {
    json.field("hostNetwork", true).field("hostUsers", false);
  }
  write_containers(json, shape, *containers);
  write_volumes(json, shape, pod.name);
  write_affinity(json, shape);
  write_spread(json, shape);
  write_tolerations(json, shape);
  json.key("schedulingGates").begin_array();
  for (const std::string& gate : shape.gates) json.begin_object().field("name", gate).end_object();
  json.end_array().end_object();
  write_status(json, cluster, pod);
  json.end_object();
  return {};
}

}  // namespace jogak::importer
