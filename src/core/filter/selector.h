// SPDX-License-Identifier: Apache-2.0
// Matching of label selectors, node selector terms and tolerations: written once, used by every
// filter, by the scores, by preemption (budgets) and by the border. Pods carry labels as strings,
// nodes as symbols of their cluster; a text the cluster never saw equals no node label.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/model/cluster.h"

namespace jogak::core {

// Value of a label, or nullptr. `labels` are sorted by key.
const std::string* find_label(const Labels& labels, std::string_view key);

// One requirement against the value of its key; nullptr (nullopt): the label is absent, which NotIn
// and DoesNotExist accept. Gt and Lt compare signed 64-bit decimals; anything else does not match.
bool matches(const Requirement& requirement, const std::string* value);
bool matches_text(const Requirement& requirement, std::optional<std::string_view> value);

// All requirements; none at all matches everything. A missing selector (nullopt) is the caller's.
bool matches(const LabelSelector& selector, const Labels& labels);
bool node_matches(const Cluster& cluster, const Node& node, const LabelSelector& selector);

// False where the Kubernetes parser refuses the term (Gt of a word, a value that cannot be a label
// value, wrong number of values); such a term matches no node, whatever its operators say.
bool parses(const NodeSelectorTerm& term);

// Labels and fields ANDed; an empty term matches nothing.
bool node_matches(const Cluster& cluster, const Node& node, const NodeSelectorTerm& term);
// ORed; no term at all matches nothing.
bool node_matches_any(const Cluster& cluster, const Node& node,
                      std::span<const NodeSelectorTerm> terms);

// spec.nodeSelector and the required node affinity together.
bool required_node_affinity_matches(const Cluster& cluster, const PodShape& pod, const Node& node);

// Some toleration matches the taint (key, value, effect).
bool tolerates(std::span<const Toleration> tolerations, const Taint& taint);
// Every NoSchedule and NoExecute taint of the node is tolerated.
bool tolerates_node(const PodShape& pod, const Node& node);

}  // namespace jogak::core
