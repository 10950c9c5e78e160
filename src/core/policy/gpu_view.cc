// SPDX-License-Identifier: Apache-2.0
// Translation of requests and devices into thousandths.
#include "core/policy/gpu_view.h"

#include <algorithm>
#include <bit>

#include "core/model/mig.h"

namespace jogak::core {

namespace {

constexpr std::string_view kCountedGpu = "nvidia.com/gpu";

std::int32_t milli_of_mib(const Node& node, std::int32_t mib) {
  for (const Gpu& gpu : node.gpus) {
    if (gpu.usable() && gpu.memory_mib > 0) {
      const std::int64_t scaled = std::int64_t{mib} * kWholeMilli;
      return static_cast<std::int32_t>((scaled + gpu.memory_mib - 1) / gpu.memory_mib);
    }
  }
  return kWholeMilli;
}

std::int32_t milli_of_profile(const Node& node, std::string_view name) {
  for (const Gpu& gpu : node.gpus) {
    if (!gpu.mig_enabled || gpu.mig_model >= mig_models().size()) continue;
    const MigModel& model = mig_models()[gpu.mig_model];
    const std::int32_t index = find_mig_profile(model, name);
    if (index < 0) continue;
    return model.profiles[static_cast<std::size_t>(index)].size * kWholeMilli / model.slices;
  }
  return kWholeMilli;
}

std::int32_t free_milli_for(const Gpu& gpu, GpuAsk kind) {
  if (gpu.health != GpuHealth::Healthy) return FreeGpus::kHidden;
  if (kind != GpuAsk::Mig) return gpu.mig_enabled ? FreeGpus::kHidden : gpu.free_milli();
  if (!gpu.mig_enabled || gpu.mig_model >= mig_models().size()) return FreeGpus::kHidden;
  const std::int32_t slices = mig_models()[gpu.mig_model].slices;
  return (slices - std::popcount(gpu.mig_used_mask)) * kWholeMilli / slices;
}

}  // namespace

void GpuView::prepare(const Cluster& cluster) { counted_ = cluster.find_scalar(kCountedGpu); }

GpuAmount GpuView::ask(const Shape& shape, const Node& node) const {
  const GpuRequest& gpu = shape.spec.gpu;
  switch (gpu.kind) {
    case GpuAsk::Whole:
      return {gpu.kind, gpu.count, kWholeMilli};
    case GpuAsk::ShareMilli:
      return {gpu.kind, gpu.count, gpu.amount};
    case GpuAsk::ShareMib:
      return {gpu.kind, gpu.count, milli_of_mib(node, gpu.amount)};
    case GpuAsk::Mig:
      return {gpu.kind, gpu.count, milli_of_profile(node, gpu.mig_profile)};
    case GpuAsk::None:
      break;
  }
  if (!counted_) return {};
  for (const ScalarRequest& request : shape.scalars) {
    if (request.id == *counted_) {
      const std::int64_t count = std::min<std::int64_t>(request.amount, 1 << 20);
      return {GpuAsk::Whole, static_cast<std::int32_t>(count), kWholeMilli};
    }
  }
  return {};
}

const FreeGpus& GpuView::look(const Node& node, GpuAsk kind) {
  free_.milli.clear();
  free_.total = 0;
  free_.devices = 0;
  free_.fully_free = 0;
  for (const Gpu& gpu : node.gpus) free_.milli.push_back(free_milli_for(gpu, kind));
  if (node.gpus.empty() && counted_ && kind != GpuAsk::Mig) {
    if (const ScalarAmount* counted = node.scalar(*counted_); counted != nullptr) {
      // Only how many are free is known; the busy ones come first, as if handed out in order.
      constexpr std::int64_t kDevicesMax = 4096;
      const std::int64_t all = std::clamp<std::int64_t>(counted->allocatable, 0, kDevicesMax);
      const std::int64_t busy = std::clamp<std::int64_t>(counted->requested, 0, all);
      free_.milli.assign(static_cast<std::size_t>(all), kWholeMilli);
      std::fill_n(free_.milli.begin(), busy, 0);
    }
  }
  // Devices held by pods that nobody could name: any of the free ones, so the last ones are as
  // good.
  std::int32_t unknown = kind == GpuAsk::Mig ? 0 : node.unknown_gpus;
  for (std::size_t i = free_.milli.size(); i > 0 && unknown > 0; --i) {
    if (free_.milli[i - 1] != kWholeMilli) continue;
    free_.milli[i - 1] = 0;
    --unknown;
  }
  for (const std::int32_t milli : free_.milli) {
    if (milli == FreeGpus::kHidden) continue;
    ++free_.devices;
    free_.total += milli;
    if (milli == kWholeMilli) ++free_.fully_free;
  }
  return free_;
}

std::int64_t free_cpu(const Node& node) {
  return std::max<std::int64_t>(node.cpu_allocatable - node.cpu_requested, 0);
}

bool share_fits(const Gpu& gpu, const GpuRequest& request) {
  if (!gpu.usable()) return false;
  if (request.kind == GpuAsk::ShareMib && gpu.memory_mib <= 0) return false;
  return gpu.free_units >= gpu.units_of(request.kind, request.amount);
}

}  // namespace jogak::core
