// SPDX-License-Identifier: Apache-2.0
//
// Metrics of autoscalers between v1's flat members and v2's targets, by a table of which member is
// which.
#include <array>
#include <span>
#include <string>

#include "apiserver/kinds/autoscaling.h"
#include "apiserver/object/amount.h"

namespace jogak::api {

namespace {

// A member of v1 and where v2 has it. `zero` is what v1 writes, and reads, where there is none.
struct Moved {
  std::string_view v1;
  std::string_view v2_holder;  // "" for the source itself
  std::string_view v2;
  std::string_view zero = {};
};

struct Source {
  std::string_view name;
  std::span<const Moved> members;
};

constexpr Moved kObjectSpec[] = {{"target", "", "describedObject"},
                                 {"metricName", "metric", "name"},
                                 {"targetValue", "target", "value", "0"},
                                 {"selector", "metric", "selector"},
                                 {"averageValue", "target", "averageValue"}};
constexpr Moved kPodsSpec[] = {{"metricName", "metric", "name"},
                               {"targetAverageValue", "target", "averageValue", "0"},
                               {"selector", "metric", "selector"}};
constexpr Moved kResourceSpec[] = {{"name", "", "name"},
                                   {"targetAverageUtilization", "target", "averageUtilization"},
                                   {"targetAverageValue", "target", "averageValue"}};
constexpr Moved kContainerSpec[] = {{"name", "", "name"},
                                    {"targetAverageUtilization", "target", "averageUtilization"},
                                    {"targetAverageValue", "target", "averageValue"},
                                    {"container", "", "container"}};
constexpr Moved kExternalSpec[] = {{"metricName", "metric", "name"},
                                   {"metricSelector", "metric", "selector"},
                                   {"targetValue", "target", "value"},
                                   {"targetAverageValue", "target", "averageValue"}};
constexpr std::array<Source, 5> kSpecs = {{{"object", kObjectSpec},
                                           {"pods", kPodsSpec},
                                           {"resource", kResourceSpec},
                                           {"containerResource", kContainerSpec},
                                           {"external", kExternalSpec}}};

constexpr Moved kObjectStatus[] = {{"target", "", "describedObject"},
                                   {"metricName", "metric", "name"},
                                   {"currentValue", "current", "value", "0"},
                                   {"selector", "metric", "selector"},
                                   {"averageValue", "current", "averageValue"}};
constexpr Moved kPodsStatus[] = {{"metricName", "metric", "name"},
                                 {"currentAverageValue", "current", "averageValue", "0"},
                                 {"selector", "metric", "selector"}};
constexpr Moved kResourceStatus[] = {{"name", "", "name"},
                                     {"currentAverageUtilization", "current", "averageUtilization"},
                                     {"currentAverageValue", "current", "averageValue", "0"}};
constexpr Moved kContainerStatus[] = {
    {"name", "", "name"},
    {"currentAverageUtilization", "current", "averageUtilization"},
    {"currentAverageValue", "current", "averageValue", "0"},
    {"container", "", "container"}};
constexpr Moved kExternalStatus[] = {{"metricName", "metric", "name"},
                                     {"metricSelector", "metric", "selector"},
                                     {"currentValue", "current", "value", "0"},
                                     {"currentAverageValue", "current", "averageValue"}};
constexpr std::array<Source, 5> kStatuses = {{{"object", kObjectStatus},
                                              {"pods", kPodsStatus},
                                              {"resource", kResourceStatus},
                                              {"containerResource", kContainerStatus},
                                              {"external", kExternalStatus}}};

Doc to_v1(const Doc& metric, std::span<const Source> sources) {
  Doc result;
  result.set("type", metric["type"].as_string());
  for (const Source& source : sources) {
    const Doc* from = metric.find(source.name);
    if (from == nullptr || from->is_null()) continue;
    Doc to = Doc::object();
    for (const Moved& member : source.members) {
      const Doc& holder = member.v2_holder.empty() ? *from : (*from)[member.v2_holder];
      const Doc& value = holder[member.v2];
      if (!value.is_null()) {
        to.set(member.v1, value);
      } else if (!member.zero.empty()) {
        to.set(member.v1, member.zero);
      }
    }
    result.set(source.name, std::move(to));
  }
  return result;
}

Doc to_v2(const Doc& metric, std::span<const Source> sources) {
  Doc result;
  result.set("type", metric["type"]);
  for (const Source& source : sources) {
    const Doc* from = metric.find(source.name);
    if (from == nullptr || from->is_null()) continue;
    Doc to = Doc::object();
    for (const Moved& member : source.members) {
      const Doc& value = (*from)[member.v1];
      if (value.is_null() && member.zero.empty()) continue;
      Doc& holder = member.v2_holder.empty() ? to : to.at(member.v2_holder);
      holder.set(member.v2, value.is_null() ? Doc(member.zero) : value);
    }
    result.set(source.name, std::move(to));
  }
  return result;
}

bool is_zero_quantity(const Doc& value) {
  const auto amount = Amount::parse(value.is_string() ? value.as_string() : value.number_text());
  return amount.has_value() && amount->is_zero();
}

// v1 does not say which kind of target it has; its members do.
void set_target_type(Doc& metric, std::string_view source) {
  Doc* found = metric.find(source);
  if (found == nullptr) return;
  Doc& target = found->at("target");
  std::string_view type = "AverageValue";
  if (source == "object") {
    if (!target.has("averageValue")) {
      type = "Value";
    } else if (is_zero_quantity(target["value"])) {
      target.erase("value");  // v1 cannot leave it out
    }
  } else if (source == "external") {
    if (target.has("value")) type = "Value";
  } else if (target.has("averageUtilization")) {
    type = "Utilization";
  }
  target.set("type", type);
}

}  // namespace

Doc metric_spec_to_v1(const Doc& metric) { return to_v1(metric, kSpecs); }
Doc metric_status_to_v1(const Doc& metric) { return to_v1(metric, kStatuses); }
Doc metric_status_to_v2(const Doc& metric) { return to_v2(metric, kStatuses); }

Doc metric_spec_to_v2(const Doc& metric) {
  Doc result = to_v2(metric, kSpecs);
  for (const Source& source : kSpecs) set_target_type(result, source.name);
  return result;
}

}  // namespace jogak::api
