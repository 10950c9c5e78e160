// SPDX-License-Identifier: Apache-2.0
// What a pod asks of a node, worked out from its containers the way kube-scheduler 1.36 does:
// containers and sidecars run together, an ordinary init container runs beside the sidecars started
// before it, pod-level requests replace the sum by name, overhead comes on top. For a pod already
// on a node, a resize in place counts with the largest of what is wanted, allocated and in effect.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/model/spec.h"

namespace jogak::core {

// What scoring assumes for a container that names no cpu or no memory request.
inline constexpr std::int64_t kDefaultCpuMilli = 100;
inline constexpr std::int64_t kDefaultMemoryBytes = std::int64_t{200} * 1024 * 1024;

// Requests as written and, for a pod on a node, as its kubelet reports them. Amounts are in the
// units of spec.h, rounded up.
struct ResizableRequests {
  ResourceList spec;
  std::optional<ResourceList> in_effect;  // status.resources.requests
  std::optional<ResourceList> allocated;  // status.allocatedResources
};

struct ContainerRequests {
  ResizableRequests requests;
  bool sidecar = false;  // init container with restartPolicy Always
};

struct PodResources {
  std::vector<ContainerRequests> containers;
  std::vector<ContainerRequests> init_containers;  // in order: a sidecar counts for those after it
  ResizableRequests pod_level;  // spec.resources; only names that pods may set there count
  ResourceList overhead;
  bool on_node = false;            // false: what a kubelet reports is not looked at
  bool resize_infeasible = false;  // PodResizePending says Infeasible: spec does not count
};

struct PodRequests {
  ResourceList requests;  // effective; zero entries are kept
  std::int64_t nonzero_cpu = 0;
  std::int64_t nonzero_memory = 0;
  std::int64_t scored_cpu = -1;  // as in PodShape
  std::int64_t scored_memory = -1;
};

// cpu, memory and hugepages-*: the names that count in pod-level requests.
bool is_pod_level_resource(std::string_view name);

// cpu, memory, ephemeral-storage, pods, extended resources, hugepages-*, attachable-volumes-*, and
// names with kubernetes.io/: what the scheduler counts. Other names mean nothing to it.
bool is_counted_resource(std::string_view name);

// Errors: Invalid, naming the pod and the resource whose sum no int64 holds. `pod` is for messages.
Result<PodRequests> effective_requests(const PodResources& pod_resources, std::string_view pod);

}  // namespace jogak::core
