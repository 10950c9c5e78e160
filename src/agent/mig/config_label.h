// SPDX-License-Identifier: Apache-2.0
//
// The protocol by which a cluster asks a node for a MIG configuration: somebody sets the label
// nvidia.com/mig.config, and the node answers in nvidia.com/mig.config.state. The answer says in an
// annotation which configuration it speaks of, so that nobody takes an old success for a new one.
//
//   config set --> pending --> success
//                     |  \---> failed       (the reason goes into an event and the log)
//                     v
//                 rebooting --> success, or failed when the mode has still not changed
//
// Pure: labels and facts in, what to write and to do out.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/mig/config_file.h"
#include "agent/mig/manager.h"

namespace jogak::agent {

inline constexpr std::string_view kMigConfigLabel = "nvidia.com/mig.config";
inline constexpr std::string_view kMigConfigStateLabel = "nvidia.com/mig.config.state";
inline constexpr std::string_view kMigConfigStateOf = "jogak.io/mig.config.state-of";  // annotation

inline constexpr std::string_view kMigPending = "pending";
inline constexpr std::string_view kMigRebooting = "rebooting";
inline constexpr std::string_view kMigSuccess = "success";
inline constexpr std::string_view kMigFailed = "failed";

// As they are on the node; "" where absent.
struct MigLabels {
  std::string config;
  std::string state;
  std::string state_of;
  friend bool operator==(const MigLabels&, const MigLabels&) = default;
};

struct MigLabelAnswer {
  enum class Act : std::uint8_t {
    Nothing,
    Write,  // the state below, and no more
    Apply,  // write the state below, wait until it is written, then carry out the goals
  };
  Act act = Act::Nothing;
  std::string state;     // kMig*
  std::string state_of;  // the config that it is the state of
  std::string reason;    // one line, for failed
  std::vector<MigGoal> goals;
};

// What the labels ask for. `plans` answers for the goals without touching anything
// (MigManager::plan, or plan_goal over cached facts). `is_fresh`: the label has just changed, or
// the agent has just started; a failed configuration is tried again only then.
MigLabelAnswer read_labels(
    const MigLabels& labels, const MigConfigs& configs, const nvml::NodeFacts& node, bool is_fresh,
    const std::function<Result<std::vector<MigGpuReport>>(std::span<const MigGoal>)>& plans);

// What to write when the goals have been carried out. `may_reboot`: whoever runs the agent reboots
// the node when the state says so.
MigLabelAnswer after_apply(const std::string& config,
                           const Result<std::vector<MigGpuReport>>& reports, bool may_reboot);

}  // namespace jogak::agent
