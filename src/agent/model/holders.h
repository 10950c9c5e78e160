// SPDX-License-Identifier: Apache-2.0
//
// Which container holds which device. The kubelet's PodResources API tells it by device id, in the
// forms that device plugins use; here the ids are read, and found again by GPU and MIG instance.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "nvml/gpu_source.h"

namespace jogak::agent {

struct Holder {
  std::string pod_namespace, pod, container;
  std::string pod_uid;  // "" where nobody told it
  friend auto operator<=>(const Holder&, const Holder&) = default;
};

// One device of one container, as the kubelet says it.
struct Holding {
  std::string resource;   // "nvidia.com/gpu"
  std::string device_id;  // "GPU-...", "GPU-...::2", "MIG-...", "nvidia0/gi7"
  Holder holder;
  friend auto operator<=>(const Holding&, const Holding&) = default;
};

// What a device id names: a uuid, or an index with or without a GPU instance (GKE's form).
struct DeviceKey {
  std::string uuid = {};
  int gpu_index = -1;
  int gi_id = -1;
  int replica = -1;  // of a shared device; -1: not shared
  friend bool operator==(const DeviceKey&, const DeviceKey&) = default;
};
// Anything that has none of the known forms is taken for a uuid.
DeviceKey parse_device_id(std::string_view device_id);

// A holder of a device, with the replica that it holds (-1: the whole).
struct DeviceHolder {
  Holder holder;
  int replica = -1;
  friend auto operator<=>(const DeviceHolder&, const DeviceHolder&) = default;
};
using DeviceHolders = std::vector<DeviceHolder>;  // sorted, each once

class HolderIndex {
 public:
  HolderIndex() = default;
  // Ids that name no device of these facts are kept apart, see strangers().
  HolderIndex(const nvml::NodeFacts& facts, const std::vector<Holding>& holdings);

  // Of the GPU as a whole, not of its instances.
  const DeviceHolders& of_gpu(std::string_view uuid) const;
  // Of all compute instances of a GPU instance together.
  const DeviceHolders& of_instance(std::string_view gpu_uuid, int gi_id) const;
  // Of one compute instance.
  const DeviceHolders& of_mig(std::string_view mig_uuid) const;
  // Device ids of NVIDIA's resources that are held and exist no more (a GPU that fell off).
  const std::vector<std::string>& strangers() const { return strangers_; }

 private:
  void add(const nvml::NodeFacts& facts, const Holding& holding);

  std::map<std::string, DeviceHolders, std::less<>> by_uuid_;  // GPUs and compute instances
  std::map<std::pair<std::string, int>, DeviceHolders> by_instance_;
  std::vector<std::string> strangers_;
};

}  // namespace jogak::agent
