// SPDX-License-Identifier: Apache-2.0
//
// See agent_mig_report.h.
#include "cli/agent_mig_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "agent/mig/geometry.h"
#include "agent/mig/picture.h"

namespace jogak::cli {

namespace {

using agent::MigGpuReport;
using agent::MigShape;
using agent::MigState;

const nvml::GpuFacts* find_gpu(const nvml::NodeFacts& node, const std::string& uuid) {
  const auto at = std::ranges::find(node.gpus, uuid, &nvml::GpuFacts::uuid);
  return at == node.gpus.end() ? nullptr : &*at;
}

// Memory slices of the GPU; where the driver does not say, what the shapes need.
int slices_of(const nvml::GpuFacts* gpu, const MigGpuReport& report) {
  int slices = 1;
  if (gpu != nullptr) {
    if (const auto geometry = agent::MigGeometry::from_facts(gpu->mig_profiles)) {
      slices = geometry->slices();
    }
  }
  for (const MigShape* shape : {&report.before, &report.after}) {
    for (const auto& instance : shape->instances) {
      slices = std::max(slices, instance.at.start + instance.at.size);
    }
  }
  return slices;
}

std::string verdict(const MigGpuReport& report, MigTense tense) {
  const std::size_t steps = report.steps.size();
  const std::string count = fmt::format("{} step{}", steps, steps == 1 ? "" : "s");
  switch (report.state) {
    case MigState::Same:
      return "as wanted already";
    case MigState::Done:
      return tense == MigTense::Would ? count : count + " taken, and the driver shows it";
    case MigState::NeedsReset:
      return fmt::format("{}; {}", count, report.reason);
    case MigState::Refused:
      return "refused: " + report.reason;
    case MigState::Undone:
      return "put back as it was: " + report.reason;
    case MigState::Stuck:
      return "stuck: " + report.reason;
  }
  return "";
}

Doc shape_doc(const MigShape& shape) {
  Doc instances = Doc::array();
  for (const auto& instance : shape.instances) {
    Doc doc;
    doc.set("profile", instance.profile)
        .set("profileId", instance.profile_id)
        .set("start", instance.at.start)
        .set("size", instance.at.size);
    if (!instance.part_slices.empty()) {
      Doc parts = Doc::array();
      for (const int slices : instance.part_slices) parts.push(slices);
      doc.set("partSlices", std::move(parts));
    }
    instances.push(std::move(doc));
  }
  return Doc().set("migEnabled", shape.is_enabled).set("instances", std::move(instances));
}

}  // namespace

std::string mig_report_text(const nvml::NodeFacts& node, std::span<const MigGpuReport> reports,
                            MigTense tense) {
  std::string text;
  for (const MigGpuReport& report : reports) {
    const nvml::GpuFacts* gpu = find_gpu(node, report.uuid);
    text += fmt::format("gpu {}  {}: {}\n", report.gpu, gpu == nullptr ? report.uuid : gpu->name,
                        verdict(report, tense));
    if (report.state != MigState::Refused || !report.before.instances.empty()) {
      std::vector<std::pair<std::string, MigShape>> shapes = {{"now", report.before}};
      if (report.state != MigState::Same && report.state != MigState::Refused) {
        shapes = {{"before", report.before}, {"after", report.after}};
      }
      text += agent::slice_picture(shapes, slices_of(gpu, report), 2);
    }
    for (std::size_t i = 0; i < report.steps.size(); ++i) {
      text += fmt::format("  {}. {}\n", i + 1, agent::step_text(report.steps[i]));
    }
  }
  const bool waits = std::ranges::any_of(
      reports, [](const MigGpuReport& report) { return report.state == MigState::NeedsReset; });
  if (waits && tense == MigTense::Did) {
    text +=
        "reset the GPU while nothing runs on it (nvidia-smi --gpu-reset -i N), or reboot; then "
        "run `jogak agent mig recover`\n";
  }
  if (text.empty()) text = "nothing to do\n";
  return text;
}

Doc mig_report_doc(const nvml::NodeFacts& node, std::span<const MigGpuReport> reports,
                   MigTense tense) {
  Doc gpus = Doc::array();
  for (const MigGpuReport& report : reports) {
    const nvml::GpuFacts* gpu = find_gpu(node, report.uuid);
    Doc steps = Doc::array();
    for (const agent::MigStep& step : report.steps) steps.push(agent::step_text(step));
    gpus.push(Doc()
                  .set("gpu", report.gpu)
                  .set("uuid", report.uuid)
                  .set("name", gpu == nullptr ? "" : gpu->name)
                  .set("state", agent::state_text(report.state))
                  .set("reason", report.reason)
                  .set("slices", slices_of(gpu, report))
                  .set("steps", std::move(steps))
                  .set("before", shape_doc(report.before))
                  .set("after", shape_doc(report.after)));
  }
  return Doc()
      .set("dryRun", tense == MigTense::Would)
      .set("state", agent::state_text(agent::overall(reports)))
      .set("gpus", std::move(gpus));
}

}  // namespace jogak::cli
