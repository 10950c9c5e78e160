// SPDX-License-Identifier: Apache-2.0
//
// Limit ranges: defaults that follow from minimum and maximum, and their order.
#include <algorithm>
#include <array>
#include <set>
#include <string>

#include <fmt/core.h>

#include "apiserver/kinds/core_rules.h"
#include "apiserver/kinds/core_strategies.h"
#include "apiserver/object/meta.h"
#include "apiserver/object/resource_list.h"

namespace jogak::api {

namespace {

constexpr std::array<std::string_view, 5> kLists = {"max", "min", "default", "defaultRequest",
                                                    "maxLimitRequestRatio"};
constexpr std::int64_t kMaxMilliValue = INT64_MAX / 1000;

void copy_missing(Doc& item, std::string_view from, std::string_view to) {
  const Doc source = item[from];
  for (const auto& [name, value] : source.members()) item.at(to).set_default(name, value);
}

void set_item_defaults(Doc& item) {
  for (const std::string_view list : kLists) round_resources(item, list);
  if (item["type"].as_string() != "Container") return;
  copy_missing(item, "max", "default");
  copy_missing(item, "default", "defaultRequest");
  copy_missing(item, "min", "defaultRequest");
}

void validate_type(const std::string& type, const Path& at, FieldErrors& errors) {
  const Problems problems = check_qualified_name(type);
  add_problems(errors, at, type, problems);
  const bool is_standard = type == "Pod" || type == "Container" || type == "PersistentVolumeClaim";
  if (problems.empty() && !type.contains('/') && !is_standard) {
    errors.invalid(at, type, "must be a standard limit type or fully qualified");
  }
}

void validate_names(const Doc& item, std::string_view list, const Path& at, FieldErrors& errors) {
  const std::string& type = item["type"].as_string();
  const bool is_container = type == "Pod" || type == "Container";
  for (const auto& [name, value] : item[list].members()) {
    if (is_container) {
      validate_container_resource_name(name, at.child(list).key(name), errors);
    } else {
      validate_resource_name(name, at.child(list).key(name), errors);
    }
  }
}

// `low` of one list must not be above `high` of another, for a resource that both name.
struct Order {
  std::string_view low, high;
  std::string_view blamed;  // the list in the path of the error
  std::string_view shown;   // the list whose value is shown
  std::string_view text;    // with both values
};
constexpr std::array<Order, 6> kOrders = {{
    {"min", "max", "min", "min", "min value {} is greater than max value {}"},
    {"min", "defaultRequest", "defaultRequest", "defaultRequest",
     "min value {} is greater than default request value {}"},
    {"defaultRequest", "max", "defaultRequest", "defaultRequest",
     "default request value {} is greater than max value {}"},
    {"defaultRequest", "default", "defaultRequest", "defaultRequest",
     "default request value {} is greater than default limit value {}"},
    {"min", "default", "default", "min", "min value {} is greater than default value {}"},
    {"default", "max", "default", "max", "default value {} is greater than max value {}"},
}};

void validate_ratio(const Doc& item, const std::string& name, const Path& at, FieldErrors& errors) {
  const Doc* ratio_field = item["maxLimitRequestRatio"].find(name);
  if (ratio_field == nullptr) return;
  const Amount ratio = quantity_of(*ratio_field);
  const Path here = at.child("maxLimitRequestRatio").key(name);
  if (ratio < Amount::of(1)) {
    errors.invalid(here, *ratio_field, "ratio " + ratio.text() + " is less than 1");
  }
  const Doc* min = item["min"].find(name);
  const Doc* max = item["max"].find(name);
  if (min == nullptr || max == nullptr) return;
  const Amount low = quantity_of(*min);
  const Amount high = quantity_of(*max);
  // milli precision where it fits, as upstream
  const bool is_fine = ratio.value() < kMaxMilliValue && low.value() < kMaxMilliValue &&
                       high.value() < kMaxMilliValue;
  const std::int64_t low_value = is_fine ? low.milli_value() : low.value();
  const std::int64_t high_value = is_fine ? high.milli_value() : high.value();
  // ratio > high / low, without division
  const __int128 wanted =
      static_cast<__int128>(is_fine ? ratio.milli_value() : ratio.value()) * low_value;
  const __int128 given = static_cast<__int128>(high_value) * (is_fine ? 1000 : 1);
  if (low_value > 0 && wanted > given) {
    errors.invalid(
        here, *ratio_field,
        "ratio " + ratio.text() + " is greater than max/min = " + high.text() + "/" + low.text());
  }
}

void validate_values(const Doc& item, const Path& at, FieldErrors& errors) {
  const bool has_defaults = item["type"].as_string() != "Pod";
  std::set<std::string> names;
  for (const std::string_view list : kLists) {
    if (!has_defaults && list.starts_with("default")) continue;
    for (const auto& [name, value] : item[list].members()) names.insert(name);
  }
  for (const std::string& name : names) {
    const auto value = [&](std::string_view list) -> const Doc* {
      if (!has_defaults && list.starts_with("default")) return nullptr;
      return item[list].find(name);
    };
    for (const Order& order : kOrders) {
      const Doc* low = value(order.low);
      const Doc* high = value(order.high);
      if (low == nullptr || high == nullptr || quantity_of(*low) <= quantity_of(*high)) continue;
      errors.invalid(at.child(order.blamed).key(name), *value(order.shown),
                     fmt::format(fmt::runtime(order.text), low->as_string(), high->as_string()));
    }
    validate_ratio(item, name, at, errors);
    const Doc* limit = value("default");
    const Doc* request = value("defaultRequest");
    if (!is_overcommit_allowed(name) && limit != nullptr && request != nullptr &&
        quantity_of(*limit) != quantity_of(*request)) {
      errors.invalid(at.child("defaultRequest").key(name), *request,
                     fmt::format("default value {} must equal to defaultRequest value {} in {}",
                                 limit->as_string(), request->as_string(), name));
    }
  }
}

void validate_item(const Doc& item, const Path& at, FieldErrors& errors) {
  const std::string& type = item["type"].as_string();
  validate_names(item, "max", at, errors);
  validate_names(item, "min", at, errors);
  for (const std::string_view list : {"default", "defaultRequest"}) {
    if (type != "Pod") {
      validate_names(item, list, at, errors);
    } else if (!item[list].empty()) {
      errors.forbidden(at.child(list), "may not be specified when `type` is 'Pod'");
    }
  }
  if (type == "PersistentVolumeClaim" && !item["min"].has("storage") &&
      !item["max"].has("storage")) {
    errors.required(at.child("limits"),
                    "either minimum or maximum storage value is required, but neither was "
                    "provided");
  }
  validate_names(item, "maxLimitRequestRatio", at, errors);
  validate_values(item, at, errors);
}

class LimitRangeStrategy : public PlainStrategy {
 public:
  void set_defaults(Doc& range) const override {
    if (range.get("spec", "limits").empty()) return;
    for (Doc& item : range.at("spec", "limits").items()) set_item_defaults(item);
  }
  void prepare_create(Doc& /*range*/, WriteContext& /*context*/) const override {}
  void validate_create(const Doc& range, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    const Doc& limits = range.get("spec", "limits");
    std::set<std::string> types;
    for (std::size_t i = 0; i < limits.size(); ++i) {
      const Path at = Path("spec.limits").index(i);
      const std::string& type = limits.items()[i]["type"].as_string();
      validate_type(type, at.child("type"), errors);
      if (!types.insert(type).second) errors.duplicate(at.child("type"), type);
      validate_item(limits.items()[i], at, errors);
    }
  }
  void validate_update(const Doc& range, const Doc& /*old*/, WriteContext& context,
                       FieldErrors& errors) const override {
    validate_create(range, context, errors);
  }
  bool allows_create_on_update() const override { return true; }
};

}  // namespace

StrategyPtr limit_range_strategy() { return std::make_shared<LimitRangeStrategy>(); }

}  // namespace jogak::api
