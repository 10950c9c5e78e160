// SPDX-License-Identifier: Apache-2.0
// Each list strategy adds its part; shares are devices once, whatever their number.
#include "agent/plugin/allocate.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

namespace jogak::agent {

namespace {

constexpr std::string_view kVisibleDevices = "NVIDIA_VISIBLE_DEVICES";
constexpr std::string_view kVolumeMountRoot = "/var/run/nvidia-container-devices";
constexpr std::string_view kImexMountRoot = "/var/run/nvidia-container-devices/imex";
constexpr std::string_view kAnnotationPlugin = "nvidia-device-plugin_";
constexpr std::array<std::string_view, 4> kControlNodes = {
    "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"};

class Answerer {
 public:
  Answerer(const PluginSnapshot& snapshot, const PluginResource& resource,
           std::vector<const PluginDevice*> devices)
      : config_(snapshot.config),
        host_(snapshot.host),
        resource_(resource),
        devices_(std::move(devices)) {
    std::ranges::sort(devices_, {}, [](const PluginDevice* d) { return std::pair(d->gpu, d->id); });
    // Shares of one device are that device, once.
    const auto rest = std::ranges::unique(devices_, {}, &PluginDevice::uuid);
    devices_.erase(rest.begin(), rest.end());
    for (const PluginDevice* const device : devices_) {
      names_.push_back(config_.id_strategy == IdStrategy::Index ? device->index : device->uuid);
    }
    for (const int channel : config_.imex_channels) {
      if (host_.has_node(imex_node(channel))) channels_.push_back(channel);
    }
  }

  ContainerAnswer answer() {
    add_cdi();
    if (config_.uses(ListStrategy::Envvar)) {
      answer_.env.emplace(kVisibleDevices, fmt::format("{}", fmt::join(names_, ",")));
      if (!channels_.empty()) {
        answer_.env["NVIDIA_IMEX_CHANNELS"] = fmt::format("{}", fmt::join(channels_, ","));
      }
    }
    if (config_.uses(ListStrategy::VolumeMounts)) add_volume_mounts();
    if (config_.gdrcopy) answer_.env["NVIDIA_GDRCOPY"] = "enabled";
    if (config_.gds) answer_.env["NVIDIA_GDS"] = "enabled";
    if (config_.mofed) answer_.env["NVIDIA_MOFED"] = "enabled";
    const bool is_cdi_alone =
        !config_.uses(ListStrategy::Envvar) && !config_.uses(ListStrategy::VolumeMounts);
    if (config_.pass_device_specs && !is_cdi_alone) add_device_nodes();
    if (resource_.sharing == SharingKind::Mps) add_mps();
    return std::move(answer_);
  }

 private:
  void add_cdi() {
    if (!config_.uses_cdi()) return;
    std::vector<std::string> names;
    const auto add = [&names](std::string_view kind, std::string_view name) {
      names.push_back(fmt::format("{}/{}={}", kCdiVendor, kind, name));
    };
    for (const std::string& name : names_) add("gpu", name);
    // A name that no CDI file has would fail the container.
    for (const int channel : channels_) add("imex-channel", std::to_string(channel));
    for (const std::string_view kind : config_.extra_kinds()) {
      if (!host_.extra_nodes(kind).empty()) add(kind, "all");
    }
    if (config_.uses(ListStrategy::CdiAnnotations)) {
      // Named by its first device: the annotations of one container need different names only.
      answer_.annotations.emplace(
          fmt::format("{}{}{}", config_.cdi_annotation_prefix, kAnnotationPlugin, unique_name()),
          fmt::format("{}", fmt::join(names, ",")));
    }
    if (config_.uses(ListStrategy::CdiCri)) answer_.cdi_devices = std::move(names);
  }

  // The letters and digits of the first device's UUID, short enough for a label's name.
  std::string unique_name() const {
    std::string_view uuid = devices_.front()->uuid;
    if (const std::size_t dash = uuid.find('-'); dash != std::string_view::npos) {
      uuid.remove_prefix(dash + 1);
    }
    std::string result;
    for (const char c : uuid.substr(0, 36)) {
      const bool is_plain =
          (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      result.push_back(is_plain ? c : '-');
    }
    while (result.ends_with('-')) result.pop_back();
    return result;
  }

  void add_volume_mounts() {
    answer_.env.insert_or_assign(std::string(kVisibleDevices), std::string(kVolumeMountRoot));
    for (const std::string& name : names_) {
      answer_.mounts.push_back({.host_path = "/dev/null",
                                .container_path = fmt::format("{}/{}", kVolumeMountRoot, name)});
    }
    for (const int channel : channels_) {
      answer_.mounts.push_back({.host_path = "/dev/null",
                                .container_path = fmt::format("{}/{}", kImexMountRoot, channel)});
    }
  }

  void add_node(std::string_view path) {
    // A node that is not there would fail the container.
    if (!host_.device_nodes.contains(path) || !nodes_.emplace(path).second) return;
    std::string root = config_.host_dev_root();
    while (root.ends_with('/')) root.pop_back();
    answer_.devices.push_back(
        {.host_path = root + std::string(path), .container_path = std::string(path)});
  }

  void add_device_nodes() {
    for (const PluginDevice* const device : devices_) {
      if (!device->minor) continue;
      add_node(fmt::format("/dev/nvidia{}", *device->minor));
      if (!device->is_mig()) continue;
      for (const int ci : {-1, device->ci_id}) {
        add_node(fmt::format("/dev/nvidia-caps/nvidia-cap{}",
                             host_.mig_cap(*device->minor, device->gi_id, ci)));
      }
    }
    for (const std::string_view path : kControlNodes) add_node(path);
    for (const int channel : channels_) add_node(imex_node(channel));
  }

  void add_mps() {
    const std::string pipe = fmt::format("/mps/{}/pipe", resource_.name);
    answer_.env["CUDA_MPS_PIPE_DIRECTORY"] = pipe;
    answer_.mounts.push_back(
        {.host_path = fmt::format("{}/{}/pipe", config_.mps_root, resource_.name),
         .container_path = pipe,
         .is_read_only = false});
    answer_.mounts.push_back({.host_path = config_.mps_root + "/shm",
                              .container_path = "/dev/shm",
                              .is_read_only = false});
  }

  const PluginConfig& config_;
  const HostFiles& host_;
  const PluginResource& resource_;
  std::vector<const PluginDevice*> devices_;
  std::vector<std::string> names_;
  std::vector<int> channels_;  // of IMEX, those that are there
  std::set<std::string, std::less<>> nodes_;
  ContainerAnswer answer_;
};

// "" where every channel that is asked for is there.
std::string imex_problem(const PluginConfig& config, const HostFiles& host) {
  for (const int channel : config.imex_channels) {
    if (host.has_node(imex_node(channel))) continue;
    return fmt::format("imex channel {} is not there: no {}; {}", channel, imex_node(channel),
                       config.imex_required ? "it is required, so no gpu can be used"
                                            : "containers do without it");
  }
  return {};
}

}  // namespace

PluginSnapshotPtr make_snapshot(const nvml::NodeFacts& facts, const PluginConfig& config,
                                const HostFiles& host, const UnhealthyReasons& unhealthy) {
  auto snapshot = std::make_shared<PluginSnapshot>();
  snapshot->config = config;
  snapshot->host = host;
  snapshot->gpus = facts.gpus;
  const std::string problem = imex_problem(config, host);
  if (problem.empty()) {
    snapshot->inventory = make_inventory(facts, config, unhealthy);
    return snapshot;
  }
  UnhealthyReasons all = unhealthy;
  if (config.imex_required) {
    for (const nvml::GpuFacts& gpu : facts.gpus) all.try_emplace(gpu.uuid, problem);
  }
  snapshot->inventory = make_inventory(facts, config, all);
  snapshot->inventory.problems.push_back(problem);
  return snapshot;
}

Result<ContainerAnswer> allocate(const PluginSnapshot& snapshot, std::string_view resource_name,
                                 const std::vector<std::string>& ids) {
  const PluginResource* const resource = snapshot.inventory.find(resource_name);
  if (resource == nullptr) {
    return fail(Errc::NotFound, "{} has no devices on this node any more", resource_name);
  }
  if (ids.empty()) return invalid("the request names no device");
  std::vector<const PluginDevice*> devices;
  for (const std::string& id : ids) {
    const PluginDevice* const device = resource->find(id);
    if (device == nullptr) {
      return fail(Errc::NotFound, "{} has no device {}; it may have been repartitioned away",
                  resource_name, id);
    }
    devices.push_back(device);
  }
  if (resource->replicas > 1 && resource->fails_above_one && ids.size() > 1) {
    return invalid(
        "{} asked for {} shares: maximum request size for shared resources is 1; ask for 1, or set "
        "failRequestsGreaterThanOne to false",
        resource_name, ids.size());
  }
  return Answerer(snapshot, *resource, std::move(devices)).answer();
}

}  // namespace jogak::agent
