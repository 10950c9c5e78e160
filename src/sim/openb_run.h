// SPDX-License-Identifier: Apache-2.0
// One run of the openb placement experiment (Weng et al., USENIX ATC 2023): pods arrive one after
// another at an empty cluster, nothing ever leaves, and what fits nowhere is dropped for good. Runs
// share nothing but constant input, so any number may run at once.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/policy/fragmentation.h"
#include "sim/openb_trace.h"

namespace jogak::sim {

// Records are grouped by the GPU demand that has arrived, in percent of capacity rounded to an
// integer, ties to even. Orders end at 130 %.
inline constexpr std::size_t kOpenbColumns = 132;

struct OpenbColumn {
  std::int64_t records = 0;
  std::int64_t allocated_milli = 0;  // sum over the records
  std::int64_t fragmented = 0;       // sum of F, multiplied by the mix's total weight
};

// A class of pods that did not all fit.
struct OpenbFailures {
  OpenbPod example;
  std::int64_t pods = 0;
  std::int64_t gpu_milli = 0;
};

struct OpenbTiming {
  std::int64_t total_ns = 0;  // of all decisions, each with its booking
  std::int64_t p50_ns = 0;
  std::int64_t p99_ns = 0;
  std::int64_t run_ns = 0;  // the whole run with its records
};

struct OpenbResult {
  std::string variant;
  std::string policy;
  std::int64_t seed = 0;
  bool published_order = false;
  std::int64_t capacity_milli = 0;
  std::int64_t pods = 0;
  std::array<OpenbColumn, kOpenbColumns> columns{};
  std::vector<OpenbFailures> failures;  // most GPU first
  // At the end of the run.
  std::int64_t allocated_milli = 0;
  std::int64_t devices_touched = 0;
  std::int64_t nodes_used = 0;
  std::int64_t cpu_milli = 0, cpu_capacity_milli = 0;
  std::int64_t memory_mib = 0, memory_capacity_mib = 0;
  core::FragBreakdown frag;  // of the cluster, at the end
  std::int64_t frag_weight = 1;
  std::uint64_t digest = 0;  // of the sequence of (pod, node, devices)
  OpenbTiming timing;
  std::vector<std::string> placements;  // CSV rows, where asked for

  // Averages of a column in percent of the capacity; NaN where no record falls into it.
  double allocated_percent(std::size_t column) const;
  double fragmented_percent(std::size_t column) const;
  std::int64_t failed_pods() const;
};

struct OpenbRunOptions {
  std::string_view policy;
  bool keep_placements = false;
  bool check = false;  // validate every decision and recount at the end; slow
};

// `mix`: what the policy may know of the workload; F is measured against the variant's own.
// Errors: an unknown policy, a node that the core refuses.
Result<OpenbResult> run_openb(const OpenbNodes& nodes, const OpenbVariant& variant,
                              const OpenbOrder& order, const core::WorkloadMix& mix,
                              const OpenbRunOptions& options);

// a * 100 / b rounded to an integer, ties to even; b is positive.
std::size_t percent_column(std::int64_t a, std::int64_t b);

// "8 vCPU, 1 x 500 milli of G2|T4": for tables and messages.
std::string openb_class_text(const OpenbPod& pod);

inline constexpr std::string_view kPlacementHeader = "variant,policy,seed,position,pod,node,gpus";

}  // namespace jogak::sim
