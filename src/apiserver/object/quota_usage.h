// SPDX-License-Identifier: Apache-2.0
//
// What objects cost in the terms of a ResourceQuota, and which quotas count them. Admission adds
// with it what comes, the quota controller sums up what is there.
#pragma once

#include <string>
#include <string_view>

#include "apiserver/object/resource_list.h"
#include "base/doc.h"
#include "base/loop.h"

namespace jogak::api {

// `table` is "pods", "services", "deployments.apps". Names are those of a quota: "pods",
// "requests.nvidia.com/gpu", "count/deployments.apps".
ResourceList quota_usage(std::string_view table, const Doc& object, TimeUs now);

// Whether objects of that table can use what the quota name stands for.
bool quota_tracks(std::string_view table, std::string_view name);

// Whether the scopes of a quota's spec cover the object. No scopes cover everything.
bool quota_covers(const Doc& quota_spec, std::string_view table, const Doc& object);

// Pods under a quota of cpu or memory must say what they take: what is missing, in words
// ("must specify requests.cpu for: a,b"), or "". `names` are the quota's.
std::string missing_requests(const Doc& pod, const ResourceList& names);

// A deadline makes a pod one that ends.
bool is_terminating_pod(const Doc& pod);

}  // namespace jogak::api
