// SPDX-License-Identifier: Apache-2.0
// Averages, the table and the tree of values.
#include "sim/openb_report.h"

#include <algorithm>
#include <cmath>

#include "base/text_table.h"
#include "sim/openb_published.h"

namespace jogak::sim {

namespace {

constexpr std::array<std::size_t, 6> kShownColumns = {80, 90, 95, 100, 120, 130};
constexpr double kDeviationsMax = 3;

constexpr std::array<std::string_view, core::kFragCauses> kCauseNames = {
    "lacks_gpu_and_cpu",        "lacks_gpu",      "lacks_cpu", "cpu_only_class",
    "cpu_only_class_lacks_cpu", "model_excluded", "usable"};

struct Samples {
  std::array<std::vector<double>, kOpenbColumns> allocated;
  std::array<std::vector<double>, kOpenbColumns> fragmented;
  std::vector<double> failed, pods_per_second, p50_us, p99_us;
};

void collect(Samples& samples, const OpenbResult& run) {
  for (std::size_t c = 0; c < kOpenbColumns; ++c) {
    if (run.columns[c].records == 0) continue;
    samples.allocated[c].push_back(run.allocated_percent(c));
    samples.fragmented[c].push_back(run.fragmented_percent(c));
  }
  samples.failed.push_back(static_cast<double>(run.failed_pods()));
  const double seconds = static_cast<double>(std::max<std::int64_t>(run.timing.total_ns, 1)) / 1e9;
  samples.pods_per_second.push_back(static_cast<double>(run.pods) / seconds);
  samples.p50_us.push_back(static_cast<double>(run.timing.p50_ns) / 1e3);
  samples.p99_us.push_back(static_cast<double>(run.timing.p99_ns) / 1e3);
}

std::string with_deviation(const MeanDeviation& value) {
  if (value.count == 0) return "-";
  if (value.count == 1) return fmt::format("{:.2f}", value.mean);
  return fmt::format("{:.2f} ±{:.2f}", value.mean, value.deviation);
}

std::string published_text(const OpenbSummary& s, std::size_t column) {
  const auto value = published_allocation(s.variant, s.policy, column);
  if (!value) return "-";
  return fmt::format("{:.2f} ±{:.2f}", value->mean / 100.0, value->deviation / 100.0);
}

Doc timing_doc(const OpenbResult& run) {
  Doc doc = Doc::object();
  const double seconds = static_cast<double>(std::max<std::int64_t>(run.timing.total_ns, 1)) / 1e9;
  doc.set("decisions_total_ns", run.timing.total_ns)
      .set("decision_p50_ns", run.timing.p50_ns)
      .set("decision_p99_ns", run.timing.p99_ns)
      .set("pods_per_second", Doc::decimal(static_cast<double>(run.pods) / seconds, 0));
  return doc;
}

Doc fragmentation_doc(const OpenbResult& run) {
  Doc doc = Doc::object();
  Doc amount = Doc::object();
  for (const std::size_t c : kShownColumns) {
    amount.set(std::to_string(c), Doc::decimal(run.fragmented_percent(c), 3));
  }
  doc.set("percent_at_arrived", std::move(amount));
  // Causes at the end of the run, in GPUs.
  Doc causes = Doc::object();
  const double scale = static_cast<double>(run.frag_weight) * 1000;
  for (std::size_t i = 0; i < core::kFragCauses; ++i) {
    causes.set(kCauseNames[i], Doc::decimal(static_cast<double>(run.frag.by_cause[i]) / scale, 3));
  }
  doc.set("gpus_by_cause_at_end", std::move(causes));
  return doc;
}

Doc end_doc(const OpenbResult& run) {
  Doc doc = Doc::object();
  doc.set("allocated_gpu_milli", run.allocated_milli)
      .set("gpus_touched", run.devices_touched)
      .set("nodes_used", run.nodes_used)
      .set("cpu_milli", run.cpu_milli)
      .set("cpu_capacity_milli", run.cpu_capacity_milli)
      .set("memory_mib", run.memory_mib)
      .set("memory_capacity_mib", run.memory_capacity_mib);
  return doc;
}

Doc run_doc(const OpenbResult& run, bool with_timing) {
  Doc doc = Doc::object();
  doc.set("variant", run.variant).set("policy", run.policy).set("seed", run.seed);
  doc.set("order", run.published_order ? "published" : "drawn");
  doc.set("pods", run.pods).set("capacity_gpu_milli", run.capacity_milli);
  Doc allocated = Doc::object();
  for (const std::size_t c : kShownColumns) {
    allocated.set(std::to_string(c), Doc::decimal(run.allocated_percent(c), 4));
  }
  doc.set("allocated_percent_at_arrived", std::move(allocated));
  const double free_percent = 100 - run.allocated_percent(100);
  doc.set("unallocated_gpus_at_100",
          Doc::decimal(free_percent * static_cast<double>(run.capacity_milli) / 1e5, 2));
  doc.set("failed_pods", run.failed_pods());
  Doc failures = Doc::array();
  for (const OpenbFailures& f : run.failures) {
    Doc entry = Doc::object();
    entry.set("class", openb_class_text(f.example)).set("pods", f.pods);
    failures.push(std::move(entry.set("gpu_milli", f.gpu_milli)));
  }
  doc.set("failed_by_class", std::move(failures));
  doc.set("fragmentation", fragmentation_doc(run)).set("end", end_doc(run));
  doc.set("plan_digest", fmt::format("{:016x}", run.digest));
  if (with_timing) doc.set("timing", timing_doc(run));
  return doc;
}

Doc summary_doc(const OpenbSummary& s, bool with_timing) {
  Doc doc = Doc::object();
  doc.set("variant", s.variant).set("policy", s.policy).set("runs", s.runs);
  Doc columns = Doc::object();
  for (const std::size_t c : kShownColumns) {
    Doc column = Doc::object();
    column.set("mean", Doc::decimal(s.allocated[c].mean, 4))
        .set("deviation", Doc::decimal(s.allocated[c].deviation, 4));
    if (const auto published = published_allocation(s.variant, s.policy, c)) {
      column.set("published_mean", Doc::decimal(std::int64_t{published->mean}, 2))
          .set("published_deviation", Doc::decimal(std::int64_t{published->deviation}, 2));
    }
    columns.set(std::to_string(c), std::move(column));
  }
  doc.set("allocated_percent_at_arrived", std::move(columns));
  doc.set("fragmented_percent_at_100", Doc::decimal(s.fragmented[100].mean, 3));
  doc.set("unallocated_gpus_at_100", Doc::decimal(s.unallocated_gpus(100), 2));
  doc.set("failed_pods", Doc::decimal(s.failed_pods, 1));
  if (with_timing) {
    doc.set("pods_per_second", Doc::decimal(s.pods_per_second, 0));
    doc.set("decision_p99_us", Doc::decimal(s.p99_us, 1));
  }
  return doc;
}

}  // namespace

MeanDeviation mean_deviation(const std::vector<double>& values) {
  MeanDeviation result;
  result.count = static_cast<std::int64_t>(values.size());
  if (values.empty()) return result;
  for (const double v : values) result.mean += v;
  result.mean /= static_cast<double>(values.size());
  if (values.size() < 2) return result;
  double squares = 0;
  for (const double v : values) squares += (v - result.mean) * (v - result.mean);
  result.deviation = std::sqrt(squares / static_cast<double>(values.size() - 1));
  return result;
}

double OpenbSummary::unallocated_gpus(std::size_t column) const {
  return (100 - allocated[column].mean) / 100 * capacity_gpus;
}

std::vector<OpenbSummary> summarize(std::span<const OpenbResult> results) {
  std::vector<OpenbSummary> summaries;
  std::vector<Samples> samples;
  for (const OpenbResult& run : results) {
    auto at = std::ranges::find_if(summaries, [&run](const OpenbSummary& s) {
      return s.variant == run.variant && s.policy == run.policy;
    });
    if (at == summaries.end()) {
      OpenbSummary summary;
      summary.variant = run.variant;
      summary.policy = run.policy;
      summary.capacity_gpus = static_cast<double>(run.capacity_milli) / 1000;
      summaries.push_back(std::move(summary));
      samples.emplace_back();
      at = summaries.end() - 1;
    }
    ++at->runs;
    collect(samples[static_cast<std::size_t>(at - summaries.begin())], run);
  }
  for (std::size_t i = 0; i < summaries.size(); ++i) {
    OpenbSummary& s = summaries[i];
    for (std::size_t c = 0; c < kOpenbColumns; ++c) {
      s.allocated[c] = mean_deviation(samples[i].allocated[c]);
      s.fragmented[c] = mean_deviation(samples[i].fragmented[c]);
    }
    s.failed_pods = mean_deviation(samples[i].failed).mean;
    s.pods_per_second = mean_deviation(samples[i].pods_per_second).mean;
    s.p50_us = mean_deviation(samples[i].p50_us).mean;
    s.p99_us = mean_deviation(samples[i].p99_us).mean;
  }
  return summaries;
}

std::string openb_table(std::span<const OpenbSummary> summaries, bool with_timing) {
  std::vector<TextTable::Column> columns = {{"variant"},
                                            {"policy"},
                                            {"runs", Align::Right},
                                            {"at 90", Align::Right},
                                            {"at 95", Align::Right},
                                            {"at 100", Align::Right},
                                            {"published", Align::Right},
                                            {"at 130", Align::Right},
                                            {"published", Align::Right},
                                            {"GPUs left", Align::Right},
                                            {"fragmented", Align::Right},
                                            {"failed", Align::Right}};
  if (with_timing) {
    columns.push_back({"pods/s", Align::Right});
    columns.push_back({"p99 us", Align::Right});
  }
  TextTable table(columns);
  for (const OpenbSummary& s : summaries) {
    std::vector<std::string> cells = {s.variant,
                                      s.policy,
                                      std::to_string(s.runs),
                                      fmt::format("{:.2f}", s.allocated[90].mean),
                                      fmt::format("{:.2f}", s.allocated[95].mean),
                                      with_deviation(s.allocated[100]),
                                      published_text(s, 100),
                                      with_deviation(s.allocated[130]),
                                      published_text(s, 130),
                                      fmt::format("{:.1f}", s.unallocated_gpus(100)),
                                      fmt::format("{:.2f}", s.fragmented[100].mean),
                                      fmt::format("{:.0f}", s.failed_pods)};
    if (with_timing) {
      cells.push_back(fmt::format("{:.0f}", s.pods_per_second));
      cells.push_back(fmt::format("{:.1f}", s.p99_us));
    }
    table.row(std::move(cells));
  }
  return "Allocated GPU in percent of capacity when 90, 95, 100, 130 % of it have arrived; GPUs "
         "left\n"
         "and fragmentation (percent of all GPUs) at 100 %; pods that fitted nowhere by the "
         "end.\n\n" +
         table.text();
}

Doc openb_doc(std::span<const OpenbResult> results, std::span<const OpenbSummary> summaries,
              bool with_timing) {
  Doc doc = Doc::object();
  Doc summary_list = Doc::array();
  for (const OpenbSummary& s : summaries) summary_list.push(summary_doc(s, with_timing));
  Doc run_list = Doc::array();
  for (const OpenbResult& run : results) run_list.push(run_doc(run, with_timing));
  doc.set("summaries", std::move(summary_list)).set("runs", std::move(run_list));
  return doc;
}

std::vector<std::string> published_misses(std::span<const OpenbSummary> summaries) {
  std::vector<std::string> misses;
  for (const OpenbSummary& s : summaries) {
    for (const std::size_t column : {std::size_t{100}, std::size_t{130}}) {
      const auto published = published_allocation(s.variant, s.policy, column);
      if (!published) continue;
      const double mean = published->mean / 100.0;
      const double deviation = published->deviation / 100.0;
      const double off = s.allocated[column].mean - mean;
      if (s.allocated[column].count > 0 && std::abs(off) <= kDeviationsMax * deviation) continue;
      misses.push_back(
          fmt::format("{} {} at {} %: {:.2f}, published {:.2f} ±{:.2f}, off by {:+.2f}", s.variant,
                      s.policy, column, s.allocated[column].mean, mean, deviation, off));
    }
  }
  return misses;
}

}  // namespace jogak::sim
