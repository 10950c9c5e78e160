// SPDX-License-Identifier: Apache-2.0
//
// Stalls, deaths and clocks of a process under virtual time.
#include "test/livesim/process_loop.h"

#include <string>

#include <gtest/gtest.h>

#include "base/sim_loop.h"

namespace jogak::livesim {
namespace {

TEST(ProcessLoop, ReadsAnotherClockAndItsTimersFireByIt) {
  SimLoop world;
  ProcessLoop loop(world, 300 * kSecondInUs);
  EXPECT_EQ(loop.now(), world.now() + 300 * kSecondInUs);
  TimeUs fired = 0;
  loop.after(5 * kSecondInUs, [&] { fired = world.now(); });
  const TimeUs start = world.now();
  world.run_for(10 * kSecondInUs);
  EXPECT_EQ(fired, start + 5 * kSecondInUs);
}

TEST(ProcessLoop, AStallHoldsTasksBackAndKeepsTheirOrder) {
  SimLoop world;
  ProcessLoop loop(world, 0);
  std::string order;
  loop.after(2 * kSecondInUs, [&] { order += "b"; });
  loop.post([&] { order += "a"; });
  loop.stall_for(30 * kSecondInUs);
  loop.after(1 * kSecondInUs, [&] { order += "c"; });
  world.run_for(29 * kSecondInUs);
  EXPECT_EQ(order, "");
  world.run_for(2 * kSecondInUs);
  EXPECT_EQ(order, "acb");
  loop.post([&] { order += "d"; });
  world.run_ready();
  EXPECT_EQ(order, "acbd");
}

TEST(ProcessLoop, ATimerCancelledDuringAStallDoesNotFire) {
  SimLoop world;
  ProcessLoop loop(world, 0);
  bool has_fired = false;
  TimerId timer = 0;
  loop.stall_for(10 * kSecondInUs);
  loop.at(loop.now() + kSecondInUs, [&] { loop.cancel(timer); });
  timer = loop.at(loop.now() + 2 * kSecondInUs, [&] { has_fired = true; });
  world.run_for(20 * kSecondInUs);
  EXPECT_FALSE(has_fired);
}

TEST(ProcessLoop, DiesAtTheStepSaid) {
  SimLoop world;
  ProcessLoop loop(world, 0);
  int ran = 0;
  bool is_told = false;
  loop.kill_after(3, [&] { is_told = true; });
  for (int i = 0; i < 5; ++i) loop.post([&] { ++ran; });
  world.run_ready();
  EXPECT_EQ(ran, 2);
  EXPECT_TRUE(is_told);
  EXPECT_TRUE(loop.is_dead());
  EXPECT_FALSE(loop.step());
}

TEST(ProcessLoop, WhatIsOnItsWayToAProcessThatIsGoneIsDropped) {
  SimLoop world;
  int ran = 0;
  {
    ProcessLoop loop(world, 0);
    loop.post([&] { ++ran; });
    loop.after(kSecondInUs, [&] { ++ran; });
  }
  world.run_for(5 * kSecondInUs);
  EXPECT_EQ(ran, 0);
}

}  // namespace
}  // namespace jogak::livesim
