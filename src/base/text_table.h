// SPDX-License-Identifier: Apache-2.0
//
// Plain tables for terminals: columns aligned, two spaces between them, no trailing spaces. Widths
// count characters (UTF-8), and control characters become '?', so that a name from outside cannot
// move the cursor.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace jogak {

enum class Align : std::uint8_t { Left, Right };

class TextTable {
 public:
  struct Column {
    std::string_view title = {};
    Align align = Align::Left;  // numbers go Right
  };

  explicit TextTable(const std::vector<Column>& columns);

  // One cell per column.
  void row(std::vector<std::string> cells);

  // The same from anything that fmt prints: table.add("n1", 8, "ready").
  template <class... Cells>
  void add(const Cells&... cells) {
    row({fmt::to_string(cells)...});
  }

  std::size_t rows() const { return rows_.size() - 1; }

  // Header, then the rows; every line starts with `indent` spaces.
  std::string text(std::size_t indent = 0) const;

 private:
  std::vector<Align> aligns_;
  std::vector<std::vector<std::string>> rows_;  // the first is the header
};

}  // namespace jogak
