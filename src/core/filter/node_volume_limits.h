// SPDX-License-Identifier: Apache-2.0
// NodeVolumeLimits: a CSI driver attaches only so many volumes to one node (CSINode). Counted are
// distinct volumes: those of the pods there, those still attached, and those this pod would add.
#pragma once

#include <unordered_map>
#include <vector>

#include "core/filter/cycle.h"
#include "core/filter/volume_common.h"

namespace jogak::core {

class NodeVolumeLimitsFilter {
 public:
  PreFilter build(const Cluster& cluster, const PodView& pod);
  bool active() const { return !mine_.empty(); }
  Verdict check(const Cluster& cluster, const PodView& pod, NodeId node, Reasons* reasons) const;
  // Reads the pods of the node itself each time; nothing to keep.
  void pod_moved(const Cluster&, const PodView&, PodId, NodeId, int) {}

 private:
  // Volumes on the node before this pod, sorted, without repetition.
  std::vector<CsiVolume> attached(const Cluster& cluster, const Node& node,
                                  const CsiNodeSpec* csi_node) const;

  std::vector<CsiVolume> mine_;  // sorted, without repetition
  // VolumeAttachments by the symbol of the node's name: volumes may stay attached without a pod.
  std::unordered_map<std::uint32_t, std::vector<CsiVolume>> attachments_;
};

}  // namespace jogak::core
