// SPDX-License-Identifier: Apache-2.0
//
// Horizontal pod autoscalers: each metric as "current/target".
#include <string>
#include <vector>

#include "apiserver/object/meta.h"
#include "apiserver/tables/printer.h"

namespace jogak::api {
namespace {

constexpr ColumnFact kColumns[] = {
    kNameColumn,
    {.name = "Reference", .description = "What is scaled"},
    {.name = "Targets", .description = "Current and wanted value of each metric"},
    {.name = "MinPods", .description = "Fewest pods"},
    {.name = "MaxPods", .description = "Most pods"},
    {.name = "Replicas", .description = "Pods there are"},
    kAgeColumn,
};

// External and object metrics: an average, or one value.
std::string value_metric(const Doc& target, const Doc& source) {
  const Doc& current = source["current"];
  if (!target["averageValue"].is_null()) {
    return amount_or(current["averageValue"], "<unknown>") + "/" +
           amount_or(target["averageValue"], "0") + " (avg)";
  }
  const std::string now = source.is_null() ? "<unknown>" : amount_or(current["value"], "<nil>");
  return now + "/" + amount_or(target["value"], "<nil>");
}

// Metrics of resources of pods or of one container: an average, or a share of the requests.
std::string resource_metric(const Doc& metric, const Doc& source) {
  const Doc& target = metric["target"];
  const Doc& current = source["current"];
  std::string text = metric["name"].as_string() + ": ";
  if (!target["averageValue"].is_null()) {
    text += source.is_null() ? "<unknown>" : amount_or(current["averageValue"], "<nil>");
    return text + "/" + amount_or(target["averageValue"], "0");
  }
  const auto percent = [](const Doc& value, std::string_view absent) {
    return value.is_int() ? value.number_text() + "%" : std::string(absent);
  };
  return text + percent(current["averageUtilization"], "<unknown>") + "/" +
         percent(target["averageUtilization"], "<auto>");
}

std::string metric_text(const Doc& spec, const Doc& status) {
  const std::string& type = spec["type"].as_string();
  if (type == "External") {
    return value_metric(spec.get("external", "target"), status["external"]);
  }
  if (type == "Object") {
    return value_metric(spec.get("object", "target"), status["object"]);
  }
  if (type == "Pods") {
    const Doc& source = status["pods"];
    return (source.is_null() ? "<unknown>"
                             : amount_or(source.get("current", "averageValue"), "<nil>")) +
           "/" + amount_or(spec.get("pods", "target", "averageValue"), "<nil>");
  }
  if (type == "Resource") {
    return resource_metric(spec["resource"], status["resource"]);
  }
  if (type == "ContainerResource") {
    return resource_metric(spec["containerResource"], status["containerResource"]);
  }
  return "<unknown type>";
}

std::string metrics_text(const Doc& object) {
  constexpr std::size_t kShown = 2;
  const Doc::Items& specs = object.get("spec", "metrics").items();
  const Doc::Items& statuses = object.get("status", "currentMetrics").items();
  if (specs.empty()) {
    return "<none>";
  }
  const Doc absent;
  std::string text;
  for (std::size_t i = 0; i < specs.size() && i < kShown; ++i) {
    const Doc& status = i < statuses.size() ? statuses[i] : absent;
    text += (i == 0 ? "" : ", ") + metric_text(specs[i], status);
  }
  if (specs.size() > kShown) {
    text += " + " + std::to_string(specs.size() - kShown) + " more...";
  }
  return text;
}

void print_autoscaler(const Doc& object, TimeUs now, Doc::Items& cells) {
  const Doc& spec = object["spec"];
  const Doc& reference = spec["scaleTargetRef"];
  cells.emplace_back(name_of(object));
  cells.emplace_back(reference["kind"].as_string() + "/" + reference["name"].as_string());
  cells.emplace_back(metrics_text(object));
  cells.emplace_back(spec["minReplicas"].is_int() ? spec["minReplicas"].number_text() : "<unset>");
  cells.emplace_back(spec["maxReplicas"].as_int());
  cells.emplace_back(object.get("status", "currentReplicas").as_int());
  cells.emplace_back(age_of(object, now));
}

constexpr Printer kPrinters[] = {
    {"autoscaling", "HorizontalPodAutoscaler", kColumns, print_autoscaler},
};

}  // namespace

std::span<const Printer> autoscaler_printers() { return kPrinters; }

}  // namespace jogak::api
