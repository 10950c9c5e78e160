// SPDX-License-Identifier: Apache-2.0
//
// A failed check ends the process and says where and why.
#include "base/check.h"

#include <gtest/gtest.h>

namespace jogak {
namespace {

TEST(CheckDeathTest, PrintsPlaceExpressionAndMessage) {
  const int gpus = 9;
  EXPECT_DEATH(JOGAK_CHECK(gpus <= 8), "check_test.cc:[0-9]+: check failed: gpus <= 8\n");
  EXPECT_DEATH(JOGAK_CHECK(gpus <= 8, "node {} has {}", "n1", gpus),
               "check failed: gpus <= 8 \\(node n1 has 9\\)");
}

TEST(Check, EvaluatesOnceAndIsOneStatement) {
  int evaluated = 0;
  if (evaluated == 0)
    JOGAK_CHECK(++evaluated > 0);
  else
    JOGAK_CHECK(false);
  EXPECT_EQ(evaluated, 1);
}

TEST(Check, DcheckFollowsNdebug) {
#ifdef NDEBUG
  JOGAK_DCHECK(false, "not evaluated");
#else
  EXPECT_DEATH(JOGAK_DCHECK(false, "{}", 1), "check failed: false \\(1\\)");
#endif
  JOGAK_DCHECK(true);
}

}  // namespace
}  // namespace jogak
