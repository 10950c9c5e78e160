// SPDX-License-Identifier: Apache-2.0
//
// Two enums of the same words meet here: the plugin and the labels each have their own.
#include "agent/run/wishes.h"

#include <algorithm>

#include "agent/plugin/annotations.h"

namespace jogak::agent {

UnhealthyReasons unhealthy_reasons(const NodeSnapshot& node, TimeUs now) {
  UnhealthyReasons reasons;
  const NodeHealthView& health = *node.health;
  const bool is_away =
      !health.driver_problem.empty() && now - health.driver_problem_since >= kDriverAwayMax;
  for (const GpuView& gpu : node.gpus) {
    if (gpu.facts == nullptr) continue;
    if (is_away) {
      reasons[gpu.uuid] = health.driver_problem;
      continue;
    }
    const GpuHealthView* const view = health.find(gpu.uuid);
    if (view == nullptr) continue;
    if (const HealthFact* const fact = view->why_not()) reasons[gpu.uuid] = fact->text;
    for (const nvml::MigInstanceFacts& instance : gpu.facts->mig_instances) {
      const HealthFact* const fact = view->why_not(instance.gi_id);
      if (fact != nullptr && !instance.uuid.empty()) reasons[instance.uuid] = fact->text;
    }
  }
  return reasons;
}

LabelOptions label_options(const PluginConfig& config) {
  LabelOptions options;
  switch (config.mig_strategy) {
    case MigStrategy::None:
      options.mig = LabelMigStrategy::None;
      break;
    case MigStrategy::Single:
      options.mig = LabelMigStrategy::Single;
      break;
    case MigStrategy::Mixed:
      options.mig = LabelMigStrategy::Mixed;
      break;
  }
  switch (config.sharing.kind) {
    case SharingKind::None:
      options.sharing = SharingStrategy::None;
      break;
    case SharingKind::TimeSlicing:
      options.sharing = SharingStrategy::TimeSlicing;
      break;
    case SharingKind::Mps:
      options.sharing = SharingStrategy::Mps;
      break;
  }
  for (const SharedResource& shared : config.sharing.resources) {
    options.shared.push_back({.name = shared.name,
                              .replicas = shared.replicas,
                              .is_renamed = config.sharing.rename_by_default});
  }
  return options;
}

namespace {

constexpr std::string_view kGpuResource = "nvidia.com/gpu";

// Whoever reads jogak.io/gpus takes a unit of nvidia.com/gpu for one of its devices. Where it is a
// share or an instance, the number alone counts.
bool is_gpu_a_whole_one(const nvml::NodeFacts& node, const PluginConfig& config) {
  const bool is_shared = config.sharing.kind != SharingKind::None &&
                         !config.sharing.rename_by_default &&
                         config.sharing.replicas_of(kGpuResource) > 1;
  const bool is_cut = config.mig_strategy == MigStrategy::Single &&
                      std::ranges::any_of(node.gpus, &nvml::GpuFacts::mig_enabled);
  return !is_shared && !is_cut;
}

}  // namespace

NodeWish node_wish(const NodeSnapshot& node, const UnhealthyReasons& unhealthy,
                   const AgentOptions& options, const LabelOptions& labels, bool with_labels) {
  NodeWish wish;
  if (with_labels) wish.labels = feature_labels(*node.facts, labels).labels;
  if (options.reports) {
    if (is_gpu_a_whole_one(*node.facts, options.plugin)) {
      const std::string gpus = gpus_annotation(*node.facts, unhealthy, options.mig.cuts_on_demand);
      if (!gpus.empty()) wish.annotations.emplace(kGpusAnnotation, gpus);
    }
    wish.conditions = node_conditions(*node.health);
  }
  if (options.taints != TaintRule::Never) wish.taints = node_taints(*node.health, options.taints);
  return wish;
}

void add_mig_state(const MigWork::Told& told, NodeWish& wish) {
  wish.lasting_labels[std::string(kMigConfigStateLabel)] = told.state;
  wish.lasting_annotations[std::string(kMigConfigStateOf)] = told.state_of;
  // An annotation of ours that goes when all is well.
  if (!told.reason.empty()) wish.annotations[std::string(kMigConfigReason)] = told.reason;
}

}  // namespace jogak::agent
