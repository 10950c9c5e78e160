// SPDX-License-Identifier: Apache-2.0
//
// An answer is doubted for what it lacks only: holders that are new are as true as ever.
#include "agent/run/holdings_account.h"

#include <algorithm>
#include <utility>

namespace jogak::agent {

Result<std::vector<Holding>> HoldingsAccount::judge(Result<std::vector<Holding>> answer,
                                                    std::optional<TimeUs> kubelet_age) {
  if (!answer) return answer;
  std::vector<Holding> sorted = *answer;
  std::ranges::sort(sorted);
  if (kubelet_age && *kubelet_age < kSettles &&
      (sorted.empty() || !std::ranges::includes(sorted, known_))) {
    return fail(Errc::Unavailable, "it has just started and does not know all of its pods yet");
  }
  known_ = std::move(sorted);
  return answer;
}

}  // namespace jogak::agent
