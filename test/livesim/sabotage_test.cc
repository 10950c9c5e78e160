// SPDX-License-Identifier: Apache-2.0
//
// Schedulers that are wrong on purpose: each fault must be reported, within a few seeds, by the
// rule that is there for it.
#include <set>
#include <string>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "test/livesim/run.h"
#include "test/livesim/saboteur.h"

namespace jogak::livesim {
namespace {

constexpr std::uint64_t kSeedsMax = 60;

class Sabotaged : public testing::TestWithParam<SabotageName> {};

TEST_P(Sabotaged, IsReportedByName) {
  std::string seen;
  for (std::uint64_t seed = 1; seed <= kSeedsMax; ++seed) {
    const RunResult result = run({.seed = seed, .sabotage = GetParam().sabotage});
    for (const Violation& violation : result.violations) {
      if (violation.rule == GetParam().rule) return;
      seen += fmt::format("\n  seed {}: {}: {}", seed, violation.rule, violation.what);
    }
  }
  ADD_FAILURE() << GetParam().name << " was not reported as " << GetParam().rule << " within "
                << kSeedsMax << " seeds; seen:" << seen.substr(0, 4000);
}

INSTANTIATE_TEST_SUITE_P(LiveSim, Sabotaged,
                         testing::ValuesIn(sabotages().begin(), sabotages().end()),
                         [](const testing::TestParamInfo<SabotageName>& tested) {
                           return std::string(tested.param.name);
                         });

}  // namespace
}  // namespace jogak::livesim
