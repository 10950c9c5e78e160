// SPDX-License-Identifier: Apache-2.0
// What a filter says of one node. A "no" is an ordinary value: which plugin, whether evicting pods
// could help, and (only when asked) the reasons in the words kube-scheduler uses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace jogak::core {

// In the order in which they run; a node shows the reasons of the first that refuses it.
enum class Plugin : std::uint8_t {
  None,  // feasible, or left out by a PreFilter node list
  NodeUnschedulable,
  NodeName,
  TaintToleration,
  NodeAffinity,
  NodePorts,
  NodeResourcesFit,
  VolumeRestrictions,
  NodeVolumeLimits,
  VolumeBinding,
  VolumeZone,
  PodTopologySpread,
  InterPodAffinity,
  NodeDeclaredFeatures,
  GpuDevices,  // Jogak's own: device-exact ledger
  // Score-only and whole-pod plugins.
  NodeResourcesBalancedAllocation,
  ImageLocality,
  SchedulingGates,
  DefaultPreemption,
};
std::string_view plugin_name(Plugin plugin);

enum class Code : std::uint8_t {
  Fits,
  Unschedulable,  // cannot now; evicting pods may help
  Unresolvable,   // cannot here whatever is evicted ("UnschedulableAndUnresolvable")
  Error,          // the pod or an object it names is broken; the whole cycle fails
};

// Compact: kept per node and class by the incremental index.
struct Verdict {
  Plugin plugin = Plugin::None;
  Code code = Code::Fits;
  bool fits() const { return code == Code::Fits; }
  friend bool operator==(Verdict, Verdict) = default;
};

// Receives reason texts when somebody asked why; filters take `Reasons*` and nullptr means nobody.
using Reasons = std::vector<std::string>;

inline Verdict refuse(Plugin plugin, Code code, Reasons* reasons, std::string_view why) {
  if (reasons != nullptr) reasons->emplace_back(why);
  return {plugin, code};
}

}  // namespace jogak::core
