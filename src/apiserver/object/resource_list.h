// SPDX-License-Identifier: Apache-2.0
//
// Resource lists ({"cpu": "500m", "nvidia.com/gpu": "1"}): what kind of name each is, sums of them,
// and what a pod asks for as a whole. For validation, admission, quota and controllers alike.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "apiserver/object/amount.h"
#include "base/doc.h"

namespace jogak::api {

// No domain, or one of kubernetes.io.
bool is_native_resource(std::string_view name);
bool is_hugepage_resource(std::string_view name);  // "hugepages-2Mi"
// With a domain of somebody's own ("nvidia.com/gpu"): whole numbers, requests equal limits.
bool is_extended_resource(std::string_view name);
bool is_overcommit_allowed(std::string_view name);
bool is_integer_resource(std::string_view name);
// Names without a domain that mean something: anywhere, in a container, in a quota.
bool is_standard_resource(std::string_view name);
bool is_standard_container_resource(std::string_view name);
bool is_standard_quota_resource(std::string_view name);
// What spec.resources of a pod may name.
bool is_pod_level_resource(std::string_view name);

using ResourceList = std::map<std::string, Amount, std::less<>>;

// Reads what decoding has checked; anything that is no quantity counts as absent.
ResourceList read_resources(const Doc& list);
Doc write_resources(const ResourceList& list);
void add_resources(ResourceList& sum, const ResourceList& more);
// The greater of both, name by name.
void raise_resources(ResourceList& high, const ResourceList& other);

struct PodSumOptions {
  bool with_pod_level = true;  // spec.resources replaces the sum of the containers
  bool with_overhead = true;
  bool with_status = false;  // what runs already counts when it is more than the spec asks
};
// What the pod takes: containers together, or the largest init container where that is more;
// sidecars count through. `pod` is {spec, status}.
ResourceList pod_requests(const Doc& pod, const PodSumOptions& options = {});
ResourceList pod_limits(const Doc& pod, const PodSumOptions& options = {});

}  // namespace jogak::api
