// SPDX-License-Identifier: Apache-2.0
// VolumeRestrictions: disks named in the pod itself that another pod on the node has mounted, and
// ReadWriteOncePod claims that another pod uses anywhere.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/filter/cycle.h"

namespace jogak::core {

class VolumeRestrictionsFilter {
 public:
  PreFilter build(const Cluster& cluster, const PodView& pod);
  // May change when pods move.
  bool active() const { return has_disks_ || claims_in_use(); }
  Verdict check(const Cluster& cluster, const PodView& pod, NodeId node, Reasons* reasons) const;
  void pod_moved(const Cluster& cluster, const PodView& pod, PodId moved, NodeId node, int delta);
  void count_pod(const Cluster& cluster, const PodView& pod, ShapeId shape, IdentityId identity,
                 int delta);

  // Equal for equal counts: what the moves must keep equal to a fresh build.
  std::uint64_t digest() const;

 private:
  struct ExclusiveClaim {  // access mode ReadWriteOncePod
    std::string name;
    std::int64_t users = 0;  // mentions by placed pods
  };
  bool claims_in_use() const;

  bool has_disks_ = false;
  std::vector<ExclusiveClaim> claims_;
};

}  // namespace jogak::core
