// SPDX-License-Identifier: Apache-2.0
//
// One row at a time off the front of the text.
#include "base/csv.h"

#include <algorithm>
#include <utility>

#include <fmt/ranges.h>

#include "base/check.h"
#include "base/edit_distance.h"
#include "base/parse_number.h"

namespace jogak {

Result<CsvReader> CsvReader::open(std::string file, std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  CsvReader reader(std::move(file), text);
  JOGAK_TRY(const bool has_header, reader.next());
  if (!has_header) {
    return invalid("{}: empty; the first line should name the columns", reader.file_);
  }
  reader.header_.assign(reader.fields_.begin(), reader.fields_.end());
  for (std::size_t i = 0; i < reader.header_.size(); ++i) {
    const auto earlier = reader.header_.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(reader.header_.begin(), earlier, *earlier) != earlier) {
      return reader.bad_row(fmt::format("two columns are named \"{}\"", *earlier));
    }
  }
  reader.fields_.clear();
  return reader;
}

std::optional<CsvReader::Column> CsvReader::find_column(std::string_view name) const {
  const auto it = std::ranges::find(header_, name);
  if (it == header_.end()) return std::nullopt;
  return static_cast<Column>(it - header_.begin());
}

Result<CsvReader::Column> CsvReader::column(std::string_view name) const {
  if (const auto found = find_column(name)) return *found;
  return invalid("{}: no column {}; the columns are {}{}", file_, name, fmt::join(header_, ", "),
                 did_you_mean(name, header_));
}

Result<bool> CsvReader::next() {
  // Blank lines are not rows, unless a row is one field, which may be empty.
  while (header_.size() != 1 && (rest_.starts_with('\n') || rest_.starts_with("\r\n"))) {
    rest_.remove_prefix(rest_.front() == '\r' ? 2 : 1);
    ++next_line_;
  }
  fields_.clear();
  line_ = next_line_;
  if (rest_.empty()) return false;
  JOGAK_TRY_VOID(read_row());
  if (!header_.empty() && fields_.size() != header_.size()) {
    return bad_row(
        fmt::format("{} fields where the header has {}", fields_.size(), header_.size()));
  }
  return true;
}

Result<void> CsvReader::read_row() {
  for (;;) {
    const std::size_t index = fields_.size();
    JOGAK_TRY(const std::string_view text,
              rest_.starts_with('"') ? read_quoted(index) : read_bare(index));
    fields_.push_back(text);
    if (rest_.starts_with(',')) {
      rest_.remove_prefix(1);
      continue;
    }
    if (rest_.starts_with("\r\n")) rest_.remove_prefix(1);
    if (rest_.starts_with('\n')) rest_.remove_prefix(1);
    ++next_line_;
    return {};
  }
}

Result<std::string_view> CsvReader::read_bare(std::size_t field_index) {
  const std::size_t end = std::min(rest_.find_first_of(",\n\""), rest_.size());
  std::string_view text = rest_.substr(0, end);
  if (end < rest_.size() && rest_[end] == '"') {
    return bad(field_index, "a quote inside; put the whole field in quotes and double it");
  }
  const bool ends_line = end == rest_.size() || rest_[end] == '\n';
  if (ends_line && text.ends_with('\r')) text.remove_suffix(1);
  rest_.remove_prefix(text.size());
  if (rest_ == "\r") rest_ = {};  // CRLF cut short at the end of the text
  return text;
}

Result<std::string_view> CsvReader::read_quoted(std::size_t field_index) {
  rest_.remove_prefix(1);
  std::size_t end = 0;
  bool has_doubled = false;
  for (;;) {
    end = rest_.find('"', end);
    if (end == std::string_view::npos) return bad(field_index, "the quote is not closed");
    if (end + 1 >= rest_.size() || rest_[end + 1] != '"') break;
    has_doubled = true;
    end += 2;
  }
  const std::string_view text = rest_.substr(0, end);
  rest_.remove_prefix(end + 1);
  if (rest_ == "\r") rest_ = {};
  next_line_ += static_cast<std::size_t>(std::ranges::count(text, '\n'));
  const bool ends_here =
      rest_.empty() || rest_.front() == ',' || rest_.front() == '\n' || rest_.starts_with("\r\n");
  if (!ends_here) return bad(field_index, "text after the closing quote");
  if (!has_doubled) return text;

  if (unquoted_.size() <= field_index) unquoted_.resize(field_index + 1);
  std::string& plain = unquoted_[field_index];
  plain.clear();
  for (std::size_t i = 0; i < text.size(); ++i) {
    plain += text[i];
    if (text[i] == '"') ++i;
  }
  return plain;
}

std::string_view CsvReader::field(Column column) const {
  JOGAK_CHECK(column < fields_.size(), "column {} of {}", column, fields_.size());
  return fields_[column];
}

Result<std::int64_t> CsvReader::integer(Column column) const {
  const auto value = parse_int(field(column));
  if (!value) return bad(column, value.error().what);
  return *value;
}

Result<std::int64_t> CsvReader::integer(Column column, std::int64_t min, std::int64_t max) const {
  const auto value = parse_int(field(column), min, max);
  if (!value) return bad(column, value.error().what);
  return *value;
}

std::unexpected<Error> CsvReader::bad(Column column, std::string_view what) const {
  const std::string name =
      column < header_.size() ? header_[column] : fmt::format("number {}", column + 1);
  return invalid("{}:{}: column {}: {}", file_, line_, name, what);
}

std::unexpected<Error> CsvReader::bad_row(std::string_view what) const {
  return invalid("{}:{}: {}", file_, line_, what);
}

}  // namespace jogak
