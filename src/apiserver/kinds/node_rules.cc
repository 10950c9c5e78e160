// SPDX-License-Identifier: Apache-2.0
//
// Nodes: a client may set status on create; taints are checked under metadata.taints, as upstream
// names them; addresses of pods and the provider's id are set once.
#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

#include "apiserver/kinds/core_rules.h"
#include "apiserver/kinds/core_strategies.h"
#include "apiserver/object/meta.h"

namespace jogak::api {

namespace {

constexpr std::size_t kFeatureNameMax = 253;

void validate_taints(const Doc& taints, const Path& at, FieldErrors& errors) {
  static constexpr std::array<std::string_view, 3> kEffects = {"NoSchedule", "PreferNoSchedule",
                                                               "NoExecute"};
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (std::size_t i = 0; i < taints.size(); ++i) {
    const Doc& taint = taints.items()[i];
    const Path here = at.index(i);
    const std::string& effect = taint["effect"].as_string();
    validate_label_key(taint["key"].as_string(), here.child("key"), errors);
    add_problems(errors, here.child("value"), taint["value"],
                 check_label_value(taint["value"].as_string()));
    if (effect.empty()) {
      errors.required(here.child("effect"));
    } else if (std::ranges::find(kEffects, effect) == kEffects.end()) {
      errors.not_supported(here.child("effect"), effect, {kEffects.begin(), kEffects.end()});
    }
    if (!seen.insert({effect, taint["key"].as_string()}).second) errors.duplicate(here, taint);
  }
}

// Segments in UpperCamelCase, joined by slashes: "GuaranteedQoSPodCPUResize", "A/b".
bool is_feature_name(std::string_view name) {
  bool at_start = true;
  bool is_first = true;
  for (const char c : name) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool letter = upper || (c >= 'a' && c <= 'z');
    if (at_start && (is_first ? !upper : !letter)) return false;
    if (c != '/' && !letter && (c < '0' || c > '9')) return false;
    at_start = c == '/';
    is_first = false;
  }
  return !name.empty() && !at_start;
}

void validate_features(const Doc& features, const Path& at, FieldErrors& errors) {
  for (std::size_t i = 0; i < features.size(); ++i) {
    const std::string& feature = features.items()[i].as_string();
    if (feature.size() > kFeatureNameMax || !is_feature_name(feature)) {
      errors.invalid(at.index(i), feature, "invalid feature name \"" + feature + "\"");
    }
    if (i == 0) continue;
    const std::string& before = features.items()[i - 1].as_string();
    if (before == feature) errors.duplicate(at.index(i), feature);
    if (before > feature) {
      errors.invalid(at.index(i), feature, "list must be sorted alphabetically");
    }
  }
}

void validate_resources(const Doc& node, FieldErrors& errors) {
  for (const std::string_view list : {"capacity", "allocatable"}) {
    for (const auto& [name, value] : node.get("status", list).members()) {
      validate_quantity(name, value, Path("status").child(list, name), errors);
    }
  }
}

void validate_cidrs(const Doc& cidrs, FieldErrors& errors) {
  const Path at("spec.podCIDRs");
  std::array<int, 2> count{};
  for (std::size_t i = 0; i < cidrs.size(); ++i) {
    bool is_v6 = false;
    if (!is_cidr(cidrs.items()[i].as_string(), &is_v6)) {
      errors.invalid(at.index(i), cidrs.items()[i],
                     "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
    } else {
      ++count[is_v6 ? 1 : 0];
    }
  }
  if (cidrs.size() > 2 || count[0] > 1 || count[1] > 1) {
    errors.invalid(at, cidrs, "may specify no more than one CIDR for each IP family");
  }
}

void validate_node(const Doc& node, FieldErrors& errors) {
  validate_taints(node.get("spec", "taints"), Path("metadata.taints"), errors);
  validate_resources(node, errors);
  validate_features(node.get("status", "declaredFeatures"), Path("status.declaredFeatures"),
                    errors);
  validate_cidrs(node.get("spec", "podCIDRs"), errors);
}

// Against the stored node; the main resource and status alike.
void validate_change(const Doc& node, const Doc& old, FieldErrors& errors) {
  validate_resources(node, errors);
  validate_features(node.get("status", "declaredFeatures"), Path("status.declaredFeatures"),
                    errors);
  validate_unique(
      node.get("status", "addresses"), Path("status.addresses"),
      [](const Doc& address) {
        return Doc::object().set("Type", address["type"]).set("Address", address["address"]);
      },
      errors);
  const Doc& cidrs = node.get("spec", "podCIDRs");
  const Doc& old_cidrs = old.get("spec", "podCIDRs");
  if (!old_cidrs.empty() && cidrs.size() != old_cidrs.size()) {
    errors.forbidden(Path("spec.podCIDRs"),
                     "node updates may not change podCIDR except from \"\" to valid");
  } else {
    for (std::size_t i = 0; i < old_cidrs.size(); ++i) {
      if (cidrs.items()[i] == old_cidrs.items()[i]) continue;
      errors.forbidden(Path("spec.podCIDRs"),
                       "node updates may not change podCIDR except from \"\" to valid");
    }
  }
  const std::string& old_id = old.get("spec", "providerID").as_string();
  if (!old_id.empty() && node.get("spec", "providerID").as_string() != old_id) {
    errors.forbidden(Path("spec.providerID"),
                     "node updates may not change providerID except from \"\" to valid");
  }
  validate_taints(node.get("spec", "taints"), Path("metadata.taints"), errors);
  if (!same(node.get("spec", "externalID"), old.get("spec", "externalID"))) {
    errors.forbidden(Path("spec.externalID"), "may not be updated");
  }
}

class NodeStrategy : public PlainStrategy {
 public:
  void set_defaults(Doc& node) const override {
    Doc& spec = node.at("spec");
    if (!spec.is_object()) spec = Doc::object();
    // the old single member and the list name the same address first
    const std::string first = spec["podCIDR"].as_string();
    const Doc& list = spec["podCIDRs"];
    if (!first.empty() && (list.empty() || list.items()[0].as_string() != first)) {
      spec.set("podCIDRs", Doc::array({first}));
    } else if (first.empty() && !list.empty()) {
      spec.set("podCIDR", Doc(list.items()[0]));
    }
    Doc* status = node.find("status");
    if (status == nullptr || !status->is_object()) return;
    round_resources(*status, "capacity");
    round_resources(*status, "allocatable");
    if ((*status)["allocatable"].empty() && !(*status)["capacity"].empty()) {
      status->set("allocatable", Doc((*status)["capacity"]));
    }
  }

  void prepare_create(Doc& node, WriteContext& context) const override {
    node.at("spec").erase("configSource");
    if (Doc* status = node.find("status")) status->erase("config");
    warn(node, context);
  }
  void validate_create(const Doc& node, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    validate_node(node, errors);
  }

  void prepare_update(Doc& node, const Doc& old, WriteContext& context) const override {
    Strategy::prepare_update(node, old, context);
    if (!old.get("spec").has("configSource")) node.at("spec").erase("configSource");
    warn(node, context);
  }
  void validate_update(const Doc& node, const Doc& old, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    validate_node(node, errors);
    validate_change(node, old, errors);
  }

  void prepare_subresource_update(std::string_view /*subresource*/, Doc& node, const Doc& old,
                                  WriteContext& /*context*/) const override {
    take_status_and_metadata(node, old);
  }
  void validate_subresource_update(std::string_view /*subresource*/, const Doc& node,
                                   const Doc& old, WriteContext& /*context*/,
                                   FieldErrors& errors) const override {
    validate_change(node, old, errors);
  }

  std::vector<std::string_view> selectable_fields() const override {
    return {"spec.unschedulable"};
  }
  std::string field(const Doc& node, std::string_view path) const override {
    if (path != "spec.unschedulable") return Strategy::field(node, path);
    return node.get("spec", "unschedulable").as_bool() ? "true" : "false";
  }

 private:
  static void warn(const Doc& node, WriteContext& context) {
    if (!node.get("spec", "externalID").as_string().empty()) {
      context.warnings.emplace_back(
          "spec.externalID: this field is deprecated, and is unused by Kubernetes");
    }
  }
};

}  // namespace

StrategyPtr node_strategy() { return std::make_shared<NodeStrategy>(); }

}  // namespace jogak::api
