// SPDX-License-Identifier: Apache-2.0
//
// Resource slices: which nodes they are for, and the devices they publish; device classes.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "apiserver/kinds/core_rules.h"
#include "apiserver/kinds/core_strategies.h"
#include "apiserver/kinds/dra_rules.h"
#include "apiserver/kinds/dra_slice.h"
#include "apiserver/object/meta.h"
#include "apiserver/object/resource_list.h"

namespace jogak::api {

namespace {

constexpr std::size_t kConfigMax = 32;
constexpr std::size_t kDevicesMax = 128;
constexpr std::size_t kRichDevicesMax = 64;  // with taints or counters
constexpr std::size_t kCounterSetsMax = 8;
constexpr std::size_t kCountersMax = 32;

// "`nodeName`" and so on, of those that are set; each is checked on the way.
std::vector<std::string> places_of(const Doc& spec, const Path& at, FieldErrors& errors) {
  std::vector<std::string> places;
  if (const Doc* node = spec.find("nodeName")) {
    if (node->as_string().empty()) {
      errors.invalid(at.child("nodeName"), *node,
                     "must be either unset or set to a non-empty string");
    } else {
      places.emplace_back("`nodeName`");
      validate_name(node->as_string(), check_dns1123_subdomain, at.child("nodeName"), errors);
    }
  }
  if (const Doc* selector = spec.find("nodeSelector")) {
    places.emplace_back("`nodeSelector`");
    validate_node_selector(*selector, at.child("nodeSelector"), errors);
    if ((*selector)["nodeSelectorTerms"].size() != 1) {
      errors.invalid(at.child("nodeSelector", "nodeSelectorTerms"),
                     (*selector)["nodeSelectorTerms"], "must have exactly one node selector term");
    }
  }
  for (const std::string_view flag : {"allNodes", "perDeviceNodeSelection"}) {
    const Doc* value = spec.find(flag);
    if (value == nullptr) continue;
    if (value->as_bool()) {
      places.push_back("`" + std::string(flag) + "`");
    } else {
      errors.invalid(at.child(flag), *value, "must be either unset or set to true");
    }
  }
  return places;
}

void validate_places(const Doc& spec, const Path& at, FieldErrors& errors) {
  const std::vector<std::string> places = places_of(spec, at, errors);
  constexpr std::string_view kOne =
      "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
  if (places.empty()) errors.required(at, kOne);
  if (places.size() < 2) return;
  std::string shown;
  for (const std::string& place : places) shown += (shown.empty() ? "{" : ", ") + place;
  errors.invalid(at, shown + "}", std::string(kOne) + ", but multiple fields are set");
}

void validate_counter_set(const Doc& set, const Path& at, FieldErrors& errors) {
  const std::string& name = set["name"].as_string();
  if (name.empty()) {
    errors.required(at.child("name"));
  } else {
    validate_name(name, check_dns1123_label, at.child("name"), errors);
  }
  validate_counters(set["counters"], kCountersMax, at.child("counters"), errors);
}

void validate_slice(const Doc& spec, const Doc& old, FieldErrors& errors) {
  const Path at("spec");
  const Doc& pool = spec["pool"];
  validate_driver_name(spec["driver"].as_string(), at.child("driver"), errors);
  validate_pool_name(pool["name"].as_string(), at.child("pool", "name"), errors);
  if (pool["resourceSliceCount"].as_int() <= 0) {
    errors.invalid(at.child("pool", "resourceSliceCount"), pool["resourceSliceCount"].as_int(),
                   "must be greater than zero");
  }
  if (pool["generation"].as_int() < 0) {
    errors.invalid(at.child("pool", "generation"), pool["generation"],
                   "must be greater than or equal to zero");
  }
  if (!old.is_null()) {
    require_same(pool["name"], old["pool"]["name"], at.child("pool", "name"), errors);
    require_same(spec["driver"], old["driver"], at.child("driver"), errors);
    require_same(spec["nodeName"], old["nodeName"], at.child("nodeName"), errors);
  }
  validate_places(spec, at, errors);
  const Doc& devices = spec["devices"];
  if (!spec["sharedCounters"].empty() && !devices.empty()) {
    errors.invalid(at, "", "only one of `sharedCounters` or `devices` is allowed");
  }
  const bool is_rich = std::ranges::any_of(devices.items(), [](const Doc& device) {
    return !device["taints"].empty() || !device["consumesCounters"].empty();
  });
  const auto name_key = [](const Doc& item) { return item["name"]; };
  const bool per_device = spec["perDeviceNodeSelection"].as_bool();
  validate_list(
      devices, at.child("devices"),
      {.max = is_rich ? kRichDevicesMax : kDevicesMax,
       .check = [&](const Doc& item, const Path& here,
                    FieldErrors& found) { validate_device(item, per_device, here, found); },
       .key = name_key},
      errors);
  validate_list(spec["sharedCounters"], at.child("sharedCounters"),
                {.max = kCounterSetsMax, .check = validate_counter_set, .key = name_key}, errors);
}

class SliceStrategy : public Strategy {
 public:
  void prepare_create(Doc& slice, WriteContext& context) const override {
    drop_gated(slice);
    stamp_taints(slice, {}, context.now);
    warn(slice, context);
  }
  void validate_create(const Doc& slice, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    validate_slice(slice["spec"], {}, errors);
  }
  void prepare_update(Doc& slice, const Doc& old, WriteContext& context) const override {
    drop_gated(slice);
    stamp_taints(slice, old, context.now);
    warn(slice, context);
  }
  void validate_update(const Doc& slice, const Doc& old, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    validate_slice(slice["spec"], old["spec"], errors);
  }
  bool spec_changed(const Doc& slice, const Doc& old) const override {
    return !same(slice["spec"], old["spec"]);
  }
  std::vector<std::string_view> selectable_fields() const override {
    return {"spec.nodeName", "spec.driver"};
  }
  bool returns_deleted_object() const override { return true; }

 private:
  // Members behind gates that are off: attributes with lists, mappings to what nodes allocate.
  static void drop_gated(Doc& slice) {
    if (slice.get("spec", "devices").empty()) return;
    for (Doc& device : slice.at("spec", "devices").items()) {
      device.erase("nodeAllocatableResourceMappings");
      Doc* attributes = device.find("attributes");
      if (attributes == nullptr || !attributes->is_object()) continue;
      for (auto& [name, attribute] : attributes->members()) {
        for (const std::string_view list : {"bools", "ints", "strings", "versions"}) {
          attribute.erase(list);
        }
      }
    }
  }
  // A taint without a time was added now, or when the same taint was stored.
  static void stamp_taints(Doc& slice, const Doc& old, TimeUs now) {
    if (slice.get("spec", "devices").empty()) return;
    for (Doc& device : slice.at("spec", "devices").items()) {
      if (device["taints"].empty()) continue;
      for (Doc& taint : device.at("taints").items()) {
        if (taint.has("timeAdded")) continue;
        taint.set("timeAdded", stored_time(taint, device["name"], old, now));
      }
    }
  }
  static Doc stored_time(const Doc& taint, const Doc& device_name, const Doc& old, TimeUs now) {
    for (const Doc& device : old.get("spec", "devices").items()) {
      if (device["name"] != device_name) continue;
      for (const Doc& stored : device["taints"].items()) {
        if (stored["key"] == taint["key"] && same(stored["value"], taint["value"]) &&
            stored["effect"] == taint["effect"]) {
          return stored["timeAdded"];
        }
      }
    }
    return format_time(now);
  }
  static void warn(const Doc& slice, WriteContext& context) {
    const std::string& driver = slice.get("spec", "driver").as_string();
    const bool has_upper = std::ranges::any_of(driver, [](char c) { return c >= 'A' && c <= 'Z'; });
    if (!has_upper) return;
    context.warnings.push_back("spec.driver: driver names should be lowercase; \"" + driver +
                               "\" contains uppercase characters");
  }
};

class DeviceClassStrategy : public Strategy {
 public:
  void validate_create(const Doc& object, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    const Doc& spec = object["spec"];
    validate_device_selectors(spec["selectors"], Path("spec.selectors"), errors);
    validate_list(spec["config"], Path("spec.config"),
                  {.max = kConfigMax, .check = validate_device_config, .key = {}}, errors);
    const Doc* resource = spec.find("extendedResourceName");
    if (resource != nullptr && !is_extended_resource(resource->as_string())) {
      errors.invalid(Path("spec.extendedResourceName"), *resource,
                     "must be a valid extended resource name");
    }
  }
  void validate_update(const Doc& object, const Doc& /*old*/, WriteContext& context,
                       FieldErrors& errors) const override {
    validate_create(object, context, errors);
  }
  bool spec_changed(const Doc& object, const Doc& old) const override {
    return !same(object["spec"], old["spec"]);
  }
  bool returns_deleted_object() const override { return true; }
};

}  // namespace

StrategyPtr resource_slice_strategy() { return std::make_shared<SliceStrategy>(); }
StrategyPtr device_class_strategy() { return std::make_shared<DeviceClassStrategy>(); }

}  // namespace jogak::api
