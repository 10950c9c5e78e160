// SPDX-License-Identifier: Apache-2.0
// Node and pod entries of a scenario file.
#include "sim/scenario_fields.h"

#include <algorithm>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "base/checked.h"
#include "base/parse_number.h"
#include "base/units.h"
#include "core/model/pod_requests.h"

namespace jogak::sim {

namespace {

constexpr std::int64_t kPodsPerNode = 110;  // the kubelet's default
constexpr std::int64_t kGpusMax = static_cast<std::int64_t>(core::kMaxGpus);

void set_amount(core::ResourceList& list, std::string_view name, std::int64_t amount) {
  const auto at = std::ranges::lower_bound(list, name, {},
                                           [](const auto& e) { return std::string_view(e.first); });
  if (at != list.end() && at->first == name) {
    at->second = amount;
  } else {
    list.emplace(at, std::string(name), amount);
  }
}

// As in a real cluster whole devices are an extended resource too: on nodes that do not say which
// devices they have it is all there is to count by, and nodes without any have none. What the file
// says of it itself goes before.
void count_devices(core::ResourceList& list, std::int64_t devices) {
  constexpr std::string_view kGpuResource = "nvidia.com/gpu";
  const bool is_said =
      std::ranges::any_of(list, [&](const auto& entry) { return entry.first == kGpuResource; });
  if (devices > 0 && !is_said) set_amount(list, kGpuResource, devices);
}

// Other resources by name; cpu, memory and pods have fields of their own.
void read_amounts(YamlFields& fields, std::string_view name, core::ResourceList& list) {
  auto amounts = fields.map(name);
  if (!amounts) return;
  for (const auto& [key, text] : fields.pairs(name)) {
    if (key == "cpu" || key == "memory" || key == "pods") {
      fields.bad(name, key + " has a field of its own");
      return;
    }
    set_amount(list, key, amounts->quantity(key, 0));
  }
}

core::TaintEffect read_effect(YamlFields& fields, core::TaintEffect fallback) {
  const std::string word = fields.text("effect", "");
  if (word.empty()) return fallback;
  if (word == "NoSchedule") return core::TaintEffect::NoSchedule;
  if (word == "PreferNoSchedule") return core::TaintEffect::PreferNoSchedule;
  if (word == "NoExecute") return core::TaintEffect::NoExecute;
  fields.bad("effect", "expected NoSchedule, PreferNoSchedule or NoExecute");
  return fallback;
}

// ---- devices of a node ----

void link(core::NodeSpec& spec, std::size_t a, std::size_t b) {
  if (a == b) return;
  spec.gpus[a].nvlink_mask |= 1U << b;
  spec.gpus[b].nvlink_mask |= 1U << a;
}

void read_nvlink(YamlFields& gpu, core::NodeSpec& spec) {
  const auto node = gpu.take("nvlink");
  if (!node) return;
  const std::size_t count = spec.gpus.size();
  if (node->IsScalar() && node->Scalar() == "all") {
    for (std::size_t a = 0; a < count; ++a) {
      for (std::size_t b = 0; b < a; ++b) link(spec, a, b);
    }
    return;
  }
  if (node->IsScalar() && node->Scalar() == "pairs") {
    for (std::size_t a = 0; a + 1 < count; a += 2) link(spec, a, a + 1);
    return;
  }
  if (!node->IsSequence()) return gpu.bad("nvlink", "expected all, pairs or a list of groups");
  for (const YAML::Node& group : *node) {
    std::vector<std::size_t> members;
    if (!group.IsSequence()) return gpu.bad("nvlink", "a group is a list of device indices");
    for (const YAML::Node& item : group) {
      const auto index =
          parse_int(item.IsScalar() ? item.Scalar() : "", 0, static_cast<std::int64_t>(count) - 1);
      if (!index) return gpu.bad("nvlink", "device index: " + index.error().what);
      members.push_back(static_cast<std::size_t>(*index));
      if (members.size() > core::kMaxGpus) return gpu.bad("nvlink", "too many devices in a group");
    }
    for (const std::size_t a : members) {
      for (const std::size_t b : members) link(spec, a, b);
    }
  }
}

void read_mig(YamlFields& gpu, core::NodeSpec& spec) {
  auto mig = gpu.map("mig");
  if (!mig) return;
  std::vector<std::int64_t> devices;
  if (mig->has("devices")) devices = mig->integers("devices", 0, kGpusMax - 1);
  const bool is_dynamic = mig->flag("dynamic", !mig->has("instances"));
  std::vector<core::MigInstanceSpec> instances;
  for (YamlFields& entry : mig->maps("instances")) {
    core::MigInstanceSpec instance;
    instance.profile = entry.required_text("profile");
    instance.start = static_cast<std::int32_t>(entry.integer("start", 0, 0, 15));
    entry.finish();
    instances.push_back(std::move(instance));
  }
  mig->finish();
  if (devices.empty()) {
    for (std::size_t i = 0; i < spec.gpus.size(); ++i) {
      devices.push_back(static_cast<std::int64_t>(i));
    }
  }
  for (const std::int64_t i : devices) {
    if (static_cast<std::size_t>(i) >= spec.gpus.size()) {
      return mig->bad("devices", fmt::format("there is no device {}", i));
    }
    core::GpuSpec& device = spec.gpus[static_cast<std::size_t>(i)];
    device.mig_enabled = true;
    device.mig_dynamic = is_dynamic;
    device.mig_instances = instances;
  }
}

void read_gpus(YamlFields& fields, core::NodeSpec& spec) {
  auto gpu = fields.map("gpu");
  if (!gpu) return;
  const std::int64_t count = gpu->integer("count", 1, 0, kGpusMax);
  spec.gpu_model = gpu->required_text("model");
  spec.gpus.resize(static_cast<std::size_t>(count));
  const std::int64_t memory_mib = gpu->quantity("memory", 0) / kBytesPerMib;
  if (memory_mib > 1'000'000'000) gpu->bad("memory", "too large");
  const std::vector<std::int64_t> numa = gpu->integers("numa", -1, 1023);
  if (!numa.empty() && numa.size() != spec.gpus.size()) {
    return gpu->bad("numa", fmt::format("expected {} numbers, one per device", count));
  }
  for (std::size_t i = 0; i < spec.gpus.size(); ++i) {
    spec.gpus[i].memory_mib = static_cast<std::int32_t>(memory_mib);
    if (!numa.empty()) spec.gpus[i].numa_node = static_cast<std::int32_t>(numa[i]);
  }
  read_nvlink(*gpu, spec);
  read_mig(*gpu, spec);
  gpu->finish();
}

// ---- constraints of a pod ----

std::optional<core::SelectorOp> selector_op(std::string_view word) {
  if (word == "In") return core::SelectorOp::In;
  if (word == "NotIn") return core::SelectorOp::NotIn;
  if (word == "Exists") return core::SelectorOp::Exists;
  if (word == "DoesNotExist") return core::SelectorOp::DoesNotExist;
  if (word == "Gt") return core::SelectorOp::Gt;
  if (word == "Lt") return core::SelectorOp::Lt;
  return std::nullopt;
}

core::Requirement read_requirement(YamlFields& fields) {
  core::Requirement requirement;
  requirement.key = fields.required_text("key");
  const std::string word = fields.text("op", "In");
  if (const auto op = selector_op(word)) {
    requirement.op = *op;
  } else {
    fields.bad("op", "expected In, NotIn, Exists, DoesNotExist, Gt or Lt");
  }
  requirement.values = fields.texts("values");
  const bool needs_none = requirement.op == core::SelectorOp::Exists ||
                          requirement.op == core::SelectorOp::DoesNotExist;
  const bool needs_one =
      requirement.op == core::SelectorOp::Gt || requirement.op == core::SelectorOp::Lt;
  if (needs_none != requirement.values.empty() || (needs_one && requirement.values.size() != 1)) {
    fields.bad("values", needs_none  ? "must be left out for this op"
                         : needs_one ? "expected one number"
                                     : "expected at least one");
  }
  return requirement;
}

core::LabelSelector read_selector(YamlFields& fields, std::string_view name) {
  core::LabelSelector selector;
  for (auto& [key, value] : fields.pairs(name)) {
    selector.requirements.push_back({key, core::SelectorOp::In, {value}});
  }
  if (selector.requirements.empty()) fields.bad(name, "is required: labels of the other pods");
  return selector;
}

void read_node_affinity(YamlFields& fields, core::PodShape& shape) {
  core::NodeSelectorTerm required;
  for (YamlFields& entry : fields.maps("node_affinity")) {
    const std::int64_t weight = entry.integer("weight", 0, 0, 100);
    core::Requirement requirement = read_requirement(entry);
    entry.finish();
    if (weight == 0) {
      required.labels.push_back(std::move(requirement));
    } else {
      shape.preferred_node.push_back(
          {static_cast<std::int32_t>(weight), {{std::move(requirement)}, {}}});
    }
  }
  if (!required.labels.empty()) shape.node_affinity = {std::move(required)};
}

void read_pod_affinity(YamlFields& fields, std::string_view name, const std::string& ns,
                       std::vector<core::PodAffinityTerm>& required,
                       std::vector<core::PodAffinityTerm>& preferred) {
  for (YamlFields& entry : fields.maps(name)) {
    core::PodAffinityTerm term;
    term.weight = static_cast<std::int32_t>(entry.integer("weight", 0, 0, 100));
    term.topology_key = entry.text("topology", kHostnameLabel);
    term.selector = read_selector(entry, "labels");
    term.namespaces = {ns};
    entry.finish();
    (term.weight == 0 ? required : preferred).push_back(std::move(term));
  }
}

void read_spread(YamlFields& fields, core::PodShape& shape) {
  for (YamlFields& entry : fields.maps("spread")) {
    core::SpreadConstraint constraint;
    constraint.topology_key = entry.text("topology", kHostnameLabel);
    constraint.max_skew = static_cast<std::int32_t>(entry.integer("max_skew", 1, 1, 1'000'000));
    constraint.hard = entry.flag("hard", true);
    constraint.selector = read_selector(entry, "labels");
    entry.finish();
    shape.spread.push_back(std::move(constraint));
  }
}

void read_tolerations(YamlFields& fields, core::PodShape& shape) {
  for (YamlFields& entry : fields.maps("tolerations")) {
    core::Toleration toleration;
    toleration.key = entry.text("key", "");
    toleration.exists = !entry.has("value");
    toleration.value = entry.text("value", "");
    if (entry.has("effect")) {
      toleration.effect = read_effect(entry, core::TaintEffect::NoSchedule);
    }
    if (toleration.key.empty() && !toleration.exists) {
      entry.bad("key", "is required where there is a value");
    }
    entry.finish();
    shape.tolerations.push_back(std::move(toleration));
  }
}

void read_requests(YamlFields& fields, core::PodShape& shape) {
  shape.nonzero_cpu = core::kDefaultCpuMilli;
  shape.nonzero_memory = core::kDefaultMemoryBytes;
  if (fields.has("cpu")) {
    shape.nonzero_cpu = fields.milli("cpu", 0);
    set_amount(shape.requests, "cpu", shape.nonzero_cpu);
  }
  if (fields.has("memory")) {
    shape.nonzero_memory = fields.quantity("memory", 0);
    set_amount(shape.requests, "memory", shape.nonzero_memory);
  }
  read_amounts(fields, "requests", shape.requests);
}

}  // namespace

core::NodeSpec read_node_spec(YamlFields& fields) {
  core::NodeSpec spec;
  spec.name = fields.required_text("name");
  spec.allocatable = {{"cpu", fields.milli("cpu", 0)},
                      {"memory", fields.quantity("memory", 0)},
                      {"pods", fields.integer("pods", kPodsPerNode, 0, 1'000'000)}};
  read_amounts(fields, "resources", spec.allocatable);
  spec.labels = fields.pairs("labels");
  spec.unschedulable = fields.flag("unschedulable", false);
  for (YamlFields& entry : fields.maps("taints")) {
    core::Taint taint;
    taint.key = entry.required_text("key");
    taint.value = entry.text("value", "");
    taint.effect = read_effect(entry, core::TaintEffect::NoSchedule);
    entry.finish();
    spec.taints.push_back(std::move(taint));
  }
  read_gpus(fields, spec);
  count_devices(spec.allocatable,
                std::ranges::count(spec.gpus, false, &core::GpuSpec::mig_enabled));
  return spec;
}

core::GpuRequest read_gpu_request(YamlFields& fields, std::string_view name) {
  core::GpuRequest request;
  if (!fields.has(name)) return request;
  const auto node = fields.take(name);
  if (node->IsScalar()) {
    request.count = static_cast<std::int32_t>(fields.integer(name, 0, 0, kGpusMax));
    if (request.count > 0) request.kind = core::GpuAsk::Whole;
    return request;
  }
  auto gpu = fields.map(name);
  const int forms = (gpu->has("whole") ? 1 : 0) + (gpu->has("share") ? 1 : 0) +
                    (gpu->has("memory") ? 1 : 0) + (gpu->has("mig") ? 1 : 0);
  if (forms != 1) {
    fields.bad(name, "expected one of whole, share, memory, mig");
    return request;
  }
  if (gpu->has("whole")) {
    request.kind = core::GpuAsk::Whole;
    request.count = static_cast<std::int32_t>(gpu->integer("whole", 1, 1, kGpusMax));
  } else {
    request.count = static_cast<std::int32_t>(gpu->integer("count", 1, 1, 7 * kGpusMax));
  }
  if (gpu->has("share")) {
    request.kind = core::GpuAsk::ShareMilli;
    const std::int64_t milli = gpu->milli("share", 1);
    if (milli < 1 || milli > 999) gpu->bad("share", "expected a part of a device, 0.001 to 0.999");
    request.amount = static_cast<std::int32_t>(std::clamp<std::int64_t>(milli, 1, 999));
  }
  if (gpu->has("memory")) {
    request.kind = core::GpuAsk::ShareMib;
    const std::int64_t mib = ceil_div(gpu->quantity("memory", 0), kBytesPerMib);
    if (mib < 1 || mib > 1'000'000) gpu->bad("memory", "expected a device's memory, like 8Gi");
    request.amount = static_cast<std::int32_t>(std::clamp<std::int64_t>(mib, 1, 1'000'000));
  }
  if (gpu->has("mig")) {
    request.kind = core::GpuAsk::Mig;
    request.mig_profile = gpu->required_text("mig");
  }
  request.models = gpu->texts("models");
  std::ranges::sort(request.models);
  gpu->finish();
  return request;
}

core::PodSpec read_pod_spec(YamlFields& fields) {
  core::PodSpec spec;
  core::PodShape& shape = spec.shape;
  spec.name = fields.required_text("name");
  spec.ns = fields.text("namespace", "default");
  spec.labels = fields.pairs("labels");
  read_requests(fields, shape);
  shape.gpu = read_gpu_request(fields, "gpu");
  if (shape.gpu.kind == core::GpuAsk::Whole) count_devices(shape.requests, shape.gpu.count);
  shape.priority =
      static_cast<std::int32_t>(fields.integer("priority", 0, -1'000'000'000, 2'000'000'000));
  if (!fields.flag("preempts", true)) shape.preemption = core::PreemptionPolicy::Never;
  for (auto& [key, value] : fields.pairs("node_selector")) {
    shape.node_selector.push_back({key, core::SelectorOp::In, {value}});
  }
  read_tolerations(fields, shape);
  read_node_affinity(fields, shape);
  read_pod_affinity(fields, "pod_affinity", spec.ns, shape.required_affinity,
                    shape.preferred_affinity);
  read_pod_affinity(fields, "pod_anti_affinity", spec.ns, shape.required_anti_affinity,
                    shape.preferred_anti_affinity);
  read_spread(fields, shape);
  return spec;
}

}  // namespace jogak::sim
