// SPDX-License-Identifier: Apache-2.0
//
// What the health of the GPUs means for the Node object: conditions, in the manner of the
// node-problem-detector (status True is a problem), and, if wanted, a taint. Pure; who writes them
// is node_writer.h.
//
//   GpuUnusable       a GPU or instance should get no new pod
//   GpuMemoryErrors   uncorrectable errors, rows that wait for a reset or cannot be replaced
//   GpuThrottled      heat or the power brake slow a GPU down
//   GpuLinkErrors     NVLink or PCIe has to repeat itself
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/health/node_health.h"
#include "base/loop.h"

namespace jogak::agent {

struct NodeCondition {
  std::string type;
  bool is_problem = false;
  std::string reason;   // CamelCase
  std::string message;  // one line
  friend bool operator==(const NodeCondition&, const NodeCondition&) = default;
};

// Always the four, in this order.
std::vector<NodeCondition> node_conditions(const NodeHealthView& view);

struct Taint {
  std::string key;
  std::string value;
  std::string effect;  // "NoSchedule", "PreferNoSchedule", "NoExecute"
  friend bool operator==(const Taint&, const Taint&) = default;
};

inline constexpr std::string_view kUnhealthyTaint = "jogak.io/gpu-unhealthy";

// When a node with an unusable GPU keeps other pods away. A device that is unusable is not handed
// out in any case; the taint is for those who would rather empty the node.
enum class TaintRule : std::uint8_t { Never, AnyUnusable, AllUnusable };
// "never", "any", "all"; Invalid lists them.
Result<TaintRule> parse_taint_rule(std::string_view text);

std::vector<Taint> node_taints(const NodeHealthView& view, TaintRule rule,
                               std::string_view effect = "NoSchedule");

}  // namespace jogak::agent
