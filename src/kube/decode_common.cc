// SPDX-License-Identifier: Apache-2.0
// Parts that many kinds share: metadata, maps, quantities, selectors.
#include <algorithm>

#include <fmt/format.h>

#include "base/edit_distance.h"
#include "base/quantity.h"
#include "kube/decode_parts.h"

namespace jogak::kube {

namespace {

// Annotations can be large (last-applied-configuration); only these are kept.
bool is_read_annotation(std::string_view key) {
  return key.starts_with("jogak.io/") || key.starts_with("volume.kubernetes.io/") ||
         key.starts_with("volume.beta.kubernetes.io/") || key.starts_with("pv.kubernetes.io/") ||
         key == "storage.alpha.kubernetes.io/migrated-plugins";
}

template <class Map>
void sort_map(Map& map) {
  const auto key = [](const auto& entry) -> const std::string& { return entry.first; };
  if (std::ranges::is_sorted(map, {}, key)) return;
  std::ranges::stable_sort(map, {}, key);
}

// JSON allows a key twice; the last one counts, as in Go.
template <class Map>
void keep_last(Map& map) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < map.size(); ++i) {
    if (i + 1 < map.size() && map[i].first == map[i + 1].first) continue;
    if (kept != i) map[kept] = std::move(map[i]);
    ++kept;
  }
  map.resize(kept);
}

StringMap read_annotations(const Json& json) {
  StringMap result;
  json.each_field([&result](std::string_view key, const Json& value) {
    if (is_read_annotation(key)) result.emplace_back(key, value.view());
  });
  sort_map(result);
  keep_last(result);
  return result;
}

std::int64_t checked_quantity(const Json& json, const Result<std::int64_t>& parsed,
                              std::string_view text, std::string_view examples) {
  if (!parsed) {
    json.complain(fmt::format("{:?} is not a quantity; use e.g. {}", text, examples));
    return 0;
  }
  if (*parsed < 0) {
    json.complain(fmt::format("{:?} is negative; want 0 or more", text));
    return 0;
  }
  return *parsed;
}

constexpr std::pair<std::string_view, Operator> kOperators[] = {
    {"In", Operator::In},         {"NotIn", Operator::NotIn},
    {"Exists", Operator::Exists}, {"DoesNotExist", Operator::DoesNotExist},
    {"Gt", Operator::Gt},         {"Lt", Operator::Lt},
};

Operator read_operator(const Json& json) {
  const std::string_view text = json.view();
  for (const auto& [name, op] : kOperators) {
    if (name == text) return op;
  }
  json.complain(
      fmt::format("\"{}\" is not an operator; use In, NotIn, Exists, DoesNotExist, Gt "
                  "or Lt",
                  text));
  return Operator::In;
}

}  // namespace

StringMap read_string_map(const Json& json) {
  StringMap result;
  json.each_field([&result](std::string_view key, const Json& value) {
    result.emplace_back(key, value.view());
  });
  sort_map(result);
  keep_last(result);
  return result;
}

std::int64_t read_quantity(const Json& json) {
  if (!json) return 0;
  const std::string text = json.number_text();
  return checked_quantity(json, parse_quantity(text), text, "\"2\" or \"4Gi\"");
}

std::int64_t read_quantity_milli(const Json& json) {
  if (!json) return 0;
  const std::string text = json.number_text();
  return checked_quantity(json, parse_quantity_milli(text), text, "\"500m\" or \"2\"");
}

Resources read_resources(const Json& json) {
  Resources result;
  json.each_field([&result](std::string_view name, const Json& value) {
    if (name.empty()) value.complain("is a resource without a name; use e.g. \"cpu\"");
    result.emplace_back(name, name == "cpu" ? read_quantity_milli(value) : read_quantity(value));
  });
  sort_map(result);
  keep_last(result);
  return result;
}

ObjectMeta read_meta(const Json& object, bool namespaced) {
  const Json json = object["metadata"];
  ObjectMeta result;
  result.name = json["name"].text();
  if (result.name.empty()) json["name"].complain("is required");
  if (namespaced) {
    result.ns = json["namespace"].text();
    if (result.ns.empty()) result.ns = "default";
  }
  result.uid = json["uid"].text();
  result.labels = read_string_map(json["labels"]);
  result.annotations = read_annotations(json["annotations"]);
  result.deleting = json["deletionTimestamp"].present();
  json["ownerReferences"].each_item([&result](const Json& owner) {
    if (!owner["controller"].flag()) return;
    result.owner_kind = owner["kind"].text();
    result.owner_name = owner["name"].text();
    result.owner_uid = owner["uid"].text();
  });
  return result;
}

std::vector<SelectorRequirement> read_requirements(const Json& json) {
  std::vector<SelectorRequirement> result;
  json.each_item([&result](const Json& item) {
    result.push_back({.key = item["key"].text(),
                      .op = read_operator(item["operator"]),
                      .values = item["values"].texts()});
  });
  return result;
}

std::optional<LabelSelector> read_label_selector(const Json& json) {
  if (!json) return std::nullopt;
  LabelSelector result{.match_labels = read_string_map(json["matchLabels"]),
                       .match_expressions = {}};
  const Json expressions = json["matchExpressions"];
  result.match_expressions = read_requirements(expressions);
  for (const SelectorRequirement& requirement : result.match_expressions) {
    if (requirement.op == Operator::Gt || requirement.op == Operator::Lt) {
      expressions.complain(
          "Gt and Lt are for node selectors; use In, NotIn, Exists or DoesNotExist");
    }
  }
  return result;
}

std::optional<LabelSelector> read_map_selector(const Json& json) {
  LabelSelector result{.match_labels = read_string_map(json), .match_expressions = {}};
  if (result.match_labels.empty()) return std::nullopt;
  return result;
}

NodeSelectorTerm read_node_selector_term(const Json& json) {
  return {.match_expressions = read_requirements(json["matchExpressions"]),
          .match_fields = read_requirements(json["matchFields"])};
}

std::vector<NodeSelectorTerm> read_node_selector_terms(const Json& json) {
  std::vector<NodeSelectorTerm> result;
  json.each_item([&result](const Json& item) { result.push_back(read_node_selector_term(item)); });
  return result;
}

std::optional<TaintEffect> read_taint_effect(const Json& json) {
  const std::string_view text = json.view();
  if (text.empty()) return std::nullopt;
  if (text == "NoSchedule") return TaintEffect::NoSchedule;
  if (text == "PreferNoSchedule") return TaintEffect::PreferNoSchedule;
  if (text == "NoExecute") return TaintEffect::NoExecute;
  json.complain(fmt::format(
      "\"{}\" is not a taint effect; use NoSchedule, PreferNoSchedule or NoExecute", text));
  return std::nullopt;
}

}  // namespace jogak::kube
