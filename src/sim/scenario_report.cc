// SPDX-License-Identifier: Apache-2.0
// Text and values of scenario results.
#include "sim/scenario_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text_table.h"

namespace jogak::sim {

namespace {

constexpr std::int64_t kMilliNs = 1'000'000;

std::string seconds_text(std::int64_t ns) {
  if (ns < 0) return "-";
  return fixed_decimal(ns / kMilliNs, 3).substr(0, fixed_decimal(ns / kMilliNs, 3).size() - 2);
}

Doc seconds_doc(std::int64_t ns) { return ns < 0 ? Doc() : Doc::decimal(ns / kMilliNs, 3); }

std::string_view fate_text(PodFate fate) {
  switch (fate) {
    case PodFate::NotArrived:
      return "not arrived";
    case PodFate::Waiting:
      return "waiting";
    case PodFate::Running:
      return "running";
    case PodFate::Done:
      return "done";
    case PodFate::Deleted:
      return "deleted";
  }
  return "";
}

std::string evicted_text(const PodRecord& pod) {
  std::string text;
  if (pod.evictions > 0) text = fmt::format("preempted {}x", pod.evictions);
  if (pod.losses > 0) text += fmt::format("{}lost {}x", text.empty() ? "" : ", ", pod.losses);
  return text;
}

std::string placements_text(const ScenarioResult& result, std::size_t rows_max) {
  TextTable table({{"pod"},
                   {"priority", Align::Right},
                   {"arrived", Align::Right},
                   {"started", Align::Right},
                   {"ended", Align::Right},
                   {"state"},
                   {"node"},
                   {"devices"},
                   {"evicted"}});
  const std::size_t rows = std::min(rows_max, result.pods.size());
  for (std::size_t i = 0; i < rows; ++i) {
    const PodRecord& pod = result.pods[i];
    const bool is_older = pod.was_running && pod.start_ns < 0;
    table.add(pod.name, pod.priority, is_older ? "before" : seconds_text(pod.arrival_ns),
              is_older ? "before" : seconds_text(pod.start_ns), seconds_text(pod.end_ns),
              fate_text(pod.fate), pod.node, pod.devices, evicted_text(pod));
  }
  std::string text = table.text();
  if (rows < result.pods.size()) {
    text += fmt::format("... and {} more pods (-o json has them all)\n", result.pods.size() - rows);
  }
  return text;
}

double decisions_per_second(const ScenarioResult& result) {
  const double seconds = static_cast<double>(std::max<std::int64_t>(result.decision_ns, 1)) / 1e9;
  return static_cast<double>(result.decisions) / seconds;
}

Doc wait_doc(const WaitSummary& wait) {
  Doc doc = Doc::object();
  doc.set("pods", wait.pods).set("never_started", wait.never);
  doc.set("mean_s", seconds_doc(wait.mean_ns)).set("p50_s", seconds_doc(wait.p50_ns));
  doc.set("p99_s", seconds_doc(wait.p99_ns));
  return doc;
}

Doc summary_doc(const ScenarioResult& result, bool with_timing) {
  Doc doc = Doc::object();
  doc.set("policy", result.policy).set("gpus", Doc::decimal(result.gpu_milli, 3));
  doc.set("allocated_gpu_percent", Doc::decimal(result.allocated_percent, 2));
  doc.set("stranded_gpus", Doc::decimal(result.stranded_gpus, 2));
  doc.set("hottest_node", result.hottest_node);
  doc.set("hottest_node_percent", Doc::decimal(result.hottest_percent, 2));
  doc.set("running_at_start", result.running_at_start);
  doc.set("end_s", seconds_doc(result.end_ns)).set("wait", wait_doc(result.wait));
  Doc priorities = Doc::array();
  for (const PriorityWait& entry : result.by_priority) {
    Doc one = wait_doc(entry.wait);
    priorities.push(std::move(one.set("priority", entry.priority)));
  }
  doc.set("wait_by_priority", std::move(priorities));
  doc.set("preempted", result.preempted).set("lost", result.lost);
  doc.set("decisions", result.decisions);
  if (with_timing) {
    doc.set("decisions_per_second", Doc::decimal(decisions_per_second(result), 0));
  }
  doc.set("plan_digest", fmt::format("{:016x}", result.digest));
  return doc;
}

}  // namespace

std::string duration_text(std::int64_t ns) {
  if (ns < 0) return "never";
  const std::int64_t tenths = ns / (100 * kMilliNs);
  const std::int64_t seconds = tenths / 10;
  if (seconds < 60) return fmt::format("{}.{} s", seconds, tenths % 10);
  if (seconds < 3600) return fmt::format("{} m {:02} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {:02} m", seconds / 3600, seconds / 60 % 60);
}

std::string scenario_text(const ScenarioResult& result, std::size_t rows_max, bool with_timing) {
  std::string out = placements_text(result, rows_max);
  const auto line = [&out](std::string_view name, const std::string& value) {
    out += fmt::format("{:<22} {}\n", name, value);
  };
  out += '\n';
  line("policy", result.policy);
  line("virtual time", duration_text(result.end_ns));
  line("GPUs allocated", fmt::format("{:.2f} % of {}", result.allocated_percent,
                                     fixed_decimal(result.gpu_milli / 100, 1)));
  line("GPUs stranded", fmt::format("{:.2f}", result.stranded_gpus));
  line("hottest node", fmt::format("{} at {:.1f} %", result.hottest_node, result.hottest_percent));
  if (result.running_at_start > 0) {
    line("pods running at first", std::to_string(result.running_at_start));
  }
  line("pods started",
       fmt::format("{} of {}", result.wait.pods, result.wait.pods + result.wait.never));
  line("wait", fmt::format("median {}, p99 {}", duration_text(result.wait.p50_ns),
                           duration_text(result.wait.p99_ns)));
  if (result.by_priority.size() > 1) {
    for (const PriorityWait& entry : result.by_priority) {
      line(fmt::format("  priority {}", entry.priority),
           fmt::format("median {}, p99 {}; {} started, {} never", duration_text(entry.wait.p50_ns),
                       duration_text(entry.wait.p99_ns), entry.wait.pods, entry.wait.never));
    }
  }
  line("evicted", fmt::format("{} preempted, {} lost", result.preempted, result.lost));
  line("decisions", with_timing ? fmt::format("{}, {:.0f} a second", result.decisions,
                                              decisions_per_second(result))
                                : std::to_string(result.decisions));
  line("plan digest", fmt::format("{:016x}", result.digest));
  return out;
}

Doc scenario_doc(const ScenarioResult& result, bool with_timing) {
  Doc doc = Doc::object();
  doc.set("summary", summary_doc(result, with_timing));
  Doc pods = Doc::array();
  for (const PodRecord& pod : result.pods) {
    Doc one = Doc::object();
    one.set("pod", pod.name).set("priority", pod.priority).set("state", fate_text(pod.fate));
    one.set("was_running", pod.was_running);
    one.set("arrived_s", seconds_doc(pod.arrival_ns));
    one.set("first_started_s", seconds_doc(pod.first_start_ns));
    one.set("started_s", seconds_doc(pod.start_ns)).set("ended_s", seconds_doc(pod.end_ns));
    one.set("node", pod.node).set("devices", pod.devices);
    one.set("preempted", pod.evictions).set("lost", pod.losses);
    pods.push(std::move(one));
  }
  doc.set("pods", std::move(pods));
  return doc;
}

std::string comparison_text(std::span<const ScenarioResult> results, bool with_timing) {
  std::vector<TextTable::Column> columns = {{"policy"},
                                            {"GPU allocated", Align::Right},
                                            {"stranded GPUs", Align::Right},
                                            {"hottest node", Align::Right},
                                            {"mean wait", Align::Right},
                                            {"p99 wait", Align::Right},
                                            {"high priority, mean wait", Align::Right},
                                            {"preempted", Align::Right},
                                            {"all done after", Align::Right}};
  if (with_timing) columns.push_back({"decisions/s", Align::Right});
  TextTable table(columns);
  for (const ScenarioResult& r : results) {
    const WaitSummary high = r.by_priority.empty() ? WaitSummary{} : r.by_priority.front().wait;
    std::vector<std::string> cells = {r.policy,
                                      fmt::format("{:.1f} %", r.allocated_percent),
                                      fmt::format("{:.1f}", r.stranded_gpus),
                                      fmt::format("{:.1f} %", r.hottest_percent),
                                      duration_text(r.wait.mean_ns),
                                      duration_text(r.wait.p99_ns),
                                      duration_text(high.mean_ns),
                                      std::to_string(r.preempted),
                                      duration_text(r.end_ns)};
    if (with_timing) cells.push_back(fmt::format("{:.0f}", decisions_per_second(r)));
    table.row(std::move(cells));
  }
  return table.text();
}

Doc comparison_doc(std::span<const ScenarioResult> results, bool with_timing) {
  Doc doc = Doc::array();
  for (const ScenarioResult& result : results) doc.push(summary_doc(result, with_timing));
  return doc;
}

}  // namespace jogak::sim
