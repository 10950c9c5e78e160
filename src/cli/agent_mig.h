// SPDX-License-Identifier: Apache-2.0
//
// What `jogak agent mig` does, apart from words and printing: which goals a request means on a
// node, and the plan or the change itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/mig/manager.h"
#include "base/result.h"
#include "nvml/gpu_source.h"

namespace jogak::cli {

struct MigRequest {
  enum class Verb : std::uint8_t { Plan, Apply, Recover };
  Verb verb = Verb::Plan;
  std::string layout = {};   // "3g.20gb:2,1g.5gb", "all-balanced"; or
  std::string config = {};   // a name in `file`, or a standard one when that is empty
  std::string file = {};     // "" none
  std::string gpus = "all";  // or indices: "0,2"
};

// The goals on this node, by GPU. Errors: Invalid or NotFound, naming what is wrong.
Result<std::vector<agent::MigGoal>> mig_goals(const MigRequest& request,
                                              const nvml::NodeFacts& node);

// Plans, applies or recovers. `store` is used by the latter two. An Apply also looks after what an
// earlier one left of other GPUs: those reports come last.
Result<std::vector<agent::MigGpuReport>> run_mig(const MigRequest& request, nvml::GpuSource& source,
                                                 agent::MigJournalStore& store,
                                                 const agent::MigHolders& holders);

}  // namespace jogak::cli
