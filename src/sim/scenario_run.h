// SPDX-License-Identifier: Apache-2.0
// A scenario played on virtual time over the same core that schedules live: pods wait by priority
// and arrival, are tried again when something was freed, run for their time, and are preempted,
// lost and requeued. Equal scenarios give equal results, digest included.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "sim/scenario.h"

namespace jogak::sim {

enum class PodFate : std::uint8_t { NotArrived, Waiting, Running, Done, Deleted };

struct PodRecord {
  std::string name;  // "namespace/name"
  std::int32_t priority = 0;
  PodFate fate = PodFate::NotArrived;
  bool was_running = false;  // from before the start: nobody knows how long it had waited
  std::int64_t arrival_ns = 0;
  std::int64_t first_start_ns = -1;  // -1: never, or not since time 0
  std::int64_t start_ns = -1;        // of the last start
  std::int64_t end_ns = -1;
  std::int32_t evictions = 0;  // by preemption
  std::int32_t losses = 0;     // by the loss of its node or device
  std::string node;            // of the last start
  std::string devices;
};

struct WaitSummary {
  std::int64_t pods = 0;   // that started at least once
  std::int64_t never = 0;  // arrived and never started
  std::int64_t mean_ns = 0;
  std::int64_t p50_ns = 0;
  std::int64_t p99_ns = 0;
};

struct PriorityWait {
  std::int32_t priority = 0;
  WaitSummary wait;
};

struct ScenarioSample {
  std::int64_t at_ns = 0;
  std::int64_t allocated_milli = 0;
  std::int64_t waiting = 0;
};

struct ScenarioResult {
  std::string policy;
  std::int64_t gpu_milli = 0;  // capacity at the start
  std::int64_t running_at_start = 0;
  std::vector<PodRecord> pods;
  std::vector<ScenarioSample> samples;  // one per instant at which something happened
  std::int64_t end_ns = 0;
  // Time averages from the first to the last arrival; where all arrive at once, to the end.
  double allocated_percent = 0;
  double stranded_gpus = 0;  // free GPU that an average GPU pod of the mix could not use
  std::string hottest_node;  // largest average of its fullest resource
  double hottest_percent = 0;
  WaitSummary wait;
  std::vector<PriorityWait> by_priority;  // highest first
  std::int64_t preempted = 0;
  std::int64_t lost = 0;
  std::int64_t decisions = 0;
  std::int64_t decision_ns = 0;  // wall time of all decisions with their booking
  std::uint64_t digest = 0;      // of every placement and every eviction, with their times
};

struct ScenarioRunOptions {
  std::string policy;  // empty: the scenario's
  bool check = false;  // validate every decision, recount and validate after every instant
};

// Whether checking after every instant costs little enough to be on without being asked for.
bool is_small(const Scenario& scenario);

// The scenario passed check_scenario(). Errors: a node or pod that the core refuses (Invalid).
Result<ScenarioResult> run_scenario(const Scenario& scenario, const ScenarioRunOptions& options);

}  // namespace jogak::sim
