// SPDX-License-Identifier: Apache-2.0
// What a node is, as opposed to what is on it: checking and taking over a NodeSpec, and the checks
// of a PodSpec that guard the ledger.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "core/model/cluster.h"
#include "core/model/mig.h"

namespace jogak::core {
namespace {

Result<void> check_resources(std::string_view owner, const ResourceList& list) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto& [name, amount] = list[i];
    if (name.empty()) return invalid("{}: a resource without a name", owner);
    if (amount < 0) return invalid("{}: {} is {}, must be 0 or more", owner, name, amount);
    if (amount > kMaxAmount) {
      return invalid("{}: {} is {}, more than {} is not accepted", owner, name, amount, kMaxAmount);
    }
    if (i > 0 && !(list[i - 1].first < name)) {
      return invalid("{}: resources must be sorted and unique, see {}", owner, name);
    }
  }
  return {};
}

Result<void> check_labels(std::string_view owner, const Labels& labels) {
  for (std::size_t i = 1; i < labels.size(); ++i) {
    if (!(labels[i - 1].first < labels[i].first)) {
      return invalid("{}: labels must be sorted and unique, see {}", owner, labels[i].first);
    }
  }
  return {};
}

Result<void> check_gpu(std::string_view node, std::size_t index, const GpuSpec& gpu,
                       const MigModel* model) {
  if (gpu.memory_mib < 0) {
    return invalid("node {}: gpu {}: memory is {} MiB, must be 0 or more", node, index,
                   gpu.memory_mib);
  }
  if (!gpu.mig_enabled && !gpu.mig_instances.empty()) {
    return invalid("node {}: gpu {}: has MIG instances but MIG is off", node, index);
  }
  if (!gpu.mig_enabled) return {};
  if (model == nullptr) {
    return invalid("node {}: gpu {}: MIG is on, but the GPU model is not one with a known geometry",
                   node, index);
  }
  std::uint16_t used = 0;
  for (const MigInstanceSpec& instance : gpu.mig_instances) {
    const std::int32_t p = find_mig_profile(*model, instance.profile);
    if (p < 0) {
      return invalid("node {}: gpu {}: {} is not a MIG profile of {}", node, index,
                     instance.profile, model->key);
    }
    const MigProfile& profile = model->profiles[static_cast<std::size_t>(p)];
    if (instance.start < 0 || instance.start >= 16 ||
        (mig_free_starts(profile, used) >> instance.start & 1) == 0) {
      return invalid("node {}: gpu {}: {} cannot start at slice {}", node, index, instance.profile,
                     instance.start);
    }
    used = static_cast<std::uint16_t>(used | mig_mask(instance.start, profile.size));
  }
  return {};
}

const MigModel* mig_model_of(std::string_view gpu_model) {
  const auto index = find_mig_model(gpu_model);
  return index ? &mig_models()[*index] : nullptr;
}

}  // namespace

std::uint64_t Cluster::spec_digest(const NodeSpec& spec) {
  Digest d;
  d.add(spec.labels.size());
  for (const auto& [key, value] : spec.labels) d.add(key).add(value);
  d.add(spec.taints.size());
  for (const core::Taint& taint : spec.taints) d.add(taint.key).add(taint.value).add(taint.effect);
  d.add(spec.unschedulable).add(spec.order).add(spec.allocatable.size());
  for (const auto& [name, amount] : spec.allocatable) d.add(name).add(amount);
  d.add(spec.images.size());
  for (const ImageSpec& image : spec.images) {
    d.add(image.size_bytes).add(image.names.size());
    for (const std::string& name : image.names) d.add(name);
  }
  d.add(spec.declared_features.size());
  for (const std::string& feature : spec.declared_features) d.add(feature);
  d.add(spec.gpu_model).add(spec.gpus.size());
  for (const GpuSpec& gpu : spec.gpus) {
    d.add(gpu.uuid).add(gpu.memory_mib).add(gpu.numa_node).add(gpu.nvlink_mask).add(gpu.health);
    d.add(gpu.mig_enabled).add(gpu.mig_dynamic).add(gpu.mig_instances.size());
    for (const MigInstanceSpec& instance : gpu.mig_instances) {
      d.add(instance.profile).add(instance.start);
    }
  }
  return d.value();
}

Result<void> Cluster::check_node(const NodeSpec& spec) const {
  if (spec.name.empty()) return invalid("node: name is empty");
  const std::string owner = "node " + spec.name;
  JOGAK_TRY_VOID(check_labels(owner, spec.labels));
  JOGAK_TRY_VOID(check_resources(owner, spec.allocatable));
  if (spec.gpus.size() > kMaxGpus) {
    return invalid("node {}: {} GPUs, more than {} are not supported", spec.name, spec.gpus.size(),
                   kMaxGpus);
  }
  const MigModel* model = mig_model_of(spec.gpu_model);
  for (std::size_t i = 0; i < spec.gpus.size(); ++i) {
    JOGAK_TRY_VOID(check_gpu(spec.name, i, spec.gpus[i], model));
  }
  return {};
}

namespace {

Result<void> check_gpu_request(const std::string& owner, const GpuRequest& gpu) {
  if (gpu.kind == GpuAsk::None) return {};
  // More whole devices than any node has are counted like any other resource, and refused so.
  const bool has_limit = gpu.kind != GpuAsk::Whole;
  if (gpu.count < 1 || (has_limit && gpu.count > static_cast<std::int32_t>(kMaxGpus))) {
    return invalid("{}: asks for {} devices, must be 1 to {}", owner, gpu.count, kMaxGpus);
  }
  if (gpu.kind == GpuAsk::ShareMilli && (gpu.amount < 1 || gpu.amount > 1000)) {
    return invalid("{}: a GPU share of {} thousandths, must be 1 to 1000", owner, gpu.amount);
  }
  if (gpu.kind == GpuAsk::ShareMib && gpu.amount < 1) {
    return invalid("{}: a GPU share of {} MiB, must be 1 or more", owner, gpu.amount);
  }
  if (gpu.kind == GpuAsk::Mig && gpu.mig_profile.empty()) {
    return invalid("{}: a MIG request without a profile", owner);
  }
  if ((gpu.kind == GpuAsk::Whole || gpu.kind == GpuAsk::Mig) && gpu.amount != 0) {
    return invalid("{}: an amount of {} beside whole GPUs or MIG instances", owner, gpu.amount);
  }
  return {};
}

}  // namespace

Result<void> Cluster::check_pod(const PodSpec& spec) const {
  if (spec.name.empty()) return invalid("pod: name is empty");
  const std::string owner = "pod " + spec.ns + "/" + spec.name;
  JOGAK_TRY_VOID(check_labels(owner, spec.labels));
  JOGAK_TRY_VOID(check_resources(owner, spec.shape.requests));
  for (const std::int64_t amount : {spec.shape.nonzero_cpu, spec.shape.nonzero_memory}) {
    if (amount < 0 || amount > kMaxAmount) {
      return invalid("{}: a request of {} for scores, must be 0 to {}", owner, amount, kMaxAmount);
    }
  }
  JOGAK_TRY_VOID(check_gpu_request(owner, spec.shape.gpu));
  if (!spec.holds || spec.bound_node.empty()) return {};
  for (const GpuHold& hold : *spec.holds) {
    if (hold.gpu < 0 || hold.mig_start > 15 || hold.amount < 0) {
      return invalid("{}: holds gpu {} in an impossible way", owner, hold.gpu);
    }
  }
  return {};
}

// Whether a pod with this request can hold these devices of the node as far as the facts tell.
bool Cluster::plausible(const GpuRequest& ask, const Node& node, std::span<const GpuHold> holds) {
  if (ask.kind == GpuAsk::None || node.gpus.empty()) return true;
  if (holds.size() != static_cast<std::size_t>(ask.count)) return false;
  for (std::size_t i = 0; i < holds.size(); ++i) {
    const GpuHold& hold = holds[i];
    if (static_cast<std::size_t>(hold.gpu) >= node.gpus.size()) return false;
    const bool is_share = ask.kind == GpuAsk::ShareMilli || ask.kind == GpuAsk::ShareMib;
    if (is_share && hold.amount < 1) return false;
    if (i == 0 || holds[i - 1].gpu != hold.gpu) continue;
    if (ask.kind != GpuAsk::Mig || holds[i - 1].mig_start == hold.mig_start) return false;
  }
  return true;
}

namespace {

// What the node could give if nobody were on it.
std::uint64_t capacity_digest(const Node& node) {
  Digest d;
  d.add(node.cpu_allocatable).add(node.memory_allocatable).add(node.storage_allocatable);
  d.add(node.pods_allocatable).add(node.gpu_model.value);
  for (const ScalarAmount& s : node.scalars) {
    if (s.allocatable != 0) d.add(s.id.value).add(s.allocatable);
  }
  for (const Gpu& g : node.gpus) {
    d.add(g.memory_mib).add(g.health).add(g.mig_enabled).add(g.mig_dynamic);
    d.add(g.numa_node).add(g.nvlink_mask);
  }
  for (const MigSlot& s : node.mig_slots) d.add(s.gpu).add(s.profile).add(s.start);
  return d.value();
}

}  // namespace

void Cluster::set_node_facts(Node& node, const NodeSpec& spec, bool is_new) {
  const std::uint64_t capacity = capacity_digest(node);
  if (node.order != spec.order) {
    node.order = spec.order;
    ++topology_version_;
  }
  node.unschedulable = spec.unschedulable;
  const std::vector<NodeLabel> old_labels = std::exchange(node.labels, {});
  const bool same_taints = node.taints == spec.taints;
  node.taints = spec.taints;
  for (const auto& [key, value] : spec.labels) {
    node.labels.push_back({symbols_.intern(key), symbols_.intern(value)});
  }
  std::sort(node.labels.begin(), node.labels.end());
  node.labels.shrink_to_fit();
  if (!is_new && (node.labels != old_labels || !same_taints)) ++labels_version_;
  node.features.clear();
  for (const std::string& f : spec.declared_features) node.features.push_back(symbols_.intern(f));
  node.gpu_model = symbols_.intern(spec.gpu_model);
  set_node_capacity(node, spec);
  set_node_images(node, spec);
  set_node_gpus(node, spec);
  if (!is_new && capacity_digest(node) != capacity) ++capacity_version_;
  touch(node);
  node.static_version = node.version;
}

void Cluster::set_node_capacity(Node& node, const NodeSpec& spec) {
  node.cpu_allocatable = node.memory_allocatable = 0;
  node.storage_allocatable = node.pods_allocatable = 0;
  for (ScalarAmount& s : node.scalars) s.allocatable = 0;
  for (const auto& [name, amount] : spec.allocatable) {
    if (name == "cpu") {
      node.cpu_allocatable = amount;
    } else if (name == "memory") {
      node.memory_allocatable = amount;
    } else if (name == "ephemeral-storage") {
      node.storage_allocatable = amount;
    } else if (name == "pods") {
      node.pods_allocatable = amount;
    } else {
      const ScalarId id = scalar_id(name);
      auto at = std::lower_bound(node.scalars.begin(), node.scalars.end(), id,
                                 [](const ScalarAmount& s, ScalarId x) { return s.id < x; });
      if (at == node.scalars.end() || at->id != id) at = node.scalars.insert(at, {id, 0, 0});
      at->allocatable = amount;
    }
  }
  std::erase_if(node.scalars,
                [](const ScalarAmount& s) { return s.allocatable == 0 && s.requested == 0; });
}

void Cluster::set_node_images(Node& node, const NodeSpec& spec) {
  for (const ImageId image : node.images) --images_[image.value].node_count;
  node.images.clear();
  for (const ImageSpec& image : spec.images) {
    for (const std::string& name : image.names) {
      const Symbol symbol = symbols_.intern(name);
      auto it = image_by_name_.find(symbol.value);
      if (it == image_by_name_.end()) {
        it = image_by_name_
                 .emplace(symbol.value, ImageId{static_cast<std::uint32_t>(images_.size())})
                 .first;
        images_.push_back({symbol, image.size_bytes, 0});
      }
      const auto at = std::lower_bound(node.images.begin(), node.images.end(), it->second);
      if (at != node.images.end() && *at == it->second) continue;
      node.images.insert(at, it->second);
      ImageInfo& info = images_[it->second.value];
      // The size is the first node's, while any node has it.
      if (info.node_count == 0) info.size_bytes = image.size_bytes;
      ++info.node_count;
    }
  }
}

std::optional<ImageId> Cluster::find_image(std::string_view name) const {
  Symbol symbol;
  if (!symbols_.find(name, symbol)) return std::nullopt;
  const auto it = image_by_name_.find(symbol.value);
  if (it == image_by_name_.end()) return std::nullopt;
  return it->second;
}

void Cluster::set_node_gpus(Node& node, const NodeSpec& spec) {
  node.gpus.clear();
  node.mig_slots.clear();
  node.gpus.reserve(spec.gpus.size());
  const auto model = find_mig_model(spec.gpu_model);
  for (std::size_t i = 0; i < spec.gpus.size(); ++i) {
    const GpuSpec& from = spec.gpus[i];
    Gpu gpu;
    gpu.memory_mib = from.memory_mib;
    gpu.capacity_units = std::int64_t{1000} * std::max(from.memory_mib, 1);
    gpu.free_units = gpu.capacity_units;
    gpu.numa_node = from.numa_node;
    gpu.nvlink_mask = from.nvlink_mask;
    gpu.health = from.health;
    gpu.mig_enabled = from.mig_enabled;
    gpu.mig_dynamic = from.mig_dynamic;
    if (from.mig_enabled && model) gpu.mig_model = *model;
    node.gpus.push_back(gpu);
    if (!from.mig_enabled || from.mig_dynamic) continue;
    for (const MigInstanceSpec& instance : from.mig_instances) {
      const std::int32_t profile = find_mig_profile(mig_models()[*model], instance.profile);
      node.mig_slots.push_back({static_cast<std::int16_t>(i), static_cast<std::int16_t>(profile),
                                static_cast<std::int16_t>(instance.start)});
    }
  }
  rebook_devices(node);
}

}  // namespace jogak::core
