// SPDX-License-Identifier: Apache-2.0
// Which devices of a node: rules that several policies share.
#include <algorithm>
#include <bit>
#include <numeric>
#include <tuple>

#include "base/check.h"
#include "core/model/mig.h"
#include "core/policy/gpu_view.h"
#include "core/policy/policy.h"

namespace jogak::core {

namespace {

// Sets of devices that choose_close looks at; above, it grows a set greedily instead.
constexpr std::int64_t kSetsMax = 20000;

std::vector<std::int32_t> fully_free(const Node& node) {
  std::vector<std::int32_t> free;
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    if (node.gpus[i].fully_free()) free.push_back(static_cast<std::int32_t>(i));
  }
  return free;
}

const Gpu& gpu_at(const Node& node, std::int32_t index) {
  return node.gpus[static_cast<std::size_t>(index)];
}

// NVLinks with both ends in the mask.
std::int32_t links_within(const Node& node, std::uint32_t mask) {
  std::int32_t ends = 0;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const std::int32_t i = std::countr_zero(rest);
    ends += std::popcount(gpu_at(node, i).nvlink_mask & mask & ~(1U << i));
  }
  return ends / 2;
}

// Distinct NUMA nodes; devices that do not know theirs count as one.
std::int32_t numa_nodes(const Node& node, std::uint32_t mask) {
  std::vector<std::int32_t> seen;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const std::int32_t numa = gpu_at(node, std::countr_zero(rest)).numa_node;
    if (std::ranges::find(seen, numa) == seen.end()) seen.push_back(numa);
  }
  return static_cast<std::int32_t>(seen.size());
}

// Smaller is better: lost links, NUMA nodes, lost links of what stays free.
using Closeness = std::tuple<std::int32_t, std::int32_t, std::int32_t>;
Closeness closeness(const Node& node, std::uint32_t set, std::uint32_t free) {
  return {-links_within(node, set), numa_nodes(node, set), -links_within(node, free & ~set)};
}

bool sets_are_few(std::size_t n, std::size_t k) {
  std::int64_t sets = 1;
  for (std::size_t i = 0; i < k; ++i) {
    sets = sets * static_cast<std::int64_t>(n - i) / static_cast<std::int64_t>(i + 1);
    if (sets > kSetsMax) return false;
  }
  return true;
}

std::uint32_t mask_of(std::span<const std::int32_t> devices) {
  std::uint32_t mask = 0;
  for (const std::int32_t i : devices) mask |= 1U << i;
  return mask;
}

// Best of all sets of k; earlier sets in lexicographic order win ties, so lowest indices do.
std::uint32_t best_set(const Node& node, std::span<const std::int32_t> free, std::size_t k) {
  const std::uint32_t all = mask_of(free);
  std::vector<std::size_t> pick(k);
  std::iota(pick.begin(), pick.end(), std::size_t{0});
  std::uint32_t best = 0;
  Closeness best_closeness;
  while (true) {
    std::uint32_t set = 0;
    for (const std::size_t i : pick) set |= 1U << free[i];
    const Closeness c = closeness(node, set, all);
    if (best == 0 || c < best_closeness) {
      best = set;
      best_closeness = c;
    }
    std::size_t at = k;
    while (at > 0 && pick[at - 1] == free.size() - k + at - 1) --at;
    if (at == 0) return best;
    ++pick[at - 1];
    for (std::size_t i = at; i < k; ++i) pick[i] = pick[i - 1] + 1;
  }
}

// One device at a time, each time the one that leaves the closest set.
std::uint32_t grown_set(const Node& node, std::span<const std::int32_t> free, std::size_t k) {
  const std::uint32_t all = mask_of(free);
  std::uint32_t set = 0;
  for (std::size_t n = 0; n < k; ++n) {
    std::uint32_t best = 0;
    Closeness best_closeness;
    for (const std::int32_t i : free) {
      const std::uint32_t with = set | 1U << i;
      if (with == set) continue;
      const Closeness c = closeness(node, with, all);
      if (best == 0 || c < best_closeness) {
        best = with;
        best_closeness = c;
      }
    }
    set = best;
  }
  return set;
}

bool has_topology(const Node& node) {
  return std::ranges::any_of(
      node.gpus, [](const Gpu& gpu) { return gpu.nvlink_mask != 0 || gpu.numa_node >= 0; });
}

// Placements still possible with these slices in use, each counted with its compute slices.
std::int32_t possible_placements(const MigModel& model, std::uint16_t used) {
  std::int32_t sum = 0;
  for (const MigProfile& profile : model.profiles) {
    sum += std::popcount(mig_free_starts(profile, used)) * profile.compute;
  }
  return sum;
}

struct MigChoice {
  std::int32_t lost = 0;  // placements no longer possible; 0 on a device that is cut already
  std::int32_t free_slices = 0;
  GpuHold hold;
  std::uint16_t mask = 0;
  auto rank() const { return std::tuple(lost, free_slices, hold.gpu, hold.mig_start); }
};

// Instances of one profile for one pod, one at a time, on a copy of the slices in use.
class MigSearch {
 public:
  MigSearch(const Cluster& cluster, const Node& node, const Shape& shape)
      : cluster_(cluster), node_(node), shape_(shape) {
    for (const Gpu& gpu : node.gpus) used_.push_back(gpu.mig_used_mask);
    taken_.assign(node.gpus.size(), 0);
  }
  // Adds the best instance, or answers false if there is room for none.

  bool take(std::vector<GpuHold>& out) {
    bool is_found = false;
    MigChoice best;
    const auto consider = [&](const MigChoice& choice) {
      if (!is_found || choice.rank() < best.rank()) best = choice;
      is_found = true;
    };
    for (std::size_t g = 0; g < node_.gpus.size(); ++g) consider_cut(g, consider);
    for (const MigSlot& slot : node_.mig_slots) consider_slot(slot, consider);
    if (!is_found) return false;
    const std::size_t gpu = static_cast<std::size_t>(best.hold.gpu);
    used_[gpu] = static_cast<std::uint16_t>(used_[gpu] | best.mask);
    ++taken_[gpu];
    out.push_back(best.hold);
    return true;
  }

 private:
  // Index of the pod's profile on that device, or -1.
  std::int32_t profile_on(std::size_t g) const {
    const Gpu& gpu = node_.gpus[g];
    if (!gpu.mig_enabled || gpu.health != GpuHealth::Healthy) return -1;
    return gpu.mig_model < shape_.mig_profile.size() ? shape_.mig_profile[gpu.mig_model] : -1;
  }
  const MigModel& model_of(std::size_t g) const { return mig_models()[node_.gpus[g].mig_model]; }
  std::int32_t free_slices(std::size_t g) const {
    return model_of(g).slices - std::popcount(used_[g]);
  }

  // One more instance of the profile within the counts and engines of the device?
  bool count_fits(std::size_t g, std::int32_t index) const {
    const MigModel& model = model_of(g);
    MigCounts counts = cluster_.mig_counts(node_, static_cast<std::int32_t>(g));
    counts[static_cast<std::size_t>(index)] += taken_[g] + 1;
    return mig_counts_fit(model, {counts.data(), model.profiles.size()});
  }

  template <class Consider>
  void consider_cut(std::size_t g, const Consider& consider) const {
    const std::int32_t index = profile_on(g);
    if (index < 0 || !node_.gpus[g].mig_dynamic) return;
    const std::int32_t device = static_cast<std::int32_t>(g);
    const MigModel& model = model_of(g);
    const MigProfile& profile = model.profiles[static_cast<std::size_t>(index)];
    if (!count_fits(g, index)) return;
    const auto start = best_mig_start(model, profile, used_[g]);
    if (!start) return;
    const std::uint16_t mask = mig_mask(*start, profile.size);
    const std::int32_t lost =
        possible_placements(model, used_[g]) -
        possible_placements(model, static_cast<std::uint16_t>(used_[g] | mask));
    consider({lost, free_slices(g), {.gpu = device, .mig_start = *start}, mask});
  }

  template <class Consider>
  void consider_slot(const MigSlot& slot, const Consider& consider) const {
    const std::size_t g = static_cast<std::size_t>(slot.gpu);
    const std::int32_t index = profile_on(g);
    if (index < 0 || index != slot.profile) return;
    const MigProfile& profile = model_of(g).profiles[static_cast<std::size_t>(index)];
    const std::uint16_t mask = mig_mask(slot.start, profile.size);
    if ((used_[g] & mask) != 0) return;
    consider({0, free_slices(g), {.gpu = slot.gpu, .mig_start = slot.start}, mask});
  }

  const Cluster& cluster_;
  const Node& node_;
  const Shape& shape_;
  std::vector<std::uint16_t> used_;  // per device
  std::vector<std::int32_t> taken_;  // by this pod
};

}  // namespace

void choose_first_free(const Node& node, std::int32_t count, std::vector<GpuHold>& out) {
  std::int32_t wanted = count;
  for (std::size_t i = 0; i < node.gpus.size() && wanted > 0; ++i) {
    if (!node.gpus[i].fully_free()) continue;
    out.push_back({.gpu = static_cast<std::int32_t>(i)});
    --wanted;
  }
}

void choose_tightest(const Node& node, const GpuRequest& request, std::vector<GpuHold>& out) {
  std::vector<std::int32_t> fitting;
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    if (share_fits(node.gpus[i], request)) fitting.push_back(static_cast<std::int32_t>(i));
  }
  const std::size_t count = std::min(fitting.size(), static_cast<std::size_t>(request.count));
  // Free units compare as free memory where devices differ; stable, so lowest indices win ties.
  std::ranges::stable_sort(fitting, std::less<>{},
                           [&node](std::int32_t i) { return gpu_at(node, i).free_units; });
  fitting.resize(count);
  std::ranges::sort(fitting);
  for (const std::int32_t i : fitting) out.push_back({.gpu = i, .amount = request.amount});
}

void choose_close(const Node& node, std::int32_t count, std::vector<GpuHold>& out) {
  const std::vector<std::int32_t> free = fully_free(node);
  const std::size_t k = static_cast<std::size_t>(count);
  if (free.size() <= k || !has_topology(node)) return choose_first_free(node, count, out);
  if (k == 0) return;
  JOGAK_CHECK(node.gpus.size() <= kMaxGpus);
  const std::uint32_t set =
      sets_are_few(free.size(), k) ? best_set(node, free, k) : grown_set(node, free, k);
  for (std::uint32_t rest = set; rest != 0; rest &= rest - 1) {
    out.push_back({.gpu = std::countr_zero(rest)});
  }
}

void choose_mig(const Cluster& cluster, const Node& node, const Shape& shape,
                std::vector<GpuHold>& out) {
  MigSearch search(cluster, node, shape);
  const std::size_t first = out.size();
  for (std::int32_t n = 0; n < shape.spec.gpu.count; ++n) {
    if (!search.take(out)) break;
  }
  std::sort(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(),
            [](const GpuHold& a, const GpuHold& b) {
              return std::tie(a.gpu, a.mig_start) < std::tie(b.gpu, b.mig_start);
            });
}

}  // namespace jogak::core
