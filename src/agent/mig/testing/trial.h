// SPDX-License-Identifier: Apache-2.0
//
// Where a random test of the MIG manager starts and how long it goes on: JOGAK_SEED and
// JOGAK_ROUNDS override.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

#include <fmt/format.h>

#include "base/parse_number.h"

namespace jogak::agent::testing {

struct MigTrial {
  std::uint64_t seed = 1;
  std::uint64_t rounds = 1;

  static MigTrial from_env(std::uint64_t default_rounds) {
    const auto number = [](const char* name, std::uint64_t fallback) {
      const char* text = std::getenv(name);
      const auto parsed =
          text == nullptr ? Result<std::int64_t>(invalid("unset")) : parse_int(text, 0, INT64_MAX);
      return parsed ? static_cast<std::uint64_t>(*parsed) : fallback;
    };
    return {.seed = number("JOGAK_SEED", 1), .rounds = number("JOGAK_ROUNDS", default_rounds)};
  }

  std::uint64_t seed_of(std::uint64_t round) const { return seed + round; }
  // For failure messages: how to repeat this round alone.
  std::string repeat(std::uint64_t round) const {
    return fmt::format("repeat with JOGAK_SEED={} JOGAK_ROUNDS=1", seed_of(round));
  }
};

}  // namespace jogak::agent::testing
