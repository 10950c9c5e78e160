// SPDX-License-Identifier: Apache-2.0
// Counted from the holds of the pods on the node; the ledger's sums are never read.
#include "core/plan/naive_devices.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "core/model/mig.h"

namespace jogak::core::naive {
namespace {

// What is on one device. Shares are summed as (thousandths, MiB), which are compared exactly.
struct Device {
  std::int64_t whole = 0;
  std::int64_t milli = 0;
  std::int64_t mib = 0;
  std::vector<std::int32_t> slices = std::vector<std::int32_t>(16, 0);  // owners per memory slice
  std::map<std::string, std::int32_t> instances;                        // by profile name

  bool shared() const { return milli > 0 || mib > 0; }
  bool partitioned() const { return !instances.empty(); }
};

const MigProfile* profile_on(const Gpu& gpu, const std::string& name) {
  if (gpu.mig_model >= mig_models().size()) return nullptr;
  for (const MigProfile& p : mig_models()[gpu.mig_model].profiles) {
    std::string resource_form(p.name);
    std::ranges::replace(resource_form, '+', '.');
    if (p.name == name || resource_form == name) return &p;
  }
  return nullptr;
}

void add_hold(Device& device, const Gpu& gpu, const GpuRequest& ask, const GpuHold& hold) {
  if (ask.kind == GpuAsk::Whole) ++device.whole;
  if (ask.kind == GpuAsk::ShareMilli) device.milli += hold.amount;
  if (ask.kind == GpuAsk::ShareMib) device.mib += hold.amount;
  const MigProfile* profile = profile_on(gpu, ask.mig_profile);
  if (ask.kind != GpuAsk::Mig || profile == nullptr) return;
  ++device.instances[std::string(profile->name)];
  for (std::int32_t s = 0; s < profile->size; ++s) {
    const std::int32_t slice = hold.mig_start + s;
    if (slice >= 0 && slice < 16) ++device.slices[static_cast<std::size_t>(slice)];
  }
}

struct Holdings {
  std::vector<Device> devices;
  // Devices of pods that nobody located.
  std::int64_t unknown_whole = 0;
  std::int64_t unknown_shared = 0;
};

Holdings count_holdings(const Cluster& cluster, const Node& node) {
  Holdings all;
  all.devices.resize(node.gpus.size());
  for (const PodId pod : node.pods) {
    const GpuRequest& ask = cluster.shape_of(pod).spec.gpu;
    if (ask.kind == GpuAsk::None) continue;
    if (!cluster.pod(pod).holds_known) {
      if (ask.kind == GpuAsk::Whole) all.unknown_whole += ask.count;
      if (ask.kind != GpuAsk::Whole && ask.kind != GpuAsk::Mig) all.unknown_shared += ask.count;
    }
    for (const GpuHold& hold : cluster.pod(pod).holds) {
      const auto g = static_cast<std::size_t>(hold.gpu);
      if (g < all.devices.size()) add_hold(all.devices[g], node.gpus[g], ask, hold);
    }
  }
  return all;
}

bool media_engines_fit(const Device& device, const Gpu& gpu) {
  if (gpu.mig_model >= mig_models().size()) return true;
  const MigModel& model = mig_models()[gpu.mig_model];
  std::int64_t nvdec = 0;
  std::int64_t ofa = 0;
  for (const MigProfile& p : model.profiles) {
    const auto it = device.instances.find(std::string(p.name));
    if (it == device.instances.end()) continue;
    if (it->second > p.max_count) return false;
    nvdec += std::int64_t{it->second} * p.nvdec;
    ofa += std::int64_t{it->second} * p.ofa;
  }
  return nvdec <= model.nvdec && ofa <= model.ofa;
}

// What must hold on any device at any time.
std::string broken_on(const Device& device, const Gpu& gpu) {
  if (device.whole > 1) return "double-booked: it has two whole-GPU owners";
  if (device.whole == 1 && (device.shared() || device.partitioned())) {
    return "shared-whole: others are on it beside a whole-GPU owner";
  }
  const std::int64_t memory = std::max(gpu.memory_mib, 1);
  if (device.milli * memory + device.mib * 1000 > 1000 * memory) {
    return fmt::format("over-shared: {} thousandths and {} MiB of {} MiB", device.milli, device.mib,
                       gpu.memory_mib);
  }
  for (const std::int32_t owners : device.slices) {
    if (owners > 1) return "mig-overlap: two instances cover one memory slice";
  }
  if (!media_engines_fit(device, gpu)) return "mig-engines: more instances than its engines serve";
  return {};
}

std::string instance_rule(const Node& node, const Gpu& gpu, const GpuRequest& ask,
                          const GpuHold& hold) {
  const MigProfile* profile = profile_on(gpu, ask.mig_profile);
  if (!gpu.mig_enabled || profile == nullptr) return "mig-mode: it has no such instances";
  if (hold.mig_start < 0 || hold.mig_start > 15 || (profile->starts >> hold.mig_start & 1) == 0) {
    return fmt::format("mig-start: {} cannot start at slice {}", profile->name, hold.mig_start);
  }
  if (gpu.mig_dynamic) return {};
  const auto& profiles = mig_models()[gpu.mig_model].profiles;
  const bool exists = std::ranges::any_of(node.mig_slots, [&](const MigSlot& slot) {
    return slot.gpu == hold.gpu && slot.start == hold.mig_start &&
           &profiles[static_cast<std::size_t>(slot.profile)] == profile;
  });
  return exists
             ? std::string{}
             : fmt::format("mig-start: no {} was cut at slice {}", profile->name, hold.mig_start);
}

// One new hold, looked at alone.
std::string hold_rule(const Node& node, const GpuRequest& ask, const GpuHold& hold) {
  const Gpu& gpu = node.gpus[static_cast<std::size_t>(hold.gpu)];
  if (gpu.health != GpuHealth::Healthy) return "unhealthy: it must not be given out";
  if (ask.kind == GpuAsk::Mig) return instance_rule(node, gpu, ask, hold);
  if (gpu.mig_enabled) return "mig-mode: it is partitioned";
  if (hold.mig_start != -1) return "holds: a MIG start without an instance";
  if (hold.amount != ask.amount) {
    return fmt::format("holds: {} given, {} asked", hold.amount, ask.amount);
  }
  if (ask.kind == GpuAsk::ShareMib && gpu.memory_mib == 0) return "holds: its memory is not known";
  return {};
}

std::string form_rule(const Node& node, const GpuRequest& ask, std::span<const GpuHold> holds) {
  if (ask.kind == GpuAsk::None || node.gpus.empty()) {
    if (!holds.empty()) return "holds: devices where none are asked or known";
    const bool detail_needed = ask.kind != GpuAsk::None && ask.kind != GpuAsk::Whole;
    return detail_needed ? "holds: the node tells nothing about its devices" : "";
  }
  if (std::ssize(holds) != ask.count) {
    return fmt::format("holds: {} devices for a request of {}", holds.size(), ask.count);
  }
  for (std::size_t i = 0; i < holds.size(); ++i) {
    if (holds[i].gpu < 0 || holds[i].gpu >= std::ssize(node.gpus)) {
      return fmt::format("holds: there is no device {}", holds[i].gpu);
    }
    if (i == 0) continue;
    const bool ascending = ask.kind == GpuAsk::Mig
                               ? std::tie(holds[i - 1].gpu, holds[i - 1].mig_start) <
                                     std::tie(holds[i].gpu, holds[i].mig_start)
                               : holds[i - 1].gpu < holds[i].gpu;
    if (!ascending) return "holds: devices must ascend and differ";
  }
  return {};
}

// Pods that nobody located must still be able to be somewhere: owners on devices nobody else is on,
// sharers where no owner is. How many devices more there are than they need; below zero where what
// was observed is too much already. Instances are left out: where they may be depends on the
// layout.
struct Room {
  std::int64_t for_owners = 0;
  std::int64_t for_all = 0;
};

Room room_for_unknown(const Node& node, const Holdings& holdings) {
  std::int64_t clean = 0;
  std::int64_t sharable = 0;
  for (std::size_t g = 0; g < node.gpus.size(); ++g) {
    const Device& d = holdings.devices[g];
    if (node.gpus[g].mig_enabled || d.whole > 0) continue;
    ++sharable;
    clean += d.shared() ? 0 : 1;
  }
  return {.for_owners = clean - holdings.unknown_whole,
          .for_all = sharable - holdings.unknown_whole - holdings.unknown_shared};
}

// A plan may not take what they need; what is too little already it may not make less.
bool spares_unknown(const Room& before, const Room& after) {
  const auto spared = [](std::int64_t was, std::int64_t is) { return is >= 0 || is >= was; };
  return spared(before.for_owners, after.for_owners) && spared(before.for_all, after.for_all);
}

// The words of a name in lower case, split at dashes and spaces.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    if (c == '-' || c == ' ') {
      words.emplace_back();
    } else {
      words.back() += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  return words;
}

bool model_fits(const GpuRequest& ask, std::string_view model) {
  const std::vector<std::string> has = words_of(model);
  return ask.models.empty() || std::ranges::any_of(ask.models, [&has](const std::string& name) {
           const std::vector<std::string> wants = words_of(name);
           return !std::ranges::search(has, wants).empty();
         });
}

}  // namespace

std::string device_rules(const Cluster& cluster, PodId pod, NodeId id,
                         std::span<const GpuHold> holds) {
  const Node& node = cluster.node(id);
  const GpuRequest& ask = cluster.shape_of(pod).spec.gpu;
  if (std::string broken = form_rule(node, ask, holds); !broken.empty()) return broken;
  if (ask.kind == GpuAsk::None) return {};
  if (!model_fits(ask, cluster.text(node.gpu_model)))
    return "gpu-model: the node's GPUs are not of a model it accepts";
  Holdings after = count_holdings(cluster, node);
  const Room before = room_for_unknown(node, after);
  for (const GpuHold& hold : holds) {
    const auto g = static_cast<std::size_t>(hold.gpu);
    std::string broken = hold_rule(node, ask, hold);
    if (broken.empty()) {
      add_hold(after.devices[g], node.gpus[g], ask, hold);
      broken = broken_on(after.devices[g], node.gpus[g]);
    }
    if (!broken.empty()) return fmt::format("{} (device {})", broken, hold.gpu);
  }
  if (ask.kind != GpuAsk::Mig && !node.gpus.empty() &&
      !spares_unknown(before, room_for_unknown(node, after))) {
    return "unknown-holders: no device is left for pods whose devices nobody reported";
  }
  return {};
}

std::string owner_rules(const Cluster& cluster, NodeId id) {
  const Node& node = cluster.node(id);
  const Holdings now = count_holdings(cluster, node);
  for (std::size_t g = 0; g < node.gpus.size(); ++g) {
    const std::string broken = broken_on(now.devices[g], node.gpus[g]);
    if (!broken.empty()) {
      return fmt::format("{} (device {} of node {})", broken, g, cluster.text(node.name));
    }
  }
  return {};
}

}  // namespace jogak::core::naive
