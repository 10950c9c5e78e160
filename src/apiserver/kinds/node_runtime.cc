// SPDX-License-Identifier: Apache-2.0
//
// Runtime classes: the handler is for ever; what it costs and where it runs is checked like a pod.
#include <array>
#include <set>
#include <string>

#include "apiserver/kinds/core_rules.h"
#include "apiserver/kinds/core_strategies.h"

namespace jogak::api {

namespace {

void validate_toleration(const Doc& toleration, const Path& at, FieldErrors& errors) {
  const std::string& key = toleration["key"].as_string();
  const std::string& op = toleration["operator"].as_string();
  const std::string& effect = toleration["effect"].as_string();
  if (!key.empty()) validate_label_key(key, at.child("key"), errors);
  if (key.empty() && op != "Exists") {
    errors.invalid(at.child("operator"), op,
                   "operator must be Exists when `key` is empty, which means \"match all values "
                   "and all keys\"");
  }
  if (toleration.has("tolerationSeconds") && effect != "NoExecute") {
    errors.invalid(at.child("effect"), effect,
                   "effect must be 'NoExecute' when `tolerationSeconds` is set");
  }
  if (op.empty() || op == "Equal") {
    validate_name(toleration["value"].as_string(), check_label_value, at.child("operator"), errors);
  } else if (op == "Exists") {
    if (!toleration["value"].as_string().empty()) {
      errors.invalid(at.child("operator"), toleration,
                     "value must be empty when `operator` is 'Exists'");
    }
  } else {
    errors.not_supported(at.child("operator"), op, {"Equal", "Exists"});
  }
  const bool is_known =
      effect == "NoSchedule" || effect == "PreferNoSchedule" || effect == "NoExecute";
  if (!effect.empty() && !is_known) {
    errors.not_supported(at.child("effect"), effect,
                         {"NoSchedule", "PreferNoSchedule", "NoExecute"});
  }
}

class RuntimeClassStrategy : public PlainStrategy {
 public:
  void set_defaults(Doc& object) const override {
    if (Doc* overhead = object.find("overhead")) round_resources(*overhead, "podFixed");
  }
  void validate_create(const Doc& object, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    const std::string& handler = object["handler"].as_string();
    if (handler.empty()) {
      errors.required(Path("handler"));
    } else {
      validate_name(handler, check_dns1123_label, Path("handler"), errors);
    }
    for (const auto& [name, value] : object.get("overhead", "podFixed").members()) {
      const Path at = Path("overhead.limits").key(name);
      validate_container_resource_name(name, at, errors);
      validate_quantity(name, value, at, errors);
    }
    const Doc& scheduling = object["scheduling"];
    if (scheduling.has("nodeSelector")) {
      validate_labels(scheduling["nodeSelector"], Path("scheduling.nodeSelector"), errors);
    }
    const Doc& tolerations = scheduling["tolerations"];
    const Path at("scheduling.tolerations");
    for (std::size_t i = 0; i < tolerations.size(); ++i) {
      validate_toleration(tolerations.items()[i], at.index(i), errors);
    }
    validate_unique(
        tolerations, at,
        [](Doc toleration) {
          toleration.erase("tolerationSeconds");
          return toleration;
        },
        errors);
  }
  void validate_update(const Doc& object, const Doc& old, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    require_same(object["handler"], old["handler"], Path("handler"), errors);
  }
  bool allows_create_on_update() const override { return true; }
  bool allows_unconditional_update() const override { return false; }
};

}  // namespace

StrategyPtr runtime_class_strategy() { return std::make_shared<RuntimeClassStrategy>(); }

}  // namespace jogak::api
