// SPDX-License-Identifier: Apache-2.0
// Baseline "BestFit" of the FGD paper (Weng et al., USENIX ATC 2023):
//   trunc(100 * (1 - [1/2 * (c - c_p)/128000 + 1/2 * (R - r)/8000]))
// The published stretch of the scores to 0..100 afterwards keeps their order and is left out.
#include "core/policy/best_fit.h"

#include <algorithm>

#include "core/policy/baseline_limits.h"

namespace jogak::core {

std::int64_t best_fit_score(GpuView& view, const Shape& shape, const Node& node) {
  const GpuAmount ask = view.ask(shape, node);
  const FreeGpus& free = view.look(node, ask.kind);
  constexpr std::int64_t kGpuFactor = kCpuMilliMax / kGpuMilliMax;
  const std::int64_t cpu_left =
      std::min(free_cpu(node), kClampCpuMilli) - std::min(shape.cpu, kClampCpuMilli);
  const std::int64_t gpu_left =
      std::min(free.total, kClampGpuMilli) - std::min(ask.total(), kClampGpuMilli);
  return (100 * kCpuMilliMax - 50 * (cpu_left + kGpuFactor * gpu_left)) / kCpuMilliMax;
}

}  // namespace jogak::core
