// SPDX-License-Identifier: Apache-2.0
//
// Events: one table, two groups. v1 is what is stored; events.k8s.io/v1 names some members
// differently and is checked more strictly. Errors name the members of v1 in both.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "apiserver/kinds/core_rules.h"
#include "apiserver/kinds/core_strategies.h"
#include "apiserver/object/meta.h"

namespace jogak::api {

namespace {

struct Renamed {
  std::string_view core, events;
};
constexpr std::array<Renamed, 14> kMembers = {{
    {"involvedObject", "regarding"},
    {"message", "note"},
    {"source", "deprecatedSource"},
    {"firstTimestamp", "deprecatedFirstTimestamp"},
    {"lastTimestamp", "deprecatedLastTimestamp"},
    {"count", "deprecatedCount"},
    {"reportingComponent", "reportingController"},
    {"reportingInstance", "reportingInstance"},
    {"reason", "reason"},
    {"type", "type"},
    {"eventTime", "eventTime"},
    {"series", "series"},
    {"action", "action"},
    {"related", "related"},
}};

// What field selectors may ask, in both groups. `source` exists in v1 alone.
constexpr std::array<Renamed, 10> kFields = {{
    {"involvedObject.kind", "regarding.kind"},
    {"involvedObject.namespace", "regarding.namespace"},
    {"involvedObject.name", "regarding.name"},
    {"involvedObject.uid", "regarding.uid"},
    {"involvedObject.apiVersion", "regarding.apiVersion"},
    {"involvedObject.resourceVersion", "regarding.resourceVersion"},
    {"involvedObject.fieldPath", "regarding.fieldPath"},
    {"reason", "reason"},
    {"reportingComponent", "reportingController"},
    {"type", "type"},
}};

Doc convert(const Doc& event, std::string_view Renamed::* from, std::string_view Renamed::* to,
            std::string_view api_version) {
  Doc result = Doc::object();
  result.set("kind", "Event").set("apiVersion", api_version);
  if (const Doc* metadata = event.find("metadata")) result.set("metadata", *metadata);
  for (const Renamed& member : kMembers) {
    if (const Doc* value = event.find(member.*from)) result.set(member.*to, *value);
  }
  return result;
}

Doc to_core(const Doc& event) { return convert(event, &Renamed::events, &Renamed::core, "v1"); }

Doc from_core(const Doc& event) {
  return convert(event, &Renamed::core, &Renamed::events, "events.k8s.io/v1");
}

struct Length {
  std::string_view member;
  std::size_t limit;
  bool is_required;
};
constexpr std::array<Length, 4> kLengths = {{
    {"reportingInstance", 128, true},
    {"action", 128, true},
    {"reason", 128, true},
    {"message", 1024, false},
}};

// What every event keeps to. `event` is in v1.
void validate_any(const Doc& event, std::string_view controller_name, FieldErrors& errors) {
  const std::string& ns = namespace_of(event);
  const Doc& about = event.get("involvedObject", "namespace");
  const Path about_at("involvedObject.namespace");
  constexpr std::string_view kMismatch = "does not match event.namespace";
  if (event["eventTime"].as_string().empty()) {
    const bool matches =
        about.as_string().empty() ? ns.empty() || ns == "default" : ns == about.as_string();
    if (!matches) errors.invalid(about_at, about.as_string(), kMismatch);
  } else {
    if (about.as_string().empty() && ns != "default" && ns != "kube-system") {
      errors.invalid(about_at, about.as_string(), kMismatch);
    }
    const std::string& controller = event["reportingComponent"].as_string();
    const Path controller_at(controller_name);
    if (controller.empty()) errors.required(controller_at);
    add_problems(errors, controller_at, controller, check_qualified_name(controller));
    for (const auto& [member, limit, is_required] : kLengths) {
      const std::size_t size = event[member].as_string().size();
      if (size == 0 && is_required) errors.required(Path(member));
      if (size > limit) {
        errors.invalid(Path(member), "",
                       "can have at most " + std::to_string(limit) + " characters");
      }
    }
  }
  validate_name(ns, check_dns1123_subdomain, Path("namespace"), errors);
}

void validate_series(const Doc& event, FieldErrors& errors) {
  const Doc& series = event["series"];
  if (series.is_null()) return;
  if (series["count"].as_int() < 2) {
    errors.invalid(Path("series.count"), "", "should be at least 2");
  }
  if (series["lastObservedTime"].as_string().empty()) {
    errors.required(Path("series.lastObservedTime"));
  }
}

void validate_strict_create(const Doc& event, FieldErrors& errors) {
  validate_series(event, errors);
  if (event["eventTime"].as_string().empty()) errors.required(Path("eventTime"));
  const std::string& type = event["type"].as_string();
  if (type != "Normal" && type != "Warning") {
    errors.invalid(Path("type"), "", "has invalid value: " + type);
  }
  for (const std::string_view member : {"firstTimestamp", "lastTimestamp", "count", "source"}) {
    if (!same(event[member], {})) errors.invalid(Path(member), "", "needs to be unset");
  }
}

void validate_strict_update(const Doc& event, const Doc& old, FieldErrors& errors) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kFrozen = {{
      {"involvedObject", "involvedObject"},
      {"reason", "reason"},
      {"message", "message"},
      {"source", "source"},
      {"firstTimestamp", "firstTimestamp"},
      {"lastTimestamp", "lastTimestamp"},
      {"count", "count"},
      {"reason", "reason"},  // upstream reports it twice
      {"type", "type"},
      {"eventTime", "eventTime"},
      {"action", "action"},
      {"related", "related"},
      {"reportingComponent", "reportingController"},
      {"reportingInstance", "reportingInstance"},
  }};
  if (!same(event["series"], old["series"])) validate_series(event, errors);
  for (const auto& [member, shown] : kFrozen) {
    require_same(event[member], old[member], Path(shown), errors);
  }
}

class CoreEventStrategy : public PlainStrategy {
 public:
  void prepare_create(Doc& /*event*/, WriteContext& /*context*/) const override {}
  void prepare_update(Doc& /*event*/, const Doc& /*old*/,
                      WriteContext& /*context*/) const override {}
  void validate_create(const Doc& event, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    validate_any(event, "reportingComponent", errors);
  }
  void validate_update(const Doc& event, const Doc& /*old*/, WriteContext& context,
                       FieldErrors& errors) const override {
    validate_create(event, context, errors);
  }

  bool allows_create_on_update() const override { return true; }
  NameCheck name_check() const override { return check_path_segment; }

  std::vector<std::string_view> selectable_fields() const override {
    std::vector<std::string_view> fields;
    for (const Renamed& field : kFields) fields.push_back(field.core);
    fields.push_back("source");
    return fields;
  }
  std::string field(const Doc& event, std::string_view path) const override {
    if (path != "source") return Strategy::field(event, path);
    const std::string& component = event.get("source", "component").as_string();
    return component.empty() ? event["reportingComponent"].as_string() : component;
  }
};

class NewEventStrategy : public CoreEventStrategy {
 public:
  void validate_create(const Doc& event, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    const Doc core = to_core(event);
    validate_any(core, "reportingController", errors);
    validate_strict_create(core, errors);
  }
  void validate_update(const Doc& event, const Doc& old, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    const Doc core = to_core(event);
    validate_any(core, "reportingController", errors);
    validate_strict_update(core, to_core(old), errors);
  }
  NameCheck name_check() const override { return check_dns1123_subdomain; }

  std::vector<std::string_view> selectable_fields() const override {
    std::vector<std::string_view> fields;
    for (const Renamed& field : kFields) fields.push_back(field.events);
    return fields;
  }
  std::string field(const Doc& event, std::string_view path) const override {
    return Strategy::field(event, path);
  }

  std::string_view stored_field(std::string_view path) const override {
    const auto* field = std::ranges::find(kFields, path, &Renamed::events);
    return field == kFields.end() ? path : field->core;
  }
  std::string_view error_group(const Resource& /*resource*/) const override { return ""; }

  Doc from_storage(Doc event) const override { return from_core(event); }
  Doc to_storage(Doc event) const override { return to_core(event); }
};

}  // namespace

StrategyPtr core_event_strategy() { return std::make_shared<CoreEventStrategy>(); }

StrategyPtr new_event_strategy() { return std::make_shared<NewEventStrategy>(); }

}  // namespace jogak::api
