// SPDX-License-Identifier: Apache-2.0
//
// Measures each column, then pads.
#include "base/text_table.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "base/check.h"

namespace jogak {

namespace {

constexpr std::size_t kGap = 2;

// Characters, not bytes: everything but the continuation bytes of UTF-8.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

void append_padded(std::string& line, std::string_view cell, std::size_t width, Align align) {
  const std::size_t padding = width - width_of(cell);
  if (align == Align::Right) line.append(padding, ' ');
  line += cell;
  if (align == Align::Left) line.append(padding, ' ');
}

}  // namespace

TextTable::TextTable(const std::vector<Column>& columns) {
  std::vector<std::string> titles;
  for (const Column& column : columns) {
    titles.emplace_back(column.title);
    aligns_.push_back(column.align);
  }
  rows_.push_back(std::move(titles));
}

void TextTable::row(std::vector<std::string> cells) {
  JOGAK_CHECK(cells.size() == aligns_.size(), "{} cells for {} columns", cells.size(),
              aligns_.size());
  for (std::string& cell : cells) {
    std::ranges::replace_if(cell, [](char c) { return (c >= 0 && c < 0x20) || c == 0x7f; }, '?');
  }
  rows_.push_back(std::move(cells));
}

std::string TextTable::text(std::size_t indent) const {
  std::vector<std::size_t> widths(aligns_.size());
  for (const auto& cells : rows_) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      widths[i] = std::max(widths[i], width_of(cells[i]));
    }
  }
  std::string out;
  for (const auto& cells : rows_) {
    std::string line(indent, ' ');
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) line.append(kGap, ' ');
      append_padded(line, cells[i], widths[i], aligns_[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out.append(line).append("\n");
  }
  return out;
}

}  // namespace jogak
