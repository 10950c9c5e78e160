// SPDX-License-Identifier: Apache-2.0
//
// Config maps: keys, size, and what `immutable` freezes.
#include "apiserver/kinds/config_data.h"
#include "apiserver/kinds/core_rules.h"
#include "apiserver/kinds/core_strategies.h"

namespace jogak::api {

namespace {

void validate_config_map(const Doc& map, FieldErrors& errors) {
  std::size_t size = 0;
  for (const auto& [key, value] : map["data"].members()) {
    const Path at = Path("data").key(key);
    add_problems(errors, at, key, check_config_key(key));
    if (map["binaryData"].has(key)) {
      errors.invalid(at, key, "duplicate of key present in binaryData");
    }
    size += value.as_string().size();
  }
  for (const auto& [key, value] : map["binaryData"].members()) {
    add_problems(errors, Path("binaryData").key(key), key, check_config_key(key));
    size += base64_size(value.as_string());
  }
  if (size > kConfigDataMax) errors.too_long(Path(), kConfigDataMax);
}

class ConfigMapStrategy : public PlainStrategy {
 public:
  MetaChecks meta_checks_on_update() const override { return MetaChecks::ChangesAndWhole; }
  void validate_create(const Doc& map, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    validate_config_map(map, errors);
  }
  void validate_update(const Doc& map, const Doc& old, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    check_immutable(map, old, {"data", "binaryData"}, errors);
    validate_config_map(map, errors);
  }
};

}  // namespace

void check_immutable(const Doc& object, const Doc& old,
                     std::initializer_list<std::string_view> members, FieldErrors& errors) {
  if (!old["immutable"].as_bool()) return;
  constexpr std::string_view kWhy = "field is immutable when `immutable` is set";
  if (!object["immutable"].as_bool()) errors.forbidden(Path("immutable"), kWhy);
  for (const std::string_view member : members) {
    if (!same(object[member], old[member])) errors.forbidden(Path(member), kWhy);
  }
}

StrategyPtr config_map_strategy() { return std::make_shared<ConfigMapStrategy>(); }

}  // namespace jogak::api
