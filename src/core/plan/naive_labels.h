// SPDX-License-Identifier: Apache-2.0
// Labels and selectors for the naive rules, as text.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/model/cluster.h"

namespace jogak::core::naive {

using LabelMap = std::map<std::string, std::string, std::less<>>;

LabelMap labels_of(const Cluster& cluster, NodeId node);
LabelMap labels_of(const Labels& labels);
// Labels of a namespace object; none if there is no such object.
LabelMap namespace_labels(const Cluster& cluster, const std::string& ns);

bool holds(const Requirement& requirement, const LabelMap& labels);
bool holds(const std::vector<Requirement>& all, const LabelMap& labels);

// Some term holds; an empty term never does.
bool some_term_holds(const std::vector<NodeSelectorTerm>& terms, const LabelMap& labels,
                     std::string_view node_name);

bool tolerated(const Taint& taint, const std::vector<Toleration>& tolerations);

}  // namespace jogak::core::naive
