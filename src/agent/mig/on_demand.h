// SPDX-License-Identifier: Apache-2.0
//
// Cutting on demand: a pod that the scheduler placed with jogak.io/mig-profile needs an instance;
// which one, or where to make it? What is in use is never touched, room is kept for the other pods
// that were placed here and have not come yet, idle instances go only when there is no other way,
// and the new one lies where the most freedom stays. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/mig/plan.h"

namespace jogak::agent {

// One GPU with MIG on. The geometry outlives it.
struct MigCutGpu {
  int gpu = 0;  // index
  const MigGeometry* geometry = nullptr;
  std::vector<MigPresent> present;
};

// What a pod was promised and does not hold yet.
struct MigHold {
  std::string pod;           // "ns/name", for messages
  std::string profile;       // as the scheduler wrote it
  std::optional<int> gpu;    // where the scheduler said so
  std::optional<int> start;  // memory slice; only with gpu
  friend bool operator==(const MigHold&, const MigHold&) = default;
};

struct MigCut {
  enum class Kind : std::uint8_t {
    Use,     // the idle instance gi_id is right
    Create,  // destroy these idle instances (mostly none), then create at place
    Wait,    // not now: what is in use or promised is in the way
    Never,   // none of these GPUs can have such an instance
  };
  Kind kind = Kind::Never;
  int gpu = -1;
  int gi_id = -1;
  MigPlace place;
  std::vector<MigPresent> destroy;
  std::string reason;  // one line, with Wait and Never
};

// `others`: the holds of other pods on these GPUs.
MigCut cut_for(std::span<const MigCutGpu> gpus, std::span<const MigHold> others,
               const MigHold& wanted);

}  // namespace jogak::agent
