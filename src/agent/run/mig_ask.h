// SPDX-License-Identifier: Apache-2.0
//
// What a pod that was placed on this node wants of its MIG devices, from its annotations
// (docs/cluster-file.md): jogak.io/mig-profile, jogak.io/gpu-count, and the places that the
// scheduler chose in jogak.io/gpu-holds. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/plugin/annotations.h"
#include "base/result.h"

namespace jogak::agent {

struct MigAsk {
  PodName pod;
  std::string profile;                      // as the pod says it
  int count = 1;                            // instances
  std::vector<std::pair<int, int>> places;  // GPU, first memory slice; none, or `count` of them
  friend bool operator==(const MigAsk&, const MigAsk&) = default;
};

// Nothing where the pod wants no instance. Errors: Invalid, with the annotation.
using Annotations = std::function<std::string_view(std::string_view name)>;  // "" absent
Result<std::optional<MigAsk>> read_mig_ask(const PodName& pod, const Annotations& annotations);

}  // namespace jogak::agent
