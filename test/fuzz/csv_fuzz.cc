// SPDX-License-Identifier: Apache-2.0
//
// Any text as CSV: no crash, and what was read, written out with every field in quotes, reads the
// same.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/csv.h"

namespace {

using Rows = std::vector<std::vector<std::string>>;

// Header and rows, or nothing on an error.
std::optional<Rows> read_all(std::string_view text) {
  auto csv = jogak::CsvReader::open("input", text);
  if (!csv) return std::nullopt;
  Rows rows = {csv->header()};
  for (;;) {
    const auto has_row = csv->next();
    if (!has_row) return std::nullopt;
    if (!*has_row) return rows;
    rows.emplace_back();
    for (std::size_t i = 0; i < csv->header().size(); ++i) rows.back().emplace_back(csv->field(i));
  }
}

std::string write_all(const Rows& rows) {
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += i == 0 ? "\"" : ",\"";
      for (const char c : row[i]) text.append(c == '"' ? 2 : 1, c);
      text += '"';
    }
    text += '\n';
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto rows = read_all({reinterpret_cast<const char*>(data), size});
  if (rows) {
    const auto again = read_all(write_all(*rows));
    JOGAK_CHECK(again.has_value());
    JOGAK_CHECK(*again == *rows);
  }
  return 0;
}
