// SPDX-License-Identifier: Apache-2.0
//
// Whether the kubelet's account of who holds what may be believed. A kubelet that has just started
// answers before it knows its pods: for a second or so it says that nobody holds anything, while
// all of them run on. Whoever believes that recuts a GPU in use. Pure.
#pragma once

#include <optional>
#include <vector>

#include "agent/model/holders.h"
#include "base/loop.h"
#include "base/result.h"

namespace jogak::agent {

class HoldingsAccount {
 public:
  // How long after its start a kubelet may still be without its pods.
  static constexpr TimeUs kSettles = 10 * kSecondInUs;

  // What is to be taken for the truth. `kubelet_age`: since its socket was made, if known. An
  // answer in which a young kubelet lacks holders that were there before, or has none at all, is
  // Unavailable: ask again soon.
  Result<std::vector<Holding>> judge(Result<std::vector<Holding>> answer,
                                     std::optional<TimeUs> kubelet_age);

 private:
  std::vector<Holding> known_;  // sorted
};

}  // namespace jogak::agent
