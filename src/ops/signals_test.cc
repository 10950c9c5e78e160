// SPDX-License-Identifier: Apache-2.0
//
// A signal to this process arrives as a call on the loop.
#include "ops/signals.h"

#include <vector>

#include <gtest/gtest.h>

namespace jogak::ops {
namespace {

TEST(Signals, ArriveOnTheLoop) {
  net::EpollLoop loop;
  std::vector<int> taken;
  {
    const Signals signals(loop, {{SIGUSR1, [&] { taken.push_back(SIGUSR1); }},
                                 {SIGUSR2, [&] { taken.push_back(SIGUSR2); }}});
    ::raise(SIGUSR2);
    EXPECT_TRUE(taken.empty()) << "not before the loop turns";
    loop.turn(kSecondInUs);
    ::raise(SIGUSR1);
    loop.turn(kSecondInUs);
    EXPECT_EQ(taken, (std::vector<int>{SIGUSR2, SIGUSR1}));
  }
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  EXPECT_EQ(sigismember(&blocked, SIGUSR2), 0);
}

}  // namespace
}  // namespace jogak::ops
