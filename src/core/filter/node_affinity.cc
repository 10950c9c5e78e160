// SPDX-License-Identifier: Apache-2.0
// See node_affinity.h.
#include "core/filter/node_affinity.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/filter/selector.h"

namespace jogak::core {
namespace {

using Names = std::set<std::string>;

// The names a term allows, or nullopt if it names none. Requirements are ANDed.
std::optional<Names> names_of(const NodeSelectorTerm& term) {
  std::optional<Names> names;
  for (const Requirement& field : term.fields) {
    if (field.key != "metadata.name" || field.op != SelectorOp::In) continue;
    Names listed(field.values.begin(), field.values.end());
    if (!names) {
      names = std::move(listed);
    } else {
      std::erase_if(*names, [&](const std::string& name) { return !listed.contains(name); });
    }
  }
  return names;
}

}  // namespace

PreFilter node_affinity_prefilter(const Cluster& cluster, const PodView& pod) {
  PreFilter found;
  const auto& terms = pod.shape->spec.node_affinity;
  if (!terms || terms->empty()) return found;
  Names all;
  for (const NodeSelectorTerm& term : *terms) {
    auto names = names_of(term);
    if (!names) return found;  // terms are ORed: this one leaves every node open
    all.merge(*names);
  }
  if (all.empty()) {
    found.verdict = refuse(Plugin::NodeAffinity, Code::Unresolvable, &found.reasons,
                           "pod affinity terms conflict");
    return found;
  }
  found.only_nodes.emplace();
  for (const std::string& name : all) {
    if (const auto node = cluster.find_node(name)) found.only_nodes->push_back(*node);
  }
  std::ranges::sort(*found.only_nodes);
  return found;
}

Verdict node_affinity_filter(const Cluster& cluster, const PodView& pod, const Node& node,
                             Reasons* reasons) {
  if (required_node_affinity_matches(cluster, pod.shape->spec, node)) return {};
  return refuse(Plugin::NodeAffinity, Code::Unresolvable, reasons,
                "node(s) didn't match Pod's node affinity/selector");
}

}  // namespace jogak::core
