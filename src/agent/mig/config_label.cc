// SPDX-License-Identifier: Apache-2.0
//
// See config_label.h.
#include "agent/mig/config_label.h"

#include <algorithm>

#include <fmt/format.h>

namespace jogak::agent {

namespace {

using Act = MigLabelAnswer::Act;

MigLabelAnswer write(const std::string& config, std::string_view state, std::string reason = "") {
  return {.act = Act::Write,
          .state = std::string(state),
          .state_of = config,
          .reason = std::move(reason),
          .goals = {}};
}

// Writes only what is not there yet.
MigLabelAnswer unless_told(const MigLabels& labels, MigLabelAnswer answer) {
  if (labels.state == answer.state && labels.state_of == answer.state_of) answer.act = Act::Nothing;
  return answer;
}

}  // namespace

MigLabelAnswer read_labels(
    const MigLabels& labels, const MigConfigs& configs, const nvml::NodeFacts& node, bool is_fresh,
    const std::function<Result<std::vector<MigGpuReport>>(std::span<const MigGoal>)>& plans) {
  if (labels.config.empty()) return {};  // taken away: the last configuration stays
  const std::string& name = labels.config;
  const auto config = find_config(configs, name);
  if (!config) return unless_told(labels, write(name, kMigFailed, config.error().what));
  auto goals = config_goals(*config, node);
  if (!goals) return unless_told(labels, write(name, kMigFailed, goals.error().what));
  const auto reports = plans(*goals);
  if (!reports) return unless_told(labels, write(name, kMigFailed, reports.error().what));
  const MigState state = overall(*reports);
  if (state == MigState::Same) return unless_told(labels, write(name, kMigSuccess));
  // Other managers do not say what their state is of: theirs counts as of this config.
  const bool is_of_this = labels.state_of == name || labels.state_of.empty();
  if (labels.state == kMigRebooting && is_of_this && state == MigState::NeedsReset) {
    return write(name, kMigFailed, "the MIG mode is as it was, after a reboot that should set it");
  }
  if (labels.state == kMigFailed && is_of_this && !is_fresh) return {};
  MigLabelAnswer answer = write(name, kMigPending);
  answer.act = Act::Apply;
  answer.goals = *std::move(goals);
  return answer;
}

MigLabelAnswer after_apply(const std::string& config,
                           const Result<std::vector<MigGpuReport>>& reports, bool may_reboot) {
  if (!reports) return write(config, kMigFailed, reports.error().what);
  const MigState state = overall(*reports);
  if (state <= MigState::Done) return write(config, kMigSuccess);
  const auto worst = std::ranges::find(*reports, state, &MigGpuReport::state);
  std::string reason = fmt::format("gpu {}: {}", worst->gpu, worst->reason);
  if (state == MigState::NeedsReset && may_reboot) {
    return write(config, kMigRebooting, std::move(reason));
  }
  return write(config, kMigFailed, std::move(reason));
}

}  // namespace jogak::agent
