// SPDX-License-Identifier: Apache-2.0
// One pass over the GPUs by MIG strategy, then shares. What cannot be offered is left out with a
// line that says so: one odd GPU never takes the others away.
#include "agent/plugin/inventory.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "agent/model/mig_devices.h"
#include "base/parse_number.h"

namespace jogak::agent {

namespace {

constexpr std::string_view kGpuResource = "nvidia.com/gpu";
constexpr std::string_view kMigPrefix = "nvidia.com/mig-";
constexpr std::size_t kResourceNameMax = 63;
constexpr int kMpsClientsMax = 48;
constexpr int kMpsClientsMaxOld = 16;  // before Volta

class Maker {
 public:
  Maker(const nvml::NodeFacts& facts, const PluginConfig& config, const UnhealthyReasons& unhealthy)
      : facts_(facts), config_(config), unhealthy_(unhealthy) {}

  Inventory make() {
    switch (config_.mig_strategy) {
      case MigStrategy::None:
        for (const nvml::GpuFacts& gpu : facts_.gpus) add_gpu(gpu);
        break;
      case MigStrategy::Single:
        add_single();
        break;
      case MigStrategy::Mixed:
        for (const nvml::GpuFacts& gpu : facts_.gpus) {
          if (gpu.mig_enabled) {
            add_mixed(gpu);
          } else {
            add_gpu(gpu);
          }
        }
        break;
    }
    for (auto& [name, resource] : resources_) share(std::move(resource));
    std::ranges::sort(result_.resources, {}, &PluginResource::name);
    return std::move(result_);
  }

 private:
  template <class... Args>
  void problem(fmt::format_string<Args...> text, Args&&... args) {
    result_.problems.push_back(fmt::format(text, std::forward<Args>(args)...));
  }

  void set_health(PluginDevice& device, const nvml::GpuFacts& gpu) const {
    const auto mark = [&device](std::string reason) {
      device.is_healthy = false;
      device.reason = std::move(reason);
    };
    if (gpu.is_lost) {
      return mark(gpu.lost_reason.empty() ? "the gpu does not answer" : gpu.lost_reason);
    }
    for (const std::string* const uuid : {&device.gpu_uuid, &device.uuid}) {
      if (const auto it = unhealthy_.find(*uuid); it != unhealthy_.end()) return mark(it->second);
    }
  }

  PluginDevice device_of(const nvml::GpuFacts& gpu) const {
    PluginDevice device;
    device.gpu_uuid = gpu.uuid;
    device.gpu = gpu.index;
    device.minor = gpu.minor.optional();
    // Below zero is the system's word for "near no node".
    if (gpu.numa_node && *gpu.numa_node >= 0) device.numa_node = *gpu.numa_node;
    return device;
  }

  PluginResource& resource(const std::string& name, std::string_view profile) {
    PluginResource& resource = resources_[name];
    if (resource.name.empty()) {
      resource.name = name;
      resource.base_name = name;
      resource.profile = profile;
    }
    return resource;
  }

  void add_gpu(const nvml::GpuFacts& gpu) {
    if (gpu.uuid.empty()) {
      return problem("gpu {} was lost before it could be named; it is left out", gpu.index);
    }
    PluginDevice device = device_of(gpu);
    device.id = device.uuid = gpu.uuid;
    device.index = std::to_string(gpu.index);
    set_health(device, gpu);
    resource(std::string(kGpuResource), "").devices.push_back(std::move(device));
  }

  void add_mig(const nvml::GpuFacts& gpu, const nvml::MigInstanceFacts& instance,
               const std::string& name) {
    PluginDevice device = device_of(gpu);
    device.id = device.uuid = instance.uuid;
    device.index = fmt::format("{}:{}", gpu.index, instance.index);
    device.gi_id = instance.gi_id;
    device.ci_id = instance.ci_id;
    set_health(device, gpu);
    resource(name, instance.profile).devices.push_back(std::move(device));
  }

  // By index.
  static std::vector<const nvml::MigInstanceFacts*> usable(const nvml::GpuFacts& gpu) {
    std::vector<const nvml::MigInstanceFacts*> result;
    for (const nvml::MigInstanceFacts& instance : gpu.mig_instances) {
      if (is_usable(instance)) result.push_back(&instance);
    }
    std::ranges::sort(result, {}, &nvml::MigInstanceFacts::index);
    return result;
  }

  void add_mixed(const nvml::GpuFacts& gpu) {
    const auto instances = usable(gpu);
    if (instances.empty()) {
      return problem("gpu {} has MIG on and no MIG device; it offers nothing until one is made",
                     gpu.index);
    }
    for (const nvml::MigInstanceFacts* const instance : instances) {
      // A part of an instance ("1c.3g.20gb") is a resource of its own kind.
      const std::string name = mig_resource_name(instance->profile);
      if (name.size() > kResourceNameMax) {
        problem("the resource name {} is longer than {} characters; its devices are left out", name,
                kResourceNameMax);
        continue;
      }
      add_mig(gpu, *instance, name);
    }
  }

  void add_single() {
    if (std::ranges::none_of(facts_.gpus, &nvml::GpuFacts::mig_enabled)) {
      for (const nvml::GpuFacts& gpu : facts_.gpus) add_gpu(gpu);
      return;
    }
    resource(std::string(kGpuResource), "");  // known to the kubelet, even if empty
    if (auto why = single_problem(facts_)) return result_.problems.push_back(*std::move(why));
    for (const nvml::GpuFacts& gpu : facts_.gpus) {
      for (const auto* const instance : usable(gpu)) {
        PluginResource& gpus = resource(std::string(kGpuResource), "");
        gpus.profile = instance->profile;
        add_mig(gpu, *instance, gpus.name);
      }
    }
  }

  // The number of shares that MPS can serve on all GPUs of the resource.
  int mps_limit(const PluginResource& resource) const {
    int limit = kMpsClientsMax;
    for (const PluginDevice& device : resource.devices) {
      for (const nvml::GpuFacts& gpu : facts_.gpus) {
        if (gpu.index == device.gpu && gpu.compute_major < 7) limit = kMpsClientsMaxOld;
      }
    }
    return limit;
  }

  // Multiplies the devices where the configuration shares them, and puts the resource in place.
  void share(PluginResource resource) {
    int replicas = config_.sharing.replicas_of(resource.base_name);
    const bool is_mps = config_.sharing.kind == SharingKind::Mps;
    if (replicas > 1 && is_mps) {
      if (std::ranges::any_of(resource.devices, &PluginDevice::is_mig)) {
        problem("sharing.mps: {} has MIG devices, which MPS does not share; they are offered whole",
                resource.name);
        replicas = 1;
      } else if (const int limit = mps_limit(resource); replicas > limit) {
        problem(
            "sharing.mps: {} replicas of {} are more than the {} that its gpus can serve; "
            "offering {}",
            replicas, resource.name, limit, limit);
        replicas = limit;
      }
    }
    if (replicas > 1) {
      resource.sharing = config_.sharing.kind;
      resource.replicas = replicas;
      resource.fails_above_one = config_.sharing.fails_above_one;
      if (config_.sharing.rename_by_default) resource.name += ".shared";
      std::vector<PluginDevice> shares;
      shares.reserve(resource.devices.size() * static_cast<std::size_t>(replicas));
      for (const PluginDevice& device : resource.devices) {
        for (int i = 0; i < replicas; ++i) {
          shares.push_back(device);
          shares.back().id = fmt::format("{}::{}", device.uuid, i);
        }
      }
      resource.devices = std::move(shares);
    }
    result_.resources.push_back(std::move(resource));
  }

  const nvml::NodeFacts& facts_;
  const PluginConfig& config_;
  const UnhealthyReasons& unhealthy_;
  std::map<std::string, PluginResource> resources_;
  Inventory result_;
};

}  // namespace

const PluginDevice* PluginResource::find(std::string_view id) const {
  const auto it = std::ranges::find(devices, id, &PluginDevice::id);
  return it == devices.end() ? nullptr : &*it;
}

const PluginResource* Inventory::find(std::string_view name) const {
  const auto it = std::ranges::find(resources, name, &PluginResource::name);
  return it == resources.end() ? nullptr : &*it;
}

Inventory make_inventory(const nvml::NodeFacts& facts, const PluginConfig& config,
                         const UnhealthyReasons& unhealthy) {
  return Maker(facts, config, unhealthy).make();
}

std::string mig_resource_name(std::string_view profile) {
  std::string name(kMigPrefix);
  name += profile;
  std::ranges::replace(name, '+', '.');
  return name;
}

std::pair<std::string, std::optional<int>> split_share(std::string_view id) {
  const std::size_t at = id.find("::");
  if (at == std::string_view::npos) return {std::string(id), std::nullopt};
  const auto share = parse_int(id.substr(at + 2), 0, 1'000'000);
  return {std::string(id.substr(0, at)),
          share ? std::optional(static_cast<int>(*share)) : std::nullopt};
}

}  // namespace jogak::agent
