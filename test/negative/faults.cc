// SPDX-License-Identifier: Apache-2.0
// The mistakes. Each looks for an occasion in the state at hand, so that random clusters give many.
#include "test/negative/faults.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "core/filter/cycle.h"
#include "core/model/mig.h"

namespace jogak::negative {
namespace {

using core::Cluster;
using core::Decision;
using core::Gpu;
using core::GpuAsk;
using core::GpuHold;
using core::NodeId;
using core::Plugin;
using core::PodId;

const core::GpuRequest& ask_of(const Trial& t, const Decision& d) {
  return t.cluster.shape_of(d.pod).spec.gpu;
}

bool is_placed(const Trial& t, const Decision& d, GpuAsk kind) {
  return d.node.valid() && ask_of(t, d).kind == kind;
}

void sort_holds(Decision& d) {
  std::ranges::sort(d.holds, [](const GpuHold& a, const GpuHold& b) {
    return a.gpu != b.gpu ? a.gpu < b.gpu : a.mig_start < b.mig_start;
  });
}

// Replaces the first device of the decision by one that satisfies `wanted` and is not in it yet.
template <class Wanted>
bool swap_device(Trial& t, Decision& d, const Wanted& wanted) {
  const auto& gpus = t.cluster.node(d.node).gpus;
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    const auto index = static_cast<std::int32_t>(g);
    if (std::ranges::find(d.holds, index, &GpuHold::gpu) != d.holds.end()) continue;
    if (!wanted(gpus[g])) continue;
    d.holds[0].gpu = index;
    sort_holds(d);
    return true;
  }
  return false;
}

// ---- nodes ----

// Takes a node although this plugin refuses it. Only for pods without devices, so that no other
// mistake is mixed in.
template <Plugin kIgnored>
bool ignores(Trial& t, Decision& d) {
  if (ask_of(t, d).kind != GpuAsk::None) return false;
  const core::PodView view = core::PodView::of(t.cluster, d.pod);
  const core::FilterCycle cycle(t.cluster, view);
  if (!cycle.prefilter().verdict.fits()) return false;
  for (const NodeId node : t.cluster.node_order()) {
    if (cycle.check(node, nullptr).plugin != kIgnored) continue;
    d.node = node;
    return true;
  }
  return false;
}

// ---- devices ----

bool owned_whole(const Gpu& gpu) {
  return gpu.usable() && gpu.owner_count == 1 && gpu.free_units == 0;
}

bool double_books(Trial& t, Decision& d) {
  return is_placed(t, d, GpuAsk::Whole) && swap_device(t, d, owned_whole);
}

bool shares_an_owned_device(Trial& t, Decision& d) {
  return is_placed(t, d, GpuAsk::ShareMilli) && swap_device(t, d, owned_whole);
}

bool owns_a_shared_device(Trial& t, Decision& d) {
  return is_placed(t, d, GpuAsk::Whole) && swap_device(t, d, [](const Gpu& gpu) {
           return gpu.usable() && gpu.owner_count > 0 && gpu.free_units > 0;
         });
}

bool shares_too_much(Trial& t, Decision& d) {
  if (!is_placed(t, d, GpuAsk::ShareMib)) return false;
  const std::int64_t units = std::int64_t{1000} * ask_of(t, d).amount;
  return swap_device(t, d, [&](const Gpu& gpu) {
    return gpu.usable() && gpu.free_units > 0 && gpu.free_units < units;
  });
}

bool gives_an_unhealthy_device(Trial& t, Decision& d) {
  return is_placed(t, d, GpuAsk::Whole) &&
         swap_device(t, d, [](const Gpu& gpu) { return gpu.health == core::GpuHealth::Unhealthy; });
}

bool gives_a_partitioned_device(Trial& t, Decision& d) {
  return is_placed(t, d, GpuAsk::Whole) &&
         swap_device(t, d, [](const Gpu& gpu) { return gpu.mig_enabled; });
}

bool forgets_the_gpu_model(Trial& t, Decision& d) {
  const core::GpuRequest& ask = ask_of(t, d);
  if (!is_placed(t, d, GpuAsk::ShareMilli) || ask.models.empty()) return false;
  for (const NodeId node : t.cluster.node_order()) {
    const core::Node& n = t.cluster.node(node);
    if (std::ranges::count(ask.models, t.cluster.text(n.gpu_model)) > 0) continue;
    d.node = node;
    return true;
  }
  return false;
}

// ---- partitions ----

std::int32_t profile_size(const Trial& t, const Decision& d, std::int32_t gpu) {
  const Gpu& device = t.cluster.node(d.node).gpus[static_cast<std::size_t>(gpu)];
  const core::MigModel& model = core::mig_models()[device.mig_model];
  const std::int32_t profile = core::find_mig_profile(model, ask_of(t, d).mig_profile);
  return model.profiles[static_cast<std::size_t>(profile)].size;
}

// 3g.20gb may start at 0 or 4 only.
bool starts_anywhere(Trial& t, Decision& d) {
  if (!is_placed(t, d, GpuAsk::Mig) || ask_of(t, d).mig_profile != "3g.20gb") return false;
  d.holds[0].mig_start = 2;
  return true;
}

// Slices somebody else holds, at a start that would be legal.
bool overlaps_an_instance(Trial& t, Decision& d) {
  if (!is_placed(t, d, GpuAsk::Mig) || ask_of(t, d).mig_profile != "1g.5gb") return false;
  const auto& gpus = t.cluster.node(d.node).gpus;
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    if (!gpus[g].mig_dynamic || gpus[g].mig_used_mask == 0) continue;
    const auto index = static_cast<std::int32_t>(g);
    const std::int32_t size = profile_size(t, d, index);
    for (std::int32_t start = 0; start < 7; ++start) {
      if ((gpus[g].mig_used_mask & core::mig_mask(start, size)) == 0) continue;
      d.holds[0] = {index, 0, start};
      return true;
    }
  }
  return false;
}

// The layout of device 5 is fixed: nothing was cut at slice 2.
bool invents_an_instance(Trial& t, Decision& d) {
  if (!is_placed(t, d, GpuAsk::Mig) || ask_of(t, d).mig_profile != "1g.5gb") return false;
  d.holds[0] = {5, 0, 2};
  return true;
}

// ---- the form of a decision ----

bool repeats_a_device(Trial& t, Decision& d) {
  if (!is_placed(t, d, GpuAsk::Whole) || d.holds.size() < 2) return false;
  d.holds[1] = d.holds[0];
  return true;
}

bool shuffles_devices(Trial& t, Decision& d) {
  if (!is_placed(t, d, GpuAsk::Whole) || d.holds.size() < 2) return false;
  std::ranges::reverse(d.holds);
  return true;
}

bool gives_too_few(Trial& t, Decision& d) {
  if (!is_placed(t, d, GpuAsk::Whole)) return false;
  d.holds.pop_back();
  return true;
}

bool gives_more_than_asked(Trial& t, Decision& d) {
  if (!is_placed(t, d, GpuAsk::ShareMilli)) return false;
  d.holds[0].amount -= 1;
  return true;
}

// A decision kept while the world moved on: the pod already runs.
bool repeats_a_decision(Trial& t, Decision& d) {
  for (std::uint32_t i = 0; i < t.cluster.pods().size(); ++i) {
    const core::Pod& pod = t.cluster.pods()[i];
    if (pod.state != core::PodState::Placed) continue;
    d.pod = PodId{i};
    d.node = pod.node;
    d.holds = pod.holds;
    return true;
  }
  return false;
}

constexpr std::array<Fault, 23> kFaults = {{
    {"ignores cordons", "unschedulable", ignores<Plugin::NodeUnschedulable>},
    {"ignores taints", "taints", ignores<Plugin::TaintToleration>},
    {"ignores node affinity", "node-affinity", ignores<Plugin::NodeAffinity>},
    {"ignores features", "features", ignores<Plugin::NodeDeclaredFeatures>},
    {"ignores host ports", "ports", ignores<Plugin::NodePorts>},
    {"ignores capacity", "capacity", ignores<Plugin::NodeResourcesFit>},
    {"ignores topology spread", "spread", ignores<Plugin::PodTopologySpread>},
    {"ignores anti-affinity", "pod-anti-affinity", ignores<Plugin::InterPodAffinity>},
    {"ignores affinity", "pod-affinity", ignores<Plugin::InterPodAffinity>},
    {"double-books a device", "double-booked", double_books},
    {"puts a share on an owned device", "shared-whole", shares_an_owned_device},
    {"gives a shared device whole", "shared-whole", owns_a_shared_device},
    {"shares more than there is", "over-shared", shares_too_much},
    {"gives an unhealthy device", "unhealthy", gives_an_unhealthy_device},
    {"gives a partitioned device whole", "mig-mode", gives_a_partitioned_device},
    {"forgets the GPU model", "gpu-model", forgets_the_gpu_model},
    {"starts instances anywhere", "mig-start", starts_anywhere},
    {"overlaps instances", "mig-overlap", overlaps_an_instance},
    {"invents instances", "mig-start", invents_an_instance},
    {"names a device twice", "holds", repeats_a_device},
    {"does not sort devices", "holds", shuffles_devices},
    {"gives too few devices", "holds", gives_too_few},
    {"gives another amount", "holds", gives_more_than_asked},
}};

constexpr Fault kStale = {"uses a stale decision", "stale", repeats_a_decision};

constexpr auto kAll = [] {
  std::array<Fault, kFaults.size() + 1> all{};
  std::ranges::copy(kFaults, all.begin());
  all.back() = kStale;
  return all;
}();

}  // namespace

std::span<const Fault> faults() { return kAll; }

}  // namespace jogak::negative
