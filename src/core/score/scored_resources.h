// SPDX-License-Identifier: Apache-2.0
// The resources that a configured score weighs, looked up once per pod: what the pod asks of each,
// and what a node would have used of it with the pod on it. Shared by NodeResourcesFit and
// NodeResourcesBalancedAllocation, which differ in how a container without requests counts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/filter/pod_view.h"
#include "core/score/score.h"

namespace jogak::core {

enum class Usage : std::uint8_t {
  Requested,  // what was asked for
  NonZero,    // cpu and memory with Kubernetes' defaults for containers that ask for none
};

struct ScoredResource {
  enum class Kind : std::uint8_t { Cpu, Memory, Storage, Scalar, Unknown };
  Kind kind = Kind::Unknown;  // Unknown: neither the pod nor any node has it
  ScalarId scalar;
  std::int64_t weight = 1;
  std::int64_t ask = 0;  // of the pod
};

std::vector<ScoredResource> scored_resources(const Cluster& cluster, const Shape& shape,
                                             std::span<const ResourceWeight> weights, Usage usage);

// Of one resource on one node. capacity 0: it does not enter the score (the node has none, or it is
// a scalar that the pod does not ask for).
struct ResourceUse {
  std::int64_t capacity = 0;
  std::int64_t used = 0;  // without the pod
};
ResourceUse resource_use(const Node& node, const ScoredResource& resource, Usage usage);

}  // namespace jogak::core
