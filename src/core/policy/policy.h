// SPDX-License-Identifier: Apache-2.0
// A placement policy: among the nodes that passed every filter, which one, and which devices on it.
// One file per policy. Scores are integers, highest wins, equal scores fall to the first node in
// Cluster::node_order(). A policy never sees the arrival order or the future; what it may know is
// the workload mix it was given.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/filter/pod_view.h"
#include "core/model/cluster.h"

namespace jogak::core {

// One class of the workload a policy expects, with its relative frequency.
struct MixClass {
  std::int64_t cpu = 0;     // milli-CPU
  std::int64_t memory = 0;  // bytes
  std::int32_t gpu_count = 0;
  std::int32_t gpu_milli = 0;       // per device, 1..1000; 0 for pods without GPU
  std::vector<std::string> models;  // allowed, sorted; empty: any
  std::int64_t weight = 1;          // > 0, any scale
};
using WorkloadMix = std::vector<MixClass>;

// How a policy's score of a node may be remembered.
enum class ScoreScope : std::uint8_t {
  NodeLocal,  // depends on the node's state, the shape and epoch() alone: cached by node version
  Global,     // depends on the set of feasible nodes: asked again for every decision
};

class Policy {
 public:
  virtual ~Policy() = default;
  virtual std::string_view name() const = 0;
  virtual ScoreScope scope() const { return ScoreScope::NodeLocal; }
  // Called once before the first decision and when the set of nodes or the mix changed.
  virtual void prepare(const Cluster& cluster, const WorkloadMix& mix) {
    static_cast<void>(cluster);
    static_cast<void>(mix);
  }
  // NodeLocal policies. The node passed all filters for the shape.
  virtual std::int64_t score(const Cluster& cluster, const Shape& shape, const Node& node) = 0;
  // Global policies: one score per node of `feasible` (node order).
  virtual void score_all(const Cluster& cluster, const PodView& pod,
                         std::span<const NodeId> feasible, std::span<std::int64_t> out);
  // Devices for the shape on this node, appended to `out` in ascending device order; nothing for
  // pods without a GPU request. The node passed the filters, so a legal choice exists.
  virtual void choose(const Cluster& cluster, const Shape& shape, const Node& node,
                      std::vector<GpuHold>& out);
  // Changes when every remembered score is stale (the policy's picture of the cluster moved).
  virtual std::uint64_t epoch() const { return 0; }
  // For policies with a picture of the whole cluster: true asks for node_changed() on every node
  // that the change log names, before the next decision.
  virtual bool follows_changes() const { return false; }
  virtual void node_changed(const Cluster& cluster, NodeId node) {
    static_cast<void>(cluster);
    static_cast<void>(node);
  }
};

struct PolicyInfo {
  std::string_view name;     // as on the command line
  std::string_view summary;  // one line
  std::unique_ptr<Policy> (*create)(std::uint64_t seed);
};
// kube, random, dot-product, clustering, packing, best-fit, fgd, jogak.
std::span<const PolicyInfo> policies();
// Error Invalid names the known policies and the nearest one.
Result<std::unique_ptr<Policy>> make_policy(std::string_view name, std::uint64_t seed);

// ---- device choices that several policies share (device_choice.cc) ----

// Lowest-numbered fully free devices.
void choose_first_free(const Node& node, std::int32_t count, std::vector<GpuHold>& out);
// For one or several shares: the device with the least free amount that still fits, lowest index on
// ties; distinct devices.
void choose_tightest(const Node& node, const GpuRequest& request, std::vector<GpuHold>& out);
// Whole devices close to each other: most direct NVLinks within the set, then fewest NUMA nodes,
// then the set that leaves the best-connected rest, then lowest indices.
void choose_close(const Node& node, std::int32_t count, std::vector<GpuHold>& out);
// MIG instances at the starts that leave the most other placements possible.
void choose_mig(const Cluster& cluster, const Node& node, const Shape& shape,
                std::vector<GpuHold>& out);

}  // namespace jogak::core
