// SPDX-License-Identifier: Apache-2.0
//
// Tables as a user sees them.
#include "base/text_table.h"

#include <gtest/gtest.h>

namespace jogak {
namespace {

TEST(TextTable, AlignsColumns) {
  TextTable table({{"NODE"}, {"GPUS", Align::Right}, {"STATE"}});
  table.add("n1", 8, "ready");
  table.add("node-with-a-long-name", 128, "");
  EXPECT_EQ(table.text(),
            "NODE                   GPUS  STATE\n"
            "n1                        8  ready\n"
            "node-with-a-long-name   128\n");
  EXPECT_EQ(table.rows(), 2U);
}

TEST(TextTable, Indents) {
  TextTable table({{"A"}});
  table.add("x");
  EXPECT_EQ(table.text(2), "  A\n  x\n");
}

TEST(TextTable, CountsCharactersAndHidesControls) {
  TextTable table({{"NAME"}, {"N", Align::Right}});
  table.add("조각", 1);
  table.add("a\x1b[2J\n", 2);
  EXPECT_EQ(table.text(),
            "NAME    N\n"
            "조각      1\n"
            "a?[2J?  2\n");
}

TEST(TextTableDeathTest, RowsAreWhole) {
  TextTable table({{"A"}, {"B"}});
  EXPECT_DEATH(table.add("x"), "1 cells for 2 columns");
}

}  // namespace
}  // namespace jogak
