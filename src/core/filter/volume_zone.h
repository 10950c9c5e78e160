// SPDX-License-Identifier: Apache-2.0
// VolumeZone: zone and region labels of the volumes behind the pod's claims must name the node's.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "core/filter/cycle.h"

namespace jogak::core {

class VolumeZoneFilter {
 public:
  PreFilter build(const Cluster& cluster, const PodView& pod);
  bool active() const { return !demands_.empty(); }
  Verdict check(const Cluster& cluster, const PodView& pod, NodeId node, Reasons* reasons) const;
  // Nothing of it depends on where pods are.
  void pod_moved(const Cluster&, const PodView&, PodId, NodeId, int) {}

 private:
  static constexpr std::size_t kKeys = 4;
  struct Demand {
    std::size_t key = 0;              // index of the label that the volume carries
    std::vector<std::string> values;  // allowed on the node
  };
  void add_demands(const PersistentVolumeSpec& pv);

  std::array<const Symbol*, kKeys> labels_of(const Node& node) const;

  std::array<Symbol, kKeys> keys_{};
  std::array<bool, kKeys> known_{};  // false: no node of the cluster has that label
  std::vector<Demand> demands_;
};

}  // namespace jogak::core
