// SPDX-License-Identifier: Apache-2.0
//
// What `jogak agent mig` answers: per GPU the steps and the slices before and after, for people and
// for programs.
#pragma once

#include <span>
#include <string>

#include "agent/mig/manager.h"
#include "base/doc.h"
#include "nvml/gpu_source.h"

namespace jogak::cli {

enum class MigTense : std::uint8_t { Would, Did };

// `node` names the GPUs of the reports.
std::string mig_report_text(const nvml::NodeFacts& node,
                            std::span<const agent::MigGpuReport> reports, MigTense tense);
Doc mig_report_doc(const nvml::NodeFacts& node, std::span<const agent::MigGpuReport> reports,
                   MigTense tense);

}  // namespace jogak::cli
