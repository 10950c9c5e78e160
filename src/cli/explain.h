// SPDX-License-Identifier: Apache-2.0
// Where a pod would go and why, or why it goes nowhere, as a value; and that value as text for
// people and as a document for programs. `jogak explain` is the command around it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/doc.h"
#include "base/result.h"
#include "core/model/cluster.h"
#include "core/plan/evaluation.h"

namespace jogak::cli {

// Nodes refused by one plugin for one set of reasons.
struct RefusedGroup {
  core::Verdict verdict;
  core::Reasons reasons;
  std::vector<core::NodeId> nodes;  // node order
};

// What the pod asks of one resource, and the most that any node has free of it.
struct AskedResource {
  std::string name;
  std::int64_t asked = 0;
  std::int64_t most_free = 0;
  std::optional<core::NodeId> node;  // the first that has it; nullopt: no node has any
};

struct Explanation {
  std::string pod;         // "ns/name"
  std::string bound_node;  // set: it runs there, and this is what would be were it pending
  std::string policy;
  core::Evaluation evaluation;
  std::vector<AskedResource> asked;
  std::vector<RefusedGroup> refused;  // largest first
  std::vector<std::int64_t> scores;   // the policy's, per feasible node
  std::optional<core::NodeId> node;   // where it would go
  core::GpuAsk ask = core::GpuAsk::None;
  std::vector<core::GpuHold> holds;  // and on which devices
  bool placed() const { return node.has_value(); }
};

// Evaluates the pod and lets the policy choose. A pod that is on a node is taken off it first, in
// the cluster given. Errors: Invalid for a policy that does not exist.
Result<Explanation> explain(core::Cluster& cluster, core::PodId pod, std::string_view policy);

struct ExplainView {
  bool all_nodes = false;  // every node by name instead of groups with examples
  std::size_t top = 5;     // nodes whose scores are shown
};

std::string explain_text(const core::Cluster& cluster, const Explanation& explanation,
                         const ExplainView& view);
Doc explain_doc(const core::Cluster& cluster, const Explanation& explanation,
                const ExplainView& view);

// "500m", "4 GiB", "2": an amount as people write it.
std::string amount_text(std::string_view resource, std::int64_t amount);
// "gpu 3 (500/1000)": one device as people read it.
std::string hold_text(const core::GpuHold& hold, core::GpuAsk ask);
Doc devices_doc(const std::vector<core::GpuHold>& holds, core::GpuAsk ask);

}  // namespace jogak::cli
