// SPDX-License-Identifier: Apache-2.0
// See local_filters.h.
#include "core/filter/local_filters.h"

#include "core/filter/declared_features.h"
#include "core/filter/gpu_devices.h"
#include "core/filter/node_affinity.h"
#include "core/filter/node_name.h"
#include "core/filter/node_ports.h"
#include "core/filter/node_unschedulable.h"
#include "core/filter/resources_fit.h"
#include "core/filter/taint_toleration.h"

namespace jogak::core {

Verdict static_filters(const Cluster& cluster, const PodView& pod, const Node& node) {
  Verdict verdict = node_unschedulable_filter(cluster, pod, node, nullptr);
  if (verdict.fits()) verdict = node_name_filter(cluster, pod, node, nullptr);
  if (verdict.fits()) verdict = taint_toleration_filter(cluster, pod, node, nullptr);
  if (verdict.fits()) verdict = node_affinity_filter(cluster, pod, node, nullptr);
  if (verdict.fits()) verdict = declared_features_filter(cluster, pod, node, nullptr);
  return verdict;
}

Verdict dynamic_local_filters(const Cluster& cluster, const PodView& pod, const Node& node) {
  Verdict verdict = node_ports_filter(cluster, pod, node, nullptr);
  if (verdict.fits()) verdict = resources_fit_filter(cluster, pod, node, nullptr);
  if (verdict.fits()) verdict = gpu_devices_filter(cluster, pod, node, nullptr);
  return verdict;
}

}  // namespace jogak::core
