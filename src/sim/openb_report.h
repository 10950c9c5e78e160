// SPDX-License-Identifier: Apache-2.0
// Results of openb runs for people and programs: averages over seeds beside the published numbers,
// as a table, as a tree of values, and as a page with charts.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/doc.h"
#include "sim/openb_run.h"

namespace jogak::sim {

// Sample mean and standard deviation; the deviation of one value is 0.
struct MeanDeviation {
  std::int64_t count = 0;
  double mean = 0;
  double deviation = 0;
};
MeanDeviation mean_deviation(const std::vector<double>& values);

// The runs of one policy on one variant.
struct OpenbSummary {
  std::string variant;
  std::string policy;
  std::int64_t runs = 0;
  std::array<MeanDeviation, kOpenbColumns> allocated{};   // percent of capacity
  std::array<MeanDeviation, kOpenbColumns> fragmented{};  // percent of capacity
  double capacity_gpus = 0;
  double failed_pods = 0;
  double pods_per_second = 0;
  double p50_us = 0, p99_us = 0;  // of single decisions, averaged over runs
  double unallocated_gpus(std::size_t column) const;
};

// In the order in which (variant, policy) pairs first appear.
std::vector<OpenbSummary> summarize(std::span<const OpenbResult> results);

std::string openb_table(std::span<const OpenbSummary> summaries, bool with_timing);

// with_timing false leaves out everything that differs from run to run on one machine.
Doc openb_doc(std::span<const OpenbResult> results, std::span<const OpenbSummary> summaries,
              bool with_timing);

// One line for each published value that ours misses by more than three published deviations.
std::vector<std::string> published_misses(std::span<const OpenbSummary> summaries);

// A page of its own: no scripts, no other files.
std::string openb_html(std::span<const OpenbSummary> summaries, bool published_orders);

}  // namespace jogak::sim
