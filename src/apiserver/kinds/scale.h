// SPDX-License-Identifier: Apache-2.0
//
// The scale subresource: a workload seen as autoscaling/v1 Scale, {spec.replicas, status.replicas,
// status.selector}, and written through it.
#pragma once

#include "apiserver/registry/resource.h"

namespace jogak::api {

// Adds "scale" in front of the resource's other subresources.
void add_scale(Resource& resource);

}  // namespace jogak::api
