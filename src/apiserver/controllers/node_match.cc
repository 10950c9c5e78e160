// SPDX-License-Identifier: Apache-2.0
//
// Facts: component-helpers/scheduling/corev1 of Kubernetes.
#include "apiserver/controllers/node_match.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "apiserver/object/meta.h"

namespace jogak::controllers {

namespace {

bool read_number(std::string_view text, std::int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// `value` is null where there is no such label.
bool meets(const Doc& requirement, const Doc& value) {
  const std::string& op = requirement["operator"].as_string();
  const Doc::Items& values = requirement["values"].items();
  const bool is_listed = !value.is_null() && std::ranges::find(values, value) != values.end();
  if (op == "In") return is_listed;
  if (op == "NotIn") return !is_listed;
  if (op == "Exists") return !value.is_null();
  if (op == "DoesNotExist") return value.is_null();
  std::int64_t have = 0, limit = 0;
  const bool are_numbers = !value.is_null() && values.size() == 1 &&
                           read_number(value.as_string(), have) &&
                           read_number(values[0].as_string(), limit);
  return are_numbers && (op == "Gt" ? have > limit : op == "Lt" && have < limit);
}

bool term_matches(const Doc& term, const Doc& node) {
  const Doc::Items& labels = term["matchExpressions"].items();
  const Doc::Items& fields = term["matchFields"].items();
  if (labels.empty() && fields.empty()) return false;  // an empty term selects nothing
  const bool has_labels = std::ranges::all_of(labels, [&](const Doc& one) {
    return meets(one, api::meta(node)["labels"][one["key"].as_string()]);
  });
  return has_labels && std::ranges::all_of(fields, [&](const Doc& one) {
           return one["key"].as_string() == "metadata.name" && meets(one, api::meta(node)["name"]);
         });
}

}  // namespace

bool tolerates(const Doc& toleration, const Doc& taint) {
  const std::string& effect = toleration["effect"].as_string();
  if (!effect.empty() && effect != taint["effect"].as_string()) return false;
  const std::string& key = toleration["key"].as_string();
  if (!key.empty() && key != taint["key"].as_string()) return false;
  const std::string& op = toleration["operator"].as_string();
  if (op == "Exists") return true;
  return (op.empty() || op == "Equal") && !key.empty() &&
         toleration["value"].as_string() == taint["value"].as_string();
}

bool tolerates_all(const Doc& tolerations, const Doc& taints, bool with_no_schedule) {
  return std::ranges::all_of(taints.items(), [&](const Doc& taint) {
    const std::string& effect = taint["effect"].as_string();
    const bool counts = effect == "NoExecute" || (with_no_schedule && effect == "NoSchedule");
    return !counts || std::ranges::any_of(tolerations.items(), [&](const Doc& toleration) {
      return tolerates(toleration, taint);
    });
  });
}

bool selects_node(const Doc& pod_spec, const Doc& node) {
  const Doc& labels = api::meta(node)["labels"];
  const bool has_all = std::ranges::all_of(
      pod_spec["nodeSelector"].members(),
      [&](const Doc::Member& wanted) { return labels[wanted.key] == wanted.value; });
  if (!has_all) return false;
  const Doc& required =
      pod_spec.get("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution");
  if (required.is_null()) return true;
  return std::ranges::any_of(required["nodeSelectorTerms"].items(),
                             [&](const Doc& term) { return term_matches(term, node); });
}

}  // namespace jogak::controllers
