// SPDX-License-Identifier: Apache-2.0
//
// Cells by JSONPath, each in the type of its column, as apiextensions tableconvertor has them.
#include "apiserver/tables/custom_columns.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "apiserver/object/meta.h"
#include "apiserver/tables/json_path.h"
#include "apiserver/tables/printer.h"
#include "apiserver/tables/tables.h"

namespace jogak::api {
namespace {

// What a definition without columns has.
const Doc& age_column() {
  static const Doc columns = [] {
    Doc age = Doc::object();
    age.set("name", "Age").set("type", "date").set("jsonPath", ".metadata.creationTimestamp");
    age.set("description", kAgeColumn.description);
    return Doc::array({std::move(age)});
  }();
  return columns;
}

const Doc& columns_of(const Resource& resource) {
  return resource.printer_columns.empty() ? age_column() : resource.printer_columns;
}

std::string plain_text(const Doc& value) {
  switch (value.kind()) {
    case Doc::Kind::String:
      return value.as_string();
    case Doc::Kind::Bool:
      return value.as_bool() ? "true" : "false";
    case Doc::Kind::Int:
    case Doc::Kind::Number:
      return value.number_text();
    case Doc::Kind::Null:
      return "<no value>";
    default: {
      std::string json;
      value.append_json(json);
      return json;
    }
  }
}

// A number with its fraction cut off.
Doc whole(const Doc& value) {
  constexpr double kLimit = 9.2e18;
  if (value.kind() != Doc::Kind::Number) {
    return value.is_int() ? value : Doc();
  }
  const double number = std::strtod(value.number_text().c_str(), nullptr);
  return number > -kLimit && number < kLimit ? Doc(static_cast<std::int64_t>(number)) : Doc();
}

// A value that does not suit the type of its column leaves the cell empty.
Doc cell(std::string_view type, const Doc& value, TimeUs now) {
  if (type == "string") {
    return plain_text(value);
  }
  if (type == "integer") {
    return whole(value);
  }
  if (type == "number") {
    return value.is_number() ? value : Doc();
  }
  if (type == "boolean") {
    return value.is_bool() ? value : Doc();
  }
  if (type == "date" && value.is_string()) {
    if (value.as_string().empty()) {
      return "<unknown>";
    }
    return parse_time(value.as_string()) ? age_since(value, now) : "<invalid>";
  }
  return {};
}

}  // namespace

std::vector<Column> custom_columns(const Resource& resource) {
  std::vector<Column> columns = {{.name = std::string(kNameColumn.name),
                                  .type = std::string(kNameColumn.type),
                                  .format = std::string(kNameColumn.format),
                                  .priority = 0,
                                  .description = std::string(kNameColumn.description)}};
  for (const Doc& column : columns_of(resource).items()) {
    const std::string path = column["jsonPath"].as_string();
    columns.push_back(
        {.name = column["name"].as_string(),
         .type = column["type"].as_string(),
         .format = column["format"].as_string(),
         .priority = static_cast<std::int32_t>(column["priority"].as_int()),
         .description = text_or(column["description"], "Value at " + path + " of the object")});
  }
  return columns;
}

Doc custom_cells(const Resource& resource, const Doc& object, TimeUs now) {
  Doc cells = Doc::array();
  cells.push(name_of(object));
  for (const Doc& column : columns_of(resource).items()) {
    const auto path = JsonPath::parse(column["jsonPath"].as_string());
    const auto found = path ? path->find(object) : std::nullopt;
    const bool has_value = found && !found->empty();
    cells.push(has_value ? cell(column["type"].as_string(), found->front(), now) : Doc());
  }
  return cells;
}

}  // namespace jogak::api
