// SPDX-License-Identifier: Apache-2.0
// Sections by what becomes of a pod; pods that wait for the same reason share a row.
#include "cli/whatif_report.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text_table.h"
#include "cli/explain.h"

namespace jogak::cli {

namespace {

using sim::WhatifPod;
using sim::WhatifReport;
using sim::WhatifTotals;

constexpr std::size_t kExamples = 3;

bool is_start(const WhatifPod& pod) { return pod.starts() && pod.was_on.empty(); }
bool is_preempted(const WhatifPod& pod) { return !pod.was_on.empty() && !pod.preempted_by.empty(); }
bool is_move(const WhatifPod& pod) {
  return pod.starts() && !pod.was_on.empty() && pod.preempted_by.empty();
}
bool is_wait(const WhatifPod& pod) { return !pod.starts(); }

std::size_t count_if(const WhatifReport& report, bool (*is)(const WhatifPod&)) {
  return static_cast<std::size_t>(std::ranges::count_if(report.pods, is));
}

std::string_view plural(std::size_t count) { return count == 1 ? "" : "s"; }

// "a, b, c and 4 more"
std::string some_of(const std::vector<std::string>& names) {
  const std::size_t shown = std::min(names.size(), kExamples);
  std::string text = fmt::format(
      "{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

// Whole devices as ranges: "gpu 0-3,6".
std::string devices_text(const WhatifPod& pod) {
  if (pod.holds.empty()) {
    return pod.gpus == 0 ? std::string()
                         : fmt::format("{} GPU{}", pod.gpus, pod.gpus == 1 ? "" : "s");
  }
  if (pod.ask != core::GpuAsk::Whole) {
    std::vector<std::string> words;
    for (const core::GpuHold& hold : pod.holds) words.push_back(hold_text(hold, pod.ask));
    return fmt::format("{}", fmt::join(words, ", "));
  }
  std::string text;
  for (std::size_t i = 0; i < pod.holds.size();) {
    std::size_t end = i + 1;
    while (end < pod.holds.size() && pod.holds[end].gpu == pod.holds[end - 1].gpu + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "gpu " : ",", pod.holds[i].gpu);
    if (end > i + 1) text += fmt::format("-{}", pod.holds[end - 1].gpu);
    i = end;
  }
  return text;
}

std::string notes_text(const WhatifPod& pod) {
  std::vector<std::string> notes;
  if (!pod.victims.empty()) notes.push_back("preempts " + some_of(pod.victims));
  if (pod.has_no_owner) notes.emplace_back("has no controller: create it again yourself");
  return fmt::format("{}", fmt::join(notes, "; "));
}

// The rows of one section under its title, the first so many of them.
std::string section(std::string_view title, const WhatifReport& report, const WhatifView& view,
                    bool (*is)(const WhatifPod&), const std::vector<TextTable::Column>& columns,
                    const std::function<std::vector<std::string>(const WhatifPod&)>& cells) {
  const std::size_t all = count_if(report, is);
  if (all == 0) return {};
  TextTable table(columns);
  for (const WhatifPod& pod : report.pods) {
    if (is(pod) && table.rows() < view.rows_max) table.row(cells(pod));
  }
  std::string text = fmt::format("\n{} {} pod{}:\n{}", title, all, plural(all), table.text(2));
  if (all > table.rows()) {
    text += fmt::format("  ... and {} more (--all shows them)\n", all - table.rows());
  }
  return text;
}

std::string waits_section(const WhatifReport& report, const WhatifView& view) {
  struct Group {
    std::string_view message;
    std::vector<std::string> pods;
  };
  std::vector<Group> groups;
  for (const WhatifPod& pod : report.pods) {
    if (pod.starts()) continue;
    const auto at = std::ranges::find(groups, pod.message, &Group::message);
    Group& group = at == groups.end() ? groups.emplace_back() : *at;
    group.message = pod.message;
    group.pods.push_back(pod.was_on.empty() ? pod.name
                                            : fmt::format("{} (now on {})", pod.name, pod.was_on));
  }
  if (groups.empty()) return {};
  const std::size_t all = count_if(report, is_wait);
  std::string text = fmt::format("\nwould wait: {} pod{}:\n", all, plural(all));
  std::size_t shown = 0;
  for (const Group& group : groups) {
    if (shown++ == view.rows_max) break;
    const bool has_all = view.rows_max > groups.size() && group.pods.size() <= kExamples;
    text += fmt::format("  {}\n    {}\n",
                        has_all || group.pods.size() <= kExamples
                            ? fmt::format("{}", fmt::join(group.pods, ", "))
                            : fmt::format("{} pods: {}", group.pods.size(), some_of(group.pods)),
                        group.message);
  }
  if (groups.size() > view.rows_max) {
    text += fmt::format("  ... and {} more reasons (--all shows them)\n",
                        groups.size() - view.rows_max);
  }
  return text;
}

std::string changes_text(const WhatifReport& report) {
  std::string text;
  const auto line = [&text](std::string_view what, const std::vector<std::string>& names) {
    if (names.empty()) return;
    text += fmt::format("{:<9}{} node{}: {}\n", what, names.size(), plural(names.size()),
                        some_of(names));
  };
  line("added", report.added_nodes);
  line("drained", report.drained_nodes);
  line("removed", report.removed_nodes);
  const auto is_new = [](const WhatifPod& pod) { return pod.is_new; };
  const std::size_t pods = count_if(report, is_new);
  if (pods > 0) text += fmt::format("created  {} pod{}\n", pods, plural(pods));
  text += fmt::format("policy   {}\n", report.policy);
  return text;
}

std::string remarks_text(const WhatifReport& report, const WhatifView& view) {
  std::string text;
  if (!report.ended.empty()) {
    text += fmt::format("\nend with their node: {} ({})\n", some_of(report.ended),
                        "of DaemonSets, or static");
  }
  if (report.being_deleted > 0) {
    const auto count = static_cast<std::size_t>(report.being_deleted);
    text += fmt::format("\ncounted as gone: {} pod{} being deleted\n", count, plural(count));
  }
  if (!view.left_out.empty()) {
    text += "\nleft out of the manifests:\n";
    for (const std::string& what : view.left_out) text += fmt::format("  {}\n", what);
  }
  return text;
}

std::string gpu_text(std::int64_t milli) {
  if (milli % 1000 == 0) return fmt::to_string(milli / 1000);
  std::string text = fmt::format("{}.{:03}", milli / 1000, milli % 1000);
  while (text.ends_with('0')) text.pop_back();
  return text;
}

std::string totals_text(const WhatifReport& report) {
  TextTable table({{""}, {"BEFORE", Align::Right}, {"AFTER", Align::Right}});
  const auto row = [&](std::string_view name, auto value) {
    table.row({std::string(name), value(report.before), value(report.after)});
  };
  const auto number = [&](std::string_view name, std::int64_t WhatifTotals::* member) {
    row(name, [member](const WhatifTotals& t) { return fmt::to_string(t.*member); });
  };
  number("nodes", &WhatifTotals::nodes);
  row("GPUs", [](const WhatifTotals& t) { return gpu_text(t.gpu_milli); });
  row("GPUs allocated", [](const WhatifTotals& t) { return gpu_text(t.gpu_allocated_milli); });
  row("GPUs idle",
      [](const WhatifTotals& t) { return gpu_text(t.gpu_milli - t.gpu_allocated_milli); });
  row("CPUs requested",
      [](const WhatifTotals& t) { return amount_text("cpu", t.cpu_requested_milli); });
  row("CPUs", [](const WhatifTotals& t) { return amount_text("cpu", t.cpu_milli); });
  number("pods on nodes", &WhatifTotals::running);
  number("pods waiting", &WhatifTotals::waiting);
  return "\n" + table.text();
}

std::string verdict_text(const WhatifReport& report) {
  const std::size_t all = report.pods.size();
  if (all == 0) return "\nnothing waits, and nothing would move\n";
  const std::size_t waiting = count_if(report, is_wait);
  if (waiting == 0) {
    return fmt::format("\n{} would run\n", all == 1 ? "the pod" : fmt::format("all {} pods", all));
  }
  return fmt::format("\n{} of {} pod{} would wait\n", waiting, all, plural(all));
}

Doc pod_doc(const WhatifPod& pod) {
  Doc doc = Doc::object();
  doc.set("pod", pod.name).set("priority", pod.priority);
  if (pod.is_new) doc.set("new", true);
  if (!pod.was_on.empty()) doc.set("from", pod.was_on);
  if (!pod.preempted_by.empty()) doc.set("preemptedBy", pod.preempted_by);
  if (pod.has_no_owner) doc.set("hasNoController", true);
  if (pod.starts()) {
    doc.set("node", pod.node);
    if (pod.gpus > 0) doc.set("gpus", pod.gpus);
    if (!pod.holds.empty()) doc.set("devices", devices_doc(pod.holds, pod.ask));
  } else {
    doc.set("message", pod.message);
  }
  if (!pod.victims.empty()) doc.set("preempts", Doc::strings(pod.victims));
  return doc;
}

Doc totals_doc(const WhatifTotals& totals) {
  Doc doc = Doc::object();
  doc.set("nodes", totals.nodes)
      .set("gpuMilli", totals.gpu_milli)
      .set("gpuAllocatedMilli", totals.gpu_allocated_milli)
      .set("gpuIdleMilli", totals.gpu_milli - totals.gpu_allocated_milli)
      .set("cpuMilli", totals.cpu_milli)
      .set("cpuRequestedMilli", totals.cpu_requested_milli)
      .set("podsOnNodes", totals.running)
      .set("podsWaiting", totals.waiting);
  return doc;
}

}  // namespace

std::string whatif_text(const WhatifReport& report, const WhatifView& view) {
  using Cells = std::vector<std::string>;
  std::string text = changes_text(report);
  text += section("would start:", report, view, is_start,
                  {{"POD"}, {"PRIORITY", Align::Right}, {"NODE"}, {"DEVICES"}, {"NOTE"}},
                  [](const WhatifPod& pod) -> Cells {
                    return {pod.name, fmt::to_string(pod.priority), pod.node, devices_text(pod),
                            notes_text(pod)};
                  });
  text += section("would move:", report, view, is_move,
                  {{"POD"}, {"PRIORITY", Align::Right}, {"FROM"}, {"TO"}, {"DEVICES"}, {"NOTE"}},
                  [](const WhatifPod& pod) -> Cells {
                    return {pod.name,          fmt::to_string(pod.priority),
                            pod.was_on,        pod.node,
                            devices_text(pod), notes_text(pod)};
                  });
  text += section("would be preempted:", report, view, is_preempted,
                  {{"POD"}, {"PRIORITY", Align::Right}, {"FROM"}, {"BY"}, {"THEN"}, {"NOTE"}},
                  [](const WhatifPod& pod) -> Cells {
                    return {pod.name,
                            fmt::to_string(pod.priority),
                            pod.was_on,
                            pod.preempted_by,
                            pod.starts() ? "on " + pod.node : "waits",
                            notes_text(pod)};
                  });
  text += waits_section(report, view);
  text += remarks_text(report, view);
  text += totals_text(report);
  return text + verdict_text(report);
}

Doc whatif_doc(const WhatifReport& report, const WhatifView& view) {
  Doc doc = Doc::object();
  doc.set("policy", report.policy);
  doc.set("addedNodes", Doc::strings(report.added_nodes))
      .set("drainedNodes", Doc::strings(report.drained_nodes))
      .set("removedNodes", Doc::strings(report.removed_nodes));
  const std::pair<std::string_view, bool (*)(const WhatifPod&)> sections[] = {
      {"starts", is_start}, {"moves", is_move}, {"preempted", is_preempted}, {"waits", is_wait}};
  for (const auto& [name, is] : sections) {
    Doc list = Doc::array();
    for (const WhatifPod& pod : report.pods) {
      if (is(pod)) list.push(pod_doc(pod));
    }
    doc.set(name, std::move(list));
  }
  doc.set("endWithNode", Doc::strings(report.ended))
      .set("beingDeleted", report.being_deleted)
      .set("leftOut", Doc::strings(view.left_out))
      .set("before", totals_doc(report.before))
      .set("after", totals_doc(report.after));
  return doc;
}

}  // namespace jogak::cli
