// SPDX-License-Identifier: Apache-2.0
// Decoders of single kinds and of the parts they share; between the .cc files of this folder only.
// All of them read leniently and leave the first complaint in the JsonContext.
#pragma once

#include "kube/json.h"
#include "kube/objects.h"

namespace jogak::kube {

// How amounts that a kind reads are bounded and worded.
StringMap read_string_map(const Json& json);
Resources read_resources(const Json& json);
std::int64_t read_quantity(const Json& json);  // whole units
std::int64_t read_quantity_milli(const Json& json);
ObjectMeta read_meta(const Json& json, bool namespaced);
std::optional<LabelSelector> read_label_selector(const Json& json);  // nullopt: absent
std::optional<LabelSelector> read_map_selector(const Json& json);    // a plain map; nullopt: empty
std::vector<SelectorRequirement> read_requirements(const Json& json);
std::vector<NodeSelectorTerm> read_node_selector_terms(const Json& json);
NodeSelectorTerm read_node_selector_term(const Json& json);
std::optional<TaintEffect> read_taint_effect(const Json& json);  // nullopt: absent

Pod read_pod(const Json& json);
Node read_node(const Json& json);
Namespace read_namespace(const Json& json);
PriorityClass read_priority_class(const Json& json);
PodDisruptionBudget read_pod_disruption_budget(const Json& json);
Workload read_workload(const Json& json, std::string_view kind);
PersistentVolume read_persistent_volume(const Json& json);
PersistentVolumeClaim read_persistent_volume_claim(const Json& json);
StorageClass read_storage_class(const Json& json);
CsiNode read_csi_node(const Json& json);
CsiDriver read_csi_driver(const Json& json);
CsiStorageCapacity read_csi_storage_capacity(const Json& json);
VolumeAttachment read_volume_attachment(const Json& json);

}  // namespace jogak::kube
