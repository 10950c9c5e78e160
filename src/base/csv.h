// SPDX-License-Identifier: Apache-2.0
//
// A strict CSV reader that walks rows without copying them. The first line names the columns; every
// row has as many fields. Fields may be quoted ("" inside is a quote), lines may end in CRLF, a
// byte order mark is skipped, blank lines are skipped. Errors read `FILE:LINE: column NAME: ...`.
//
//   JOGAK_TRY(auto csv, CsvReader::open("pods.csv", text));
//   JOGAK_TRY(const auto name, csv.column("name"));
//   for (;;) {
//     JOGAK_TRY(const bool has_row, csv.next());
//     if (!has_row) break;
//     use(csv.field(name));
//   }
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace jogak {

class CsvReader {
 public:
  using Column = std::size_t;  // index into a row

  // Reads the header. `file` is for messages; `text` must outlive the reader and its fields.
  static Result<CsvReader> open(std::string file, std::string_view text);

  // The column of that name; an error that lists the columns there are, if it is not among them.
  Result<Column> column(std::string_view name) const;
  std::optional<Column> find_column(std::string_view name) const;
  const std::vector<std::string>& header() const { return header_; }

  // Goes to the next row; false at the end.
  Result<bool> next();

  // Of the current row. A field is valid until the next next().
  std::string_view field(Column column) const;
  Result<std::int64_t> integer(Column column) const;
  Result<std::int64_t> integer(Column column, std::int64_t min, std::int64_t max) const;
  std::size_t line() const { return line_; }  // where the row starts, from 1

  // An error at a field of the current row, or at the row, for checks of the caller.
  std::unexpected<Error> bad(Column column, std::string_view what) const;
  std::unexpected<Error> bad_row(std::string_view what) const;

 private:
  CsvReader(std::string file, std::string_view text) : file_(std::move(file)), rest_(text) {}

  Result<void> read_row();
  Result<std::string_view> read_quoted(std::size_t field_index);
  Result<std::string_view> read_bare(std::size_t field_index);

  std::string file_;
  std::string_view rest_;
  std::size_t line_ = 0;
  std::size_t next_line_ = 1;
  std::vector<std::string> header_;
  std::vector<std::string_view> fields_;
  // Text of fields that had "" inside, by field index; a deque, because fields_ points into it.
  std::deque<std::string> unquoted_;
};

}  // namespace jogak
