// SPDX-License-Identifier: Apache-2.0
// Sums and maxima over sorted lists. Rules: component-helpers/resource/helpers.go of
// Kubernetes 1.36 (read for the facts; names here follow KEP-753 for sidecars and KEP-1287 for
// resizes).
#include "core/model/pod_requests.h"

#include <algorithm>

#include "base/checked.h"
#include "base/result.h"

namespace jogak::core {

namespace {

constexpr std::string_view kCpu = "cpu";
constexpr std::string_view kMemory = "memory";

std::int64_t* find(ResourceList& list, std::string_view name) {
  const auto it = std::ranges::lower_bound(
      list, name, {}, [](const auto& entry) { return std::string_view(entry.first); });
  return it != list.end() && it->first == name ? &it->second : nullptr;
}

bool contains(const ResourceList& list, std::string_view name) {
  return std::ranges::any_of(list, [name](const auto& entry) { return entry.first == name; });
}

std::int64_t amount_of(const ResourceList& list, std::string_view name) {
  for (const auto& [resource, amount] : list) {
    if (resource == name) return amount;
  }
  return 0;
}

std::int64_t& slot(ResourceList& list, std::string_view name) {
  const auto it = std::ranges::lower_bound(
      list, name, {}, [](const auto& entry) { return std::string_view(entry.first); });
  if (it != list.end() && it->first == name) return it->second;
  return list.emplace(it, std::string(name), 0)->second;
}

void take_larger(ResourceList& into, const ResourceList& other) {
  for (const auto& [name, amount] : other) {
    if (std::int64_t* const mine = find(into, name)) {
      *mine = std::max(*mine, amount);
    } else {
      slot(into, name) = amount;
    }
  }
}

Result<void> add(ResourceList& into, const ResourceList& other, std::string_view pod) {
  for (const auto& [name, amount] : other) {
    std::int64_t& sum = slot(into, name);
    const auto next = checked_add(sum, amount);
    if (!next) return invalid("{}: the requests for {} add up to more than 2^63-1", pod, name);
    sum = *next;
  }
  return {};
}

ResourceList resized(const ResizableRequests& requests, const PodResources& pod, bool resizable) {
  // Without status.resources the original looks at allocatedResources neither.
  if (!pod.on_node || !resizable || !requests.in_effect) return requests.spec;
  ResourceList result;
  if (!pod.resize_infeasible) result = requests.spec;
  take_larger(result, *requests.in_effect);
  if (requests.allocated) take_larger(result, *requests.allocated);
  return result;
}

// Which of the two defaults for scoring apply; both zero for the real requests.
struct Defaults {
  std::int64_t cpu = 0;
  std::int64_t memory = 0;
};

ResourceList container_requests(const ContainerRequests& container, const PodResources& pod,
                                bool resizable, const Defaults& defaults) {
  ResourceList result = resized(container.requests, pod, resizable);
  if (defaults.cpu > 0 && !contains(result, kCpu)) slot(result, kCpu) = defaults.cpu;
  if (defaults.memory > 0 && !contains(result, kMemory)) slot(result, kMemory) = defaults.memory;
  return result;
}

Result<ResourceList> sum_containers(const PodResources& pod, const Defaults& defaults,
                                    std::string_view name) {
  ResourceList together;  // containers and all sidecars
  for (const ContainerRequests& container : pod.containers) {
    JOGAK_TRY_VOID(add(together, container_requests(container, pod, true, defaults), name));
  }
  ResourceList sidecars;  // those started so far
  ResourceList peak;
  for (const ContainerRequests& container : pod.init_containers) {
    ResourceList requests = container_requests(container, pod, container.sidecar, defaults);
    if (container.sidecar) {
      JOGAK_TRY_VOID(add(together, requests, name));
      JOGAK_TRY_VOID(add(sidecars, requests, name));
      take_larger(peak, sidecars);
    } else {
      JOGAK_TRY_VOID(add(requests, sidecars, name));
      take_larger(peak, requests);
    }
  }
  take_larger(together, peak);
  return together;
}

bool sets_pod_level(const PodResources& pod) {
  return std::ranges::any_of(pod.pod_level.spec,
                             [](const auto& entry) { return is_pod_level_resource(entry.first); });
}

// The real request, or with defaults the one for scoring.
Result<ResourceList> pod_requests(const PodResources& pod, const Defaults& defaults,
                                  std::string_view name) {
  JOGAK_TRY(ResourceList result, sum_containers(pod, defaults, name));
  if (sets_pod_level(pod)) {
    for (const auto& [resource, amount] : resized(pod.pod_level, pod, true)) {
      if (is_pod_level_resource(resource)) slot(result, resource) = amount;
    }
  }
  JOGAK_TRY_VOID(add(result, pod.overhead, name));
  return result;
}

bool is_qualified_name_part(std::string_view part, std::size_t size_max) {
  const auto alnum = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  if (part.empty() || part.size() > size_max || !alnum(part.front()) || !alnum(part.back())) {
    return false;
  }
  return std::ranges::all_of(
      part, [alnum](char c) { return alnum(c) || c == '-' || c == '_' || c == '.'; });
}

bool is_extended_resource(std::string_view name) {
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos || name.starts_with("requests.")) return false;
  // The quota name "requests.<name>" must fit the rules for names: prefix 253, name 63 characters.
  const std::size_t prefix_max = 253 - std::string_view("requests.").size();
  return is_qualified_name_part(name.substr(0, slash), prefix_max) &&
         is_qualified_name_part(name.substr(slash + 1), 63);
}

}  // namespace

bool is_pod_level_resource(std::string_view name) {
  return name == kCpu || name == kMemory || name.starts_with("hugepages-");
}

bool is_counted_resource(std::string_view name) {
  return name == kCpu || name == kMemory || name == "ephemeral-storage" || name == "pods" ||
         name.starts_with("hugepages-") || name.starts_with("attachable-volumes-") ||
         name.find("kubernetes.io/") != std::string_view::npos || is_extended_resource(name);
}

Result<PodRequests> effective_requests(const PodResources& pod_resources, std::string_view pod) {
  PodRequests result;
  JOGAK_TRY(result.requests, pod_requests(pod_resources, {}, pod));

  // A default applies where a container is silent. With pod-level requests only for a resource that
  // neither level names, since the pod level otherwise says what the whole pod gets.
  Defaults defaults{.cpu = kDefaultCpuMilli, .memory = kDefaultMemoryBytes};
  const bool set_at_pod_level = sets_pod_level(pod_resources);
  if (set_at_pod_level && contains(result.requests, kCpu)) defaults.cpu = 0;
  if (set_at_pod_level && contains(result.requests, kMemory)) defaults.memory = 0;
  JOGAK_TRY(ResourceList nonzero, pod_requests(pod_resources, defaults, pod));
  result.nonzero_cpu = amount_of(nonzero, kCpu);
  result.nonzero_memory = amount_of(nonzero, kMemory);
  if (set_at_pod_level) {
    PodResources containers_only = pod_resources;
    containers_only.pod_level = {};
    constexpr Defaults kAll{.cpu = kDefaultCpuMilli, .memory = kDefaultMemoryBytes};
    JOGAK_TRY(const ResourceList scored, pod_requests(containers_only, kAll, pod));
    result.scored_cpu = amount_of(scored, kCpu);
    result.scored_memory = amount_of(scored, kMemory);
  }
  std::erase_if(result.requests, [](const auto& entry) {
    return !is_counted_resource(entry.first) || entry.first == "pods";
  });
  return result;
}

}  // namespace jogak::core
