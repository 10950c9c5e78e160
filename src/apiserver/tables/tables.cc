// SPDX-License-Identifier: Apache-2.0
//
// Finds the printer of a kind, and shows what has none plainly.
#include "apiserver/tables/tables.h"

#include <map>
#include <utility>

#include "apiserver/object/meta.h"
#include "apiserver/tables/custom_columns.h"
#include "apiserver/tables/printer.h"

namespace jogak::api {
namespace {

using Key = std::pair<std::string_view, std::string_view>;  // group, kind

std::map<Key, const Printer*> index_printers() {
  std::map<Key, const Printer*> index;
  for (const auto list :
       {pod_printers(), node_printers(), workload_printers(), service_printers(), config_printers(),
        storage_printers(), scheduling_printers(), autoscaler_printers(), rbac_printers(),
        network_printers(), policy_printers()}) {
    for (const Printer& printer : list) {
      index[{printer.group, printer.kind}] = &printer;
    }
  }
  return index;
}

const Printer* printer_of(const Resource& resource) {
  static const std::map<Key, const Printer*> index = index_printers();
  const auto it = index.find({resource.group, resource.kind});
  return it == index.end() ? nullptr : it->second;
}

bool is_custom(const Resource& resource) { return resource.type == nullptr; }

Column column_of(const ColumnFact& fact) {
  return {.name = std::string(fact.name),
          .type = std::string(fact.type),
          .format = std::string(fact.format),
          .priority = fact.priority,
          .description = std::string(fact.description)};
}

// For kinds of which the server knows no more: the time is not an age there.
constexpr ColumnFact kPlainColumns[] = {
    kNameColumn,
    {.name = "Created At", .type = "date", .description = "Time when the object was created"},
};

}  // namespace

std::vector<Column> table_columns(const Resource& resource) {
  if (is_custom(resource)) {
    return custom_columns(resource);
  }
  const Printer* printer = printer_of(resource);
  std::vector<Column> columns;
  for (const ColumnFact& fact : printer == nullptr ? kPlainColumns : printer->columns) {
    columns.push_back(column_of(fact));
  }
  return columns;
}

Doc table_column_definitions(const Resource& resource) {
  Doc definitions = Doc::array();
  for (const Column& column : table_columns(resource)) {
    Doc definition = Doc::object();
    definition.set("name", column.name)
        .set("type", column.type)
        .set("format", column.format)
        .set("description", column.description)
        .set("priority", column.priority);
    definitions.push(std::move(definition));
  }
  return definitions;
}

Doc table_cells(const Resource& resource, const Doc& object, TimeUs now) {
  if (is_custom(resource)) {
    return custom_cells(resource, object, now);
  }
  const Printer* printer = printer_of(resource);
  Doc::Items cells;
  if (printer == nullptr) {
    const auto created = parse_time(meta(object)["creationTimestamp"].as_string());
    cells.emplace_back(name_of(object));
    cells.emplace_back(created ? format_time(*created) : "0001-01-01T00:00:00Z");
  } else if (resource.is_storage_version || !resource.strategy) {
    printer->print(object, now, cells);
  } else {
    printer->print(resource.strategy->to_storage(object), now, cells);
  }
  return Doc::array(std::move(cells));
}

Doc table_row_conditions(const Resource& resource, const Doc& object) {
  if (resource.kind != "Pod" || !resource.group.empty()) {
    return {};
  }
  const std::string& phase = object.get("status", "phase").as_string();
  if (phase != "Succeeded" && phase != "Failed") {
    return {};
  }
  const bool is_failed = phase == "Failed";
  Doc condition = Doc::object();
  condition.set("type", "Completed").set("status", "True").set("reason", phase);
  condition.set("message", is_failed ? "The pod failed." : "The pod has completed successfully.");
  return Doc::array({std::move(condition)});
}

}  // namespace jogak::api
