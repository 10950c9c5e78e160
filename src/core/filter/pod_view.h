// SPDX-License-Identifier: Apache-2.0
// The pod being decided, as filters and scores see it.
#pragma once

#include "core/model/cluster.h"

namespace jogak::core {

// A view: it lives no longer than the cluster it came from.
struct PodView {
  PodId id;  // kNoPod for a what-if pod that is not in the cluster
  ShapeId shape_id;
  IdentityId identity_id;
  const Shape* shape = nullptr;
  const Identity* identity = nullptr;

  static PodView of(const Cluster& cluster, PodId pod) {
    const Pod& p = cluster.pod(pod);
    return {pod, p.shape, p.identity, &cluster.shape(p.shape), &cluster.identity(p.identity)};
  }
};

}  // namespace jogak::core
