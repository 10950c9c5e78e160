// SPDX-License-Identifier: Apache-2.0
//
// Configuration, accounts, quotas, and the events that tell what happened.
#include <algorithm>
#include <cctype>
#include <map>
#include <string>

#include "apiserver/object/meta.h"
#include "apiserver/tables/printer.h"

namespace jogak::api {
namespace {

constexpr ColumnFact kConfigMapColumns[] = {
    kNameColumn, {.name = "Data", .description = "Number of keys"}, kAgeColumn};

void print_config_map(const Doc& object, TimeUs now, Doc::Items& cells) {
  cells.emplace_back(name_of(object));
  cells.emplace_back(object["data"].size() + object["binaryData"].size());
  cells.emplace_back(age_of(object, now));
}

constexpr ColumnFact kSecretColumns[] = {
    kNameColumn,
    {.name = "Type", .description = "What the secret is for"},
    {.name = "Data", .description = "Number of keys"},
    kAgeColumn,
};

void print_secret(const Doc& object, TimeUs now, Doc::Items& cells) {
  cells.emplace_back(name_of(object));
  cells.emplace_back(object["type"].as_string());
  cells.emplace_back(object["data"].size());
  cells.emplace_back(age_of(object, now));
}

constexpr ColumnFact kPlainColumns[] = {kNameColumn, kAgeColumn};

void print_plain(const Doc& object, TimeUs now, Doc::Items& cells) {
  cells.emplace_back(name_of(object));
  cells.emplace_back(age_of(object, now));
}

constexpr ColumnFact kQuotaColumns[] = {
    kNameColumn,
    {.name = "Request", .description = "Used and allowed, but for limits"},
    {.name = "Limit", .description = "Used and allowed limits"},
    kAgeColumn,
};

void print_quota(const Doc& object, TimeUs now, Doc::Items& cells) {
  std::map<std::string, std::string> hard;  // sorted
  for (const Doc::Member& entry : object.get("status", "hard").members()) {
    hard[entry.key] = amount_or(entry.value, "0");
  }
  std::string requests, limits;
  for (const auto& [resource, allowed] : hard) {
    std::string& text = resource.starts_with("limits.") ? limits : requests;
    if (!text.empty()) {
      text += ", ";
    }
    text +=
        resource + ": " + amount_or(object.get("status", "used", resource), "0") + "/" + allowed;
  }
  cells.emplace_back(name_of(object));
  cells.emplace_back(requests);
  cells.emplace_back(limits);
  cells.emplace_back(age_of(object, now));
}

constexpr ColumnFact kEventColumns[] = {
    {.name = "Last Seen", .description = "Time since it happened last"},
    {.name = "Type", .description = "Normal or Warning"},
    {.name = "Reason", .description = "Why, in one word"},
    {.name = "Object", .description = "What the event is about"},
    {.name = "Subobject", .priority = 1, .description = "Part of the object"},
    {.name = "Source", .priority = 1, .description = "Who reported it"},
    {.name = "Message", .description = "What happened"},
    {.name = "First Seen", .priority = 1, .description = "Time since it happened first"},
    {.name = "Count", .priority = 1, .description = "How often it happened"},
    {.name = "Name", .format = "name", .priority = 1, .description = "Name of the event"},
};

std::string trimmed(std::string_view text) {
  const auto is_space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && is_space(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && is_space(text.back())) {
    text.remove_suffix(1);
  }
  return std::string(text);
}

std::string event_target(const Doc& target) {
  std::string kind = target["kind"].as_string();
  std::ranges::transform(kind, kind.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::string& name = target["name"].as_string();
  return name.empty() ? kind : kind + "/" + name;
}

void print_event(const Doc& event, TimeUs now, Doc::Items& cells) {
  const std::string first =
      age_since(event["firstTimestamp"].is_string() ? event["firstTimestamp"] : event["eventTime"],
                now);  // a stored event says null where it has no time
  std::string last =
      event["lastTimestamp"].is_string() ? age_since(event["lastTimestamp"], now) : first;
  std::int64_t count = event["count"].as_int();
  if (const Doc& series = event["series"]; !series.is_null()) {
    last = age_since(series["lastObservedTime"], now);
    count = series["count"].as_int();
  } else if (count == 0) {
    count = 1;  // events of the newer API happen once and carry no count
  }
  std::string source =
      text_or(event.get("source", "component"), event["reportingComponent"].as_string());
  const std::string instance =
      text_or(event.get("source", "host"), event["reportingInstance"].as_string());
  if (!instance.empty()) {
    source += ", " + instance;
  }
  cells.emplace_back(last);
  cells.emplace_back(event["type"].as_string());
  cells.emplace_back(event["reason"].as_string());
  cells.emplace_back(event_target(event["involvedObject"]));
  cells.emplace_back(event.get("involvedObject", "fieldPath").as_string());
  cells.emplace_back(source);
  cells.emplace_back(trimmed(event["message"].as_string()));
  cells.emplace_back(first);
  cells.emplace_back(count);
  cells.emplace_back(name_of(event));
}

constexpr Printer kPrinters[] = {
    {"", "ConfigMap", kConfigMapColumns, print_config_map},
    {"", "Secret", kSecretColumns, print_secret},
    {"", "ServiceAccount", kPlainColumns, print_plain},
    {"", "ResourceQuota", kQuotaColumns, print_quota},
    {"", "Event", kEventColumns, print_event},
    {"events.k8s.io", "Event", kEventColumns, print_event},
    {"resource.k8s.io", "DeviceClass", kPlainColumns, print_plain},
    {"resource.k8s.io", "ResourceClaimTemplate", kPlainColumns, print_plain},
    {"scheduling.k8s.io", "Workload", kPlainColumns, print_plain},
};

}  // namespace

std::span<const Printer> config_printers() { return kPrinters; }

}  // namespace jogak::api
