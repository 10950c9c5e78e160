// SPDX-License-Identifier: Apache-2.0
//
// One run from one seed: draws the world, the workload, the faults and the fate of the replicas;
// a phase with faults, in which nothing forbidden may happen; then all is healed, and whatever fits
// must run within a bounded time, and nothing be written any more.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "live/scheduler_driver.h"
#include "test/livesim/checkers.h"
#include "test/livesim/faults.h"
#include "test/livesim/saboteur.h"
#include "test/livesim/workload.h"

namespace jogak::livesim {

struct RunOptions {
  std::uint64_t seed = 1;
  Sabotage sabotage = Sabotage::None;
  bool is_told = false;  // the story on standard error
};

// What befell the replicas.
struct FateRates {
  int replicas = 1;
  bool crashes = false, stalls = false, stops = false;  // stop: in good order
  bool has_lease = true;
  bool clocks_differ = false;

  std::string text() const;
};

struct RunResult {
  std::string options;                // in words
  std::vector<Violation> violations;  // in the order they were found
  std::uint64_t digest = 0;           // of the server's history
  std::uint64_t revision = 0;         // of the server at the end
  Checkers::Counts counts;
  live::DriverCounts driver;
  std::uint64_t crashes = 0, stalls = 0, stops = 0, leaders = 0;

  // "RULE: what", "" when all is well.
  std::string failure() const;
};

RunResult run(const RunOptions& options);

// How to repeat one seed.
std::string repeat_command(std::uint64_t seed);

}  // namespace jogak::livesim
