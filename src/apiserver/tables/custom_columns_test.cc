// SPDX-License-Identifier: Apache-2.0
//
// Columns of a custom kind, their types, and what does not suit them.
#include "apiserver/tables/custom_columns.h"

#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "apiserver/codec/codec.h"
#include "apiserver/object/meta.h"
#include "apiserver/tables/tables.h"

namespace jogak::api {
namespace {

TimeUs test_now() { return *parse_time("2026-01-01T00:01:00Z"); }

Doc parsed(std::string_view yaml) {
  auto result = codec::parse_yaml(yaml);
  EXPECT_TRUE(result.has_value()) << yaml;
  return result ? std::move(result->doc) : Doc();
}

Resource widgets(std::string_view columns) {
  Resource resource;
  resource.group = "g.example";
  resource.version = "v1";
  resource.kind = "Widget";
  resource.printer_columns = parsed(columns);
  return resource;
}

// The cell of the one column, as JSON.
std::string cell(std::string_view type, std::string_view path, std::string_view yaml) {
  const Resource resource = widgets("[{name: C, type: " + std::string(type) + ", jsonPath: '" +
                                    std::string(path) + "'}]");
  const Doc cells = table_cells(resource, parsed(yaml), test_now());
  EXPECT_EQ(cells.size(), 2U);
  return cells.items().back().json(JsonWriter::Style::Compact);
}

TEST(CustomColumns, AreNameAndAgeByDefault) {
  const Resource resource = widgets("[]");
  const std::vector<Column> columns = table_columns(resource);
  ASSERT_EQ(columns.size(), 2U);
  EXPECT_EQ(columns[0].name, "Name");
  EXPECT_EQ(columns[0].format, "name");
  EXPECT_EQ(columns[1].name, "Age");
  EXPECT_EQ(columns[1].type, "date");
  const Doc cells = table_cells(
      resource, parsed("{metadata: {name: a, creationTimestamp: '2026-01-01T00:00:00Z'}}"),
      test_now());
  EXPECT_EQ(cells, Doc::strings({"a", "60s"}));
}

TEST(CustomColumns, KeepWhatTheDefinitionSays) {
  const auto columns = table_columns(
      widgets("[{name: Size, type: integer, format: int32, priority: 1, description: How large, "
              "jsonPath: .spec.size}]"));
  ASSERT_EQ(columns.size(), 2U);
  EXPECT_EQ(columns[1].name, "Size");
  EXPECT_EQ(columns[1].type, "integer");
  EXPECT_EQ(columns[1].format, "int32");
  EXPECT_EQ(columns[1].priority, 1);
  EXPECT_EQ(columns[1].description, "How large");
}

TEST(CustomColumns, SuitTheTypeOrStayEmpty) {
  EXPECT_EQ(cell("integer", ".a", "{a: 5}"), "5");
  EXPECT_EQ(cell("integer", ".a", "{a: 5.7}"), "5");
  EXPECT_EQ(cell("integer", ".a", "{a: x}"), "null");
  EXPECT_EQ(cell("integer", ".b", "{a: 5}"), "null");
  EXPECT_EQ(cell("number", ".a", "{a: 5.5}"), "5.5");
  EXPECT_EQ(cell("number", ".a", "{a: true}"), "null");
  EXPECT_EQ(cell("boolean", ".a", "{a: true}"), "true");
  EXPECT_EQ(cell("boolean", ".a", "{a: 1}"), "null");
  EXPECT_EQ(cell("date", ".a", "{a: '2026-01-01T00:00:30Z'}"), "\"30s\"");
  EXPECT_EQ(cell("date", ".a", "{a: soon}"), "\"<invalid>\"");
  EXPECT_EQ(cell("date", ".a", "{a: 5}"), "null");
}

TEST(CustomColumns, PrintAnythingAsAString) {
  EXPECT_EQ(cell("string", ".a", "{a: Up}"), "\"Up\"");
  EXPECT_EQ(cell("string", ".a", "{a: 5}"), "\"5\"");
  EXPECT_EQ(cell("string", ".a", "{a: true}"), "\"true\"");
  EXPECT_EQ(cell("string", ".a", "{a: [1, 2]}"), "\"[1,2]\"");
  EXPECT_EQ(cell("string", ".a[*]", "{a: [x, y]}"), "\"x\"") << "the first one counts";
}

TEST(CustomColumns, LeaveCellsOfBrokenPathsEmpty) {
  EXPECT_EQ(cell("string", ".a[", "{a: x}"), "null");
  EXPECT_EQ(cell("string", ".a[0]", "{a: x}"), "null");
}

}  // namespace
}  // namespace jogak::api
