// SPDX-License-Identifier: Apache-2.0
//
// The clock does not go back.
#include "base/mono_clock.h"

#include <gtest/gtest.h>

namespace jogak {
namespace {

TEST(MonoClock, DoesNotGoBack) {
  std::int64_t last = mono_now_ns();
  for (int i = 0; i < 1'000; ++i) {
    const std::int64_t now = mono_now_ns();
    ASSERT_GE(now, last);
    last = now;
  }
}

}  // namespace
}  // namespace jogak
