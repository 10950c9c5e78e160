// SPDX-License-Identifier: Apache-2.0
// Devices of one node, worked out from the pods that run there each time anybody asks. A share is a
// fraction of the device in both of its forms; amounts are compared as products, never divided:
// thousandths * memory against MiB * 1000.
#include <algorithm>
#include <cstdint>

#include "core/model/mig.h"
#include "test/reference/reference_scheduler.h"

namespace jogak::reference {

using core::GpuAsk;
using core::GpuHold;
using core::GpuRequest;
using core::GpuSpec;
using core::MigModel;
using core::MigProfile;
using core::NodeSpec;

namespace {

struct Use {
  std::int64_t taken = 0;  // of 1000 * memory
  std::int32_t owners = 0;
  std::uint32_t slices = 0;             // taken memory slices
  std::vector<std::int32_t> instances;  // by profile, of pods that hold some
};

const MigModel* model_of(const NodeSpec& node) {
  const auto index = core::find_mig_model(node.gpu_model);
  return index ? &core::mig_models()[*index] : nullptr;
}

std::int64_t memory_of(const GpuSpec& gpu) { return gpu.memory_mib > 0 ? gpu.memory_mib : 1; }

bool is_share(GpuAsk kind) { return kind == GpuAsk::ShareMilli || kind == GpuAsk::ShareMib; }

// Whether the pod can hold what is said of it; else its devices are not known.
bool is_credible(const RefPod& pod, const NodeSpec& node) {
  const GpuRequest& ask = pod.spec.shape.gpu;
  if (!pod.holds_known || pod.holds.size() != static_cast<std::size_t>(ask.count)) return false;
  for (std::size_t i = 0; i < pod.holds.size(); ++i) {
    const GpuHold& hold = pod.holds[i];
    if (hold.gpu < 0 || static_cast<std::size_t>(hold.gpu) >= node.gpus.size()) return false;
    if (is_share(ask.kind) && hold.amount < 1) return false;
    for (std::size_t j = 0; j < i; ++j) {
      const bool same = pod.holds[j].gpu == hold.gpu &&
                        (ask.kind != GpuAsk::Mig || pod.holds[j].mig_start == hold.mig_start);
      if (same) return false;
    }
  }
  return true;
}

void add_slices(Use& use, const MigModel& model, const GpuRequest& ask, const GpuHold& hold) {
  const std::int32_t profile =
      ask.kind == GpuAsk::Mig ? core::find_mig_profile(model, ask.mig_profile) : -1;
  std::int32_t first = 0;
  std::int32_t end = model.slices;
  if (profile >= 0) {
    const std::int32_t size = model.profiles[static_cast<std::size_t>(profile)].size;
    if (hold.mig_start >= 0 && hold.mig_start + size <= model.slices) {
      first = hold.mig_start;
      end = first + size;
    }
    use.instances.resize(model.profiles.size());
    ++use.instances[static_cast<std::size_t>(profile)];
  }
  for (std::int32_t s = first; s < end; ++s) use.slices |= 1U << s;
}

// Per device; `unknown` gets the number of devices held by pods that nobody located.
std::vector<Use> usage(const NodeSpec& node, const std::vector<const RefPod*>& on_node,
                       std::int32_t& unknown) {
  std::vector<Use> use(node.gpus.size());
  unknown = 0;
  for (const RefPod* pod : on_node) {
    const GpuRequest& ask = pod->spec.shape.gpu;
    if (ask.kind == GpuAsk::None) continue;
    if (!is_credible(*pod, node)) {
      unknown += ask.count;
      continue;
    }
    for (const GpuHold& hold : pod->holds) {
      const GpuSpec& gpu = node.gpus[static_cast<std::size_t>(hold.gpu)];
      Use& u = use[static_cast<std::size_t>(hold.gpu)];
      ++u.owners;
      const bool odd_instance = ask.kind == GpuAsk::Mig && !gpu.mig_enabled;
      if (ask.kind == GpuAsk::Whole || odd_instance) u.taken += 1000 * memory_of(gpu);
      if (ask.kind == GpuAsk::ShareMilli) u.taken += hold.amount * memory_of(gpu);
      if (ask.kind == GpuAsk::ShareMib) u.taken += std::int64_t{1000} * hold.amount;
      if (gpu.mig_enabled) add_slices(u, *model_of(node), ask, hold);
    }
  }
  return use;
}

bool is_plain(const GpuSpec& gpu) {
  return gpu.health == core::GpuHealth::Healthy && !gpu.mig_enabled;
}

bool serves(const GpuRequest& ask, const GpuSpec& gpu, const Use& use) {
  if (!is_plain(gpu)) return false;
  const std::int64_t free = 1000 * memory_of(gpu) - use.taken;
  if (ask.kind == GpuAsk::Whole) return use.owners == 0;
  if (ask.kind == GpuAsk::ShareMilli) return ask.amount * memory_of(gpu) <= free;
  return gpu.memory_mib > 0 && std::int64_t{1000} * ask.amount <= free;
}

bool counts_allowed(const MigModel& model, const std::vector<std::int32_t>& instances) {
  std::int32_t decoders = 0;
  std::int32_t flow = 0;
  for (std::size_t i = 0; i < instances.size(); ++i) {
    if (instances[i] > model.profiles[i].max_count) return false;
    decoders += instances[i] * model.profiles[i].nvdec;
    flow += instances[i] * model.profiles[i].ofa;
  }
  return decoders <= model.nvdec && flow <= model.ofa;
}

// The largest number of further instances, by trying every start in turn with and without.
std::int32_t most_cuts(const MigModel& model, std::size_t profile, std::uint32_t used,
                       std::vector<std::int32_t> instances, std::int32_t from) {
  const MigProfile& p = model.profiles[profile];
  std::int32_t best = 0;
  for (std::int32_t start = from; start < model.slices; ++start) {
    const std::uint32_t mask = ((1U << p.size) - 1U) << start;
    if ((p.starts >> start & 1U) == 0 || (used & mask) != 0) continue;
    std::vector<std::int32_t> more = instances;
    ++more[profile];
    if (!counts_allowed(model, more)) continue;
    best = std::max(best, 1 + most_cuts(model, profile, used | mask, more, start + 1));
  }
  return best;
}

std::int32_t instance_places(const GpuRequest& ask, const NodeSpec& node,
                             const std::vector<Use>& use) {
  const MigModel* const model = model_of(node);
  if (model == nullptr) return 0;
  const std::int32_t index = core::find_mig_profile(*model, ask.mig_profile);
  if (index < 0) return 0;
  const auto profile = static_cast<std::size_t>(index);
  std::int32_t places = 0;
  for (std::size_t g = 0; g < node.gpus.size(); ++g) {
    const GpuSpec& gpu = node.gpus[g];
    if (!gpu.mig_enabled || gpu.health != core::GpuHealth::Healthy) continue;
    if (gpu.mig_dynamic) {
      std::vector<std::int32_t> instances = use[g].instances;
      instances.resize(model->profiles.size());
      places += most_cuts(*model, profile, use[g].slices, instances, 0);
      continue;
    }
    for (const core::MigInstanceSpec& instance : gpu.mig_instances) {
      if (core::find_mig_profile(*model, instance.profile) != index) continue;
      const std::uint32_t mask = ((1U << model->profiles[profile].size) - 1U) << instance.start;
      places += (use[g].slices & mask) == 0 ? 1 : 0;
    }
  }
  return places;
}

// Places that instances nobody located may be in: one of the same profile where the layout is
// fixed; where devices are cut on demand, an instance may lie across as many places as it has
// slices.
std::int32_t places_in_doubt(const GpuRequest& ask, const NodeSpec& node,
                             const std::vector<const RefPod*>& on_node) {
  const MigModel* const model = model_of(node);
  const bool any_dynamic = std::any_of(node.gpus.begin(), node.gpus.end(), [](const GpuSpec& g) {
    return g.mig_enabled && g.mig_dynamic;
  });
  std::int32_t doubt = 0;
  for (const RefPod* pod : on_node) {
    const GpuRequest& other = pod->spec.shape.gpu;
    if (other.kind != GpuAsk::Mig || is_credible(*pod, node)) continue;
    const std::int32_t profile = core::find_mig_profile(*model, other.mig_profile);
    if (any_dynamic && profile >= 0) {
      doubt += other.count * model->profiles[static_cast<std::size_t>(profile)].size;
    } else if (other.mig_profile == ask.mig_profile) {
      doubt += other.count;
    }
  }
  return doubt;
}

}  // namespace

void settle_holds(RefPod& pod, const NodeSpec& node) {
  if (pod.spec.shape.gpu.kind == GpuAsk::None || node.gpus.empty()) return;
  pod.holds_known = is_credible(pod, node);
}

bool devices_left(const GpuRequest& ask, const NodeSpec& node,
                  const std::vector<const RefPod*>& on_node) {
  if (ask.kind == GpuAsk::None) return true;
  if (!ask.models.empty() &&
      std::count(ask.models.begin(), ask.models.end(), node.gpu_model) == 0) {
    return false;
  }
  if (node.gpus.empty()) return ask.kind == GpuAsk::Whole;  // by count, among the resources
  std::int32_t unknown = 0;
  const std::vector<Use> use = usage(node, on_node, unknown);
  if (ask.kind == GpuAsk::Mig) {
    if (model_of(node) == nullptr) return false;
    return instance_places(ask, node, use) - places_in_doubt(ask, node, on_node) >= ask.count;
  }
  std::int32_t serving = 0;
  for (std::size_t g = 0; g < node.gpus.size(); ++g) {
    serving += serves(ask, node.gpus[g], use[g]) ? 1 : 0;
  }
  return serving - unknown >= ask.count;
}

std::optional<std::vector<GpuHold>> guess_devices(const GpuRequest& ask, const NodeSpec& node,
                                                  const std::vector<const RefPod*>& on_node) {
  if (ask.kind == GpuAsk::None || node.gpus.empty()) return std::vector<GpuHold>{};
  if (!devices_left(ask, node, on_node)) return std::nullopt;
  std::int32_t unknown = 0;
  const std::vector<Use> use = usage(node, on_node, unknown);
  std::vector<GpuHold> holds;
  for (std::size_t g = 0; g < node.gpus.size(); ++g) {
    if (holds.size() == static_cast<std::size_t>(ask.count)) break;
    if (serves(ask, node.gpus[g], use[g])) holds.push_back({static_cast<std::int32_t>(g), 0, -1});
  }
  return holds;
}

}  // namespace jogak::reference
