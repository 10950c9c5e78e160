// SPDX-License-Identifier: Apache-2.0
// Straight from the API reference of label selectors, node affinity and tolerations.
#include "core/plan/naive_labels.h"

#include <algorithm>
#include <charconv>

namespace jogak::core::naive {
namespace {

std::optional<std::int64_t> number(const std::string& text) {
  std::int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc{} || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

bool listed(const std::vector<std::string>& values, const std::string& value) {
  return std::ranges::count(values, value) > 0;
}

}  // namespace

LabelMap labels_of(const Cluster& cluster, NodeId node) {
  LabelMap map;
  for (const NodeLabel& label : cluster.node(node).labels) {
    map.emplace(cluster.text(label.key), cluster.text(label.value));
  }
  return map;
}

LabelMap labels_of(const Labels& labels) { return {labels.begin(), labels.end()}; }

LabelMap namespace_labels(const Cluster& cluster, const std::string& ns) {
  const auto it = cluster.objects().namespaces.find(ns);
  return it == cluster.objects().namespaces.end() ? LabelMap{} : labels_of(it->second.labels);
}

bool holds(const Requirement& requirement, const LabelMap& labels) {
  const auto it = labels.find(requirement.key);
  const bool present = it != labels.end();
  const bool in_list = present && listed(requirement.values, it->second);
  switch (requirement.op) {
    case SelectorOp::In:
      return in_list;
    case SelectorOp::NotIn:
      return !in_list;
    case SelectorOp::Exists:
      return present;
    case SelectorOp::DoesNotExist:
      return !present;
    case SelectorOp::Gt:
    case SelectorOp::Lt:
      break;
  }
  if (!present || requirement.values.size() != 1) return false;
  const auto have = number(it->second);
  const auto want = number(requirement.values[0]);
  if (!have || !want) return false;
  return requirement.op == SelectorOp::Gt ? *have > *want : *have < *want;
}

bool holds(const std::vector<Requirement>& all, const LabelMap& labels) {
  return std::ranges::all_of(all, [&](const Requirement& r) { return holds(r, labels); });
}

bool some_term_holds(const std::vector<NodeSelectorTerm>& terms, const LabelMap& labels,
                     std::string_view node_name) {
  const LabelMap fields = {{"metadata.name", std::string(node_name)}};
  return std::ranges::any_of(terms, [&](const NodeSelectorTerm& term) {
    if (term.labels.empty() && term.fields.empty()) return false;
    return holds(term.labels, labels) && holds(term.fields, fields);
  });
}

bool tolerated(const Taint& taint, const std::vector<Toleration>& tolerations) {
  return std::ranges::any_of(tolerations, [&](const Toleration& t) {
    if (t.effect && *t.effect != taint.effect) return false;
    if (!t.key.empty() && t.key != taint.key) return false;
    return t.exists || t.value == taint.value;
  });
}

}  // namespace jogak::core::naive
