// SPDX-License-Identifier: Apache-2.0
//
// From the one model to what each part wants: which devices are unhealthy and why, and what the
// Node object should say. Pure.
#pragma once

#include "agent/labels/feature_labels.h"
#include "agent/labels/node_patch.h"
#include "agent/model/node_model.h"
#include "agent/plugin/inventory.h"
#include "agent/run/options.h"
#include "base/loop.h"

namespace jogak::agent {

// Nobody starts well on a driver that is away. Shorter absences (a reload) are let pass.
inline constexpr TimeUs kDriverAwayMax = 5 * kSecondInUs;

UnhealthyReasons unhealthy_reasons(const NodeSnapshot& node, TimeUs now);

// The labels' view of the plugin's configuration. What the configuration cannot tell (the machine,
// PCI classes, the time) is left to the caller.
LabelOptions label_options(const PluginConfig& config);

// Everything that the node should say: labels only `with_labels`, annotations and conditions only
// if the options report. `unhealthy`: as the kubelet is told.
NodeWish node_wish(const NodeSnapshot& node, const UnhealthyReasons& unhealthy,
                   const AgentOptions& options, const LabelOptions& labels, bool with_labels);

// What the node says of the label nvidia.com/mig.config.
void add_mig_state(const MigWork::Told& told, NodeWish& wish);
inline constexpr std::string_view kMigConfigReason = "jogak.io/mig.config.reason";  // annotation

}  // namespace jogak::agent
