// SPDX-License-Identifier: Apache-2.0
//
// Rows of the forms found in traces, and errors that say where.
#include "base/csv.h"

#include <gtest/gtest.h>

#include <vector>

namespace jogak {
namespace {

using Rows = std::vector<std::vector<std::string>>;

Result<Rows> read_all(std::string_view text) {
  JOGAK_TRY(auto csv, CsvReader::open("t.csv", text));
  Rows rows;
  for (;;) {
    JOGAK_TRY(const bool has_row, csv.next());
    if (!has_row) return rows;
    rows.emplace_back();
    for (std::size_t i = 0; i < csv.header().size(); ++i) {
      rows.back().emplace_back(csv.field(i));
    }
  }
}

TEST(Csv, ReadsRows) {
  const Rows rows = {{"n1", "8"}, {"n2", ""}};
  EXPECT_EQ(read_all("name,gpus\nn1,8\nn2,\n").value(), rows);
  EXPECT_EQ(read_all("name,gpus\r\nn1,8\r\nn2,\r\n").value(), rows);
  EXPECT_EQ(read_all("name,gpus\nn1,8\nn2,").value(), rows);  // no line end at the end
  EXPECT_EQ(read_all("name,gpus\r\nn1,8\r\nn2,\r").value(), rows);
  EXPECT_EQ(read_all("\xef\xbb\xbfname,gpus\nn1,8\n\nn2,\n\n").value(), rows);
  EXPECT_EQ(read_all("name,gpus\n").value(), Rows());
  EXPECT_EQ(read_all("name,gpus").value(), Rows());
}

TEST(Csv, ReadsQuotedFields) {
  const Rows rows = {{"a,b", "line\nbreak", "say \"hi\", \"ho\""}, {"", "x", "\""}};
  EXPECT_EQ(read_all("p,q,r\n\"a,b\",\"line\nbreak\",\"say \"\"hi\"\", \"\"ho\"\"\"\n"
                     "\"\",x,\"\"\"\"")
                .value(),
            rows);
  EXPECT_EQ(read_all("\"a\"\r\n\"1\"\r\n\"2\"\r").value(), (Rows{{"1"}, {"2"}}));
}

// Several short fields with "" in one row: each keeps its own text.
TEST(Csv, UnquotedTextsStayApart) {
  EXPECT_EQ(read_all("a,b,c\n\"\"\"1\",\"\"\"2\",\"\"\"3\"\n").value(),
            (Rows{{"\"1", "\"2", "\"3"}}));
}

TEST(Csv, BlankLineIsARowOfOneEmptyFieldWhereThereIsOneColumn) {
  EXPECT_EQ(read_all("a\n1\n\n2\n").value(), (Rows{{"1"}, {""}, {"2"}}));
}

TEST(Csv, LinesAreThoseOfTheFile) {
  auto csv = CsvReader::open("t.csv", "a,b\n\n\"x\ny\",1\nz,2\n").value();
  ASSERT_TRUE(csv.next().value());
  EXPECT_EQ(csv.line(), 3U);
  ASSERT_TRUE(csv.next().value());
  EXPECT_EQ(csv.line(), 5U);
  EXPECT_FALSE(csv.next().value());
}

TEST(Csv, SyntaxErrorsSayWhere) {
  const auto error = [](std::string_view text) { return read_all(text).error().what; };
  EXPECT_EQ(error(""), "t.csv: empty; the first line should name the columns");
  EXPECT_EQ(error("a,b\n1,2\n3\n"), "t.csv:3: 1 fields where the header has 2");
  EXPECT_EQ(error("a,b\n1,2,3\n"), "t.csv:2: 3 fields where the header has 2");
  EXPECT_EQ(error("a,b\n1,\"x\n"), "t.csv:2: column b: the quote is not closed");
  EXPECT_EQ(error("a,b\n1,\"x\"y\n"), "t.csv:2: column b: text after the closing quote");
  EXPECT_EQ(error("a,b\n1,x\"y\n"),
            "t.csv:2: column b: a quote inside; put the whole field in quotes and double it");
  EXPECT_EQ(error("a,b,a\n"), "t.csv:1: two columns are named \"a\"");
}

TEST(Csv, MissingColumnListsThoseThere) {
  const auto csv = CsvReader::open("pods.csv", "name,gpu_milli,qos\n").value();
  EXPECT_EQ(csv.column("qos").value(), 2U);
  EXPECT_EQ(csv.column("gpu_mili").error().what,
            "pods.csv: no column gpu_mili; the columns are name, gpu_milli, qos; "
            "did you mean gpu_milli?");
  EXPECT_EQ(csv.find_column("x"), std::nullopt);
}

TEST(Csv, IntegersSayWhere) {
  auto csv = CsvReader::open("pods.csv", "name,gpus\nn1,8\nn2,many\n").value();
  const auto gpus = csv.column("gpus").value();
  ASSERT_TRUE(csv.next().value());
  EXPECT_EQ(csv.integer(gpus).value(), 8);
  EXPECT_EQ(csv.integer(gpus, 0, 4).error().what,
            "pods.csv:2: column gpus: 8 is not between 0 and 4");
  ASSERT_TRUE(csv.next().value());
  EXPECT_EQ(csv.integer(gpus).error().what,
            "pods.csv:3: column gpus: \"many\" is not a whole number");
}

}  // namespace
}  // namespace jogak
