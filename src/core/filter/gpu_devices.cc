// SPDX-License-Identifier: Apache-2.0
// See gpu_devices.h.
#include "core/filter/gpu_devices.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <string_view>

#include "core/model/mig.h"

namespace jogak::core {
namespace {

constexpr std::uint8_t kNoMigModel = 0xff;

// Devices that could serve: now, and if nobody were on the node.
struct Serving {
  std::int32_t now = 0;
  std::int32_t ever = 0;
};

Serving count_devices(const Node& node, const GpuRequest& ask) {
  Serving serving;
  for (const Gpu& gpu : node.gpus) {
    if (!gpu.usable()) continue;
    if (ask.kind == GpuAsk::Whole) {
      ++serving.ever;
      serving.now += gpu.fully_free() ? 1 : 0;
      continue;
    }
    if (ask.kind == GpuAsk::ShareMib && gpu.memory_mib == 0) continue;
    const std::int64_t units = gpu.units_of(ask.kind, ask.amount);
    serving.ever += units <= gpu.capacity_units ? 1 : 0;
    serving.now += units <= gpu.free_units ? 1 : 0;
  }
  serving.now -= node.unknown_gpus;
  return serving;
}

// How many more instances of the profile can be cut from a device. All have one size, so taking the
// smallest start each time packs the most.
std::int32_t count_cuts(const MigModel& model, std::size_t profile, std::uint16_t used,
                        MigCounts counts, std::int32_t enough) {
  const MigProfile& asked = model.profiles[profile];
  std::int32_t cuts = 0;
  while (cuts < enough) {
    const std::uint16_t starts = mig_free_starts(asked, used);
    if (starts == 0) break;
    ++counts[profile];
    if (!mig_counts_fit(model, {counts.data(), model.profiles.size()})) break;
    used = static_cast<std::uint16_t>(used | mig_mask(std::countr_zero(starts), asked.size));
    ++cuts;
  }
  return cuts;
}

std::int32_t count_free_slots(const Shape& shape, const Node& node, bool empty) {
  std::int32_t free = 0;
  for (const MigSlot& slot : node.mig_slots) {
    const Gpu& gpu = node.gpus[static_cast<std::size_t>(slot.gpu)];
    if (gpu.health != GpuHealth::Healthy || gpu.mig_model == kNoMigModel) continue;
    if (shape.mig_profile[gpu.mig_model] != slot.profile) continue;
    const MigModel& model = mig_models()[gpu.mig_model];
    const std::int32_t size = model.profiles[static_cast<std::size_t>(slot.profile)].size;
    if (empty || (gpu.mig_used_mask & mig_mask(slot.start, size)) == 0) ++free;
  }
  return free;
}

// Places that instances nobody located may take from ours. A slot of a fixed layout takes one of
// its own profile; a cut somewhere on a device may lie across several of our places.
std::int32_t unknown_places(const Cluster& cluster, const Shape& shape, const Node& node) {
  const auto dynamic = std::ranges::find_if(node.gpus, [](const Gpu& gpu) {
    return gpu.mig_enabled && gpu.mig_dynamic && gpu.mig_model != kNoMigModel;
  });
  std::int32_t places = 0;
  for (const PodId id : node.pods) {
    const Shape& other = cluster.shape_of(id);
    if (other.spec.gpu.kind != GpuAsk::Mig || cluster.pod(id).holds_known) continue;
    std::int32_t each = other.spec.gpu.mig_profile == shape.spec.gpu.mig_profile ? 1 : 0;
    if (dynamic != node.gpus.end() && other.mig_profile[dynamic->mig_model] >= 0) {
      const MigModel& model = mig_models()[dynamic->mig_model];
      each = model.profiles[static_cast<std::size_t>(other.mig_profile[dynamic->mig_model])].size;
    }
    places += each * other.spec.gpu.count;
  }
  return places;
}

// "A100" and "a100-sxm4" name "NVIDIA-A100-SXM4-80GB": whole words between dashes, spaces and ends.
bool names_model(std::string_view asked, std::string_view model) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  const auto same = [lower](char a, char b) { return lower(a) == lower(b); };
  const auto ends_word = [model](std::size_t at) {
    return at == model.size() || model[at] == '-' || model[at] == ' ';
  };
  for (std::size_t at = 0; at + asked.size() <= model.size(); ++at) {
    if (at > 0 && !ends_word(at - 1)) continue;
    if (!ends_word(at + asked.size())) continue;
    if (std::ranges::equal(model.substr(at, asked.size()), asked, same)) return true;
  }
  return false;
}

bool model_allowed(const Cluster& cluster, const Shape& shape, const Node& node) {
  if (shape.gpu_models.empty()) return true;
  if (std::ranges::find(shape.gpu_models, node.gpu_model) != shape.gpu_models.end()) return true;
  const std::string_view model = cluster.text(node.gpu_model);
  return std::ranges::any_of(shape.gpu_models,
                             [&](Symbol asked) { return names_model(cluster.text(asked), model); });
}

Verdict no(Code code, Reasons* reasons, std::string_view why) {
  return refuse(Plugin::GpuDevices, code, reasons, why);
}

std::string_view shortage_text(GpuAsk kind) {
  switch (kind) {
    case GpuAsk::ShareMilli:
      return "Insufficient GPU share";
    case GpuAsk::ShareMib:
      return "Insufficient GPU memory";
    case GpuAsk::Mig:
      return "Insufficient MIG placement";
    case GpuAsk::Whole:
    case GpuAsk::None:
      break;
  }
  return "Insufficient free GPUs";
}

}  // namespace

std::int32_t count_mig_places(const Cluster& cluster, const Shape& shape, const Node& node,
                              std::int32_t enough, bool empty) {
  std::int32_t lost = 0;
  if (!empty && node.unknown_gpus > 0) lost = unknown_places(cluster, shape, node);
  std::int32_t places = count_free_slots(shape, node, empty) - lost;
  for (std::size_t i = 0; i < node.gpus.size() && places < enough; ++i) {
    const Gpu& gpu = node.gpus[i];
    if (!gpu.mig_enabled || !gpu.mig_dynamic || gpu.health != GpuHealth::Healthy) continue;
    if (gpu.mig_model == kNoMigModel || shape.mig_profile[gpu.mig_model] < 0) continue;
    const auto profile = static_cast<std::size_t>(shape.mig_profile[gpu.mig_model]);
    const MigModel& model = mig_models()[gpu.mig_model];
    const std::uint16_t used = empty ? std::uint16_t{0} : gpu.mig_used_mask;
    MigCounts held{};
    if (used != 0) held = cluster.mig_counts(node, static_cast<std::int32_t>(i));
    places += count_cuts(model, profile, used, held, enough - places);
  }
  return places;
}

Verdict gpu_devices_filter(const Cluster& cluster, const PodView& pod, const Node& node,
                           Reasons* reasons) {
  const GpuRequest& ask = pod.shape->spec.gpu;
  if (ask.kind == GpuAsk::None || ask.count <= 0) return {};
  if (!model_allowed(cluster, *pod.shape, node)) {
    return no(Code::Unresolvable, reasons, "node(s) didn't match GPU model");
  }
  if (node.gpus.empty()) {
    if (ask.kind == GpuAsk::Whole) return {};  // NodeResourcesFit has counted
    return no(Code::Unresolvable, reasons, "node(s) didn't report GPU devices");
  }
  bool now = false;
  bool ever = true;
  if (ask.kind == GpuAsk::Mig) {
    now = count_mig_places(cluster, *pod.shape, node, ask.count, false) >= ask.count;
    if (!now) ever = count_mig_places(cluster, *pod.shape, node, ask.count, true) >= ask.count;
  } else {
    const Serving serving = count_devices(node, ask);
    now = serving.now >= ask.count;
    ever = serving.ever >= ask.count;
  }
  if (now) return {};
  return no(ever ? Code::Unschedulable : Code::Unresolvable, reasons, shortage_text(ask.kind));
}

}  // namespace jogak::core
