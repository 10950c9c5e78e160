// SPDX-License-Identifier: Apache-2.0
// The plot of scale_bench: cost of one decision against the size of the cluster, both on log axes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace jogak::bench {

struct ScalePoint {
  std::int32_t nodes = 0;
  double mean_ns = 0;
  double p99_ns = 0;
};

// A self-contained SVG.
std::string scale_plot(std::span<const ScalePoint> points, std::string_view policy);

}  // namespace jogak::bench
