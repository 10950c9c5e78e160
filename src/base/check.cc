// SPDX-License-Identifier: Apache-2.0
//
// The cold end of JOGAK_CHECK.
#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace jogak::internal {

void check_failed(const char* file, int line, const char* expression, const std::string& message) {
  fmt::print(stderr, "{}:{}: check failed: {}{}{}{}\n", file, line, expression,
             message.empty() ? "" : " (", message, message.empty() ? "" : ")");
  std::fflush(stderr);
  std::abort();
}

}  // namespace jogak::internal
