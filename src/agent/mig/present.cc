// SPDX-License-Identifier: Apache-2.0
//
// See present.h.
#include "agent/mig/present.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

namespace jogak::agent {

std::string process_text(const nvml::ProcessFacts& process) {
  if (process.name.empty()) return fmt::format("pid {}", process.pid);
  return fmt::format("pid {} ({})", process.pid, process.name);
}

std::vector<MigPresent> mig_present(const MigGeometry& geometry,
                                    std::span<const nvml::MigInstanceFacts> rows,
                                    std::span<const nvml::ProcessFacts> processes,
                                    const MigHolders& holders) {
  std::vector<MigPresent> result;
  for (const nvml::MigInstanceFacts& row : rows) {
    auto at = std::ranges::find(result, row.gi_id, &MigPresent::gi_id);
    if (at == result.end()) {
      result.push_back({.gi_id = row.gi_id,
                        .place = {.at = row.placement, .profile = geometry.find(row.profile_id)},
                        .is_whole = false,
                        .in_use = false,
                        .user = {},
                        .profile = row.gi_profile,
                        .profile_id = row.profile_id,
                        .ci_profile_ids = {},
                        .part_slices = {},
                        .uuids = {}});
      at = result.end() - 1;
    }
    if (row.ci_id < 0) continue;
    // Until all parts are seen: whether the first one is everything.
    at->is_whole = at->ci_profile_ids.empty() && row.profile == row.gi_profile;
    at->part_slices.push_back(row.ci_slices);
    at->ci_profile_ids.push_back(row.ci_profile_id);
    at->uuids.push_back(row.uuid);
    if (const auto holder = holders.find(row.uuid); holder != holders.end()) {
      at->in_use = true;
      at->user = holder->second;
    }
  }
  for (MigPresent& instance : result) {
    if (instance.is_whole) instance.part_slices.clear();
    std::ranges::sort(instance.part_slices, std::greater());
    if (instance.part_slices.empty() || instance.place.profile < 0) continue;
    const int kind = geometry.find_parts(instance.place.profile, instance.part_slices);
    if (kind < 0) continue;  // parts that nobody asks for
    instance.place.profile = kind;
    instance.is_whole = true;
  }
  for (MigPresent& instance : result) {
    if (!instance.user.empty()) continue;  // a pod says more than its process
    const auto user = std::ranges::find_if(processes, [&](const nvml::ProcessFacts& process) {
      return process.gi_id == instance.gi_id || process.gi_id < 0;
    });
    if (user == processes.end()) continue;
    instance.in_use = true;
    instance.user = process_text(*user);
  }
  std::ranges::sort(result, {}, &MigPresent::gi_id);
  return result;
}

}  // namespace jogak::agent
