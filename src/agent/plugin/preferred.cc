// SPDX-License-Identifier: Apache-2.0
// Whole GPUs: every subset of the wanted size while there are few enough, else greedily and then by
// exchanging one for one until nothing gets better. All sums are integers, ties fall to the lowest
// indices, so that the order of the kubelet's list (which is random) says nothing.
#include "agent/plugin/preferred.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <tuple>

namespace jogak::agent {

namespace {

constexpr std::int64_t kScorePerNvlink = 100;
// C(16, 8) is 12870: an 8-GPU or 16-GPU node is searched whole.
constexpr std::int64_t kSubsetsMax = 50'000;

// C(n, k), or kSubsetsMax + 1 where it is more.
std::int64_t subsets(std::size_t n, std::size_t k) {
  std::int64_t result = 1;
  for (std::size_t i = 1; i <= k; ++i) {
    result = result * static_cast<std::int64_t>(n - k + i) / static_cast<std::int64_t>(i);
    if (result > kSubsetsMax) return kSubsetsMax + 1;
  }
  return result;
}

// A choice among whole GPUs, by their positions in the list of available ones.
class GpuChoice {
 public:
  using Score = std::tuple<std::int64_t, std::int64_t, std::int64_t>;

  GpuChoice(std::span<const PluginDevice* const> devices, const std::vector<nvml::GpuFacts>& gpus)
      : devices_(devices), scores_(devices.size() * devices.size()), degree_(devices.size()) {
    for (std::size_t i = 0; i < devices.size(); ++i) {
      for (std::size_t j = 0; j < devices.size(); ++j) {
        if (i == j) continue;
        const std::int64_t score = pair_score(*devices[i], *devices[j], gpus);
        scores_[i * devices.size() + j] = score;
        degree_[i] += score;
        total_ += score;
      }
    }
    total_ /= 2;
  }

  // The best positions; `fixed` are among them.
  std::vector<std::size_t> best(const std::vector<std::size_t>& fixed, std::size_t size) {
    std::vector<std::size_t> free;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      if (std::ranges::find(fixed, i) == fixed.end()) free.push_back(i);
    }
    const std::size_t wanted = size - fixed.size();
    chosen_ = fixed;
    if (subsets(free.size(), wanted) <= kSubsetsMax) {
      search(free, 0, wanted);
    } else {
      grow(free, wanted);
    }
    std::ranges::sort(best_);
    return best_;
  }

 private:
  static std::int64_t pair_score(const PluginDevice& a, const PluginDevice& b,
                                 const std::vector<nvml::GpuFacts>& gpus) {
    const auto gpu = static_cast<std::size_t>(a.gpu);
    const auto to = static_cast<std::size_t>(b.gpu);
    if (gpu >= gpus.size() || to >= gpus[gpu].links.size()) return 0;
    return link_score(gpus[gpu].links[to]);
  }

  std::int64_t score(std::size_t i, std::size_t j) const {
    return scores_[i * devices_.size() + j];
  }

  Score value(const std::vector<std::size_t>& chosen) const {
    std::int64_t inside = 0;
    std::int64_t touched = 0;
    std::set<std::optional<int>> nodes;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      touched += degree_[chosen[i]];
      nodes.insert(devices_[chosen[i]]->numa_node);
      for (std::size_t j = i + 1; j < chosen.size(); ++j) inside += score(chosen[i], chosen[j]);
    }
    return {inside, total_ - touched + inside, -static_cast<std::int64_t>(nodes.size())};
  }

  void take_if_better() {
    const Score now = value(chosen_);
    if (best_.empty() || now > best_score_) {
      best_ = chosen_;
      best_score_ = now;
    }
  }

  // Subsets in the order of their positions: the first of equals has the lowest.
  void search(const std::vector<std::size_t>& free, std::size_t from, std::size_t wanted) {
    if (wanted == 0) return take_if_better();
    for (std::size_t i = from; i + wanted <= free.size(); ++i) {
      chosen_.push_back(free[i]);
      search(free, i + 1, wanted - 1);
      chosen_.pop_back();
    }
  }

  // Greedily from every first GPU, since one in a small island leads nowhere; the best is improved.
  void grow(const std::vector<std::size_t>& free, std::size_t wanted) {
    const std::vector<std::size_t> fixed = chosen_;
    for (const std::size_t first : free) {
      chosen_ = fixed;
      chosen_.push_back(first);
      std::vector<std::size_t> rest = free;
      std::erase(rest, first);
      while (chosen_.size() < fixed.size() + wanted) take_nearest(rest);
      take_if_better();
    }
    chosen_ = best_;
    std::vector<std::size_t> rest;
    for (const std::size_t i : free) {
      if (std::ranges::find(chosen_, i) == chosen_.end()) rest.push_back(i);
    }
    while (exchange(rest, fixed.size())) {
    }
  }

  // The one with the best links to what is chosen; of equals, the one the others miss least.
  void take_nearest(std::vector<std::size_t>& rest) {
    std::size_t at = 0;
    std::optional<std::pair<std::int64_t, std::int64_t>> top;
    for (std::size_t i = 0; i < rest.size(); ++i) {
      std::int64_t gain = 0;
      for (const std::size_t other : chosen_) gain += score(rest[i], other);
      if (const std::pair now(gain, -degree_[rest[i]]); !top || now > *top) {
        top = now;
        at = i;
      }
    }
    chosen_.push_back(rest[at]);
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(at));
  }

  // One exchange that makes it better; the first `fixed` stay. Each raises the score, of which
  // there are finitely many.
  bool exchange(std::vector<std::size_t>& free, std::size_t fixed) {
    for (std::size_t i = fixed; i < chosen_.size(); ++i) {
      for (std::size_t& other : free) {
        std::swap(chosen_[i], other);
        if (value(chosen_) > best_score_) {
          take_if_better();
          return true;
        }
        std::swap(chosen_[i], other);
      }
    }
    return false;
  }

  std::span<const PluginDevice* const> devices_;
  std::vector<std::int64_t> scores_;
  std::vector<std::int64_t> degree_;  // a GPU's scores with all others
  std::int64_t total_ = 0;
  std::vector<std::size_t> chosen_, best_;
  Score best_score_;
};

// Parts of GPUs, one at a time, by how much of each GPU is in use.
std::vector<std::size_t> choose_parts(const PluginResource& resource,
                                      std::span<const PluginDevice* const> devices,
                                      const std::vector<std::size_t>& fixed, std::size_t size,
                                      SharedPolicy policy) {
  struct Use {
    std::int64_t total = 0;
    std::int64_t used = 0;
    std::int64_t picked = 0;  // for this container
  };
  std::map<int, Use> gpus;
  for (const PluginDevice& device : resource.devices) ++gpus[device.gpu].total;
  for (auto& [gpu, use] : gpus) use.used = use.total;
  for (const PluginDevice* const device : devices) --gpus[device->gpu].used;

  std::vector<std::size_t> result;
  std::vector<bool> is_taken(devices.size());
  const auto take = [&](std::size_t at) {
    is_taken[at] = true;
    Use& use = gpus[devices[at]->gpu];
    ++use.used;
    ++use.picked;
    result.push_back(at);
  };
  for (const std::size_t at : fixed) take(at);
  while (result.size() < size) {
    std::optional<std::size_t> best;
    std::tuple<std::int64_t, std::int64_t> best_rank;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if (is_taken[i]) continue;
      const Use& use = gpus[devices[i]->gpu];
      // Two shares of one GPU are worth little to one container: spread picks another first.
      const auto rank = policy == SharedPolicy::Packed ? std::tuple(use.used, use.picked)
                                                       : std::tuple(-use.picked, -use.used);
      if (!best || rank > best_rank) {
        best = i;
        best_rank = rank;
      }
    }
    take(*best);
  }
  return result;
}

}  // namespace

std::int64_t link_score(const nvml::LinkFacts& link) {
  std::int64_t score = kScorePerNvlink * link.nvlinks;
  switch (link.pcie) {
    case nvml::LinkKind::Self:
    case nvml::LinkKind::Unknown:
      break;
    case nvml::LinkKind::System:
      score += 10;
      break;
    case nvml::LinkKind::Node:
      score += 20;
      break;
    case nvml::LinkKind::HostBridge:
      score += 30;
      break;
    case nvml::LinkKind::MultipleSwitches:
      score += 40;
      break;
    case nvml::LinkKind::SingleSwitch:
      score += 50;
      break;
    case nvml::LinkKind::SameBoard:
      score += 60;
      break;
  }
  return score;
}

std::vector<std::string> prefer(const PluginResource& resource,
                                const std::vector<nvml::GpuFacts>& gpus,
                                std::optional<SharedPolicy> policy,
                                const PreferredQuestion& question) {
  const std::set<std::string, std::less<>> available(question.available.begin(),
                                                     question.available.end());
  const std::set<std::string, std::less<>> wanted(question.must_include.begin(),
                                                  question.must_include.end());
  // In the order of the resource, whatever the order of the question.
  std::vector<const PluginDevice*> devices;
  std::vector<std::size_t> fixed;
  for (const PluginDevice& device : resource.devices) {
    if (!available.contains(device.id)) continue;
    if (wanted.contains(device.id)) fixed.push_back(devices.size());
    devices.push_back(&device);
  }
  const auto size = static_cast<std::size_t>(std::max(question.size, 0));
  std::vector<std::string> result;
  if (fixed.size() <= size && size > 0 && devices.size() >= size) {
    const bool has_parts = resource.replicas > 1 ||
                           std::ranges::any_of(devices, [](const auto* d) { return d->is_mig(); });
    const SharedPolicy fallback =
        resource.replicas > 1 ? SharedPolicy::Distributed : SharedPolicy::Packed;
    const auto chosen =
        has_parts ? choose_parts(resource, devices, fixed, size, policy.value_or(fallback))
                  : GpuChoice(devices, gpus).best(fixed, size);
    for (const std::size_t at : chosen) result.push_back(devices[at]->id);
    return result;
  }
  // Something in the question is unknown or does not add up: those asked for, then any.
  for (const std::string& id : question.must_include) {
    if (result.size() < size && available.contains(id)) result.push_back(id);
  }
  const auto add = [&](const std::string& id) {
    if (result.size() < size && std::ranges::find(result, id) == result.end()) result.push_back(id);
  };
  for (const PluginDevice* const device : devices) add(device->id);
  for (const std::string& id : available) add(id);
  return result;
}

}  // namespace jogak::agent
