// SPDX-License-Identifier: Apache-2.0
//
// Where a pod may run: affinity, tolerations, spread constraints, scheduling gates.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/kinds/pod_validate.h"

namespace jogak::api {

namespace {

constexpr std::string_view kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr std::string_view kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";

void check_node_expression(const Doc& rule, bool is_required, const Spot& at, FieldErrors& errors) {
  const Doc& op = rule["operator"];
  const auto& values = rule["values"].items();
  if (is_any_of(op.as_string(), {"In", "NotIn"})) {
    if (values.empty()) {
      errors.required(at.child("values"), "must be specified when `operator` is 'In' or 'NotIn'");
    }
  } else if (is_any_of(op.as_string(), {"Exists", "DoesNotExist"})) {
    if (!values.empty()) {
      errors.forbidden(at.child("values"),
                       "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    }
  } else if (is_any_of(op.as_string(), {"Gt", "Lt"})) {
    if (values.size() != 1) {
      errors.required(at.child("values"),
                      "must be specified single value when `operator` is 'Lt' or 'Gt'");
    }
  } else {
    errors.invalid(at.child("operator"), shown(op), "not a valid selector operator");
  }
  add_problems(errors, at.child("key"), shown(rule["key"]),
               check_qualified_name(rule["key"].as_string()));
  if (is_required) {
    const Spot list = at.child("values");
    for (std::size_t i = 0; i < values.size(); ++i) {
      check_name(values[i], check_label_value, list.index(i), errors);
    }
  }
}

void check_node_field(const Doc& rule, const Spot& at, FieldErrors& errors) {
  const auto& values = rule["values"].items();
  if (!is_any_of(rule["operator"].as_string(), {"In", "NotIn"})) {
    errors.invalid(at.child("operator"), shown(rule["operator"]), "not a valid selector operator");
  } else if (values.size() != 1) {
    errors.required(
        at.child("values"),
        "must be only one value when `operator` is 'In' or 'NotIn' for node field selector");
  }
  if (rule["key"].as_string() != "metadata.name") {
    errors.invalid(at.child("key"), shown(rule["key"]), "not a valid field selector key");
    return;
  }
  const Spot list = at.child("values");
  for (std::size_t i = 0; i < values.size(); ++i) {
    check_name(values[i], check_dns1123_subdomain, list.index(i), errors);
  }
}

void check_node_term(const Doc& term, bool is_required, const Spot& at, FieldErrors& errors) {
  const Spot expressions = at.child("matchExpressions");
  for (std::size_t i = 0; i < term["matchExpressions"].size(); ++i) {
    check_node_expression(term["matchExpressions"].items()[i], is_required, expressions.index(i),
                          errors);
  }
  const Spot fields = at.child("matchFields");
  for (std::size_t i = 0; i < term["matchFields"].size(); ++i) {
    check_node_field(term["matchFields"].items()[i], fields.index(i), errors);
  }
}

void check_weight(const Doc& term, const Spot& at, FieldErrors& errors) {
  constexpr std::int64_t kMaxWeight = 100;
  const std::int64_t weight = term["weight"].as_int();
  if (weight <= 0 || weight > kMaxWeight) {
    errors.invalid(at.child("weight"), weight, "must be in the range 1-100");
  }
}

void check_node_affinity(const Doc& affinity, const Spot& at, FieldErrors& errors) {
  if (const Doc* required = affinity.find(kRequired)) {
    const Spot spot = at.child(kRequired);
    const Spot list = spot.child("nodeSelectorTerms");
    const auto& terms = (*required)["nodeSelectorTerms"].items();
    if (terms.empty()) {
      errors.required(list, "must have at least one node selector term");
    }
    for (std::size_t i = 0; i < terms.size(); ++i) {
      check_node_term(terms[i], true, list.index(i), errors);
    }
  }
  const Spot list = at.child(kPreferred);
  const auto& terms = affinity[kPreferred].items();
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const Spot spot = list.index(i);
    check_weight(terms[i], spot, errors);
    check_node_term(terms[i]["preference"], false, spot.child("preference"), errors);
  }
}

void check_label_keys(const Doc& keys, const Doc& selector, const Spot& at, FieldErrors& errors) {
  if (keys.empty()) {
    return;
  }
  if (selector.is_null()) {
    errors.forbidden(at, "must not be specified when labelSelector is not set");
    return;
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    check_name(keys.items()[i], check_qualified_name, at.index(i), errors);
  }
}

bool has_text(const Doc& list, std::string_view text) {
  return std::ranges::any_of(list.items(),
                             [&](const Doc& item) { return item.as_string() == text; });
}

// matchLabelKeys and mismatchLabelKeys. The server has already merged the keys into the selector,
// so a key that stands there twice was also written by hand; it reports that on the holder's index.
void check_match_keys(const Doc& holder, const Spot& at, FieldErrors& errors) {
  const Doc& match = holder["matchLabelKeys"];
  const Doc& mismatch = holder["mismatchLabelKeys"];
  if (match.empty() && mismatch.empty()) {
    return;
  }
  const Doc& selector = holder["labelSelector"];
  check_label_keys(match, selector, at.child("matchLabelKeys"), errors);
  check_label_keys(mismatch, selector, at.child("mismatchLabelKeys"), errors);
  std::vector<std::string_view> seen;
  for (const Doc::Member& label : selector["matchLabels"].members()) {
    seen.push_back(label.key);
  }
  for (const Doc& rule : selector["matchExpressions"].items()) {
    const std::string& key = rule["key"].as_string();
    for (std::size_t i = match.size(); i-- > 0;) {
      if (match.items()[i].as_string() == key) {
        if (std::ranges::find(seen, key) != seen.end()) {
          errors.invalid(at.index(i), key, "exists in both matchLabelKeys and labelSelector");
        }
        break;
      }
    }
    seen.push_back(key);
  }
  const Spot list = at.child("matchLabelKeys");
  for (std::size_t i = 0; i < match.size(); ++i) {
    if (has_text(mismatch, match.items()[i].as_string())) {
      errors.invalid(list.index(i), match.items()[i],
                     "exists in both matchLabelKeys and mismatchLabelKeys");
    }
  }
}

void check_pod_term(const Doc& term, const Spot& at, FieldErrors& errors) {
  for (const std::string_view key : {"labelSelector", "namespaceSelector"}) {
    if (term.has(key)) {
      validate_label_selector(term[key], at.child(key), errors);
    }
  }
  for (const Doc& name : term["namespaces"].items()) {
    check_name(name, check_dns1123_label, at.child("namespace"), errors);
  }
  check_match_keys(term, at, errors);
  const Doc& topology = term["topologyKey"];
  if (topology.as_string().empty()) {
    errors.required(at.child("topologyKey"), "can not be empty");
  }
  add_problems(errors, at.child("topologyKey"), shown(topology),
               check_qualified_name(topology.as_string()));
}

void check_pod_affinity(const Doc& affinity, const Spot& at, FieldErrors& errors) {
  const Spot required = at.child(kRequired);
  for (std::size_t i = 0; i < affinity[kRequired].size(); ++i) {
    check_pod_term(affinity[kRequired].items()[i], required.index(i), errors);
  }
  const Spot preferred = at.child(kPreferred);
  for (std::size_t i = 0; i < affinity[kPreferred].size(); ++i) {
    const Doc& term = affinity[kPreferred].items()[i];
    const Spot spot = preferred.index(i);
    check_weight(term, spot, errors);
    check_pod_term(term["podAffinityTerm"], spot.child("podAffinityTerm"), errors);
  }
}

void check_toleration_operator(const Doc& toleration, const Spot& at, FieldErrors& errors) {
  const std::string& op = toleration["operator"].as_string();
  const Doc& value = toleration["value"];
  if (op == "Equal" || op.empty()) {
    const Problems problems = check_label_value(value.as_string());
    if (!problems.empty()) {
      std::string all;
      for (const std::string& problem : problems) {
        all.append(all.empty() ? "" : ";").append(problem);
      }
      errors.invalid(at.child("operator"), value, all);
    }
  } else if (op == "Exists") {
    if (!value.as_string().empty()) {
      errors.invalid(at.child("operator"), value,
                     "value must be empty when `operator` is 'Exists'");
    }
  } else if (op == "Lt" || op == "Gt") {
    // Comparing operators are off; the list names them all the same.
    errors.not_supported(at.child("operator"), toleration["operator"],
                         {"Equal", "Exists", "Lt", "Gt"});
  } else {
    errors.not_supported(at.child("operator"), toleration["operator"], {"Equal", "Exists"});
  }
}

}  // namespace

void validate_affinity(const Doc& affinity, const Spot& at, FieldErrors& errors) {
  if (affinity.empty()) {
    return;
  }
  check_node_affinity(affinity["nodeAffinity"], at.child("nodeAffinity"), errors);
  check_pod_affinity(affinity["podAffinity"], at.child("podAffinity"), errors);
  check_pod_affinity(affinity["podAntiAffinity"], at.child("podAntiAffinity"), errors);
}

void validate_tolerations(const Doc& tolerations, const Spot& at, FieldErrors& errors) {
  for (std::size_t i = 0; i < tolerations.size(); ++i) {
    const Doc& toleration = tolerations.items()[i];
    const Spot spot = at.index(i);
    const Doc& key = toleration["key"];
    if (!key.as_string().empty()) {
      check_name(key, check_qualified_name, spot.child("key"), errors);
    } else if (toleration["operator"].as_string() != "Exists") {
      errors.invalid(spot.child("operator"), shown(toleration["operator"]),
                     "operator must be Exists when `key` is empty, which means \"match all values "
                     "and all keys\"");
    }
    const Doc& effect = toleration["effect"];
    if (toleration.has("tolerationSeconds") && effect.as_string() != "NoExecute") {
      errors.invalid(spot.child("effect"), shown(effect),
                     "effect must be 'NoExecute' when `tolerationSeconds` is set");
    }
    check_toleration_operator(toleration, spot, errors);
    if (!effect.as_string().empty()) {
      check_one_of(effect, {"NoSchedule", "PreferNoSchedule", "NoExecute"}, spot.child("effect"),
                   errors);
    }
  }
}

void validate_spread_constraints(const Doc& constraints, const Spot& at, FieldErrors& errors) {
  const auto& items = constraints.items();
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Doc& item = items[i];
    const Spot spot = at.index(i);
    if (item["maxSkew"].as_int() <= 0) {
      errors.invalid(spot.child("maxSkew"), item["maxSkew"].as_int(), "must be greater than zero");
    }
    const std::string& topology = item["topologyKey"].as_string();
    const std::string& action = item["whenUnsatisfiable"].as_string();
    if (topology.empty()) {
      errors.required(spot.child("topologyKey"), "can not be empty");
    }
    if (!is_any_of(action, {"DoNotSchedule", "ScheduleAnyway"})) {
      errors.not_supported(spot.child("whenUnsatisfiable"), action,
                           {"DoNotSchedule", "ScheduleAnyway"});
    }
    for (std::size_t k = i + 1; k < items.size(); ++k) {
      if (items[k]["topologyKey"].as_string() == topology &&
          items[k]["whenUnsatisfiable"].as_string() == action) {
        errors.duplicate(spot.child("{topologyKey, whenUnsatisfiable}"),
                         "{" + topology + ", " + action + "}");
        break;
      }
    }
    if (const Doc& domains = item["minDomains"]; !domains.is_null()) {
      if (domains.as_int() <= 0) {
        errors.invalid(spot.child("minDomains"), domains, "must be greater than zero");
      }
      if (action != "DoNotSchedule") {
        errors.invalid(spot.child("minDomains"), domains,
                       "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not " + action);
      }
    }
    for (const std::string_view policy : {"nodeAffinityPolicy", "nodeTaintsPolicy"}) {
      check_one_of(item[policy], {"Honor", "Ignore"}, spot.child(policy), errors);
    }
    check_match_keys(item, spot, errors);
    if (item.has("labelSelector")) {
      validate_label_selector(item["labelSelector"], spot.child("labelSelector"), errors);
    }
  }
}

void validate_scheduling_gates(const Doc& gates, const Spot& at, FieldErrors& errors) {
  std::vector<std::string_view> seen;
  for (std::size_t i = 0; i < gates.size(); ++i) {
    const Doc& name = gates.items()[i]["name"];
    add_problems(errors, at.index(i), shown(name), check_qualified_name(name.as_string()));
    if (std::ranges::find(seen, name.as_string()) != seen.end()) {
      errors.duplicate(at.index(i), shown(name));
    }
    seen.push_back(name.as_string());
  }
}

}  // namespace jogak::api
