// SPDX-License-Identifier: Apache-2.0
//
// How long a simulated container runs and how it ends: by annotation, by its command (`sleep 30`),
// or for ever. Docs: docs/playground.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/doc.h"
#include "base/loop.h"

namespace jogak::kubelet {

inline constexpr std::string_view kRunSeconds = "jogak.io/run-seconds";      // "30", "0.5"
inline constexpr std::string_view kExitCode = "jogak.io/exit-code";          // "1"
inline constexpr std::string_view kStartSeconds = "jogak.io/start-seconds";  // image and start
inline constexpr std::string_view kIgnoresTerm = "jogak.io/ignores-term";  // "true": uses its grace

struct RunPlan {
  TimeUs start_delay = 0;          // from the binding to Running
  std::optional<TimeUs> run_time;  // nullopt: until it is told to stop
  std::int32_t exit_code = 0;
  bool ignores_term = false;
};

struct RunDefaults {
  TimeUs start_delay = 1 * kSecondInUs;
  TimeUs job_run_time = 20 * kSecondInUs;  // of pods of a Job that say nothing else
};

// Of a pod's containers together. Malformed annotations count as absent.
RunPlan plan_of(const Doc& pod, const RunDefaults& defaults);
// Seconds with up to six decimals, 0 to 10^9.
std::optional<TimeUs> parse_seconds(std::string_view text);

}  // namespace jogak::kubelet
