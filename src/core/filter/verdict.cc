// SPDX-License-Identifier: Apache-2.0
// Names of the plugins, as kube-scheduler's messages and configuration spell them.
#include "core/filter/verdict.h"

namespace jogak::core {

std::string_view plugin_name(Plugin plugin) {
  switch (plugin) {
    case Plugin::None:
      return "";
    case Plugin::NodeUnschedulable:
      return "NodeUnschedulable";
    case Plugin::NodeName:
      return "NodeName";
    case Plugin::TaintToleration:
      return "TaintToleration";
    case Plugin::NodeAffinity:
      return "NodeAffinity";
    case Plugin::NodePorts:
      return "NodePorts";
    case Plugin::NodeResourcesFit:
      return "NodeResourcesFit";
    case Plugin::VolumeRestrictions:
      return "VolumeRestrictions";
    case Plugin::NodeVolumeLimits:
      return "NodeVolumeLimits";
    case Plugin::VolumeBinding:
      return "VolumeBinding";
    case Plugin::VolumeZone:
      return "VolumeZone";
    case Plugin::PodTopologySpread:
      return "PodTopologySpread";
    case Plugin::InterPodAffinity:
      return "InterPodAffinity";
    case Plugin::NodeDeclaredFeatures:
      return "NodeDeclaredFeatures";
    case Plugin::GpuDevices:
      return "GpuDevices";
    case Plugin::NodeResourcesBalancedAllocation:
      return "NodeResourcesBalancedAllocation";
    case Plugin::ImageLocality:
      return "ImageLocality";
    case Plugin::SchedulingGates:
      return "SchedulingGates";
    case Plugin::DefaultPreemption:
      return "DefaultPreemption";
  }
  return "";
}

}  // namespace jogak::core
