// SPDX-License-Identifier: Apache-2.0
//
// See agent_mig.h.
#include "cli/agent_mig.h"

#include <algorithm>
#include <set>

#include "agent/mig/config_file.h"
#include "base/file.h"
#include "base/parse_number.h"

namespace jogak::cli {

namespace {

constexpr std::int64_t kFileBytesMax = std::int64_t{4} << 20;

// Indices that were asked for; empty: all.
Result<std::set<int>> read_gpus(std::string_view text, const nvml::NodeFacts& node) {
  std::set<int> indices;
  if (text == "all") return indices;
  for (std::string_view rest = text;;) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const auto index = parse_int(rest.substr(0, comma), 0, INT32_MAX);
    if (!index) return invalid("--gpu: expected all, or indices as in 0,2: {}", text);
    const bool is_there = std::ranges::find(node.gpus, static_cast<int>(*index),
                                            &nvml::GpuFacts::index) != node.gpus.end();
    if (!is_there) {
      return fail(Errc::NotFound, "--gpu: the node has no gpu {}; it has {}", *index,
                  node.gpus.size());
    }
    indices.insert(static_cast<int>(*index));
    if (comma == rest.size()) return indices;
    rest.remove_prefix(comma + 1);
  }
}

// The same layout for every GPU asked for; with all, those that can be cut.
Result<std::vector<agent::MigGoal>> layout_goals(std::string_view layout,
                                                 const std::set<int>& indices,
                                                 const nvml::NodeFacts& node) {
  auto goal = agent::parse_layout(layout);
  if (!goal) return in_context("--layout", std::move(goal).error());
  std::vector<agent::MigGoal> goals;
  for (const nvml::GpuFacts& gpu : node.gpus) {
    if (indices.empty() ? !gpu.mig_capable : !indices.contains(gpu.index)) continue;
    goals.push_back(*goal);
    goals.back().uuid = gpu.uuid;
  }
  if (goals.empty()) return invalid("no GPU of this node can be cut with MIG");
  return goals;
}

}  // namespace

Result<std::vector<agent::MigGoal>> mig_goals(const MigRequest& request,
                                              const nvml::NodeFacts& node) {
  if (request.layout.empty() == request.config.empty()) {
    return invalid("say what is wanted with either --layout or --config");
  }
  if (!request.file.empty() && request.config.empty()) {
    return invalid("--file: say which of its configs with --config");
  }
  JOGAK_TRY(const std::set<int> indices, read_gpus(request.gpus, node));
  agent::MigConfigs configs = agent::standard_configs(node);
  std::string name = request.config;
  if (!request.layout.empty()) {
    const bool is_standard =
        std::ranges::find(configs, request.layout, &agent::MigConfig::name) != configs.end();
    if (!is_standard && !request.layout.starts_with("all-")) {
      return layout_goals(request.layout, indices, node);
    }
    name = request.layout;
  } else if (!request.file.empty()) {
    JOGAK_TRY(const std::string text, read_file(request.file, kFileBytesMax));
    JOGAK_TRY(configs, agent::read_mig_configs(request.file, text));
  }
  JOGAK_TRY(const agent::MigConfig config, agent::find_config(configs, name));
  JOGAK_TRY(std::vector<agent::MigGoal> goals, agent::config_goals(config, node));
  if (indices.empty()) return goals;
  std::erase_if(goals, [&](const agent::MigGoal& goal) {
    const auto gpu = std::ranges::find(node.gpus, goal.uuid, &nvml::GpuFacts::uuid);
    return gpu == node.gpus.end() || !indices.contains(gpu->index);
  });
  if (goals.empty()) return invalid("{} says nothing of gpu {}", name, request.gpus);
  return goals;
}

Result<std::vector<agent::MigGpuReport>> run_mig(const MigRequest& request, nvml::GpuSource& source,
                                                 agent::MigJournalStore& store,
                                                 const agent::MigHolders& holders) {
  agent::MigManager manager(source, store);
  if (request.verb == MigRequest::Verb::Recover) return manager.recover(holders);
  JOGAK_TRY(const nvml::NodeFacts node, source.facts());
  JOGAK_TRY(const std::vector<agent::MigGoal> goals, mig_goals(request, node));
  if (request.verb == MigRequest::Verb::Plan) return manager.plan(goals, holders);
  JOGAK_TRY(std::vector<agent::MigGpuReport> reports, manager.apply(goals, holders));
  JOGAK_TRY(std::vector<agent::MigGpuReport> left, manager.recover(holders));
  for (agent::MigGpuReport& report : left) {
    const auto told = std::ranges::find(reports, report.uuid, &agent::MigGpuReport::uuid);
    if (told == reports.end()) {
      reports.push_back(std::move(report));
    } else if (told->state == agent::MigState::Stuck) {
      *told = std::move(report);  // the second attempt says how it ended
    }
  }
  return reports;
}

}  // namespace jogak::cli
