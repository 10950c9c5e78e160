// SPDX-License-Identifier: Apache-2.0
//
// Roles and bindings. They are kept and checked; this server itself allows everything.
#include "apiserver/kinds/core_rules.h"
#include "apiserver/kinds/core_strategies.h"

namespace jogak::api {

namespace {

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";

class RbacStrategy : public PlainStrategy {
 public:
  explicit RbacStrategy(bool is_namespaced) : is_namespaced_(is_namespaced) {}
  NameCheck name_check() const override { return check_path_segment; }
  bool allows_create_on_update() const override { return true; }

 protected:
  bool is_namespaced_;
};

void validate_rule(const Doc& rule, bool is_namespaced, const Path& at, FieldErrors& errors) {
  if (rule["verbs"].empty()) {
    errors.required(at.child("verbs"), "verbs must contain at least one value");
  }
  const Doc& urls = rule["nonResourceURLs"];
  if (!urls.empty()) {
    const Path urls_at = at.child("nonResourceURLs");
    if (is_namespaced) {
      errors.invalid(urls_at, urls, "namespaced rules cannot apply to non-resource URLs");
    }
    if (!rule["apiGroups"].empty() || !rule["resources"].empty() ||
        !rule["resourceNames"].empty()) {
      errors.invalid(urls_at, urls,
                     "rules cannot apply to both regular resources and non-resource URLs");
    }
    return;
  }
  if (rule["apiGroups"].empty()) {
    errors.required(at.child("apiGroups"), "resource rules must supply at least one api group");
  }
  if (rule["resources"].empty()) {
    errors.required(at.child("resources"), "resource rules must supply at least one resource");
  }
}

class RoleStrategy : public RbacStrategy {
 public:
  using RbacStrategy::RbacStrategy;

  void validate_create(const Doc& role, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    for (std::size_t i = 0; i < role["rules"].size(); ++i) {
      validate_rule(role["rules"].items()[i], is_namespaced_, Path("rules").index(i), errors);
    }
    const Doc* aggregation = role.find("aggregationRule");
    if (is_namespaced_ || aggregation == nullptr || aggregation->is_null()) return;
    const Doc& selectors = (*aggregation)["clusterRoleSelectors"];
    const Path at("aggregationRule.clusterRoleSelectors");
    if (selectors.empty()) {
      errors.required(at,
                      "at least one clusterRoleSelector required if aggregationRule is non-nil");
    }
    for (std::size_t i = 0; i < selectors.size(); ++i) {
      validate_label_selector(selectors.items()[i], at.index(i), errors);
    }
  }
  void validate_update(const Doc& role, const Doc& /*old*/, WriteContext& context,
                       FieldErrors& errors) const override {
    validate_create(role, context, errors);
  }
};

void validate_subject(const Doc& subject, bool is_namespaced, const Path& at, FieldErrors& errors) {
  const std::string& name = subject["name"].as_string();
  const std::string& kind = subject["kind"].as_string();
  const std::string& group = subject["apiGroup"].as_string();
  if (name.empty()) errors.required(at.child("name"));
  if (kind == "ServiceAccount") {
    if (!name.empty()) validate_name(name, check_dns1123_subdomain, at.child("name"), errors);
    if (!group.empty()) errors.not_supported(at.child("apiGroup"), group, {""});
    if (!is_namespaced && subject["namespace"].as_string().empty()) {
      errors.required(at.child("namespace"));
    }
  } else if (kind == "User" || kind == "Group") {
    if (group != kGroup) errors.not_supported(at.child("apiGroup"), group, {kGroup});
  } else {
    errors.not_supported(at.child("kind"), kind, {"ServiceAccount", "User", "Group"});
  }
}

class RoleBindingStrategy : public RbacStrategy {
 public:
  using RbacStrategy::RbacStrategy;

  void set_defaults(Doc& binding) const override {
    if (binding.get("roleRef", "apiGroup").as_string().empty()) {
      binding.at("roleRef").set("apiGroup", kGroup);
    }
    Doc* subjects = binding.find("subjects");
    if (subjects == nullptr || !subjects->is_array()) return;
    for (Doc& subject : subjects->items()) {
      const std::string& kind = subject["kind"].as_string();
      const bool is_person = kind == "User" || kind == "Group";
      if (is_person && subject["apiGroup"].as_string().empty()) subject.set("apiGroup", kGroup);
    }
  }

  void validate_create(const Doc& binding, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    const Doc& role = binding["roleRef"];
    const Path at("roleRef");
    const std::string& kind = role["kind"].as_string();
    const std::string& name = role["name"].as_string();
    if (role["apiGroup"].as_string() != kGroup) {
      errors.not_supported(at.child("apiGroup"), role["apiGroup"].as_string(), {kGroup});
    }
    if (kind != "ClusterRole" && (kind != "Role" || !is_namespaced_)) {
      if (is_namespaced_) {
        errors.not_supported(at.child("kind"), kind, {"Role", "ClusterRole"});
      } else {
        errors.not_supported(at.child("kind"), kind, {"ClusterRole"});
      }
    }
    if (name.empty()) {
      errors.required(at.child("name"));
    } else {
      validate_name(name, check_path_segment, at.child("name"), errors);
    }
    for (std::size_t i = 0; i < binding["subjects"].size(); ++i) {
      validate_subject(binding["subjects"].items()[i], is_namespaced_, Path("subjects").index(i),
                       errors);
    }
  }
  void validate_update(const Doc& binding, const Doc& old, WriteContext& context,
                       FieldErrors& errors) const override {
    validate_create(binding, context, errors);
    if (!same(binding["roleRef"], old["roleRef"])) {
      errors.invalid(Path("roleRef"), binding["roleRef"], "cannot change roleRef");
    }
  }
};

}  // namespace

StrategyPtr role_strategy(bool is_namespaced) {
  return std::make_shared<RoleStrategy>(is_namespaced);
}

StrategyPtr role_binding_strategy(bool is_namespaced) {
  return std::make_shared<RoleBindingStrategy>(is_namespaced);
}

}  // namespace jogak::api
