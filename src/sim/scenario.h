// SPDX-License-Identifier: Apache-2.0
// A scenario: nodes, pods that arrive and run for a while, and things that happen to the cluster,
// on virtual time. It may start from a real cluster (scenario_cluster.h). The file format is
// described in docs/scenario-format.md. Reading is strict: a field that is not known, a name used
// twice or an event about nothing is an error with file and line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/model/cluster.h"
#include "core/policy/policy.h"

namespace jogak::sim {

inline constexpr std::int64_t kSecondNs = 1'000'000'000;
inline constexpr std::int64_t kForever = core::kNoTime;

struct ScenarioPod {
  core::PodSpec spec;  // with bound_node: it runs there from the start
  std::string origin;  // where it was written, "FILE:LINE: pods[0]"; may be empty
  std::int64_t arrival_ns = 0;
  std::int64_t run_ns = kForever;  // from start to end, without interruption
  bool is_observed = false;        // of a real cluster: where it fits nowhere, that is no mistake
};

enum class ScenarioAction : std::uint8_t {
  NodeDown,  // its pods are lost and wait again
  NodeUp,
  NodeCordon,
  NodeUncordon,
  NodeLabel,
  GpuUnhealthy,  // pods on the device are lost and wait again
  GpuHealthy,
  PodDelete,
};

struct ScenarioEvent {
  std::int64_t at_ns = 0;
  ScenarioAction action = ScenarioAction::NodeDown;
  std::string target;  // node name, or "namespace/name" of a pod
  std::int32_t gpu = 0;
  core::Labels labels;  // NodeLabel: set; an empty value removes
};

struct Scenario {
  std::string name;
  std::string policy = "best-fit";
  std::int64_t seed = 1;
  bool has_preemption = true;
  std::int64_t until_ns = kForever;
  std::vector<core::NodeSpec> nodes;
  std::vector<ScenarioPod> pods;
  std::vector<ScenarioEvent> events;
  // Empty: taken from the pods; over a cluster, what a live scheduler goes by, which is not told.
  core::WorkloadMix mix;

  // ---- of the cluster that it starts from ----
  bool has_cluster = false;
  core::Objects objects;
  std::int64_t running_ns = kForever;  // how much longer its running pods run
  std::int64_t waiting_ns = kForever;  // how long its waiting pods run, from their start
};

// Adds what the text says to the scenario, so that a cluster and a workload may come from two
// files.
Result<void> parse_scenario(std::string file, std::string_view text, Scenario& scenario);

// What no single file can know: events name nodes and pods that exist, there is something to run,
// and every pod could run on some node if that were empty.
Result<void> check_scenario(const Scenario& scenario);

// The frequencies of the pods' own classes. Shares in MiB count against the first device that knows
// its memory; MIG instances are left out, since a mix cannot say them.
core::WorkloadMix mix_of_pods(const Scenario& scenario);

}  // namespace jogak::sim
