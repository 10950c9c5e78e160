// SPDX-License-Identifier: Apache-2.0
// The sentence users, cluster-autoscaler and Karpenter know: how many nodes refused the pod and
// why. Both the cycle and preemption end in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/filter/verdict.h"

namespace jogak::core {

inline constexpr std::string_view kNoNodesMessage = "no nodes available to schedule pods";

// Reasons and on how many nodes each was given.
class ReasonCounts {
 public:
  void add(const Reasons& reasons);
  void add(std::string_view reason, std::int64_t nodes);
  // "1 a, 2 b", the parts in plain string order: "10 x" comes before "2 x".
  std::string text() const;

 private:
  std::map<std::string, std::int64_t, std::less<>> counts_;
};

// "0/<nodes> nodes are available: <why>."; without the colon's part if there is no reason.
std::string unavailable_message(std::size_t nodes, std::string_view why);

}  // namespace jogak::core
