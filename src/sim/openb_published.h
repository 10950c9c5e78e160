// SPDX-License-Identifier: Apache-2.0
// Published results of the openb experiment, to be set beside one's own: mean and standard
// deviation of the allocated GPU over ten seeds, in percent of capacity, when 100 % and 130 % have
// arrived. Source: the artifact of Weng et al., "Beware of Fragmentation" (USENIX ATC 2023),
// hkust-adsl/kubernetes-scheduler-simulator, experiments/analysis/expected_results (1,020 runs).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace jogak::sim {

// In hundredths of a percent.
struct PublishedValue {
  std::int32_t mean = 0;
  std::int32_t deviation = 0;
};

// nullopt where nothing was published: another variant or policy, a column other than 100 and 130.
std::optional<PublishedValue> published_allocation(std::string_view variant,
                                                   std::string_view policy, std::size_t column);

// The seventeen variants with published results.
std::span<const std::string_view> published_variants();

}  // namespace jogak::sim
