// SPDX-License-Identifier: Apache-2.0
// Baseline "DotProd" of the FGD paper (Weng et al., USENIX ATC 2023):
//   trunc(100 * (1 - 1/2 * (c/128000 * c_p/128000 + R/8000 * r/8000)))
// over the node's free CPU c and GPU milli R before placement and the pod's c_p and r.
#include "core/policy/dot_product.h"

#include <algorithm>

#include "core/policy/baseline_limits.h"

namespace jogak::core {

std::int64_t DotProductPolicy::score(const Cluster&, const Shape& shape, const Node& node) {
  const GpuAmount ask = view_.ask(shape, node);
  const FreeGpus& free = view_.look(node, ask.kind);
  // One denominator: 2 * 128000^2; a GPU product counts (128000/8000)^2 times. The clamps keep the
  // products inside 64 bits on any input and touch no node below 100,000 CPUs.
  constexpr std::int64_t kHalfDenominator = kCpuMilliMax * kCpuMilliMax;
  constexpr std::int64_t kGpuFactor = (kCpuMilliMax / kGpuMilliMax) * (kCpuMilliMax / kGpuMilliMax);
  const std::int64_t cpu =
      std::min(free_cpu(node), kClampCpuMilli) * std::min(shape.cpu, kClampCpuMilli);
  const std::int64_t gpu =
      std::min(free.total, kClampGpuMilli) * std::min(ask.total(), kClampGpuMilli) * kGpuFactor;
  return (200 * kHalfDenominator - 100 * (cpu + gpu)) / (2 * kHalfDenominator);
}

}  // namespace jogak::core
