// SPDX-License-Identifier: Apache-2.0
// Results of scenarios for people and programs: placements and summary of one run, and several
// policies side by side.
#pragma once

#include <span>
#include <string>

#include "base/doc.h"
#include "sim/scenario_run.h"

namespace jogak::sim {

// Placements (at most `rows_max`) and the summary.
std::string scenario_text(const ScenarioResult& result, std::size_t rows_max, bool with_timing);
Doc scenario_doc(const ScenarioResult& result, bool with_timing);

// One row per run of the same scenario under another policy. "high priority" is the highest there
// is.
std::string comparison_text(std::span<const ScenarioResult> results, bool with_timing);
Doc comparison_doc(std::span<const ScenarioResult> results, bool with_timing);
std::string comparison_html(std::string_view title, std::string_view about,
                            std::span<const ScenarioResult> results);

// "12.5 s", "3 m 20 s", "2 h 05 m"; "never" for a negative time.
std::string duration_text(std::int64_t ns);

}  // namespace jogak::sim
