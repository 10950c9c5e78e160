// SPDX-License-Identifier: Apache-2.0
// Baseline "GpuPacking" of the FGD paper (Weng et al., USENIX ATC 2023). A pod without GPU scores
// 0. On a node whose G devices are all free: max(33 - G, G). Else the k tightest devices that fit
// are looked at: if u > 0 of them are fully free, max(50 - u, 33); if none is, max(100 - trunc(sum
// of trunc(g * 100 / 1000) / 10), 50).
#include "core/policy/packing.h"

#include <algorithm>

namespace jogak::core {

std::int64_t PackingPolicy::score(const Cluster&, const Shape& shape, const Node& node) {
  const GpuAmount ask = view_.ask(shape, node);
  if (ask.count == 0) return 0;
  const FreeGpus& free = view_.look(node, ask.kind);
  if (free.fully_free == free.devices) {
    return std::max<std::int64_t>(33 - free.devices, free.devices);
  }
  fitting_.clear();
  for (const std::int32_t milli : free.milli) {
    if (milli >= ask.milli) fitting_.push_back(milli);
  }
  std::ranges::sort(fitting_);
  const std::size_t taken = std::min(fitting_.size(), static_cast<std::size_t>(ask.count));
  std::int64_t opened = 0;
  std::int64_t tenths = 0;
  for (std::size_t i = 0; i < taken; ++i) {
    if (fitting_[i] == kWholeMilli) ++opened;
    tenths += fitting_[i] * 100 / kWholeMilli;
  }
  if (opened > 0) return std::max<std::int64_t>(50 - opened, 33);
  return std::max<std::int64_t>(100 - tenths / 10, 50);
}

}  // namespace jogak::core
