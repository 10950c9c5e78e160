// SPDX-License-Identifier: Apache-2.0
// Runs the filters in the configured order. What one filter knows stays in its own file; here is
// only who runs when, and how the PreFilter answers combine.
#include "core/filter/cycle.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "core/filter/declared_features.h"
#include "core/filter/gpu_devices.h"
#include "core/filter/inter_pod_affinity.h"
#include "core/filter/node_affinity.h"
#include "core/filter/node_name.h"
#include "core/filter/node_ports.h"
#include "core/filter/node_unschedulable.h"
#include "core/filter/node_volume_limits.h"
#include "core/filter/pod_topology_spread.h"
#include "core/filter/resources_fit.h"
#include "core/filter/taint_toleration.h"
#include "core/filter/volume_binding.h"
#include "core/filter/volume_restrictions.h"
#include "core/filter/volume_zone.h"

namespace jogak::core {
namespace {

using StatelessFilter = Verdict (*)(const Cluster&, const PodView&, const Node&, Reasons*);

constexpr StatelessFilter kBeforePorts[] = {
    node_unschedulable_filter,
    node_name_filter,
    taint_toleration_filter,
    node_affinity_filter,
};
constexpr StatelessFilter kAfterStateful[] = {declared_features_filter, gpu_devices_filter};

// In the order of the configuration.
using StatefulFilters =
    std::tuple<VolumeRestrictionsFilter, NodeVolumeLimitsFilter, VolumeBindingFilter,
               VolumeZoneFilter, PodTopologySpreadFilter, InterPodAffinityFilter>;
constexpr Plugin kStatefulPlugins[] = {
    Plugin::VolumeRestrictions, Plugin::NodeVolumeLimits,  Plugin::VolumeBinding,
    Plugin::VolumeZone,         Plugin::PodTopologySpread, Plugin::InterPodAffinity,
};

// Combines the answers of the plugins' PreFilters as they come.
class PreFilterMerger {
 public:
  // False: no further plugin is asked.
  bool add(Plugin plugin, PreFilter answer) {
    if (!answer.verdict.fits()) {
      // One that evictions might change does not end the round; the last such answer stands.
      merged_.verdict = answer.verdict;
      merged_.reasons = std::move(answer.reasons);
      return answer.verdict.code == Code::Unschedulable;
    }
    if (!answer.only_nodes) return true;
    names_ += (names_.empty() ? "" : " ") + std::string(plugin_name(plugin));
    if (!merged_.only_nodes) {
      merged_.only_nodes = std::move(answer.only_nodes);
      return true;
    }
    return intersect(*answer.only_nodes);
  }

  PreFilter take() { return std::move(merged_); }
  const std::string& names() const { return names_; }

 private:
  bool intersect(const std::vector<NodeId>& other) {
    std::vector<NodeId> both;
    std::ranges::set_intersection(*merged_.only_nodes, other, std::back_inserter(both));
    const bool contradict = both.empty() && !merged_.only_nodes->empty() && !other.empty();
    merged_.only_nodes = std::move(both);
    if (!contradict) return true;
    merged_.reasons.clear();
    merged_.verdict = refuse(Plugin::None, Code::Unresolvable, &merged_.reasons,
                             "node(s) didn't satisfy plugin(s) [" + names_ + "] simultaneously");
    return false;
  }

  PreFilter merged_;
  std::string names_;  // of the plugins that gave a list
};

}  // namespace

struct FilterCycle::Impl {
  const Cluster& cluster;
  PodView pod;
  PreFilter prefilter;
  std::string list_names;  // of the plugins whose node lists leave the other nodes out
  StatefulFilters stateful;
  PortMoves port_moves;

  // Calls `visit(filter, plugin)` in order until one returns false.
  template <class Filters, class Visit>
  static bool for_each(Filters& filters, const Visit& visit) {
    return std::apply(
        [&](auto&... filter) {
          std::size_t i = 0;
          return (visit(filter, kStatefulPlugins[i++]) && ...);
        },
        filters);
  }

  void build() {
    PreFilterMerger merger;
    if (merger.add(Plugin::NodeAffinity, node_affinity_prefilter(cluster, pod))) {
      for_each(stateful, [&](auto& filter, Plugin plugin) {
        return merger.add(plugin, filter.build(cluster, pod));
      });
    }
    list_names = merger.names();
    prefilter = merger.take();
  }

  bool left_out(NodeId node) const {
    return prefilter.only_nodes && !std::ranges::binary_search(*prefilter.only_nodes, node);
  }

  Verdict check(NodeId id, Reasons* reasons) const {
    if (left_out(id)) {
      return refuse(
          Plugin::None, Code::Unresolvable, reasons,
          reasons == nullptr ? "" : "node(s) didn't satisfy plugin(s) [" + list_names + "]");
    }
    const Node& node = cluster.node(id);
    for (const StatelessFilter filter : kBeforePorts) {
      if (const Verdict v = filter(cluster, pod, node, reasons); !v.fits()) return v;
    }
    Verdict verdict = node_ports_filter(cluster, pod, node, reasons, &port_moves);
    if (verdict.fits()) verdict = resources_fit_filter(cluster, pod, node, reasons);
    if (!verdict.fits()) return verdict;
    for_each(stateful, [&](const auto& filter, Plugin) {
      if (filter.active()) verdict = filter.check(cluster, pod, id, reasons);
      return verdict.fits();
    });
    if (!verdict.fits()) return verdict;
    for (const StatelessFilter filter : kAfterStateful) {
      if (const Verdict v = filter(cluster, pod, node, reasons); !v.fits()) return v;
    }
    return {};
  }
};

FilterCycle::FilterCycle(const Cluster& cluster, const PodView& pod)
    : impl_(std::make_unique<Impl>(cluster, pod, PreFilter{}, std::string{}, StatefulFilters{},
                                   PortMoves{})) {
  impl_->build();
}

FilterCycle::~FilterCycle() = default;
FilterCycle::FilterCycle(FilterCycle&&) noexcept = default;

const PreFilter& FilterCycle::prefilter() const { return impl_->prefilter; }

Verdict FilterCycle::check(NodeId node, Reasons* reasons) const {
  JOGAK_DCHECK(impl_->prefilter.verdict.fits(), "the pod was refused as a whole");
  return impl_->check(node, reasons);
}

void FilterCycle::pod_moved(PodId moved, NodeId node, int delta) {
  if (!impl_->pod.shape->spec.host_ports.empty()) {
    impl_->port_moves.pod_moved(impl_->cluster, moved, node, delta);
  }
  Impl::for_each(impl_->stateful, [&](auto& filter, Plugin) {
    filter.pod_moved(impl_->cluster, impl_->pod, moved, node, delta);
    return true;
  });
}

}  // namespace jogak::core
