// SPDX-License-Identifier: Apache-2.0
// See selector.h. Facts: k8s.io/apimachinery labels.Requirement, k8s.io/component-helpers
// scheduling/corev1/nodeaffinity.
#include "core/filter/selector.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <vector>

namespace jogak::core {
namespace {

constexpr std::string_view kNameField = "metadata.name";
constexpr std::size_t kLabelValueMax = 63;

// A sign, then digits only: the decimal form that Kubernetes reads.
std::optional<std::int64_t> parse_int64(std::string_view text) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

bool is_alnum(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_label_value(std::string_view text) {
  if (text.empty()) return true;
  if (text.size() > kLabelValueMax || !is_alnum(text.front()) || !is_alnum(text.back())) {
    return false;
  }
  return std::ranges::all_of(
      text, [](char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.'; });
}

bool contains(const std::vector<std::string>& values, std::string_view text) {
  return std::ranges::find(values, text) != values.end();
}

// Gt (sign 1) or Lt (sign -1).
bool compares(const Requirement& requirement, std::optional<std::string_view> value, int sign) {
  if (!value || requirement.values.size() != 1) return false;
  const auto left = parse_int64(*value);
  const auto right = parse_int64(requirement.values.front());
  if (!left || !right) return false;
  return sign > 0 ? *left > *right : *left < *right;
}

bool parses(const Requirement& requirement) {
  const auto& values = requirement.values;
  switch (requirement.op) {
    case SelectorOp::In:
    case SelectorOp::NotIn:
      if (values.empty()) return false;
      break;
    case SelectorOp::Exists:
    case SelectorOp::DoesNotExist:
      if (!values.empty()) return false;
      break;
    case SelectorOp::Gt:
    case SelectorOp::Lt:
      if (values.size() != 1 || !parse_int64(values.front())) return false;
      break;
  }
  return std::ranges::all_of(values, is_label_value);
}

bool parses_as_field(const Requirement& requirement) {
  return (requirement.op == SelectorOp::In || requirement.op == SelectorOp::NotIn) &&
         requirement.values.size() == 1;
}

std::optional<std::string_view> node_label(const Cluster& cluster, const Node& node,
                                           std::string_view key) {
  Symbol symbol;
  if (!cluster.symbols().find(key, symbol)) return std::nullopt;
  const Symbol* const value = node.label(symbol);
  if (value == nullptr) return std::nullopt;
  return cluster.text(*value);
}

bool node_matches_all(const Cluster& cluster, const Node& node,
                      const std::vector<Requirement>& requirements) {
  return std::ranges::all_of(requirements, [&](const Requirement& requirement) {
    return matches_text(requirement, node_label(cluster, node, requirement.key));
  });
}

}  // namespace

const std::string* find_label(const Labels& labels, std::string_view key) {
  const auto it = std::ranges::lower_bound(
      labels, key, {}, [](const auto& label) { return std::string_view(label.first); });
  return it != labels.end() && it->first == key ? &it->second : nullptr;
}

bool matches_text(const Requirement& requirement, std::optional<std::string_view> value) {
  switch (requirement.op) {
    case SelectorOp::In:
      return value && contains(requirement.values, *value);
    case SelectorOp::NotIn:
      return !value || !contains(requirement.values, *value);
    case SelectorOp::Exists:
      return value.has_value();
    case SelectorOp::DoesNotExist:
      return !value.has_value();
    case SelectorOp::Gt:
      return compares(requirement, value, 1);
    case SelectorOp::Lt:
      return compares(requirement, value, -1);
  }
  return false;
}

bool matches(const Requirement& requirement, const std::string* value) {
  return matches_text(requirement,
                      value == nullptr ? std::nullopt : std::optional<std::string_view>(*value));
}

bool matches(const LabelSelector& selector, const Labels& labels) {
  return std::ranges::all_of(selector.requirements, [&](const Requirement& requirement) {
    return matches(requirement, find_label(labels, requirement.key));
  });
}

bool node_matches(const Cluster& cluster, const Node& node, const LabelSelector& selector) {
  return node_matches_all(cluster, node, selector.requirements);
}

bool parses(const NodeSelectorTerm& term) {
  return std::ranges::all_of(term.labels, [](const Requirement& r) { return parses(r); }) &&
         std::ranges::all_of(term.fields, parses_as_field);
}

bool node_matches(const Cluster& cluster, const Node& node, const NodeSelectorTerm& term) {
  if (term.labels.empty() && term.fields.empty()) return false;
  if (!parses(term)) return false;
  if (!node_matches_all(cluster, node, term.labels)) return false;
  return std::ranges::all_of(term.fields, [&](const Requirement& requirement) {
    // Nodes have one selectable field; any other reads as empty.
    const auto value = requirement.key == kNameField ? cluster.text(node.name) : "";
    return matches_text(requirement, value);
  });
}

bool node_matches_any(const Cluster& cluster, const Node& node,
                      std::span<const NodeSelectorTerm> terms) {
  return std::ranges::any_of(
      terms, [&](const NodeSelectorTerm& term) { return node_matches(cluster, node, term); });
}

bool required_node_affinity_matches(const Cluster& cluster, const PodShape& pod, const Node& node) {
  if (!node_matches_all(cluster, node, pod.node_selector)) return false;
  return !pod.node_affinity || node_matches_any(cluster, node, *pod.node_affinity);
}

bool tolerates(std::span<const Toleration> tolerations, const Taint& taint) {
  return std::ranges::any_of(tolerations, [&](const Toleration& toleration) {
    if (toleration.effect && *toleration.effect != taint.effect) return false;
    if (!toleration.key.empty() && toleration.key != taint.key) return false;
    return toleration.exists || toleration.value == taint.value;
  });
}

bool tolerates_node(const PodShape& pod, const Node& node) {
  return std::ranges::all_of(node.taints, [&](const Taint& taint) {
    return taint.effect == TaintEffect::PreferNoSchedule || tolerates(pod.tolerations, taint);
  });
}

}  // namespace jogak::core
